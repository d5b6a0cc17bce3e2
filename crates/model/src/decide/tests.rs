//! The decisions, by table: one file for each kind of command.

mod asks;
mod closing;
mod creating;
mod forking;
mod profiles;
mod prompts;
mod stopping;
mod tasks;
