//! The scripted model, through its sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apis;
mod client;
mod courses;
mod damage;
mod scripts;
