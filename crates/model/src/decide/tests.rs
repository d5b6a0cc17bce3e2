//! The decisions, by table: one file for each kind of command.

mod asks;
mod closing;
mod creating;
mod forking;
mod messages;
mod profiles;
mod prompts;
mod slots;
mod steering;
mod stopping;
mod tasks;
mod waits;
