//! `consort new --worktree`, `consort worktrees` and `consort diff`.

use std::path::Path;
use std::process::Command;

use consort_testkit::harness::Home;

use crate::{consort, wait_status};

fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git").args(args).current_dir(folder).status().unwrap();
    assert!(status.success(), "git {args:?}");
}

fn commit(folder: &Path, file: &str, text: &str) {
    std::fs::write(folder.join(file), text).unwrap();
    git(folder, &["add", "--", file]);
    git(folder, &["commit", "--quiet", "-m", file]);
}

#[test]
fn a_worktree_from_its_making_to_its_end() {
    let home = Home::started();
    let work = home.work();
    let none = consort(&home, &["new", "--worktree", "--name", "ann"]).code(4);
    assert!(none.err.contains("is not in a git repository"), "{}", none.err);
    git(&work, &["init", "--quiet", "-b", "main"]);
    git(&work, &["config", "user.name", "T"]);
    git(&work, &["config", "user.email", "t@example.com"]);
    git(&work, &["config", "commit.gpgsign", "false"]);
    let none = consort(&home, &["new", "--worktree", "--name", "ann"]).code(4);
    assert!(none.err.contains("has no commit yet"), "{}", none.err);
    commit(&work, "a.txt", "one\n");
    assert!(consort(&home, &["worktrees", "list"]).code(0).out.contains("no worktrees"));

    consort(&home, &["new", "--worktree", "--name", "ann", "[[fs-write new.txt hello]]"]).code(0);
    wait_status(&home, "ann", "idle");
    let taken = consort(&home, &["new", "--worktree=ann"]).code(4);
    assert!(taken.err.contains("the name `ann` is taken"), "{}", taken.err);
    let list = consort(&home, &["worktrees", "list"]).code(0).out;
    assert!(list.contains("consort/ann") && list.contains("1 uncommitted"), "{list}");
    let stat = consort(&home, &["diff", "ann", "--stat"]).code(0).out;
    assert!(stat.starts_with("A  new.txt  +1 -0\n1 file, +1 -0 since main"), "{stat}");
    let diff = consort(&home, &["diff", "ann"]).code(0).out;
    assert!(diff.contains("\n+hello\n"), "{diff}");
    let json = consort(&home, &["diff", "ann", "--json", "a.txt"]).code(0).json();
    assert_eq!(
        (json["text"].as_str(), json["changes"]["files"][0]["change"].as_str()),
        (Some(""), Some("added"))
    );

    let kept = consort(&home, &["worktrees", "remove", "ann"]).code(4);
    assert!(kept.err.contains("new.txt") && kept.err.contains("--force"), "{}", kept.err);
    let listed = consort(&home, &["worktrees", "list", "--json"]).code(0).json();
    let path = listed[0]["path"].as_str().unwrap().to_owned();
    assert_eq!(listed[0]["agent_name"], "ann");
    commit(Path::new(&path), "new.txt", "hello\n");
    let finished = consort(&home, &["worktrees", "finish", "ann"]).code(0).out;
    assert!(finished.starts_with("1 commit of consort/ann went to main"), "{finished}");
    assert_eq!(std::fs::read_to_string(work.join("new.txt")).unwrap(), "hello\n");
    assert!(!Path::new(&path).exists());
    // Whoever has no name of a person's has the same one as the branch.
    let unnamed = consort(&home, &["new", "--worktree", "--json"]).code(0).json();
    let name = unnamed["name"].as_str().unwrap();
    let listed = consort(&home, &["worktrees", "list", "--json"]).code(0).json();
    assert_eq!((listed[0]["agent_name"].as_str(), listed[0]["name"].as_str()), (Some(name), Some(name)));
    consort(&home, &["close", name]).code(0);
    consort(&home, &["worktrees", "remove", name]).code(0);
    let run = consort(&home, &["run", "--worktree=once", "--keep", "[[cwd]]"]).code(0).out;
    assert!(run.contains("/once"), "{run}");
    let removed = consort(&home, &["worktrees", "remove", "once", "--json"]).code(0).json();
    assert_eq!(removed["branch"], "consort/once");
}
