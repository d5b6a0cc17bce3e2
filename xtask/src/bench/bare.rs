//! The scripted agent without Consort: what it does when a benchmark itself holds its pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use super::Bench;

/// A scripted agent with an open session.
pub struct BareAgent {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Value,
}

impl BareAgent {
    /// Starts the program and opens a session.
    pub fn start(bench: &Bench, args: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(&bench.programs.testkit);
        command.arg("agent").args(args);
        let mut program =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = program.stdin.take().context("a pipe")?;
        let output = BufReader::new(program.stdout.take().context("a pipe")?);
        let mut agent = Self { program, input, output, session: Value::Null };
        agent.ask(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        let opened = agent.ask(2, "session/new", json!({"cwd": "/tmp", "mcpServers": []}))?;
        agent.session = opened["result"]["sessionId"].clone();
        Ok(agent)
    }

    fn request(&mut self, id: u64, method: &str, params: Value) -> anyhow::Result<()> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Ok(writeln!(self.input, "{request}")?)
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> anyhow::Result<Value> {
        self.request(id, method, params)?;
        loop {
            let mut line = String::new();
            anyhow::ensure!(self.output.read_line(&mut line)? > 0, "the scripted agent ended");
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                return Ok(answer);
            }
        }
    }

    /// Sends a prompt and does not wait for its turn.
    pub fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        let prompt = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.request(3, "session/prompt", prompt)
    }

    /// Ends the program and waits until it has.
    pub fn end(mut self) -> anyhow::Result<()> {
        drop(self.input);
        self.program.wait()?;
        Ok(())
    }
}

/// Reads what the agents write as it comes and hands it on line by line, with the agent's number, until `enough`.
pub fn listen(
    agents: &mut [BareAgent],
    mut line: impl FnMut(usize, &[u8]),
    enough: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut rest = vec![Vec::new(); agents.len()];
    while !enough() {
        let outputs = agents.iter().map(|agent| agent.output.get_ref());
        let mut waited: Vec<_> = outputs.map(|output| PollFd::new(output, PollFlags::IN)).collect();
        poll(&mut waited, None)?;
        let ready: Vec<bool> = waited.iter().map(|waited| !waited.revents().is_empty()).collect();
        for (n, agent) in agents.iter_mut().enumerate().filter(|(n, _)| ready[*n]) {
            let count = agent.output.get_mut().read(&mut buffer)?;
            anyhow::ensure!(count > 0, "a scripted agent ended");
            rest[n].extend_from_slice(&buffer[..count]);
            let whole = rest[n].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            rest[n].drain(..whole).as_slice().split(|byte| *byte == b'\n').for_each(|words| line(n, words));
        }
    }
    Ok(())
}
