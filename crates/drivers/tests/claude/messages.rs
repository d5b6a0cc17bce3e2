//! Text, thinking and tools: told once, in order, in their place.

use consort_model::{PlanStatus, Signal, ToolCallId, ToolKind, ToolStatus};
use serde_json::{Value, json};

use crate::support::{
    Talk, block_starts, block_stops, calls, last_call, message_starts, piece, says, stream, text,
    tool_result, warning, within,
};

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The texts as a reader sees them.
fn texts(signals: &[Signal]) -> Vec<String> {
    let mut texts: Vec<String> = vec![];
    let mut open = false;
    for signal in signals {
        match signal {
            Signal::Text { text, .. } | Signal::Thinking { text, .. } => {
                if !open {
                    texts.push(String::new());
                }
                texts.last_mut().unwrap().push_str(text);
                open = true;
            }
            Signal::Usage(_) => {}
            _ => open = false,
        }
    }
    texts
}

#[test]
fn what_was_told_in_pieces_is_not_told_again() {
    // (what is streamed and whole, the texts)
    let table = [
        (
            "pieces and the whole",
            vec![
                message_starts("m"),
                block_starts(0, "text"),
                piece(0, "Hel"),
                piece(0, "lo"),
                says("m", text_block("Hello")),
                block_stops(0),
            ],
            vec!["Hello"],
        ),
        (
            "two blocks",
            vec![
                message_starts("m"),
                block_starts(0, "text"),
                piece(0, "a"),
                says("m", text_block("a")),
                block_stops(0),
                block_starts(1, "text"),
                piece(1, "b"),
                says("m", text_block("b")),
                block_stops(1),
            ],
            vec!["a", "b"],
        ),
        (
            "the same text twice",
            vec![
                message_starts("m"),
                block_starts(0, "text"),
                piece(0, "a"),
                says("m", text_block("a")),
                block_stops(0),
                block_starts(1, "text"),
                piece(1, "a"),
                says("m", text_block("a")),
                block_stops(1),
            ],
            vec!["a", "a"],
        ),
        (
            "only the whole",
            vec![says("m", text_block("Hello")), says("m", text_block("again"))],
            vec!["Hello", "again"],
        ),
        (
            "no pieces of a block that began",
            vec![
                message_starts("m"),
                block_starts(0, "text"),
                says("m", text_block("Hello")),
                block_stops(0),
            ],
            vec!["Hello"],
        ),
        (
            "the whole is shorter than its pieces",
            vec![
                message_starts("m"),
                block_starts(0, "text"),
                piece(0, "word word"),
                says("m", text_block("word ")),
            ],
            vec!["word word"],
        ),
    ];
    for (what, frames, expected) in table {
        let out = Talk::working().hears_all(frames);
        assert_eq!(texts(&out.signals), expected, "{what}");
    }
}

#[test]
fn pieces_leave_the_state_as_it_is() {
    let mut talk = Talk::working();
    talk.hears_all([message_starts("m"), block_starts(0, "text"), piece(0, "a")]);
    let before = talk.driver.clone();
    talk.hears_all([piece(0, "b"), piece(0, "c")]);
    assert_eq!(talk.driver, before);
}

#[test]
fn an_answer_that_is_cut_off_and_repeated_is_told_as_two() {
    let mut talk = Talk::working();
    talk.hears_all([message_starts("m1"), block_starts(0, "text"), piece(0, "Hel")]);
    let out = talk.hears(says("m2", text_block("Hello")));
    assert_eq!(out.signals[0], Signal::MessageEnd);
    assert!(matches!(&out.signals[1], Signal::Notice { text, .. } if text.contains("cut off")));
    assert_eq!(out.signals[2], text("Hello"));
}

#[test]
fn thinking_comes_in_pieces_too() {
    let thinks = |text: &str| {
        stream(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": text}}),
        )
    };
    let out = Talk::working().hears_all([
        message_starts("m"),
        block_starts(0, "thinking"),
        thinks("h"),
        thinks("m"),
        stream(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}})),
        says("m", json!({"type": "thinking", "thinking": "hm", "signature": "x"})),
        block_stops(0),
        says("m", json!({"type": "redacted_thinking", "data": "x"})),
    ]);
    let thought = |text: &str| Signal::Thinking { text: text.into(), within: None };
    assert_eq!(out.signals, [thought("h"), thought("m"), Signal::MessageEnd]);
}

#[test]
fn a_tool_call_is_announced_runs_and_ends() {
    let mut talk = Talk::working();
    let started = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}});
    let out =
        talk.hears(stream(json!({"type": "content_block_start", "index": 0, "content_block": started})));
    assert_eq!((last_call(&out).title.as_str(), last_call(&out).status), ("Bash", ToolStatus::Pending));
    let out = talk.hears(calls("t", "Bash", json!({"command": "ls", "description": "List"})));
    let call = last_call(&out);
    assert_eq!((call.title.as_str(), call.tool, call.status), ("ls", ToolKind::Execute, ToolStatus::Running));
    // The words for people are not part of what is allowed.
    assert_eq!(call.input, json!({"command": "ls"}));
    assert_eq!(call.meta["description"], "List");
    let mut ended = tool_result("t", json!([{"type": "text", "text": "a"}, {"type": "image", "source": {}}]));
    ended["tool_use_result"] = json!({"stdout": "a", "backgroundTaskId": "b"});
    let out = talk.hears(ended);
    let call = last_call(&out);
    assert_eq!((call.output.as_str(), call.status), ("a", ToolStatus::Completed));
    assert_eq!(call.raw_output, json!({"backgroundTaskId": "b"}));
    assert_eq!(call.meta["content"][0]["type"], "image");
}

#[test]
fn a_failed_call_says_so() {
    let mut talk = Talk::working();
    talk.hears(calls("t", "Bash", json!({"command": "ls"})));
    let mut ended = tool_result("t", json!("no"));
    ended["message"]["content"][0]["is_error"] = json!(true);
    let out = talk.hears(ended);
    assert_eq!((last_call(&out).output.as_str(), last_call(&out).status), ("no", ToolStatus::Failed));
}

#[test]
fn a_file_that_was_overwritten_shows_what_it_held() {
    let mut talk = Talk::working();
    let out = talk.hears(calls("t", "Write", json!({"file_path": "/a", "content": "new"})));
    assert_eq!(last_call(&out).diffs[0].old_text, None);
    let mut ended = tool_result("t", json!("done"));
    ended["tool_use_result"] =
        json!({"type": "update", "originalFile": "old", "structuredPatch": [{"oldStart": 1}]});
    let out = talk.hears(ended);
    assert_eq!(last_call(&out).diffs[0].old_text.as_deref(), Some("old"));
    assert_eq!(last_call(&out).raw_output, json!({"structuredPatch": [{"oldStart": 1}]}));
}

#[test]
fn a_sub_agent_is_shown_within_its_call() {
    let mut talk = Talk::working();
    talk.hears(calls("a", "Agent", json!({"description": "look"})));
    talk.hears_all([message_starts("m"), block_starts(0, "text"), piece(0, "x")]);
    let out = talk.hears_all([
        within(json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "look"}]}}), "a"),
        within(says("n", text_block("I look")), "a"),
        within(calls("t", "Read", json!({"file_path": "/a"})), "a"),
        within(tool_result("t", json!("text")), "a"),
    ]);
    let inside = Some(ToolCallId::new("a"));
    assert_eq!(out.signals[0], Signal::Text { text: "I look".into(), within: inside.clone() });
    let tools = out
        .signals
        .iter()
        .filter(|signal| matches!(signal, Signal::Tool { within, .. } if *within == inside));
    assert_eq!(tools.count(), 2);
}

#[test]
fn the_task_list_becomes_the_plan() {
    let mut talk = Talk::working();
    let todos = json!({"todos": [{"content": "one", "status": "in_progress"}]});
    talk.hears(calls("t", "TodoWrite", todos.clone()));
    let out = talk.hears(tool_result("t", json!("ok")));
    let plan = out.signals.iter().find_map(|signal| match signal {
        Signal::Plan(plan) => Some(plan.clone()),
        _ => None,
    });
    assert_eq!(plan.unwrap()[0].status, PlanStatus::InProgress);
    // A sub-agent's list is its own.
    talk.hears(within(calls("u", "TodoWrite", json!({"todos": []})), "a"));
    let out = talk.hears(within(tool_result("u", json!("ok")), "a"));
    assert!(!out.signals.iter().any(|signal| matches!(signal, Signal::Plan(_))));
}

#[test]
fn what_is_not_part_of_the_conversation_is_passed_over() {
    let mut talk = Talk::working();
    let user = |fields: Value| {
        let mut message = json!({"type": "user", "message": {"role": "user", "content": "x"}});
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        message
    };
    let table = [
        user(json!({"isReplay": true})),
        user(json!({})),
        user(
            json!({"message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}}),
        ),
        json!({"type": "keep_alive"}),
        json!({"type": "tool_progress", "tool_use_id": "t"}),
        json!({"type": "system", "subtype": "thinking_tokens", "estimated_tokens": 1}),
        json!({"type": "system", "subtype": "status", "status": "requesting"}),
        json!({"type": "control_response", "response": {"subtype": "success", "request_id": "echo"}}),
        json!({"type": "control_cancel_request", "request_id": "unheard"}),
        stream(json!({"type": "ping"})),
    ];
    for frame in table {
        let out = talk.hears(frame.clone());
        assert_eq!((out.signals, out.frames), (vec![], vec![]), "{frame}");
    }
}

#[test]
fn what_is_not_known_is_kept() {
    let mut talk = Talk::working();
    let table = [
        (json!({"type": "novelty", "x": 1}), "novelty"),
        (json!({"type": "system", "subtype": "novelty"}), "system/novelty"),
        (stream(json!({"type": "novelty"})), "stream_event/novelty"),
        (says("m", json!({"type": "novelty"})), "assistant/novelty"),
    ];
    for (frame, expected) in table {
        let out = talk.hears(frame);
        assert!(matches!(&out.signals[..], [Signal::Unknown { label, .. }] if label == expected), "{out:?}");
    }
}

#[test]
fn lines_that_make_no_sense_give_a_notice() {
    let mut talk = Talk::working();
    for line in ["log line", "{", "[]", "7", "{}", "{\"type\":7}", "\u{fffd}"] {
        let out = talk.hears_line(line);
        assert!(warning(&out).starts_with("The agent sent"), "{line}");
    }
    warning(&talk.hears_line([0xff, 0xfe]));
    assert_eq!(talk.hears_line("").signals, []);
}
