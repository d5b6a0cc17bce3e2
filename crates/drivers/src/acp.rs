//! The Agent Client Protocol, version 1, from the client's side.
//!
//! Owns the conversation with one agent process: the handshake, one session, its turns, its asks and its calls to the
//! host. Leaves to the hub when to prompt, who answers, and what a file or terminal is. [`Acp`] is cloned for every
//! batch of frames and serialised when it changed, so it holds what later frames need and never the text of messages.
//!
//! Invariant: every request of the agent is answered exactly once, and every request of ours is settled at most once;
//! a frame that makes no sense changes nothing and gives a notice.

mod asks;
mod calls;
mod handshake;
mod options;
mod quirks;
mod tools;
mod turns;
mod updates;
mod wire;

use std::sync::Arc;

use consort_model::{NoticeLevel, Signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{CallId, HostCall, Launch, Output};
use asks::Asks;
use calls::Calls;
use handshake::{Peer, Way};
use options::{Options, Wanted};
use quirks::Quirks;
use tools::Tools;
use turns::{Tokens, Turn};
use wire::{Envelope, RpcError, SessionParams, code, excerpt};

/// How many foreign sessions get a notice of their own.
const FOREIGN_NOTICES: usize = 8;

/// How many requests of the agent may be open at once. More is a fault of the agent, not work.
const OPEN_REQUESTS: usize = 256;

/// The state machine of one ACP agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Acp {
    launch: Launch,
    phase: Phase,
    /// Who the agent is and what it can do, once it said so.
    peer: Arc<Peer>,
    /// The session, once its id is known.
    session: Option<String>,
    /// A session was taken up and its past may still arrive: it is in our transcript already.
    replaying: bool,
    turn: Option<Turn>,
    /// The message that is being written, where the agent names messages.
    message: Option<String>,
    next_request: u64,
    /// Requests of ours that wait for an answer.
    requests: Vec<(u64, Request)>,
    tools: Tools,
    asks: Asks,
    calls: Calls,
    options: Arc<Options>,
    tokens: Tokens,
    /// Sessions that are not ours and were reported.
    foreign: Vec<String>,
    /// The names of the MCP servers that Consort gave it.
    #[serde(default)]
    own_servers: Arc<[String]>,
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
    Open { way: Way },
    Settle,
    Authenticate,
    Prompt,
    Choose(Wanted),
    Close,
}

/// A request of the agent's.
struct Incoming<'a> {
    /// Its id as it stood in the JSON.
    id: &'a str,
    method: &'a str,
    params: Option<&'a RawValue>,
}

impl Acp {
    /// A state machine that has said nothing yet.
    pub fn new(launch: Launch) -> Self {
        Self {
            tokens: Tokens::since(&launch.used),
            own_servers: launch.mcp_servers.iter().map(|server| server.name.clone()).collect(),
            launch,
            phase: Phase::Opening,
            peer: Arc::default(),
            session: None,
            replaying: false,
            turn: None,
            message: None,
            next_request: 1,
            requests: Vec::new(),
            tools: Tools::default(),
            asks: Asks::default(),
            calls: Calls::default(),
            options: Arc::default(),
            foreign: Vec::new(),
        }
    }

    /// Calls that were handed out and not answered.
    pub fn pending_calls(&self) -> Vec<(CallId, HostCall)> {
        self.calls.pending()
    }

    /// The frame that closes the session, where the agent can.
    pub fn farewell(&mut self) -> Option<Vec<u8>> {
        self.close_session()
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
        if !text.starts_with('[') {
            return self.message(text, out);
        }
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(messages) if !messages.is_empty() => {
                for message in messages {
                    self.message(message.get(), out);
                }
            }
            _ => warn(out, format!("The agent sent a line that is not JSON: {}", excerpt(line))),
        }
    }

    fn message(&mut self, text: &str, out: &mut Output) {
        let envelope: Envelope<'_> = match serde_json::from_str(text) {
            Ok(envelope) => envelope,
            Err(_) => {
                let what = if text.starts_with('{') { "broken JSON" } else { "a line that is not a message" };
                return warn(out, format!("The agent sent {what}: {}", excerpt(text.as_bytes())));
            }
        };
        let id = envelope.id.map(RawValue::get).filter(|id| *id != "null");
        match (envelope.method, id) {
            (Some(method), Some(id)) => {
                let request = Incoming { id, method: &method.0, params: envelope.params };
                self.request(&request, out);
            }
            (Some(method), None) => self.notified(&method.0, envelope.params, out),
            (None, Some(id)) => match (envelope.result, envelope.error.filter(|error| error.get() != "null"))
            {
                (_, Some(error)) => self.response(id, Err(RpcError::read(error)), out),
                (Some(result), None) => self.response(id, Ok(result.get()), out),
                (None, None) => {
                    warn(out, format!("The agent sent an empty answer: {}", excerpt(text.as_bytes())));
                }
            },
            (None, None) => match envelope.error {
                Some(error) => {
                    let error = RpcError::read(error).sentence();
                    warn(out, format!("The agent did not understand a message: {error}"));
                }
                None => {
                    warn(out, format!("The agent sent no JSON-RPC message: {}", excerpt(text.as_bytes())))
                }
            },
        }
    }

    /// Takes in the beginning of a line that was too long.
    pub(crate) fn oversized(&mut self, len: u64, head: &[u8], out: &mut Output) {
        let peek = wire::peek(head);
        let method = peek.as_ref().and_then(|peek| peek.method).unwrap_or("message");
        warn(out, format!("A {method} of {len} bytes was too long and was left out: {}", excerpt(head)));
        let Some(id) = peek.as_ref().and_then(|peek| peek.id) else { return };
        let error = RpcError {
            code: code::INVALID_REQUEST,
            message: format!("{len} bytes are too many"),
            data: Value::Null,
        };
        match peek.as_ref().and_then(|peek| peek.method) {
            Some(_) => out.frames.push(wire::refuse(id, error.code, &error.message, Value::Null)),
            // Whatever it answered is settled by this: a turn must not wait for an answer that was thrown away.
            None => self.response(id, Err(error), out),
        }
    }

    /// Routes a request of the agent's.
    fn request(&mut self, request: &Incoming<'_>, out: &mut Output) {
        if self.asks.len() + self.calls.len() >= OPEN_REQUESTS {
            let message = format!("more than {OPEN_REQUESTS} requests are open");
            return out.frames.push(wire::refuse(request.id, code::INVALID_REQUEST, &message, Value::Null));
        }
        match request.method {
            "session/request_permission" => self.permission(request, out),
            "elicitation/create" => self.elicitation(request, out),
            method if calls::knows(method) => self.host_call(request, out),
            method => {
                let message = format!("{method} is not known to Consort");
                out.frames.push(wire::refuse(request.id, code::METHOD_NOT_FOUND, &message, Value::Null));
                out.signals.push(unknown(method, request.params.map_or("null", RawValue::get)));
            }
        }
    }

    /// Routes a notification of the agent's.
    fn notified(&mut self, method: &str, params: Option<&RawValue>, out: &mut Output) {
        let params = params.map_or("null", RawValue::get);
        match method {
            "session/update" => self.session_update(params, out),
            "elicitation/complete" => self.elicitation_complete(params, out),
            "$/cancel_request" => self.cancel_request(params, out),
            // The protocol's own small print; what is not understood may be passed over.
            method if method.starts_with("$/") => {}
            method => out.signals.push(unknown(method, params)),
        }
    }

    /// Settles a request of ours.
    fn response(&mut self, id: &str, outcome: Result<&str, RpcError>, out: &mut Output) {
        let known = id
            .trim_matches('"')
            .parse::<u64>()
            .ok()
            .and_then(|id| self.requests.iter().position(|(open, _)| *open == id));
        let Some(index) = known else {
            return warn(out, format!("The agent answered {}, which nothing asked.", excerpt(id.as_bytes())));
        };
        match self.requests.remove(index).1 {
            Request::Initialize => self.initialized(outcome, out),
            Request::Open { way } => self.opened(way, outcome, out),
            // Known or not, it was answered.
            Request::Settle => self.settled(out),
            Request::Authenticate => self.authenticated(outcome, out),
            Request::Prompt => self.turn_ended(outcome, out),
            Request::Choose(wanted) => self.chosen(&wanted, outcome, out),
            Request::Close => {}
        }
    }

    /// The agent takes back a request of its own.
    fn cancel_request(&mut self, params: &str, out: &mut Output) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Ok(Params { request_id }) = serde_json::from_str(params) else {
            return warn(
                out,
                format!("The agent took back a request it did not name: {}", excerpt(params.as_bytes())),
            );
        };
        let id = request_id.get();
        if self.asks.take(id).is_some() {
            out.signals.push(Signal::AskWithdrawn { key: id.to_owned() });
        } else if !self.calls.forget(id) {
            return;
        }
        out.frames.push(wire::refuse(id, code::CANCELLED, "the request was cancelled", Value::Null));
    }

    /// Sends a request and remembers what it was.
    fn send(&mut self, request: Request, method: &str, params: impl Serialize, out: &mut Output) -> u64 {
        let id = self.next_request;
        self.next_request += 1;
        self.requests.push((id, request));
        out.frames.push(wire::request(id, method, params));
        id
    }

    fn quirks(&self) -> Quirks {
        Quirks::of(&self.peer.name)
    }

    /// Reads a request's parameters, refusing the request if they cannot be read or speak of another session.
    fn params<T: DeserializeOwned>(&self, request: &Incoming<'_>, out: &mut Output) -> Option<T> {
        let text = request.params.map_or("null", RawValue::get);
        let refusal = match serde_json::from_str::<T>(text) {
            Ok(params) if self.is_ours(text) => return Some(params),
            Ok(_) => "the session is not known to Consort".to_owned(),
            Err(error) => format!("the parameters of {} cannot be read: {error}", request.method),
        };
        out.frames.push(wire::refuse(request.id, code::INVALID_PARAMS, &refusal, Value::Null));
        warn(out, format!("A {} of the agent was refused: {}", request.method, wire::one_line(&refusal)));
        None
    }

    /// Whether these parameters speak of our session, or of none.
    fn is_ours(&self, params: &str) -> bool {
        match serde_json::from_str::<SessionParams<'_>>(params) {
            Ok(SessionParams { session: Some(session) }) => self.session.as_deref() == Some(&*session.0),
            Ok(SessionParams { session: None }) => true,
            Err(_) => false,
        }
    }
}

fn notice(out: &mut Output, level: NoticeLevel, text: impl Into<String>) {
    out.signals.push(Signal::Notice { level, text: text.into() });
}

fn warn(out: &mut Output, text: impl Into<String>) {
    notice(out, NoticeLevel::Warning, text);
}

fn unknown(label: &str, raw: &str) -> Signal {
    let raw = serde_json::from_str(raw).unwrap_or_else(|_| Value::String(excerpt(raw.as_bytes())));
    Signal::Unknown { label: wire::title_of(label), raw }
}
