//! Ends what a benchmark started, however that ends: the rows run in a process of their own, and this one waits for it.
//!
//! All that the rows start names one scratch folder in its environment: programs inherit [`SCRATCH`], and a daemon's
//! runners and agents, which do not, have a home inside it. So all of it is found, whoever its parent is by then.
//!
//! Invariant: when [`run`] returns, no such process is left and the folder is gone, also after ctrl-c.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_testkit::harness::processes;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use tempfile::TempDir;

use super::processes::naming;

/// The variable that holds the scratch folder; it is set where the rows are to run.
const SCRATCH: &str = "CONSORT_BENCH_SCRATCH";

/// How long what is left may take to end.
const END_LIMIT: Duration = Duration::from_secs(30);

/// Whether this process is the one that runs the rows.
pub fn is_worker() -> bool {
    std::env::var_os(SCRATCH).is_some()
}

/// A new folder at a path short enough for sockets.
pub fn folder() -> anyhow::Result<TempDir> {
    let scratch = std::env::var_os(SCRATCH).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    tempfile::Builder::new().prefix("c").tempdir_in(&scratch).context("no scratch folder can be made")
}

/// Runs the rows in a process of their own and cleans up behind it. Does not return where a goal was missed.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let scratch = tempfile::Builder::new().prefix("cb").tempdir_in("/tmp")?;
    let (mut signals, tell) = UnixStream::pair()?;
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        pipe::register(signal, tell.try_clone()?)?;
    }
    let mut worker = Command::new(std::env::current_exe()?);
    let mut worker = worker.arg("bench").args(args).env(SCRATCH, scratch.path()).spawn()?;
    let handle = pidfd_open(Pid::from_child(&worker), PidfdFlags::empty())?;
    std::thread::spawn(move || {
        if signals.read_exact(&mut [0]).is_ok() {
            // Ctrl-c reaches the worker as well, so it may be gone, which is as good.
            pidfd_send_signal(&handle, Signal::KILL).ok();
        }
    });
    let status = worker.wait()?;
    end_what_is_left(scratch.path())?;
    scratch.close()?;
    match status.code() {
        Some(0) => Ok(()),
        // It has said why.
        Some(code) => std::process::exit(code),
        None => bail!("the benchmark was broken off ({status})"),
    }
}

fn end_what_is_left(scratch: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + END_LIMIT;
    loop {
        let left = naming(scratch.as_os_str().as_bytes())?;
        let Some(first) = left.first() else { return Ok(()) };
        let limit = deadline.saturating_duration_since(Instant::now());
        if limit.is_zero() {
            bail!("the processes {left:?} of the benchmark do not end");
        }
        left.iter().for_each(|pid| processes::kill(*pid));
        // Another may have been forked meanwhile, so all are looked for again.
        processes::wait_until_gone(*first, limit);
    }
}
