//! The runner: a small durable process that holds one agent's child process.
//!
//! It owns the child and everything the child starts, journals what goes in and out with offsets, and serves that to
//! whichever daemon is connected. It knows no agent protocol and outlives the daemon.
//!
//! - [`spec`]: what to start and within which limits.
//! - [`protocol`]: the messages between daemon and runner and their bytes on the wire; pure.
//! - [`framing`]: the child's output stream cut into records; pure.
//! - [`journal`]: the records on disk, and reading them after a runner was killed.
//! - [`process`]: starting the child, finding and ending its process tree.
//! - [`serve`]: the runner process itself.
//! - [`client`]: the daemon's side of the socket.
//! - [`sweep`]: ending what a killed runner left behind.

pub mod client;
pub mod framing;
pub mod journal;
pub mod process;
pub mod protocol;
pub mod serve;
pub mod spec;
pub mod sweep;

use std::path::{Path, PathBuf};

/// Where the runner that serves `dir` listens.
pub fn socket_path(dir: &Path) -> PathBuf {
    dir.join("s")
}

/// Where the runner that serves `dir` writes its own errors; nothing of the child is ever in it.
pub fn log_path(dir: &Path) -> PathBuf {
    dir.join("runner.log")
}
