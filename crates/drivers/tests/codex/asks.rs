use consort_drivers::Output;
use consort_model::{Answer, AnswerOption, AskBody, OptionKind, Question, Signal, ToolCall, ToolKind};
use serde_json::{Value, json};

use crate::support::{Talk, allow, warning};

const COMMAND: &str = "item/commandExecution/requestApproval";
const CHANGE: &str = "item/fileChange/requestApproval";
const PERMISSIONS: &str = "item/permissions/requestApproval";
const ELICITATION: &str = "mcpServer/elicitation/request";
const INPUT: &str = "item/tool/requestUserInput";

fn approval(out: &Output) -> (&str, &ToolCall, &[AnswerOption]) {
    match out.signals.last() {
        Some(Signal::Ask { title, body: AskBody::Approval { tool, options }, .. }) => (title, tool, options),
        other => panic!("{other:?}"),
    }
}

fn question(out: &Output) -> &Question {
    match out.signals.last() {
        Some(Signal::Ask { body: AskBody::Question(question), .. }) => question,
        other => panic!("{other:?}"),
    }
}

fn ids(options: &[AnswerOption]) -> Vec<&str> {
    options.iter().map(|option| option.id.as_str()).collect()
}

fn choose(option: &str) -> Answer {
    Answer::Choose { option: option.into() }
}

fn deny() -> Answer {
    Answer::Deny { message: None }
}

fn command() -> Value {
    json!({"kind": "command", "itemId": "c", "reason": "May I?", "command": "/bin/bash -lc 'touch a'", "cwd": "/project",
        "proposedExecpolicyAmendment": ["touch", "a"],
        "availableDecisions": ["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "a"]}}, "cancel"]})
}

fn elicitation() -> Value {
    json!({"serverName": "s", "mode": "form", "message": "Allow s to run t?",
        "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"], "tool_params": {"a": 1}}})
}

fn permissions() -> Value {
    json!({"itemId": "p", "reason": null, "cwd": "/project",
        "permissions": {"network": {"enabled": true}, "fileSystem": null}})
}

/// The reply that a person's answer becomes.
fn reply(method: &str, params: Value, answer: &Answer) -> Value {
    let mut talk = Talk::working();
    talk.asks(json!(0), method, params);
    let out = talk.driver.answer("0", answer);
    talk.note(out);
    let reply = talk.sent.iter().rev().find(|message| message.get("method").is_none()).unwrap();
    assert_eq!(reply["id"], 0);
    reply["result"].clone()
}

#[test]
fn a_commands_approval_shows_what_would_run_and_all_decisions() {
    let mut talk = Talk::working();
    let out = talk.asks(json!(0), COMMAND, command());
    let (title, tool, options) = approval(&out);
    assert_eq!(title, "touch a (May I?)");
    assert_eq!((tool.tool, tool.id.as_str()), (ToolKind::Execute, "c"));
    assert_eq!(tool.input, json!({"command": "/bin/bash -lc 'touch a'", "cwd": "/project"}));
    assert_eq!(
        ids(options),
        ["accept", "acceptForSession", "acceptWithExecpolicyAmendment", "decline", "cancel"]
    );
    assert_eq!(options[2].name, "Always allow commands that begin with `touch a`");
}

#[test]
fn answers_become_decisions() {
    let amended =
        json!({"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "a"]}}});
    let decision = |word: &str| json!({"decision": word});
    let elicited = |action: &str, content: Value, meta: Value| json!({"action": action, "content": content, "_meta": meta});
    let granted = |scope: &str| json!({"permissions": {"network": {"enabled": true}}, "scope": scope});
    let change = json!({"itemId": "e", "reason": null, "grantRoot": null});
    let table = [
        (COMMAND, command(), allow("once"), decision("accept")),
        (COMMAND, command(), allow("always"), decision("accept")),
        (COMMAND, command(), deny(), decision("decline")),
        (COMMAND, command(), Answer::Stop, decision("cancel")),
        (COMMAND, command(), choose("acceptForSession"), decision("acceptForSession")),
        (COMMAND, command(), choose("deny and stop"), decision("cancel")),
        (COMMAND, command(), choose("nonsense"), decision("decline")),
        (COMMAND, command(), choose("acceptWithExecpolicyAmendment"), amended),
        (COMMAND, command(), Answer::Reply { value: json!("allow") }, decision("accept")),
        (COMMAND, command(), Answer::Reply { value: json!(1) }, decision("decline")),
        (CHANGE, change.clone(), allow("once"), decision("accept")),
        (CHANGE, change.clone(), choose("acceptForSession"), decision("acceptForSession")),
        (CHANGE, change.clone(), deny(), decision("decline")),
        (CHANGE, change, Answer::Stop, decision("cancel")),
        (ELICITATION, elicitation(), allow("once"), elicited("accept", json!({}), Value::Null)),
        (
            ELICITATION,
            elicitation(),
            choose("session"),
            elicited("accept", json!({}), json!({"persist": "session"})),
        ),
        (
            ELICITATION,
            elicitation(),
            choose("always"),
            elicited("accept", json!({}), json!({"persist": "always"})),
        ),
        (ELICITATION, elicitation(), deny(), elicited("decline", Value::Null, Value::Null)),
        (ELICITATION, elicitation(), Answer::Stop, elicited("cancel", Value::Null, Value::Null)),
        (PERMISSIONS, permissions(), allow("once"), granted("turn")),
        (PERMISSIONS, permissions(), choose("session"), granted("session")),
        (PERMISSIONS, permissions(), deny(), json!({"permissions": {}, "scope": "turn"})),
    ];
    for (method, params, answer, expected) in table {
        assert_eq!(reply(method, params, &answer), expected, "{method} {answer:?}");
    }
}

#[test]
fn a_denial_with_a_reason_tells_the_reason_first() {
    let mut talk = Talk::working();
    talk.asks(json!(0), COMMAND, command());
    let out = talk.driver.answer("0", &Answer::Deny { message: Some("use git".into()) });
    talk.note(out);
    let sent = &talk.sent[talk.sent.len() - 2..];
    assert_eq!(
        sent[0]["params"],
        json!({"threadId": "t", "expectedTurnId": "u", "input": [{"type": "text", "text": "use git", "text_elements": []}]})
    );
    assert_eq!(sent[1]["result"], json!({"decision": "decline"}));
    assert!(warning(&talk.fails("turn/steer", "no active turn")).contains("no active turn"));
}

#[test]
fn a_changes_approval_shows_the_diff_that_was_told_before() {
    let mut talk = Talk::working();
    let changes = json!([{"path": "/project/a", "kind": {"type": "add"}, "diff": "new\n"}]);
    talk.item(
        "started",
        json!({"type": "fileChange", "id": "e", "changes": changes, "status": "inProgress"}),
    );
    let out = talk.asks(json!(0), CHANGE, json!({"itemId": "e", "reason": "outside", "grantRoot": null}));
    let (title, tool, _) = approval(&out);
    assert_eq!(title, "Write /project/a (outside)");
    assert_eq!((tool.tool, tool.diffs[0].new_text.as_str()), (ToolKind::Edit, "new\n"));
    // A whole folder is more than the change: it is not an edit, which a mode may allow unasked.
    let out = talk.asks(json!(1), CHANGE, json!({"itemId": "e", "grantRoot": "/etc"}));
    let (title, tool, _) = approval(&out);
    assert_eq!(title, "Write /project/a, and then anything in /etc");
    assert_eq!(tool.tool, ToolKind::Other);
}

#[test]
fn a_commands_approval_can_be_about_the_network() {
    let mut talk = Talk::working();
    let params = json!({"kind": "network", "itemId": "c", "command": "curl x",
        "networkApprovalContext": {"host": "example.org", "protocol": "https"},
        "availableDecisions": ["accept", {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "example.org", "action": "allow"}}},
            {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "example.org", "action": "deny"}}}, {"odd": 1}]});
    let out = talk.asks(json!(0), COMMAND, params.clone());
    let (title, tool, options) = approval(&out);
    assert_eq!((title, tool.tool), ("Reach example.org over https", ToolKind::Fetch));
    assert!(options.iter().any(|option| option.kind == OptionKind::RejectAlways));
    let reply = reply(COMMAND, params, &choose("network-deny-example.org"));
    assert_eq!(
        reply["decision"]["applyNetworkPolicyAmendment"]["network_policy_amendment"]["action"],
        "deny"
    );
}

#[test]
fn no_rule_about_a_command_answers_for_more_than_the_command() {
    let mut talk = Talk::working();
    let mut params = command();
    params["additionalPermissions"] = json!({"network": {"enabled": true}});
    let out = talk.asks(json!(0), COMMAND, params);
    let (title, tool, _) = approval(&out);
    assert_eq!((title, tool.tool), ("touch a, with more permissions (May I?)", ToolKind::Other));
    assert_eq!(tool.input.get("command"), None);
}

#[test]
fn a_servers_tool_is_asked_for_as_the_call_it_is() {
    let mut talk = Talk::working();
    let item = json!({"type": "mcpToolCall", "id": "m", "server": "s", "tool": "t", "arguments": {"a": 1}});
    talk.item("started", item);
    let out = talk.asks(json!(0), ELICITATION, elicitation());
    let (title, tool, options) = approval(&out);
    assert_eq!((title, tool.id.as_str(), &tool.input), ("s: t", "m", &json!({"a": 1})));
    assert_eq!(ids(options), ["accept", "session", "always", "decline"]);
}

#[test]
fn a_servers_form_or_page_is_a_question() {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "number"}}});
    let form = json!({"serverName": "s", "mode": "form", "message": "Who?", "requestedSchema": schema, "_meta": null});
    let mut talk = Talk::working();
    assert_eq!(question(&talk.asks(json!(0), ELICITATION, form.clone())).schema, schema);
    let accepted = reply(ELICITATION, form.clone(), &Answer::Reply { value: json!({"name": "Ada"}) });
    assert_eq!(accepted, json!({"action": "accept", "content": {"name": "Ada"}, "_meta": null}));
    let plain = reply(ELICITATION, form, &Answer::Reply { value: json!("Ada") });
    assert_eq!(plain["content"].as_object().unwrap().len(), 1);

    let page = json!({"serverName": "s", "mode": "url", "message": "Log in", "url": "http://x", "elicitationId": "e"});
    let out = talk.asks(json!(1), ELICITATION, page.clone());
    assert_eq!(question(&out).url.as_deref(), Some("http://x"));
    assert_eq!(reply(ELICITATION, page, &allow("once"))["action"], "accept");

    let out = talk.asks(json!(2), ELICITATION, json!({"serverName": "s", "mode": "telepathy"}));
    assert!(warning(&out).contains("telepathy"));
    assert_eq!(talk.last_sent()["result"]["action"], "cancel");
}

#[test]
fn questions_are_answered_by_their_ids() {
    let one = json!({"itemId": "q", "isBlocking": true, "questions": [
        {"id": "color", "header": "Color", "question": "Which color?", "isOther": false, "isSecret": false,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]});
    let mut talk = Talk::working();
    let out = talk.asks(json!(0), INPUT, one.clone());
    let asked = question(&out);
    assert_eq!(asked.schema["properties"]["color"]["enum"], json!(["Red", "Blue"]));
    assert!(asked.text.contains("- Blue: cold"));
    let blue = json!({"answers": {"color": {"answers": ["Blue"]}}});
    let answers = [
        Answer::Reply { value: json!({"color": "Blue", "other": 1}) },
        Answer::Reply { value: json!("Blue") },
        Answer::Reply { value: json!({"color": ["Blue"]}) },
        choose("Blue"),
    ];
    for answer in answers {
        assert_eq!(reply(INPUT, one.clone(), &answer), blue, "{answer:?}");
    }
    assert_eq!(reply(INPUT, one.clone(), &deny()), json!({"answers": {}}));
    let mut free = one;
    free["questions"][0]["isOther"] = json!(true);
    let out = talk.asks(json!(1), INPUT, free);
    assert_eq!(question(&out).schema["properties"]["color"].get("enum"), None);
}

#[test]
fn stopping_at_an_approval_stops_the_turn() {
    let mut talk = Talk::working();
    talk.asks(json!(0), COMMAND, command());
    talk.asks(json!(1), COMMAND, command());
    let out = talk.driver.answer("0", &Answer::Stop);
    let out = talk.note(out);
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "1".into() }]);
    assert_eq!(talk.sent("turn/interrupt")["turnId"], "u");
}

#[test]
fn an_interrupt_withdraws_and_answers_what_was_asked() {
    let mut talk = Talk::working();
    talk.asks(json!(0), COMMAND, command());
    talk.asks(json!("a"), ELICITATION, elicitation());
    let out = talk.driver.interrupt();
    let out = talk.note(out);
    let withdrawn = |key: &str| Signal::AskWithdrawn { key: key.into() };
    assert_eq!(out.signals, [withdrawn("0"), withdrawn("\"a\"")]);
    assert_eq!(talk.tells("serverRequest/resolved", json!({"requestId": 0})).signals, []);
}

#[test]
fn what_was_settled_elsewhere_is_withdrawn() {
    let mut talk = Talk::working();
    talk.asks(json!(0), COMMAND, command());
    assert_eq!(talk.tells("serverRequest/resolved", json!({"requestId": "0"})).signals, []);
    let out = talk.tells("serverRequest/resolved", json!({"requestId": 0}));
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "0".into() }]);
    assert_eq!(talk.driver.answer("0", &allow("once")), Output::default());
}

#[test]
fn the_end_of_a_turn_withdraws_what_it_asked() {
    let mut talk = Talk::working();
    talk.asks(json!(0), COMMAND, command());
    let out = talk.ends("failed");
    assert!(out.signals.contains(&Signal::AskWithdrawn { key: "0".into() }));
}

#[test]
fn an_ask_that_makes_no_sense_is_refused() {
    let mut talk = Talk::working();
    for (method, params) in
        [(COMMAND, json!({"itemId": "c"})), (COMMAND, json!([])), (INPUT, json!({"questions": "?"}))]
    {
        let mut params = params;
        if params.is_object() {
            params["threadId"] = json!("t");
        }
        let out = talk.hears(json!({"id": 9, "method": method, "params": params}));
        assert!(warning(&out).contains("refused"), "{out:?}");
        assert_eq!(talk.last_sent()["error"]["code"], -32602);
    }
    let out = talk.asks(json!(3), COMMAND, json!({"threadId": "x", "command": "ls"}));
    assert!(warning(&out).contains("not this agent's"));
    talk.asks(json!(4), COMMAND, command());
    assert!(warning(&talk.asks(json!(4), COMMAND, command())).contains("twice"));
}
