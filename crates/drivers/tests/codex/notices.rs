use consort_model::{NoticeLevel, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, notices, warning};

fn limits(primary: Value, secondary: Value) -> Value {
    json!({"rateLimits": {"limitId": "codex", "primary": primary, "secondary": secondary}})
}

#[test]
fn a_limit_is_told_when_it_comes_near_and_when_it_is_reached() {
    let mut talk = Talk::working();
    // The clock of the frames stands at 1,000,000,000 s.
    let primary =
        |used: Value| json!({"usedPercent": used, "windowDurationMins": 300, "resetsAt": 1_000_003_600});
    let weekly = |used: u64| json!({"usedPercent": used, "windowDurationMins": 10080, "resetsAt": null});
    let method = "account/rateLimits/updated";
    assert_eq!(talk.tells(method, limits(Value::Null, Value::Null)).signals, []);
    assert_eq!(talk.tells(method, limits(primary(json!(50)), weekly(10))).signals, []);
    let out = talk.tells(method, limits(primary(json!(91.6)), weekly(10)));
    assert_eq!(warning(&out), "Codex has used 92 % of its 5-hour limit; it resets in 60 min.");
    assert_eq!(talk.tells(method, limits(primary(json!(95)), weekly(10))).signals, []);
    let out = talk.tells(method, limits(primary(json!(95)), weekly(100)));
    assert_eq!(warning(&out), "Codex has used 100 % of its weekly limit.");
    talk.tells(method, limits(primary(json!(1)), weekly(100)));
    assert_eq!(notices(&talk.tells(method, limits(primary(json!(93)), weekly(100)))).len(), 1);
    let reached = json!({"rateLimits": {"rateLimitReachedType": "workspace_owner_credits_depleted"}});
    assert!(warning(&talk.tells(method, reached.clone())).contains("workspace owner credits depleted"));
    assert_eq!(talk.tells(method, reached).signals, []);
}

#[test]
fn what_is_told_beside_the_conversation_becomes_one_line() {
    use NoticeLevel::{Info, Warning};
    let table = [
        ("configWarning", json!({"summary": "Bad\nkey.", "details": null}), Some((Warning, "Bad key."))),
        (
            "configWarning",
            json!({"summary": "Bad.", "details": "a.toml:1"}),
            Some((Warning, "Bad: a.toml:1")),
        ),
        (
            "configWarning",
            json!({"summary": "Codex will use the bundled bubblewrap."}),
            Some((Info, "Codex will use the bundled bubblewrap.")),
        ),
        ("warning", json!({"message": "Odd."}), Some((Warning, "Odd."))),
        ("guardianWarning", json!({"message": "Odd."}), Some((Warning, "Odd."))),
        ("deprecationNotice", json!({"summary": "Old."}), Some((Info, "Old."))),
        ("mcpServer/startupStatus/updated", json!({"name": "s", "status": "ready"}), None),
        (
            "mcpServer/startupStatus/updated",
            json!({"name": "s", "status": "failed", "error": "down"}),
            Some((Warning, "Codex cannot reach the MCP server s: down.")),
        ),
        (
            "model/rerouted",
            json!({"fromModel": "a", "toModel": "b"}),
            Some((Warning, "Codex uses the model b in place of a.")),
        ),
        ("hook/completed", json!({"run": {"eventName": "stop", "status": "completed"}}), None),
        (
            "hook/completed",
            json!({"run": {"eventName": "stop", "status": "blocked", "statusMessage": "no"}}),
            Some((Warning, "A stop hook blocked: no.")),
        ),
        ("thread/status/changed", json!({"status": {"type": "idle"}}), None),
        ("turn/diff/updated", json!({"diff": "x"}), None),
        ("thread/realtime/started", json!({}), None),
    ];
    for (method, params, expected) in table {
        let mut talk = Talk::working();
        let out = talk.tells(method, params.clone());
        assert_eq!(notices(&out), expected.into_iter().collect::<Vec<_>>(), "{method} {params}");
        assert_eq!(out.signals.len(), usize::from(expected.is_some()));
    }
}

#[test]
fn the_same_trouble_is_told_once_in_a_row() {
    let mut talk = Talk::working();
    let down = json!({"willRetry": true, "error": {"message": "Reconnecting... waiting for network"}});
    assert_eq!(notices(&talk.tells("error", down.clone())).len(), 1);
    assert_eq!(talk.tells("error", down.clone()).signals, []);
    talk.ends("failed");
    talk.prompt("again");
    assert_eq!(notices(&talk.tells("error", down)).len(), 1);
    // What is wrong with the surroundings does not change from turn to turn.
    let metadata = json!({"message": "Model metadata not found."});
    assert_eq!(notices(&talk.tells("warning", metadata.clone())).len(), 1);
    talk.begins();
    talk.ends("completed");
    talk.prompt("again");
    assert_eq!(talk.tells("warning", metadata).signals, []);
}

#[test]
fn an_error_that_ends_the_turn_is_told_by_its_end() {
    let mut talk = Talk::working();
    let error = json!({"willRetry": false, "error": {"message": "It broke."}});
    assert_eq!(talk.tells("error", error.clone()).signals, []);
    let out = talk.ends("failed");
    assert!(
        matches!(out.signals.last(), Some(Signal::TurnEnded(consort_model::TurnOutcome::Failed { message }))
        if message == "Codex failed: It broke."),
        "{out:?}"
    );
    // Between turns there is nobody else to tell it.
    assert_eq!(notices(&talk.tells("error", error)), [(NoticeLevel::Error, "Codex failed: It broke.")]);
}

#[test]
fn a_thread_gets_its_title() {
    let mut talk = Talk::open();
    let out = talk.tells("thread/name/updated", json!({"threadName": "Fix\nit"}));
    assert_eq!(out.signals, [Signal::Title("Fix it".into())]);
    assert_eq!(
        talk.tells("thread/name/updated", json!({"threadId": "x", "threadName": "Other"})).signals,
        []
    );
}
