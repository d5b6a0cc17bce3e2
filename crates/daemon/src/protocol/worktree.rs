//! What crosses the socket about worktrees.

use consort_hub::{FinishedWorktree, RemovedWorktree, SeenWorktree};
use consort_model::{AgentId, Status, Worktree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A git worktree for a new agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorktree {
    /// Its name; none: one is made of the agent's.
    #[serde(default)]
    pub name: Option<String>,
    /// The branch that it begins at and goes back to; none: the one that is checked out where the agent was to work.
    #[serde(default)]
    pub base: Option<String>,
}

/// A worktree, as lists show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeView {
    /// The worktree.
    #[serde(flatten)]
    pub worktree: Worktree,
    /// The agent that has it; null: it was left over by a daemon that was killed while it made it.
    pub agent: Option<AgentId>,
    /// That agent's name.
    pub agent_name: Option<String>,
    /// What that agent is doing.
    pub agent_status: Option<Status>,
    /// Whether its folder is there.
    pub is_there: bool,
    /// How many files are changed or new and not committed; null: not known.
    pub uncommitted: Option<u64>,
    /// How many commits its base does not have; null: not known.
    pub ahead: Option<u64>,
    /// How many commits of its base it does not have; null: not known.
    pub behind: Option<u64>,
    /// Why something is not known.
    pub problem: Option<String>,
}

impl WorktreeView {
    /// How it stands to its base, in few words.
    pub fn standing(&self) -> String {
        if let Some(problem) = &self.problem {
            return format!("not known: {problem}");
        }
        let base = &self.worktree.base;
        let mut parts = Vec::new();
        if !self.is_there {
            parts.push("folder gone".to_owned());
        }
        let ahead = format!("ahead of {base}");
        for (count, words) in
            [(self.uncommitted, "uncommitted"), (self.ahead, ahead.as_str()), (self.behind, "behind")]
        {
            if let Some(count) = count.filter(|count| *count > 0) {
                parts.push(format!("{count} {words}"));
            }
        }
        if parts.is_empty() { format!("same as {base}") } else { parts.join(", ") }
    }
}

impl From<SeenWorktree> for WorktreeView {
    fn from(seen: SeenWorktree) -> Self {
        let (standing, problem) = match seen.standing {
            Ok(standing) => (Some(standing), None),
            Err(problem) => (None, Some(problem)),
        };
        let (agent, agent_name, agent_status) = match seen.agent {
            Some((id, name, status)) => (Some(id), Some(name), Some(status)),
            None => (None, None, None),
        };
        Self {
            is_there: standing.is_some_and(|standing| standing.is_there),
            uncommitted: standing.map(|standing| standing.uncommitted),
            ahead: standing.map(|standing| standing.ahead),
            behind: standing.map(|standing| standing.behind),
            worktree: seen.worktree,
            agent,
            agent_name,
            agent_status,
            problem,
        }
    }
}

/// What came of finishing a worktree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeFinished {
    /// The worktree.
    #[serde(flatten)]
    pub worktree: Worktree,
    /// How many commits its base got.
    pub commits: u64,
    /// Where its base stands now.
    pub commit: String,
    /// Whether the worktree and its branch are still there.
    pub kept: bool,
}

impl WorktreeFinished {
    /// What came of it, in a sentence.
    pub fn sentence(&self) -> String {
        let Self { worktree, commits, kept, .. } = self;
        let word = if *commits == 1 { "commit" } else { "commits" };
        let end = if *kept { "it stays" } else { "it was removed, and its agents closed" };
        format!("{commits} {word} of {} went to {}; {end}", worktree.branch, worktree.base)
    }
}

impl From<FinishedWorktree> for WorktreeFinished {
    fn from(finished: FinishedWorktree) -> Self {
        let FinishedWorktree { worktree, commits, commit, kept } = finished;
        Self { worktree, commits, commit, kept }
    }
}

/// What came of removing a worktree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeRemoved {
    /// The worktree.
    #[serde(flatten)]
    pub worktree: Worktree,
    /// Where its branch stood, so that it can be found again; null: the branch was gone.
    pub commit: Option<String>,
    /// Whether its branch is still there, since it is checked out elsewhere.
    pub branch_kept: bool,
}

impl WorktreeRemoved {
    /// What came of it, in a sentence.
    pub fn sentence(&self) -> String {
        let (path, branch) = (&self.worktree.path, &self.worktree.branch);
        match (&self.commit, self.branch_kept) {
            (Some(_), true) => {
                format!("{path} was removed; its branch {branch} is checked out elsewhere and stays")
            }
            (Some(commit), false) => {
                format!("{path} was removed with its branch {branch}, which was at {commit}")
            }
            (None, _) => format!("{path} was removed"),
        }
    }
}

impl From<RemovedWorktree> for WorktreeRemoved {
    fn from(removed: RemovedWorktree) -> Self {
        let RemovedWorktree { worktree, commit, branch_kept } = removed;
        Self { worktree, commit, branch_kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_worktree_stands_is_said_in_few_words() {
        let worktree = Worktree {
            name: "x".into(),
            path: "/w/x".into(),
            branch: "consort/x".into(),
            base: "main".into(),
            base_commit: "0".into(),
            repository: "/r".into(),
        };
        let mut view = WorktreeView {
            worktree,
            agent: None,
            agent_name: None,
            agent_status: None,
            is_there: true,
            uncommitted: Some(0),
            ahead: Some(0),
            behind: Some(0),
            problem: None,
        };
        assert_eq!(view.standing(), "same as main");
        (view.uncommitted, view.ahead, view.behind) = (Some(3), Some(2), Some(1));
        assert_eq!(view.standing(), "3 uncommitted, 2 ahead of main, 1 behind");
        view.is_there = false;
        assert!(view.standing().starts_with("folder gone, "));
        view.problem = Some("git failed".into());
        assert_eq!(view.standing(), "not known: git failed");
    }
}
