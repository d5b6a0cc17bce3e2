//! Bringing a worktree's branch home: brought up to date with its base, and the base moved forward to it.
//!
//! Every check comes before the first change. A conflict is taken back at once, so the worktree is as it was; the base
//! only ever moves forward, and where it is checked out, only if nothing uncommitted is there.

use std::path::{Path, PathBuf};

use consort_model::worktree::Integration;

use crate::command::Git;
use crate::error::GitError;
use crate::repository::{branch, tip, worktrees};
use crate::worktree::{count, some_of, status, unfinished};

/// How often the base may have moved meanwhile before it is given up.
const TRIES: u32 = 3;

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The base has everything.
    Done {
        /// How many commits the base got.
        commits: u64,
        /// Where both branches stand.
        commit: String,
    },
    /// Both sides changed the same; nothing was changed.
    Conflicts {
        /// The files.
        files: Vec<String>,
    },
}

/// Brings the branch of the worktree at `path` home to `base`.
pub async fn finish(
    common: &Path,
    path: &Path,
    own_branch: &str,
    base: &str,
    integration: Integration,
) -> Result<Outcome, GitError> {
    check_committed(path, own_branch).await?;
    let git = Git::at(common);
    for _ in 0..TRIES {
        let Some(base_tip) = tip(&git, base).await? else {
            return Err(GitError::refused(format!(
                "the branch `{base}`, which `{own_branch}` came from, is gone; merge it where you want it"
            )));
        };
        let Some(own_tip) = tip(&git, own_branch).await? else {
            return Err(GitError::refused(format!("the branch `{own_branch}` is gone")));
        };
        if is_ancestor(&git, &own_tip, &base_tip).await? {
            return Ok(Outcome::Done { commits: 0, commit: base_tip });
        }
        let checked_out = check_base(&git, base).await?;
        if !is_ancestor(&git, &base_tip, &own_tip).await? {
            let conflicts = integrate(path, own_branch, &own_tip, base, &base_tip, integration).await?;
            if !conflicts.is_empty() {
                return Ok(Outcome::Conflicts { files: conflicts });
            }
        }
        let Some(commit) = tip(&git, own_branch).await? else {
            return Err(GitError::refused(format!("the branch `{own_branch}` is gone")));
        };
        let range = format!("{base_tip}..{commit}");
        let commits = count(&git, &["rev-list", "--count", &range]).await?;
        if tip(&git, base).await?.as_deref() != Some(base_tip.as_str()) {
            continue;
        }
        forward(common, checked_out.as_deref(), own_branch, base, &commit).await?;
        return Ok(Outcome::Done { commits, commit });
    }
    Err(GitError::refused(format!("`{base}` moves on all the time; try again when it is quiet")))
}

/// Whether all work in the worktree is on its branch.
async fn check_committed(path: &Path, own_branch: &str) -> Result<(), GitError> {
    let shown = path.display();
    if let Some(what) = unfinished(path).await? {
        return Err(GitError::refused(format!(
            "a {what} is under way in {shown}; bring it to its end first"
        )));
    }
    match branch(&Git::at(path)).await? {
        Some(current) if current == own_branch => {}
        current => {
            let current = current.map_or("no branch".to_owned(), |name| format!("`{name}`"));
            return Err(GitError::refused(format!(
                "{shown} is on {current} instead of `{own_branch}`; switch back to it first"
            )));
        }
    }
    let status = status(path).await?;
    if !status.is_clean() {
        let files = [status.unmerged, status.changed, status.untracked].concat();
        return Err(GitError::refused(format!(
            "{shown} has uncommitted work ({}); have it committed or thrown away first",
            some_of(&files)
        )));
    }
    Ok(())
}

/// Where the base is checked out, if anywhere; refused if something uncommitted is there.
async fn check_base(git: &Git, base: &str) -> Result<Option<PathBuf>, GitError> {
    let all = worktrees(git).await?;
    let Some(place) = all.into_iter().find(|it| it.branch.as_deref() == Some(base)) else { return Ok(None) };
    let folder = PathBuf::from(place.path);
    let shown = folder.display();
    if let Some(what) = unfinished(&folder).await? {
        return Err(GitError::refused(format!(
            "`{base}` is checked out in {shown}, where a {what} is under way; bring it to its end first"
        )));
    }
    let status = status(&folder).await?;
    if !status.tracked_is_clean() {
        let files = [status.unmerged, status.changed].concat();
        return Err(GitError::refused(format!(
            "`{base}` is checked out in {shown} with uncommitted changes ({}); commit or stash them first",
            some_of(&files)
        )));
    }
    Ok(Some(folder))
}

async fn is_ancestor(git: &Git, one: &str, other: &str) -> Result<bool, GitError> {
    git.asks(&["merge-base", "--is-ancestor", one, other]).await
}

/// Brings the base's commits into the worktree's branch; the files in conflict, if there are such, after taking it back.
async fn integrate(
    path: &Path,
    own_branch: &str,
    own_tip: &str,
    base: &str,
    base_tip: &str,
    integration: Integration,
) -> Result<Vec<String>, GitError> {
    let git = Git::changing(path);
    let message = format!("Merge branch '{base}' into {own_branch}");
    let (args, abort): (Vec<&str>, [&str; 2]) = match integration {
        Integration::Rebase => {
            let range = format!("{base_tip}..{own_tip}");
            if count(&git, &["rev-list", "--count", "--merges", &range]).await? > 0 {
                return Err(GitError::refused(format!(
                    "`{own_branch}` holds merges, which a rebase would take apart; finish it with --merge"
                )));
            }
            (vec!["rebase", "--no-autostash", "--no-fork-point", base_tip], ["rebase", "--abort"])
        }
        Integration::Merge => {
            (vec!["merge", "--no-edit", "--no-autostash", "-m", &message, base_tip], ["merge", "--abort"])
        }
    };
    let output = git.run(&args, 64 << 10).await;
    if let Ok(output) = &output
        && output.code == Some(0)
    {
        return Ok(vec![]);
    }
    // Whatever went wrong, the worktree goes back to where it was before anybody is told.
    let conflicts = git.bytes(&["diff", "--name-only", "--diff-filter=U", "-z"]).await?;
    if unfinished(path).await?.is_some() {
        git.bytes(&abort).await?;
    }
    let now = tip(&git, own_branch).await?;
    if now.as_deref() != Some(own_tip) || unfinished(path).await?.is_some() {
        return Err(GitError::refused(format!(
            "`git {}` failed in {} and could not be taken back; `{own_branch}` was at {own_tip}: look at it there",
            abort[0],
            path.display()
        )));
    }
    let mut files: Vec<String> = conflicts
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    files.dedup();
    if files.is_empty() {
        return Err(match output {
            Ok(output) => git.failed(&args, &output),
            Err(error) => error,
        });
    }
    Ok(files)
}

/// Moves the base forward to `commit`; git itself refuses where that would overwrite anything.
async fn forward(
    common: &Path,
    checked_out: Option<&Path>,
    own_branch: &str,
    base: &str,
    commit: &str,
) -> Result<(), GitError> {
    if let Some(folder) = checked_out {
        let git = Git::changing(folder);
        return git.bytes(&["merge", "--ff-only", "--no-autostash", "--quiet", commit]).await.map(drop);
    }
    // A fetch from itself moves a branch forward only, and not one that is in use anywhere.
    let refs = format!("refs/heads/{own_branch}:refs/heads/{base}");
    let git = Git::changing(common);
    git.bytes(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", ".", &refs]).await.map(drop)
}
