//! Approvals, plans, questions and forms: what a person sees and what the agent is told.

use consort_drivers::Launch;
use consort_model::{Answer, AskBody, PermissionMode, Signal, ToolStatus};
use serde_json::{Value, json};

use crate::support::{Talk, allow, calls, hello, last_call, launch, warning};

fn body(signals: &[Signal]) -> &AskBody {
    let asked = signals.iter().find_map(|signal| match signal {
        Signal::Ask { body, .. } => Some(body),
        _ => None,
    });
    asked.unwrap_or_else(|| panic!("nothing is asked: {signals:?}"))
}

fn option_ids(signals: &[Signal]) -> Vec<String> {
    match body(signals) {
        AskBody::Approval { options, .. } => options.iter().map(|option| option.id.clone()).collect(),
        AskBody::Question(question) => panic!("{question:?}"),
    }
}

fn rule() -> Value {
    json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls *"}], "behavior": "allow",
        "destination": "localSettings"})
}

fn choose(option: &str) -> Answer {
    Answer::Choose { option: option.into() }
}

fn deny(message: Option<&str>) -> Answer {
    Answer::Deny { message: message.map(str::to_owned) }
}

#[test]
fn an_approval_shows_the_call_and_the_answers() {
    let mut talk = Talk::working();
    talk.hears(calls("t", "Bash", json!({"command": "ls"})));
    let out = talk.asks("r", "Bash", "t", json!({"command": "ls", "description": "List"}), json!([rule()]));
    assert_eq!(option_ids(&out.signals), ["allow", "session-0", "always-0", "deny"]);
    let AskBody::Approval { tool, .. } = body(&out.signals) else { panic!() };
    assert_eq!((tool.id.as_str(), tool.title.as_str(), tool.status), ("t", "ls", ToolStatus::Pending));
}

#[test]
fn answers_become_the_agents() {
    let input = json!({"command": "ls", "description": "List"});
    let allowed = json!({"behavior": "allow", "updatedInput": input});
    let with = |updates: Value| {
        let mut allowed = allowed.clone();
        allowed["updatedPermissions"] = updates;
        allowed
    };
    let mut for_session = rule();
    for_session["destination"] = json!("session");
    let denied = |message: &str| json!({"behavior": "deny", "message": message, "interrupt": false});
    let stock = "The user does not allow this. Do something else, or ask the user what to do.";
    let table = [
        (allow("once"), allowed.clone()),
        // How far it reaches is a rule of Consort's own.
        (allow("session"), allowed.clone()),
        (allow("always"), allowed.clone()),
        (choose("allow"), allowed.clone()),
        (choose("Allow"), allowed.clone()),
        (choose("session-0"), with(json!([for_session]))),
        (choose("always-0"), with(json!([for_session, rule()]))),
        (choose("deny"), denied(stock)),
        (deny(Some("use rg")), denied("use rg")),
        (deny(Some("  ")), denied(stock)),
        (deny(None), denied(stock)),
        (
            Answer::Reply { value: json!({"command": "ls -l"}) },
            json!({"behavior": "allow", "updatedInput": {"command": "ls -l"}}),
        ),
        (Answer::Reply { value: json!("rather not") }, denied("rather not")),
    ];
    for (answer, expected) in table {
        let mut talk = Talk::working();
        talk.asks("r", "Bash", "t", input.clone(), json!([rule()]));
        let out = talk.answers("r", &answer);
        assert_eq!(*talk.answer_to("r"), expected, "{answer:?}");
        let runs = expected["behavior"] == "allow";
        assert_eq!(out.signals.len(), usize::from(runs), "{answer:?}");
        assert_eq!(talk.answers("r", &answer).frames.len(), 0, "answered twice");
    }
}

#[test]
fn an_answer_that_is_not_offered_allows_nothing() {
    let mut talk = Talk::working();
    talk.asks("r", "Bash", "t", json!({"command": "ls"}), json!([]));
    warning(&talk.answers("r", &choose("always-0")));
    assert_eq!(talk.answer_to("r")["behavior"], "deny");
}

#[test]
fn stop_denies_and_interrupts() {
    let mut talk = Talk::working();
    talk.asks("r", "Bash", "t", json!({"command": "ls"}), json!([]));
    talk.asks("q", "Bash", "u", json!({"command": "pwd"}), json!([]));
    let out = talk.answers("r", &Answer::Stop);
    assert_eq!(talk.answer_to("r")["interrupt"], true);
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "q".into() }]);
    assert!(talk.kinds_sent().contains(&"interrupt"));
}

#[test]
fn several_asks_are_open_at_once_and_answered_in_any_order() {
    let mut talk = Talk::working();
    talk.asks("r", "Bash", "t", json!({"command": "ls"}), json!([]));
    talk.asks("q", "Bash", "u", json!({"command": "pwd"}), json!([]));
    talk.answers("q", &deny(None));
    talk.answers("r", &allow("once"));
    assert_eq!(talk.answer_to("q")["behavior"], "deny");
    assert_eq!(talk.answer_to("r")["updatedInput"]["command"], "ls");
}

#[test]
fn the_agent_takes_an_ask_back() {
    let mut talk = Talk::working();
    talk.asks("r", "Bash", "t", json!({"command": "ls"}), json!([]));
    let out = talk.hears(json!({"type": "control_cancel_request", "request_id": "r"}));
    assert_eq!(out.signals, [Signal::AskWithdrawn { key: "r".into() }]);
    assert_eq!(talk.answers("r", &choose("allow")).frames.len(), 0);
}

#[test]
fn a_sub_agents_ask_comes_before_its_call() {
    let mut talk = Talk::working();
    talk.hears(calls("a", "Agent", json!({"description": "look"})));
    talk.system("task_started", json!({"task_id": "k", "tool_use_id": "a"}));
    let out = talk
        .hears(json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "tool_use_id": "t", "agent_id": "k", "input": {"command": "ls"}}}));
    assert!(matches!(&out.signals[0], Signal::Tool { within: Some(within), .. } if within.as_str() == "a"));
    let out = talk.hears(crate::support::within(calls("t", "Bash", json!({"command": "ls"})), "a"));
    assert_eq!(last_call(&out).status, ToolStatus::Pending);
}

#[test]
fn a_plan_is_approved_with_a_mode_and_consort_follows() {
    let plan = json!({"plan": "# Plan\n1. Do it"});
    let table = [
        (allow("once"), "default", PermissionMode::Default),
        (choose("allow"), "default", PermissionMode::Default),
        (choose("accept-edits"), "acceptEdits", PermissionMode::AcceptEdits),
    ];
    for (answer, mode, permissions) in table {
        let mut talk = Talk::start(Launch { permissions: PermissionMode::Plan, ..launch() });
        talk.replies("initialize", hello());
        talk.prompt("go");
        let out = talk.asks("r", "ExitPlanMode", "t", plan.clone(), Value::Null);
        assert_eq!(option_ids(&out.signals), ["allow", "accept-edits", "deny"]);
        let AskBody::Approval { tool, .. } = body(&out.signals) else { panic!() };
        assert_eq!(tool.output, "# Plan\n1. Do it");
        let out = talk.answers("r", &answer);
        assert_eq!(out.signals.last(), Some(&Signal::Permissions(permissions)));
        let expected = json!([{"type": "setMode", "mode": mode, "destination": "session"}]);
        assert_eq!(talk.answer_to("r")["updatedPermissions"], expected);
    }
}

#[test]
fn a_rejected_plan_keeps_the_mode() {
    let mut talk = Talk::start(Launch { permissions: PermissionMode::Plan, ..launch() });
    talk.replies("initialize", hello());
    talk.prompt("go");
    talk.asks("r", "ExitPlanMode", "t", json!({"plan": "x"}), Value::Null);
    let out = talk.answers("r", &deny(Some("smaller")));
    assert_eq!(out.signals, []);
    assert_eq!(talk.answer_to("r")["message"], "smaller");
}

#[test]
fn questions_are_answered_in_the_agents_own_way() {
    let questions = json!({"questions": [{"question": "Which?", "header": "W", "multiSelect": false,
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]}]});
    let answered = |answer: &str| {
        let mut input = questions.clone();
        input["answers"] = json!({"Which?": answer});
        json!({"behavior": "allow", "updatedInput": input})
    };
    let table = [
        (Answer::Reply { value: json!("B") }, answered("B")),
        (Answer::Reply { value: json!({"Which?": "A"}) }, answered("A")),
        (choose("B"), answered("B")),
        (Answer::Reply { value: json!("something else") }, answered("something else")),
        (deny(Some("no")), json!({"behavior": "deny", "message": "no", "interrupt": false})),
    ];
    for (answer, expected) in table {
        let mut talk = Talk::working();
        let out = talk.asks("r", "AskUserQuestion", "t", questions.clone(), Value::Null);
        let AskBody::Question(question) = body(&out.signals) else { panic!("{out:?}") };
        assert_eq!(question.text, "Which?");
        talk.answers("r", &answer);
        assert_eq!(*talk.answer_to("r"), expected, "{answer:?}");
    }
}

#[test]
fn an_mcp_servers_form_is_a_question() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let table = [
        (
            Answer::Reply { value: json!({"name": "x"}) },
            json!({"action": "accept", "content": {"name": "x"}}),
        ),
        (Answer::Reply { value: json!("x") }, json!({"action": "accept", "content": {"name": "x"}})),
        (deny(None), json!({"action": "decline"})),
        (Answer::Stop, json!({"action": "cancel"})),
    ];
    for (answer, expected) in table {
        let mut talk = Talk::working();
        let out = talk.hears(
            json!({"type": "control_request", "request_id": "r", "request": {"subtype": "elicitation",
            "mcp_server_name": "m", "message": "Who?", "mode": "form", "requested_schema": schema}}),
        );
        let AskBody::Question(question) = body(&out.signals) else { panic!("{out:?}") };
        assert_eq!(question.schema, schema);
        talk.answers("r", &answer);
        assert_eq!(*talk.answer_to("r"), expected, "{answer:?}");
    }
}

#[test]
fn requests_that_are_not_understood_are_refused() {
    let mut talk = Talk::working();
    let request =
        |id: &str, request: Value| json!({"type": "control_request", "request_id": id, "request": request});
    talk.hears(request("a", json!({"subtype": "novelty"})));
    assert_eq!(talk.last_sent()["response"]["subtype"], "error");
    warning(&talk.hears(request("b", json!({"subtype": "can_use_tool"}))));
    assert_eq!(talk.last_sent()["response"]["subtype"], "error");
    talk.hears(request("c", json!({"subtype": "request_user_dialog", "dialog_kind": "x"})));
    assert_eq!(*talk.answer_to("c"), json!({"behavior": "cancelled"}));
    warning(&talk.hears(json!({"type": "control_request", "request": {"subtype": "x"}})));
    talk.asks("d", "Bash", "t", json!({}), json!([]));
    warning(&talk.asks("d", "Bash", "u", json!({}), json!([])));
}
