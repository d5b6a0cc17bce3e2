//! An agent that plays scripts: a real peer for drivers, written in the prompt.
//!
//! It owns its own reading of the Agent Client Protocol (plain JSON values, no schema crate), so that it does not share
//! a misunderstanding with the code it tests. One thread reads and answers, one plays prompts, one at a time; idle, both
//! are blocked. The invariant: every frame is one write, and nothing is written to a session that was not first
//! appended to its state file, so a killed agent can replay all that its client saw.
#![doc = concat!("\n```text\n", include_str!("help.txt"), "```")]

mod agent;
mod desk;
mod options;
mod play;
mod session;
mod steps;
mod wire;

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use agent::Agent;
use options::Command;

/// A line buffer grown beyond this by one large prompt is given back.
const KEPT_BUFFER: usize = 64 * 1024;
const RUNNER_STACK: usize = 256 * 1024;

/// Runs the agent until its standard input ends and gives the exit code. The caller exits the process with it: a step
/// in progress is not waited for.
pub fn main(
    args: impl IntoIterator<Item = String>,
    stdin: impl Read,
    mut stdout: impl Write + Send + 'static,
) -> i32 {
    let options = match options::parse(args) {
        Ok(Command::Run(options)) => *options,
        Ok(Command::Help) => return i32::from(stdout.write_all(include_bytes!("help.txt")).is_err()),
        Ok(Command::Exit { code, message }) => {
            eprintln!("{message}");
            return code;
        }
        Err(error) => {
            eprintln!("consort-testkit agent: {error}");
            return 2;
        }
    };
    std::thread::sleep(Duration::from_millis(options.slow_start));
    let agent = Arc::new(Agent::new(options, Box::new(stdout)));
    let player = Arc::clone(&agent);
    let runner = std::thread::Builder::new().name("runner".into()).stack_size(RUNNER_STACK);
    if let Err(error) = runner.spawn(move || player.run_jobs()) {
        eprintln!("consort-testkit agent: cannot start the runner thread: {error}");
        return 1;
    }
    read_lines(&agent, stdin)
}

fn read_lines(agent: &Agent, stdin: impl Read) -> i32 {
    let mut reader = BufReader::new(stdin);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(KEPT_BUFFER);
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return 0,
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => agent.receive(&line),
            Err(error) => {
                eprintln!("consort-testkit agent: cannot read standard input: {error}");
                return 1;
            }
        }
    }
}
