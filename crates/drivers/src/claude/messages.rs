//! Messages: text, thinking, tool calls and their results.
//!
//! With partial messages on, everything the agent itself says comes twice: in pieces as it is written, then block by
//! block as whole messages of the same id. A block that was told in pieces is not told again; only that is remembered,
//! once a block, so that pieces of text leave the driver's state as it is. What its sub-agents say comes whole only.

use consort_model::{Signal, ToolCallId, ToolStatus, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::tools::{Ended, Piece};
use super::wire::{Line, Text, excerpt};
use super::{Claude, info, unknown, warn};
use crate::Output;

/// How many blocks of one message are followed.
const BLOCKS: usize = 1024;

/// The model that the program names where it speaks itself.
const SYNTHETIC: &str = "<synthetic>";

/// The message that is being written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Stream {
    message: Option<String>,
    blocks: Vec<Block>,
}

/// What is known of a block.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Block {
    kind: BlockKind,
    /// Whether it was told in pieces.
    told: bool,
    /// Whether its whole has come.
    whole: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockKind {
    Text,
    Thinking,
    Other,
}

impl BlockKind {
    fn of(kind: &str) -> Self {
        match kind {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            _ => Self::Other,
        }
    }
}

/// An event of the stream, as far as pieces of text need it.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<ContentBlock<'a>>,
    #[serde(borrow, default)]
    message: Option<MessageHead<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ContentBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
}

/// A whole message.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

/// Tokens of one call of the model.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Stream {
    /// Whether something was told in pieces whose whole has not come.
    fn is_cut(&self) -> bool {
        self.blocks.iter().any(|block| block.told && !block.whole)
    }

    /// Whether the next whole block of this kind was told in pieces.
    fn take_told(&mut self, message: Option<&str>, kind: BlockKind) -> bool {
        if message.is_none() || self.message.as_deref() != message {
            return false;
        }
        let Some(block) = self.blocks.iter_mut().find(|block| !block.whole && block.kind == kind) else {
            return false;
        };
        block.whole = true;
        block.told
    }
}

impl Claude {
    /// A piece of a message.
    pub(super) fn stream_event(&mut self, line: &Line<'_>, out: &mut Output) {
        let Some(raw) = line.event else { return };
        // What a sub-agent says comes whole.
        if line.parent_tool_use_id.is_some() {
            return;
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(raw.get()) else {
            return warn(
                out,
                format!("The agent sent a piece that cannot be read: {}", excerpt(raw.get().as_bytes())),
            );
        };
        match &*event.kind {
            "content_block_delta" => self.delta(&event, out),
            "content_block_start" => self.block_starts(&event, out),
            "content_block_stop" => self.block_stops(&event, out),
            "message_start" => {
                self.abandon(out);
                let message = event.message.and_then(|message| message.id).map(|id| id.0.into_owned());
                self.stream = Stream { message, blocks: Vec::new() };
            }
            "message_delta" => tell_context(event.usage, out),
            "message_stop" | "ping" | "error" => {}
            other => out.signals.push(unknown(&format!("stream_event/{other}"), raw.get())),
        }
    }

    fn delta(&mut self, event: &Event<'_>, out: &mut Output) {
        let Some(delta) = &event.delta else { return };
        let (text, thinking) = match (&delta.text, &delta.thinking) {
            (Some(text), _) => (text, false),
            (None, Some(text)) => (text, true),
            // Pieces of a call's input or of a signature.
            (None, None) => return,
        };
        if let Some(block) = self.block(event) {
            block.told = true;
        }
        let text = text.0.to_string();
        out.signals.push(if thinking {
            Signal::Thinking { text, within: None }
        } else {
            Signal::Text { text, within: None }
        });
    }

    fn block(&mut self, event: &Event<'_>) -> Option<&mut Block> {
        self.stream.blocks.get_mut(usize::try_from(event.index?).ok()?)
    }

    fn block_starts(&mut self, event: &Event<'_>, out: &mut Output) {
        let Some(started) = &event.content_block else { return };
        let index = event.index.and_then(|index| usize::try_from(index).ok()).filter(|index| *index < BLOCKS);
        if let Some(index) = index {
            let none = Block { kind: BlockKind::Other, told: false, whole: true };
            let blocks = &mut self.stream.blocks;
            if blocks.len() <= index {
                blocks.resize(index + 1, none);
            }
            blocks[index] = Block { kind: BlockKind::of(&started.kind), told: false, whole: false };
        }
        // A long input takes a while to be written; what it is for is known now.
        if let ("tool_use" | "server_tool_use", Some(id), Some(name)) =
            (&*started.kind, &started.id, &started.name)
            && !self.tools.holds(id)
        {
            let piece =
                Piece { id, name, input: None, status: ToolStatus::Pending, within: None, reason: None };
            self.tools.add(piece, out);
        }
    }

    fn block_stops(&mut self, event: &Event<'_>, out: &mut Output) {
        if self.block(event).is_some_and(|block| block.kind != BlockKind::Other && block.told) {
            out.signals.push(Signal::MessageEnd);
        }
    }

    /// The message that is being written will not be finished: the model is asked again.
    fn abandon(&mut self, out: &mut Output) {
        if self.stream.is_cut() {
            out.signals.push(Signal::MessageEnd);
            info(out, "The answer was cut off; the agent asks its model again.");
        }
        self.stream = Stream::default();
    }

    /// A whole message of the agent, or of one of its sub-agents.
    pub(super) fn assistant(&mut self, line: &Line<'_>, out: &mut Output) {
        let Some((message, blocks)) = read_message(line, out) else { return };
        let within = within(line);
        let id = message.id.as_deref();
        let synthetic = message.model.as_deref() == Some(SYNTHETIC);
        if within.is_none() && !synthetic && self.stream.message.as_deref() != id {
            self.abandon(out);
        }
        for block in &blocks {
            let Some(kind) = block.get("type").and_then(Value::as_str) else { continue };
            match kind {
                "text" | "thinking" => {
                    let text = block.get(kind).and_then(Value::as_str).unwrap_or_default();
                    // Why the turn failed is told with its end.
                    let failure = line.error.is_some() && within.is_none();
                    let nothing = synthetic && text == "(no content)";
                    if !failure && !nothing {
                        self.tell_text(BlockKind::of(kind), text, id, within.as_ref(), out);
                    }
                }
                "redacted_thinking" => {}
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    self.tool_use(block, within.clone(), out);
                }
                kind if kind.ends_with("tool_result") => {
                    self.tool_result(block, &Value::Null, within.clone(), out);
                }
                other => out
                    .signals
                    .push(Signal::Unknown { label: format!("assistant/{other}"), raw: block.clone() }),
            }
        }
    }

    /// Tells what was not told in pieces.
    fn tell_text(
        &mut self,
        kind: BlockKind,
        text: &str,
        message: Option<&str>,
        within: Option<&ToolCallId>,
        out: &mut Output,
    ) {
        let told = within.is_none() && self.stream.take_told(message, kind);
        if told || text.is_empty() {
            return;
        }
        let text = text.to_owned();
        let within = within.cloned();
        out.signals.push(match kind {
            BlockKind::Thinking => Signal::Thinking { text, within },
            BlockKind::Text | BlockKind::Other => Signal::Text { text, within },
        });
        out.signals.push(Signal::MessageEnd);
    }

    fn tool_use(&mut self, block: &Value, within: Option<ToolCallId>, out: &mut Output) {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        let (Some(id), Some(name)) = (text("id"), text("name")) else {
            return warn(out, "The agent made a tool call without a name.");
        };
        // A sub-agent may have asked for the call before it makes it.
        let status = if self.asks_for(id) { ToolStatus::Pending } else { ToolStatus::Running };
        let piece = Piece { id, name, input: block.get("input").cloned(), status, within, reason: None };
        self.tools.add(piece, out);
    }

    /// What the model was told: results of tools. Words are ours or the program's own, and are passed over.
    pub(super) fn user(&mut self, line: &Line<'_>, out: &mut Output) {
        if line.replay.is_some_and(|replay| replay.get() == "true") {
            if let Some(key) = &line.uuid {
                self.joined(key, out);
            }
            return;
        }
        let Some((_, blocks)) = read_message(line, out) else { return };
        let raw = match line.tool_use_result {
            Some(raw) => serde_json::from_str(raw.get()).unwrap_or(Value::Null),
            None => Value::Null,
        };
        for block in &blocks {
            match block.get("type").and_then(Value::as_str) {
                Some("tool_result") => self.tool_result(block, &raw, within(line), out),
                Some("text" | "image" | "document") | None => {}
                Some(other) => {
                    out.signals.push(Signal::Unknown { label: format!("user/{other}"), raw: block.clone() });
                }
            }
        }
    }

    fn tool_result(&mut self, block: &Value, raw: &Value, within: Option<ToolCallId>, out: &mut Output) {
        let Some(id) = block.get("tool_use_id").and_then(Value::as_str) else {
            return warn(out, "The agent sent the result of a tool call that it does not name.");
        };
        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let content = block.get("content").unwrap_or(&Value::Null);
        let result = Ended { failed, content, raw, within };
        let Some(ended) = self.tools.end(id, &result, out) else { return };
        if !failed
            && ended.within.is_none()
            && let Some(plan) = self.plan.observe(&ended.name, &ended.input, raw)
        {
            out.signals.push(Signal::Plan(plan));
        }
    }
}

/// A message and its blocks; plain text is one block.
fn read_message<'a>(line: &Line<'a>, out: &mut Output) -> Option<(Message<'a>, Vec<Value>)> {
    let raw = line.message.map_or("null", RawValue::get);
    let Ok(message) = serde_json::from_str::<Message<'a>>(raw) else {
        warn(out, format!("The agent sent a message that cannot be read: {}", excerpt(raw.as_bytes())));
        return None;
    };
    let blocks = match message.content.map(|content| serde_json::from_str(content.get())) {
        Some(Ok(Value::Array(blocks))) => blocks,
        Some(Ok(Value::String(text))) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    Some((message, blocks))
}

fn within(line: &Line<'_>) -> Option<ToolCallId> {
    line.parent_tool_use_id.as_deref().map(ToolCallId::new)
}

/// How full the context is: everything that the last call of the model read and wrote.
fn tell_context(usage: Option<&RawValue>, out: &mut Output) {
    let Some(Ok(tokens)) = usage.map(|usage| serde_json::from_str::<Tokens>(usage.get())) else { return };
    let parts = [
        tokens.input_tokens,
        tokens.cache_creation_input_tokens,
        tokens.cache_read_input_tokens,
        tokens.output_tokens,
    ];
    let used = parts.iter().flatten().fold(0u64, |sum, part| sum.saturating_add(*part));
    if used > 0 {
        out.signals.push(Signal::Usage(Usage { context_used: Some(used), ..Usage::default() }));
    }
}
