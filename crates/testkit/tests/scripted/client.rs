//! A client over pipes, as bare as the agent: it sends lines and reads frames.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

/// Long enough for a loaded machine; only a failing test waits for it.
const DEADLINE: Duration = Duration::from_secs(20);

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    pub session: String,
    next_id: u64,
}

impl Client {
    /// An agent in `cwd` that was started and nothing more.
    pub fn spawn(cwd: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_consort-testkit"))
            .arg("agent")
            .args(args)
            .current_dir(cwd)
            .env_remove("SCRIPTED_STATE_DIR")
            .env("GREETING", "good day")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(
            move || while read_line(&mut stdout).is_some_and(|line| sender.send(line).is_ok()) {},
        );
        let stdin = child.stdin.take();
        Self { child, stdin, lines, session: String::new(), next_id: 0 }
    }

    /// An agent with a session in `cwd`.
    pub fn start(cwd: &Path, args: &[&str]) -> Self {
        let mut client = Self::spawn(cwd, args);
        client.initialize();
        let result = client.call("session/new", json!({"cwd": cwd, "mcpServers": []})).unwrap();
        client.session = result["sessionId"].as_str().unwrap().to_owned();
        client
    }

    pub fn initialize(&mut self) -> Value {
        let capabilities = json!({"auth": {"terminal": true}, "session": {"configOptions": {"boolean": {}}}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.call("initialize", params).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// A request and its result or error; frames before the answer are dropped.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.until_answer(id).1
    }

    pub fn prompt(&mut self, text: &str) -> u64 {
        self.prompt_blocks(json!([{"type": "text", "text": text}]))
    }

    pub fn prompt_blocks(&mut self, blocks: Value) -> u64 {
        let session = self.session.clone();
        self.request("session/prompt", json!({"sessionId": session, "prompt": blocks, "_meta": {"mark": 7}}))
    }

    pub fn cancel(&mut self) {
        let session = self.session.clone();
        let params = json!({"sessionId": session});
        self.line(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).to_string());
    }

    pub fn answer(&mut self, request: &Value, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
    }

    pub fn choose(&mut self, request: &Value, option: &str) {
        self.answer(request, json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    pub fn raw_line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the agent said nothing for {DEADLINE:?}"),
        }
    }

    /// The next frame; a line that is none fails the test.
    pub fn frame(&mut self) -> Value {
        let line = self.raw_line().expect("the agent is gone");
        serde_json::from_slice(&line)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&line)))
    }

    /// The frame that fulfils the condition; those before it are dropped.
    pub fn until(&mut self, condition: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.frame();
            if condition(&frame) {
                return frame;
            }
        }
    }

    pub fn until_method(&mut self, method: &str) -> Value {
        self.until(|frame| frame["method"] == method)
    }

    /// All frames up to the answer, and the answer.
    pub fn until_answer(&mut self, id: u64) -> (Vec<Value>, Result<Value, Value>) {
        let mut before = Vec::new();
        loop {
            let frame = self.frame();
            if frame.get("method").is_none() && frame["id"] == id {
                let answer = match frame.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(frame["result"].clone()),
                };
                return (before, answer);
            }
            before.push(frame);
        }
    }

    /// Plays a prompt that asks nothing of the client: its updates and its result.
    pub fn play(&mut self, text: &str) -> (Vec<Value>, Value) {
        let id = self.prompt(text);
        let (frames, answer) = self.until_answer(id);
        (frames.into_iter().map(|frame| frame["params"]["update"].clone()).collect(), answer.unwrap())
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits for the end and gives all of standard error.
    pub fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // An agent that already ended is fine; a failing test must not leave one behind.
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

fn read_line(stdout: &mut BufReader<ChildStdout>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    stdout.read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Some(line)
}

/// The texts of the chunks among updates, joined.
pub fn said(updates: &[Value]) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}
