//! Script files.

use consort_testkit::model::{Options, Script, Server};

use super::client::{Api, ask};

#[test]
fn a_script_adds_scenarios_and_replaces_built_in_ones() {
    let script = r#"{"scenarios": {
        "plain": {"steps": [{"text": "Another plain."}]},
        "deploy": {"arg": "here", "steps": [
            {"calls": [{"tool": {"name": "deploy", "arguments": {"to": "{arg}", "list": ["{arg.first}", 1]}}}]},
            {"text": "Deployed: {result}", "chunk": 3}
        ]}
    }}"#;
    let script = Script::parse(script).unwrap();
    let server = Server::start_with(Options { script, ..Options::default() }).unwrap();
    assert_eq!(ask(&server, Api::Chat, "[[plain]]", &[]).text, "Another plain.");
    let said = ask(&server, Api::Chat, "[[deploy far away]]", &[]);
    assert_eq!(said.calls[0].0, "deploy");
    assert_eq!(said.calls[0].1, serde_json::json!({"to": "far away", "list": ["far", 1]}));
    assert_eq!(ask(&server, Api::Chat, "[[deploy]]", &["fine"]).text, "Deployed: fine");
    // The built-in ones are still there.
    assert_eq!(ask(&server, Api::Chat, "[[say hi]]", &[]).text, "hi");
}

#[test]
fn a_repeated_text_can_count() {
    let script = r#"{"scenarios": {"count": {"steps": [{"text": "{n} of {arg}; ", "repeat": 3}]}}}"#;
    let options = Options { script: Script::parse(script).unwrap(), ..Options::default() };
    let server = Server::start_with(options).unwrap();
    assert_eq!(
        ask(&server, Api::Gemini, "[[count three]]", &[]).text,
        "1 of three; 2 of three; 3 of three; "
    );
}

#[test]
fn mistakes_in_a_script_are_found_before_it_is_played() {
    for (script, words) in [
        ("{", "EOF"),
        (r#"{"scenarios": {"x": {"steps": [{"txet": "a"}]}}}"#, "txet"),
        (r#"{"scenarios": {"No Name": {"steps": [{"text": "a"}]}}}"#, "No Name"),
        (r#"{"scenarios": {"x": {"steps": []}}}"#, "at least one step"),
        (r#"{"scenarios": {"x": {"steps": [{"text": "a"}, {"text": "b"}]}}}"#, "only the last step"),
        (r#"{"scenarios": {"x": {"steps": [{"text": "a", "chunk": 0}]}}}"#, "chunk"),
        (r#"{"scenarios": {"x": {"steps": [{"delay_ms": 9999999}]}}}"#, "pause"),
        (r#"{"scenarios": {"x": {"steps": [{"error": {"status": 200}}]}}}"#, "status"),
        (r#"{"scenarios": {"x": {"steps": [{"calls": [{"fly": {}}]}]}}}"#, "fly"),
    ] {
        let error = Script::parse(script).unwrap_err().to_string();
        assert!(error.contains(words), "{script}: {error}");
    }
}

#[test]
fn every_built_in_scenario_is_named_in_the_help() {
    let help = include_str!("../../src/model/help.txt");
    for name in Script::built_in().unwrap().scenarios.keys() {
        assert!(help.contains(&format!(" {name}")) || help.contains(&format!("\n{name}")), "{name}");
    }
}
