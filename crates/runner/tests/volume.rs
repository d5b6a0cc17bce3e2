//! Floods, long lines and memory, with a real runner and real children.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Host, memory_kb, private_kb, wait_until};
use consort_runner::protocol::{Exit, RecordBody, RefusalReason};

/// What a runner may ever have held. A debug build's code pages, touched by this one process, count too; the release
/// build is measured by the benchmark.
const PEAK_KB: u64 = 16 * 1024;

/// What a record of output takes besides its bytes.
const OUTPUT_FRAME: u64 = 14;

fn assert_small(pid: i32) {
    let (private, peak) = (private_kb(pid), memory_kb(pid, "status", "VmHWM:"));
    eprintln!("private {private} kB, peak {peak} kB");
    assert!(private < 8 * 1024, "private memory: {private} kB");
    assert!(peak < PEAK_KB, "peak: {peak} kB");
}

#[tokio::test]
async fn an_idle_runner_is_small() {
    let (host, mut daemon) = Host::start("echo ready; cat").await;
    assert_eq!(daemon.line().await.1, "ready");
    assert_small(host.runner_pid());
    host.finish(daemon).await;
}

#[tokio::test]
async fn a_flood_that_nobody_reads_costs_disk_and_not_memory() {
    const LINE: &str =
        "a line of a flood that is long enough to be like a short frame of some protocol, or so";
    const LINES: u64 = 2_000_000;
    let (host, daemon) = Host::start(&format!("yes '{LINE}' | head -n {LINES}; exec cat")).await;
    drop(daemon);
    let expected = LINES * (OUTPUT_FRAME + LINE.len() as u64);
    wait_until("the flood is over", || journal_bytes(&host) >= expected).await;
    assert_small(host.runner_pid());

    let mut daemon = host.connect(0).await;
    for index in 0..LINES {
        let (offset, line) = daemon.line().await;
        assert_eq!((offset, line.as_str()), (index, LINE));
        if index % 10_000 == 9_999 {
            daemon.sender.confirm(index + 1).await.unwrap();
        }
    }
    assert_small(host.runner_pid());
    daemon.sender.input(1, b"after\n").await.unwrap();
    assert_eq!(daemon.line().await.1, "after");
    wait_until("the journal is small", || journal_bytes(&host) < 1 << 20).await;
    host.finish(daemon).await;
}

fn journal_bytes(host: &Host) -> u64 {
    let entries = std::fs::read_dir(host.dir()).unwrap().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

#[tokio::test]
async fn a_full_journal_makes_the_child_wait_and_loses_nothing() {
    const LINES: u64 = 100_000;
    let host = Host::spawn().await;
    let mut spec = host.shell(&format!("seq 1 {LINES}"));
    spec.journal_bytes = 200_000;
    let daemon = host.start_spec(spec).await;
    drop(daemon);
    wait_until("the journal is full", || journal_bytes(&host) >= 200_000).await;
    let mut daemon = host.connect(0).await;
    assert!(daemon.welcome.next_offset < LINES / 2);
    for number in 1..=LINES {
        let (offset, line) = daemon.line().await;
        assert_eq!((offset + 1, line), (number, number.to_string()));
        if number % 100 == 0 {
            daemon.sender.confirm(number).await.unwrap();
            assert!(journal_bytes(&host) < 1 << 20);
        }
    }
    assert_eq!(daemon.exit().await, Exit::Code(0));
    host.ends().await;
}

#[tokio::test]
async fn a_line_of_fifty_megabytes_comes_in_pieces() {
    const LENGTH: usize = 50_000_000;
    let (host, mut daemon) = Host::start(&format!("head -c {LENGTH} /dev/zero; echo; echo after; cat")).await;
    let mut length = 0;
    loop {
        match daemon.record().await.body {
            RecordBody::Output { bytes, end_of_line } => {
                assert!(bytes.len() <= 1 << 20 && bytes.iter().all(|byte| *byte == 0));
                length += bytes.len();
                if end_of_line {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(length, LENGTH);
    assert_eq!(daemon.line().await.1, "after");
    assert_small(host.runner_pid());
    host.finish(daemon).await;
}

#[tokio::test]
async fn a_daemon_that_reads_slowly_gets_everything() {
    const LINES: u64 = 200_000;
    let (host, mut daemon) = Host::start(&format!("seq 1 {LINES}; echo end >&2; exec cat")).await;
    wait_until("the child has said it all", || journal_bytes(&host) >= OUTPUT_FRAME * LINES + digits(LINES))
        .await;
    assert_small(host.runner_pid());
    for number in 1..=LINES {
        assert_eq!(daemon.line().await, (number - 1, number.to_string()));
    }
    assert_eq!(daemon.stderr_tail().await, "end\n");
    host.finish(daemon).await;
}

/// How many digits the numbers from 1 to `last` have together.
fn digits(last: u64) -> u64 {
    (1..=last).map(|number| u64::from(number.ilog10()) + 1).sum()
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_makes_the_child_wait_and_loses_nothing() {
    const LINES: u64 = 500_000;
    let (host, mut daemon) = Host::start(&format!("read go; seq 1 {LINES}; exec cat")).await;
    // Without its directory the runner can fill the segment it has open, but begin no other.
    let elsewhere = host.dir().with_extension("elsewhere");
    std::fs::rename(host.dir(), &elsewhere).unwrap();
    daemon.sender.input(1, b"go\n").await.unwrap();
    assert_eq!(daemon.refusal().await, RefusalReason::InputFull);
    std::fs::rename(&elsewhere, host.dir()).unwrap();
    daemon.sender.input(1, b"go\n").await.unwrap();
    assert_eq!(daemon.line().await.1, "1");
    std::fs::rename(host.dir(), &elsewhere).unwrap();
    let log = elsewhere.join("runner.log");
    wait_until("the runner says so", || std::fs::read_to_string(&log).unwrap().contains("has to wait")).await;
    std::fs::rename(&elsewhere, host.dir()).unwrap();
    for number in 2..=LINES {
        assert_eq!(daemon.line().await.1, number.to_string());
    }
    host.finish(daemon).await;
}
