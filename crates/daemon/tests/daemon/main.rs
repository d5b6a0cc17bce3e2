//! The daemon from outside: real processes, real agents, the client protocol. Run by `cargo xtask test`, which builds the
//! programs that these tests start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod approvals;
mod clients;
mod crashes;
mod disk;
mod host;
mod kills;
mod lifecycle;
mod misbehaviour;
mod powers;
mod profiles;
mod sessions;
mod worktrees;
