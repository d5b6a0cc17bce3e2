//! Tool calls, put together from their pieces.
//!
//! The protocol announces a call and then sends what changed; an approval may be the first that is heard of it. Owned
//! here are the whole calls of the turn, as far as later pieces may need them: unfinished ones and the last few that
//! ended. Everyone else sees whole calls only.

use std::sync::Arc;

use agent_client_protocol_schema::v1;
use consort_model::{Diff, Image, PlanEntry, PlanStatus, Signal, ToolCall, ToolCallId, ToolKind, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Acp;
use super::wire::Text;
use crate::Output;

/// How many calls that ended are kept whole for a late piece; their outputs may be long.
const ENDED_KEPT: usize = 4;

/// How many ended calls are remembered by name alone, so that a late piece does not make half a call of them.
const ENDED_NAMED: usize = 256;

/// The calls of the turn.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tools {
    /// In order of their beginning.
    calls: Vec<Arc<ToolCall>>,
    /// Ended calls that are not kept.
    ended: Vec<ToolCallId>,
}

/// What is new about a call: the fields of `tool_call`, `tool_call_update` and of an approval's call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Piece<'a> {
    #[serde(borrow)]
    tool_call_id: Text<'a>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    locations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    raw_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    raw_output: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl Tools {
    /// Adds what is new to its call, making the call if it is not known. None for a call that ended long ago.
    pub fn merge(&mut self, piece: &Piece<'_>) -> Option<Arc<ToolCall>> {
        let id = ToolCallId::new(&*piece.tool_call_id.0);
        if self.ended.contains(&id) {
            return None;
        }
        let index = self.calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            self.calls.push(Arc::new(empty(id)));
            self.calls.len() - 1
        });
        let call = Arc::make_mut(&mut self.calls[index]);
        piece.add_to(call);
        let call = Arc::clone(&self.calls[index]);
        self.forget_ended();
        Some(call)
    }

    /// Marks a call as failed if it has not ended; the call, if so.
    pub fn fail(&mut self, id: &str) -> Option<Arc<ToolCall>> {
        let call = self.calls.iter_mut().find(|call| call.id.as_str() == id && !call.status.is_over())?;
        Arc::make_mut(call).status = ToolStatus::Failed;
        Some(Arc::clone(call))
    }

    /// Marks a call as failed that was told as completed; the call.
    fn correct(&mut self, id: &ToolCallId) -> Option<Arc<ToolCall>> {
        let call = self.calls.iter_mut().find(|call| call.id == *id)?;
        Arc::make_mut(call).status = ToolStatus::Failed;
        Some(Arc::clone(call))
    }

    /// Marks all calls as failed that have not ended; those calls.
    pub fn fail_all(&mut self) -> Vec<Arc<ToolCall>> {
        let mut failed = Vec::new();
        for call in self.calls.iter_mut().filter(|call| !call.status.is_over()) {
            Arc::make_mut(call).status = ToolStatus::Failed;
            failed.push(Arc::clone(call));
        }
        self.forget_ended();
        failed
    }

    /// A new turn has new calls.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn forget_ended(&mut self) {
        let mut spare =
            self.calls.iter().filter(|call| call.status.is_over()).count().saturating_sub(ENDED_KEPT);
        let ended = &mut self.ended;
        self.calls.retain(|call| {
            let forget = spare > 0 && call.status.is_over();
            if forget {
                spare -= 1;
                ended.push(call.id.clone());
            }
            !forget
        });
        let excess = ended.len().saturating_sub(ENDED_NAMED);
        ended.drain(..excess);
    }
}

fn empty(id: ToolCallId) -> ToolCall {
    ToolCall::new(id, ToolKind::Other, "tool call")
}

/// Reads one field; what cannot be read counts as not said.
fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

impl Piece<'_> {
    fn add_to(&self, call: &mut ToolCall) {
        if let Some(title) = read::<String>(self.title).filter(|title| !title.trim().is_empty()) {
            call.title = title;
        }
        if let Some(kind) = read::<v1::ToolKind>(self.kind) {
            call.tool = tool_kind(kind);
        }
        if let Some(status) = read::<v1::ToolCallStatus>(self.status) {
            call.status = tool_status(status);
        }
        if let Some(input) = read::<Value>(self.raw_input) {
            call.input = input;
        }
        if let Some(locations) = read::<Vec<Value>>(self.locations) {
            call.locations = locations.into_iter().filter_map(location).collect();
        }
        if let Some(Value::Object(meta)) = read(self.meta) {
            merge_meta(&mut call.meta, meta);
        }
        if let Some(name) = read::<String>(self.name) {
            merge_meta(&mut call.meta, Map::from_iter([("name".to_owned(), Value::String(name))]));
        }
        if let Some(content) = read::<Vec<Value>>(self.content) {
            set_content(call, content);
        }
        if let Some(output) = read::<Value>(self.raw_output) {
            call.raw_output = output;
        }
        if call.raw_output.as_str() == Some(call.output.as_str()) {
            call.raw_output = Value::Null;
        }
    }
}

fn tool_kind(kind: v1::ToolKind) -> ToolKind {
    match kind {
        v1::ToolKind::Read => ToolKind::Read,
        v1::ToolKind::Edit => ToolKind::Edit,
        v1::ToolKind::Delete => ToolKind::Delete,
        v1::ToolKind::Move => ToolKind::Move,
        v1::ToolKind::Search => ToolKind::Search,
        v1::ToolKind::Execute => ToolKind::Execute,
        v1::ToolKind::Think => ToolKind::Think,
        v1::ToolKind::Fetch => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn tool_status(status: v1::ToolCallStatus) -> ToolStatus {
    match status {
        v1::ToolCallStatus::InProgress => ToolStatus::Running,
        v1::ToolCallStatus::Completed => ToolStatus::Completed,
        v1::ToolCallStatus::Failed => ToolStatus::Failed,
        _ => ToolStatus::Pending,
    }
}

fn location(location: Value) -> Option<String> {
    let path = location.get("path")?.as_str()?;
    Some(match location.get("line").and_then(Value::as_u64) {
        Some(line) => format!("{path}:{line}"),
        None => path.to_owned(),
    })
}

/// Content replaces all earlier content: text, images and diffs to where they belong, the rest to `meta.content`.
fn set_content(call: &mut ToolCall, content: Vec<Value>) {
    let mut texts: Vec<String> = Vec::new();
    let mut rest = Vec::new();
    call.diffs.clear();
    call.images.clear();
    for part in content {
        match v1::ToolCallContent::deserialize(&part) {
            Ok(v1::ToolCallContent::Diff(diff)) => call.diffs.push(Diff {
                path: diff.path.to_string_lossy().into_owned(),
                old_text: diff.old_text,
                new_text: diff.new_text,
            }),
            Ok(v1::ToolCallContent::Terminal(terminal)) => {
                texts.push(format!("[terminal {}]", terminal.terminal_id));
            }
            Ok(v1::ToolCallContent::Content(content)) => match content.content {
                v1::ContentBlock::Text(text) => texts.push(text.text),
                v1::ContentBlock::Image(image) => {
                    call.images.push(Image { mime_type: image.mime_type, data: image.data });
                }
                _ => rest.push(part),
            },
            _ => rest.push(part),
        }
    }
    call.output = texts.join("\n");
    if !rest.is_empty() {
        merge_meta(&mut call.meta, Map::from_iter([("content".to_owned(), Value::Array(rest))]));
    } else if let Value::Object(meta) = &mut call.meta {
        meta.remove("content");
    }
}

/// Adds metadata to what is there; objects grow, everything else is replaced.
fn merge_meta(meta: &mut Value, newer: Map<String, Value>) {
    if !meta.is_object() {
        *meta = Value::Object(Map::new());
    }
    let Value::Object(fields) = meta else { return };
    for (key, value) in newer {
        match (fields.get_mut(&key), value) {
            (Some(old @ Value::Object(_)), Value::Object(value)) => merge_meta(old, value),
            (_, value) => {
                fields.insert(key, value);
            }
        }
    }
}

impl Acp {
    /// Takes in a piece of a tool call and tells the whole.
    pub(super) fn tool_piece(&mut self, piece: &Piece<'_>, out: &mut Output) -> Option<Arc<ToolCall>> {
        let mut call = self.tools.merge(piece)?;
        let stopped = self.turn.is_some_and(|turn| turn.interrupted)
            && call.status == ToolStatus::Completed
            && self.quirks().stopped_command_says.is_some_and(|words| call.output.contains(words));
        if stopped && let Some(corrected) = self.tools.correct(&call.id) {
            call = corrected;
        }
        self.tell_tool(&call, out);
        if self.quirks().plan_in_todowrite
            && piece.raw_input.is_some()
            && let Some(plan) = plan_of_todos(&call)
        {
            out.signals.push(Signal::Plan(plan));
        }
        Some(call)
    }

    pub(super) fn tell_tool(&self, call: &Arc<ToolCall>, out: &mut Output) {
        let within = if self.quirks().parent_in_meta { parent_of(call) } else { None };
        out.signals.push(Signal::Tool { call: ToolCall::clone(call), within });
    }
}

fn parent_of(call: &ToolCall) -> Option<ToolCallId> {
    let parent = call.meta.get("claudeCode")?.get("parentToolUseId")?.as_str()?;
    (parent != call.id.as_str()).then(|| ToolCallId::new(parent))
}

/// The plan in the arguments of the tool `todowrite`, which goes by its name until it has run.
fn plan_of_todos(call: &ToolCall) -> Option<Vec<PlanEntry>> {
    let todos = call.input.get("todos")?.as_array()?;
    let entry = |todo: &Value| {
        let status = match todo.get("status").and_then(Value::as_str) {
            Some("in_progress") => PlanStatus::InProgress,
            Some("completed" | "cancelled") => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        };
        Some(PlanEntry { text: todo.get("content")?.as_str()?.to_owned(), status })
    };
    Some(todos.iter().filter_map(entry).collect())
}
