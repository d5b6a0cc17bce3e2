//! Codex's own sub-agents.

use consort_model::{Signal, ToolCallId, ToolStatus, TurnOutcome};
use serde_json::{Value, json};

use crate::support::{Talk, tool};

fn spawn(status: &str, children: Value) -> Value {
    json!({"type": "collabAgentToolCall", "id": "spawn", "tool": "spawnAgent", "status": status,
        "senderThreadId": "t", "receiverThreadIds": children, "prompt": "look", "agentsStates": {}})
}

/// With a sub-agent in thread `k` that works.
fn with_child() -> Talk {
    let mut talk = Talk::working();
    assert_eq!(tool(&talk.item("started", spawn("inProgress", json!([])))).title, "Start a sub-agent: look");
    // It is started, and works from now on.
    assert_eq!(tool(&talk.item("completed", spawn("completed", json!(["k"])))).status, ToolStatus::Running);
    talk.tells("turn/started", json!({"threadId": "k", "turn": {"id": "v"}}));
    talk
}

#[test]
fn what_a_sub_agent_says_and_does_is_nested_in_the_call_that_started_it() {
    let mut talk = with_child();
    let within = Some(ToolCallId::new("spawn"));
    let piece = json!({"threadId": "k", "itemId": "m", "delta": "Hi"});
    let said = Signal::Text { text: "Hi".into(), within: within.clone() };
    assert_eq!(talk.tells("item/agentMessage/delta", piece).signals, [said]);
    let item = json!({"type": "commandExecution", "id": "c", "command": "ls", "status": "inProgress"});
    let out = talk.tells("item/started", json!({"threadId": "k", "item": item}));
    assert!(
        matches!(&out.signals[..], [Signal::Tool { within: nested, .. }] if *nested == within),
        "{out:?}"
    );
    let usage = json!({"threadId": "k", "tokenUsage": {"total": {"inputTokens": 1}}});
    assert_eq!(talk.tells("thread/tokenUsage/updated", usage).signals, []);
    let out =
        talk.tells("turn/completed", json!({"threadId": "k", "turn": {"id": "v", "status": "completed"}}));
    let statuses: Vec<(&str, ToolStatus)> = out
        .signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Tool { call, .. } => Some((call.id.as_str(), call.status)),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [("c", ToolStatus::Failed), ("spawn", ToolStatus::Completed)]);
    assert!(matches!(talk.ends("completed").signals[..], [Signal::TurnEnded(TurnOutcome::Completed)]));
}

#[test]
fn an_interrupt_stops_sub_agents_too() {
    let mut talk = with_child();
    let item = json!({"type": "commandExecution", "id": "c", "command": "ls", "processId": "8", "status": "inProgress"});
    talk.tells("item/started", json!({"threadId": "k", "item": item}));
    let before = talk.sent.len();
    let out = talk.driver.interrupt();
    talk.note(out);
    let sent: Vec<&Value> = talk.sent[before..].iter().map(|message| &message["params"]).collect();
    assert_eq!(
        sent,
        [
            &json!({"threadId": "t", "turnId": "u"}),
            &json!({"threadId": "k", "turnId": "v"}),
            &json!({"threadId": "k", "processId": "8"}),
        ]
    );
}

#[test]
fn an_interrupt_ends_a_sub_agents_command_that_had_to_be_approved() {
    let mut talk = with_child();
    let item = json!({"type": "commandExecution", "id": "c", "command": "sleep 9", "processId": null, "status": "inProgress"});
    talk.tells("item/started", json!({"threadId": "k", "item": item}));
    let out = talk.driver.interrupt();
    talk.note(out);
    assert_eq!(*talk.sent("thread/backgroundTerminals/list"), json!({"threadId": "k"}));
    let running = json!({"data": [{"itemId": "c", "processId": "77", "command": "sleep 9"}]});
    talk.replies("thread/backgroundTerminals/list", running);
    assert_eq!(
        *talk.sent("thread/backgroundTerminals/terminate"),
        json!({"threadId": "k", "processId": "77"})
    );
}

#[test]
fn a_sub_agent_that_outlives_the_turn_has_not_failed() {
    let mut talk = with_child();
    let item =
        |status: &str| json!({"type": "commandExecution", "id": "c", "command": "ls", "status": status});
    talk.tells("item/started", json!({"threadId": "k", "item": item("inProgress")}));
    assert_eq!(talk.ends("completed").signals, [Signal::TurnEnded(TurnOutcome::Completed)]);
    let out = talk.tells("item/completed", json!({"threadId": "k", "item": item("completed")}));
    assert_eq!(tool(&out).status, ToolStatus::Completed);
    let ends = json!({"threadId": "k", "turn": {"id": "v", "status": "completed"}});
    let out = talk.tells("turn/completed", ends);
    assert_eq!((tool(&out).id.as_str(), tool(&out).status), ("spawn", ToolStatus::Completed));
    let mut talk = with_child();
    assert_eq!(tool(&talk.ends("interrupted")).status, ToolStatus::Failed);
}

#[test]
fn a_sub_agents_approval_is_asked_and_answered() {
    let mut talk = with_child();
    let params = json!({"threadId": "k", "turnId": "v", "itemId": "c", "command": "rm x", "cwd": "/project"});
    let out = talk.asks(json!(0), "item/commandExecution/requestApproval", params);
    assert!(matches!(&out.signals[..], [Signal::Ask { .. }]), "{out:?}");
    let answer = consort_model::Answer::Deny { message: Some("use git rm".into()) };
    let out = talk.driver.answer("0", &answer);
    talk.note(out);
    assert_eq!(talk.sent("turn/steer")["expectedTurnId"], "v");
    assert_eq!(*talk.last_sent(), json!({"id": 0, "result": {"decision": "decline"}}));
}

#[test]
fn sub_agents_with_paths_are_nested_too() {
    let mut talk = Talk::working();
    let activity = |id: &str, kind: &str| json!({"type": "subAgentActivity", "id": id, "kind": kind, "agentThreadId": "k", "agentPath": "/root/kid"});
    talk.item("started", activity("a", "started"));
    let out = talk.item("completed", activity("a", "started"));
    assert_eq!(
        (tool(&out).title.as_str(), tool(&out).status),
        ("Start the sub-agent /root/kid", ToolStatus::Running)
    );
    talk.tells("turn/started", json!({"threadId": "k", "turn": {"id": "v"}}));
    let out =
        talk.tells("turn/completed", json!({"threadId": "k", "turn": {"id": "v", "status": "completed"}}));
    assert_eq!(tool(&out).status, ToolStatus::Completed);
    assert_eq!(talk.item("started", activity("done", "completed")).signals, []);
    assert_eq!(talk.item("completed", activity("done", "completed")).signals, []);
    assert_eq!(tool(&talk.item("completed", activity("b", "interacted"))).status, ToolStatus::Completed);
    let piece = json!({"threadId": "k", "itemId": "m", "delta": "Hi"});
    let said = Signal::Text { text: "Hi".into(), within: Some(ToolCallId::new("a")) };
    assert_eq!(talk.tells("item/agentMessage/delta", piece).signals, [said]);
}

#[test]
fn a_sub_agent_of_an_earlier_process_is_known_once_it_is_written_to() {
    let mut talk = Talk::working();
    let write = json!({"type": "collabAgentToolCall", "id": "w", "tool": "sendInput", "status": "completed",
        "receiverThreadIds": ["old"], "prompt": "more"});
    assert_eq!(tool(&talk.item("completed", write)).status, ToolStatus::Completed);
    let piece = json!({"threadId": "old", "itemId": "m", "delta": "Hi"});
    let said = Signal::Text { text: "Hi".into(), within: Some(ToolCallId::new("w")) };
    assert_eq!(talk.tells("item/agentMessage/delta", piece).signals, [said]);
}
