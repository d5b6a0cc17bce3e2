use consort_drivers::Output;
use consort_model::{PermissionMode, SessionOption, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, models, warning};

fn options(out: &Output) -> &[SessionOption] {
    match out.signals.last() {
        Some(Signal::Options(options)) => options,
        other => panic!("{other:?}"),
    }
}

fn choose(talk: &mut Talk, option: &str, value: &str) -> Result<Value, String> {
    let out = talk.driver.choose(option, value)?;
    talk.note(out);
    let mut params = talk.sent("thread/settings/update").clone();
    params.as_object_mut().unwrap().remove("threadId");
    Ok(params)
}

fn updated(changes: Value) -> Value {
    let mut settings = json!({"model": "big", "effort": null, "approvalPolicy": "on-request",
        "sandboxPolicy": {"type": "readOnly", "networkAccess": false}, "collaborationMode": {"mode": "default"}});
    for (key, value) in changes.as_object().unwrap() {
        settings[key] = value.clone();
    }
    json!({"threadSettings": settings})
}

#[test]
fn everything_that_can_be_chosen_is_offered() {
    let mut talk = Talk::open();
    let out = talk.tells("thread/settings/updated", updated(json!({"effort": "high"})));
    let summary: Vec<(&str, &str, Vec<&str>)> = options(&out)
        .iter()
        .map(|option| {
            let choices = option.choices.iter().map(|choice| choice.id.as_str()).collect();
            (option.id.as_str(), option.current.as_str(), choices)
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("model", "big", vec!["big", "small"]),
            ("effort", "high", vec!["low", "high"]),
            ("mode", "default", vec!["plan", "default"]),
            ("approval_policy", "on-request", vec!["untrusted", "on-request", "never"]),
            ("sandbox", "read-only", vec!["read-only", "workspace-write", "danger-full-access"]),
        ]
    );
    assert_eq!(talk.tells("thread/settings/updated", updated(json!({"effort": "high"}))).signals, []);
}

#[test]
fn a_choice_goes_out_at_once_and_counts_when_it_is_confirmed() {
    let mut talk = Talk::open();
    let write = json!({"type": "workspaceWrite", "writableRoots": [], "networkAccess": false,
        "excludeTmpdirEnvVar": false, "excludeSlashTmp": false});
    let plan = json!({"collaborationMode": {"mode": "plan",
        "settings": {"model": "big", "reasoning_effort": null, "developer_instructions": null}}});
    let table = [
        ("model", "small", json!({"model": "small"})),
        ("model", "BIG", json!({"model": "big"})),
        ("model", "unlisted", json!({"model": "unlisted"})),
        ("effort", "high", json!({"effort": "high"})),
        ("mode", "Plan", plan),
        ("approval_policy", "never", json!({"approvalPolicy": "never"})),
        ("sandbox", "workspace-write", json!({"sandboxPolicy": write})),
        ("sandbox", "Full access", json!({"sandboxPolicy": {"type": "dangerFullAccess"}})),
    ];
    for (option, value, expected) in table {
        assert_eq!(choose(&mut talk, option, value), Ok(expected), "{option} {value}");
        assert_eq!(talk.replies("thread/settings/update", json!({})).signals, []);
    }
    let out = talk.tells("thread/settings/updated", updated(json!({"model": "other"})));
    assert_eq!((options(&out)[0].current.as_str(), options(&out)[0].choices.len()), ("other", 3));
}

#[test]
fn a_choice_that_cannot_be_is_refused_with_what_can() {
    let mut talk = Talk::open();
    assert!(choose(&mut talk, "colour", "red").unwrap_err().contains("model, effort, mode"));
    assert!(choose(&mut talk, "effort", "heroic").unwrap_err().contains("low, high"));
    let mut talk = Talk::start(crate::support::launch());
    assert!(choose(&mut talk, "model", "small").is_err());
    let mut talk = Talk::open();
    choose(&mut talk, "model", "small").unwrap();
    let out = talk.fails("thread/settings/update", "no such model");
    assert_eq!(warning(&out), "Codex did not take small as its model: no such model.");
}

#[test]
fn permission_modes_are_pairs_of_policy_and_sandbox() {
    let mut talk = Talk::open();
    let table = [
        (PermissionMode::AcceptEdits, "on-request", "workspaceWrite"),
        (PermissionMode::Plan, "on-request", "readOnly"),
        (PermissionMode::Bypass, "never", "dangerFullAccess"),
        (PermissionMode::Default, "on-request", "readOnly"),
    ];
    for (mode, approval, sandbox) in table {
        let out = talk.driver.set_permissions(mode);
        talk.note(out);
        let params = talk.sent("thread/settings/update");
        assert_eq!(
            (&params["approvalPolicy"], &params["sandboxPolicy"]["type"]),
            (&json!(approval), &json!(sandbox))
        );
    }
    assert_eq!(talk.driver.set_permissions(PermissionMode::Default), Output::default());
}

#[test]
fn a_mode_that_changes_while_the_thread_opens_is_told_then() {
    let mut talk = Talk::greeted(crate::support::launch(), json!({}));
    assert_eq!(talk.driver.set_permissions(PermissionMode::Plan), Output::default());
    talk.replies("thread/start", crate::support::thread());
    assert_eq!(talk.sent("thread/settings/update")["sandboxPolicy"]["type"], "readOnly");
}

#[test]
fn models_come_in_pages() {
    let mut talk = Talk::start(crate::support::launch());
    talk.replies("initialize", json!({}));
    let mut page = models();
    page["nextCursor"] = json!("more");
    talk.replies("model/list", page);
    assert_eq!(*talk.sent("model/list"), json!({"cursor": "more"}));
    let mut page = models();
    page["data"][0]["model"] = json!("third");
    talk.replies("model/list", page);
    talk.replies("account/read", json!({}));
    talk.replies("config/read", json!({}));
    let out = talk.replies("thread/start", crate::support::thread());
    let ids: Vec<&str> = options(&out)[0].choices.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["big", "small", "third"]);
}
