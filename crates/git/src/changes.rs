//! Changed files and diffs: all that is different from where the work began, committed or not, new files too.
//!
//! New files are made known to a copy of the index, so that git itself compares them; the real index is only read.

use std::path::{Path, PathBuf};

use consort_model::{Changes, DiffText};
use uuid::Uuid;

use crate::command::Git;
use crate::error::GitError;
use crate::parse;
use crate::repository::{branch, tip};
use crate::worktree::count;

/// The most files that are listed.
const MAX_FILES: usize = 5000;

/// The most bytes of a diff.
const MAX_TEXT: usize = 4 << 20;

/// Where the work in a folder began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Since {
    /// Where the branch left this one; the commit stands in where the branch is gone.
    Branch {
        /// The branch.
        name: String,
        /// Where it was left.
        commit: String,
    },
    /// The last commit.
    LastCommit,
}

/// What was changed in the repository that a folder is in.
pub async fn changes(folder: &Path, since: &Since) -> Result<Changes, GitError> {
    let mut look = Look::at(folder, since).await?;
    let changes = look.changes().await;
    look.clear_away();
    changes
}

/// The same with the diff, of all files or of these.
pub async fn diff(folder: &Path, since: &Since, paths: &[String]) -> Result<DiffText, GitError> {
    let mut look = Look::at(folder, since).await?;
    let found = async {
        let changes = look.changes().await?;
        let (text, truncated) = look.text(paths).await?;
        Ok(DiffText { changes, text, truncated })
    };
    let found = found.await;
    look.clear_away();
    found
}

/// One look at a folder, with an index of its own.
struct Look {
    root: PathBuf,
    git: Git,
    index: PathBuf,
    base: String,
    /// The commit to compare with, or git's name for "nothing at all".
    commit: String,
    is_commit: bool,
    /// Files in conflict, which the copy of the index does not know any more.
    unmerged: Vec<String>,
}

impl Look {
    async fn at(folder: &Path, since: &Since) -> Result<Self, GitError> {
        let here = Git::at(folder);
        let ask = ["rev-parse", "--path-format=absolute", "--show-toplevel"];
        let output = here.run(&ask, 64 << 10).await?;
        if output.code != Some(0) {
            return Err(match output.stderr.contains("not a git repository") {
                true => GitError::refused(format!(
                    "{} is not in a git repository, so its changes are not known",
                    folder.display()
                )),
                false => here.failed(&ask, &output),
            });
        }
        let root = String::from_utf8(output.stdout).map_err(|_| here.unexpected(&ask, "it is not UTF-8"))?;
        let root = PathBuf::from(root.trim_end_matches('\n'));
        let git = Git::at(&root);
        let head = git.perhaps(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
        let (base, commit) = match (since, head) {
            (Since::Branch { name, commit }, Some(_)) => {
                let met = match tip(&git, name).await? {
                    Some(other) => git.perhaps(&["merge-base", &other, "HEAD"]).await?,
                    None => None,
                };
                (name.clone(), Some(met.unwrap_or_else(|| commit.clone())))
            }
            (_, head) => ("HEAD".to_owned(), head),
        };
        let is_commit = commit.is_some();
        let commit = match commit {
            Some(commit) => commit,
            None => git.text(&["hash-object", "-t", "tree", "/dev/null"]).await?,
        };
        let unmerged = parse::unmerged_files(&git.bytes(&["ls-files", "--unmerged", "-z"]).await?);
        let own = git.text(&["rev-parse", "--path-format=absolute", "--git-dir"]).await?;
        let index = Path::new(&own).join(format!("consort-look-{}", Uuid::now_v7().simple()));
        let real = git.text(&["rev-parse", "--path-format=absolute", "--git-path", "index"]).await?;
        match tokio::fs::copy(&real, &index).await {
            Ok(_) => {}
            // Nothing was ever added.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(GitError::refused(format!(
                    "the index of {} cannot be copied: {error}",
                    root.display()
                )));
            }
        }
        let git = git.with_index(&index);
        let look = Self { root, git, index, base, commit, is_commit, unmerged };
        // A file that cannot be read is left out, and all others are looked at.
        let added = look.git.run(&["add", "--intent-to-add", "--ignore-errors", "--", "."], 1 << 10).await;
        if let Err(error) = added {
            look.clear_away();
            return Err(error);
        }
        Ok(look)
    }

    async fn changes(&mut self) -> Result<Changes, GitError> {
        let ask = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--find-renames",
            "--raw",
            "--numstat",
            "-z",
            "--abbrev=4",
            &self.commit,
        ];
        let said = self.git.bytes(&ask).await?;
        let mut files =
            parse::changed_files(&said).ok_or_else(|| self.git.unexpected(&ask, "it is no list of files"))?;
        for file in files.iter_mut().filter(|file| self.unmerged.contains(&file.path)) {
            file.change = consort_model::ChangeKind::Unmerged;
        }
        let sum = |of: fn(&consort_model::FileChange) -> Option<u64>| files.iter().filter_map(of).sum();
        let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
        let truncated = files.len() > MAX_FILES;
        files.truncate(MAX_FILES);
        let commits = match self.is_commit {
            true => count(&self.git, &["rev-list", "--count", &format!("{}..HEAD", self.commit)]).await?,
            false => 0,
        };
        Ok(Changes {
            folder: self.root.to_string_lossy().into_owned(),
            branch: branch(&self.git).await?,
            base: self.base.clone(),
            base_commit: self.is_commit.then(|| self.commit.clone()),
            commits: u32::try_from(commits).unwrap_or(u32::MAX),
            files,
            added,
            removed,
            truncated,
        })
    }

    async fn text(&self, paths: &[String]) -> Result<(String, bool), GitError> {
        let mut ask = vec![
            "--literal-pathspecs",
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--find-renames",
            &self.commit,
            "--",
        ];
        ask.extend(paths.iter().map(String::as_str));
        let output = self.git.run(&ask, MAX_TEXT).await?;
        if output.code != Some(0) {
            return Err(self.git.failed(&ask, &output));
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.truncated {
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        }
        Ok((text, output.truncated))
    }

    fn clear_away(&self) {
        for file in [self.index.clone(), self.index.with_extension("lock")] {
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(%error, file = %file.display(), "a copy of an index stays");
                }
                _ => {}
            }
        }
    }
}
