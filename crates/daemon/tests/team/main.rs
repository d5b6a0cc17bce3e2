//! Agents that work together, through the functions behind the team's tools: real processes, a hub in this one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod budgets;
mod messages;
mod results;
mod slots;
mod stage;
