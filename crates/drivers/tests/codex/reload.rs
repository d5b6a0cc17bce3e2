//! Whenever the daemon dies, the driver goes on from its stored state as if nothing had happened.

use consort_drivers::{Driver, Frame, Output};
use consort_model::{Answer, DriverKind};
use serde_json::{Value, json};

use crate::support::{allow, launch, models, modes, thread};

/// What is given to the driver.
#[derive(Clone)]
pub enum Input {
    Start,
    Prompt(&'static str),
    Interrupt,
    Answer(&'static str, Answer),
    Choose(&'static str, &'static str),
    Frame(Value),
    Ended,
}

pub fn give(driver: &mut Driver, input: &Input) -> Output {
    match input {
        Input::Start => driver.start(),
        Input::Prompt(text) => driver.prompt(text, &[]),
        Input::Interrupt => driver.interrupt(),
        Input::Answer(key, answer) => driver.answer(key, answer),
        Input::Choose(option, value) => driver.choose(option, value).unwrap(),
        Input::Frame(frame) => driver.receive(Frame::Line(frame.to_string().as_bytes())),
        Input::Ended => driver.ended(),
    }
}

/// A conversation with a bit of everything in it.
pub fn conversation() -> Vec<Input> {
    let result = |id: u64, result: Value| Input::Frame(json!({"id": id, "result": result}));
    let tells = |method: &str, params: Value| {
        let mut params = params;
        for (key, value) in [("threadId", "t"), ("turnId", "u")] {
            if params.get(key).is_none() {
                params[key] = json!(value);
            }
        }
        Input::Frame(json!({"method": method, "params": params, "emittedAtMs": 1_000_000_000_000_u64}))
    };
    let item = |when: &str, item: Value| tells(&format!("item/{when}"), json!({"item": item}));
    let command = |status: &str, output: Value| {
        json!({"type": "commandExecution", "id": "c", "command": "/bin/bash -lc 'ls'", "cwd": "/project",
            "processId": "9", "status": status, "aggregatedOutput": output, "exitCode": null})
    };
    let change = |status: &str| {
        json!({"type": "fileChange", "id": "e", "status": status, "changes": [
            {"path": "/project/a", "kind": {"type": "update", "move_path": null}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}]})
    };
    let spawn = |status: &str, children: Value| {
        json!({"type": "collabAgentToolCall", "id": "s", "tool": "spawnAgent", "status": status,
            "senderThreadId": "t", "receiverThreadIds": children, "prompt": "look"})
    };
    vec![
        Input::Start,
        result(1, json!({"userAgent": "consort/0.166.0 (x)"})),
        tells("configWarning", json!({"summary": "Odd.", "details": "x"})),
        result(2, json!({"account": null, "requiresOpenaiAuth": false})),
        result(3, json!({"config": {"approval_policy": null}})),
        result(4, models()),
        result(5, modes()),
        result(6, thread()),
        tells("thread/started", json!({"thread": {"id": "t"}})),
        Input::Choose("model", "small"),
        tells(
            "thread/settings/updated",
            json!({"threadSettings": {"model": "small", "approvalPolicy": "on-request",
            "sandboxPolicy": {"type": "readOnly"}}}),
        ),
        result(7, json!({})),
        Input::Prompt("go"),
        result(8, json!({"turn": {"id": "u", "status": "inProgress"}})),
        tells("turn/started", json!({"turn": {"id": "u", "status": "inProgress"}})),
        item(
            "started",
            json!({"type": "userMessage", "id": "x", "content": [{"type": "text", "text": "go"}]}),
        ),
        item("started", json!({"type": "reasoning", "id": "r", "summary": [], "content": []})),
        tells("item/reasoning/summaryTextDelta", json!({"itemId": "r", "delta": "Hm", "summaryIndex": 0})),
        item("completed", json!({"type": "reasoning", "id": "r", "summary": ["Hm"], "content": []})),
        item("started", json!({"type": "agentMessage", "id": "m", "text": ""})),
        tells("item/agentMessage/delta", json!({"itemId": "m", "delta": "Hel"})),
        tells("item/agentMessage/delta", json!({"itemId": "m", "delta": "l"})),
        item("completed", json!({"type": "agentMessage", "id": "m", "text": "Hello"})),
        item("started", command("inProgress", Value::Null)),
        Input::Frame(
            json!({"id": 0, "method": "item/commandExecution/requestApproval", "params": {"threadId": "t",
            "turnId": "u", "itemId": "c", "command": "/bin/bash -lc 'ls'", "cwd": "/project", "reason": "May I?"}}),
        ),
        Input::Answer("0", allow("once")),
        tells("serverRequest/resolved", json!({"requestId": 0})),
        tells("item/commandExecution/outputDelta", json!({"itemId": "c", "delta": "a\n"})),
        item("completed", command("completed", json!("a\nb\n"))),
        item("started", change("inProgress")),
        Input::Frame(
            json!({"id": 1, "method": "item/fileChange/requestApproval", "params": {"threadId": "t",
            "turnId": "u", "itemId": "e", "reason": null, "grantRoot": null}}),
        ),
        Input::Answer("1", Answer::Deny { message: Some("no".into()) }),
        result(9, json!({"turnId": "u"})),
        item("completed", change("declined")),
        tells("turn/plan/updated", json!({"plan": [{"step": "Read", "status": "completed"}]})),
        Input::Frame(json!({"id": 2, "method": "mcpServer/elicitation/request", "params": {"threadId": "t",
            "turnId": "u", "serverName": "s", "mode": "form", "message": "Run?", "requestedSchema": {"type": "object",
            "properties": {}}, "_meta": {"persist": ["session"], "tool_params": {"a": 1}}}})),
        Input::Answer("2", Answer::Choose { option: "session".into() }),
        Input::Frame(
            json!({"id": 3, "method": "item/tool/requestUserInput", "params": {"threadId": "t", "turnId": "u",
            "itemId": "q", "questions": [{"id": "color", "header": "C", "question": "Which?", "options": null}]}}),
        ),
        Input::Answer("3", Answer::Reply { value: json!("Blue") }),
        item("started", spawn("inProgress", json!([]))),
        item("completed", spawn("completed", json!(["k"]))),
        tells("turn/started", json!({"threadId": "k", "turn": {"id": "v"}})),
        tells("item/agentMessage/delta", json!({"threadId": "k", "itemId": "km", "delta": "child"})),
        tells("turn/completed", json!({"threadId": "k", "turn": {"id": "v", "status": "completed"}})),
        tells(
            "thread/tokenUsage/updated",
            json!({"tokenUsage": {"total": {"inputTokens": 5, "outputTokens": 2},
            "last": {"totalTokens": 7}, "modelContextWindow": 100}}),
        ),
        tells(
            "account/rateLimits/updated",
            json!({"rateLimits": {"primary": {"usedPercent": 95,
            "windowDurationMins": 300, "resetsAt": 1_000_003_600}}}),
        ),
        tells("error", json!({"willRetry": true, "error": {"message": "Reconnecting... 1/5"}})),
        tells("turn/completed", json!({"turn": {"id": "u", "status": "completed", "error": null}})),
        Input::Prompt("more"),
        result(10, json!({"turn": {"id": "w", "status": "inProgress"}})),
        tells("turn/started", json!({"turn": {"id": "w", "status": "inProgress"}})),
        item("started", command("inProgress", Value::Null)),
        Input::Interrupt,
        result(12, json!({})),
        result(11, json!({})),
        tells("turn/completed", json!({"turn": {"id": "w", "status": "interrupted"}})),
        Input::Prompt("last"),
        Input::Ended,
    ]
}

#[test]
fn a_driver_goes_on_from_its_stored_state_at_every_frame() {
    let inputs = conversation();
    let mut whole = Driver::new(DriverKind::Codex, launch()).unwrap();
    let expected: Vec<Output> = inputs.iter().map(|input| give(&mut whole, input)).collect();
    for cut in 0..inputs.len() {
        let mut driver = Driver::new(DriverKind::Codex, launch()).unwrap();
        for (index, input) in inputs.iter().enumerate() {
            if index == cut {
                driver = serde_json::from_str(&serde_json::to_string(&driver).unwrap()).unwrap();
            }
            assert_eq!(give(&mut driver, input), expected[index], "cut at {cut}, input {index}");
        }
        assert_eq!(driver, whole);
    }
}

#[test]
fn the_state_stays_small_and_holds_no_messages() {
    let mut driver = Driver::new(DriverKind::Codex, launch()).unwrap();
    for input in &conversation() {
        give(&mut driver, input);
        let stored = serde_json::to_string(&driver).unwrap();
        assert!(stored.len() < 8_000, "{} bytes: {stored}", stored.len());
        assert!(!stored.contains("Hel"), "{stored}");
    }
}
