//! Git, by its command line: worktrees made, finished and removed, and what was changed in a folder.
//!
//! - [`command`]: running git and other commands, bounded in time and output, in a clean environment.
//! - [`parse`]: what git prints, as values; pure.
//! - [`repository`]: the repository that a folder is in, or why it cannot be used.
//! - [`worktree`]: making and removing worktrees, and what work is in one.
//! - [`finish`]: bringing a worktree's branch home.
//! - [`changes`]: changed files and diffs.
//!
//! Leaves who may do what, names, and the record of it to the hub. Invariant: an error of git never counts as "there is
//! nothing to lose", and what holds work is removed only where the caller says so in a word.

pub mod changes;
pub mod command;
mod error;
pub mod finish;
pub mod parse;
pub mod repository;
pub mod worktree;

pub use error::GitError;
pub use repository::Repository;
