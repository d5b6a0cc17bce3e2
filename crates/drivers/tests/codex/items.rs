use consort_model::{PlanEntry, PlanStatus, Signal, ToolCall, ToolKind, ToolStatus};
use serde_json::{Value, json};

use crate::support::{Talk, notices, text, tool, warning};

fn thinking(text: &str) -> Signal {
    Signal::Thinking { text: text.into(), within: None }
}

#[test]
fn what_the_pieces_left_out_is_told_at_the_end() {
    // (pieces, the whole, what the end adds)
    let table = [
        (vec!["Hel", "lo"], "Hello", vec![Signal::MessageEnd]),
        (vec![], "Hello", vec![text("Hello"), Signal::MessageEnd]),
        (vec!["Hel"], "Hello", vec![text("lo"), Signal::MessageEnd]),
        (vec!["é"], "éa", vec![text("a"), Signal::MessageEnd]),
        (vec!["Hello, longer"], "Hello", vec![Signal::MessageEnd]),
        (vec!["a"], "é", vec![Signal::MessageEnd]),
        (vec![], "", vec![]),
    ];
    for (pieces, whole, expected) in table {
        for kind in ["agentMessage", "plan"] {
            let mut talk = Talk::working();
            talk.item("started", json!({"type": kind, "id": "m", "text": ""}));
            for piece in &pieces {
                let out = talk.tells(&format!("item/{kind}/delta"), json!({"itemId": "m", "delta": piece}));
                assert_eq!(out.signals, [text(piece)]);
            }
            let out = talk.item("completed", json!({"type": kind, "id": "m", "text": whole}));
            assert_eq!(out.signals, expected, "{pieces:?} {whole}");
        }
    }
}

#[test]
fn thoughts_come_in_parts() {
    let mut talk = Talk::working();
    talk.item("started", json!({"type": "reasoning", "id": "r", "summary": [], "content": []}));
    assert_eq!(
        talk.tells("item/reasoning/summaryPartAdded", json!({"itemId": "r", "summaryIndex": 0})).signals,
        []
    );
    let piece = json!({"itemId": "r", "delta": "Hm", "summaryIndex": 0});
    assert_eq!(talk.tells("item/reasoning/summaryTextDelta", piece).signals, [thinking("Hm")]);
    let part = json!({"itemId": "r", "summaryIndex": 1});
    assert_eq!(talk.tells("item/reasoning/summaryPartAdded", part).signals, [thinking("\n\n")]);
    let whole = json!({"type": "reasoning", "id": "r", "summary": ["Hm", "so"], "content": []});
    assert_eq!(talk.item("completed", whole).signals, [Signal::MessageEnd]);
    let untold = json!({"type": "reasoning", "id": "s", "summary": ["a", "b"], "content": []});
    assert_eq!(talk.item("completed", untold).signals, [thinking("a\n\nb"), Signal::MessageEnd]);
}

#[test]
fn a_message_that_was_cut_is_not_written_on() {
    let mut talk = Talk::working();
    talk.item("started", json!({"type": "agentMessage", "id": "m"}));
    talk.tells("item/agentMessage/delta", json!({"itemId": "m", "delta": "Hel"}));
    let out = talk.tells("error", json!({"willRetry": true, "error": {"message": "Reconnecting... 1/5"}}));
    assert_eq!(out.signals[0], Signal::MessageEnd);
    assert!(warning(&out).contains("Reconnecting... 1/5. It tries again."));
    talk.item("started", json!({"type": "agentMessage", "id": "n"}));
    assert_eq!(
        talk.tells("item/agentMessage/delta", json!({"itemId": "n", "delta": "Hello"})).signals,
        [text("Hello")]
    );
    // Without a word about it: another message simply begins.
    let out = talk.item("started", json!({"type": "agentMessage", "id": "o"}));
    assert_eq!(out.signals, [Signal::MessageEnd]);
}

#[test]
fn a_commands_output_grows_and_its_end_has_the_whole() {
    let mut talk = Talk::working();
    let command = |status: &str| {
        json!({"type": "commandExecution", "id": "c", "command": "/bin/bash -lc 'seq 3'", "cwd": "/project",
            "status": status, "commandActions": [], "aggregatedOutput": null, "exitCode": null})
    };
    let out = talk.item("started", command("inProgress"));
    let call = tool(&out);
    assert_eq!(
        (call.tool, call.title.as_str(), call.status),
        (ToolKind::Execute, "seq 3", ToolStatus::Running)
    );
    assert_eq!(call.input, json!({"command": "/bin/bash -lc 'seq 3'", "cwd": "/project"}));
    let piece = |delta: &str| json!({"itemId": "c", "delta": delta});
    assert_eq!(tool(&talk.tells("item/commandExecution/outputDelta", piece("2\n"))).output, "2\n");
    assert_eq!(tool(&talk.tells("item/commandExecution/outputDelta", piece("3\n"))).output, "2\n3\n");
    let mut done = command("completed");
    done["aggregatedOutput"] = json!("1\n2\n3\n");
    done["exitCode"] = json!(0);
    let out = talk.item("completed", done);
    assert_eq!((tool(&out).output.as_str(), tool(&out).status), ("1\n2\n3\n", ToolStatus::Completed));
    assert_eq!(tool(&out).meta, json!({"exit_code": 0}));
    assert_eq!(talk.tells("item/commandExecution/outputDelta", piece("late")).signals, []);
}

#[test]
fn statuses_of_items_are_statuses_of_calls() {
    let table = [
        ("completed", ToolStatus::Completed),
        ("failed", ToolStatus::Failed),
        ("declined", ToolStatus::Failed),
        ("strange", ToolStatus::Completed),
    ];
    for (status, expected) in table {
        let mut talk = Talk::working();
        let out = talk.item(
            "completed",
            json!({"type": "commandExecution", "id": "c", "command": "x", "status": status}),
        );
        assert_eq!(tool(&out).status, expected, "{status}");
    }
}

#[test]
fn a_change_shows_its_diffs_and_their_corrections() {
    let mut talk = Talk::working();
    let change = |diff: &str| json!([{"path": "/project/a", "kind": {"type": "update", "move_path": null}, "diff": diff}]);
    let item = json!({"type": "fileChange", "id": "e", "changes": change("@@ -1 +1 @@\n-a\n+b\n"), "status": "inProgress"});
    let check = |call: &ToolCall, new: &str| {
        assert_eq!((call.tool, call.title.as_str()), (ToolKind::Edit, "Edit /project/a"));
        assert_eq!(call.diffs[0].new_text, new);
        assert_eq!(call.locations, ["/project/a:1"]);
    };
    check(tool(&talk.item("started", item)), "b\n");
    let better = json!({"itemId": "e", "changes": change("@@ -1 +1 @@\n-a\n+c\n")});
    check(tool(&talk.tells("item/fileChange/patchUpdated", better)), "c\n");
}

#[test]
fn a_servers_tool_tells_its_progress_and_its_result() {
    let mut talk = Talk::working();
    let mut item = json!({"type": "mcpToolCall", "id": "m", "server": "s", "tool": "t", "arguments": {"a": 1},
        "status": "inProgress", "result": null, "error": null});
    assert_eq!(tool(&talk.item("started", item.clone())).title, "s: t");
    let out = talk.tells("item/mcpToolCall/progress", json!({"itemId": "m", "message": "half"}));
    assert_eq!(tool(&out).output, "half\n");
    item["status"] = json!("completed");
    item["result"] =
        json!({"content": [{"type": "text", "text": "A"}, {"type": "image"}], "structuredContent": {"x": 1}});
    let out = talk.item("completed", item.clone());
    assert_eq!((tool(&out).output.as_str(), &tool(&out).raw_output), ("A\n[image]", &json!({"x": 1})));
    item["result"] = Value::Null;
    item["status"] = json!("failed");
    item["error"] = json!({"message": "user rejected MCP tool call"});
    let out = talk.item("completed", item);
    assert_eq!(
        (tool(&out).output.as_str(), tool(&out).status),
        ("user rejected MCP tool call", ToolStatus::Failed)
    );
}

#[test]
fn a_plan_is_told_whole() {
    let mut talk = Talk::working();
    let out = talk.tells(
        "turn/plan/updated",
        json!({"explanation": null, "plan": [{"step": "Read", "status": "completed"},
            {"step": "Write", "status": "inProgress"}, {"step": "Test", "status": "pending"}, {"step": "?", "status": 7}]}),
    );
    let entry = |text: &str, status| PlanEntry { text: text.into(), status };
    let expected = vec![
        entry("Read", PlanStatus::Completed),
        entry("Write", PlanStatus::InProgress),
        entry("Test", PlanStatus::Pending),
        entry("?", PlanStatus::Pending),
    ];
    assert_eq!(out.signals, [Signal::Plan(expected)]);
}

#[test]
fn reviews_and_compaction_are_told() {
    let mut talk = Talk::working();
    let out =
        talk.item("completed", json!({"type": "enteredReviewMode", "id": "a", "review": "current changes"}));
    assert_eq!(notices(&out)[0].1, "Codex reviews current changes.");
    let out = talk.item("completed", json!({"type": "exitedReviewMode", "id": "b", "review": "Looks good."}));
    assert_eq!(out.signals, [text("Looks good."), Signal::MessageEnd]);
    // The same comes as a message, before or after.
    let again = json!({"type": "agentMessage", "id": "m", "text": "Looks good."});
    assert_eq!(talk.item("completed", again.clone()).signals, []);
    assert_eq!(talk.item("completed", again).signals, [text("Looks good."), Signal::MessageEnd]);
    assert_eq!(talk.item("started", json!({"type": "contextCompaction", "id": "c"})).signals, []);
    assert_eq!(notices(&talk.item("completed", json!({"type": "contextCompaction", "id": "c"}))).len(), 1);
}

#[test]
fn what_is_not_known_is_kept() {
    let mut talk = Talk::working();
    let item = json!({"type": "hologram", "id": "h", "size": 3});
    assert_eq!(talk.item("started", item.clone()).signals, []);
    let kept = Signal::Unknown { label: "hologram".into(), raw: item.clone() };
    assert_eq!(talk.item("completed", item).signals, [kept]);
    let out = talk.tells("thread/dreams", json!({"of": "sheep"}));
    assert!(
        matches!(&out.signals[..], [Signal::Unknown { label, .. }] if label == "thread/dreams"),
        "{out:?}"
    );
    let out = talk.asks(json!("x"), "currentTime/read", json!({}));
    assert!(matches!(&out.signals[..], [Signal::Unknown { .. }]));
    assert_eq!((&talk.last_sent()["id"], &talk.last_sent()["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn other_threads_are_left_alone_and_reported_once() {
    let mut talk = Talk::working();
    let elsewhere = json!({"threadId": "x", "itemId": "m", "delta": "Hi"});
    assert_eq!(notices(&talk.tells("item/agentMessage/delta", elsewhere.clone())).len(), 1);
    assert_eq!(talk.tells("item/agentMessage/delta", elsewhere).signals, []);
}
