//! Making and removing worktrees, and what work is in one.
//!
//! Everything that concerns the repository as a whole is done in the folder that its worktrees share, which is there
//! whichever of them is gone.

use std::fmt;
use std::path::Path;

use crate::command::Git;
use crate::error::GitError;
use crate::parse::{self, Listed, Status};
use crate::repository::{Repository, branch, tip, worktrees};

/// The most names in one sentence.
const NAMED: usize = 5;

/// What would be lost, or is not done, if a worktree was removed now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// Changes that are not committed.
    Uncommitted(Vec<String>),
    /// New files that git does not know.
    Untracked(Vec<String>),
    /// A rebase, merge or the like that is under way.
    Unfinished(&'static str),
    /// Commits that no other branch, remote branch or tag has.
    Unmerged {
        /// The branch they are on; none: on no branch at all.
        branch: Option<String>,
        /// How many.
        commits: u64,
    },
    /// Stashes that were made on its branch.
    Stashed(usize),
    /// Somebody locked it, with a reason or without.
    Locked(String),
    /// Submodules that are checked out in it: their commits are kept in the worktree itself.
    Submodules,
}

impl fmt::Display for Work {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncommitted(files) => write!(to, "uncommitted changes ({})", some_of(files)),
            Self::Untracked(files) => write!(to, "new files that are not committed ({})", some_of(files)),
            Self::Unfinished(what) => write!(to, "a {what} under way"),
            Self::Unmerged { branch: Some(branch), commits } => {
                write!(to, "{commits} unmerged {} on {branch}", plural(*commits, "commit"))
            }
            Self::Unmerged { branch: None, commits } => {
                write!(to, "{commits} {} on no branch", plural(*commits, "commit"))
            }
            Self::Stashed(count) => write!(to, "{count} {}", plural(*count as u64, "stashed change")),
            Self::Locked(reason) if reason.is_empty() => write!(to, "a lock"),
            Self::Locked(reason) => write!(to, "a lock ({reason})"),
            Self::Submodules => write!(to, "submodules that are checked out"),
        }
    }
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// The first few of some names.
pub fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Makes a worktree at `path` with a new branch that begins at `commit`. What fails leaves nothing behind.
pub async fn add(repository: &Repository, path: &Path, branch: &str, commit: &str) -> Result<(), GitError> {
    let git = Git::changing(&repository.root);
    check_branch(&git, branch).await?;
    if path.symlink_metadata().is_ok() {
        return Err(GitError::refused(format!("{} is there already; choose another name", path.display())));
    }
    let folder = path.to_str().ok_or_else(|| {
        GitError::refused(format!("{} is not UTF-8; choose another folder", path.display()))
    })?;
    let added = git.bytes(&["worktree", "add", "--no-track", "-b", branch, "--", folder, commit]).await;
    let Err(error) = added else { return Ok(()) };
    match undo(&repository.common, path, branch, commit).await {
        Ok(()) => Err(error),
        Err(left) => Err(GitError::refused(format!(
            "{error}; and {} could not be cleared away: {left}",
            path.display()
        ))),
    }
}

/// Whether a branch of this name can be made.
async fn check_branch(git: &Git, branch: &str) -> Result<(), GitError> {
    if git.run(&["check-ref-format", "--branch", branch], 1 << 10).await?.code != Some(0) {
        return Err(GitError::refused(format!(
            "`{branch}` cannot be the name of a branch; choose another name"
        )));
    }
    if tip(git, branch).await?.is_some() {
        return Err(GitError::refused(format!("there is a branch `{branch}` already; choose another name")));
    }
    for (end, _) in branch.match_indices('/') {
        let above = &branch[..end];
        if tip(git, above).await?.is_some() {
            return Err(GitError::refused(format!(
                "the branch `{above}` is in the way of `{branch}`; set another branch_prefix in .consort/project.toml"
            )));
        }
    }
    Ok(())
}

/// Whether a name is free for a worktree at `path` and its branch.
pub async fn is_free(repository: &Repository, path: &Path, branch: &str) -> Result<bool, GitError> {
    Ok(path.symlink_metadata().is_err() && tip(&Git::at(&repository.root), branch).await?.is_none())
}

/// Takes back a worktree in which nobody has worked yet, whatever its setup left there. The branch goes only if it is
/// still where it began.
pub async fn undo(common: &Path, path: &Path, branch: &str, commit: &str) -> Result<(), GitError> {
    let git = Git::changing(common);
    if listed(&git, path).await?.is_some() {
        let folder = path.to_string_lossy();
        git.bytes(&["worktree", "remove", "--force", "--force", "--", &folder]).await?;
    }
    if path.is_dir() {
        std::fs::remove_dir_all(path)
            .map_err(|error| GitError::refused(format!("{} cannot be removed: {error}", path.display())))?;
    }
    if tip(&git, branch).await?.as_deref() == Some(commit) {
        delete_branch(&git, branch, commit).await?;
    }
    Ok(())
}

/// Deletes a branch if it still stands at `commit`.
async fn delete_branch(git: &Git, branch: &str, commit: &str) -> Result<(), GitError> {
    git.bytes(&["update-ref", "-d", &format!("refs/heads/{branch}"), commit]).await.map(drop)
}

/// The worktree at `path` as git lists it.
pub(crate) async fn listed(git: &Git, path: &Path) -> Result<Option<Listed>, GitError> {
    // Git lists real paths.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_it = |listed: &Listed| Path::new(&listed.path) == real || Path::new(&listed.path) == path;
    Ok(worktrees(git).await?.into_iter().find(is_it))
}

/// What is not committed in a folder.
pub async fn status(folder: &Path) -> Result<Status, GitError> {
    let git = Git::at(folder);
    let ask = ["status", "--porcelain=v2", "-z", "--untracked-files=normal", "--ignore-submodules=none"];
    let said = git.bytes(&ask).await?;
    parse::status(&said).ok_or_else(|| git.unexpected(&ask, "it is no list of files"))
}

/// What is under way in a folder, such as a rebase.
pub async fn unfinished(folder: &Path) -> Result<Option<&'static str>, GitError> {
    let own = Git::at(folder).text(&["rev-parse", "--path-format=absolute", "--git-dir"]).await?;
    let signs = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisection"),
    ];
    Ok(signs.into_iter().find(|(file, _)| Path::new(&own).join(file).exists()).map(|(_, word)| word))
}

/// The work in a worktree and on its branch. An error means that it is not known, never that there is none.
pub async fn work(common: &Path, path: &Path, own_branch: &str) -> Result<Vec<Work>, GitError> {
    let git = Git::at(common);
    let mut found = Vec::new();
    let listed = listed(&git, path).await?;
    if let Some(reason) = listed.and_then(|listed| listed.locked) {
        found.push(Work::Locked(reason));
    }
    if path.symlink_metadata().is_ok() {
        let status = status(path).await?;
        let changed = [status.unmerged, status.changed].concat();
        if !changed.is_empty() {
            found.push(Work::Uncommitted(changed));
        }
        if !status.untracked.is_empty() {
            found.push(Work::Untracked(status.untracked));
        }
        found.extend(unfinished(path).await?.map(Work::Unfinished));
        let inside = Git::at(path);
        let own = inside.text(&["rev-parse", "--path-format=absolute", "--git-dir"]).await?;
        if Path::new(&own).join("modules").exists() {
            found.push(Work::Submodules);
        }
        if branch(&inside).await?.is_none() {
            let ask = ["rev-list", "--count", "HEAD", "--not", "--branches", "--remotes", "--tags"];
            let commits = count(&inside, &ask).await?;
            if commits > 0 {
                found.push(Work::Unmerged { branch: None, commits });
            }
        }
    }
    if let Some(at) = tip(&git, own_branch).await? {
        let exclude = format!("--exclude={own_branch}");
        let ask = ["rev-list", "--count", &at, "--not", &exclude, "--branches", "--remotes", "--tags"];
        let commits = count(&git, &ask).await?;
        if commits > 0 {
            found.push(Work::Unmerged { branch: Some(own_branch.to_owned()), commits });
        }
    }
    if git.perhaps(&["rev-parse", "--verify", "--quiet", "refs/stash"]).await?.is_some() {
        let stashes = git.bytes(&["log", "--walk-reflogs", "-z", "--format=%gs", "refs/stash", "--"]).await?;
        match parse::stashes_of(&stashes, own_branch) {
            0 => {}
            count => found.push(Work::Stashed(count)),
        }
    }
    Ok(found)
}

/// A number that git prints.
pub(crate) async fn count(git: &Git, ask: &[&str]) -> Result<u64, GitError> {
    let said = git.text(ask).await?;
    said.trim().parse().map_err(|_| git.unexpected(ask, "it is no number"))
}

/// How a worktree and its branch stand to the branch they came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Whether its folder is there.
    pub is_there: bool,
    /// Files that are changed or new and not committed.
    pub uncommitted: u64,
    /// Commits that the base does not have.
    pub ahead: u64,
    /// Commits of the base that the branch does not have.
    pub behind: u64,
}

/// How a worktree stands. A branch that is gone is neither ahead nor behind.
pub async fn standing(
    common: &Path,
    path: &Path,
    own_branch: &str,
    base: &str,
) -> Result<Standing, GitError> {
    let git = Git::at(common);
    let mut standing = Standing { is_there: path.is_dir(), ..Standing::default() };
    if standing.is_there {
        let status = status(path).await?;
        standing.uncommitted = (status.changed.len() + status.unmerged.len() + status.untracked.len()) as u64;
    }
    if let (Some(own), Some(base)) = (tip(&git, own_branch).await?, tip(&git, base).await?) {
        (standing.ahead, standing.behind) = (
            count(&git, &["rev-list", "--count", &format!("{base}..{own}")]).await?,
            count(&git, &["rev-list", "--count", &format!("{own}..{base}")]).await?,
        );
    }
    Ok(standing)
}

/// What is left to tell of a worktree that was removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// The commit that its branch stood at; none: there was no branch any more.
    pub commit: Option<String>,
    /// Whether the branch is still there, since it is checked out elsewhere.
    pub branch_kept: bool,
}

/// Removes a worktree and its branch. Without `force` it is refused if there is work in it, and with it nothing is asked.
pub async fn remove(common: &Path, path: &Path, own_branch: &str, force: bool) -> Result<Removed, GitError> {
    if !force {
        let work = work(common, path, own_branch).await?;
        if !work.is_empty() {
            let work = work.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(GitError::refused(format!(
                "the worktree {} is kept, since there is work in it: {work}; commit and merge it, or remove it with --force",
                path.display()
            )));
        }
    }
    let git = Git::changing(common);
    let folder = path.to_string_lossy();
    if listed(&git, path).await?.is_some() {
        let mut args = vec!["worktree", "remove"];
        if force {
            args.extend(["--force", "--force"]);
        }
        args.extend(["--", &folder]);
        git.bytes(&args).await?;
    } else if path.symlink_metadata().is_ok() {
        return Err(GitError::refused(format!(
            "{folder} is not a worktree of the repository any more; look at it and remove it by hand"
        )));
    }
    let Some(commit) = tip(&git, own_branch).await? else { return Ok(Removed::default()) };
    let elsewhere = worktrees(&git).await?.iter().any(|it| it.branch.as_deref() == Some(own_branch));
    if !elsewhere {
        delete_branch(&git, own_branch, &commit).await?;
    }
    Ok(Removed { commit: Some(commit), branch_kept: elsewhere })
}
