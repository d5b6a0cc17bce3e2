//! The methods around prompts, and what the options change in them.

use serde_json::{Value, json};

use crate::client::{Client, said};

#[test]
fn capabilities_are_what_the_options_leave() {
    let dir = tempfile::tempdir().unwrap();
    let all = Client::spawn(dir.path(), &[]).initialize();
    assert_eq!(all["protocolVersion"], 1);
    assert_eq!(all["agentCapabilities"]["loadSession"], true);
    assert_eq!(all["agentCapabilities"]["promptCapabilities"]["image"], true);
    assert_eq!(
        all["agentCapabilities"]["sessionCapabilities"],
        json!({"list": {}, "resume": {}, "close": {}})
    );

    let args = [
        "--no-load",
        "--no-resume",
        "--no-list",
        "--no-close",
        "--no-image",
        "--name",
        "plain",
        "--protocol-version",
        "9",
    ];
    let mut client = Client::start(dir.path(), &args);
    let none = client.initialize();
    assert_eq!(none["protocolVersion"], 9);
    assert_eq!(none["agentInfo"]["name"], "plain");
    assert_eq!(none["agentCapabilities"]["loadSession"], false);
    assert_eq!(none["agentCapabilities"]["promptCapabilities"]["image"], false);
    assert_eq!(none["agentCapabilities"]["sessionCapabilities"], json!({}));
    let session = json!({"sessionId": client.session, "cwd": "/", "mcpServers": []});
    for method in [
        "session/load",
        "session/resume",
        "session/list",
        "session/close",
        "session/set_mode",
        "session/set_config_option",
        "session/fly",
    ] {
        assert_eq!(client.call(method, session.clone()).unwrap_err()["code"], -32601, "{method}");
    }
}

#[test]
fn bad_requests_get_errors_and_the_agent_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::spawn(dir.path(), &[]);
    assert_eq!(client.call("session/new", json!({"cwd": "/"})).unwrap_err()["code"], -32600);
    client.initialize();
    assert_eq!(client.call("session/new", json!({"cwd": "relative"})).unwrap_err()["code"], -32602);
    assert_eq!(client.call("session/prompt", json!({"sessionId": "no"})).unwrap_err()["code"], -32002);
    assert_eq!(
        client.call("session/load", json!({"sessionId": "../no", "cwd": "/"})).unwrap_err()["code"],
        -32002
    );
    assert_eq!(client.call("authenticate", json!({"methodId": "no"})).unwrap_err()["code"], -32602);
    client.line("not json");
    assert_eq!(client.frame()["error"]["code"], -32700);
    client.line("{}");
    assert_eq!(client.frame()["error"]["code"], -32600);
    client.line(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    client.line(r#"{"jsonrpc":"2.0","id":"five","result":{}}"#);
    client.line(r#"{"jsonrpc":"2.0","method":"session/cancel"}"#);
    client.line("");
    client.call("session/new", json!({"cwd": "/", "mcpServers": []})).unwrap();
}

#[test]
fn starts_can_fail_in_every_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::spawn(dir.path(), &["--crash-on-start", "3"]);
    assert_eq!(client.wait().code(), Some(3));
    assert!(client.stderr().contains("as told"));

    let mut client = Client::spawn(dir.path(), &["--fly"]);
    assert_eq!(client.wait().code(), Some(2));

    let mut client = Client::spawn(dir.path(), &["--init-error"]);
    assert_eq!(client.call("initialize", json!({})).unwrap_err()["code"], -32603);

    let mut client = Client::spawn(dir.path(), &["--init-delay", "5", "--slow-start", "5"]);
    assert_eq!(client.initialize()["protocolVersion"], 1);

    let mut client = Client::spawn(dir.path(), &["--init-delay", "600000"]);
    client.request("initialize", json!({}));
    client.close_stdin();
    assert_eq!(client.wait().code(), Some(0));
}

#[test]
fn sessions_need_the_login_that_the_agent_demands() {
    let dir = tempfile::tempdir().unwrap();
    let new = json!({"cwd": dir.path(), "mcpServers": []});
    let mut client = Client::spawn(dir.path(), &["--auth", "key"]);
    assert_eq!(client.initialize()["authMethods"][0]["id"], "key");
    assert_eq!(client.call("session/new", new.clone()).unwrap_err()["code"], -32000);
    client.call("authenticate", json!({"methodId": "key"})).unwrap();
    client.call("session/new", new.clone()).unwrap();

    let state = dir.path().join("state");
    let args = ["--auth", "web:terminal", "--state-dir", state.to_str().unwrap()];
    let mut client = Client::spawn(dir.path(), &args);
    let method = client.initialize()["authMethods"][0].clone();
    assert_eq!((method["type"].as_str(), &method["args"]), (Some("terminal"), &json!(["--login"])));
    assert_eq!(client.call("session/new", new.clone()).unwrap_err()["code"], -32000);
    let login = [&args[..], &["--login"]].concat();
    assert_eq!(Client::spawn(dir.path(), &login).wait().code(), Some(0));
    client.call("session/new", new).unwrap();
}

#[test]
fn modes_and_config_options_can_be_set() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::spawn(dir.path(), &["--modes", "ask,code", "--config-options", "--commands"]);
    client.initialize();
    let result = client.call("session/new", json!({"cwd": dir.path(), "mcpServers": []})).unwrap();
    let announced = client.frame();
    assert_eq!(announced["params"]["update"]["sessionUpdate"], "available_commands_update");
    assert_eq!(result["modes"]["currentModeId"], "ask");
    assert_eq!(result["configOptions"][0]["currentValue"], "scripted-large");

    let session = &result["sessionId"];
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "code"})).unwrap();
    let error = client.call("session/set_mode", json!({"sessionId": session, "modeId": "fly"})).unwrap_err();
    assert_eq!(error["code"], -32602);
    let resumed = client.call("session/resume", json!({"sessionId": session, "cwd": dir.path()})).unwrap();
    assert_eq!(resumed["modes"]["currentModeId"], "code");

    let set = |id: &str, value: Value| json!({"sessionId": session, "configId": id, "value": value});
    let options = client.call("session/set_config_option", set("model", json!("scripted-small"))).unwrap();
    assert_eq!(options["configOptions"][0]["currentValue"], "scripted-small");
    let options = client.call("session/set_config_option", set("verbose", json!(true))).unwrap();
    assert_eq!(options["configOptions"][2]["currentValue"], true);
    let error = client.call("session/set_config_option", set("model", json!("other"))).unwrap_err();
    assert_eq!(error["code"], -32602);
}

#[test]
fn a_killed_agents_session_is_loaded_with_all_its_client_saw() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let args = ["--state-dir", state.to_str().unwrap()];
    let mut client = Client::start(dir.path(), &args);
    let session = client.session.clone();
    client.play("[[say one]] [[title My title]]");
    client.prompt("[[say two]] [[tool read x]] [[hang]]");
    client.until(|frame| frame["params"]["update"]["status"] == "completed");
    client.kill();

    let mut client = Client::spawn(dir.path(), &args);
    client.initialize();
    let listed = client.call("session/list", json!({"cwd": dir.path()})).unwrap();
    assert_eq!(listed["sessions"], json!([{"sessionId": session, "cwd": dir.path(), "title": "My title"}]));
    assert_eq!(client.call("session/list", json!({"cwd": "/other"})).unwrap()["sessions"], json!([]));

    let load = json!({"sessionId": session, "cwd": dir.path(), "mcpServers": []});
    let id = client.request("session/load", load.clone());
    let (frames, answer) = client.until_answer(id);
    answer.unwrap();
    let kinds: Vec<&str> =
        frames.iter().map(|frame| frame["params"]["update"]["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "user_message_chunk",
            "agent_message_chunk",
            "session_info_update",
            "user_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "tool_call_update"
        ]
    );
    client.session = session.clone();
    assert_eq!(said(&client.play("[[say three]]").0), "three");
    client.kill();

    let mut client = Client::spawn(dir.path(), &[&args[..], &["--late-replay"]].concat());
    client.initialize();
    let id = client.request("session/load", load.clone());
    assert_eq!(client.until_answer(id).0.len(), 0, "the replay comes after the answer");
    let replayed: Vec<Value> = (0..10).map(|_| client.frame()["params"]["update"].clone()).collect();
    assert_eq!(said(&replayed), "onetwothree");

    let mut client = Client::spawn(dir.path(), &args);
    client.initialize();
    let id = client.request("session/resume", load);
    assert_eq!(client.until_answer(id).0.len(), 0, "a resume replays nothing");
    client.call("session/close", json!({"sessionId": session})).unwrap();
    let error = client.call("session/prompt", json!({"sessionId": session, "prompt": []})).unwrap_err();
    assert_eq!(error["code"], -32002);
}

#[test]
fn closing_a_session_ends_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let prompt = client.prompt("[[say started]] [[hang]]");
    client.until(|frame| frame["params"]["update"]["content"]["text"] == "started");
    let session = client.session.clone();
    client.request("session/close", json!({"sessionId": session}));
    assert_eq!(client.until_answer(prompt).1.unwrap()["stopReason"], "cancelled");
}

#[test]
fn the_help_goes_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::spawn(dir.path(), &["--help"]);
    assert_eq!(client.wait().code(), Some(0));
    assert!(client.raw_line().unwrap().starts_with(b"consort-testkit agent"));
}
