//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Event, Reply, fresh, input_json, named};

/// What a real API signs its thinking with; clients only give it back.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

pub fn events(reply: &Reply) -> Vec<Event> {
    let mut message = message(reply, Vec::new());
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = 1.into();
    let mut events =
        vec![named(&json!({"type": "message_start", "message": message})), named(&json!({"type": "ping"}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        let of = |kind: &str| json!({"type": kind, "index": index});
        let mut begin = of("content_block_start");
        begin["content_block"] = start;
        events.push(named(&begin));
        for delta in deltas {
            let mut event = of("content_block_delta");
            event["delta"] = delta;
            events.push(named(&event).into_delta());
        }
        events.push(named(&of("content_block_stop")));
        index += 1;
    };
    if !reply.thinking.is_empty() {
        let said = reply.thinking.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
        let signed = json!({"type": "signature_delta", "signature": SIGNATURE});
        block(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            said.chain(std::iter::once(signed)).collect(),
        );
    }
    if !reply.text.is_empty() {
        let said = reply.text.iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), said.collect());
    }
    for (id, tool) in &reply.uses {
        let input = input_json(&tool.input).to_string();
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        block(json!({"type": "tool_use", "id": id, "name": tool.name, "input": {}}), vec![delta]);
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": usage(reply),
    });
    events.push(named(&end));
    events.push(named(&json!({"type": "message_stop"})));
    events
}

pub fn whole(reply: &Reply) -> Value {
    let mut content = Vec::new();
    if !reply.thinking.is_empty() {
        content
            .push(json!({"type": "thinking", "thinking": reply.thinking.concat(), "signature": SIGNATURE}));
    }
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text.concat()}));
    }
    for (id, tool) in &reply.uses {
        content
            .push(json!({"type": "tool_use", "id": id, "name": tool.name, "input": input_json(&tool.input)}));
    }
    message(reply, content)
}

fn message(reply: &Reply, content: Vec<Value>) -> Value {
    json!({
        "id": fresh("msg"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason(reply),
        "stop_sequence": null,
        "usage": usage(reply),
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.uses.is_empty() { "end_turn" } else { "tool_use" }
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    })
}
