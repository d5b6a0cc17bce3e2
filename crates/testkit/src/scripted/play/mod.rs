//! Playing a prompt: its steps in order, then its answer.
//!
//! A step that ends the turn says so by an [`End`]; everything else goes on. Tools and permissions are in [`tools`],
//! requests to the client in [`through_client`], what a good agent never does in [`misbehave`].

mod mcp;
mod misbehave;
mod through_client;
mod tools;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use super::agent::Agent;
use super::desk::{Answer, Cancelled, OnCancel, Ticket};
use super::session::Session;
use super::steps::{self, Step};
use super::wire::{RpcError, Wire};

/// Slash commands on offer if none are named.
pub const COMMANDS: [&str; 2] = ["review", "init"];

/// Why a turn ends before its last step.
#[derive(Debug, PartialEq)]
enum End {
    Stop(String),
    Error(RpcError),
}

impl From<Cancelled> for End {
    fn from(_: Cancelled) -> Self {
        End::Stop("cancelled".into())
    }
}

struct Turn<'a> {
    agent: &'a Agent,
    session: Arc<Session>,
    ticket: &'a Ticket,
    params: &'a Value,
    /// Chunks for after the answer.
    late: Vec<String>,
    /// Members of the answer beside the stop reason.
    extras: Map<String, Value>,
}

/// Plays a prompt and answers it.
pub fn prompt(agent: &Agent, ticket: &Arc<Ticket>, id: &Value, params: &Value) {
    let answer = agent.session(params).map(|session| {
        let mut turn = Turn { agent, session, ticket, params, late: Vec::new(), extras: Map::new() };
        let end = turn.play_prompt();
        (turn, end)
    });
    agent.desk.finish(ticket);
    match answer {
        Err(error) | Ok((_, Err(End::Error(error)))) => agent.wire.answer(id, Err(error)),
        Ok((mut turn, end)) => {
            let stop_reason = match end {
                Err(End::Stop(reason)) => reason,
                _ => "end_turn".into(),
            };
            let mut result = std::mem::take(&mut turn.extras);
            result.insert("stopReason".into(), json!(stop_reason));
            agent.wire.answer(id, Ok(Value::Object(result)));
            for text in std::mem::take(&mut turn.late) {
                turn.chunk("agent_message_chunk", &text, None);
            }
        }
    }
}

pub fn commands_update(names: &[String]) -> Value {
    let commands: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "description": format!("Runs {name}"), "input": {"hint": "what"}}))
        .collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

impl Turn<'_> {
    fn play_prompt(&mut self) -> Result<(), End> {
        if let Some(meta) = self.params.get("_meta") {
            self.extras.insert("_meta".into(), meta.clone());
        }
        for content in self.blocks() {
            let mut update = json!({"sessionUpdate": "user_message_chunk", "content": content});
            if let Some(meta) = self.params.get("_meta") {
                update["_meta"] = meta.clone();
            }
            self.session.record(&update);
        }
        // Cancelled while it waited its turn.
        self.check()?;
        let text = self.text();
        let scripts = &self.agent.options.scripts;
        let mut steps = steps::parse(&text, scripts).map_err(step_error)?;
        if steps.is_empty() {
            steps = match &self.agent.options.on_prompt {
                Some(default) => steps::parse(default, scripts).map_err(step_error)?,
                None => vec![Step::Say { text: format!("You said: {text}"), chunk: None }],
            };
        }
        for step in steps {
            self.check()?;
            self.play(step)?;
        }
        Ok(())
    }

    fn play(&mut self, step: Step) -> Result<(), End> {
        match step {
            Step::Say { text, chunk } => self.text_in_chunks("agent_message_chunk", &text, chunk),
            Step::Think { text, chunk } => self.text_in_chunks("agent_thought_chunk", &text, chunk),
            Step::Stream { count, rate, size, stamp, text } if text.is_empty() => {
                self.stream(count, Some(rate), |index| numbered(index, size, stamp))?;
            }
            Step::Stream { count, rate, size, text, .. } => {
                let pieces = pieces(&text, size);
                self.stream(count, Some(rate), |index| pieces[index as usize % pieces.len()].clone())?;
            }
            Step::Flood { count, size } => self.stream(count, None, |index| numbered(index, size, false))?,
            Step::Late(text) => self.late.push(text),
            Step::Tool(tool) => self.tool(&tool)?,
            Step::Ask(ask) => self.ask(&ask)?,
            Step::AskMany { count, kind, title } => self.ask_many(count, &kind, &title)?,
            Step::Edit { path, old, new, ask } => self.edit(&path, &old, &new, ask)?,
            Step::Write { path, text, ask } => self.write(&path, &text, ask)?,
            Step::Plan(entries) => self.plan(&entries),
            Step::Mode(mode) => {
                self.session.set_mode(&mode);
                self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
            }
            Step::Title(title) => {
                self.update(json!({"sessionUpdate": "session_info_update", "title": title}))
            }
            Step::Commands(names) if names.is_empty() => {
                self.update(commands_update(&COMMANDS.map(str::to_owned)));
            }
            Step::Commands(names) => self.update(commands_update(&names)),
            Step::ConfigUpdate => {
                let options = self.agent.config_options(&self.session);
                self.update(json!({"sessionUpdate": "config_option_update", "configOptions": options}));
            }
            Step::Usage { used, size, cost } => {
                let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
                if let Some(amount) = cost {
                    update["cost"] = json!({"amount": amount, "currency": "USD"});
                }
                self.update(update);
            }
            Step::TurnUsage { input, output } => {
                let usage = json!({"inputTokens": input, "outputTokens": output, "totalTokens": input.saturating_add(output)});
                self.extras.insert("usage".into(), usage);
            }
            Step::Update(update) => self.update(update),
            Step::UnknownUpdate => self.update(json!({"sessionUpdate": "from_the_future", "value": 1})),
            Step::UnknownNotification => {
                self.agent.wire.notify("_scripted/unknown", json!({"sessionId": self.session.id}));
            }
            Step::UnknownRequest => {
                let answer = self.call("_scripted/unknown", json!({}))?;
                self.report("unknown request", answer.map(|result| result.to_string()));
            }
            Step::FsRead { path, line, limit } => self.fs_read(&path, line, limit)?,
            Step::FsWrite { path, text } => self.fs_write(&path, &text)?,
            Step::Terminal { command, kill, limit } => self.terminal(&command, kill, limit)?,
            Step::Elicit(message) => self.elicit(&message)?,
            Step::Wait(milliseconds) => self.wait(milliseconds)?,
            Step::Hang => return Err(self.agent.desk.until_cancelled(self.ticket).into()),
            Step::HangDeaf => loop {
                std::thread::park();
            },
            Step::Misbehave(misbehaviour) => self.misbehave(misbehaviour),
            Step::Env(key) => match std::env::var(&key) {
                Ok(value) => self.say(&format!("{key}={value}")),
                Err(_) => self.say(&format!("{key} is not set")),
            },
            Step::Args => self.say(&format!("args: {}", json!(self.agent.options.given))),
            Step::Cwd => {
                let process = std::env::current_dir().unwrap_or_default();
                self.say(&format!("session: {}\nprocess: {}", self.session.cwd.display(), process.display()));
            }
            Step::Meta => self.say(&format!("meta: {}", self.params["_meta"])),
            Step::Mcp => self.say(&format!("mcp: {}", self.session.mcp_servers)),
            Step::McpCall { server, tool, arguments } => self.mcp_call(&server, &tool, &arguments)?,
            Step::Client => self.say(&format!("client: {}", self.agent.client())),
            Step::EchoImages => self.echo_attachments(),
            Step::Error { code, message } => return Err(End::Error(RpcError::new(code, message))),
            Step::Stop(reason) => return Err(End::Stop(reason)),
        }
        Ok(())
    }

    fn blocks(&self) -> Vec<Value> {
        self.params["prompt"].as_array().cloned().unwrap_or_default()
    }

    fn text(&self) -> String {
        let blocks = self.blocks();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }

    fn check(&self) -> Result<(), Cancelled> {
        if self.ticket.cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    fn wait(&self, milliseconds: u64) -> Result<(), Cancelled> {
        self.sleep_until(Instant::now().checked_add(Duration::from_millis(milliseconds)))
    }

    /// Waits for a moment; one beyond all clocks never comes.
    fn sleep_until(&self, moment: Option<Instant>) -> Result<(), Cancelled> {
        match moment {
            Some(moment) => self.agent.desk.sleep_until(moment, self.ticket),
            None => Err(self.agent.desk.until_cancelled(self.ticket)),
        }
    }

    /// Sends an update of the session, recorded first.
    fn update(&self, update: Value) {
        self.session.record(&update);
        self.agent.wire.notify("session/update", self.update_params(&update));
    }

    fn update_params(&self, update: &Value) -> Value {
        json!({"sessionId": self.session.id, "update": update})
    }

    fn chunk(&self, kind: &str, text: &str, message_id: Option<&str>) {
        self.update(self.chunk_update(kind, text, message_id));
    }

    fn chunk_update(&self, kind: &str, text: &str, message_id: Option<&str>) -> Value {
        let mut update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        if let Some(id) = message_id {
            update["messageId"] = json!(id);
        }
        update
    }

    fn message_id(&self) -> Option<String> {
        self.agent.options.message_ids.then(|| format!("message-{}", self.agent.count()))
    }

    fn text_in_chunks(&self, kind: &str, text: &str, size: Option<usize>) {
        let id = self.message_id();
        let size = size.or(self.agent.options.chunk).unwrap_or(usize::MAX).max(1);
        let mut rest = text;
        loop {
            let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
            let (chunk, tail) = rest.split_at(end);
            self.chunk(kind, chunk, id.as_deref());
            if tail.is_empty() {
                return;
            }
            rest = tail;
        }
    }

    fn say(&self, text: &str) {
        self.text_in_chunks("agent_message_chunk", text, None);
    }

    /// Says how a request to the client ended.
    fn report(&self, what: &str, answer: Result<String, RpcError>) {
        match answer {
            Ok(result) => self.say(&format!("{what}: {result}")),
            Err(error) => self.say(&format!("{what}: {error}")),
        }
    }

    /// Deltas on a schedule counted from the start, so that lateness of one does not add to the next.
    fn stream(&self, count: u64, rate: Option<f64>, delta: impl Fn(u64) -> String) -> Result<(), Cancelled> {
        let id = self.message_id();
        let frame = self.text_frame(id.as_deref());
        // A hundred of these agents then share the kernel's wake-ups, and cost half. Without it they only cost more.
        set_current_timer_slack(NonZeroU64::new(1_000_000)).ok();
        let start = Instant::now();
        for index in 0..count {
            match rate {
                Some(rate) => {
                    let due = Duration::try_from_secs_f64(index as f64 / rate).unwrap_or(Duration::MAX);
                    self.sleep_until(start.checked_add(due))?;
                }
                None => self.check()?,
            }
            let text = delta(index);
            match &frame {
                Some((head, tail)) if needs_no_escape(&text) => {
                    self.agent.wire.bytes(format!("{head}{text}{tail}").as_bytes());
                }
                _ => self.chunk("agent_message_chunk", &text, id.as_deref()),
            }
        }
        Ok(())
    }

    /// What stands before and after the text in a frame with a delta, for text that needs no escapes; none if the
    /// session is recorded. A benchmark has a hundred of these agents beside what it measures: they have to be cheap.
    fn text_frame(&self, message_id: Option<&str>) -> Option<(String, String)> {
        if self.session.is_recorded() {
            return None;
        }
        const PLACE: &str = "<text>";
        let update = self.chunk_update("agent_message_chunk", PLACE, message_id);
        let frame = Wire::notification("session/update", &self.update_params(&update)).to_string();
        let (head, tail) = frame.split_once(PLACE)?;
        Some((head.to_owned(), format!("{tail}\n")))
    }

    /// Asks the client something and waits for the answer.
    fn call(&self, method: &str, params: Value) -> Result<Answer, Cancelled> {
        let id = self.agent.wire.fresh_id();
        self.agent.desk.expect(id);
        self.agent.wire.request(id, method, params);
        let (_, answer) = self.agent.desk.next_answer(&[id], self.ticket, OnCancel::Leave)?;
        Ok(answer)
    }

    fn plan(&self, entries: &[String]) {
        // All pending, each one under way in turn, all completed.
        for round in 0..entries.len() + 2 {
            let entries: Vec<Value> = entries
                .iter()
                .enumerate()
                .map(|(at, content)| {
                    let status = match (at + 1).cmp(&round) {
                        std::cmp::Ordering::Less => "completed",
                        std::cmp::Ordering::Equal => "in_progress",
                        std::cmp::Ordering::Greater => "pending",
                    };
                    json!({"content": content, "priority": "medium", "status": status})
                })
                .collect();
            self.update(json!({"sessionUpdate": "plan", "entries": entries}));
        }
    }

    fn echo_attachments(&self) {
        let mut lines = Vec::new();
        for block in self.blocks() {
            let kind = block["type"].as_str().unwrap_or("nothing");
            match kind {
                "text" => {}
                "image" | "audio" => {
                    let size = base64_size(block["data"].as_str().unwrap_or_default());
                    lines.push(format!("{kind} {} {size} bytes", block["mimeType"].as_str().unwrap_or("?")));
                }
                "resource" => {
                    let resource = &block["resource"];
                    let size = match resource["text"].as_str() {
                        Some(text) => text.len(),
                        None => base64_size(resource["blob"].as_str().unwrap_or_default()),
                    };
                    let mime = resource["mimeType"].as_str().unwrap_or("?");
                    lines.push(format!(
                        "resource {} {mime} {size} bytes",
                        resource["uri"].as_str().unwrap_or("?")
                    ));
                }
                _ => lines.push(format!("{kind} {}", block["uri"].as_str().unwrap_or("?"))),
            }
        }
        self.say(&if lines.is_empty() { "no attachments".to_owned() } else { lines.join("\n") });
    }
}

fn step_error(error: steps::StepError) -> End {
    End::Error(RpcError::params(format!("Invalid params: {error}")))
}

fn base64_size(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

/// A delta that says which one it is, and when it was written if it is stamped.
fn numbered(index: u64, size: usize, stamp: bool) -> String {
    let mut text =
        if stamp { format!("{}:{index} ", monotonic_nanoseconds()) } else { format!("word{index} ") };
    if text.len() < size {
        text.push_str(&".".repeat(size - text.len()));
    }
    text
}

/// A text in pieces of so many characters; never none.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect();
    if pieces.is_empty() { vec![String::new()] } else { pieces }
}

fn needs_no_escape(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
}

fn monotonic_nanoseconds() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
