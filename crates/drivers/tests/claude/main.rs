//! The Claude driver through its public surface: frames in, output out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asks;
mod fixtures;
mod garbage;
mod handshake;
mod messages;
mod options;
#[path = "../recorded/frames.rs"]
mod recorded;
mod scene;
mod steering;
mod support;
mod system;
mod transcripts;
mod turns;
