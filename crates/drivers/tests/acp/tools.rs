use consort_drivers::Output;
use consort_model::{Diff, Image, PlanEntry, PlanStatus, Signal, ToolCall, ToolKind, ToolStatus};
use serde_json::{Value, json};

use crate::support::{Talk, hello_of};

fn call(out: &Output) -> &ToolCall {
    match out.signals.as_slice() {
        [Signal::Tool { call, .. }] => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_always_told_whole() {
    let mut talk = Talk::working();
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute",
        "status": "pending", "rawInput": {"command": "ls"}, "locations": [{"path": "/project/a", "line": 3}, {"path": "/b"}]});
    let out = talk.updates(begun);
    assert_eq!(call(&out).tool, ToolKind::Execute);
    assert_eq!(call(&out).locations, ["/project/a:3", "/b"]);
    let text = |text: &str| json!({"type": "content", "content": {"type": "text", "text": text}});
    talk.updates(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress", "content": [text("a")]}));
    let out =
        talk.updates(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
        "content": [text("a"), text("b"), {"type": "terminal", "terminalId": "term-1"},
            {"type": "diff", "path": "/project/a", "oldText": "1", "newText": "2"}, {"type": "hologram"},
            {"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": "AA=="}}],
        "rawOutput": {"exit": 0}, "_meta": {"x": {"y": 1}}}));
    let whole = call(&out);
    assert_eq!((whole.title.as_str(), whole.status), ("Run", ToolStatus::Completed));
    assert_eq!(whole.input, json!({"command": "ls"}));
    assert_eq!(whole.output, "a\nb\n[terminal term-1]");
    assert_eq!(
        whole.diffs,
        [Diff { path: "/project/a".into(), old_text: Some("1".into()), new_text: "2".into() }]
    );
    assert_eq!(whole.images, [Image { mime_type: "image/png".into(), data: "AA==".into() }]);
    assert_eq!(whole.raw_output, json!({"exit": 0}));
    assert_eq!(whole.meta, json!({"x": {"y": 1}, "content": [{"type": "hologram"}]}));
}

#[test]
fn an_update_of_an_unknown_call_makes_it() {
    let out = Talk::working()
        .updates(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "switch_mode"}));
    assert_eq!((call(&out).title.as_str(), call(&out).tool), ("tool call", ToolKind::Other));
}

#[test]
fn fields_that_cannot_be_read_count_as_not_said() {
    let mut talk = Talk::working();
    talk.updates(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "status": "in_progress"}),
    );
    let out = talk.updates(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": 7,
        "status": "levitating", "content": "no list", "locations": [1, {"path": "/a"}], "kind": "new_kind"}));
    assert_eq!((call(&out).title.as_str(), call(&out).status), ("Run", ToolStatus::Running));
    assert_eq!(call(&out).locations, ["/a"]);
}

#[test]
fn a_result_that_repeats_the_output_is_not_kept_twice() {
    let out = Talk::working().updates(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x",
        "content": [{"type": "content", "content": {"type": "text", "text": "same"}}], "rawOutput": "same"}));
    assert_eq!((call(&out).output.as_str(), &call(&out).raw_output), ("same", &Value::Null));
}

#[test]
fn unfinished_calls_fail_with_their_turn() {
    let mut talk = Talk::working();
    talk.updates(
        json!({"sessionUpdate": "tool_call", "toolCallId": "done", "title": "d", "status": "completed"}),
    );
    talk.updates(
        json!({"sessionUpdate": "tool_call", "toolCallId": "open", "title": "o", "status": "in_progress"}),
    );
    let out = talk.replies("session/prompt", json!({"stopReason": "end_turn"}));
    let [Signal::Tool { call, .. }, Signal::TurnEnded(_)] = out.signals.as_slice() else { panic!("{out:?}") };
    assert_eq!((call.id.as_str(), call.status), ("open", ToolStatus::Failed));
    let out = talk
        .updates(json!({"sessionUpdate": "tool_call_update", "toolCallId": "open", "status": "completed"}));
    let late = self::call(&out);
    assert_eq!(
        (late.title.as_str(), late.status),
        ("o", ToolStatus::Completed),
        "work in the background may go on"
    );
}

#[test]
fn many_ended_calls_do_not_pile_up_in_the_state() {
    let mut talk = Talk::working();
    let long = "x".repeat(10_000);
    for index in 0..100 {
        talk.updates(json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{index}"), "title": "x",
            "status": "completed", "rawOutput": long}));
    }
    assert!(serde_json::to_string(&talk.driver).unwrap().len() < 60_000);
    let late = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t0", "title": "late"});
    assert_eq!(talk.updates(late).signals, [], "half a call must not replace a whole one");
}

#[test]
fn opencode_plans_in_a_tool() {
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "todowrite",
        "rawInput": {"todos": [{"content": "Read", "status": "in_progress"}, {"content": "Write"}]}});
    let mut talk = Talk::open_with(hello_of("OpenCode"), json!({"sessionId": "s"}));
    let out = talk.updates(update.clone());
    let plan = vec![
        PlanEntry { text: "Read".into(), status: PlanStatus::InProgress },
        PlanEntry { text: "Write".into(), status: PlanStatus::Pending },
    ];
    assert_eq!(out.signals[1..], [Signal::Plan(plan)]);
    assert_eq!(Talk::working().updates(update).signals.len(), 1);
}

#[test]
fn a_call_of_a_sub_agent_names_its_parent() {
    let mut talk =
        Talk::open_with(hello_of("@agentclientprotocol/claude-agent-acp"), json!({"sessionId": "s"}));
    let out = talk.updates(json!({"sessionUpdate": "tool_call", "toolCallId": "child", "title": "x",
        "_meta": {"claudeCode": {"parentToolUseId": "parent"}}}));
    let [Signal::Tool { within: Some(parent), .. }] = out.signals.as_slice() else { panic!("{out:?}") };
    assert_eq!(parent.as_str(), "parent");
}
