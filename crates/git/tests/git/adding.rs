//! Making a worktree, and every repository in which none can be made.

use consort_git::{Repository, worktree};

use crate::stage::{BRANCH, Stage, configure, git, sentence, write};

#[tokio::test]
async fn a_worktree_has_the_commits_of_its_base_and_a_branch_of_its_own() {
    let stage = Stage::new();
    write(&stage.repository(), "uncommitted", "stays here");
    stage.add().await;
    assert_eq!(std::fs::read_to_string(stage.worktree().join("sub/b.txt")).unwrap(), "b\n");
    assert!(!stage.worktree().join("uncommitted").exists());
    assert_eq!(stage.inside(&["branch", "--show-current"]), BRANCH);
    assert_eq!(stage.tip(BRANCH), stage.tip("main"));
    let inside = Repository::open(&stage.worktree().join("sub")).await.unwrap();
    assert_eq!(inside.root, stage.worktree().canonicalize().unwrap());
    assert_eq!(inside.common, stage.common().canonicalize().unwrap());
    assert_eq!((inside.prefix.to_str(), inside.branch.as_deref()), (Some("sub"), Some(BRANCH)));
}

#[tokio::test]
async fn spaces_and_any_letters_may_be_in_the_paths() {
    let stage = Stage::new();
    let path = stage.folder.path().join("a b/größe 日本 'x' $y");
    stage.try_add(&path, "consort/größe").await.unwrap();
    assert!(path.join("a.txt").is_file());
    let removed = worktree::remove(&stage.common(), &path, "consort/größe", false).await.unwrap();
    assert!(removed.commit.is_some() && !path.exists());
    assert_eq!(stage.branches(), ["main"]);
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_what_is_there_stays() {
    let stage = Stage::new();
    stage.git(&["branch", "consort/taken"]);
    let said = sentence(stage.try_add(&stage.worktree(), "consort/taken").await);
    assert!(said.contains("there is a branch `consort/taken` already"), "{said}");
    assert!(!stage.worktree().exists());
    write(&stage.worktree(), "mine", "x");
    let said = sentence(stage.try_add(&stage.worktree(), BRANCH).await);
    assert!(said.contains("is there already"), "{said}");
    assert!(stage.worktree().join("mine").exists());
    assert_eq!(stage.branches(), ["consort/taken", "main"]);
    let said = sentence(stage.try_add(&stage.folder.path().join("x"), "main/fix").await);
    assert!(said.contains("the branch `main` is in the way"), "{said}");
    let said = sentence(stage.try_add(&stage.folder.path().join("x"), "bad..name").await);
    assert!(said.contains("cannot be the name of a branch"), "{said}");
    assert_eq!(stage.worktree_count(), 1);
}

#[tokio::test]
async fn a_worktree_that_fails_halfway_leaves_nothing_behind() {
    let stage = Stage::new();
    let hook = stage.common().join("hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho no luck >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = sentence(stage.try_add(&stage.worktree(), BRANCH).await);
    assert!(said.contains("git worktree add") && said.contains("no luck"), "{said}");
    assert!(!stage.worktree().exists());
    assert_eq!((stage.branches(), stage.worktree_count()), (vec!["main".to_owned()], 1));
}

#[tokio::test]
async fn where_no_worktree_can_be_made_the_reason_is_told() {
    let plain = tempfile::tempdir().unwrap();
    let said = sentence(Repository::open(plain.path()).await);
    assert!(said.contains("is not in a git repository"), "{said}");
    let said = sentence(Repository::open(&plain.path().join("nowhere")).await);
    assert!(said.contains("there is no such folder"), "{said}");

    let empty = Stage::empty();
    let opened = Repository::open(&empty.repository()).await.unwrap();
    assert_eq!((opened.head.as_deref(), opened.branch.as_deref()), (None, Some("main")));
    let said = sentence(opened.base(None).await);
    assert!(said.contains("has no commit yet"), "{said}");

    let stage = Stage::new();
    let said = sentence(Repository::open(&stage.common()).await);
    assert!(said.contains("inside git's own folder"), "{said}");
    stage.git(&["checkout", "--quiet", "--detach"]);
    let detached = Repository::open(&stage.repository()).await.unwrap();
    assert_eq!(detached.branch, None);
    let said = sentence(detached.base(None).await);
    assert!(said.contains("its head is detached") && said.contains("--base"), "{said}");
    assert_eq!(detached.base(Some("main")).await.unwrap(), ("main".to_owned(), stage.tip("main")));
    let said = sentence(detached.base(Some("no such")).await);
    assert!(said.contains("there is no branch `no such`"), "{said}");
}

#[tokio::test]
async fn a_bare_repository_has_worktrees_but_is_none() {
    let stage = Stage::new();
    let bare = stage.folder.path().join("bare.git");
    stage.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let said = sentence(Repository::open(&bare).await);
    assert!(said.contains("is a bare repository"), "{said}");
    let checked_out = stage.folder.path().join("checked out");
    git(&bare, &["worktree", "add", "--quiet", checked_out.to_str().unwrap(), "main"]);
    let repository = Repository::open(&checked_out).await.unwrap();
    let (base, commit) = repository.base(None).await.unwrap();
    assert_eq!(base, "main");
    worktree::add(&repository, &stage.worktree(), BRANCH, &commit).await.unwrap();
    assert!(stage.worktree().join("a.txt").is_file());
}

#[tokio::test]
async fn a_submodule_is_no_place_to_start_and_one_that_is_checked_out_is_not_removed() {
    let inner = Stage::new();
    let stage = Stage::new();
    let url = inner.repository().display().to_string();
    stage.git(&["submodule", "--quiet", "add", &url, "lib"]);
    stage.git(&["commit", "--quiet", "-m", "lib"]);
    let said = sentence(Repository::open(&stage.repository().join("lib")).await);
    assert!(said.contains("is in a submodule of"), "{said}");
    stage.add().await;
    assert!(worktree::work(&stage.common(), &stage.worktree(), BRANCH).await.unwrap().is_empty());
    stage.inside(&["submodule", "--quiet", "update", "--init"]);
    configure(&stage.worktree().join("lib"));
    let said = sentence(worktree::remove(&stage.common(), &stage.worktree(), BRANCH, false).await);
    assert!(said.contains("submodules"), "{said}");
    assert!(stage.worktree().join("lib/a.txt").exists());
    worktree::remove(&stage.common(), &stage.worktree(), BRANCH, true).await.unwrap();
    assert!(!stage.worktree().exists());
}
