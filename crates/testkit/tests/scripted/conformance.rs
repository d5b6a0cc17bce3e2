//! The agent reads the protocol on its own; here the published schema says whether it reads it right.

use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::Client;
use crate::steps::holds;

/// The schema is lenient about what it does not know, so all that was sent must come back out of it.
fn conforms<T: DeserializeOwned + Serialize>(value: &Value) {
    let typed: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value:#}"));
    let again = serde_json::to_value(typed).unwrap();
    assert!(holds(&again, &without_defaults(value)), "sent {value:#}, understood {again:#}");
}

/// The schema leaves out what is the default anyway.
fn without_defaults(value: &Value) -> Value {
    let defaults = [json!(null), json!([]), json!(false), json!("pending")];
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !defaults.contains(member))
            .map(|(key, member)| (key.clone(), without_defaults(member)))
            .collect(),
        Value::Array(elements) => elements.iter().map(without_defaults).collect(),
        other => other.clone(),
    }
}

fn check_request(frame: &Value) -> Value {
    let params = &frame["params"];
    match frame["method"].as_str().unwrap() {
        "session/update" => {
            conforms::<v1::SessionNotification>(params);
            Value::Null
        }
        "session/request_permission" => {
            conforms::<v1::RequestPermissionRequest>(params);
            let option = &params["options"][0]["optionId"];
            json!({"outcome": {"outcome": "selected", "optionId": option}})
        }
        "fs/read_text_file" => {
            conforms::<v1::ReadTextFileRequest>(params);
            json!({"content": "text"})
        }
        "fs/write_text_file" => {
            conforms::<v1::WriteTextFileRequest>(params);
            json!({})
        }
        "terminal/create" => {
            conforms::<v1::CreateTerminalRequest>(params);
            json!({"terminalId": "t"})
        }
        "terminal/output" => {
            conforms::<v1::TerminalOutputRequest>(params);
            json!({"output": "", "truncated": false})
        }
        "terminal/wait_for_exit" => {
            conforms::<v1::WaitForTerminalExitRequest>(params);
            json!({"exitCode": 0})
        }
        "terminal/kill" => {
            conforms::<v1::KillTerminalRequest>(params);
            json!({})
        }
        "terminal/release" => {
            conforms::<v1::ReleaseTerminalRequest>(params);
            json!({})
        }
        "elicitation/create" => {
            conforms::<v1::CreateElicitationRequest>(params);
            json!({"action": "decline"})
        }
        other => panic!("unexpected {other}"),
    }
}

#[test]
fn every_well_behaved_frame_is_in_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one").unwrap();
    let state = dir.path().join("state");
    let args = [
        "--state-dir",
        state.to_str().unwrap(),
        "--modes",
        "ask,code",
        "--config-options",
        "--message-ids",
        "--auth",
        "web:terminal",
    ];
    assert!(Client::spawn(dir.path(), &[&args[..], &["--login"]].concat()).wait().success());
    let mut client = Client::spawn(dir.path(), &args);
    conforms::<v1::InitializeResponse>(&client.initialize());
    let new = client.call("session/new", json!({"cwd": dir.path(), "mcpServers": []})).unwrap();
    conforms::<v1::NewSessionResponse>(&new);
    client.session = new["sessionId"].as_str().unwrap().to_owned();

    let steps = r#"[[say a]] [[think b]] [[stream n=2 rate=1000 stamp]]
        [[tool read location=a.txt:1 input={"x":1} diff=a.txt|old|new t]] [[tool switch_mode fail t]]
        [[ask execute ls]] [[ask edit reject-always a.txt]] [[ask fetch gemini x]] [[ask-many 2]]
        [[edit a.txt one two]] [[write b.txt new]] [[edit absent.txt x y]]
        [[plan a|b]] [[mode code]] [[title T]] [[commands]] [[config-update]] [[usage cost=1.5]] [[turn-usage]]
        [[fs-read line=1 limit=2 a.txt]] [[fs-write c.txt text]] [[terminal limit=10 ls -l]] [[terminal kill ls]]
        [[elicit Well?]]"#;
    let prompt = client.prompt(steps);
    let mut updates = 0;
    let result = loop {
        let frame = client.frame();
        if frame.get("method").is_none() {
            assert_eq!(frame["id"], prompt);
            break frame["result"].clone();
        }
        let answer = check_request(&frame);
        updates += usize::from(answer.is_null());
        if frame.get("id").is_some() {
            client.answer(&frame, answer);
        }
    };
    conforms::<v1::PromptResponse>(&result);

    let session = json!({"sessionId": client.session, "cwd": dir.path(), "mcpServers": []});
    conforms::<v1::ListSessionsResponse>(&client.call("session/list", json!({})).unwrap());
    let load = client.request("session/load", session.clone());
    let (replayed, answer) = client.until_answer(load);
    conforms::<v1::LoadSessionResponse>(&answer.unwrap());
    assert_eq!(replayed.len(), updates + 1, "all that was sent, and the prompt");
    replayed.iter().for_each(|frame| assert_eq!(check_request(frame), Value::Null));
    conforms::<v1::ResumeSessionResponse>(&client.call("session/resume", session.clone()).unwrap());
    let option = json!({"sessionId": client.session, "configId": "effort", "value": "low"});
    conforms::<v1::SetSessionConfigOptionResponse>(
        &client.call("session/set_config_option", option).unwrap(),
    );
    conforms::<v1::CloseSessionResponse>(&client.call("session/close", session).unwrap());
}
