//! The runner process: `consort runner --dir DIR`.
//!
//! Sets the process up (session, subreaper, lock, socket), runs the event loop of [`runner`], and cleans up. It is one
//! thread and one owner of all state; nothing runs while nothing happens.
//!
//! Invariant: at most one runner serves a directory at any time, whoever started how many.

mod child;
mod connection;
mod handshake;
mod inbox;
mod runner;

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::net::UnixListener;

use self::runner::{Outcome, Runner};
use crate::journal::{Journal, remove_segments};
use crate::{log_path, process, socket_path};

/// The line on stdout that tells the spawner that the socket is there.
pub const READY_LINE: &str = "ready\n";

/// Serves `dir` until the child is done with; the whole of the runner process.
pub fn main(dir: PathBuf) -> ExitCode {
    match serve(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(format_args!("the runner of {} ended: {error}", dir.display()));
            ExitCode::FAILURE
        }
    }
}

fn serve(dir: &Path) -> io::Result<()> {
    let dir = std::path::absolute(dir)?;
    // The lock lasts as long as the process: it says that what lies in the directory is nobody else's.
    let lock = File::open(&dir)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(io::Error::new(ErrorKind::AddrInUse, "another runner serves this directory"));
        }
        // Some network file systems lock no directories; the daemon does not start two runners on purpose.
        Err(error) => log(format_args!("{} could not be locked: {error}", dir.display())),
    }
    process::become_runner()?;
    // A working directory of its own would keep a file system from being unmounted.
    std::env::set_current_dir("/")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let runner = Runner::new(dir.clone(), Journal::create(&dir, u64::MAX)?)?;
        let listener = bind(&socket_path(&dir))?;
        announce()?;
        match runner.run(listener).await {
            Outcome::Done => remove_files(&dir),
            // The journal stays for whoever comes to read it.
            Outcome::Left => remove_if_there(&socket_path(&dir)),
        }
    })
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    remove_if_there(path)?;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Tells the spawner, and lets go of its pipe.
fn announce() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(READY_LINE.as_bytes())?;
    stdout.flush()?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    Ok(())
}

fn remove_files(dir: &Path) -> io::Result<()> {
    remove_if_there(&socket_path(dir))?;
    remove_segments(dir)?;
    let log = log_path(dir);
    if std::fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
        remove_if_there(&log)?;
    }
    match std::fs::remove_dir(dir) {
        // A log with something in it, or what somebody else put there, is worth keeping.
        Err(error) if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes one of the runner's own errors to its log.
fn log(message: std::fmt::Arguments<'_>) {
    if writeln!(io::stderr(), "consort runner: {message}").is_err() {
        // There is nowhere left to say it.
    }
}
