//! The command line from outside: real commands, a real daemon, scripted agents. Run by `cargo xtask test`, which builds
//! the programs that these tests start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod commands;
mod demo;
mod streams;
mod worktrees;

use std::process::Output;

use consort_testkit::harness::Home;
use serde_json::Value;

/// What a command printed, and its exit code.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// The one JSON value that was printed.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// One JSON value per line.
    #[track_caller]
    fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs `consort`.
fn consort(home: &Home, args: &[&str]) -> Ran {
    Ran::of(home.consort(args))
}

/// Waits until an agent has this status.
fn wait_status(home: &Home, name: &str, status: &str) {
    let client = home.client();
    client.wait_until(&format!("{name} is {status}"), |state| {
        state.agents.values().find(|agent| agent.name == name && agent.status().words() == status).map(drop)
    });
}
