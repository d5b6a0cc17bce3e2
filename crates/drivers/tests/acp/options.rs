use consort_drivers::{Launch, Output};
use consort_model::{SessionOption, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, hello, launch, warning};

fn options(out: &Output) -> &[SessionOption] {
    let found = out.signals.iter().find_map(|signal| match signal {
        Signal::Options(options) => Some(options.as_slice()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{out:?}"))
}

/// Modes and models in their older forms.
fn older() -> Value {
    json!({"sessionId": "s",
        "modes": {"currentModeId": "default", "availableModes": [
            {"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan", "description": "Reads only"}]},
        "models": {"currentModelId": "hidden", "availableModels": [{"modelId": "big", "name": "Big"}, {"modelId": "small"}]},
    })
}

fn newer(model: &str) -> Value {
    json!([
        {"id": "llm", "name": "Model", "category": "model", "type": "select", "currentValue": model,
            "options": [{"group": "g", "name": "G", "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}]}]},
        {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "low",
            "options": [{"value": "low", "name": "Low"}]},
        {"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": true},
        {"id": "future", "name": "Future", "type": "slider", "currentValue": 3},
    ])
}

#[test]
fn older_and_newer_forms_become_one_list() {
    let mut talk = Talk::start(launch());
    talk.replies("initialize", hello());
    let mut session = older();
    session["configOptions"] = newer("small");
    let out = talk.replies("session/new", session);
    let list: Vec<_> =
        options(&out).iter().map(|option| (option.id.as_str(), option.current.as_str())).collect();
    assert_eq!(list, [("mode", "default"), ("model", "small"), ("effort", "low"), ("verbose", "true")]);
}

#[test]
fn choosing_sends_what_the_option_is_set_with() {
    let mut talk = Talk::open_with(hello(), older());
    for (option, value, method, params) in [
        ("mode", "plan", "session/set_mode", json!({"sessionId": "s", "modeId": "plan"})),
        ("model", "big", "session/set_model", json!({"sessionId": "s", "modelId": "big"})),
    ] {
        let out = talk.driver.choose(option, value).unwrap();
        assert_eq!(out.signals, [], "it counts once the agent agrees");
        talk.note(out);
        assert_eq!(
            (talk.last_sent()["method"].as_str(), &talk.last_sent()["params"]),
            (Some(method), &params)
        );
        let out = talk.replies(method, json!({}));
        let chosen = options(&out).iter().find(|chosen| chosen.id == option).unwrap();
        assert_eq!(chosen.current, value);
    }

    let mut talk = Talk::open_with(hello(), json!({"sessionId": "s", "configOptions": newer("small")}));
    let out = talk.driver.choose("model", "Big").unwrap();
    talk.note(out);
    assert_eq!(talk.last_sent()["params"], json!({"sessionId": "s", "configId": "llm", "value": "big"}));
    let out = talk.replies("session/set_config_option", json!({"configOptions": newer("big")}));
    assert_eq!(options(&out)[0].current, "big");
    let out = talk.driver.choose("verbose", "false").unwrap();
    talk.note(out);
    let params = json!({"sessionId": "s", "configId": "verbose", "type": "boolean", "value": false});
    assert_eq!(talk.last_sent()["params"], params);
}

#[test]
fn what_is_not_offered_cannot_be_chosen() {
    let mut talk = Talk::open_with(hello(), older());
    let refusal = talk.driver.choose("mode", "yolo").unwrap_err();
    assert_eq!(refusal, "the agent offers no mode yolo; it offers default, plan");
    let refusal = talk.driver.choose("colour", "red").unwrap_err();
    assert_eq!(refusal, "the agent has no option colour; it has mode, model");
    assert!(Talk::start(launch()).driver.choose("mode", "plan").is_err());
}

#[test]
fn a_choice_that_the_agent_refuses_changes_nothing() {
    let mut talk = Talk::open_with(hello(), older());
    let out = talk.driver.choose("mode", "plan").unwrap();
    talk.note(out);
    let out = talk.fails("session/set_mode", -32603, "not in this folder");
    assert!(warning(&out).contains("not in this folder"));
    assert_eq!(out.signals.len(), 1);
}

#[test]
fn the_agent_announces_changes_of_its_own() {
    let mut talk = Talk::open_with(hello(), older());
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"});
    assert_eq!(options(&talk.updates(update.clone()))[0].current, "plan");
    assert_eq!(talk.updates(update).signals, [], "nothing changed");
    let update = json!({"sessionUpdate": "config_option_update", "configOptions": newer("big")});
    assert!(
        options(&talk.updates(update)).iter().any(|option| option.id == "model" && option.current == "big")
    );
}

#[test]
fn the_model_of_the_launch_is_chosen_before_the_first_prompt() {
    let start = |model: &str| {
        let mut talk = Talk::start(Launch { model: Some(model.into()), ..launch() });
        talk.replies("initialize", hello());
        let out = talk.replies("session/new", older());
        (talk, out)
    };
    let (mut talk, out) = start("big");
    assert_eq!(out.signals, []);
    assert_eq!(talk.last_sent()["params"]["modelId"], "big");
    let out = talk.replies("session/set_model", json!({}));
    assert!(matches!(out.signals[0], Signal::Ready(_)));
    assert_eq!(options(&out)[1].current, "big");

    let (mut talk, _) = start("big");
    let out = talk.fails("session/set_model", -32603, "no");
    warning(&out);
    assert!(out.signals.iter().any(|signal| matches!(signal, Signal::Ready(_))), "it works all the same");

    let (_, out) = start("huge");
    assert_eq!(warning(&out), "The agent does not offer the model huge; it uses hidden.");
    let (talk, out) = start("hidden");
    assert!(matches!(out.signals[0], Signal::Ready(_)));
    assert_eq!(talk.methods(), ["initialize", "session/new"]);
}
