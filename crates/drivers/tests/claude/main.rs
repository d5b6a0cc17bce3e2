//! The Claude driver through its public surface: frames in, output out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;
mod transcripts;
