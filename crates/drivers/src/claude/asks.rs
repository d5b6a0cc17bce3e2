//! Asks: approvals, plans, questions and forms that wait for a person.
//!
//! Owns which are open and turns a person's answer into the agent's. An ask goes by the id of the agent's request. It
//! holds what its answer must give back: the agent wants the whole input again with every allowance.

use std::sync::Arc;

use consort_model::{
    Answer, AnswerOption, AskBody, OptionKind, PermissionMode, Question, Signal, ToolCallId, ToolStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::questions;
use super::suggestions;
use super::tools::Piece;
use super::wire::{self, one_line, title_of};
use super::{Claude, warn};
use crate::Output;

/// How many asks may be open at once. More is a fault of the agent, not work.
const OPEN_ASKS: usize = 256;

/// What a denial says to the model where a person said nothing.
const DENIED: &str = "The user does not allow this. Do something else, or ask the user what to do.";

const ALLOW: &str = "allow";
const ACCEPT_EDITS: &str = "accept-edits";
const DENY: &str = "deny";

/// The open asks, oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Asks(Vec<(String, Arc<Open>)>);

/// What an open ask needs for its answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Open {
    /// May this call run; also a plan or a question, by the tool's name.
    Tool(Permission),
    /// A form or page of an MCP server.
    Form { message: String, schema: Value, url: Option<String> },
}

/// The agent's request to use a tool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Permission {
    tool_name: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    permission_suggestions: Option<Vec<Value>>,
    #[serde(default)]
    decision_reason: Option<String>,
    #[serde(default)]
    tool_use_id: Option<String>,
    /// The task of the sub-agent that asks.
    #[serde(default)]
    agent_id: Option<String>,
}

#[derive(Deserialize)]
struct Elicitation {
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
    #[serde(default)]
    url: Option<String>,
}

impl Asks {
    fn take(&mut self, key: &str) -> Option<Arc<Open>> {
        let index = self.0.iter().position(|(open, _)| open == key)?;
        Some(self.0.remove(index).1)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Permission {
    fn tool<'a>(&'a self, key: &'a str) -> &'a str {
        self.tool_use_id.as_deref().unwrap_or(key)
    }

    fn suggestions(&self) -> &[Value] {
        self.permission_suggestions.as_deref().unwrap_or_default()
    }

    fn is_question(&self) -> bool {
        self.tool_name == "AskUserQuestion" && !questions::read(&self.input).is_empty()
    }

    fn is_plan(&self) -> bool {
        self.tool_name == "ExitPlanMode"
    }

    fn options(&self) -> Vec<AnswerOption> {
        let option =
            |id: &str, name: &str, kind| AnswerOption { id: id.to_owned(), name: name.to_owned(), kind };
        if self.is_plan() {
            return vec![
                option(ALLOW, "Approve, and ask before each edit", OptionKind::AllowOnce),
                option(ACCEPT_EDITS, "Approve, and allow all edits in this session", OptionKind::AllowAlways),
                option(DENY, "Keep planning", OptionKind::RejectOnce),
            ];
        }
        let mut options = vec![option(ALLOW, "Allow", OptionKind::AllowOnce)];
        options.extend(suggestions::options(self.suggestions()));
        options.push(option(DENY, "Deny", OptionKind::RejectOnce));
        options
    }
}

/// A person's answer to an approval, as the agent needs it.
enum Decision<'a> {
    Allow {
        edited: Option<&'a Value>,
        updates: Vec<Value>,
    },
    Deny {
        message: Option<&'a str>,
    },
    Stop,
    /// It is not one of the answers.
    Unknown,
}

impl Claude {
    /// The agent asks to use a tool.
    pub(super) fn permission(&mut self, key: &str, request: &str, out: &mut Output) {
        let Some(permission) = self.read_ask::<Permission>(key, request, out) else { return };
        let within = self.within_task(permission.agent_id.as_deref());
        self.tools.add(
            Piece {
                id: permission.tool(key),
                name: &permission.tool_name,
                input: Some(permission.input.clone()),
                status: ToolStatus::Pending,
                within,
                reason: permission.decision_reason.clone(),
            },
            out,
        );
        let open = Arc::new(Open::Tool(permission));
        self.asks.0.push((key.to_owned(), Arc::clone(&open)));
        self.tell_ask(key, &open, out);
    }

    /// An MCP server asks through the agent.
    pub(super) fn elicitation(&mut self, key: &str, request: &str, out: &mut Output) {
        let Some(asked) = self.read_ask::<Elicitation>(key, request, out) else { return };
        let Elicitation { message, requested_schema: schema, url } = asked;
        let open = Arc::new(Open::Form { message, schema, url });
        self.asks.0.push((key.to_owned(), Arc::clone(&open)));
        self.tell_ask(key, &open, out);
    }

    fn read_ask<'a, T: Deserialize<'a>>(&self, key: &str, request: &'a str, out: &mut Output) -> Option<T> {
        let refusal = if self.asks.0.iter().any(|(open, _)| open == key) {
            // An id that is in use cannot be told from its first use, so it cannot be answered either.
            warn(out, "The agent asked twice under one id; the second ask was left out.");
            return None;
        } else if self.asks.0.len() >= OPEN_ASKS {
            format!("more than {OPEN_ASKS} requests are open")
        } else {
            match serde_json::from_str(request) {
                Ok(asked) => return Some(asked),
                Err(error) => format!("the request cannot be read: {error}"),
            }
        };
        out.frames.push(wire::refuse(key, &refusal));
        warn(out, format!("A request of the agent was refused: {}", one_line(&refusal)));
        None
    }

    fn tell_ask(&self, key: &str, open: &Open, out: &mut Output) {
        let (title, body) = match open {
            Open::Tool(permission) if permission.is_question() => {
                let question = questions::question(&questions::read(&permission.input));
                (title_of(&question.text), AskBody::Question(question))
            }
            Open::Tool(permission) => {
                let Some(tool) = self.tools.call(permission.tool(key)) else { return };
                let title = title_of(&tool.title);
                (title, AskBody::Approval { tool, options: permission.options() })
            }
            Open::Form { message, schema, url } => {
                let question = Question { text: message.clone(), schema: schema.clone(), url: url.clone() };
                (title_of(message), AskBody::Question(question))
            }
        };
        out.signals.push(Signal::Ask { key: key.to_owned(), title, body });
    }

    /// The agent does not wait for that answer any more.
    pub(super) fn cancel_ask(&mut self, key: &str, out: &mut Output) {
        if self.asks.take(key).is_some() {
            out.signals.push(Signal::AskWithdrawn { key: key.to_owned() });
        }
    }

    /// The turn was told to stop: whatever it asked is denied. The agent takes its requests back itself and ignores a
    /// late answer; an answer is sent all the same, so that none can be left waiting.
    pub(super) fn cancel_asks(&mut self, out: &mut Output) {
        let asks = std::mem::take(&mut self.asks.0);
        let (kept, cancelled) = asks.into_iter().partition(|(_, ask)| self.outlives_turn(ask));
        self.asks.0 = kept;
        for (key, ask) in cancelled {
            let answer = match &*ask {
                Open::Tool(_) => denial(DENIED, true),
                Open::Form { .. } => json!({"action": "cancel"}),
            };
            out.frames.push(wire::reply(&key, &answer));
            out.signals.push(Signal::AskWithdrawn { key });
        }
    }

    /// The turn is over: forgets its asks. Those of sub-agents in the background outlive it.
    pub(super) fn forget_asks(&mut self) {
        let asks = std::mem::take(&mut self.asks.0);
        self.asks.0 = asks.into_iter().filter(|(_, ask)| self.outlives_turn(ask)).collect();
    }

    /// Asks again what is still open: the end of a turn settles every ask.
    pub(super) fn ask_again(&self, out: &mut Output) {
        for (key, ask) in &self.asks.0 {
            self.tell_ask(key, ask, out);
        }
    }

    /// Whether an approval of this call is open.
    pub(super) fn asks_for(&self, tool: &str) -> bool {
        let is_it = |ask: &Open| matches!(ask, Open::Tool(permission) if permission.tool_use_id.as_deref() == Some(tool));
        self.asks.0.iter().any(|(_, ask)| is_it(ask))
    }

    fn outlives_turn(&self, ask: &Open) -> bool {
        match ask {
            Open::Tool(permission) => {
                permission.agent_id.as_ref().is_some_and(|task| self.in_background(task))
            }
            Open::Form { .. } => false,
        }
    }

    fn within_task(&self, task: Option<&str>) -> Option<ToolCallId> {
        self.tasks.tool(task?).map(ToolCallId::new)
    }

    pub(crate) fn answer_ask(&mut self, key: &str, answer: &Answer, out: &mut Output) {
        let Some(ask) = self.asks.take(key) else { return };
        match &*ask {
            Open::Tool(permission) if permission.is_question() => {
                out.frames.push(wire::reply(key, &question_answer(&permission.input, answer)));
            }
            Open::Tool(permission) => self.answer_permission(key, permission, answer, out),
            Open::Form { schema, .. } => out.frames.push(wire::reply(key, &form_answer(schema, answer))),
        }
        if *answer == Answer::Stop {
            self.stop_turn(out);
        }
    }

    fn answer_permission(&mut self, key: &str, permission: &Permission, answer: &Answer, out: &mut Output) {
        let response = match decide(permission, answer) {
            Decision::Allow { edited, mut updates } => {
                let input = edited.unwrap_or(&permission.input);
                self.tools.runs(permission.tool(key), edited, out);
                if permission.is_plan() {
                    let edits = matches!(answer, Answer::Choose { option } if option == ACCEPT_EDITS);
                    updates.push(self.leave_plan(edits, out));
                }
                let mut response = json!({"behavior": "allow", "updatedInput": object(input)});
                if !updates.is_empty() {
                    response["updatedPermissions"] = Value::Array(updates);
                }
                response
            }
            Decision::Deny { message } => {
                denial(message.filter(|message| !message.trim().is_empty()).unwrap_or(DENIED), false)
            }
            Decision::Stop => denial(DENIED, true),
            Decision::Unknown => {
                warn(out, "The agent does not offer that answer, so the call was not allowed.");
                denial(DENIED, false)
            }
        };
        out.frames.push(wire::reply(key, &response));
    }

    /// A person approved the plan: the agent leaves plan mode, and Consort with it, or it would deny every edit.
    fn leave_plan(&mut self, edits: bool, out: &mut Output) -> Value {
        let (mode, permissions) = if edits {
            ("acceptEdits", PermissionMode::AcceptEdits)
        } else {
            ("default", PermissionMode::Default)
        };
        if self.permissions == PermissionMode::Plan {
            self.permissions = permissions;
            out.signals.push(Signal::Permissions(permissions));
        }
        json!({"type": "setMode", "mode": mode, "destination": "session"})
    }
}

fn decide<'a>(permission: &Permission, answer: &'a Answer) -> Decision<'a> {
    let allow = || Decision::Allow { edited: None, updates: Vec::new() };
    let choose = |wanted: &str| {
        let options = permission.options();
        let by_id = options.iter().find(|option| option.id == wanted);
        let by_name = || options.iter().find(|option| option.name.eq_ignore_ascii_case(wanted));
        match by_id.or_else(by_name).map(|option| option.id.as_str()) {
            Some(DENY) => Some(Decision::Deny { message: None }),
            Some(ALLOW | ACCEPT_EDITS) => Some(allow()),
            Some(other) => {
                let updates = suggestions::updates(permission.suggestions(), other)?;
                Some(Decision::Allow { edited: None, updates })
            }
            None => None,
        }
    };
    match answer {
        // How far a grant reaches beyond this call is kept by Consort's own rules.
        Answer::Allow { .. } => allow(),
        Answer::Deny { message } => Decision::Deny { message: message.as_deref() },
        Answer::Choose { option } => choose(option).unwrap_or(Decision::Unknown),
        Answer::Reply { value: edited @ Value::Object(_) } => {
            Decision::Allow { edited: Some(edited), updates: Vec::new() }
        }
        // Words instead of a yes are a no with a reason.
        Answer::Reply { value } => {
            let words = value.as_str();
            words.and_then(choose).unwrap_or(Decision::Deny { message: words })
        }
        Answer::Stop => Decision::Stop,
    }
}

/// The agent takes nothing but an object as an input.
fn object(input: &Value) -> Value {
    if input.is_object() { input.clone() } else { Value::Object(Map::new()) }
}

fn denial(message: &str, interrupt: bool) -> Value {
    json!({"behavior": "deny", "message": message, "interrupt": interrupt})
}

fn question_answer(input: &Value, answer: &Answer) -> Value {
    let text;
    let value = match answer {
        Answer::Reply { value } => value,
        Answer::Choose { option } => {
            text = Value::String(option.clone());
            &text
        }
        Answer::Allow { .. } => &Value::Null,
        Answer::Deny { message } => return denial(message.as_deref().unwrap_or(DENIED), false),
        Answer::Stop => return denial(DENIED, true),
    };
    let answers = questions::answers(&questions::read(input), value);
    let mut updated = object(input);
    if !answers.is_empty() {
        updated["answers"] = Value::Object(answers);
    }
    json!({"behavior": "allow", "updatedInput": updated})
}

fn form_answer(schema: &Value, answer: &Answer) -> Value {
    let text;
    let value = match answer {
        Answer::Reply { value } => value,
        Answer::Choose { option } => {
            text = Value::String(option.clone());
            &text
        }
        Answer::Allow { .. } => return json!({"action": "accept", "content": {}}),
        Answer::Deny { .. } => return json!({"action": "decline"}),
        Answer::Stop => return json!({"action": "cancel"}),
    };
    if value.is_object() {
        return json!({"action": "accept", "content": value});
    }
    // A plain answer to a form is an answer to its first field.
    let fields = schema.get("properties").and_then(Value::as_object);
    let content = fields.and_then(|fields| fields.keys().next()).map(|field| (field.clone(), value.clone()));
    json!({"action": "accept", "content": Map::from_iter(content)})
}
