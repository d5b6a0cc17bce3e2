//! The ACP driver through its public surface: frames in, output out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asks;
mod calls;
mod fixtures;
mod garbage;
mod handshake;
mod options;
mod record;
#[path = "../recorded/frames.rs"]
mod recorded;
mod scene;
mod support;
mod tools;
mod turns;
mod updates;
