//! `consort mcp`: the same tools on standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::stage::Stage;

#[test]
fn the_bridge_answers_on_standard_output_what_it_is_asked_on_standard_input() {
    let stage = Stage::new();
    let given = stage.given(stage.agent("ann"));
    let mut command = stage.home.consort_command(&["mcp"]);
    command.env("CONSORT_MCP_URL", format!("http://127.0.0.1:{}/mcp", given.port));
    command.env("CONSORT_MCP_TOKEN", &given.token).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bridge = command.spawn().unwrap();
    let mut input = bridge.stdin.take().unwrap();
    let mut output = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut ask = |line: String| -> Value {
        writeln!(input, "{line}").unwrap();
        serde_json::from_str(&output.next().unwrap().unwrap()).unwrap()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let answer = ask(hello.to_string());
    assert_eq!(answer["result"]["serverInfo"]["name"], "consort", "{answer}");
    let call = json!({"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "whoami"}});
    let answer = ask(format!("{}\n{call}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["name"]), (&json!("b"), &json!("ann")));
    stage.home.kill_daemon();
    let answer = ask(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}).to_string());
    assert!(answer["error"]["message"].as_str().unwrap().contains("does not answer"), "{answer}");
    stage.home.start_daemon();
    assert!(
        ask(json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list"}).to_string())["result"].is_object()
    );
    drop(input);
    assert!(bridge.wait().unwrap().success());
    let bare = stage.home.consort_command(&["mcp"]).output().unwrap();
    assert!(!bare.status.success());
    assert!(String::from_utf8_lossy(&bare.stderr).contains("CONSORT_MCP_URL"), "{bare:?}");
}
