//! The Codex driver through its public surface: frames in, output out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asks;
mod children;
mod garbage;
mod handshake;
mod items;
mod notices;
#[path = "../recorded/frames.rs"]
mod recorded;
mod reload;
mod settings;
mod steering;
mod support;
mod transcripts;
mod turns;
