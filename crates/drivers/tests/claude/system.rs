//! What the program says about itself.

use consort_model::{NoticeLevel, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, text};

#[test]
fn news_becomes_notices() {
    let table = [
        (
            "api_retry",
            json!({"attempt": 1, "max_retries": 10, "retry_delay_ms": 592.9, "error_status": 529, "error": "overloaded"}),
            "The model's API failed: overloaded (529). Trying again in 0.6 s, 1 of 10.",
        ),
        ("api_retry", json!({}), "The model's API failed: unknown. Trying again in 0.0 s, 0 of 0."),
        (
            "permission_denied",
            json!({"tool_name": "Bash", "decision_reason_type": "mode"}),
            "Bash was denied by the agent itself: mode.",
        ),
        (
            "compact_boundary",
            json!({"compact_metadata": {"trigger": "auto"}}),
            "The conversation was shortened to a summary.",
        ),
        ("status", json!({"status": "compacting"}), "The conversation is being shortened to a summary."),
        ("informational", json!({"content": "A hook says no", "level": "warning"}), "A hook says no"),
        ("notification", json!({"text": "News", "priority": "low"}), "News"),
    ];
    for (subtype, fields, expected) in table {
        let out = Talk::working().system(subtype, fields.clone());
        assert!(
            matches!(&out.signals[0], Signal::Notice { text, .. } if text == expected),
            "{fields} {out:?}"
        );
    }
}

#[test]
fn a_limit_is_told_when_it_is_near_or_reached() {
    let limit = |status: &str| {
        json!({"type": "rate_limit_event", "rate_limit_info":
        {"status": status, "rateLimitType": "five_hour", "utilization": 0.9}})
    };
    let notice = |level, text: &str| vec![Signal::Notice { level, text: text.into() }];
    let mut talk = Talk::working();
    assert_eq!(talk.hears(limit("allowed")).signals, []);
    let near = "The five hour limit is near: 90 % are used.";
    assert_eq!(talk.hears(limit("allowed_warning")).signals, notice(NoticeLevel::Info, near));
    assert_eq!(
        talk.hears(limit("rejected")).signals,
        notice(NoticeLevel::Warning, "The five hour limit is reached.")
    );
}

#[test]
fn commands_change_and_local_ones_speak() {
    let mut talk = Talk::working();
    let out = talk.system("commands_changed", json!({"commands": [{"name": "/new"}, 3]}));
    assert!(matches!(&out.signals[..], [Signal::Commands(list)] if list[0].name == "new" && list.len() == 1));
    let out = talk.system("local_command_output", json!({"content": "cost: 1"}));
    assert!(out.signals.contains(&text("cost: 1")));
}

#[test]
fn tasks_of_the_turn_end_without_a_word() {
    let mut talk = Talk::working();
    talk.hears(crate::support::calls("a", "Agent", json!({})));
    talk.system("task_started", json!({"task_id": "k", "tool_use_id": "a"}));
    talk.system("task_progress", json!({"task_id": "k"}));
    assert_eq!(talk.system("task_notification", json!({"task_id": "k", "status": "completed"})).signals, []);
    assert_eq!(talk.system("task_notification", json!({"task_id": Value::Null})).signals, []);
}
