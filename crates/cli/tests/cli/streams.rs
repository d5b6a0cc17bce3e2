//! Commands that wait: `run`, `send --wait`, `log --follow`, and readers that go away.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use consort_testkit::harness::processes::{self, Role};
use consort_testkit::harness::{Home, LIMIT};
use rustix::process::Signal;

use crate::{Ran, consort, wait_status};

#[test]
fn run_streams_what_the_agent_does_and_exits_by_the_outcome() {
    let home = Home::started();
    for (steps, code, said) in [
        ("[[say all well]]", 0, "all well"),
        ("[[stream n=30 rate=300]]", 0, "word29"),
        ("[[say x]] [[error -32050 no luck]]", 5, "x"),
        ("[[refuse]]", 5, ""),
        ("[[say x]] [[stderr last words]] [[wait 100]] [[crash 9]]", 5, "x"),
        ("[[ask execute rm]]", 8, ""),
    ] {
        let ran = consort(&home, &["run", "--profile", "scripted", steps]).code(code);
        assert!(ran.out.contains(said), "{steps}: {}", ran.out);
        assert_eq!(code == 0, ran.err.is_empty(), "{steps}: {}", ran.err);
    }
    let bypassed = ["run", "--profile", "scripted", "--permissions", "bypass", "[[ask execute rm]]"];
    assert!(consort(&home, &bypassed).code(0).out.contains("allowed"));
    let open = consort(&home, &["agents", "--json"]).json();
    assert_eq!(open, serde_json::json!([]), "run closes what it opened");
    let timed = ["run", "--profile", "scripted", "--timeout", "1", "[[hang]]"];
    consort(&home, &timed).code(9);
    consort(&home, &["run", "--profile", "scripted", "--keep", "--name", "kept", "[[say x]]"]).code(0);
    assert_eq!(consort(&home, &["agents", "--json"]).json()[0]["name"], "kept");
}

#[test]
fn run_with_json_prints_every_item_and_the_outcome() {
    let home = Home::started();
    let args = ["run", "--profile", "scripted", "--json", "[[say a]] [[tool read notes]] [[say b]]"];
    let lines = consort(&home, &args).code(0).json_lines();
    let kinds: Vec<_> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["user", "text", "tool", "text"]);
    let last = lines.last().unwrap();
    assert_eq!((&last["outcome"], &last["exit"]), (&"completed".into(), &0.into()));
}

#[test]
fn run_takes_its_task_from_a_pipe() {
    let home = Home::started();
    let mut command = home.consort_command(&["run", "--profile", "scripted", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"[[say from a pipe]]").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).code(0);
    assert!(ran.out.contains("from a pipe"), "{}", ran.out);
}

#[test]
fn send_waits_for_its_own_turn_through_kills_of_the_daemon() {
    let home = Home::started();
    consort(&home, &["new", "--profile", "scripted", "--name", "ann", "[[stream n=60 rate=100]]"]).code(0);
    wait_status(&home, "ann", "working");
    let mut command =
        home.consort_command(&["send", "ann", "[[stream n=100 rate=100]] [[say mine]]", "--wait"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for status in ["working", "idle"] {
        home.kill_daemon();
        // The command starts the next daemon itself; whoever comes first, there is one.
        wait_status_anyhow(&home, "ann", status);
    }
    let ran = Ran::of(child.wait_with_output().unwrap()).code(0);
    let whole: String = (0..100).map(|n| format!("word{n} ")).collect();
    assert_eq!(ran.out.trim_end(), format!("{whole}mine"), "nothing is printed twice or left out");
}

fn wait_status_anyhow(home: &Home, name: &str, status: &str) {
    consort(home, &["daemon", "start"]).code(0);
    wait_status(home, name, status);
}

#[test]
fn a_followed_log_shows_what_comes_and_ends_quietly_with_its_reader() {
    let home = Home::started();
    consort(&home, &["new", "--profile", "scripted", "--name", "ann", "[[say first]]"]).code(0);
    wait_status(&home, "ann", "idle");
    let mut command = home.consort_command(&["log", "ann", "--follow", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut texts = |count: usize| -> Vec<String> {
        lines
            .by_ref()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(&line).unwrap()["text"].as_str().unwrap().to_owned()
            })
            .take(count)
            .collect()
    };
    assert_eq!(texts(2), ["[[say first]]", "first"]);
    consort(&home, &["send", "ann", "[[say second]]"]).code(0);
    assert_eq!(texts(2), ["[[say second]]", "second"]);
    // Whoever needs it first starts the next one: the follower or the command.
    home.kill_daemon();
    consort(&home, &["send", "ann", "[[say third]]"]).code(0);
    assert_eq!(texts(2), ["[[say third]]", "third"]);
    drop(lines);
    consort(&home, &["send", "ann", "[[stream n=100 rate=500]]", "--wait"]).code(0);
    consort(&home, &["send", "ann", "[[say more]]", "--wait"]).code(0);
    assert!(processes::wait_until_gone(child.id() as i32, LIMIT), "it goes on without a reader");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = Home::started();
    consort(&home, &["new", "--profile", "scripted", "--name", "ann", "[[flood n=3000 size=200]]"]).code(0);
    wait_status(&home, "ann", "idle");
    for args in [
        &["log", "ann"][..],
        &["log", "ann", "--json"],
        &["agents"],
        &["exit-codes"],
        &["completions", "bash"],
    ] {
        let mut command = home.consort_command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_signal_ends_run_and_closes_its_agent() {
    let home = Home::started();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 6)] {
        let mut command =
            home.consort_command(&["run", "--profile", "scripted", "--name", "ann", "[[hang]]"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_status(&home, "ann", "working");
        processes::signal(child.id() as i32, signal);
        Ran::of(child.wait_with_output().unwrap()).code(code);
        let agents = home.processes().into_iter().filter(|process| process.role() == Role::Child).count();
        assert_eq!(agents, 0, "{signal:?}");
    }
}
