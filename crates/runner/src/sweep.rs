//! Ending what a killed runner left behind.
//!
//! When a runner itself is killed its child dies with it, but the child's own children do not. They carry a marker in
//! their environment that they inherited from the child's spec; that is how they are found.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// How long a sweep waits for processes to go after SIGKILL.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// Kills every process of this user whose environment holds `key=value`, waits until they are gone (five seconds at
/// most), and returns their ids. This process itself is never among them.
pub async fn sweep(key: &str, value: &str) -> io::Result<Vec<i32>> {
    let marker = format!("{key}={value}").into_bytes();
    tokio::task::spawn_blocking(move || sweep_blocking(&marker)).await.map_err(io::Error::other)
}

fn sweep_blocking(marker: &[u8]) -> Vec<i32> {
    let deadline = Instant::now() + SWEEP_LIMIT;
    let mut killed = Vec::new();
    // Again until none is found: one may have started another before it died.
    loop {
        let found = marked_processes(marker);
        if found.is_empty() || Instant::now() >= deadline {
            return killed;
        }
        for (pid, handle) in &found {
            match pidfd_send_signal(handle, Signal::KILL) {
                Ok(()) if !killed.contains(pid) => killed.push(*pid),
                Ok(()) => {}
                Err(error) => tracing::debug!(%error, pid, "a marked process could not be signalled"),
            }
        }
        for (_, handle) in &found {
            wait_until_gone(handle, deadline);
        }
    }
}

/// The environment is read again after a handle was opened, so that a process number given anew is never hit.
fn marked_processes(marker: &[u8]) -> Vec<(i32, OwnedFd)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let own = getpid().as_raw_pid();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            // Other users' environments cannot be read; that of a process already dead is empty.
            let environment = format!("/proc/{pid}/environ");
            holds(&std::fs::read(&environment).ok()?, marker).then_some(())?;
            let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            holds(&std::fs::read(&environment).ok()?, marker).then_some((pid, handle))
        })
        .collect()
}

fn holds(environment: &[u8], marker: &[u8]) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| variable == marker)
}

fn wait_until_gone(handle: &OwnedFd, deadline: Instant) {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return };
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_matches_one_whole_variable() {
        let environment = b"A=1\0CONSORT_AGENT=x\0B=2\0";
        assert!(holds(environment, b"CONSORT_AGENT=x"));
        assert!(!holds(environment, b"CONSORT_AGENT="));
        assert!(!holds(environment, b"AGENT=x"));
        assert!(!holds(b"", b"A=1"));
    }
}
