//! Processes by the mark in their environment, and their end.
//!
//! The daemon, its runners and the agents' own processes all carry `CONSORT_HOME`, so whatever belongs to a home is
//! found by it, whoever its parent is by now.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A living process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its program and arguments.
    pub command: String,
}

/// What a process is to Consort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// `consort daemon run`.
    Daemon,
    /// `consort runner`.
    Runner,
    /// Anything else: an agent's program, or what that started.
    Child,
}

impl Process {
    /// What it is to Consort.
    pub fn role(&self) -> Role {
        let mut words = self.command.split(' ').skip(1);
        match (words.next(), words.next()) {
            (Some("daemon"), Some("run")) => Role::Daemon,
            (Some("runner"), Some("--dir")) => Role::Runner,
            _ => Role::Child,
        }
    }
}

/// All living processes of a home. One that ended and is not yet reaped does not count.
pub fn of_home(home: &Path) -> Vec<Process> {
    with_mark(&format!("CONSORT_HOME={}", home.display()))
}

/// All living processes with `KEY=VALUE` in their environment.
pub fn with_mark(mark: &str) -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc can be read");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        marked.then(|| Process { pid, command: words.join(" ").trim_end().to_owned() })
    })
    .collect()
}

/// Whether a process lives.
pub fn is_alive(pid: i32) -> bool {
    handle(pid).is_some_and(|handle| !wait(&handle, Duration::ZERO))
}

/// Sends SIGKILL, if the process is still there.
pub fn kill(pid: i32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal, if the process is still there.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(handle) = handle(pid) {
        // It may have ended this moment, which is as good.
        pidfd_send_signal(&handle, signal).ok();
    }
}

/// Waits until a process is gone; whether it is.
pub fn wait_until_gone(pid: i32, limit: Duration) -> bool {
    handle(pid).is_none_or(|handle| wait(&handle, limit))
}

/// Waits until a home has no process any more; those that are left after the limit.
pub fn wait_until_none(home: &Path, limit: Duration) -> Vec<Process> {
    let deadline = Instant::now() + limit;
    loop {
        let left = of_home(home);
        let Some(first) = left.first() else { return left };
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return left;
        }
        // Another may be forked meanwhile, so all are looked for again.
        wait_until_gone(first.pid, remaining);
    }
}

fn handle(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn wait(handle: &OwnedFd, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a limit is short");
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(ready) => return ready > 0,
            Err(error) => panic!("a process cannot be waited for: {error}"),
        }
    }
}
