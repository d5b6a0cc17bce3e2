//! The terminal UI: a client of the daemon that shows a team of agents on one screen.
//!
//! Owns what is on the screen and which key does what. Leaves everything that lasts to the daemon: what is shown comes from
//! a replica of its state, what is done is a command to it, and closing the screen stops nothing.

pub mod text;
