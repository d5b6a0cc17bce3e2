//! What tests, benchmarks and demonstrations stand on instead of the outside world.
//!
//! [`scripted`] is an agent whose behaviour is written in the prompt. It is a real peer in a real process: nothing
//! here knows how Consort drives it. [`harness`] runs real daemons on temporary homes, and
//! [`chaos`] kills them.

pub mod chaos;
pub mod harness;
pub mod scripted;
