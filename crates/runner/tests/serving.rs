//! Records, input and connections, with a real runner and real children.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Host, program};
use consort_runner::client::{self, Error};
use consort_runner::protocol::{Exit, FromRunner, Hello, RefusalReason, ToRunner, first_frame};
use consort_runner::socket_path;
use consort_runner::spec::{Framing, Spec, Stdin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

#[tokio::test]
async fn records_come_in_order_and_again_from_any_offset() {
    let (host, mut daemon) =
        Host::start("for i in 0 1 2 3 4; do echo line $i; done; read go; echo five").await;
    for index in 0..5 {
        assert_eq!(daemon.line().await, (index, format!("line {index}")));
    }
    drop(daemon);

    let mut daemon = host.connect(3).await;
    assert_eq!((daemon.welcome.started, daemon.welcome.next_offset), (true, 5));
    assert_eq!(daemon.line().await, (3, "line 3".into()));
    assert_eq!(daemon.line().await, (4, "line 4".into()));
    daemon.sender.input(1, b"go\n").await.unwrap();
    assert_eq!(daemon.line().await, (6, "five".into()));
    assert_eq!(daemon.exit().await, Exit::Code(0));
    host.ends().await;
}

#[tokio::test]
async fn a_newer_daemon_replaces_the_older() {
    let (host, mut older) = Host::start("cat").await;
    let mut newer = host.connect(0).await;
    assert!(matches!(older.next().await, Err(Error::Closed)));
    newer.sender.input(1, b"to the newer\n").await.unwrap();
    assert_eq!(newer.line().await.1, "to the newer");
    host.finish(newer).await;
}

#[tokio::test]
async fn repeated_input_is_acknowledged_and_not_written_again() {
    let (host, mut daemon) = Host::start("cat").await;
    for number in [1, 1, 2, 1, 2] {
        daemon.sender.input(number, format!("input {number}\n").as_bytes()).await.unwrap();
        assert_eq!(daemon.ack().await, number);
    }
    daemon.sender.input(4, b"too early\n").await.unwrap();
    assert_eq!(daemon.refusal().await, RefusalReason::InputGap);
    drop(daemon);

    let mut daemon = host.connect(0).await;
    assert_eq!(daemon.welcome.last_input, 2);
    daemon.sender.input(2, b"input 2\n").await.unwrap();
    daemon.sender.input(3, b"input 3\n").await.unwrap();
    for number in 1..=3 {
        assert_eq!(daemon.line().await.1, format!("input {number}"));
    }
    host.finish(daemon).await;
}

#[tokio::test]
async fn large_input_reaches_the_child_whole() {
    let (host, mut daemon) = Host::start("head -c 20000000 | md5sum; cat").await;
    let bytes: Vec<u8> = (0..20_000_000u32).map(|index| (index % 251) as u8).collect();
    let runner = host.runner_pid();
    daemon.sender.input(1, &bytes).await.unwrap();
    daemon.sender.input(2, b"small\n").await.unwrap();
    assert_eq!(daemon.line().await.1, format!("{}  -", md5(&bytes).await));
    assert_eq!(daemon.line().await.1, "small");
    let peak = common::memory_kb(runner, "status", "VmHWM:");
    assert!(peak < 16 * 1024, "{peak} kB");
    host.finish(daemon).await;
}

async fn md5(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let output = tokio::process::Command::new("md5sum").arg(file.path()).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_child_that_never_reads_blocks_nobody() {
    let (host, mut daemon) = Host::start("echo ready; sleep 1000").await;
    assert_eq!(daemon.line().await.1, "ready");
    let input = vec![b'x'; 100_000];
    for number in 1..=50 {
        daemon.sender.input(number, &input).await.unwrap();
        assert_eq!(daemon.ack().await, number);
    }
    assert_eq!(daemon.stderr_tail().await, "");
    host.finish(daemon).await;
}

#[tokio::test]
async fn output_can_be_raw_and_stderr_merged_in_order() {
    let host = Host::spawn().await;
    let mut spec = host.shell("printf 'a\nb'; printf c >&2; printf d; cat");
    (spec.framing, spec.merge_stderr, spec.stdin) = (Framing::Raw, true, Stdin::Null);
    let mut daemon = host.start_spec(spec).await;
    let mut text = Vec::new();
    let exit = loop {
        match daemon.record().await.body {
            consort_runner::protocol::RecordBody::Output { bytes, end_of_line } => {
                assert!(!end_of_line);
                text.extend(bytes);
            }
            consort_runner::protocol::RecordBody::Exit(exit) => break exit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((text.as_slice(), exit), (b"a\nbcd".as_slice(), Exit::Code(0)));
    daemon.sender.confirm(u64::MAX).await.unwrap();
    host.ends().await;
}

#[tokio::test]
async fn the_childs_environment_is_exactly_the_specs() {
    let host = Host::spawn().await;
    let mut spec = Spec::new("/usr/bin/env", "/");
    spec.env = vec![("ONLY".into(), "this one".into())];
    let mut daemon = host.start_spec(spec).await;
    assert_eq!(daemon.line().await.1, "ONLY=this one");
    assert_eq!(daemon.exit().await, Exit::Code(0));
    host.ends().await;
}

#[tokio::test]
async fn the_tail_of_stderr_is_served() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo error line $i >&2; i=$((i+1)); done; echo done; cat";
    let (host, mut daemon) = Host::start(script).await;
    assert_eq!(daemon.line().await.1, "done");
    let tail = daemon.stderr_tail().await;
    assert!(tail.ends_with("error line 2999\n"), "{tail}");
    assert_eq!(tail.len(), 16 * 1024);
    host.finish(daemon).await;
}

#[tokio::test]
async fn a_second_start_starts_nothing() {
    let (host, mut daemon) = Host::start("cat").await;
    daemon.sender.start(host.shell("echo another")).await.unwrap();
    assert_eq!(daemon.started().await, daemon.child_pid);
    drop(daemon);
    let mut daemon = host.connect(0).await;
    daemon.sender.start(host.shell("echo another")).await.unwrap();
    assert_eq!(daemon.started().await, daemon.welcome.child_pid.unwrap());
    host.finish(daemon).await;
}

#[tokio::test]
async fn a_child_that_cannot_start_is_explained_and_the_runner_ends() {
    let secret = "hunter2";
    for (program, cwd, expected) in [
        ("no-such-program", "/", "no-such-program could not be started: there is no such program"),
        ("sh", "/no/such/place", "/no/such/place is not a directory"),
        ("/etc/passwd", "/", "/etc/passwd could not be started: Permission denied"),
    ] {
        let host = Host::spawn().await;
        let mut daemon = host.connect(0).await;
        let mut spec = Spec::new(program, cwd);
        spec.env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("SECRET".into(), secret.into())];
        spec.args = vec![secret.into()];
        daemon.sender.start(spec).await.unwrap();
        match daemon.message().await {
            FromRunner::StartFailed { message } => {
                assert!(message.contains(expected) && !message.contains(secret), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(daemon.next().await, Err(Error::Closed)));
        host.ends().await;
    }
}

#[tokio::test]
async fn input_before_the_start_and_after_the_end_is_refused() {
    let host = Host::spawn().await;
    let mut daemon = host.connect(0).await;
    daemon.sender.input(1, b"early\n").await.unwrap();
    assert_eq!(daemon.refusal().await, RefusalReason::NotStarted);
    daemon.sender.start(host.shell("exit 0")).await.unwrap();
    while !matches!(daemon.record().await.body, consort_runner::protocol::RecordBody::Exit(_)) {}
    daemon.sender.input(1, b"late\n").await.unwrap();
    assert_eq!(daemon.refusal().await, RefusalReason::Ended);
    daemon.sender.confirm(1).await.unwrap();
    host.ends().await;
}

#[tokio::test]
async fn strangers_and_garbage_do_not_touch_the_child() {
    let (host, mut daemon) = Host::start("cat").await;
    let path = socket_path(&host.dir());
    let silent = UnixStream::connect(&path).await.unwrap();
    for garbage in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 0, 1], &[5, 0, 0, 0, 1, 1, 2, 3, 4, 5]]
    {
        let mut stranger = UnixStream::connect(&path).await.unwrap();
        stranger.write_all(garbage).await.unwrap();
        let mut answer = Vec::new();
        // Hung up on, politely or not.
        drop(stranger.read_to_end(&mut answer).await);
        assert_eq!(answer, b"");
    }
    daemon.sender.input(1, b"still here\n").await.unwrap();
    assert_eq!(daemon.line().await.1, "still here");

    // A peer that turns bad after its hello loses its connection; the child does not notice.
    let mut bad = UnixStream::connect(&path).await.unwrap();
    let mut bytes = Vec::new();
    ToRunner::Hello(Hello { version: 1, from: 0 }).encode(&mut bytes).unwrap();
    bytes.extend([0xff, 0xff, 0xff, 0xff, 3]);
    bad.write_all(&bytes).await.unwrap();
    drop(bad.read_to_end(&mut Vec::new()).await);
    let mut daemon = host.connect(0).await;
    daemon.sender.input(2, b"and now\n").await.unwrap();
    assert_eq!(daemon.line().await.1, "still here");
    assert_eq!(daemon.line().await.1, "and now");
    drop(silent);
    host.finish(daemon).await;
}

#[tokio::test]
async fn another_version_is_refused_with_a_sentence() {
    let (host, daemon) = Host::start("cat").await;
    let mut stream = UnixStream::connect(socket_path(&host.dir())).await.unwrap();
    let mut bytes = Vec::new();
    ToRunner::Hello(Hello { version: 999, from: 0 }).encode(&mut bytes).unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let (head, payload) = first_frame(&answer).unwrap().unwrap();
    match FromRunner::decode(head.kind, payload).unwrap() {
        FromRunner::Refused(refusal) => assert_eq!(refusal.reason, RefusalReason::Version),
        other => panic!("{other:?}"),
    }
    host.finish(daemon).await;
}

#[tokio::test]
async fn an_offset_that_does_not_exist_yet_is_refused() {
    let (host, daemon) = Host::start("cat").await;
    match client::connect(&host.dir(), 1000).await {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.reason, RefusalReason::Offset),
        other => panic!("{:?}", other.err()),
    }
    host.finish(daemon).await;
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_other_errors() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(client::connect(dir.path(), 0).await, Err(Error::Gone { .. })));
    assert!(matches!(client::connect(&dir.path().join("missing"), 0).await, Err(Error::Gone { .. })));
    drop(tokio::net::UnixListener::bind(socket_path(dir.path())).unwrap());
    assert!(matches!(client::connect(dir.path(), 0).await, Err(Error::Gone { .. })));
    let long = dir.path().join("x".repeat(120));
    assert!(matches!(client::connect(&long, 0).await, Err(Error::PathTooLong { .. })));
    assert!(matches!(client::spawn(&program(), &[], &long).await, Err(Error::PathTooLong { .. })));
    assert!(!long.exists());
}

#[tokio::test]
async fn a_directory_has_one_runner() {
    let (host, daemon) = Host::start("cat").await;
    match client::spawn(&program(), &[], &host.dir()).await {
        Err(Error::NotReady { reason, .. }) => assert!(reason.contains("another runner"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(host.connect(0).await.welcome.child_pid, Some(daemon.child_pid));
    let daemon = host.connect(0).await;
    host.finish(daemon).await;
}

#[tokio::test]
async fn socket_and_directory_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (host, daemon) = Host::start("cat").await;
    assert_eq!(daemon.welcome.runner_pid, host.runner_pid());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&host.dir()), 0o700);
    assert_eq!(mode(&socket_path(&host.dir())), 0o600);
    host.finish(daemon).await;
}

#[tokio::test]
async fn waiting_for_messages_can_be_cancelled_at_any_time() {
    let (host, daemon) = Host::start("seq 1 20000; exec cat").await;
    let mut receiver = daemon.receiver;
    let mut batch = Vec::new();
    let mut turns = 0u32;
    while batch.len() < 20_000 {
        tokio::select! {
            biased;
            count = receiver.next_batch(&mut batch) => assert!(count.unwrap() > 0),
            // Is ready at once: the wait above is cancelled each time it would really wait.
            () = tokio::task::yield_now() => turns += 1,
        }
    }
    assert!(turns > 0);
    for (index, message) in batch.into_iter().enumerate() {
        match message {
            FromRunner::Record(record) => assert_eq!(record.offset, index as u64),
            other => panic!("{other:?}"),
        }
    }
    let daemon = host.connect(0).await;
    host.finish(daemon).await;
}

#[tokio::test]
async fn sending_can_be_cancelled_at_any_time() {
    // A runner that says hello and then does not read for a while.
    let dir = tempfile::tempdir().unwrap();
    let listener = tokio::net::UnixListener::bind(socket_path(dir.path())).unwrap();
    let accepted = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut welcome = Vec::new();
        let message = FromRunner::Welcome(consort_runner::protocol::Welcome {
            version: 1,
            runner_pid: 1,
            started: false,
            child_pid: None,
            first_offset: 0,
            next_offset: 0,
            last_input: 0,
            exit: None,
        });
        message.encode(&mut welcome).unwrap();
        stream.write_all(&welcome).await.unwrap();
        stream
    });
    let (_, sender, receiver) = client::connect(dir.path(), 0).await.unwrap();
    let mut stream = accepted.await.unwrap();
    let bytes = vec![b'x'; 5_000_000];
    tokio::select! {
        biased;
        _ = sender.input(1, &bytes) => panic!("nobody reads, so it cannot be sent whole"),
        () = tokio::task::yield_now() => {}
    }
    let reader = tokio::spawn(async move {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        received
    });
    sender.confirm(7).await.unwrap();
    drop((sender, receiver));
    let received = reader.await.unwrap();
    let mut rest = received.as_slice();
    let mut messages = Vec::new();
    while let Some((head, payload)) = first_frame(rest).unwrap() {
        messages.push(ToRunner::decode(head.kind, payload).unwrap());
        rest = &rest[head.total()..];
    }
    let hello = ToRunner::Hello(Hello { version: 1, from: 0 });
    assert!(messages == [hello, ToRunner::Input { number: 1, bytes }, ToRunner::Confirm { offset: 7 }]);
    assert!(rest.is_empty());
}
