use consort_drivers::{Launch, McpServer, Output};
use consort_model::{Answer, AskBody, GrantScope, OptionKind, Signal, ToolStatus};
use serde_json::{Value, json};

use crate::support::{Talk, hello, hello_of, launch, warning};

fn permission(options: Value) -> Value {
    json!({"toolCall": {"toolCallId": "t", "title": "rm -r build", "kind": "execute", "status": "pending"}, "options": options})
}

fn all_options() -> Value {
    json!([
        {"optionId": "aa", "name": "Always", "kind": "allow_always"},
        {"optionId": "a", "name": "Yes", "kind": "allow_once"},
        {"optionId": "r", "name": "No", "kind": "reject_once"},
        {"optionId": "rr", "name": "Never", "kind": "reject_always"},
    ])
}

fn answered(options: Value, answer: &Answer) -> (Talk, Output) {
    let mut talk = Talk::working();
    talk.asks(json!(0), "session/request_permission", permission(options));
    let out = talk.driver.answer("0", answer);
    let out = talk.note(out);
    (talk, out)
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn an_approval_brings_its_tool_call_along() {
    let mut talk = Talk::working();
    let out = talk.asks(json!("p-1"), "session/request_permission", permission(all_options()));
    let [Signal::Tool { call, .. }, Signal::Ask { key, title, body: AskBody::Approval { tool, options } }] =
        out.signals.as_slice()
    else {
        panic!("{out:?}")
    };
    assert_eq!((key.as_str(), title.as_str()), ("\"p-1\"", "rm -r build"));
    assert_eq!(call, tool);
    assert_eq!(options.len(), 4);
    assert_eq!(options[0].kind, OptionKind::AllowAlways);
    let out = talk.driver.answer(key, &Answer::allow(GrantScope::Session));
    talk.note(out);
    assert_eq!((&talk.last_sent()["id"], &talk.last_sent()["result"]), (&json!("p-1"), &selected("a")));
}

#[test]
fn answers_become_the_options_that_the_agent_offers() {
    let once = Answer::allow(GrantScope::Once);
    let deny = Answer::Deny { message: None };
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    let only = |id: &str, kind: &str| json!([{"optionId": id, "name": id, "kind": kind}]);
    for (options, answer, wanted) in [
        (all_options(), &once, selected("a")),
        (only("x", "allow_always"), &once, selected("x")),
        (all_options(), &deny, selected("r")),
        (only("x", "reject_always"), &deny, selected("x")),
        (only("x", "allow_once"), &deny, cancelled.clone()),
        (all_options(), &Answer::Choose { option: "aa".into() }, selected("aa")),
        (all_options(), &Answer::Reply { value: json!("never") }, selected("rr")),
    ] {
        assert_eq!(answered(options, answer).0.last_sent()["result"], wanted, "{answer:?}");
    }
    for (options, answer) in
        [(only("r", "reject_once"), &once), (all_options(), &Answer::Choose { option: "zz".into() })]
    {
        let (talk, out) = answered(options, answer);
        assert_eq!(talk.last_sent()["result"], cancelled);
        assert!(warning(&out).contains("not allowed"));
    }
}

#[test]
fn the_reason_of_a_denial_is_the_next_prompt() {
    for answer in [
        Answer::Deny { message: Some("use a branch".into()) },
        Answer::Reply { value: json!("use a branch") },
    ] {
        let (talk, out) = answered(all_options(), &answer);
        assert_eq!(talk.last_sent()["result"]["outcome"]["optionId"], "r");
        assert_eq!(talk.last_sent()["result"]["_meta"]["consort"]["message"], "use a branch");
        assert_eq!(out.follow_up.as_deref(), Some("use a branch"));
    }
}

#[test]
fn stop_denies_and_ends_the_turn() {
    let (talk, out) = answered(all_options(), &Answer::Stop);
    let sent = &talk.sent[talk.sent.len() - 2..];
    assert_eq!(sent[0]["result"], json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(sent[1]["method"], "session/cancel");
    assert_eq!(out.signals, []);
}

#[test]
fn an_ask_is_answered_once_and_unknown_keys_do_nothing() {
    let (mut talk, _) = answered(all_options(), &Answer::Choose { option: "a".into() });
    for key in ["0", "7", "", "login-1"] {
        assert_eq!(talk.driver.answer(key, &Answer::Stop), Output::default());
    }
}

#[test]
fn interrupting_cancels_every_open_ask_first() {
    let mut talk = Talk::working();
    talk.asks(json!(0), "session/request_permission", permission(all_options()));
    talk.asks(
        json!(1),
        "elicitation/create",
        json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}),
    );
    let out = talk.driver.interrupt();
    let out = talk.note(out);
    let sent = &talk.sent[talk.sent.len() - 3..];
    assert_eq!(sent[0]["result"], json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(sent[1]["result"], json!({"action": "cancel"}));
    assert_eq!(sent[2]["method"], "session/cancel");
    let withdrawn = ["0", "1"].map(|key| Signal::AskWithdrawn { key: key.into() });
    assert_eq!(out.signals, withdrawn);
}

#[test]
fn a_turn_that_ends_takes_its_open_asks_along() {
    let mut talk = Talk::working();
    talk.asks(json!(0), "session/request_permission", permission(all_options()));
    let out = talk.replies("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(talk.last_sent()["result"], json!({"outcome": {"outcome": "cancelled"}}));
    assert!(out.signals.contains(&Signal::AskWithdrawn { key: "0".into() }));
}

#[test]
fn gemini_says_nothing_more_of_a_denied_call() {
    let mut talk = Talk::open_with(hello_of("gemini-cli"), json!({"sessionId": "s"}));
    talk.prompt("go");
    talk.asks(json!(0), "session/request_permission", permission(all_options()));
    let out = talk.driver.answer("0", &Answer::Deny { message: None });
    let [Signal::Tool { call, .. }] = out.signals.as_slice() else { panic!("{out:?}") };
    assert_eq!(call.status, ToolStatus::Failed);
}

#[test]
fn the_agent_may_take_back_what_it_asked() {
    let mut talk = Talk::working();
    talk.asks(json!(0), "session/request_permission", permission(all_options()));
    talk.asks(json!(1), "fs/read_text_file", json!({"path": "/project/a"}));
    let out = talk.hears(json!({"method": "$/cancel_request", "params": {"requestId": 0}}));
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "0".into() }]);
    assert_eq!(talk.last_sent()["error"]["code"], -32800);
    talk.hears(json!({"method": "$/cancel_request", "params": {"requestId": 1}}));
    assert_eq!(talk.driver.pending_calls(), []);
    assert_eq!(
        talk.hears(json!({"method": "$/cancel_request", "params": {"requestId": 5}})),
        Output::default()
    );
}

#[test]
fn a_bad_approval_is_refused() {
    for params in [json!({}), json!({"toolCall": {}, "options": []}), json!({"toolCall": 1, "options": []})] {
        let mut talk = Talk::working();
        let out = talk.asks(json!(0), "session/request_permission", params);
        assert_eq!(talk.last_sent()["error"]["code"], -32602);
        warning(&out);
    }
    let mut talk = Talk::working();
    let mut foreign = permission(all_options());
    foreign["sessionId"] = json!("other");
    let out = talk.hears(json!({"id": 0, "method": "session/request_permission", "params": foreign}));
    assert_eq!(talk.last_sent()["error"]["code"], -32602);
    assert!(warning(&out).contains("session"));
}

fn question(schema: Value) -> Talk {
    let mut talk = Talk::working();
    let params = json!({"mode": "form", "message": "Which?\nReally.", "requestedSchema": schema.clone()});
    let out = talk.asks(json!(9), "elicitation/create", params);
    let [Signal::Ask { key, title, body: AskBody::Question(question) }] = out.signals.as_slice() else {
        panic!("{out:?}")
    };
    assert_eq!((key.as_str(), title.as_str(), question.text.as_str()), ("9", "Which?", "Which?\nReally."));
    assert_eq!(question.schema, schema);
    talk
}

#[test]
fn a_form_is_filled_in_from_objects_and_from_plain_words() {
    let single = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let choice = json!({"type": "object", "properties": {
        "pick": {"type": "string", "oneOf": [{"const": "Postgres", "title": "P"}, {"const": "SQLite", "title": "S"}]},
        "other": {"type": "string"},
        "many": {"type": "array", "items": {"anyOf": [{"const": "Auth", "title": "A"}]}},
        "sure": {"type": "boolean"},
    }});
    for (schema, answer, content) in [
        (&single, json!({"name": "x"}), json!({"name": "x"})),
        (&single, json!("x"), json!({"name": "x"})),
        (&single, json!("{\"name\":\"y\"}"), json!({"name": "y"})),
        (&choice, json!("SQLite"), json!({"pick": "SQLite"})),
        (&choice, json!("MySQL"), json!({"other": "MySQL"})),
        (&choice, json!("Auth"), json!({"many": ["Auth"]})),
        (&choice, json!(true), json!({"sure": true})),
    ] {
        let mut talk = question(schema.clone());
        let out = talk.driver.answer("9", &Answer::Reply { value: answer });
        talk.note(out);
        assert_eq!(talk.last_sent()["result"], json!({"action": "accept", "content": content}));
    }
    for (answer, action) in [(Answer::Deny { message: None }, "decline"), (Answer::Stop, "cancel")] {
        let mut talk = question(single.clone());
        let before = talk.sent.len();
        let out = talk.driver.answer("9", &answer);
        talk.note(out);
        assert_eq!(talk.sent[before]["result"], json!({"action": action}));
    }
}

#[test]
fn a_page_is_shown_and_may_be_dealt_with_elsewhere() {
    let ask = json!({"mode": "url", "message": "Log in", "url": "https://example.org", "elicitationId": "e"});
    let mut talk = Talk::working();
    let out = talk.asks(json!(4), "elicitation/create", ask.clone());
    let [Signal::Ask { body: AskBody::Question(question), .. }] = out.signals.as_slice() else {
        panic!("{out:?}")
    };
    assert_eq!(question.url.as_deref(), Some("https://example.org"));
    let out = talk.hears(json!({"method": "elicitation/complete", "params": {"elicitationId": "e"}}));
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "4".into() }]);
    assert_eq!(talk.last_sent()["result"], json!({"action": "accept"}));

    talk.asks(json!(5), "elicitation/create", ask);
    let out = talk.driver.answer("5", &Answer::Deny { message: None });
    talk.note(out);
    assert_eq!(talk.last_sent()["result"], json!({"action": "decline"}));
    let out = talk.asks(json!(6), "elicitation/create", json!({"mode": "hologram", "message": "?"}));
    assert_eq!(talk.last_sent()["error"]["code"], -32602);
    warning(&out);
}

#[test]
fn nobody_is_asked_about_tools_that_consort_gave_and_everybody_about_others() {
    let server = McpServer {
        name: "consort".into(),
        url: "http://127.0.0.1:1/mcp".into(),
        headers: vec![],
        bridge: None,
    };
    let mut talk = Talk::start(Launch { mcp_servers: vec![server], ..launch() });
    talk.replies("initialize", hello());
    talk.replies("session/new", json!({"sessionId": "s"}));
    let out = talk.driver.prompt("go", &[]);
    talk.note(out);
    let gemini = |id: &str, title: &str, kind: &str| {
        json!({"toolCall": {"toolCallId": id, "title": title, "kind": kind, "status": "pending"}, "options": [
            {"optionId": "proceed_always_server", "name": "Server", "kind": "allow_always"},
            {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
        ]})
    };
    let claude = |name: &str| {
        let mut ask = gemini("toolu_1", name, "other");
        ask["toolCall"]["_meta"] = json!({"claudeCode": {"toolName": name}});
        ask["options"] = all_options();
        ask
    };
    let own = "whoami (consort MCP Server)";
    for (number, (ask, answer)) in [
        (gemini("mcp_consort_whoami__1", own, "other"), Some("proceed_always_server")),
        (gemini("mcp_consort_whoami__2", own, "execute"), None),
        (gemini("mcp_consort_evil_run__3", "run (consort_evil MCP Server)", "other"), None),
        (gemini("mcp_notes_add__4", "add (notes MCP Server)", "other"), None),
        (gemini("shell__5", own, "other"), None),
        (claude("mcp__consort__whoami"), Some("a")),
        (claude("mcp__consortium__whoami"), None),
    ]
    .into_iter()
    .enumerate()
    {
        let out = talk.asks(json!(number), "session/request_permission", ask.clone());
        let asked = out.signals.iter().any(|signal| matches!(signal, Signal::Ask { .. }));
        assert_eq!(asked, answer.is_none(), "{ask}");
        if let Some(option) = answer {
            assert_eq!(talk.last_sent()["result"], selected(option), "{ask}");
        }
    }
}
