//! How children and runners end, with a real runner and real children.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::{Duration, Instant};

use common::{Host, MARKER, wait_until};
use consort_runner::client::{self, Error};
use consort_runner::journal;
use consort_runner::protocol::{Exit, Record, RecordBody, Stop};
use consort_runner::spec::StopLimits;
use consort_runner::sweep::sweep;
use rustix::process::{Pid, Signal, kill_process};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn exit_codes_and_signals_are_reported() {
    for (script, expected) in
        [("exit 0", Exit::Code(0)), ("exit 7", Exit::Code(7)), ("kill -9 $$", Exit::Signal(9))]
    {
        let (host, mut daemon) = Host::start(script).await;
        assert_eq!(daemon.exit().await, expected);
        host.ends().await;
    }
}

#[tokio::test]
async fn the_exit_waits_for_a_daemon_to_confirm_it() {
    let (host, mut daemon) = Host::start("read line; echo last words; exit 3").await;
    daemon.sender.input(1, b"go\n").await.unwrap();
    daemon.ack().await;
    drop(daemon);
    wait_until("the child is gone", || host.processes().is_empty()).await;

    let mut daemon = host.connect(1).await;
    assert_eq!(daemon.line().await, (1, "last words".into()));
    assert_eq!(daemon.exit().await, Exit::Code(3));
    host.ends().await;
}

#[tokio::test]
async fn a_last_line_without_a_newline_is_kept() {
    let (host, mut daemon) = Host::start("printf 'one\ntwo'").await;
    assert_eq!(daemon.line().await.1, "one");
    assert_eq!(daemon.line().await.1, "two");
    assert_eq!(daemon.exit().await, Exit::Code(0));
    host.ends().await;
}

#[tokio::test]
async fn descendants_do_not_outlive_a_child_that_ends() {
    let (host, mut daemon) = Host::start("sleep 1000 & setsid sleep 1000 & echo ready").await;
    assert_eq!(daemon.line().await.1, "ready");
    assert_eq!(daemon.exit().await, Exit::Code(0));
    host.ends().await;
}

#[tokio::test]
async fn a_stop_ends_descendants_in_sessions_of_their_own() {
    let script = "setsid sh -c 'setsid sleep 1000 & sleep 1000' & (setsid sleep 1000 &) ; echo ready; cat";
    let (host, mut daemon) = Host::start(script).await;
    assert_eq!(daemon.line().await.1, "ready");
    wait_until("the descendants are there", || host.processes().len() >= 5).await;
    daemon.sender.stop(Stop::default()).await.unwrap();
    assert_eq!(daemon.exit().await, Exit::Code(0));
    host.ends().await;
}

#[tokio::test]
async fn a_stop_ends_those_that_ignore_every_signal() {
    let (host, mut daemon) =
        Host::start("trap '' INT TERM HUP; echo ready; while :; do sleep 1000; done").await;
    assert_eq!(daemon.line().await.1, "ready");
    daemon.sender.stop(Stop::default()).await.unwrap();
    assert_eq!(daemon.exit().await, Exit::Signal(9));
    host.ends().await;
}

#[tokio::test]
async fn a_stop_goes_no_further_than_it_must() {
    let limits = StopLimits { protocol_ms: 60_000, stdin_ms: 60_000, ..StopLimits::default() };
    for (script, protocol_stop, expected) in [
        ("read word; exit 11", Some(b"stop\n".to_vec()), Exit::Code(11)),
        ("cat; exit 12", None, Exit::Code(12)),
    ] {
        let (host, mut daemon) = Host::start(script).await;
        daemon.sender.stop(Stop { protocol_stop, limits: Some(limits) }).await.unwrap();
        assert_eq!(daemon.exit().await, expected);
        host.ends().await;
    }
    let limits = StopLimits { stdin_ms: 0, interrupt_ms: 60_000, ..limits };
    let (host, mut daemon) =
        Host::start("trap 'exit 13' INT; echo ready; while :; do sleep 0.01; done").await;
    assert_eq!(daemon.line().await.1, "ready");
    daemon.sender.stop(Stop { protocol_stop: None, limits: Some(limits) }).await.unwrap();
    assert_eq!(daemon.exit().await, Exit::Code(13));
    host.ends().await;
}

#[tokio::test]
async fn a_second_stop_hurries_the_first() {
    let (host, mut daemon) = Host::start("echo ready; exec sleep 1000").await;
    assert_eq!(daemon.line().await.1, "ready");
    let patient = StopLimits { stdin_ms: 600_000, ..StopLimits::default() };
    daemon.sender.stop(Stop { protocol_stop: None, limits: Some(patient) }).await.unwrap();
    let begun = Instant::now();
    daemon.sender.stop(Stop { protocol_stop: None, limits: Some(StopLimits::at_once()) }).await.unwrap();
    assert_eq!(daemon.exit().await, Exit::Signal(9));
    assert!(begun.elapsed() < Duration::from_secs(60));
    host.ends().await;
}

#[tokio::test]
async fn a_terminated_runner_ends_its_tree_and_leaves_the_journal() {
    let (host, mut daemon) = Host::start("setsid sleep 1000 & echo ready; cat").await;
    assert_eq!(daemon.line().await.1, "ready");
    for ignored in [Signal::HUP, Signal::INT] {
        kill(host.runner_pid(), ignored);
    }
    daemon.sender.input(1, b"still here\n").await.unwrap();
    assert_eq!(daemon.line().await.1, "still here");
    kill(host.runner_pid(), Signal::TERM);
    host.runner_is_gone().await;
    assert_eq!(host.processes(), Vec::<i32>::new());
    assert!(matches!(client::connect(&host.dir(), 0).await, Err(Error::Gone { .. })));
    let records: Vec<Record> = journal::read_from(&host.dir(), 2).unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[1].body, RecordBody::Exit(Exit::Code(0)));
}

#[tokio::test]
async fn a_killed_runner_takes_its_child_along_and_its_journal_can_be_salvaged() {
    let (host, mut daemon) = Host::start("setsid sleep 1000 & echo one; echo two; exec cat").await;
    daemon.line().await;
    daemon.line().await;
    let runner = host.runner_pid();
    kill(runner, Signal::KILL);
    wait_until("the child is gone", || !host.processes().contains(&daemon.child_pid)).await;
    host.runner_is_gone().await;
    // What had left the child's session outlives it: that is what the sweep is for.
    let marker = host.marker();
    let left = host.processes();
    assert_eq!(left.len(), 1);
    assert_eq!(sweep(MARKER, &marker).await.unwrap(), left);
    assert_eq!(host.processes(), Vec::<i32>::new());

    assert!(matches!(client::connect(&host.dir(), 0).await, Err(Error::Gone { .. })));
    let output = |offset, text: &str| {
        let body = RecordBody::Output { bytes: text.as_bytes().to_vec(), end_of_line: true };
        Record { offset, body }
    };
    let records: Vec<Record> = journal::read_from(&host.dir(), 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(records, [output(0, "one"), output(1, "two")]);

    // A new runner may follow in the same place, and starts anew.
    client::spawn(&common::program(), &[], &host.dir()).await.unwrap();
    let daemon = host.start_spec(host.shell("cat")).await;
    assert_eq!(daemon.welcome.next_offset, 0);
    host.finish(daemon).await;
}

#[tokio::test]
async fn an_orphaned_runner_with_an_idle_child_ends_and_leaves_the_journal() {
    let host = Host::spawn().await;
    let mut spec = host.shell("setsid sleep 1000 & echo said; exec sleep 1000");
    (spec.orphan_after_ms, spec.idle_after_ms) = (100, 200);
    let mut daemon = host.start_spec(spec).await;
    assert_eq!(daemon.line().await.1, "said");
    drop(daemon);
    host.runner_is_gone().await;
    assert_eq!(host.processes(), Vec::<i32>::new());
    let records: Vec<Record> = journal::read_from(&host.dir(), 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len(), 2);
}

#[tokio::test]
async fn a_child_that_works_is_not_orphaned() {
    let host = Host::spawn().await;
    let mut spec =
        host.shell("i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); sleep 0.02; done; echo done; exec cat");
    (spec.orphan_after_ms, spec.idle_after_ms) = (10, 5_000);
    let daemon = host.start_spec(spec).await;
    drop(daemon);
    let finished = || journal_holds(&host, "done");
    wait_until("the child has done its work", finished).await;
    let mut daemon = host.connect(60).await;
    assert_eq!(daemon.line().await, (60, "done".into()));
    host.finish(daemon).await;
}

/// Whether the journal's files hold a text; read without asking the runner, which would count as a daemon.
fn journal_holds(host: &Host, text: &str) -> bool {
    journal::read_from(&host.dir(), 0).unwrap().flatten().any(|record| match record.body {
        RecordBody::Output { bytes, .. } => bytes == text.as_bytes(),
        _ => false,
    })
}

#[tokio::test]
async fn a_runner_that_is_stopped_before_its_start_ends() {
    let host = Host::spawn().await;
    let daemon = host.connect(0).await;
    daemon.sender.stop(Stop::default()).await.unwrap();
    host.ends().await;
}

#[tokio::test]
async fn a_runner_that_is_never_told_what_to_start_ends() {
    let host = Host::spawn().await;
    host.ends().await;
}

#[tokio::test]
async fn a_stop_ends_a_tree_that_keeps_growing() {
    let grow = "trap '' INT TERM; while :; do setsid sleep 1000 & sleep 0.005; done";
    let (host, mut daemon) = Host::start(&format!("setsid sh -c \"{grow}\" & {grow}")).await;
    wait_until("the tree has grown", || host.processes().len() > 10).await;
    daemon.sender.stop(Stop::default()).await.unwrap();
    assert_eq!(daemon.exit().await, Exit::Signal(9));
    host.ends().await;
}
