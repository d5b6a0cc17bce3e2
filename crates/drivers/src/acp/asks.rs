//! Asks: approvals, questions and logins that wait for a person.
//!
//! Owns which are open and turns a person's answer into the agent's. An ask goes by the id of the agent's request, as
//! it stood in the JSON, so that `1` and `"1"` stay apart; a login, which is no request, goes by a name of ours.

use agent_client_protocol_schema::v1;
use consort_model::{Answer, AnswerOption, AskBody, OptionKind, Question, Signal, ToolCall, ToolKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::tools::Piece;
use super::wire::{self, code, one_line, title_of};
use super::{Acp, Incoming, warn};
use crate::Output;

/// The open asks, oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Asks(Vec<(String, Open)>);

/// What an open ask needs for its answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Open {
    Permission { tool: String, options: Vec<AnswerOption> },
    Form { schema: Value },
    Page { elicitation: String },
    Login { why: String },
}

impl Asks {
    pub fn open(&mut self, key: String, ask: Open) {
        self.0.push((key, ask));
    }

    pub fn take(&mut self, key: &str) -> Option<Open> {
        let index = self.0.iter().position(|(open, _)| open == key)?;
        Some(self.0.remove(index).1)
    }

    pub fn holds(&self, key: &str) -> bool {
        self.0.iter().any(|(open, _)| open == key)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn page(&self, elicitation: &str) -> Option<String> {
        let is_it = |ask: &Open| matches!(ask, Open::Page { elicitation: id } if id == elicitation);
        self.0.iter().find(|(_, ask)| is_it(ask)).map(|(key, _)| key.clone())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission {
    tool_call: Box<RawValue>,
    options: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation {
    #[serde(default)]
    mode: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    elicitation_id: String,
}

/// The answer that lets an agent use the tools of Consort's own servers, where it asks about one of them. Taken from what
/// programs say by themselves; what a model may word, such as a title, does not count.
fn own_tool(servers: &[String], tool: &ToolCall, options: &[AnswerOption]) -> Option<String> {
    let offered = |id: &str| options.iter().find(|option| option.id == id).map(|option| option.id.clone());
    let of_server = |name: &str, before: &str, after: &str| {
        let rest = name.strip_prefix(before);
        servers.iter().any(|server| {
            rest.and_then(|rest| rest.strip_prefix(server.as_str()))
                .is_some_and(|rest| rest.starts_with(after))
        })
    };
    if tool.tool != ToolKind::Other {
        return None;
    }
    // Gemini CLI names its calls itself, and offers this for tools of MCP servers alone.
    let titled = || servers.iter().any(|server| tool.title.ends_with(&format!(" ({server} MCP Server)")));
    if let Some(option) = offered("proceed_always_server")
        && of_server(tool.id.as_str(), "mcp_", "_")
        && titled()
    {
        return Some(option);
    }
    // Claude behind its adapter. It may ask before it tells of the call; then the option that it words itself has the name.
    let always = || {
        let option = options.iter().find(|option| option.id == "allow_always")?;
        option.name.strip_prefix("Always Allow all ")
    };
    let name = tool.meta["claudeCode"]["toolName"].as_str().or_else(always)?;
    let once =
        || options.iter().find(|option| option.kind == OptionKind::AllowOnce).map(|option| option.id.clone());
    if of_server(name, "mcp__", "__") { once() } else { None }
}

impl Acp {
    pub(super) fn permission(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let Some(permission) = self.params::<Permission>(request, out) else { return };
        let Ok(piece) = serde_json::from_str::<Piece<'_>>(permission.tool_call.get()) else {
            let message = "the approval names no tool call";
            out.frames.push(wire::refuse(request.id, code::INVALID_PARAMS, message, Value::Null));
            return warn(out, "The agent asked for an approval of nothing, which was refused.");
        };
        if self.refuse_twice(request, out) {
            return;
        }
        let options: Vec<AnswerOption> = permission.options.into_iter().filter_map(answer_option).collect();
        let Some(tool) = self.tool_piece(&piece, out) else {
            let message = "the tool call has ended";
            out.frames.push(wire::refuse(request.id, code::INVALID_PARAMS, message, Value::Null));
            return;
        };
        if let Some(option) = own_tool(&self.own_servers, &tool, &options) {
            // Consort's own tools check for themselves what they may do.
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
            return out.frames.push(wire::reply(request.id, outcome));
        }
        let key = request.id.to_owned();
        self.asks.open(key.clone(), Open::Permission { tool: tool.id.to_string(), options: options.clone() });
        let title = title_of(&tool.title);
        let body = AskBody::Approval { tool: (*tool).clone(), options };
        out.signals.push(Signal::Ask { key, title, body });
    }

    pub(super) fn elicitation(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let Some(asked) = self.params::<Elicitation>(request, out) else { return };
        if self.refuse_twice(request, out) {
            return;
        }
        let key = request.id.to_owned();
        let title = title_of(&asked.message);
        let (open, schema, url) = match (asked.mode.as_str(), asked.url) {
            ("url", Some(url)) => (Open::Page { elicitation: asked.elicitation_id }, Value::Null, Some(url)),
            ("form" | "", _) => {
                (Open::Form { schema: asked.requested_schema.clone() }, asked.requested_schema, None)
            }
            (mode, _) => {
                let message = format!("questions of the mode {mode} are not known to Consort");
                out.frames.push(wire::refuse(request.id, code::INVALID_PARAMS, &message, Value::Null));
                return warn(out, format!("The agent asked in a way that is not known: {}", one_line(mode)));
            }
        };
        self.asks.open(key.clone(), open);
        let body = AskBody::Question(Question { text: asked.message, schema, url });
        out.signals.push(Signal::Ask { key, title, body });
    }

    /// The page was dealt with elsewhere, so nobody needs to answer here.
    pub(super) fn elicitation_complete(&mut self, params: &str, out: &mut Output) {
        let Ok(done) = serde_json::from_str::<v1::CompleteElicitationNotification>(params) else { return };
        if let Some(key) = self.asks.page(&done.elicitation_id.0) {
            self.asks.take(&key);
            out.frames.push(wire::reply(&key, json!({"action": "accept"})));
            out.signals.push(Signal::AskWithdrawn { key });
        }
    }

    /// An id that is in use cannot be told from its first use.
    fn refuse_twice(&self, request: &Incoming<'_>, out: &mut Output) -> bool {
        let twice = self.asks.holds(request.id);
        if twice {
            warn(out, "The agent asked twice under one id; the second ask was left out.");
        }
        twice
    }

    pub(crate) fn answer_ask(&mut self, key: &str, answer: &Answer, out: &mut Output) {
        match self.asks.take(key) {
            Some(Open::Permission { tool, options }) => {
                self.answer_permission(key, &tool, &options, answer, out)
            }
            Some(Open::Form { schema }) => out.frames.push(wire::reply(key, form_answer(&schema, answer))),
            Some(Open::Page { .. }) => {
                let action = match answer {
                    Answer::Deny { .. } => "decline",
                    Answer::Stop => "cancel",
                    Answer::Allow { .. } | Answer::Choose { .. } | Answer::Reply { .. } => "accept",
                };
                out.frames.push(wire::reply(key, json!({"action": action})));
            }
            Some(Open::Login { why }) => return self.answer_login(&why, answer, out),
            None => return,
        }
        if *answer == Answer::Stop {
            self.stop_turn(out);
        }
    }

    fn answer_permission(
        &mut self,
        key: &str,
        tool: &str,
        options: &[AnswerOption],
        answer: &Answer,
        out: &mut Output,
    ) {
        let of_kind = |kinds: [OptionKind; 2]| {
            kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
        };
        let named = |name: &str| {
            let by_id = options.iter().find(|option| option.id == name);
            by_id.or_else(|| options.iter().find(|option| option.name.eq_ignore_ascii_case(name)))
        };
        let reject = || of_kind([OptionKind::RejectOnce, OptionKind::RejectAlways]);
        let mut message = None;
        let chosen = match answer {
            Answer::Allow { .. } => of_kind([OptionKind::AllowOnce, OptionKind::AllowAlways]),
            Answer::Deny { message: why } => {
                message = why.as_deref();
                reject()
            }
            Answer::Stop => None,
            Answer::Choose { option } => named(option),
            Answer::Reply { value } => match value.as_str() {
                Some(text) if named(text).is_some() => named(text),
                // Words instead of a yes are a no with a reason.
                text => {
                    message = text;
                    reject()
                }
            },
        };
        if chosen.is_none() && matches!(answer, Answer::Allow { .. } | Answer::Choose { .. }) {
            warn(out, "The agent does not offer that answer, so the call was not allowed.");
        }
        let outcome = match chosen {
            Some(option) => json!({"outcome": "selected", "optionId": option.id}),
            None => json!({"outcome": "cancelled"}),
        };
        let mut response = json!({"outcome": outcome});
        if let Some(message) = message.filter(|message| !message.trim().is_empty()) {
            response["_meta"] = json!({"consort": {"message": message}});
            out.follow_up = Some(message.to_owned());
        }
        out.frames.push(wire::reply(key, response));
        let denied = chosen.is_none_or(|option| !option.kind.allows());
        if denied
            && self.quirks().denied_call_stays_silent
            && let Some(call) = self.tools.fail(tool)
        {
            self.tell_tool(&call, out);
        }
    }

    /// Answers all open asks of the session as cancelled.
    pub(super) fn cancel_asks(&mut self, out: &mut Output) {
        for (key, ask) in std::mem::take(&mut self.asks.0) {
            let answer = match ask {
                Open::Permission { .. } => json!({"outcome": {"outcome": "cancelled"}}),
                Open::Form { .. } | Open::Page { .. } => json!({"action": "cancel"}),
                Open::Login { .. } => {
                    self.asks.open(key, ask);
                    continue;
                }
            };
            out.frames.push(wire::reply(&key, answer));
            out.signals.push(Signal::AskWithdrawn { key });
        }
    }
}

fn answer_option(option: Value) -> Option<AnswerOption> {
    let option = serde_json::from_value::<v1::PermissionOption>(option).ok()?;
    let kind = match option.kind {
        v1::PermissionOptionKind::AllowOnce => OptionKind::AllowOnce,
        v1::PermissionOptionKind::AllowAlways => OptionKind::AllowAlways,
        v1::PermissionOptionKind::RejectOnce => OptionKind::RejectOnce,
        v1::PermissionOptionKind::RejectAlways => OptionKind::RejectAlways,
        _ => return None,
    };
    Some(AnswerOption { id: option.option_id.to_string(), name: option.name, kind })
}

fn form_answer(schema: &Value, answer: &Answer) -> Value {
    match answer {
        Answer::Reply { value: Value::Object(fields) } => json!({"action": "accept", "content": fields}),
        Answer::Reply { value } => json!({"action": "accept", "content": fill_in(schema, value)}),
        Answer::Choose { option } => {
            json!({"action": "accept", "content": fill_in(schema, &Value::String(option.clone()))})
        }
        Answer::Allow { .. } => json!({"action": "accept", "content": {}}),
        Answer::Deny { .. } => json!({"action": "decline"}),
        Answer::Stop => json!({"action": "cancel"}),
    }
}

/// A plain answer put into the form: into the first field that offers it, else into the first that takes any of its
/// kind, else into the first.
fn fill_in(schema: &Value, answer: &Value) -> Map<String, Value> {
    if let Some(Ok(Value::Object(fields))) = answer.as_str().map(serde_json::from_str) {
        return fields;
    }
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return Map::new() };
    let offers = |field: &&String| choices(&fields[*field]).contains(&answer);
    let takes = |field: &&String| {
        let schema = &fields[*field];
        choices(schema).is_empty()
            && match schema.get("type").and_then(Value::as_str) {
                Some("string") => answer.is_string(),
                Some("boolean") => answer.is_boolean(),
                Some("integer" | "number") => answer.is_number(),
                _ => false,
            }
    };
    let field =
        fields.keys().find(offers).or_else(|| fields.keys().find(takes)).or_else(|| fields.keys().next());
    let Some(field) = field else { return Map::new() };
    let several = fields[field].get("type").and_then(Value::as_str) == Some("array") && !answer.is_array();
    let value = if several { json!([answer]) } else { answer.clone() };
    Map::from_iter([(field.clone(), value)])
}

/// What a field offers to choose from.
fn choices(field: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for schema in [Some(field), field.get("items")].into_iter().flatten() {
        found.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten());
        for key in ["oneOf", "anyOf"] {
            let options = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            found.extend(options.filter_map(|option| option.get("const")));
        }
    }
    found
}
