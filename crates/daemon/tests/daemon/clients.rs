//! Clients that misbehave: they get an error, and nobody else notices.

use std::io::Write;
use std::net::Shutdown;

use consort_daemon::protocol::{Call, MAX_MESSAGE, PROTOCOL_VERSION, codes};
use consort_model::{Status, TurnOutcome};
use consort_testkit::harness::{Home, Wire};
use serde_json::{Value, json};

fn wire(home: &Home) -> Wire {
    Wire::connect(&home.paths().socket()).unwrap()
}

fn greeted(home: &Home) -> Wire {
    Wire::greeted(&home.paths().socket()).unwrap()
}

/// The code of the error that answers a line.
fn code_of(wire: &mut Wire, line: &[u8]) -> i64 {
    wire.send(line).unwrap();
    wire.send(b"\n").unwrap();
    let answer = wire.read().unwrap();
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{:?}: {answer}", String::from_utf8_lossy(line)))
}

#[test]
fn what_is_no_request_gets_an_error_and_the_connection_goes_on() {
    let home = Home::started();
    let mut wire = greeted(&home);
    let nested = "[".repeat(200_000);
    for (line, code) in [
        (&b"garbage"[..], codes::PARSE_ERROR),
        (b"", codes::PARSE_ERROR),
        (b"{\"jsonrpc\":\"2.0\",", codes::PARSE_ERROR),
        (b"\xff\xfe\x00", codes::PARSE_ERROR),
        (nested.as_bytes(), codes::PARSE_ERROR),
        (b"[]", codes::INVALID_REQUEST),
        (b"42", codes::INVALID_REQUEST),
        (b"{}", codes::INVALID_REQUEST),
        (b"{\"id\":1}", codes::INVALID_REQUEST),
        (b"{\"id\":1,\"method\":7}", codes::INVALID_REQUEST),
        (b"{\"id\":1,\"method\":\"no.such\"}", codes::NO_SUCH_METHOD),
        (b"{\"id\":1,\"method\":\"no.such\",\"params\":{}}", codes::NO_SUCH_METHOD),
        (b"{\"id\":1,\"method\":\"agents.get\",\"params\":{}}", codes::INVALID_PARAMS),
        (b"{\"id\":1,\"method\":\"agents.get\",\"params\":{\"agent\":3}}", codes::INVALID_PARAMS),
        (b"{\"id\":1,\"method\":\"agents.get\",\"params\":[]}", codes::INVALID_PARAMS),
        (b"{\"id\":1,\"method\":\"agents.get\"}", codes::INVALID_PARAMS),
        (b"{\"id\":1,\"method\":\"agents.get\",\"params\":{\"agent\":\"nobody\"}}", codes::REFUSED),
        (
            b"{\"id\":1,\"method\":\"inbox.answer\",\"params\":{\"ask\":\"x\",\"answer\":{}}}",
            codes::INVALID_PARAMS,
        ),
    ] {
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(code_of(&mut wire, line), code, "{shown:?}");
    }
    let answer = wire.call(&Call::Status {}).unwrap();
    assert_eq!(answer["result"]["home"], json!(home.root()));
}

#[test]
fn requests_and_answers_belong_together_whatever_the_id_is() {
    let home = Home::started();
    let mut wire = greeted(&home);
    for id in [json!(1), json!("a"), json!(-7), json!(1e300), json!({"odd": []}), Value::Null] {
        wire.send_json(&json!({"jsonrpc": "2.0", "id": id, "method": "daemon.status", "params": {}}))
            .unwrap();
        assert_eq!(wire.read().unwrap()["id"], id);
    }
}

#[test]
fn nothing_is_done_before_a_hello_of_the_same_version() {
    let home = Home::started();
    let mut wire = wire(&home);
    let stop = br#"{"id":1,"method":"daemon.stop","params":{"force":true}}"#;
    assert_eq!(code_of(&mut wire, stop), codes::NO_HELLO);
    for protocol in [0, PROTOCOL_VERSION + 1, u32::MAX] {
        let hello = Call::Hello { protocol, client: "old".to_owned() };
        assert_eq!(wire.call(&hello).unwrap()["error"]["code"], codes::NO_HELLO);
    }
    assert_eq!(code_of(&mut wire, stop), codes::NO_HELLO);
    let hello = Call::Hello { protocol: PROTOCOL_VERSION, client: "new".to_owned() };
    assert_eq!(wire.call(&hello).unwrap()["result"]["protocol"], PROTOCOL_VERSION);
    assert!(wire.call(&Call::Status {}).unwrap().get("result").is_some());
}

#[test]
fn a_message_past_the_limit_ends_its_connection_and_costs_nothing() {
    let home = Home::started();
    let client = home.client();
    let before = memory(client.daemon_pid());
    let mut wire = greeted(&home);
    let mut sender = wire.stream().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 20];
        // The daemon stops reading at its limit, so the last writes fail.
        (0..MAX_MESSAGE / piece.len() + 64).take_while(|_| sender.write_all(&piece).is_ok()).count()
    });
    let answer = wire.read().unwrap();
    assert_eq!(answer["error"]["code"], codes::INVALID_REQUEST);
    wire.read().unwrap_err();
    writer.join().unwrap();
    drop(wire);
    let agent = client.new_agent("scripted");
    assert_eq!(client.run(agent, "[[say fine]]").last_outcome, Some(TurnOutcome::Completed));
    let after = memory(client.daemon_pid());
    assert!(after < before + (32 << 20), "the daemon holds {after} bytes, {before} before");
}

#[test]
fn half_a_message_and_a_sudden_end_leave_nothing() {
    let home = Home::started();
    let client = home.client();
    for (bytes, greet) in [
        (&b""[..], false),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", false),
        (b"{\"id\":1,\"method\":\"agents.create\",\"params\":{\"id\":\"0198", true),
        (b"{\"id\":1,\"method\":\"subscribe\",\"params\":{}}\n", true),
    ] {
        for shutdown in [Shutdown::Write, Shutdown::Both] {
            let mut wire = if greet { greeted(&home) } else { wire(&home) };
            wire.send(bytes).unwrap();
            wire.stream().shutdown(shutdown).unwrap();
        }
    }
    assert!(client.snapshot().agents.is_empty());
    let agent = client.new_agent("scripted");
    assert_eq!(client.run(agent, "[[say fine]]").last_outcome, Some(TurnOutcome::Completed));
}

#[test]
fn thousands_of_pipelined_requests_are_answered_in_order() {
    let home = Home::started();
    let mut wire = greeted(&home);
    let count = 5000u64;
    let mut sender = wire.stream().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let line = |id: u64| match id % 3 {
            0 => format!("{{\"id\":{id},\"method\":\"daemon.status\",\"params\":{{}}}}\n"),
            1 => format!("{{\"id\":{id},\"method\":\"agents.get\",\"params\":{{\"agent\":\"nobody\"}}}}\n"),
            _ => format!("{{\"id\":{id},\"method\":\"no.such\"}}\n"),
        };
        let all: String = (0..count).map(line).collect();
        sender.write_all(all.as_bytes()).unwrap();
    });
    for id in 0..count {
        assert_eq!(wire.read().unwrap()["id"], id);
    }
    writer.join().unwrap();
}

#[test]
fn a_hundred_clients_that_only_sit_there_disturb_nobody() {
    let home = Home::started();
    let idle: Vec<Wire> = (0..50).map(|_| wire(&home)).chain((0..50).map(|_| greeted(&home))).collect();
    let client = home.client();
    let agent = client.new_agent("scripted");
    assert_eq!(client.run(agent, "[[say fine]]").last_outcome, Some(TurnOutcome::Completed));
    drop(idle);
}

/// A client that subscribes and never reads costs the daemon a bounded amount, delays nobody, and has what all others
/// have once it reads: a new snapshot instead of what it missed.
#[test]
fn heavy_a_client_that_never_reads_gets_a_snapshot_later() {
    let home = Home::started();
    let client = home.client();
    let before = memory(client.daemon_pid());
    let mut slow = greeted(&home);
    slow.request(&Call::Subscribe {}).unwrap();
    let agent = client.new_agent("scripted");
    let flood = client.send(agent, "[[flood n=20000 size=1000]]");
    client.wait_agent(agent, "its turn began", |agent| agent.turn.is_some());
    // The flood of one agent must not delay another.
    let other = client.new_agent("scripted");
    assert_eq!(client.run(other, "[[say fine]]").last_outcome, Some(TurnOutcome::Completed));
    client.wait_turn(agent, flood);
    let after = memory(client.daemon_pid());
    assert!(after < before + (150 << 20), "the daemon holds {after} bytes, {before} before");
    let last = client.snapshot().seq;
    let (mut snapshots, mut seq) = (0, 0);
    while seq < last {
        let message = slow.read().unwrap();
        let (now, is_snapshot) = match message["method"].as_str() {
            Some("event") => (message["params"]["seq"].as_u64().unwrap(), false),
            Some("snapshot") => (message["params"]["state"]["seq"].as_u64().unwrap(), true),
            _ => (message["result"]["state"]["seq"].as_u64().unwrap(), false),
        };
        assert!(now > seq || seq == 0, "event {now} after {seq}");
        seq = now;
        snapshots += u32::from(is_snapshot);
    }
    assert!(snapshots >= 1, "it read everything without a new snapshot");
}

#[test]
fn two_subscribers_see_the_same_and_a_second_subscription_begins_anew() {
    let home = Home::started();
    let clients = [home.client(), home.client()];
    let (agent, prompt) = clients[0].new_agent_with("scripted", "[[stream n=50 rate=500]] [[tool read x]]");
    for client in &clients {
        client.wait_turn(agent, prompt);
    }
    let fresh = clients[0].snapshot();
    for client in &clients {
        let replica = client.wait_until("it is as new as the snapshot", |state| {
            (state.seq >= fresh.seq).then(|| state.clone())
        });
        assert_eq!(replica, fresh);
    }
    let mut wire = greeted(&home);
    for _ in 0..3 {
        let answer = wire.call(&Call::Subscribe {}).unwrap();
        assert_eq!(answer["result"]["state"]["seq"], fresh.seq);
    }
    clients[0].wait_status(agent, Status::Idle);
}

/// The resident memory of a process, in bytes.
fn memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_call_for_which_a_program_runs_holds_up_no_other() {
    let home = Home::started();
    let mut wire = greeted(&home);
    let mute = json!({
        "name": "Mute", "driver": "acp", "command": "sleep", "args": ["60"], "environment": []
    });
    wire.send_json(&json!({"jsonrpc": "2.0", "id": 1, "method": "profiles.add", "params": mute})).unwrap();
    assert_eq!(wire.read().unwrap()["id"], 1);
    let list = json!({"profile": "Mute", "cwd": home.root()});
    wire.send_json(&json!({"jsonrpc": "2.0", "id": 2, "method": "sessions.list", "params": list})).unwrap();
    wire.send_json(&json!({"jsonrpc": "2.0", "id": 3, "method": "daemon.status", "params": {}})).unwrap();
    assert_eq!(wire.read().unwrap()["id"], 3, "the program never tells");
}
