//! Changed files and diffs.

use consort_git::changes::{Since, changes, diff};
use consort_model::ChangeKind;

use crate::stage::{Stage, sentence, write};

fn since_main(stage: &Stage) -> Since {
    Since::Branch { name: "main".to_owned(), commit: stage.tip("main") }
}

#[tokio::test]
async fn committed_uncommitted_and_new_files_count_and_nothing_is_touched() {
    let stage = Stage::new();
    stage.add().await;
    stage.commit_inside("a.txt", "one\n2\nthree\nfour\n");
    stage.write_inside("sub/b.txt", "b\nc\n");
    stage.write_inside("new dir/größe.txt", "1\n2\n");
    stage.write_inside("picture", "\0\x01");
    stage.inside(&["mv", "sub/b.txt", "sub/moved.txt"]);
    let index = stage.inside(&["rev-parse", "--path-format=absolute", "--git-path", "index"]);
    let before = (std::fs::read(&index).unwrap(), stage.inside(&["status", "--porcelain"]));
    // What the base got meanwhile is none of the agent's doing.
    let began = since_main(&stage);
    stage.commit("a.txt", "theirs\n");
    let found = changes(&stage.worktree().join("sub"), &began).await.unwrap();
    let seen: Vec<_> =
        found.files.iter().map(|file| (file.path.as_str(), file.change, file.added, file.removed)).collect();
    assert_eq!(
        seen,
        [
            ("a.txt", ChangeKind::Modified, Some(2), Some(1)),
            ("new dir/größe.txt", ChangeKind::Added, Some(2), Some(0)),
            ("picture", ChangeKind::Added, None, None),
            ("sub/moved.txt", ChangeKind::Renamed, Some(1), Some(0)),
        ]
    );
    assert_eq!((found.added, found.removed, found.commits), (5, 1, 1));
    assert_eq!((found.base.as_str(), found.branch.as_deref()), ("main", Some("consort/fix")));
    assert_eq!((std::fs::read(&index).unwrap(), stage.inside(&["status", "--porcelain"])), before);
    let left = std::fs::read_dir(std::path::Path::new(&index).parent().unwrap()).unwrap().flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().contains("look")).count(), 0);

    let all = diff(&stage.worktree(), &began, &[]).await.unwrap();
    assert_eq!(all.changes, found);
    for part in ["-two\n+2\n", "+++ b/new dir/größe.txt", "Binary files"] {
        assert!(all.text.contains(part), "{part}: {}", all.text);
    }
    let one = diff(&stage.worktree(), &began, &["a.txt".to_owned()]).await.unwrap();
    assert!(one.text.contains("+four") && !one.text.contains("new dir"), "{}", one.text);
}

#[tokio::test]
async fn a_folder_without_a_worktree_is_compared_with_its_last_commit() {
    let stage = Stage::new();
    write(&stage.repository(), "a.txt", "one\n");
    let found = changes(&stage.repository(), &Since::LastCommit).await.unwrap();
    assert_eq!((found.base.as_str(), found.files.len(), found.removed), ("HEAD", 1, 2));
    let empty = Stage::empty();
    write(&empty.repository(), "first", "1\n");
    let found = changes(&empty.repository(), &Since::LastCommit).await.unwrap();
    assert_eq!((found.base_commit.as_deref(), found.added), (None, 1));
    assert_eq!(found.files[0].change, ChangeKind::Added);
    let plain = tempfile::tempdir().unwrap();
    let said = sentence(changes(plain.path(), &Since::LastCommit).await);
    assert!(said.contains("is not in a git repository"), "{said}");
}

#[tokio::test]
async fn a_base_that_is_gone_is_replaced_by_the_commit_it_was_at() {
    let stage = Stage::new();
    stage.add().await;
    let began = since_main(&stage);
    stage.commit_inside("c", "x\n");
    stage.git(&["switch", "--quiet", "-c", "other"]);
    stage.git(&["branch", "-D", "main"]);
    let found = changes(&stage.worktree(), &began).await.unwrap();
    assert_eq!((found.files.len(), found.commits), (1, 1));
}

#[tokio::test]
async fn a_conflict_shows_as_one_file() {
    let stage = Stage::new();
    stage.add().await;
    let began = since_main(&stage);
    stage.commit_inside("a.txt", "ours\n");
    stage.commit("a.txt", "theirs\n");
    crate::stage::git_fails(&stage.worktree(), &["merge", "main"]);
    let found = changes(&stage.worktree(), &began).await.unwrap();
    assert_eq!(found.files.iter().filter(|file| file.path == "a.txt").count(), 1);
    assert_eq!(found.files[0].change, ChangeKind::Unmerged);
}

#[tokio::test]
async fn a_huge_diff_is_cut_at_the_end_of_a_line() {
    let stage = Stage::new();
    write(&stage.repository(), "huge", &"0123456789\n".repeat(600_000));
    let found = diff(&stage.repository(), &Since::LastCommit, &[]).await.unwrap();
    assert!(found.truncated && found.text.ends_with("9\n"));
    assert_eq!(found.changes.added, 600_000);
}
