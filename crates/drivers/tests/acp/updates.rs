use consort_model::{Image, NoticeLevel, PlanEntry, PlanStatus, Signal, SlashCommand, Usage};
use serde_json::{Value, json};

use crate::support::{Talk, hello_of, text, warning};

fn notice(level: NoticeLevel, text: &str) -> Signal {
    Signal::Notice { level, text: text.into() }
}

#[test]
fn every_kind_of_update_has_its_signal() {
    let table: Vec<(Value, Vec<Signal>)> = vec![
        (
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a\nb"}}),
            vec![text("a\nb")],
        ),
        (
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
            vec![Signal::Thinking { text: "hm".into(), within: None }],
        ),
        (json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "me"}}), vec![]),
        (
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}),
            vec![Signal::Image {
                image: Image { mime_type: "image/png".into(), data: "AA==".into() },
                within: None,
            }],
        ),
        (
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "audio", "data": "", "mimeType": "audio/wav"}}),
            vec![Signal::Unknown {
                label: "audio in a message".into(),
                raw: json!({"type": "audio", "data": "", "mimeType": "audio/wav"}),
            }],
        ),
        (
            json!({"sessionUpdate": "plan", "entries": [
                {"content": "one", "priority": "high", "status": "completed"},
                {"content": "two", "priority": "low", "status": "in_progress"},
            ]}),
            vec![Signal::Plan(vec![
                PlanEntry { text: "one".into(), status: PlanStatus::Completed },
                PlanEntry { text: "two".into(), status: PlanStatus::InProgress },
            ])],
        ),
        (
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [
                {"name": "web", "description": "search", "input": {"hint": "words"}},
            ]}),
            vec![Signal::Commands(vec![SlashCommand {
                name: "web".into(),
                description: "search".into(),
                hint: Some("words".into()),
            }])],
        ),
        (
            json!({"sessionUpdate": "session_info_update", "title": "Fix it"}),
            vec![Signal::Title("Fix it".into())],
        ),
        (json!({"sessionUpdate": "session_info_update", "updatedAt": "now"}), vec![]),
        (
            json!({"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": 0.5, "currency": "USD"}}),
            vec![Signal::Usage(Usage {
                context_used: Some(5),
                context_size: Some(10),
                cost: Some(0.5),
                ..Usage::default()
            })],
        ),
        (
            json!({"sessionUpdate": "notice", "severity": "error", "title": "Quota", "description": "used up"}),
            vec![notice(NoticeLevel::Error, "Quota: used up")],
        ),
        (
            json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}),
            vec![notice(NoticeLevel::Info, "The agent has made its context shorter.")],
        ),
        (
            json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed", "error": "no"}),
            vec![notice(NoticeLevel::Warning, "The agent could not make its context shorter: no.")],
        ),
        (
            json!({"sessionUpdate": "future_thing", "x": [1]}),
            vec![Signal::Unknown {
                label: "future_thing".into(),
                raw: json!({"sessionUpdate": "future_thing", "x": [1]}),
            }],
        ),
        (
            json!({"sessionUpdate": "tool_call", "title": "without an id"}),
            vec![Signal::Unknown {
                label: "tool_call".into(),
                raw: json!({"sessionUpdate": "tool_call", "title": "without an id"}),
            }],
        ),
    ];
    for (update, signals) in table {
        assert_eq!(Talk::working().updates(update.clone()).signals, signals, "{update}");
    }
}

#[test]
fn a_new_message_id_ends_the_message_before() {
    let mut talk = Talk::working();
    let chunk = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    assert_eq!(talk.updates(chunk("1", "a")).signals, [text("a")]);
    assert_eq!(talk.updates(chunk("1", "b")).signals, [text("b")]);
    assert_eq!(talk.updates(chunk("2", "c")).signals, [Signal::MessageEnd, text("c")]);
}

#[test]
fn pieces_of_text_leave_the_state_as_it_was() {
    let mut talk = Talk::working();
    let before = talk.driver.clone();
    talk.updates(
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "more"}}),
    );
    assert_eq!(talk.driver, before);
}

#[test]
fn gemini_announces_its_mode_in_the_text() {
    let modes = json!({"currentModeId": "default", "availableModes": [
        {"id": "default", "name": "Default"}, {"id": "yolo", "name": "Yolo"}]});
    let announcement = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "[MODE_UPDATE] yolo"}});
    let mut talk = Talk::open_with(hello_of("gemini-cli"), json!({"sessionId": "s", "modes": modes}));
    let out = talk.updates(announcement.clone());
    let [Signal::Options(options)] = out.signals.as_slice() else { panic!("{out:?}") };
    assert_eq!(options[0].current, "yolo");
    assert_eq!(Talk::working().updates(announcement).signals, [text("[MODE_UPDATE] yolo")]);
}

#[test]
fn what_cannot_be_read_gives_one_warning_and_changes_nothing() {
    let lines: &[&[u8]] = &[
        b"Listening on stdio...",
        b"{\"jsonrpc\":\"2.0\",",
        b"\xff\xfe\x00",
        b"{}",
        b"[]",
        b"[1]",
        b"null",
        b"42",
        br#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        br#"{"jsonrpc":"2.0","id":"x","result":{}}"#,
        br#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        br#"{"jsonrpc":"2.0","id":2}"#,
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        br#"{"method":"session/update"}"#,
        br#"{"method":"session/update","params":{"sessionId":"s"}}"#,
        br#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":7}}}"#,
    ];
    for line in lines {
        let mut talk = Talk::working();
        let before = talk.driver.clone();
        let out = talk.hears_line(line);
        assert!(warning(&out).chars().count() < 400);
        assert_eq!((out.frames.len(), out.signals.len()), (0, 1), "{out:?}");
        assert_eq!(talk.driver, before);
    }
    assert_eq!(Talk::working().hears_line(" \r").signals, []);
}

#[test]
fn another_session_is_reported_once() {
    let mut talk = Talk::working();
    let update = json!({"method": "session/update", "params": {"sessionId": "other", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}});
    assert!(warning(&talk.hears(update.clone())).contains("other"));
    assert_eq!(talk.hears(update).signals, []);
}

#[test]
fn a_batch_is_taken_in_order() {
    let update = |text: &str| {
        json!({"method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
    };
    let out = Talk::working().hears(json!([update("a"), update("b")]));
    assert_eq!(out.signals, [text("a"), text("b")]);
}

#[test]
fn unknown_notifications_are_kept_and_unknown_requests_refused() {
    let mut talk = Talk::working();
    let kept = Signal::Unknown { label: "_x/y".into(), raw: json!({"a": 1}) };
    let out = talk.hears(json!({"method": "_x/y", "params": {"a": 1}}));
    assert_eq!(out.signals, vec![kept.clone()]);
    assert!(out.frames.is_empty());
    let out = talk.hears(json!({"id": "q", "method": "_x/y", "params": {"a": 1}}));
    assert_eq!(out.signals, [kept]);
    assert_eq!(talk.last_sent()["id"], "q");
    assert_eq!(talk.last_sent()["error"]["code"], -32601);
}
