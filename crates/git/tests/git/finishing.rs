//! Bringing a branch home: all of it or nothing.

use consort_git::GitError;
use consort_git::finish::{Outcome, finish};
use consort_git::worktree;
use consort_model::Integration;

use crate::stage::{BRANCH, Stage, git, sentence, write};

async fn bring_home(stage: &Stage, how: Integration) -> Result<Outcome, GitError> {
    finish(&stage.common(), &stage.worktree(), BRANCH, "main", how).await
}

fn done(outcome: Result<Outcome, GitError>) -> (u64, String) {
    match outcome.unwrap() {
        Outcome::Done { commits, commit } => (commits, commit),
        Outcome::Conflicts { files } => panic!("conflicts in {files:?}"),
    }
}

#[tokio::test]
async fn the_base_is_moved_forward_where_it_is_checked_out_and_where_it_is_not() {
    for checked_out in [true, false] {
        let stage = Stage::new();
        stage.add().await;
        stage.commit_inside("c", "x");
        stage.commit_inside("d", "x");
        if !checked_out {
            stage.git(&["switch", "--quiet", "-c", "other"]);
        }
        write(&stage.repository(), "untracked", "is no hindrance");
        let (commits, commit) = done(bring_home(&stage, Integration::Rebase).await);
        assert_eq!(commits, 2);
        assert_eq!((stage.tip("main"), stage.tip(BRANCH)), (commit.clone(), commit));
        assert_eq!(stage.repository().join("c").exists(), checked_out);
        assert_eq!(stage.git(&["status", "--porcelain"]), "?? untracked");
        assert!(worktree::work(&stage.common(), &stage.worktree(), BRANCH).await.unwrap().is_empty());
        assert_eq!(done(bring_home(&stage, Integration::Rebase).await).0, 0, "there is nothing left to do");
    }
}

#[tokio::test]
async fn what_the_base_got_meanwhile_is_taken_in_by_rebase_or_merge() {
    for (how, parents) in [(Integration::Rebase, 1), (Integration::Merge, 2)] {
        let stage = Stage::new();
        stage.add().await;
        stage.commit_inside("c", "x");
        stage.commit("theirs", "y");
        let theirs = stage.tip("main");
        let (_, commit) = done(bring_home(&stage, how).await);
        assert_eq!(stage.tip("main"), commit);
        let said = stage.git(&["rev-list", "--parents", "-n", "1", "main"]);
        assert_eq!(said.split(' ').count() - 1, parents, "{how:?}");
        stage.git(&["merge-base", "--is-ancestor", &theirs, "main"]);
        assert!(stage.repository().join("c").exists() && stage.worktree().join("theirs").exists());
    }
}

#[tokio::test]
async fn a_conflict_is_told_and_taken_back() {
    for how in [Integration::Rebase, Integration::Merge] {
        let stage = Stage::new();
        stage.add().await;
        stage.commit_inside("fine", "x");
        stage.commit_inside("a.txt", "ours\n");
        stage.commit_inside("sub/b.txt", "ours\n");
        stage.commit("a.txt", "theirs\n");
        let before = (stage.tip("main"), stage.tip(BRANCH));
        let outcome = bring_home(&stage, how).await.unwrap();
        assert_eq!(outcome, Outcome::Conflicts { files: vec!["a.txt".to_owned()] }, "{how:?}");
        assert_eq!((stage.tip("main"), stage.tip(BRANCH)), before);
        assert_eq!(stage.inside(&["status", "--porcelain"]), "");
        assert_eq!(stage.inside(&["branch", "--show-current"]), BRANCH);
        assert_eq!(std::fs::read_to_string(stage.worktree().join("a.txt")).unwrap(), "ours\n");
    }
}

#[tokio::test]
async fn nothing_is_done_while_work_is_not_committed() {
    let stage = Stage::new();
    stage.add().await;
    stage.commit_inside("c", "x");
    let before = (stage.tip("main"), stage.tip(BRANCH));
    let refused = async |reason: &str| {
        let said = sentence(bring_home(&stage, Integration::Rebase).await);
        assert!(said.contains(reason), "{said}");
        assert_eq!((stage.tip("main"), stage.tip(BRANCH)), before);
    };
    stage.write_inside("a.txt", "changed\n");
    refused("uncommitted work (a.txt)").await;
    stage.inside(&["checkout", "--quiet", "a.txt"]);
    stage.write_inside("new", "x");
    refused("uncommitted work (new)").await;
    std::fs::remove_file(stage.worktree().join("new")).unwrap();
    stage.inside(&["switch", "--quiet", "-c", "elsewhere"]);
    refused("is on `elsewhere` instead of `consort/fix`").await;
    stage.inside(&["switch", "--quiet", "--detach"]);
    refused("is on no branch").await;
    stage.inside(&["switch", "--quiet", BRANCH]);
    write(&stage.repository(), "a.txt", "in the middle of something\n");
    refused("`main` is checked out in").await;
    stage.git(&["checkout", "--quiet", "a.txt"]);
    // What git does not know would be overwritten: git itself says so, and main stays where it is.
    write(&stage.repository(), "c", "mine");
    refused("would be overwritten").await;
    assert_eq!(std::fs::read_to_string(stage.repository().join("c")).unwrap(), "mine");
    std::fs::remove_file(stage.repository().join("c")).unwrap();
    done(bring_home(&stage, Integration::Rebase).await);
}

#[tokio::test]
async fn merges_are_not_taken_apart_and_a_base_that_is_gone_is_told() {
    let stage = Stage::new();
    stage.add().await;
    stage.commit_inside("c", "x");
    stage.commit("d", "y");
    stage.inside(&["merge", "--quiet", "--no-edit", "main"]);
    stage.commit("e", "z");
    let said = sentence(bring_home(&stage, Integration::Rebase).await);
    assert!(said.contains("--merge"), "{said}");
    done(bring_home(&stage, Integration::Merge).await);
    stage.git(&["switch", "--quiet", "-c", "other"]);
    stage.git(&["branch", "-D", "main"]);
    let said = sentence(bring_home(&stage, Integration::Merge).await);
    assert!(said.contains("`main`") && said.contains("is gone"), "{said}");
}

#[tokio::test]
async fn a_hook_that_says_no_is_reported_and_nothing_is_changed() {
    let stage = Stage::new();
    stage.add().await;
    stage.commit_inside("c", "x");
    stage.commit("d", "y");
    let before = (stage.tip("main"), stage.tip(BRANCH));
    let hook = stage.common().join("hooks/pre-rebase");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho not today >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = sentence(bring_home(&stage, Integration::Rebase).await);
    assert!(said.contains("git rebase") && said.contains("not today"), "{said}");
    assert_eq!((stage.tip("main"), stage.tip(BRANCH)), before);
    assert_eq!(git(&stage.worktree(), &["branch", "--show-current"]), BRANCH);
}
