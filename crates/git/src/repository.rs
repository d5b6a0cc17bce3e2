//! The repository that a folder is in, or a sentence on why it cannot be used.

use std::path::{Path, PathBuf};

use crate::command::Git;
use crate::error::GitError;
use crate::parse::{self, Listed};

/// A folder's repository, seen from that folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repository {
    /// The folder that is checked out: the repository itself or one of its worktrees.
    pub root: PathBuf,
    /// Where git keeps everything that the worktrees share.
    pub common: PathBuf,
    /// The folder's path below `root`; empty: it is `root`.
    pub prefix: PathBuf,
    /// The branch that is checked out; none: the head is detached.
    pub branch: Option<String>,
    /// The commit that is checked out; none: there is none yet.
    pub head: Option<String>,
}

impl Repository {
    /// Finds the repository of a folder. Bare repositories, their insides and submodules are refused.
    pub async fn open(folder: &Path) -> Result<Self, GitError> {
        let git = Git::at(folder);
        let shown = folder.display();
        let ask = ["rev-parse", "--is-bare-repository", "--is-inside-git-dir", "--is-inside-work-tree"];
        let output = git.run(&ask, 1 << 10).await?;
        if output.code != Some(0) {
            if output.stderr.contains("not a git repository") {
                return Err(GitError::refused(format!(
                    "{shown} is not in a git repository; `git init` makes one, or start without a worktree"
                )));
            }
            return Err(git.failed(&ask, &output));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        match said.lines().collect::<Vec<_>>().as_slice() {
            ["true", ..] => {
                return Err(GitError::refused(format!(
                    "{shown} is a bare repository, where no branch is checked out; start from one of its worktrees"
                )));
            }
            [_, "true", ..] | [_, _, "false"] => {
                return Err(GitError::refused(format!(
                    "{shown} is inside git's own folder; start from the files of the repository"
                )));
            }
            [_, _, "true"] => {}
            _ => return Err(git.unexpected(&ask, "it is no list of answers")),
        }
        let outer = git.text(&["rev-parse", "--show-superproject-working-tree"]).await?;
        if !outer.is_empty() {
            return Err(GitError::refused(format!(
                "{shown} is in a submodule of {outer}; start from there, or from a clone of its own"
            )));
        }
        let root = git.text(&["rev-parse", "--path-format=absolute", "--show-toplevel"]).await?;
        let common = git.text(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
        let prefix = git.text(&["rev-parse", "--show-prefix"]).await?;
        Ok(Self {
            root: root.into(),
            common: common.into(),
            prefix: prefix.trim_end_matches('/').into(),
            branch: branch(&git).await?,
            head: git.perhaps(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?,
        })
    }

    /// The branch and the commit to begin at: the one that is checked out, or another one by name.
    pub async fn base(&self, wanted: Option<&str>) -> Result<(String, String), GitError> {
        let git = Git::at(&self.root);
        let shown = self.root.display();
        if let Some(wanted) = wanted {
            return match tip(&git, wanted).await? {
                Some(commit) => Ok((wanted.to_owned(), commit)),
                None => Err(GitError::refused(format!(
                    "there is no branch `{wanted}` in {shown}; `git branch` lists them"
                ))),
            };
        }
        match (&self.head, &self.branch) {
            (None, _) => Err(GitError::refused(format!(
                "the repository {shown} has no commit yet, so nothing can be checked out; make a first commit"
            ))),
            (Some(_), None) => Err(GitError::refused(format!(
                "no branch is checked out in {shown} (its head is detached); switch to one, or name one with --base"
            ))),
            (Some(head), Some(branch)) => Ok((branch.clone(), head.clone())),
        }
    }

    /// All worktrees of the repository.
    pub async fn worktrees(&self) -> Result<Vec<Listed>, GitError> {
        worktrees(&Git::at(&self.root)).await
    }
}

/// All worktrees of the repository that git works in.
pub(crate) async fn worktrees(git: &Git) -> Result<Vec<Listed>, GitError> {
    Ok(parse::worktrees(&git.bytes(&["worktree", "list", "--porcelain", "-z"]).await?))
}

/// The branch that is checked out where git works.
pub(crate) async fn branch(git: &Git) -> Result<Option<String>, GitError> {
    let branch = git.perhaps(&["symbolic-ref", "--quiet", "HEAD"]).await?;
    Ok(branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned()))
}

/// The commit of a branch; none if there is no such branch.
pub(crate) async fn tip(git: &Git, branch: &str) -> Result<Option<String>, GitError> {
    let name = format!("refs/heads/{branch}^{{commit}}");
    git.perhaps(&["rev-parse", "--verify", "--quiet", &name]).await
}
