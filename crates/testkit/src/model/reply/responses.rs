//! OpenAI Responses.

use serde_json::{Value, json};

use super::super::dialect::{Input, ToolUse};
use super::{Event, Reply, fresh, named};

pub fn events(reply: &Reply) -> Vec<Event> {
    let id = fresh("resp");
    let mut events = Vec::new();
    for kind in ["response.created", "response.in_progress"] {
        events
            .push(named(&json!({"type": kind, "response": response(reply, &id, "in_progress", Vec::new())})));
    }
    let mut output = Vec::new();
    if !reply.thinking.is_empty() {
        let item = reasoning(reply);
        events.push(added(output.len(), &with(&item, "summary", json!([]))));
        let of = |kind: &str| part(kind, output.len(), &item, "summary_index");
        let empty = json!({"type": "summary_text", "text": ""});
        events.push(named(&with(&of("response.reasoning_summary_part.added"), "part", empty)));
        for piece in &reply.thinking {
            let delta = with(&of("response.reasoning_summary_text.delta"), "delta", json!(piece));
            events.push(named(&delta).into_delta());
        }
        let text = json!(reply.thinking.concat());
        events.push(named(&with(&of("response.reasoning_summary_text.done"), "text", text)));
        let whole = item["summary"][0].clone();
        events.push(named(&with(&of("response.reasoning_summary_part.done"), "part", whole)));
        events.push(done(output.len(), &item));
        output.push(item);
    }
    if !reply.text.is_empty() {
        let item = message(reply);
        let begun = with(&with(&item, "content", json!([])), "status", json!("in_progress"));
        events.push(added(output.len(), &begun));
        let of = |kind: &str| part(kind, output.len(), &item, "content_index");
        let empty = json!({"type": "output_text", "text": "", "annotations": []});
        events.push(named(&with(&of("response.content_part.added"), "part", empty)));
        for piece in &reply.text {
            let delta = with(&of("response.output_text.delta"), "delta", json!(piece));
            events.push(named(&delta).into_delta());
        }
        let text = json!(reply.text.concat());
        events.push(named(&with(&of("response.output_text.done"), "text", text)));
        let whole = item["content"][0].clone();
        events.push(named(&with(&of("response.content_part.done"), "part", whole)));
        events.push(done(output.len(), &item));
        output.push(item);
    }
    for (call, tool) in &reply.uses {
        let item = tool_call(call, tool);
        let (field, delta, end) = match tool.input {
            Input::Json(_) => (
                "arguments",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
            ),
            Input::Text(_) => {
                ("input", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")
            }
        };
        events.push(added(output.len(), &with(&item, field, json!(""))));
        let of = |kind: &str| json!({"type": kind, "output_index": output.len(), "item_id": item["id"]});
        events.push(named(&with(&of(delta), "delta", item[field].clone())).into_delta());
        events.push(named(&with(&of(end), field, item[field].clone())));
        events.push(done(output.len(), &item));
        output.push(item);
    }
    let end = response(reply, &id, "completed", output);
    events.push(named(&json!({"type": "response.completed", "response": end})));
    events
}

pub fn whole(reply: &Reply) -> Value {
    let mut output = Vec::new();
    if !reply.thinking.is_empty() {
        output.push(reasoning(reply));
    }
    if !reply.text.is_empty() {
        output.push(message(reply));
    }
    output.extend(reply.uses.iter().map(|(call, tool)| tool_call(call, tool)));
    response(reply, &fresh("resp"), "completed", output)
}

fn response(reply: &Reply, id: &str, status: &str, output: Vec<Value>) -> Value {
    let usage = &reply.usage;
    let input = usage.input + usage.cached + usage.cache_write;
    let counted = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output,
    });
    json!({
        "id": id,
        "object": "response",
        "created_at": 0,
        "model": reply.model,
        "status": status,
        "output": output,
        "usage": if status == "completed" { counted } else { Value::Null },
    })
}

fn reasoning(reply: &Reply) -> Value {
    let summary = json!([{"type": "summary_text", "text": reply.thinking.concat()}]);
    json!({"type": "reasoning", "id": fresh("rs"), "summary": summary})
}

fn message(reply: &Reply) -> Value {
    let content = json!([{"type": "output_text", "text": reply.text.concat(), "annotations": []}]);
    json!({"type": "message", "id": fresh("msg"), "role": "assistant", "status": "completed", "content": content})
}

fn tool_call(call: &str, tool: &ToolUse) -> Value {
    let mut item = match &tool.input {
        Input::Json(input) => json!({
            "type": "function_call", "id": fresh("fc"), "call_id": call, "name": tool.name,
            "arguments": Value::Object(input.clone()).to_string(), "status": "completed",
        }),
        Input::Text(input) => json!({
            "type": "custom_tool_call", "id": fresh("ctc"), "call_id": call, "name": tool.name,
            "input": input, "status": "completed",
        }),
    };
    if let Some(namespace) = &tool.namespace {
        item["namespace"] = namespace.as_str().into();
    }
    item
}

fn added(index: usize, item: &Value) -> Event {
    named(&json!({"type": "response.output_item.added", "output_index": index, "item": item}))
}

fn done(index: usize, item: &Value) -> Event {
    named(&json!({"type": "response.output_item.done", "output_index": index, "item": item}))
}

fn part(kind: &str, index: usize, item: &Value, counted_by: &str) -> Value {
    with(&json!({"type": kind, "output_index": index, "item_id": item["id"]}), counted_by, json!(0))
}

fn with(value: &Value, key: &str, inner: Value) -> Value {
    let mut value = value.clone();
    value[key] = inner;
    value
}
