//! A repository to work on, with a worktree as Consort makes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use consort_git::worktree;
use consort_git::{GitError, Repository};
use tempfile::TempDir;

pub const BRANCH: &str = "consort/fix";

pub struct Stage {
    pub folder: TempDir,
}

impl Stage {
    /// A repository `r` with two commits on `main`.
    pub fn new() -> Self {
        let stage = Self::empty();
        stage.commit("a.txt", "one\ntwo\nthree\n");
        stage.commit("sub/b.txt", "b\n");
        stage
    }

    /// A repository `r` without a commit.
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("r")).unwrap();
        let stage = Self { folder };
        stage.git(&["init", "--quiet", "-b", "main"]);
        configure(&stage.repository());
        stage
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.path().join("r")
    }

    /// Where the worktree of these tests is.
    pub fn worktree(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    pub fn common(&self) -> PathBuf {
        self.repository().join(".git")
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(&self.repository(), args)
    }

    /// Git in the worktree.
    pub fn inside(&self, args: &[&str]) -> String {
        git(&self.worktree(), args)
    }

    pub fn commit(&self, file: &str, text: &str) {
        commit(&self.repository(), file, text);
    }

    /// Commits a file in the worktree.
    pub fn commit_inside(&self, file: &str, text: &str) {
        commit(&self.worktree(), file, text);
    }

    pub fn write_inside(&self, file: &str, text: &str) {
        write(&self.worktree(), file, text);
    }

    pub fn tip(&self, branch: &str) -> String {
        self.git(&["rev-parse", branch])
    }

    /// Makes the worktree from the tip of `main`.
    pub async fn add(&self) {
        self.try_add(&self.worktree(), BRANCH).await.unwrap();
    }

    pub async fn try_add(&self, path: &Path, branch: &str) -> Result<(), GitError> {
        let repository = Repository::open(&self.repository()).await?;
        let (_, commit) = repository.base(None).await?;
        worktree::add(&repository, path, branch, &commit).await
    }

    /// The branches and worktrees that are there.
    pub fn branches(&self) -> Vec<String> {
        let said = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        said.lines().map(str::to_owned).collect()
    }

    pub fn worktree_count(&self) -> usize {
        self.git(&["worktree", "list"]).lines().count()
    }
}

pub fn configure(repository: &Path) {
    for (key, value) in [("user.name", "T"), ("user.email", "t@example.com"), ("commit.gpgsign", "false")] {
        git(repository, &["config", key, value]);
    }
}

pub fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn commit(folder: &Path, file: &str, text: &str) {
    write(folder, file, text);
    git(folder, &["add", "--", file]);
    git(folder, &["commit", "--quiet", "-m", file]);
}

pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("GIT_EDITOR", ":")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(output.status.success(), "git {args:?}: {said} {}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Git that fails, as a merge with conflicts does.
pub fn git_fails(folder: &Path, args: &[&str]) {
    let output = Command::new("git").args(args).current_dir(folder).output().unwrap();
    assert!(!output.status.success(), "git {args:?} should have failed");
}

/// The sentence of an error.
pub fn sentence<T: std::fmt::Debug>(result: Result<T, GitError>) -> String {
    result.expect_err("it should have been refused").to_string()
}
