use consort_drivers::{Frame, Output};
use consort_model::{Attachment, Image, Signal, ToolStatus, TurnOutcome, Usage};
use serde_json::json;

use crate::support::{Talk, notices, text, tool, warning};

fn outcome(out: &Output) -> &TurnOutcome {
    match out.signals.last() {
        Some(Signal::TurnEnded(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_prompt_goes_out_and_its_end_ends_the_turn() {
    let mut talk = Talk::open();
    talk.prompt("hello");
    assert_eq!(
        talk.last_sent()["params"],
        json!({"threadId": "t", "input": [{"type": "text", "text": "hello", "text_elements": []}]})
    );
    talk.begins();
    assert_eq!(talk.item("started", json!({"type": "agentMessage", "id": "m", "text": ""})).signals, []);
    assert_eq!(
        talk.tells("item/agentMessage/delta", json!({"itemId": "m", "delta": "Hi"})).signals,
        [text("Hi")]
    );
    let out = talk.item("completed", json!({"type": "agentMessage", "id": "m", "text": "Hi"}));
    assert_eq!(out.signals, [Signal::MessageEnd]);
    assert_eq!(talk.ends("completed").signals, [Signal::TurnEnded(TurnOutcome::Completed)]);
    assert_eq!(talk.ends("completed").signals, []);
}

#[test]
fn images_and_files_go_with_the_words() {
    let mut talk = Talk::open();
    let attachments = [
        Attachment::Image(Image { mime_type: "image/png".into(), data: "AA==".into() }),
        Attachment::File { path: "/project/a".into(), text: "fn".into() },
    ];
    let out = talk.driver.prompt("see", &attachments);
    talk.note(out);
    let input = &talk.last_sent()["params"]["input"];
    assert_eq!(input[1], json!({"type": "image", "url": "data:image/png;base64,AA=="}));
    assert_eq!(input[2]["text"], "The file /project/a holds:\nfn");
}

#[test]
fn compacting_is_a_turn_of_its_own() {
    let mut talk = Talk::open();
    talk.prompt("/compact");
    assert_eq!(talk.last_sent()["method"], "thread/compact/start");
    talk.replies("thread/compact/start", json!({}));
    talk.tells("turn/started", json!({"turn": {"id": "u", "status": "inProgress"}}));
    let out = talk.item("completed", json!({"type": "contextCompaction", "id": "c"}));
    assert_eq!(notices(&out).len(), 1);
    assert_eq!(*outcome(&talk.ends("completed")), TurnOutcome::Completed);
}

#[test]
fn commands_become_the_requests_that_they_are() {
    let target = |target: serde_json::Value| json!({"threadId": "t", "target": target});
    let table = [
        ("/review", "review/start", Some(target(json!({"type": "uncommittedChanges"})))),
        (
            " /review the last commit ",
            "review/start",
            Some(target(json!({"type": "custom", "instructions": "the last commit"}))),
        ),
        ("/compact ", "thread/compact/start", Some(json!({"threadId": "t"}))),
        ("/compact this sentence", "turn/start", None),
        ("/unknown", "turn/start", None),
        ("what does /compact do", "turn/start", None),
    ];
    for (text, method, params) in table {
        let mut talk = Talk::open();
        talk.prompt(text);
        assert_eq!(talk.last_sent()["method"], method, "{text}");
        if let Some(params) = params {
            assert_eq!(talk.last_sent()["params"], params);
        }
    }
}

#[test]
fn the_end_of_a_turn_says_how_it_ended() {
    let failed = |message: &str| TurnOutcome::Failed { message: message.into() };
    let table = [
        (json!({"status": "completed"}), TurnOutcome::Completed),
        (json!({"status": "interrupted"}), TurnOutcome::Interrupted),
        (
            json!({"status": "failed", "error": {"message": "Out of\nluck."}}),
            failed("Codex failed: Out of luck."),
        ),
        (json!({"status": "failed", "error": null}), failed("Codex failed and did not say why.")),
        (json!({"status": "bored"}), TurnOutcome::Completed),
    ];
    for (mut turn, expected) in table {
        let mut talk = Talk::working();
        turn["id"] = json!("u");
        assert_eq!(*outcome(&talk.tells("turn/completed", json!({"turn": turn}))), expected);
        talk.prompt("again");
        talk.begins();
        assert_eq!(*outcome(&talk.ends("completed")), TurnOutcome::Completed);
    }
}

#[test]
fn a_prompt_that_is_not_taken_fails_the_turn() {
    let mut talk = Talk::open();
    talk.prompt("go");
    let out = talk.fails("turn/start", "thread not found: t");
    let message = "Codex did not take the prompt: thread not found: t.".to_owned();
    assert_eq!(*outcome(&out), TurnOutcome::Failed { message });
}

#[test]
fn a_prompt_at_the_wrong_time_is_not_sent() {
    let mut talk = Talk::working();
    let out = talk.prompt("now");
    assert!(out.frames.is_empty());
    assert!(warning(&out).contains("takes none"));
}

#[test]
fn an_interrupt_stops_the_turn_and_its_commands() {
    let mut talk = Talk::working();
    talk.item(
        "started",
        json!({"type": "commandExecution", "id": "c", "command": "sleep 9", "processId": "77",
        "status": "inProgress"}),
    );
    let out = talk.driver.interrupt();
    talk.note(out);
    assert_eq!(*talk.sent("turn/interrupt"), json!({"threadId": "t", "turnId": "u"}));
    assert_eq!(
        *talk.sent("thread/backgroundTerminals/terminate"),
        json!({"threadId": "t", "processId": "77"})
    );
    let out = talk.driver.interrupt();
    assert!(talk.note(out).frames.is_empty(), "once is enough");
    let out = talk.ends("interrupted");
    assert_eq!(tool(&out).status, ToolStatus::Failed);
    assert_eq!(*outcome(&out), TurnOutcome::Interrupted);
    talk.replies("turn/interrupt", json!({}));
    // What the command still had to say completes its record, as long as no other turn runs.
    let done = json!({"type": "commandExecution", "id": "c", "command": "sleep 9", "status": "failed",
        "aggregatedOutput": "begin\n", "exitCode": -1});
    assert_eq!(tool(&talk.item("completed", done)).output, "begin\n");
}

#[test]
fn an_interrupt_ends_a_command_whose_process_was_not_told() {
    let mut talk = Talk::working();
    // So it comes where the command has to be approved.
    talk.item(
        "started",
        json!({"type": "commandExecution", "id": "c", "command": "sleep 9", "processId": null,
        "status": "inProgress"}),
    );
    let out = talk.driver.interrupt();
    talk.note(out);
    assert_eq!(*talk.sent("thread/backgroundTerminals/list"), json!({"threadId": "t"}));
    talk.ends("interrupted");
    let running = json!({"data": [
        {"itemId": "earlier", "processId": "76", "command": "serve"},
        {"itemId": "c", "processId": "77", "command": "sleep 9"},
    ]});
    let out = talk.replies("thread/backgroundTerminals/list", running);
    assert_eq!(out.frames.len(), 1, "what was left running on purpose goes on");
    assert_eq!(
        *talk.sent("thread/backgroundTerminals/terminate"),
        json!({"threadId": "t", "processId": "77"})
    );
}

#[test]
fn a_late_end_of_a_cut_call_does_not_show_up_in_the_next_turn() {
    let mut talk = Talk::working();
    talk.item(
        "started",
        json!({"type": "commandExecution", "id": "c", "command": "x", "status": "inProgress"}),
    );
    talk.ends("interrupted");
    talk.prompt("next");
    talk.begins();
    let done = json!({"type": "commandExecution", "id": "c", "command": "x", "status": "failed"});
    assert_eq!(talk.item("completed", done).signals, []);
}

#[test]
fn an_interrupt_before_the_turn_began_waits_for_it() {
    let mut talk = Talk::open();
    talk.prompt("go");
    let out = talk.driver.interrupt();
    assert!(talk.note(out).frames.is_empty());
    talk.begins();
    assert_eq!(*talk.sent("turn/interrupt"), json!({"threadId": "t", "turnId": "u"}));
    assert_eq!(*outcome(&talk.ends("interrupted")), TurnOutcome::Interrupted);
}

#[test]
fn an_interrupt_of_nothing_ends_the_turn() {
    let mut talk = Talk::working();
    let out = talk.driver.interrupt();
    talk.note(out);
    let out = talk.fails("turn/interrupt", "no active turn to interrupt");
    assert_eq!(*outcome(&out), TurnOutcome::Interrupted);
    let out = talk.driver.interrupt();
    assert_eq!(out, Output::default());
}

#[test]
fn a_command_that_outlives_its_turn_goes_on_and_ends_in_its_own_time() {
    for process in [json!("1"), json!(null)] {
        let mut talk = Talk::working();
        let serve = |status: &str| {
            json!({"type": "commandExecution", "id": "c", "command": "serve", "processId": process, "status": status,
                "aggregatedOutput": "on port 80\n"})
        };
        talk.item("started", serve("inProgress"));
        assert_eq!(talk.ends("completed").signals, [Signal::TurnEnded(TurnOutcome::Completed)]);
        // Whoever stops a later turn does not mean it.
        talk.prompt("next");
        talk.begins();
        let before = talk.sent.len();
        let out = talk.driver.interrupt();
        talk.note(out);
        assert_eq!(talk.sent.len(), before + 1, "{:?}", talk.sent);
        assert_eq!(talk.ends("interrupted").signals, [Signal::TurnEnded(TurnOutcome::Interrupted)]);
        let piece = json!({"itemId": "c", "delta": "GET /\n"});
        assert_eq!(tool(&talk.tells("item/commandExecution/outputDelta", piece)).status, ToolStatus::Running);
        assert_eq!(tool(&talk.item("completed", serve("completed"))).status, ToolStatus::Completed);
    }
}

#[test]
fn what_goes_on_in_the_background_ends_with_the_process() {
    let mut talk = Talk::working();
    let serve = json!({"type": "commandExecution", "id": "c", "command": "serve", "status": "inProgress"});
    talk.item("started", serve);
    talk.ends("completed");
    let out = talk.driver.ended();
    assert_eq!(tool(&talk.note(out)).status, ToolStatus::Failed);
}

#[test]
fn a_turn_that_the_agent_begins_by_itself_is_a_turn() {
    let mut talk = Talk::open();
    let begins = json!({"turn": {"id": "own", "status": "inProgress"}});
    assert_eq!(talk.tells("turn/started", begins).signals, [Signal::TurnStarted]);
    let ends = json!({"turn": {"id": "own", "status": "completed"}});
    assert_eq!(talk.tells("turn/completed", ends).signals, [Signal::TurnEnded(TurnOutcome::Completed)]);
}

#[test]
fn another_turns_end_is_not_ours() {
    let mut talk = Talk::working();
    let ends = json!({"turn": {"id": "other", "status": "completed"}});
    assert_eq!(talk.tells("turn/completed", ends).signals, []);
    let elsewhere = json!({"threadId": "x", "turn": {"id": "u", "status": "completed"}});
    assert_eq!(talk.tells("turn/completed", elsewhere).signals, []);
    assert_eq!(*outcome(&talk.ends("completed")), TurnOutcome::Completed);
}

#[test]
fn tokens_are_counted_over_the_life_of_the_thread() {
    let mut talk = Talk::working();
    let usage = json!({"tokenUsage": {"total": {"totalTokens": 60, "inputTokens": 50, "outputTokens": 10},
        "last": {"totalTokens": 20}, "modelContextWindow": 1000}});
    let expected = Usage {
        input_tokens: Some(50),
        output_tokens: Some(10),
        context_used: Some(20),
        context_size: Some(1000),
        cost: None,
    };
    assert_eq!(talk.tells("thread/tokenUsage/updated", usage).signals, [Signal::Usage(expected)]);
}

#[test]
fn frames_that_are_too_long_leave_nothing_waiting() {
    let mut talk = Talk::working();
    talk.item(
        "started",
        json!({"type": "commandExecution", "id": "c", "command": "x", "status": "inProgress"}),
    );
    let give = |talk: &mut Talk, head: &str| {
        let out = talk.driver.receive(Frame::Oversized { len: 1 << 40, head: head.as_bytes() });
        talk.note(out)
    };
    let head =
        r#"{"method":"item/completed","params":{"item":{"type":"commandExecution","id":"c","output":"aaa"#;
    assert_eq!(tool(&give(&mut talk, head)).status, ToolStatus::Completed);
    give(&mut talk, r#"{"method":"item/commandExecution/requestApproval","id":5,"params":{"a":"b"#);
    assert_eq!((&talk.last_sent()["id"], &talk.last_sent()["error"]["code"]), (&json!(5), &json!(-32600)));
    let head =
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","items":[{"text":"aaa"#;
    assert_eq!(*outcome(&give(&mut talk, head)), TurnOutcome::Completed);
}

#[test]
fn the_end_of_the_process_fails_what_ran() {
    let mut talk = Talk::working();
    talk.item("started", json!({"type": "imageView", "id": "v", "path": "/a"}));
    let out = talk.driver.ended();
    assert_eq!(tool(&out).status, ToolStatus::Failed);
    assert_eq!(talk.ends("completed").signals, []);
    assert_eq!(talk.driver.farewell(), None);
}
