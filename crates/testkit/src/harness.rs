//! Real daemons on temporary homes, for tests that use Consort from outside.
//!
//! Owns finding the built programs ([`Programs`]), a home with its daemon from start to end ([`Home`]), clients that
//! hold a replica and wait by events ([`Client`]), and lines on the socket that no proper client would send ([`Wire`]).
//! Leaves what agents do to [`crate::scripted`], whose steps stand in the prompts.
//!
//! Invariant: a home that ends leaves no process and no runner's folder behind. A test that forgets one fails, and
//! whatever it started is killed, also when it panics.
//!
//! Everything here panics instead of returning errors: its callers are tests, and a panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

mod client;
mod disk;
mod home;
pub mod processes;
mod programs;
mod wire;

use std::time::{Duration, Instant};

pub use client::{Client, Followed, turn_is_over};
pub use disk::SmallDisk;
pub use home::Home;
pub use programs::Programs;
pub use wire::Wire;

/// How long anything may take before a test fails. Long, because a debug build on a busy machine is slow; nothing waits
/// this long where all is well.
pub const LIMIT: Duration = Duration::from_secs(40);

/// Looks again and again until something is there, for what tells nobody when it happens, such as another process.
pub fn poll<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {} seconds: {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
}
