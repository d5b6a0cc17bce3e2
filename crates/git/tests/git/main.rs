//! Real git in temporary folders: every state that a repository and a worktree can be in.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adding;
mod changing;
mod finishing;
mod removing;
mod stage;
