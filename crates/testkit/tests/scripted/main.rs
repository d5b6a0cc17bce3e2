//! The scripted agent over real pipes: what each step puts on the wire.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod conformance;
mod protocol;
mod steps;
mod turns;
