//! Turns: how they begin and end, and what is used.

use consort_drivers::Frame;
use consort_model::{Attachment, Image, Signal, ToolStatus, TurnOutcome, Usage};
use serde_json::{Value, json};

use crate::support::{Talk, allow, calls, last_call, stream, text, tool_result, warning, within};

fn outcome(signals: &[Signal]) -> Option<TurnOutcome> {
    signals.iter().find_map(|signal| match signal {
        Signal::TurnEnded(outcome) => Some(outcome.clone()),
        _ => None,
    })
}

#[test]
fn a_prompt_is_text_or_blocks() {
    let mut talk = Talk::open();
    talk.prompt("/clear");
    assert_eq!(talk.last_sent()["message"]["content"], "/clear");
    talk.results(json!({}));
    let attachments = [
        Attachment::Image(Image { mime_type: "image/png".into(), data: "AA==".into() }),
        Attachment::Image(Image { mime_type: "image/tiff".into(), data: "AA==".into() }),
        Attachment::File { path: "/a".into(), text: "t".into() },
    ];
    let out = talk.driver.prompt("look", &attachments);
    let out = talk.note(out);
    assert!(warning(&out).contains("image/tiff"));
    let content = talk.last_sent()["message"]["content"].clone();
    let kinds: Vec<&str> =
        content.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image", "text"]);
    assert_eq!(content[1]["source"]["media_type"], "image/png");
}

#[test]
fn a_prompt_at_a_wrong_time_is_not_sent() {
    let mut talk = Talk::working();
    let out = talk.prompt("again");
    assert_eq!(out.frames, Vec::<Vec<u8>>::new());
    warning(&out);
}

#[test]
fn results_become_outcomes() {
    let failed = |message: &str| TurnOutcome::Failed { message: message.into() };
    let stopped = |reason: &str| TurnOutcome::Stopped { reason: reason.into() };
    let ede = "[ede_diagnostic] result_type=user";
    let table = [
        (json!({"result": "done"}), TurnOutcome::Completed),
        (
            json!({"is_error": true, "result": "API Error: 529 Overloaded."}),
            failed("The agent failed: API Error: 529 Overloaded."),
        ),
        (json!({"is_error": true}), failed("The agent failed: it gave no reason.")),
        (json!({"is_error": true, "stop_reason": "refusal", "result": "no"}), stopped("it refused: no")),
        (json!({"subtype": "error_max_turns", "is_error": true}), stopped("it reached the limit of turns")),
        (
            json!({"subtype": "error_max_budget_usd", "is_error": true}),
            stopped("it reached the limit of cost"),
        ),
        (
            json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools", "errors": [ede]}),
            TurnOutcome::Interrupted,
        ),
        (
            json!({"subtype": "error_during_execution", "is_error": true, "errors": [ede, "it broke"]}),
            failed("The agent failed: it broke."),
        ),
        (json!({"subtype": "novelty"}), failed("The agent failed: it gave no reason.")),
        (json!({"is_error": "nonsense"}), failed("The agent failed: it gave no reason.")),
    ];
    for (result, expected) in table {
        let out = Talk::working().results(result.clone());
        assert_eq!(outcome(&out.signals), Some(expected), "{result}");
    }
}

#[test]
fn the_end_of_a_turn_fails_what_has_not_ended() {
    let mut talk = Talk::working();
    talk.hears(calls("t", "Bash", json!({"command": "ls"})));
    let out = talk.results(json!({}));
    assert_eq!(last_call(&out).status, ToolStatus::Failed);
    assert_eq!(talk.prompt("next").frames.len(), 1);
}

#[test]
fn why_a_turn_failed_is_told_once() {
    let mut talk = Talk::working();
    let said = json!({"type": "assistant", "error": "server_error", "message": {"id": "x", "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error"}]}});
    assert_eq!(talk.hears(said).signals, []);
    let out = talk.results(json!({"is_error": true, "result": "API Error"}));
    assert!(matches!(outcome(&out.signals), Some(TurnOutcome::Failed { .. })));
}

#[test]
fn a_local_command_answers_in_the_programs_own_words() {
    let mut talk = Talk::working();
    let said = |text: &str| {
        json!({"type": "assistant", "message": {"id": "x", "model": "<synthetic>",
            "content": [{"type": "text", "text": text}]}})
    };
    assert_eq!(talk.hears(said("## Context")).signals[0], text("## Context"));
    assert_eq!(talk.hears(said("(no content)")).signals, []);
}

#[test]
fn an_interrupt_reaches_a_turn_that_has_not_begun() {
    let mut talk = Talk::open();
    talk.prompt("go");
    talk.interrupts();
    talk.replies("interrupt", Value::Null);
    assert_eq!(talk.begins("s").frames.len(), 1);
    assert_eq!(talk.kinds_sent(), ["initialize", "user", "interrupt", "interrupt"]);
    let out = talk.results(json!({"subtype": "error_during_execution", "is_error": true}));
    assert_eq!(outcome(&out.signals), Some(TurnOutcome::Interrupted));
}

#[test]
fn an_interrupt_in_a_turn_is_sent_once_and_withdraws_its_asks() {
    let mut talk = Talk::working();
    talk.asks("r", "Bash", "t", json!({"command": "ls"}), json!([]));
    let out = talk.interrupts();
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "r".into() }]);
    assert_eq!(talk.answer_to("r")["behavior"], "deny");
    assert_eq!(talk.hears(json!({"type": "control_cancel_request", "request_id": "r"})).signals, []);
    let out = talk.results(
        json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools"}),
    );
    assert_eq!(outcome(&out.signals), Some(TurnOutcome::Interrupted));
    assert_eq!(talk.interrupts().frames.len(), 0);
}

#[test]
fn a_turn_that_was_done_before_the_interrupt_came_is_completed() {
    let mut talk = Talk::working();
    talk.interrupts();
    assert_eq!(outcome(&talk.results(json!({})).signals), Some(TurnOutcome::Completed));
}

#[test]
fn the_agent_begins_turns_by_itself() {
    let mut talk = Talk::working();
    talk.results(json!({}));
    let out = talk.begins("s");
    assert_eq!(out.signals, [Signal::TurnStarted]);
    warning(&talk.prompt("not now"));
    let out = talk.results(json!({"origin": {"kind": "task-notification"}}));
    assert_eq!(outcome(&out.signals), Some(TurnOutcome::Completed));
    assert_eq!(talk.prompt("now").frames.len(), 1);
}

#[test]
fn a_turn_of_its_own_without_a_result_ends_when_the_agent_is_idle() {
    let mut talk = Talk::working();
    talk.results(json!({}));
    talk.begins("s");
    let out = talk.system("session_state_changed", json!({"state": "idle"}));
    assert_eq!(outcome(&out.signals), Some(TurnOutcome::Completed));
}

#[test]
fn a_prompt_behind_the_agents_own_turn_waits_for_its_own_result() {
    let mut talk = Talk::open();
    talk.prompt("go");
    // The agent had begun a turn of its own before it read the prompt.
    talk.begins("s");
    let by_agent = json!({"origin": {"kind": "task-notification"}});
    assert_eq!(outcome(&talk.results(by_agent).signals), None);
    talk.begins("s");
    assert_eq!(outcome(&talk.results(json!({})).signals), Some(TurnOutcome::Completed));
}

#[test]
fn a_prompt_that_was_merged_into_the_agents_own_turn_ends_with_it() {
    let by_agent = json!({"origin": {"kind": "task-notification"}});
    let mut talk = Talk::working();
    assert_eq!(outcome(&talk.results(by_agent.clone()).signals), None);
    let out = talk.system("session_state_changed", json!({"state": "idle"}));
    assert_eq!(outcome(&out.signals), Some(TurnOutcome::Completed));

    let mut talk = Talk::working();
    talk.results(by_agent);
    talk.interrupts();
    assert_eq!(outcome(&talk.replies("interrupt", Value::Null).signals), Some(TurnOutcome::Completed));
}

#[test]
fn being_idle_before_a_prompt_was_read_ends_nothing() {
    let mut talk = Talk::open();
    talk.prompt("go");
    assert_eq!(talk.system("session_state_changed", json!({"state": "idle"})).signals, []);
}

#[test]
fn work_in_the_background_outlives_its_turn() {
    let mut talk = Talk::working();
    talk.hears(calls("a", "Agent", json!({"description": "look", "run_in_background": true})));
    talk.system("task_started", json!({"task_id": "k", "tool_use_id": "a", "task_type": "local_agent"}));
    talk.hears(tool_result("a", json!("launched")));
    talk.hears(within(calls("t", "Bash", json!({"command": "ls"})), "a"));
    talk.hears(json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "tool_use_id": "t", "agent_id": "k", "input": {"command": "ls"}}}));
    // The end of the turn settles every ask, so what is still open is asked again.
    let out = talk.results(json!({}));
    assert!(matches!(out.signals[..], [Signal::TurnEnded(_), Signal::Ask { .. }]), "{out:?}");
    let out = talk.answers("r", &allow("once"));
    assert_eq!(last_call(&out).status, ToolStatus::Running);
    let out = talk.hears(within(tool_result("t", json!("done")), "a"));
    assert_eq!(last_call(&out).status, ToolStatus::Completed);
    let out = talk.system(
        "task_notification",
        json!({"task_id": "k", "tool_use_id": "a", "status": "completed",
        "summary": "Agent \"look\" finished"}),
    );
    assert!(matches!(&out.signals[..], [Signal::Notice { text, .. }] if text == "Agent \"look\" finished."));
}

#[test]
fn usage_is_what_the_program_counted_over_its_life() {
    let mut talk = Talk::working();
    let delta = stream(json!({"type": "message_delta", "delta": {}, "usage": {"input_tokens": 10,
        "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5, "output_tokens": 5}}));
    let out = talk.hears(delta);
    assert_eq!(out.signals, [Signal::Usage(Usage { context_used: Some(50), ..Usage::default() })]);
    let out = talk.results(json!({"total_cost_usd": 0.25, "usage": {"input_tokens": 1}, "modelUsage": {
        "big-1": {"inputTokens": 10, "cacheReadInputTokens": 30, "outputTokens": 7, "contextWindow": 1000},
        "small-1": {"inputTokens": 1, "outputTokens": 2, "contextWindow": 10}}}));
    let expected = Usage {
        input_tokens: Some(41),
        output_tokens: Some(9),
        context_used: None,
        context_size: Some(1000),
        cost: Some(0.25),
    };
    assert_eq!(out.signals[0], Signal::Usage(expected));
}

#[test]
fn a_line_that_is_too_long_is_answered_and_ends_its_turn() {
    let mut talk = Talk::working();
    let head =
        br#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","input":"aaa"#;
    let out = talk.driver.receive(Frame::Oversized { len: 99, head });
    talk.note(out);
    assert_eq!(talk.last_sent()["response"]["subtype"], "error");
    assert_eq!(talk.last_sent()["response"]["request_id"], "r");
    let head = br#"{"type":"result","subtype":"success","is_error":false,"result":"aaa"#;
    let out = talk.driver.receive(Frame::Oversized { len: 99, head });
    assert_eq!(outcome(&talk.note(out).signals), Some(TurnOutcome::Completed));
}

#[test]
fn the_end_of_the_process_fails_everything_that_is_open() {
    let mut talk = Talk::working();
    talk.hears(calls("t", "Bash", json!({"command": "ls"})));
    let out = talk.driver.ended();
    assert_eq!(last_call(&out).status, ToolStatus::Failed);
    assert_eq!(outcome(&out.signals), None);
    assert_eq!(talk.results(json!({})).signals, []);
}
