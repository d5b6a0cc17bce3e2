//! Who comes in and who does not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::stage::{Stage, list};

#[test]
fn only_the_token_of_an_open_agent_opens_the_door() {
    let stage = Stage::new();
    let (ann, bob) = (stage.agent("ann"), stage.agent("bob"));
    let given = stage.given(ann);
    let of_bob = stage.given(bob);
    assert_eq!(given.post(&list()).status, 200);
    let mixed = format!("{}{}", &given.token[..50], &of_bob.token[50..]);
    for header in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        &given.token,
        &format!("Basic {}", given.token),
        &format!("Bearer {mixed}"),
    ] {
        let answer = given.request(&[("Authorization", header)], &list());
        assert_eq!(answer.status, 401, "{header}: {answer:?}");
    }
    assert_eq!(given.request(&[], &list()).status, 401, "without any");
    stage.client.close(ann);
    assert_eq!(given.post(&list()).status, 401, "its agent is closed");
    stage.client.reopen(ann);
    let anew = stage.given(ann);
    assert_ne!(anew.token, given.token);
    assert_eq!((given.post(&list()).status, anew.post(&list()).status), (401, 200));
    assert_eq!(of_bob.post(&list()).status, 200, "another's is as it was");
}

#[test]
fn pages_in_a_browser_are_kept_out() {
    let stage = Stage::new();
    let given = stage.given(stage.agent("ann"));
    let bearer = format!("Bearer {}", given.token);
    let with =
        |name: &str, value: &str| given.request(&[("Authorization", &bearer), (name, value)], &list()).status;
    assert_eq!(with("Host", "evil.example"), 403);
    assert_eq!(with("Host", &format!("evil.example:{}", given.port)), 403);
    assert_eq!(with("Host", &format!("localhost:{}", given.port)), 200);
    assert_eq!(with("Origin", "http://evil.example"), 403);
    assert_eq!(with("Origin", "null"), 403);
    assert_eq!(with("Origin", &format!("http://127.0.0.1:{}", given.port)), 200);
}

#[test]
fn nonsense_is_refused_and_the_endpoint_goes_on() {
    let stage = Stage::new();
    let given = stage.given(stage.agent("ann"));
    let huge = format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"{}\"}}", "x".repeat(9 << 20));
    assert_eq!(given.post(&huge).status, 413);
    for body in ["", "{", "[]", "null", "\"x\"", "{\"jsonrpc\": \"2.0\"}", "\u{0}\u{1}"] {
        let status = given.post(body).status;
        assert!((400..500).contains(&status), "{body:?}: {status}");
    }
    for raw in [
        "\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET /mcp HTTP/1.1\r\nConnection: close\r\n\r\n",
        "x".repeat(99999).as_str(),
    ] {
        let status = given.raw(raw).status;
        assert!(status == 0 || (400..500).contains(&status), "{:?}: {status}", &raw[..raw.len().min(40)]);
    }
    let unknown = given.ask("no/such/method", &json!({}));
    assert!(unknown["error"]["code"].is_number(), "{unknown}");
    assert_eq!(given.post(&list()).status, 200);
}

#[test]
fn who_does_not_say_who_he_is_must_leave() {
    let stage = Stage::new();
    let given = stage.given(stage.agent("ann"));
    let mut silent = TcpStream::connect(("127.0.0.1", given.port)).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    silent.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127.").unwrap();
    let mut nothing = Vec::new();
    let ended = silent.read_to_end(&mut nothing);
    assert!(ended.is_ok() && nothing.is_empty(), "the connection was not closed: {ended:?}");
    assert_eq!(given.post(&list()).status, 200);
}

#[test]
fn a_token_is_nowhere_but_with_its_agent() {
    let stage = Stage::new();
    stage.home.profile("quiet", &["--on-prompt", "[[say hi]]"]);
    let agent = stage.client.new_agent("quiet");
    stage.client.run(agent, "go");
    let events = stage.client.look(|followed| serde_json::to_string(&followed.events).unwrap());
    let state = serde_json::to_string(&stage.client.snapshot()).unwrap();
    let processes = stage.home.processes();
    let commands: String = processes
        .iter()
        .filter_map(|process| std::fs::read(format!("/proc/{}/cmdline", process.pid)).ok())
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .collect();
    let logs = std::fs::read_dir(stage.home.paths().logs()).unwrap().flatten();
    let logs: String = logs.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
    let mark = format!("consort_{}", agent.uuid().simple());
    for (place, text) in [("events", events), ("state", state), ("command lines", commands), ("logs", logs)] {
        assert!(!text.contains(&mark), "{place}");
    }
}
