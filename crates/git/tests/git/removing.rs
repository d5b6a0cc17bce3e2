//! Removing a worktree: never with work in it, unless somebody says so.

use consort_git::worktree::{self, Removed, Work};

use crate::stage::{BRANCH, Stage, git_fails, sentence};

async fn work(stage: &Stage) -> Vec<Work> {
    worktree::work(&stage.common(), &stage.worktree(), BRANCH).await.unwrap()
}

async fn remove(stage: &Stage, force: bool) -> Result<Removed, consort_git::GitError> {
    worktree::remove(&stage.common(), &stage.worktree(), BRANCH, force).await
}

#[tokio::test]
async fn a_worktree_without_work_goes_with_its_branch() {
    let stage = Stage::new();
    stage.add().await;
    std::fs::write(stage.common().join("info/exclude"), "ignored\n").unwrap();
    stage.write_inside("ignored", "x");
    assert_eq!(work(&stage).await, []);
    let removed = remove(&stage, false).await.unwrap();
    assert_eq!(removed, Removed { commit: Some(stage.tip("main")), branch_kept: false });
    assert!(!stage.worktree().exists());
    assert_eq!((stage.branches(), stage.worktree_count()), (vec!["main".to_owned()], 1));
}

#[tokio::test]
async fn every_kind_of_work_keeps_it_and_force_removes_it() {
    type Prepare = fn(&Stage);
    let kinds: [(&str, Prepare, &str); 8] = [
        ("a change", |stage| stage.write_inside("a.txt", "other\n"), "uncommitted changes (a.txt)"),
        ("a new file", |stage| stage.write_inside("new dir/n", "x"), "not committed (new dir/)"),
        (
            "a staged file",
            |stage| {
                stage.write_inside("s", "x");
                stage.inside(&["add", "s"]);
            },
            "uncommitted changes (s)",
        ),
        ("a commit", |stage| stage.commit_inside("c", "x"), "1 unmerged commit on consort/fix"),
        (
            "a commit on no branch",
            |stage| {
                stage.inside(&["checkout", "--quiet", "--detach"]);
                stage.commit_inside("c", "x");
            },
            "1 commit on no branch",
        ),
        (
            "a stash",
            |stage| {
                stage.write_inside("a.txt", "put away\n");
                stage.inside(&["stash"]);
            },
            "1 stashed change",
        ),
        (
            "a lock",
            |stage| {
                let path = stage.worktree();
                stage.git(&["worktree", "lock", "--reason", "on a stick", path.to_str().unwrap()]);
            },
            "a lock (on a stick)",
        ),
        (
            "a merge under way",
            |stage| {
                stage.commit("a.txt", "theirs\n");
                stage.commit_inside("a.txt", "ours\n");
                git_fails(&stage.worktree(), &["merge", "main"]);
            },
            "a merge under way",
        ),
    ];
    for (what, prepare, reason) in kinds {
        let stage = Stage::new();
        stage.add().await;
        prepare(&stage);
        let before = stage.tip(BRANCH);
        let said = sentence(remove(&stage, false).await);
        assert!(said.contains(reason) && said.contains("--force"), "{what}: {said}");
        assert!(stage.worktree().exists(), "{what}");
        assert_eq!(stage.tip(BRANCH), before, "{what}");
        let removed = remove(&stage, true).await.unwrap();
        assert_eq!(removed.commit, Some(before.clone()), "{what}: what was lost is told");
        assert!(!stage.worktree().exists(), "{what}");
        assert_eq!(stage.branches(), ["main"], "{what}");
        stage.git(&["cat-file", "-e", &before]);
    }
}

#[tokio::test]
async fn commits_that_another_branch_has_are_not_lost() {
    let stage = Stage::new();
    stage.add().await;
    stage.commit_inside("c", "x");
    stage.git(&["branch", "keeper", BRANCH]);
    assert_eq!(work(&stage).await, []);
    remove(&stage, false).await.unwrap();
    assert_eq!(stage.branches(), ["keeper", "main"]);
}

#[tokio::test]
async fn a_branch_that_is_checked_out_elsewhere_stays() {
    let stage = Stage::new();
    stage.add().await;
    stage.inside(&["switch", "--quiet", "-c", "other"]);
    stage.git(&["switch", "--quiet", BRANCH]);
    let removed = remove(&stage, false).await.unwrap();
    assert!(removed.branch_kept);
    assert_eq!(stage.branches(), [BRANCH, "main", "other"]);
}

#[tokio::test]
async fn a_worktree_whose_folder_is_gone_keeps_its_unmerged_branch() {
    let stage = Stage::new();
    stage.add().await;
    stage.commit_inside("c", "x");
    std::fs::remove_dir_all(stage.worktree()).unwrap();
    let said = sentence(remove(&stage, false).await);
    assert!(said.contains("1 unmerged commit"), "{said}");
    stage.git(&["merge", "--quiet", BRANCH]);
    remove(&stage, false).await.unwrap();
    assert_eq!((stage.branches(), stage.worktree_count()), (vec!["main".to_owned()], 1));
}

#[tokio::test]
async fn an_error_of_git_never_means_that_there_is_nothing_to_lose() {
    let stage = Stage::new();
    stage.add().await;
    let index = stage.inside(&["rev-parse", "--path-format=absolute", "--git-path", "index"]);
    std::fs::write(&index, "not an index").unwrap();
    let said = sentence(remove(&stage, false).await);
    assert!(said.contains("git status"), "{said}");
    assert!(stage.worktree().exists());
    let head = stage.inside(&["rev-parse", "--path-format=absolute", "--git-path", "HEAD"]);
    std::fs::write(&head, "nonsense").unwrap();
    sentence(remove(&stage, false).await);
    assert!(stage.worktree().exists());
    assert_eq!(stage.branches(), [BRANCH, "main"]);
    // A folder that was replaced by something else is left alone, with any word.
    let other = stage.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("mine"), "x").unwrap();
    for force in [false, true] {
        sentence(worktree::remove(&stage.common(), &other, "main-2", force).await);
        assert!(other.join("mine").exists());
    }
}

#[tokio::test]
async fn taking_back_a_fresh_worktree_leaves_a_branch_that_has_moved() {
    let stage = Stage::new();
    stage.add().await;
    let began = stage.tip("main");
    stage.write_inside("left/by/setup", "x");
    worktree::undo(&stage.common(), &stage.worktree(), BRANCH, &began).await.unwrap();
    assert!(!stage.worktree().exists());
    assert_eq!(stage.branches(), ["main"]);
    stage.add().await;
    stage.commit_inside("c", "x");
    worktree::undo(&stage.common(), &stage.worktree(), BRANCH, &began).await.unwrap();
    assert_eq!(stage.branches(), [BRANCH, "main"]);
}
