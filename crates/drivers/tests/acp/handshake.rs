use consort_drivers::{Bridge, Launch, McpServer};
use consort_model::{Answer, AskBody, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, hello, launch, text, warning};

fn failure(out: &consort_drivers::Output) -> &str {
    match out.signals.as_slice() {
        [Signal::StartFailed { message }] => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_says_who_it_is_and_what_it_can_do() {
    let talk = Talk::start(launch());
    let params = &talk.sent[0]["params"];
    assert_eq!(talk.sent[0]["method"], "initialize");
    assert_eq!(params["protocolVersion"], 1);
    assert_eq!(params["clientInfo"]["name"], "consort");
    let can = &params["clientCapabilities"];
    assert_eq!(can["fs"], json!({"readTextFile": true, "writeTextFile": true}));
    assert_eq!(can["terminal"], true);
    assert_eq!(can["elicitation"], json!({"form": {}, "url": {}}));
}

#[test]
fn a_session_is_opened_with_folders_and_tools() {
    let server = McpServer {
        name: "consort".into(),
        url: "http://127.0.0.1:1/mcp".into(),
        headers: vec![("Authorization".into(), "Bearer t".into())],
        bridge: None,
    };
    let mut talk = Talk::start(Launch { roots: vec!["/more".into()], mcp_servers: vec![server], ..launch() });
    talk.replies("initialize", hello());
    assert_eq!(
        talk.last_sent()["params"],
        json!({"cwd": "/project", "additionalDirectories": ["/more"], "mcpServers": [{
            "type": "http", "name": "consort", "url": "http://127.0.0.1:1/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer t"}],
        }]})
    );
    let out = talk.replies("session/new", json!({"sessionId": "s"}));
    let Signal::Ready(info) = &out.signals[0] else { panic!("{out:?}") };
    assert_eq!((info.id.as_str(), info.program.as_str()), ("s", "Scripted 1.0"));
    assert!(info.images && info.files && info.resumable && !info.resumed);
    assert!(!serde_json::to_string(&talk.driver).unwrap().contains("Bearer"), "the token is not kept");
}

#[test]
fn an_agent_that_takes_no_tools_over_http_gets_them_over_stdio() {
    let bridge = Bridge {
        command: "/bin/consort".into(),
        args: vec!["mcp".into()],
        environment: vec![("TOKEN".into(), "t".into())],
    };
    let server = McpServer {
        name: "consort".into(),
        url: "http://127.0.0.1:1".into(),
        headers: vec![],
        bridge: Some(bridge),
    };
    let mut talk = Talk::start(Launch { mcp_servers: vec![server], ..launch() });
    talk.replies("initialize", json!({"protocolVersion": 1}));
    assert_eq!(
        talk.last_sent()["params"]["mcpServers"],
        json!([{"name": "consort", "command": "/bin/consort", "args": ["mcp"],
            "env": [{"name": "TOKEN", "value": "t"}]}])
    );
}

#[test]
fn another_version_of_the_protocol_ends_the_start() {
    let mut talk = Talk::start(launch());
    let out = talk.replies("initialize", json!({"protocolVersion": 2}));
    assert!(failure(&out).contains("version 2"), "{out:?}");
    assert!(talk.hears(json!({"method": "x"})).signals.is_empty(), "nothing matters afterwards");
}

#[test]
fn a_failing_start_says_why() {
    for (method, code, message) in
        [("initialize", -32603, "no luck"), ("session/new", -32602, "cwd is relative")]
    {
        let mut talk = Talk::start(launch());
        if method != "initialize" {
            talk.replies("initialize", hello());
        }
        let out = talk.fails(method, code, message);
        assert!(failure(&out).contains(message) && failure(&out).contains(&code.to_string()), "{out:?}");
    }
    let mut talk = Talk::start(launch());
    assert!(failure(&talk.replies("initialize", json!("hi"))).contains("is it an ACP agent"));
}

fn resuming() -> Launch {
    Launch { resume: Some("s".into()), ..launch() }
}

#[test]
fn an_earlier_session_is_resumed_if_the_agent_can() {
    let mut talk = Talk::start(resuming());
    talk.replies("initialize", hello());
    assert_eq!(talk.last_sent()["method"], "session/resume");
    let out = talk.replies("session/resume", Value::Null);
    let Signal::Ready(info) = &out.signals[0] else { panic!("{out:?}") };
    assert!(info.resumed);
    assert_eq!(info.id, "s");
}

#[test]
fn what_is_told_again_of_a_loaded_session_is_not_heard() {
    let mut hello = hello();
    hello["agentCapabilities"]["sessionCapabilities"] = json!({});
    let mut talk = Talk::start(resuming());
    talk.replies("initialize", hello);
    assert_eq!(talk.last_sent()["method"], "session/load");
    let past = [
        json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "old"}}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}}),
        json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "old"}}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "old"}),
        json!({"sessionUpdate": "plan", "entries": []}),
    ];
    for update in &past {
        assert_eq!(talk.updates(update.clone()).signals, []);
    }
    let commands = json!({"sessionUpdate": "available_commands_update", "availableCommands": []});
    assert_eq!(talk.updates(commands).signals, [Signal::Commands(vec![])]);
    let out = talk.replies("session/load", json!({}));
    assert_eq!(out.signals, [], "the past may still be told");
    for update in &past {
        assert_eq!(talk.updates(update.clone()).signals, [], "late replay");
    }
    let out = talk.fails("_consort/settle", -32601, "Method not found");
    assert!(matches!(out.signals[0], Signal::Ready(_)));
    for update in &past {
        assert_eq!(talk.updates(update.clone()).signals, [], "later still");
    }
    talk.prompt("go");
    assert_eq!(talk.updates(past[1].clone()).signals, [text("old")]);
}

#[test]
fn a_session_that_cannot_be_taken_up_is_replaced_with_a_warning() {
    let mut talk = Talk::start(resuming());
    talk.replies("initialize", hello());
    let out = talk.fails("session/resume", -32002, "unknown session");
    assert!(warning(&out).contains("unknown session"));
    assert_eq!(talk.last_sent()["method"], "session/new");
    let out = talk.replies("session/new", json!({"sessionId": "n"}));
    let Signal::Ready(info) = &out.signals[0] else { panic!("{out:?}") };
    assert!(!info.resumed && info.id == "n");

    let mut talk = Talk::start(resuming());
    let out = talk.replies("initialize", json!({"protocolVersion": 1}));
    assert!(warning(&out).contains("cannot take up"));
    assert_eq!(talk.last_sent()["method"], "session/new");
}

fn needing_login() -> (Talk, String) {
    let mut hello = hello();
    hello["authMethods"] = json!([
        {"id": "key", "name": "API key", "description": "From the environment"},
        {"id": "web", "name": "Browser", "type": "terminal", "args": ["auth", "login"]},
        {"id": "old", "name": "Old", "_meta": {"terminal-auth": {"command": "agent", "args": ["login"]}}},
    ]);
    let mut talk = Talk::start(launch());
    talk.replies("initialize", hello);
    let out = talk.fails("session/new", -32000, "No key.");
    let key = login_question(&out).0;
    (talk, key)
}

fn login_question(out: &consort_drivers::Output) -> (String, String) {
    match out.signals.as_slice() {
        [Signal::Ask { key, body: AskBody::Question(question), .. }] => {
            assert_eq!(question.schema["properties"]["method"]["enum"], json!(["key", "web", "old"]));
            (key.clone(), question.text.clone())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_login_is_asked_for_and_the_session_opened_after_it() {
    for answer in [json!("key"), json!({"method": "key"})] {
        let (mut talk, key) = needing_login();
        let out = talk.driver.answer(&key, &Answer::Reply { value: answer });
        talk.note(out);
        assert_eq!(talk.last_sent()["params"], json!({"methodId": "key"}));
        talk.replies("authenticate", Value::Null);
        assert_eq!(talk.last_sent()["method"], "session/new");
        let out = talk.replies("session/new", json!({"sessionId": "s"}));
        assert!(matches!(out.signals[0], Signal::Ready(_)));
    }
}

#[test]
fn a_login_in_a_terminal_is_done_there() {
    for (method, command) in [("web", "auth login"), ("old", "agent login")] {
        let mut hello = hello();
        hello["authMethods"] = json!([]);
        let (mut talk, key) = needing_login();
        let out = talk.driver.answer(&key, &Answer::Choose { option: method.into() });
        talk.note(out);
        assert_eq!(talk.last_sent()["method"], "session/new", "the protocol forbids authenticate here");
        let out = talk.fails("session/new", -32000, "still not");
        assert!(login_question(&out).1.contains(command), "{out:?}");
    }
}

#[test]
fn a_failed_login_is_asked_for_again() {
    let (mut talk, key) = needing_login();
    let out = talk.driver.answer(&key, &Answer::Reply { value: json!("key") });
    talk.note(out);
    let out = talk.fails("authenticate", -32603, "bad key");
    let (key, text) = login_question(&out);
    assert!(text.contains("bad key"));
    let out = talk.driver.answer(&key, &Answer::Reply { value: json!("nonsense") });
    assert!(login_question(&out).1.contains("nonsense is none of its logins"));
}

#[test]
fn without_a_login_the_start_fails() {
    for answer in [Answer::Deny { message: None }, Answer::Stop] {
        let (mut talk, key) = needing_login();
        assert!(failure(&talk.driver.answer(&key, &answer)).contains("not logged in"));
        assert_eq!(talk.driver.answer(&key, &answer), Default::default());
    }
    let mut talk = Talk::start(launch());
    talk.replies("initialize", hello());
    assert!(failure(&talk.fails("session/new", -32000, "No key.")).contains("No key"));
}

#[test]
fn interrupting_while_the_session_opens_does_nothing() {
    let mut talk = Talk::start(launch());
    assert_eq!(talk.driver.interrupt(), Default::default());
    talk.replies("initialize", hello());
    assert_eq!(talk.driver.interrupt(), Default::default());
}

#[test]
fn a_fork_branches_off_where_the_agent_can_and_fails_where_it_cannot() {
    let forking = || Launch { fork: true, ..resuming() };
    let mut talk = Talk::start(forking());
    let out = talk.replies("initialize", hello());
    assert!(failure(&out).contains("cannot fork"), "{out:?}");

    let mut able = hello();
    able["agentCapabilities"]["sessionCapabilities"]["fork"] = json!({});
    let mut talk = Talk::start(forking());
    talk.replies("initialize", able);
    assert_eq!(talk.last_sent()["method"], "session/fork");
    assert_eq!(talk.last_sent()["params"]["sessionId"], "s");
    talk.replies("session/fork", json!({"sessionId": "branch"}));
    let out = talk.fails("_consort/settle", -32601, "unknown");
    let Signal::Ready(info) = &out.signals[0] else { panic!("{out:?}") };
    assert_eq!((info.id.as_str(), info.resumed), ("branch", false));
}
