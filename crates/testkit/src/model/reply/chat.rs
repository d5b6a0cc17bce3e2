//! OpenAI Chat Completions, with the `reasoning_content` that compatible servers add.

use serde_json::{Value, json};

use super::{Event, Reply, fresh, input_json, unnamed};

pub fn events(reply: &Reply) -> Vec<Event> {
    let id = fresh("chatcmpl");
    let chunk = |choices: Value, usage: Value| {
        unnamed(&json!({
            "id": id, "object": "chat.completion.chunk", "created": 0, "model": reply.model,
            "choices": choices, "usage": usage,
        }))
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), Value::Null)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    for piece in &reply.thinking {
        events.push(delta(json!({"reasoning_content": piece}), Value::Null).into_delta());
    }
    for piece in &reply.text {
        events.push(delta(json!({"content": piece}), Value::Null).into_delta());
    }
    for (index, call) in calls(reply).into_iter().enumerate() {
        let mut call = call;
        call["index"] = index.into();
        events.push(delta(json!({"tool_calls": [call]}), Value::Null).into_delta());
    }
    events.push(delta(json!({}), json!(finish_reason(reply))));
    events.push(chunk(json!([]), usage(reply)));
    events.push(Event { bytes: b"data: [DONE]\n\n".to_vec(), delta: false });
    events
}

pub fn whole(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text.concat()});
    if !reply.thinking.is_empty() {
        message["reasoning_content"] = reply.thinking.concat().into();
    }
    if !reply.uses.is_empty() {
        message["tool_calls"] = calls(reply).into();
    }
    json!({
        "id": fresh("chatcmpl"), "object": "chat.completion", "created": 0, "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
        "usage": usage(reply),
    })
}

fn calls(reply: &Reply) -> Vec<Value> {
    let call = |(id, tool): &(String, super::ToolUse)| {
        let arguments = input_json(&tool.input).to_string();
        json!({"id": id, "type": "function", "function": {"name": tool.name, "arguments": arguments}})
    };
    reply.uses.iter().map(call).collect()
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.uses.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    let input = usage.input + usage.cached + usage.cache_write;
    json!({
        "prompt_tokens": input,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens": usage.output,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output,
    })
}
