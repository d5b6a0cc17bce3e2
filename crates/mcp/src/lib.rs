//! The tools by which agents reach each other, served over the Model Context Protocol.
//!
//! Owns the endpoint (`http://127.0.0.1:PORT/mcp`, streamable HTTP): who may come in ([`guard`]), what the server says of
//! itself ([`handler`]), what a tool is ([`tool`]) and the tools themselves ([`tools`], a file for each group). Leaves
//! what a tool does to the hub, and the tokens too.
//!
//! Invariants: who asks follows from the token of each single request, never from a session or an argument. There is no
//! session at all, so an agent's program goes on after a restart of the daemon as if nothing had been. A person's powers
//! (answering asks, changing profiles, rules and limits) are not among the tools.

pub mod bridge;
pub mod client;
mod guard;
mod handler;
mod listen;
mod serve;
pub mod tool;
mod tools;
pub mod wait;

pub use listen::Endpoint;
