//! The demo from outside: the whole play, and that nothing is left of it.

use consort_testkit::harness::{Home, processes};

use crate::Ran;

#[test]
fn the_demo_plays_to_its_end_and_leaves_nothing() {
    let home = Home::new();
    let folder = tempfile::Builder::new().prefix("cd").tempdir_in("/tmp").unwrap();
    let output = home.consort_command(&["demo", "--headless"]).env("TMPDIR", folder.path()).output().unwrap();
    let ran = Ran::of(output).code(0);
    for expected in [
        "lead begins",
        "joins as a sub-agent",
        "joins as a companion",
        "gives its result to its parent",
        "allowed once",
        "+def greet(name=\"world\"):",
        "+From Python, `greet(\"Ada\")` greets somebody by name.",
        "+    assert greet(\"Ada\") == \"Hello, Ada!\"",
    ] {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
    assert_eq!(ran.out.matches("asks:").count(), 3, "{}", ran.out);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let mark = format!("TMPDIR={}", folder.path().display());
    assert!(processes::with_mark(&mark).is_empty());
}

#[test]
fn without_a_terminal_the_demo_says_how_to_play_it() {
    let home = Home::new();
    let ran = Ran::of(home.consort(&["demo"])).code(2);
    assert!(ran.err.contains("--headless"), "{}", ran.err);
}
