//! The endpoint from outside: a real daemon, real agents that call tools, and requests that no agent would send. Run by
//! `cargo xtask test`, which builds the programs that these tests start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bridge;
mod guard;
mod restarts;
mod stage;
mod suite;
mod tools;
