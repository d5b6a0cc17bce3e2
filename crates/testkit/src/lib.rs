//! What tests, benchmarks and demonstrations stand on instead of the outside world.
//!
//! [`scripted`] is an agent whose behaviour is written in the prompt. It is a real peer in a real process: nothing
//! here knows how Consort drives it. [`harness`] runs real daemons on temporary homes, and
//! [`chaos`] kills them. [`model`] is a model server whose answers are written in the prompt, and [`clis`] are the real
//! CLIs that talk with it; [`conformance`] is the table of what each of those can do. `terminal` runs a program in a terminal and
//! sees what a person would see.

pub mod chaos;
pub mod clis;
pub mod conformance;
pub mod harness;
pub mod model;
pub mod scripted;
#[cfg(feature = "terminal")]
pub mod terminal;
