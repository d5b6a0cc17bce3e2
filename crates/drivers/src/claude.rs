//! Claude Code over its stream of JSON lines, with the control protocol.
//!
//! Owns the conversation with one process: the handshake, its turns, its asks, and the lists it keeps. Leaves to the
//! hub when to prompt and who answers. Files and commands are the agent's own business, so the host is never called.
//! [`Claude`] is cloned for every batch of frames and serialised when it changed, so it holds what later frames need
//! and never the text of messages.
//!
//! Invariant: every request of the agent is answered or taken back, and every request of ours is settled at most once;
//! a frame that makes no sense changes nothing and gives a notice. What is written is always valid JSON: the agent ends
//! itself over anything else.

mod asks;
mod handshake;
mod messages;
mod options;
mod plan;
mod questions;
mod steering;
mod suggestions;
mod system;
mod tasks;
mod tools;
mod turns;
mod wire;

use std::sync::Arc;

use consort_model::{NoticeLevel, PermissionMode, SessionInfo, Signal, SlashCommand};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{CommandLine, Launch, Output};
use asks::Asks;
use messages::Stream;
use options::{Options, mode_of};
use plan::Plan;
use tasks::Tasks;
use tools::Tools;
use turns::Turn;
use wire::{Line, Text, excerpt, one_line};

/// The state machine of one Claude Code process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claude {
    launch: Arc<Launch>,
    phase: Phase,
    session: Arc<SessionInfo>,
    /// What Consort's approvals follow.
    permissions: PermissionMode,
    turn: Option<Turn>,
    /// What the running turn was given and has not taken in, oldest first.
    #[serde(default)]
    offered: Vec<String>,
    stream: Stream,
    next_request: u64,
    /// Requests of ours that wait for an answer.
    requests: Vec<(u64, Request)>,
    tools: Tools,
    tasks: Tasks,
    asks: Asks,
    options: Arc<Options>,
    plan: Plan,
    /// The slash commands until they are told.
    commands: Arc<Vec<SlashCommand>>,
    /// MCP servers that were reported as missing.
    failed_servers: Vec<String>,
}

/// How far the conversation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// From the first frame until the session takes prompts.
    Opening,
    /// The session takes prompts.
    Open,
    /// The session could not be opened or the process ended; nothing matters any more.
    Over,
}

/// A request of ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Request {
    Initialize,
    Servers,
    Interrupt,
    /// To take back what the running turn was given.
    TakeBack {
        key: String,
    },
    Mode {
        value: String,
    },
    Model {
        value: String,
    },
}

impl Claude {
    /// A state machine that has said nothing yet.
    pub fn new(launch: Launch) -> Self {
        let options = Options::new(mode_of(launch.permissions), launch.model.as_deref());
        Self {
            permissions: launch.permissions,
            launch: Arc::new(launch),
            phase: Phase::Opening,
            session: Arc::default(),
            turn: None,
            offered: Vec::new(),
            stream: Stream::default(),
            next_request: 1,
            requests: Vec::new(),
            tools: Tools::default(),
            tasks: Tasks::default(),
            asks: Asks::default(),
            options: Arc::new(options),
            plan: Plan::default(),
            commands: Arc::default(),
            failed_servers: Vec::new(),
        }
    }

    /// How the process is to be started.
    pub fn command_line(&self) -> CommandLine {
        self.arguments()
    }

    /// The frame that ends the session. Unlike most signals it also ends the commands that the agent runs.
    pub fn farewell(&mut self) -> Option<Vec<u8>> {
        let id = self.next_id();
        Some(wire::request(&id, &json!({"subtype": "end_session"})))
    }

    /// Whether the session is over: what the process says then means nothing.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Takes in one line.
    pub(crate) fn line(&mut self, line: &[u8], out: &mut Output) {
        if line.is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return warn(out, format!("The agent sent a line that is not UTF-8: {}", excerpt(line)));
        };
        let Ok(read) = serde_json::from_str::<Line<'_>>(text) else {
            return warn(out, format!("The agent sent a line that cannot be read: {}", excerpt(line)));
        };
        let Some(kind) = &read.kind else {
            return warn(out, format!("The agent sent a line without a type: {}", excerpt(line)));
        };
        let subtype = read.subtype.as_deref().unwrap_or_default();
        match &**kind {
            "stream_event" => self.stream_event(&read, out),
            "assistant" => self.assistant(&read, out),
            "user" => self.user(&read, out),
            "system" => self.system(subtype, text, out),
            "result" => self.result(text, out),
            "control_request" => self.request(&read, out),
            "control_response" => self.response(&read, out),
            "control_cancel_request" => {
                if let Some(key) = &read.request_id {
                    self.cancel_ask(key, out);
                }
            }
            "rate_limit_event" => self.rate_limit(text, out),
            "auth_status" => self.auth_status(text, out),
            // Signs of life, and hints for a prompt box or a summary line.
            "keep_alive" | "tool_progress" | "tool_use_summary" | "prompt_suggestion" => {}
            other => out.signals.push(unknown(other, text)),
        }
    }

    /// Takes in the beginning of a line that was too long.
    pub(crate) fn oversized(&mut self, len: u64, head: &[u8], out: &mut Output) {
        let peek = wire::peek(head);
        let kind = one_line(peek.kind.unwrap_or("message"));
        warn(out, format!("A {kind} of {len} bytes was too long and was left out: {}", excerpt(head)));
        match (peek.kind, peek.request_id) {
            (Some("control_request"), Some(id)) => {
                out.frames.push(wire::refuse(id, &format!("{len} bytes are too many")));
            }
            (Some("result"), _) => self.result_lost(peek.is_error, out),
            _ => {}
        }
    }

    /// Routes a request of the agent's.
    fn request(&mut self, line: &Line<'_>, out: &mut Output) {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default)]
            subtype: Option<Text<'a>>,
        }
        let text = line.request.map_or("null", RawValue::get);
        let (Some(id), Ok(head)) = (&line.request_id, serde_json::from_str::<Head<'_>>(text)) else {
            return warn(
                out,
                format!("The agent made a request that cannot be read: {}", excerpt(text.as_bytes())),
            );
        };
        match head.subtype.as_deref().unwrap_or_default() {
            "can_use_tool" => self.permission(id, text, out),
            "elicitation" => self.elicitation(id, text, out),
            // The protocol's own answer to a dialog that cannot be shown.
            "request_user_dialog" => {
                out.frames.push(wire::reply(id, &json!({"behavior": "cancelled"})));
                out.signals.push(unknown("control_request/request_user_dialog", text));
            }
            other => {
                out.frames.push(wire::refuse(id, &format!("{other} is not known to Consort")));
                out.signals.push(unknown(&format!("control_request/{other}"), text));
            }
        }
    }

    /// Settles a request of ours. An answer to nothing is an echo of our own, which the agent may be told to send.
    fn response(&mut self, line: &Line<'_>, out: &mut Output) {
        #[derive(Deserialize)]
        struct Response<'a> {
            #[serde(borrow)]
            request_id: Text<'a>,
            #[serde(borrow, default)]
            subtype: Option<Text<'a>>,
            #[serde(default)]
            response: Value,
            #[serde(default)]
            error: Option<String>,
        }
        let text = line.response.map_or("null", RawValue::get);
        let Ok(response) = serde_json::from_str::<Response<'_>>(text) else {
            return warn(
                out,
                format!("The agent sent an answer that cannot be read: {}", excerpt(text.as_bytes())),
            );
        };
        let number = response.request_id.strip_prefix(REQUEST_PREFIX).and_then(|id| id.parse::<u64>().ok());
        let index = number.and_then(|id| self.requests.iter().position(|(open, _)| *open == id));
        let Some(index) = index else { return };
        let outcome = match response.subtype.as_deref() {
            Some("error") => Err(response.error.unwrap_or_else(|| "it gave no reason".to_owned())),
            _ => Ok(response.response),
        };
        match self.requests.remove(index).1 {
            Request::Initialize => self.initialized(outcome, out),
            Request::Servers => self.servers_set(outcome, out),
            Request::Interrupt => self.interrupted(outcome, out),
            Request::TakeBack { key } => self.taken_back(&key, outcome, out),
            Request::Mode { value } => self.mode_set(&value, outcome, out),
            Request::Model { value } => self.model_set(&value, outcome, out),
        }
    }

    /// Sends a request and remembers what it was.
    fn send(&mut self, request: Request, body: Value, out: &mut Output) {
        self.requests.push((self.next_request, request));
        let id = self.next_id();
        out.frames.push(wire::request(&id, &body));
    }

    fn next_id(&mut self) -> String {
        let id = format!("{REQUEST_PREFIX}{}", self.next_request);
        self.next_request += 1;
        id
    }
}

/// What our requests are called; the agent's own are UUIDs.
const REQUEST_PREFIX: &str = "consort-";

fn notice(out: &mut Output, level: NoticeLevel, text: impl Into<String>) {
    out.signals.push(Signal::Notice { level, text: text.into() });
}

fn warn(out: &mut Output, text: impl Into<String>) {
    notice(out, NoticeLevel::Warning, text);
}

fn info(out: &mut Output, text: impl Into<String>) {
    notice(out, NoticeLevel::Info, text);
}

/// Something that the driver does not know, kept as it came.
fn unknown(label: &str, raw: &str) -> Signal {
    Signal::Unknown {
        label: one_line(label),
        raw: serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.to_owned())),
    }
}
