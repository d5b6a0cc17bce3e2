//! The daemon: one per home, started on demand, serving the client protocol over a Unix socket.
//!
//! Owns the protocol's messages ([`protocol`]), both ends of it ([`connection`], [`client`]), the process
//! ([`server`]), and how questions become forms ([`form`]). What is done about a request is the hub's.

pub mod client;
mod connection;
pub mod form;
pub mod home;
mod logs;
mod powers;
pub mod protocol;
pub mod server;
