//! The public conformance suite of MCP against the endpoint, for the scenarios that apply to it. Others call tools,
//! prompts and resources of names that only the suite's own sample server has.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use consort_testkit::clis;

use crate::stage::{Given, Stage};

/// What applies: the transport, the handshake, and lists of tools.
const SCENARIOS: [&str; 5] =
    ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"];

#[test]
fn the_public_suite_passes_where_it_applies() {
    let Some((node, suite)) = clis::mcp_suite() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "`cargo xtask clis` installs the suite");
        return eprintln!("skipped: the suite is not installed; run `cargo xtask clis`");
    };
    let stage = Stage::new();
    let given = stage.given(stage.agent("ann"));
    let port = lend_token(given);
    for scenario in SCENARIOS {
        let mut command = Command::new(&node);
        command.arg(&suite).args([
            "server",
            "--url",
            &format!("http://127.0.0.1:{port}/mcp"),
            "--scenario",
            scenario,
        ]);
        let run = command
            .current_dir(stage.home.elsewhere())
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .output();
        let run = run.expect("the suite runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{scenario}: {said}\n{}", String::from_utf8_lossy(&run.stderr));
        assert!(!said.contains("0 passed"), "{scenario}: {said}");
    }
}

/// The suite shows no token, so it is lent one on the way: a proxy that adds it to every request.
fn lend_token(given: Given) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let given = given.clone();
            std::thread::spawn(move || pass_on(client, &given));
        }
    });
    port
}

/// One request and its answer, then both connections are closed.
fn pass_on(mut client: TcpStream, given: &Given) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    let head = loop {
        let read = client.read(&mut piece).unwrap_or(0);
        request.extend_from_slice(&piece[..read]);
        match request.windows(4).position(|end| end == b"\r\n\r\n") {
            Some(end) => break end,
            None if read == 0 => return,
            None => {}
        }
    };
    let rest = request.split_off(head);
    let head = String::from_utf8(request).unwrap();
    let kept = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head = kept.collect::<Vec<_>>().join("\r\n");
    let mut server = TcpStream::connect(("127.0.0.1", given.port)).unwrap();
    write!(server, "{head}\r\nConnection: close\r\nAuthorization: Bearer {}", given.token).unwrap();
    server.write_all(&rest).unwrap();
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::io::copy(&mut server, &mut client).ok();
    client.shutdown(Shutdown::Both).ok();
    server.shutdown(Shutdown::Both).ok();
}
