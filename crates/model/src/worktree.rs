//! Worktrees: the folders and branches that agents have to themselves, and what was changed in them.
//!
//! Owns the words for them and how they are named. Making, finishing and removing them is the hub's, by `consort-git`.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::command::Refusal;
use crate::state::State;

/// Longest name of a worktree, in characters.
const MAX_NAME: usize = 64;

/// How many worktrees one agent may have at a time.
pub const MAX_PER_AGENT: usize = 8;

/// A git worktree that Consort made for an agent, with the branch in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Worktree {
    /// Its name: the last part of its folder.
    pub name: String,
    /// Its folder.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The branch that it came from and goes back to.
    pub base: String,
    /// The commit that it began at.
    pub base_commit: String,
    /// The folder of the repository that it was made from.
    pub repository: String,
}

impl Worktree {
    /// Whether a folder is in it.
    pub fn holds(&self, folder: &str) -> bool {
        Path::new(folder).starts_with(&self.path)
    }
}

impl State {
    /// The worktree that an agent works in: its own, or one that another agent has.
    pub fn worktree_of(&self, agent: &Agent) -> Option<&Worktree> {
        let own = self.agents.get(&agent.id).into_iter().flat_map(|agent| &agent.worktrees);
        let others = self.agents.values().flat_map(|agent| &agent.worktrees);
        own.chain(others).find(|worktree| worktree.holds(&agent.cwd))
    }

    /// The worktree that somebody means, with the agent that has it: by its agent, its name, its branch or its folder.
    pub fn find_worktree(&self, wanted: &str) -> Result<(&Agent, &Worktree), Refusal> {
        let all = || self.agents.values().flat_map(|agent| agent.worktrees.iter().map(move |it| (agent, it)));
        let fits = |worktree: &Worktree| {
            [&worktree.name, &worktree.branch, &worktree.path].into_iter().any(|name| name == wanted)
        };
        let by_agent = self.find(wanted).ok();
        let of_agent = by_agent.and_then(|agent| {
            let inside = self.worktree_of(agent).or_else(|| agent.worktrees.first())?;
            all().find(|(_, worktree)| worktree.path == inside.path)
        });
        let mut meant: Vec<(&Agent, &Worktree)> = of_agent.into_iter().collect();
        for named in all().filter(|(_, worktree)| fits(worktree)) {
            if !meant.iter().any(|(_, worktree)| worktree.path == named.1.path) {
                meant.push(named);
            }
        }
        let reason = match (meant.as_slice(), by_agent) {
            ([only], _) => return Ok(*only),
            ([], Some(agent)) => format!("agent `{}` has no worktree", agent.name),
            ([], None) => format!("there is no worktree `{wanted}`; `consort worktrees list` shows them"),
            (several, _) => {
                let paths: Vec<&str> = several.iter().map(|(_, worktree)| worktree.path.as_str()).collect();
                format!("`{wanted}` may mean {}; give the folder", paths.join(" or "))
            }
        };
        Err(Refusal::Invalid { reason })
    }
}

/// A name that can be a folder and the last part of a branch, as git sees it, or why it cannot.
pub fn valid_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    let odd = |letter: char| {
        letter.is_control() || letter.is_whitespace() || r#"/\~^:?*[]{}"'`$&|;<>()!#"#.contains(letter)
    };
    let fits = !name.is_empty()
        && name.chars().count() <= MAX_NAME
        && !name.contains(odd)
        && !name.starts_with(['-', '.', '@'])
        && !name.ends_with('.')
        && !name.ends_with(".lock")
        && !name.contains("..")
        && !name.contains("@{");
    if fits {
        return Ok(name.to_owned());
    }
    Err(Refusal::Invalid {
        reason: format!(
            "`{name}` cannot be the name of a worktree: use 1 to {MAX_NAME} letters, digits, `-`, `_` and dots inside"
        ),
    })
}

/// A name made of whatever an agent or profile is called, such as `fix-the-tests` of `Fix the tests!`.
pub fn name_from(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            letter if letter.is_alphanumeric() || letter == '_' => name.push(letter),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name: String = name.trim_end_matches('-').chars().take(48).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() { "agent".to_owned() } else { name.to_owned() }
}

/// How a branch is brought up to date before its base is moved forward to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Integration {
    /// Its commits are put on top of the base.
    #[default]
    Rebase,
    /// The base is merged into it.
    Merge,
}

/// What was changed in a folder.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The folder.
    pub folder: String,
    /// The branch that is checked out in it; none: no branch is.
    pub branch: Option<String>,
    /// What it is compared with: a branch's name, or `HEAD`.
    pub base: String,
    /// The commit that it is compared with; none: there is none yet.
    pub base_commit: Option<String>,
    /// How many commits were made since.
    pub commits: u32,
    /// The changed files, by name; uncommitted and new ones too.
    pub files: Vec<FileChange>,
    /// Lines that were added, in all files.
    pub added: u64,
    /// Lines that were removed, in all files.
    pub removed: u64,
    /// Whether there are more files than are listed here.
    pub truncated: bool,
}

impl Changes {
    /// What it comes to, in few words.
    pub fn sum(&self) -> String {
        let files = if self.files.len() == 1 { "file" } else { "files" };
        let more = if self.truncated { " and more" } else { "" };
        let commits = match self.commits {
            0 => String::new(),
            1 => ", 1 commit".to_owned(),
            commits => format!(", {commits} commits"),
        };
        let since = match &self.base_commit {
            Some(commit) => format!("{} ({})", self.base, commit.chars().take(10).collect::<String>()),
            None => "nothing: there is no commit yet".to_owned(),
        };
        let (count, added, removed) = (self.files.len(), self.added, self.removed);
        format!("{count} {files}{more}, +{added} -{removed}{commits} since {since}")
    }
}

/// A changed file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Its path in the repository.
    pub path: String,
    /// Its path before, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// What happened to it.
    pub change: ChangeKind,
    /// Lines that were added; none: it is not text.
    pub added: Option<u64>,
    /// Lines that were removed; none: it is not text.
    pub removed: Option<u64>,
}

/// What happened to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It says something else.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// It is a copy of another.
    Copied,
    /// It became a link, or a link a file.
    TypeChanged,
    /// A merge left it in conflict.
    Unmerged,
}

impl ChangeKind {
    /// The letter that git has for it.
    pub fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Renamed => 'R',
            Self::Copied => 'C',
            Self::TypeChanged => 'T',
            Self::Unmerged => 'U',
        }
    }
}

/// The changes of an agent as text, with the files they concern.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiffText {
    /// Which files.
    pub changes: Changes,
    /// The diff, in git's unified form.
    pub text: String,
    /// Whether the text was cut at a limit.
    pub truncated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::testing::{agent, state};

    fn worktree(name: &str) -> Worktree {
        Worktree {
            name: name.into(),
            path: format!("/w/{name}"),
            branch: format!("consort/{name}"),
            base: "main".into(),
            base_commit: "0".into(),
            repository: "/r".into(),
        }
    }

    #[test]
    fn a_worktree_is_found_by_its_agent_name_branch_or_folder() {
        let mut team = state();
        let mut add = |n: u128, name: &str, cwd: &str, worktrees: &[&str]| {
            let worktrees = worktrees.iter().map(|name| worktree(name)).collect();
            let agent = Agent { name: name.into(), cwd: cwd.into(), worktrees, ..agent(n) };
            team.agents.insert(agent.id, agent);
        };
        add(1, "alice", "/w/a/sub", &["a"]);
        add(2, "bob", "/r", &["b", "c"]);
        add(3, "child", "/w/a", &[]);
        add(4, "carol", "/r", &[]);
        add(5, "c", "/w/d", &["d"]);
        let found = |wanted: &str| {
            team.find_worktree(wanted).map(|(agent, it)| (agent.name.as_str(), it.name.as_str()))
        };
        for (wanted, expected) in [
            ("alice", ("alice", "a")),
            ("a", ("alice", "a")),
            ("consort/b", ("bob", "b")),
            ("/w/c", ("bob", "c")),
            ("bob", ("bob", "b")),
            ("child", ("alice", "a")),
        ] {
            assert_eq!(found(wanted).unwrap(), expected, "{wanted}");
        }
        for (wanted, why) in [("carol", "has no worktree"), ("x", "there is no worktree"), ("c", "may mean")]
        {
            assert!(found(wanted).unwrap_err().to_string().contains(why), "{wanted}");
        }
    }

    #[test]
    fn names_are_such_that_git_and_a_shell_take_them() {
        for good in ["a", "fix-1", "größe", "v1.2", "日本", "A_b"] {
            assert_eq!(valid_name(good).unwrap(), good);
        }
        let long = "x".repeat(65);
        for bad in [
            "",
            " ",
            ".",
            "..",
            "a..b",
            "-x",
            ".x",
            "x.",
            "x.lock",
            "a b",
            "a/b",
            "a\\b",
            "a:b",
            "a~1",
            "a^",
            "a?",
            "a*",
            "a[",
            "@",
            "@{x",
            "a\nb",
            "$(x)",
            "a;b",
            "`x`",
            long.as_str(),
        ] {
            assert!(valid_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn whatever_an_agent_is_called_makes_a_name() {
        for (text, name) in [
            ("Fix the tests!", "fix-the-tests"),
            ("fixer", "fixer"),
            ("  a // b  ", "a-b"),
            ("...", "agent"),
            ("", "agent"),
            ("Größe 2", "größe-2"),
        ] {
            assert_eq!(name_from(text), name);
            assert!(valid_name(&name_from(text)).is_ok());
        }
        assert!(valid_name(&name_from(&"x y".repeat(99))).is_ok());
    }
}
