//! Modes and models: what is offered, chosen and in use.

use consort_model::{PermissionMode, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, warning};

fn current(signals: &[Signal]) -> Option<(String, String)> {
    signals.iter().find_map(|signal| match signal {
        Signal::Options(options) => Some((options[0].current.clone(), options[1].current.clone())),
        _ => None,
    })
}

fn choose(talk: &mut Talk, option: &str, value: &str) -> Result<(), String> {
    let out = talk.driver.choose(option, value)?;
    talk.note(out);
    Ok(())
}

#[test]
fn a_mode_and_a_model_are_chosen() {
    let mut talk = Talk::open();
    choose(&mut talk, "mode", "plan").unwrap();
    assert_eq!(talk.last_sent()["request"], json!({"subtype": "set_permission_mode", "mode": "plan"}));
    let out = talk.replies("set_permission_mode", json!({"mode": "plan"}));
    assert_eq!(current(&out.signals), Some(("plan".into(), "default".into())));
    choose(&mut talk, "model", "Small").unwrap();
    assert_eq!(talk.last_sent()["request"], json!({"subtype": "set_model", "model": "small"}));
    let out = talk.replies("set_model", Value::Null);
    assert_eq!(current(&out.signals), Some(("plan".into(), "small".into())));
    choose(&mut talk, "model", "default").unwrap();
    assert_eq!(talk.last_sent()["request"], json!({"subtype": "set_model"}));
}

#[test]
fn what_is_not_offered_is_refused_before_the_agent_says_yes_to_it() {
    let mut talk = Talk::open();
    for (option, value) in
        [("mode", "nonsense"), ("mode", "bypassPermissions"), ("model", "nonsense"), ("novelty", "x")]
    {
        assert!(choose(&mut talk, option, value).is_err(), "{option} {value}");
    }
    choose(&mut talk, "model", "claude-of-tomorrow-9").unwrap();
}

#[test]
fn the_agent_says_what_it_uses() {
    let mut talk = Talk::open();
    talk.prompt("go");
    let init = |model: &str, mode: &str| json!({"type": "system", "subtype": "init", "session_id": "s", "model": model, "permissionMode": mode});
    assert_eq!(current(&talk.hears(init("big-1", "default")).signals), None);
    let out = talk.hears(init("small-1", "plan"));
    assert_eq!(current(&out.signals), Some(("plan".into(), "small".into())));
    let out = talk.hears(init("novel-1", "novelMode"));
    assert_eq!(current(&out.signals), Some(("novelMode".into(), "novel-1".into())));
    let out = talk.system("status", json!({"status": null, "permissionMode": "acceptEdits"}));
    assert_eq!(current(&out.signals), Some(("acceptEdits".into(), "novel-1".into())));
}

#[test]
fn a_choice_that_fails_changes_nothing() {
    let mut talk = Talk::open();
    choose(&mut talk, "mode", "dontAsk").unwrap();
    let out = talk.fails("set_permission_mode", "Cannot set permission mode");
    assert!(warning(&out).contains("dontAsk"));
    assert_eq!(current(&out.signals), None);
}

#[test]
fn the_agents_mode_follows_consorts() {
    let mut talk = Talk::open();
    let table = [
        (PermissionMode::Plan, Some("plan")),
        (PermissionMode::AcceptEdits, Some("acceptEdits")),
        (PermissionMode::Bypass, Some("default")),
        (PermissionMode::Default, None),
    ];
    for (permissions, expected) in table {
        let out = talk.driver.set_permissions(permissions);
        let sent = talk.note(out).frames.len();
        assert_eq!(sent, usize::from(expected.is_some()), "{permissions:?}");
        if let Some(mode) = expected {
            assert_eq!(talk.last_sent()["request"]["mode"], mode);
            talk.replies("set_permission_mode", json!({"mode": mode}));
        }
    }
}
