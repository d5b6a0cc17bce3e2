//! A runner in a temporary directory, a daemon's connection to it, and proof that no process stays behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consort_runner::client::{self, Error, Receiver, Sender};
use consort_runner::protocol::{Exit, FromRunner, Record, RecordBody, RefusalReason, Stop, Welcome};
use consort_runner::spec::{Spec, StopLimits};
use rustix::process::{Pid, Signal};

pub const LIMIT: Duration = Duration::from_secs(60);

pub const MARKER: &str = "CONSORT_RUNNER_TEST";

pub struct Host {
    base: tempfile::TempDir,
}

impl Host {
    /// A runner that waits to be told what to start.
    pub async fn spawn() -> Self {
        let host = Self { base: tempfile::tempdir().unwrap() };
        client::spawn(&program(), &[], &host.dir()).await.unwrap();
        host
    }

    /// A runner whose child runs a shell script, and the daemon that started it.
    pub async fn start(script: &str) -> (Self, Daemon) {
        let host = Self::spawn().await;
        let spec = host.shell(script);
        let daemon = host.start_spec(spec).await;
        (host, daemon)
    }

    pub async fn start_spec(&self, spec: Spec) -> Daemon {
        let mut daemon = self.connect(0).await;
        daemon.sender.start(spec).await.unwrap();
        daemon.child_pid = daemon.started().await;
        daemon
    }

    pub fn dir(&self) -> PathBuf {
        self.base.path().join("r")
    }

    pub fn marker(&self) -> String {
        self.base.path().display().to_string()
    }

    /// A child that carries this test's marker.
    pub fn shell(&self, script: &str) -> Spec {
        let mut spec = Spec::new("sh", self.base.path());
        spec.args = vec!["-c".into(), script.into()];
        spec.env = vec![("PATH".into(), std::env::var("PATH").unwrap()), (MARKER.into(), self.marker())];
        spec.stop_limits = StopLimits {
            protocol_ms: 200,
            stdin_ms: 200,
            interrupt_ms: 200,
            terminate_ms: 200,
            kill_ms: 10_000,
        };
        spec
    }

    pub async fn connect(&self, from: u64) -> Daemon {
        let (welcome, sender, receiver) = client::connect(&self.dir(), from).await.unwrap();
        let child_pid = welcome.child_pid.unwrap_or(0);
        Daemon { welcome, sender, receiver, child_pid, messages: VecDeque::new() }
    }

    /// The processes of this test that live.
    pub fn processes(&self) -> Vec<i32> {
        let marker = format!("{MARKER}={}", self.marker());
        all_processes()
            .into_iter()
            .filter(|pid| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
            })
            .collect()
    }

    /// Waits until the runner has ended; it must have removed its files (but a log it wrote to) and left no process.
    pub async fn ends(self) {
        self.runner_is_gone().await;
        if let Ok(entries) = std::fs::read_dir(self.dir()) {
            let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["runner.log"]);
        }
        assert_eq!(self.processes(), Vec::<i32>::new());
    }

    pub async fn runner_is_gone(&self) {
        wait_until("the runner is gone", || runners_of(&self.dir()).is_empty()).await;
    }

    pub fn runner_pid(&self) -> i32 {
        let runners = runners_of(&self.dir());
        assert_eq!(runners.len(), 1);
        runners[0]
    }

    /// Ends the child at once and sees the runner out.
    pub async fn finish(self, mut daemon: Daemon) {
        let stop = Stop { protocol_stop: None, limits: Some(StopLimits::at_once()) };
        daemon.sender.stop(stop).await.unwrap();
        daemon.exit().await;
        self.ends().await;
    }
}

impl Drop for Host {
    /// A test that fails leaves no process either: its runner ends its own tree.
    fn drop(&mut self) {
        for runner in runners_of(&self.dir()) {
            if let Err(error) = rustix::process::kill_process(Pid::from_raw(runner).unwrap(), Signal::TERM) {
                eprintln!("the runner {runner} had ended already: {error}");
            }
        }
    }
}

pub struct Daemon {
    pub welcome: Welcome,
    pub sender: Sender,
    pub receiver: Receiver,
    pub child_pid: i32,
    messages: VecDeque<FromRunner>,
}

impl Daemon {
    pub async fn next(&mut self) -> Result<FromRunner, Error> {
        let mut batch = Vec::new();
        if self.messages.is_empty() {
            tokio::time::timeout(LIMIT, self.receiver.next_batch(&mut batch))
                .await
                .expect("a message in time")?;
            self.messages.extend(batch);
        }
        Ok(self.messages.pop_front().unwrap())
    }

    /// The next message that is not an echo of input.
    pub async fn message(&mut self) -> FromRunner {
        loop {
            match self.next().await.unwrap() {
                FromRunner::Record(Record { body: RecordBody::Input { .. }, .. }) => {}
                message => return message,
            }
        }
    }

    pub async fn started(&mut self) -> i32 {
        match self.message().await {
            FromRunner::Started { child_pid } => child_pid,
            other => panic!("not started: {other:?}"),
        }
    }

    /// The next record, whatever else is said meanwhile.
    pub async fn record(&mut self) -> Record {
        loop {
            if let FromRunner::Record(record) = self.next().await.unwrap() {
                return record;
            }
        }
    }

    /// The next whole line and the offset of its last record.
    pub async fn line(&mut self) -> (u64, String) {
        let mut line = Vec::new();
        loop {
            let record = self.record().await;
            match record.body {
                RecordBody::Output { bytes, end_of_line } => {
                    line.extend(bytes);
                    if end_of_line {
                        return (record.offset, String::from_utf8(line).unwrap());
                    }
                }
                RecordBody::Input { .. } => {}
                RecordBody::Exit(exit) => panic!("the child ended ({exit:?}) instead of saying a line"),
            }
        }
    }

    pub async fn ack(&mut self) -> u64 {
        loop {
            match self.next().await.unwrap() {
                FromRunner::InputAck { number } => return number,
                FromRunner::Refused(refusal) => panic!("refused: {refusal:?}"),
                _ => {}
            }
        }
    }

    pub async fn refusal(&mut self) -> RefusalReason {
        loop {
            if let FromRunner::Refused(refusal) = self.next().await.unwrap() {
                return refusal.reason;
            }
        }
    }

    pub async fn stderr_tail(&mut self) -> String {
        self.sender.stderr_tail().await.unwrap();
        loop {
            if let FromRunner::StderrTail { text } = self.next().await.unwrap() {
                return text;
            }
        }
    }

    /// Waits for the child's end and confirms it.
    pub async fn exit(&mut self) -> Exit {
        loop {
            let record = self.record().await;
            if let RecordBody::Exit(exit) = record.body {
                self.sender.confirm(record.offset + 1).await.unwrap();
                return exit;
            }
        }
    }
}

pub fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_consort-runner-host").into()
}

fn all_processes() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn runners_of(dir: &Path) -> Vec<i32> {
    let dir = dir.as_os_str().as_encoded_bytes();
    all_processes()
        .into_iter()
        .filter(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).any(|argument| argument == dir)
        })
        .collect()
}

/// Waits for what the system gives no event for.
pub async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A figure in kB of `/proc/PID/FILE`.
pub fn memory_kb(pid: i32, file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line =
        text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in {file}"));
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

pub fn private_kb(pid: i32) -> u64 {
    memory_kb(pid, "smaps_rollup", "Private_Clean:") + memory_kb(pid, "smaps_rollup", "Private_Dirty:")
}
