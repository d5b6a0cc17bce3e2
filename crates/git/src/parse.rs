//! What git prints, as values. Pure: bytes go in; whatever they are, values or none come out.
//!
//! All of it is asked for with `-z`, so that names may hold anything.

use consort_model::{ChangeKind, FileChange};

/// A worktree as git lists it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// Its folder.
    pub path: String,
    /// The commit that is checked out in it; none in a bare repository.
    pub head: Option<String>,
    /// The branch that is checked out in it, without `refs/heads/`.
    pub branch: Option<String>,
    /// Whether it is a bare repository itself.
    pub bare: bool,
    /// Why it is locked; an empty reason is one too.
    pub locked: Option<String>,
    /// Why git would forget it, such as that its folder is gone.
    pub prunable: Option<String>,
}

/// `git worktree list --porcelain -z`.
pub fn worktrees(bytes: &[u8]) -> Vec<Listed> {
    let mut found = Vec::new();
    let mut current: Option<Listed> = None;
    for line in bytes.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        let (key, value) = line.split_once(' ').unwrap_or((&line, ""));
        if key == "worktree" {
            found.extend(current.take());
            current = Some(Listed { path: value.to_owned(), ..Listed::default() });
        }
        let Some(listed) = &mut current else { continue };
        match key {
            "HEAD" => listed.head = Some(value.to_owned()),
            "branch" => {
                listed.branch = Some(value.strip_prefix("refs/heads/").unwrap_or(value).to_owned());
            }
            "bare" => listed.bare = true,
            "locked" => listed.locked = Some(value.to_owned()),
            "prunable" => listed.prunable = Some(value.to_owned()),
            _ => {}
        }
    }
    found.extend(current);
    found
}

/// What is not committed in a folder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Tracked files that say something else than the commit, staged or not.
    pub changed: Vec<String>,
    /// Files in conflict.
    pub unmerged: Vec<String>,
    /// Files and folders that git does not know and is not told to ignore.
    pub untracked: Vec<String>,
}

impl Status {
    /// Whether all is committed.
    pub fn is_clean(&self) -> bool {
        self.tracked_is_clean() && self.untracked.is_empty()
    }

    /// Whether all that git knows is committed.
    pub fn tracked_is_clean(&self) -> bool {
        self.changed.is_empty() && self.unmerged.is_empty()
    }
}

/// `git status --porcelain=v2 -z`. None if a line is of no known form: then nothing is known about the folder.
pub fn status(bytes: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut lines = bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        let line = String::from_utf8_lossy(line);
        let field = |count: usize| line.splitn(count, ' ').nth(count - 1).map(str::to_owned);
        match line.split(' ').next()? {
            "#" | "!" => {}
            "1" => status.changed.push(field(9)?),
            "2" => {
                status.changed.push(field(10)?);
                // The name before the move is a line of its own.
                lines.next()?;
            }
            "u" => status.unmerged.push(field(11)?),
            "?" => status.untracked.push(field(2)?),
            _ => return None,
        }
    }
    Some(status)
}

/// `git diff --raw --numstat -z`: the changed files, those of one name once.
pub fn changed_files(bytes: &[u8]) -> Option<Vec<FileChange>> {
    let mut files: Vec<FileChange> = Vec::new();
    let mut fields =
        bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty()).map(String::from_utf8_lossy);
    while let Some(field) = fields.next() {
        if let Some(raw) = field.strip_prefix(':') {
            let letter = raw.split(' ').nth(4)?.chars().next()?;
            let first = fields.next()?.into_owned();
            let moved = matches!(letter, 'R' | 'C');
            let (path, old_path) =
                if moved { (fields.next()?.into_owned(), Some(first)) } else { (first, None) };
            let change = kind(letter);
            match files.iter_mut().find(|file| file.path == path) {
                // A file in conflict may be listed a second time with what the conflict looks like.
                Some(file) if change == ChangeKind::Unmerged => file.change = change,
                Some(_) => {}
                None => files.push(FileChange { path, old_path, change, added: Some(0), removed: Some(0) }),
            }
            continue;
        }
        let mut columns = field.splitn(3, '\t');
        let (added, removed, name) = (columns.next()?, columns.next()?, columns.next()?);
        let path = if name.is_empty() {
            fields.next()?;
            fields.next()?.into_owned()
        } else {
            name.to_owned()
        };
        if let Some(file) = files.iter_mut().find(|file| file.path == path) {
            // A `-` stands for a file that is not text.
            (file.added, file.removed) = (added.parse().ok(), removed.parse().ok());
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Some(files)
}

fn kind(letter: char) -> ChangeKind {
    match letter {
        'A' => ChangeKind::Added,
        'D' => ChangeKind::Deleted,
        'R' => ChangeKind::Renamed,
        'C' => ChangeKind::Copied,
        'T' => ChangeKind::TypeChanged,
        'U' => ChangeKind::Unmerged,
        _ => ChangeKind::Modified,
    }
}

/// The names in `git ls-files --unmerged -z`, each once.
pub fn unmerged_files(bytes: &[u8]) -> Vec<String> {
    let name = |line: &[u8]| Some(String::from_utf8_lossy(line).split_once('\t')?.1.to_owned());
    let mut names: Vec<String> = bytes.split(|byte| *byte == 0).filter_map(name).collect();
    names.dedup();
    names
}

/// How many stashes were made on a branch, of `git log --walk-reflogs --format=%gs -z refs/stash`.
pub fn stashes_of(bytes: &[u8], branch: &str) -> usize {
    let fits = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let rest = line.strip_prefix("WIP on ").or_else(|| line.strip_prefix("On "));
        rest.and_then(|rest| rest.strip_prefix(branch)).is_some_and(|rest| rest.starts_with(':'))
    };
    bytes.split(|byte| *byte == 0).filter(|line| fits(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn z(text: &str) -> Vec<u8> {
        text.replace('|', "\0").into_bytes()
    }

    #[test]
    fn worktrees_are_read_with_their_locks_and_odd_names() {
        let text = z(
            "worktree /r|HEAD 11|branch refs/heads/main||worktree /w/a b\nc|HEAD 22|detached|locked why not||\
                      worktree /gone|HEAD 33|branch refs/heads/x/y|locked|prunable gitdir file points to nowhere||",
        );
        let found = worktrees(&text);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].path.as_str(), found[0].branch.as_deref()), ("/r", Some("main")));
        assert_eq!((found[1].path.as_str(), found[1].branch.as_deref()), ("/w/a b\nc", None));
        assert_eq!(found[1].locked.as_deref(), Some("why not"));
        assert_eq!((found[2].branch.as_deref(), found[2].locked.as_deref()), (Some("x/y"), Some("")));
        assert!(found[2].prunable.is_some());
        assert!(worktrees(&z("worktree /b|bare||"))[0].bare);
        assert!(worktrees(b"").is_empty() && worktrees(b"HEAD 1\0").is_empty());
    }

    #[test]
    fn a_status_tells_changed_new_and_conflicting_files_apart() {
        let text = z(
            "# branch.oid 1|1 .M N... 100644 100644 100644 aa bb a b|2 R. N... 100644 100644 100644 aa bb R100 new|old|\
                      u UU N... 1 2 3 4 a b c fight|? dir/|! ignored|",
        );
        let read = status(&text).unwrap();
        assert_eq!(read.changed, ["a b", "new"]);
        assert_eq!((read.unmerged, read.untracked), (vec!["fight".to_owned()], vec!["dir/".to_owned()]));
        assert!(status(b"").unwrap().is_clean());
        for odd in ["x what", "1 .M", "2 R. N... 1 2 3 4 5 R100 new|", "?"] {
            assert_eq!(status(&z(odd)), None, "{odd}");
        }
    }

    #[test]
    fn changed_files_come_with_their_lines() {
        let text = z(
            ":100644 100644 a b M|src/a|:000000 100644 0 0 A|new file|:100644 100644 a b R090|old|moved|\
                      :100644 000000 a 0 D|gone|:100644 100644 a b M|pic|:000000 000000 0 0 U|fight|\
                      :100644 100644 a b M|fight|3\t1\tsrc/a|2\t0\tnew file|1\t1\t|old|moved|0\t9\tgone|-\t-\tpic|4\t0\tfight|",
        );
        let files = changed_files(&text).unwrap();
        let seen: Vec<_> =
            files.iter().map(|file| (file.path.as_str(), file.change, file.added, file.removed)).collect();
        assert_eq!(
            seen,
            [
                ("fight", ChangeKind::Unmerged, Some(4), Some(0)),
                ("gone", ChangeKind::Deleted, Some(0), Some(9)),
                ("moved", ChangeKind::Renamed, Some(1), Some(1)),
                ("new file", ChangeKind::Added, Some(2), Some(0)),
                ("pic", ChangeKind::Modified, None, None),
                ("src/a", ChangeKind::Modified, Some(3), Some(1)),
            ]
        );
        assert_eq!(files[2].old_path.as_deref(), Some("old"));
        assert_eq!(changed_files(b""), Some(vec![]));
        for odd in [":1 2 3 4|a", ":1 2 3 4 R100|a", "1\t2", "1\t2\t|a"] {
            assert_eq!(changed_files(&z(odd)), None, "{odd}");
        }
    }

    #[test]
    fn stashes_are_counted_by_the_branch_they_were_made_on() {
        let text =
            z("WIP on consort/a: 12 x|On consort/a: mine|WIP on consort/ab: 1 y|On main: consort/a: z|");
        assert_eq!(
            (stashes_of(&text, "consort/a"), stashes_of(&text, "main"), stashes_of(b"", "x")),
            (2, 1, 0)
        );
    }
}
