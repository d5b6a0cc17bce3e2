//! Answers in the form of each API: streamed, whole, or an error.
//!
//! Everything is rendered before the first byte is sent, so that streaming costs the server little beside a client that
//! is measured. One file for each API; when an event goes out is left to the server.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::{Value, json};
use uuid::Uuid;

use super::choose::Chosen;
use super::conversation::{Api, Conversation};
use super::dialect::{self, Act, Input, ToolUse};
use super::script::{Failure, Usage};

/// What the model says, with nothing left to decide.
#[derive(Clone, Debug)]
pub struct Reply {
    pub model: String,
    pub thinking: Vec<String>,
    pub text: Vec<String>,
    /// Each with its id. Ids are never used twice: a CLI's sub-agents share one space of them with it.
    pub uses: Vec<(String, ToolUse)>,
    pub usage: Usage,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub bytes: Vec<u8>,
    /// Carries a piece of the answer: what a stream is paced by, and what it is cut after.
    pub delta: bool,
}

impl Reply {
    /// Fills in a step and gives its acts to the tools that are offered.
    pub fn new(chosen: &Chosen, conversation: &Conversation) -> Self {
        let step = &chosen.step;
        let filled = step.text.as_deref().map(|text| chosen.words.fill(text)).unwrap_or_default();
        let mut text = repeated(&filled, step.repeat);
        let mut uses = Vec::new();
        for call in &step.calls {
            match dialect::act(call, &conversation.tools, &chosen.words) {
                Act::Uses(acts) => uses.extend(acts.into_iter().map(|act| (fresh("call"), act))),
                Act::Nothing => {}
                Act::Says(words) => {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(&words);
                }
            }
        }
        let thinking = step.thinking.as_deref().map(|text| chosen.words.fill(text)).unwrap_or_default();
        Self {
            model: conversation.model.clone(),
            thinking: pieces(&thinking, step.chunk),
            text: pieces(&text, step.chunk),
            uses,
            usage: step.usage,
        }
    }

    /// The events of the streamed answer.
    pub fn events(&self, api: Api) -> Vec<Event> {
        match api {
            Api::Messages => messages::events(self),
            Api::Responses => responses::events(self),
            Api::Chat => chat::events(self),
            Api::Gemini => gemini::events(self),
        }
    }

    /// The answer to a client that does not stream.
    pub fn whole(&self, api: Api) -> Value {
        match api {
            Api::Messages => messages::whole(self),
            Api::Responses => responses::whole(self),
            Api::Chat => chat::whole(self),
            Api::Gemini => gemini::whole(self),
        }
    }
}

/// The body of an error.
pub fn failure(api: Api, failure: &Failure) -> Value {
    if let Some(body) = &failure.body {
        return body.clone();
    }
    let message = failure.message.clone().unwrap_or_else(|| format!("Scripted: status {}.", failure.status));
    let of_openai =
        |kind: &str| json!({"error": {"message": message, "type": kind, "param": null, "code": kind}});
    match (api, failure.status) {
        (Api::Messages, status) => {
            let kind = match status {
                400 => "invalid_request_error",
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": fresh("req")})
        }
        (Api::Gemini, status) => {
            let name = match status {
                400 => "INVALID_ARGUMENT",
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 | 529 => "UNAVAILABLE",
                _ => "INTERNAL",
            };
            json!({"error": {"code": status, "message": message, "status": name}})
        }
        (_, 400) => of_openai("invalid_request_error"),
        (_, 401) => of_openai("invalid_api_key"),
        (_, 429) => of_openai("rate_limit_exceeded"),
        (_, _) => of_openai("server_error"),
    }
}

/// An id that nothing else has.
fn fresh(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

/// A text so many times, with `{n}` counting: some clients stop an answer that only repeats itself.
fn repeated(text: &str, times: usize) -> String {
    match times {
        1 => text.to_owned(),
        _ if text.contains("{n}") => (1..=times).map(|n| text.replace("{n}", &n.to_string())).collect(),
        _ => text.repeat(times),
    }
}

/// A text in pieces of so many characters; none where there is no text.
fn pieces(text: &str, chunk: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chunk).map_or(rest.len(), |(at, _)| at);
        let (piece, left) = rest.split_at(end);
        pieces.push(piece.to_owned());
        rest = left;
    }
    pieces
}

fn named(data: &Value) -> Event {
    let name = data["type"].as_str().unwrap_or_default();
    Event { bytes: format!("event: {name}\ndata: {data}\n\n").into_bytes(), delta: false }
}

fn unnamed(data: &Value) -> Event {
    Event { bytes: format!("data: {data}\n\n").into_bytes(), delta: false }
}

impl Event {
    fn into_delta(mut self) -> Self {
        self.delta = true;
        self
    }
}

/// A call's input as JSON, whatever the tool takes.
fn input_json(input: &Input) -> Value {
    match input {
        Input::Json(map) => Value::Object(map.clone()),
        Input::Text(text) => json!({"input": text}),
    }
}
