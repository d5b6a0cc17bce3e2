//! The hub: knows all agents and routes everything.
//!
//! Owns the tasks of the agents' processes, the feed of events, and the profiles in force. Decisions are `model`'s,
//! keeping is `store`'s, processes are `runner`'s, protocols are `drivers`'. A command is decided and committed first;
//! then the tasks that it concerns are told. A task that is slow or broken delays no other.

mod assemble;
mod error;
pub mod feed;
mod host;
mod hub;
mod life;
mod login;
pub mod peer;
mod profiles;
mod reach;
mod react;
mod real_path;
mod results;
mod sessions;
mod shared;
mod task;
pub mod team;
pub mod teamwork;
mod terminals;
mod tools;
mod version;
mod worktree;

pub use consort_store::config::migrate::MAX_IMPORT;
pub use error::HubError;
pub use hub::{Hub, NewAgent, Settings};
pub use profiles::{ProfileChanges, Version};
pub use worktree::{FinishedWorktree, NewWorktree, RemovedWorktree, SeenWorktree};
