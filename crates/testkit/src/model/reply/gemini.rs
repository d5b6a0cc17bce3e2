//! Gemini.

use serde_json::{Value, json};

use super::{Event, Reply, fresh, input_json, unnamed};

pub fn events(reply: &Reply) -> Vec<Event> {
    let id = fresh("resp");
    let chunk = |part: Value| {
        unnamed(&json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "modelVersion": reply.model, "responseId": id,
        }))
    };
    let mut events: Vec<Event> = parts(&joined(&reply.thinking), &reply.text, reply)
        .into_iter()
        .map(|part| chunk(part).into_delta())
        .collect();
    // The end carries an empty text: clients take an answer without any content for a failure.
    let end = json!({
        "candidates": [{
            "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": usage(reply), "modelVersion": reply.model, "responseId": id,
    });
    events.push(unnamed(&end));
    events
}

pub fn whole(reply: &Reply) -> Value {
    let parts = parts(&joined(&reply.thinking), &joined(&reply.text), reply);
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage(reply), "modelVersion": reply.model, "responseId": fresh("resp"),
    })
}

fn joined(pieces: &[String]) -> Vec<String> {
    if pieces.is_empty() { Vec::new() } else { vec![pieces.concat()] }
}

fn parts(thinking: &[String], text: &[String], reply: &Reply) -> Vec<Value> {
    // A thought has a title, and comes whole: clients look for the title in each part.
    let thought =
        thinking.iter().map(|whole| json!({"text": format!("**Thought**\n{whole}"), "thought": true}));
    let said = text.iter().map(|piece| json!({"text": piece}));
    let called = reply
        .uses
        .iter()
        .map(|(_, tool)| json!({"functionCall": {"name": tool.name, "args": input_json(&tool.input)}}));
    thought.chain(said).chain(called).collect()
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    let input = usage.input + usage.cached + usage.cache_write;
    json!({
        "promptTokenCount": input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": input + usage.output,
    })
}
