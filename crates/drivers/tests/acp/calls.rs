use consort_drivers::host::TerminalExit;
use consort_drivers::{CallResult, HostCall, Launch};
use serde_json::{Value, json};

use crate::support::{Talk, hello, hello_of, launch, warning};

/// The call that a request becomes, and the reply that a result becomes.
fn roundtrip(talk: &mut Talk, method: &str, params: Value, result: CallResult) -> (HostCall, Value) {
    let out = talk.asks(json!("r"), method, params);
    let [(id, call)] = out.calls.as_slice() else { panic!("{out:?}") };
    assert_eq!(talk.driver.pending_calls(), out.calls);
    let done = talk.driver.complete(id, result);
    talk.note(done);
    assert_eq!(talk.driver.pending_calls(), []);
    assert_eq!(talk.last_sent()["id"], "r");
    (call.clone(), talk.last_sent().clone())
}

#[test]
fn files_are_read_and_written_by_the_host() {
    let mut talk = Talk::working();
    let (call, reply) = roundtrip(
        &mut talk,
        "fs/read_text_file",
        json!({"path": "/project/a", "line": 2, "limit": 1}),
        CallResult::Text { text: "b\n".into() },
    );
    assert_eq!(call, HostCall::ReadFile { path: "/project/a".into(), line: Some(2), limit: Some(1) });
    assert_eq!(reply["result"], json!({"content": "b\n"}));
    let (call, reply) = roundtrip(
        &mut talk,
        "fs/write_text_file",
        json!({"path": "/project/a", "content": "c"}),
        CallResult::Done,
    );
    assert_eq!(call, HostCall::WriteFile { path: "/project/a".into(), text: "c".into() });
    assert_eq!(reply["result"], json!({}));
    let failed = CallResult::Failed { message: "the disk is full".into() };
    let (_, reply) =
        roundtrip(&mut talk, "fs/write_text_file", json!({"path": "/project/a", "content": "c"}), failed);
    assert_eq!(reply["error"]["message"], "the disk is full");
}

#[test]
fn a_missing_file_is_an_error_except_where_that_breaks_the_agent() {
    let missing = || CallResult::NotFound { message: "there is no /project/a".into() };
    let params = || json!({"path": "/project/a"});
    let (_, reply) = roundtrip(&mut Talk::working(), "fs/read_text_file", params(), missing());
    assert_eq!(reply["error"]["code"], -32002);
    let mut gemini = Talk::open_with(hello_of("gemini-cli"), json!({"sessionId": "s"}));
    let (_, reply) = roundtrip(&mut gemini, "fs/read_text_file", params(), missing());
    assert_eq!(reply["result"], json!({"content": ""}));
}

#[test]
fn only_the_agents_own_folders_are_open_to_it() {
    let mut talk = Talk::start(Launch { roots: vec!["/more".into()], ..launch() });
    talk.replies("initialize", hello());
    talk.replies("session/new", json!({"sessionId": "s"}));
    for path in ["/project/src/a", "/more/a", "/project"] {
        let out = talk.asks(json!(1), "fs/read_text_file", json!({"path": path}));
        assert_eq!(out.calls.len(), 1, "{path}");
    }
    for path in ["a", "", "/etc/passwd", "/projectile/a", "/project/../etc/passwd", "/more/../project/a"] {
        let out = talk.asks(json!(2), "fs/read_text_file", json!({"path": path}));
        assert!(out.calls.is_empty(), "{path}");
        assert_eq!(talk.last_sent()["error"]["code"], -32602);
        warning(&out);
    }
}

#[test]
fn terminals_live_by_their_names() {
    let mut talk = Talk::working();
    let create = json!({"command": "cargo", "args": ["test"], "env": [{"name": "A", "value": "b"}], "cwd": "/project", "outputByteLimit": 99});
    let (call, reply) = roundtrip(&mut talk, "terminal/create", create, CallResult::Done);
    assert_eq!(reply["result"], json!({"terminalId": "term-1"}));
    assert_eq!(
        call,
        HostCall::TerminalCreate {
            terminal: "term-1".into(),
            command: "cargo".into(),
            args: vec!["test".into()],
            env: vec![("A".into(), "b".into())],
            cwd: Some("/project".into()),
            output_limit: Some(99),
        }
    );
    let one = || json!({"terminalId": "term-1"});
    let exit = TerminalExit { code: Some(1), signal: None };
    let output = CallResult::Output { text: "ok".into(), truncated: false, exit: None };
    let (_, reply) = roundtrip(&mut talk, "terminal/output", one(), output);
    assert_eq!(reply["result"], json!({"output": "ok", "truncated": false}));
    let (_, reply) = roundtrip(&mut talk, "terminal/wait_for_exit", one(), CallResult::Exited(exit.clone()));
    assert_eq!(reply["result"], json!({"exitCode": 1, "signal": null}));
    let output = CallResult::Output { text: "ok".into(), truncated: true, exit: Some(exit) };
    let (_, reply) = roundtrip(&mut talk, "terminal/output", one(), output);
    assert_eq!(reply["result"]["exitStatus"]["exitCode"], 1);
    roundtrip(&mut talk, "terminal/kill", one(), CallResult::Done);
    roundtrip(&mut talk, "terminal/release", one(), CallResult::Done);
    let out = talk.asks(json!(1), "terminal/output", one());
    assert!(out.calls.is_empty());
    assert!(warning(&out).contains("no terminal term-1"));
}

#[test]
fn a_terminal_that_could_not_be_started_does_not_exist() {
    let mut talk = Talk::working();
    let failed = CallResult::Failed { message: "no such program".into() };
    let (_, reply) = roundtrip(&mut talk, "terminal/create", json!({"command": "x"}), failed);
    assert_eq!(reply["error"]["message"], "no such program");
    assert!(talk.asks(json!(1), "terminal/kill", json!({"terminalId": "term-1"})).calls.is_empty());
    let out = talk.asks(json!(1), "terminal/create", json!({"command": "x", "cwd": "/etc"}));
    assert!(warning(&out).contains("outside"));
}

#[test]
fn requests_that_pile_up_are_refused() {
    let mut talk = Talk::working();
    for id in 0..300 {
        talk.asks(json!(id), "fs/read_text_file", json!({"path": "/project/a"}));
    }
    assert_eq!(talk.driver.pending_calls().len(), 256);
    assert_eq!(talk.last_sent()["error"]["code"], -32600);
}
