use consort_drivers::{CallId, CallResult, Frame, Output};
use consort_model::{Attachment, Image, Signal, ToolStatus, TurnOutcome, Usage};
use serde_json::{Value, json};

use crate::support::{Talk, hello, hello_of, launch, text, warning};

fn outcome(out: &Output) -> &TurnOutcome {
    match out.signals.last() {
        Some(Signal::TurnEnded(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_prompt_goes_out_and_its_answer_ends_the_turn() {
    let mut talk = Talk::open();
    talk.prompt("/help me");
    assert_eq!(
        talk.last_sent()["params"],
        json!({"sessionId": "s", "prompt": [{"type": "text", "text": "/help me"}]})
    );
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    assert_eq!(talk.updates(chunk("Hi")).signals, [text("Hi")]);
    assert_eq!(talk.updates(chunk("")).signals, []);
    let out = talk.replies("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(out.signals, [Signal::TurnEnded(TurnOutcome::Completed)]);
}

#[test]
fn attachments_take_the_form_that_the_agent_can_read() {
    let attachments = [
        Attachment::Image(Image { mime_type: "image/png".into(), data: "AA==".into() }),
        Attachment::File { path: "/project/a b.rs".into(), text: "fn".into() },
    ];
    let mut talk = Talk::open();
    let out = talk.driver.prompt("see", &attachments);
    talk.note(out);
    let prompt = &talk.last_sent()["params"]["prompt"];
    assert_eq!(prompt[1], json!({"type": "image", "mimeType": "image/png", "data": "AA=="}));
    assert_eq!(prompt[2]["resource"], json!({"uri": "file:///project/a%20b.rs", "text": "fn"}));

    let mut hello = hello();
    hello["agentCapabilities"]["promptCapabilities"] = json!({});
    let mut talk = Talk::open_with(hello, json!({"sessionId": "s"}));
    let out = talk.driver.prompt("see", &attachments);
    assert!(warning(&out).contains("no images"));
    talk.note(out);
    let prompt = talk.last_sent()["params"]["prompt"].as_array().unwrap();
    assert_eq!(prompt.len(), 2);
    assert_eq!(prompt[1], json!({"type": "text", "text": "The file /project/a b.rs holds:\nfn"}));
}

#[test]
fn reasons_to_stop_become_outcomes() {
    for (reason, wanted) in [
        ("end_turn", TurnOutcome::Completed),
        ("cancelled", TurnOutcome::Interrupted),
        ("refusal", TurnOutcome::Stopped { reason: "it refused".into() }),
        ("max_tokens", TurnOutcome::Stopped { reason: "it reached the limit of tokens".into() }),
        (
            "max_turn_requests",
            TurnOutcome::Stopped { reason: "it reached the limit of requests to its model".into() },
        ),
        ("bored", TurnOutcome::Stopped { reason: "bored".into() }),
    ] {
        let mut talk = Talk::working();
        let out = talk.replies("session/prompt", json!({"stopReason": reason}));
        assert_eq!(*outcome(&out), wanted);
    }
}

#[test]
fn a_failed_prompt_says_why_in_one_line() {
    let mut talk = Talk::working();
    let out = talk.fails("session/prompt", 429, "Too\nmany.");
    let message = "The agent failed: Too many (code 429).".to_owned();
    assert_eq!(*outcome(&out), TurnOutcome::Failed { message });
    talk.prompt("again");
    let out = talk.replies("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(*outcome(&out), TurnOutcome::Completed);
}

#[test]
fn an_interrupted_turn_ends_as_interrupted_however_the_agent_puts_it() {
    type Ending = fn(&mut Talk) -> Output;
    let endings: [Ending; 3] = [
        |talk| talk.replies("session/prompt", json!({"stopReason": "cancelled"})),
        |talk| talk.replies("session/prompt", json!({"stopReason": "end_turn"})),
        |talk| talk.fails("session/prompt", -32603, "aborted"),
    ];
    for ending in endings {
        let mut talk = Talk::working();
        let out = talk.driver.interrupt();
        talk.note(out);
        assert_eq!(talk.last_sent()["method"], "session/cancel");
        assert_eq!(talk.last_sent()["params"], json!({"sessionId": "s"}));
        let late =
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "late"}});
        assert_eq!(talk.updates(late).signals, [text("late")]);
        assert_eq!(*outcome(&ending(&mut talk)), TurnOutcome::Interrupted);
    }
    assert_eq!(Talk::open().driver.interrupt(), Output::default(), "without a turn there is nothing to stop");
}

#[test]
fn tokens_add_up_over_turns() {
    let mut talk = Talk::open();
    for sum in [30, 60] {
        talk.prompt("go");
        let usage = json!({"inputTokens": 10, "cachedReadTokens": 20, "outputTokens": 25, "thoughtTokens": 5, "totalTokens": 60});
        let out = talk.replies("session/prompt", json!({"stopReason": "end_turn", "usage": usage}));
        let wanted = Usage { input_tokens: Some(sum), output_tokens: Some(sum), ..Usage::default() };
        assert_eq!(out.signals[0], Signal::Usage(wanted));
    }
}

#[test]
fn gemini_counts_tokens_in_its_metadata() {
    let mut talk = Talk::open_with(hello_of("gemini-cli"), json!({"sessionId": "s"}));
    talk.prompt("go");
    let meta = json!({"quota": {"token_count": {"input_tokens": 22, "output_tokens": 14}}});
    let out = talk.replies("session/prompt", json!({"stopReason": "end_turn", "_meta": meta}));
    let wanted = Usage { input_tokens: Some(22), output_tokens: Some(14), ..Usage::default() };
    assert_eq!(out.signals[0], Signal::Usage(wanted));
}

#[test]
fn a_command_that_an_interrupt_stopped_has_failed_whatever_the_agent_calls_it() {
    let words =
        [("gemini-cli", "Command cancelled by user."), ("OpenCode", "<x>\nUser aborted the command\n</x>")];
    for (name, words) in words {
        for (stopped, status) in [(true, ToolStatus::Failed), (false, ToolStatus::Completed)] {
            let mut talk = Talk::open_with(hello_of(name), json!({"sessionId": "s"}));
            talk.prompt("go");
            talk.updates(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "execute",
                "title": "sleep 9", "status": "in_progress"}));
            if stopped {
                talk.driver.interrupt();
            }
            let out = talk.updates(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t",
                "status": "completed", "content": [{"type": "content",
                "content": {"type": "text", "text": words}}]}));
            let [Signal::Tool { call, .. }] = out.signals.as_slice() else { panic!("{out:?}") };
            assert_eq!(call.status, status, "{name}");
        }
    }
}

#[test]
fn a_prompt_at_the_wrong_time_is_not_sent() {
    let mut talk = Talk::working();
    let out = talk.prompt("again");
    assert!(warning(&out).contains("was not sent"));
    assert!(out.frames.is_empty());
    assert!(Talk::start(launch()).driver.prompt("early", &[]).frames.is_empty());
}

#[test]
fn the_end_of_the_process_fails_what_was_unfinished_and_mutes_the_rest() {
    let mut talk = Talk::working();
    talk.updates(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "in_progress"}),
    );
    talk.asks(json!(1), "fs/read_text_file", json!({"path": "/project/a"}));
    assert_eq!(talk.driver.pending_calls().len(), 1);
    let out = talk.driver.ended();
    let [Signal::Tool { call, .. }] = out.signals.as_slice() else { panic!("{out:?}") };
    assert_eq!(call.status, ToolStatus::Failed);
    assert_eq!(talk.driver.pending_calls(), []);
    assert_eq!(talk.replies("session/prompt", json!({"stopReason": "end_turn"})), Output::default());
    assert_eq!(talk.driver.complete(&CallId("call-1".into()), CallResult::Done), Output::default());
    assert_eq!(talk.driver.receive(Frame::Line(b"garbage")), Output::default());
    assert_eq!(talk.driver.farewell(), None);
}

#[test]
fn a_session_is_closed_if_the_agent_can() {
    let mut talk = Talk::open();
    let frame = talk.driver.farewell().unwrap();
    let frame: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!(frame["method"], "session/close");
    assert_eq!(frame["params"], json!({"sessionId": "s"}));
    let mut hello = hello();
    hello["agentCapabilities"]["sessionCapabilities"] = json!({});
    assert_eq!(Talk::open_with(hello, json!({"sessionId": "s"})).driver.farewell(), None);
}

#[test]
fn an_answer_too_long_to_be_held_still_ends_its_turn() {
    let mut talk = Talk::working();
    let head = br#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"x":"aaaa"#;
    let out = talk.driver.receive(Frame::Oversized { len: 99_000_000, head });
    assert!(warning(&out).contains("99000000 bytes"));
    assert!(matches!(outcome(&out), TurnOutcome::Failed { .. }));
}

#[test]
fn a_request_too_long_to_be_held_is_refused() {
    let mut talk = Talk::working();
    let head = br#"{"id":"w","method":"fs/write_text_file","params":{"content":"aaaa"#;
    let out = talk.driver.receive(Frame::Oversized { len: 99_000_000, head });
    talk.note(out);
    assert_eq!(talk.last_sent()["id"], "w");
    assert_eq!(talk.last_sent()["error"]["code"], -32600);
}
