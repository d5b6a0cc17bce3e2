//! What outlives the daemon.

use consort_model::TeamTools;
use serde_json::json;

use crate::stage::{Stage, list};

#[test]
fn a_running_agent_finds_its_tools_again_after_the_daemon_was_killed() {
    let mut stage = Stage::new();
    let ann = stage.agent("ann");
    let given = stage.given(ann);
    stage.home.restart();
    stage.client = stage.home.client();
    assert_eq!(given.post(&list()).status, 200, "the same port and token");
    assert!(stage.call(ann, "whoami", &json!({})).starts_with("whoami: You are `ann`"));
    assert_eq!(stage.client.view(ann).team_tools, TeamTools::Connected);
}

#[test]
fn another_port_is_chosen_where_the_one_of_the_last_time_is_taken() {
    let mut stage = Stage::new();
    let ann = stage.agent("ann");
    let before = stage.given(ann);
    stage.home.kill_daemon();
    let taken = std::net::TcpListener::bind(("127.0.0.1", before.port)).unwrap();
    stage.home.start_daemon();
    stage.client = stage.home.client();
    let bob = stage.agent("bob");
    let after = stage.given(bob);
    assert_ne!(after.port, before.port);
    assert!(stage.call(bob, "list_agents", &json!({})).contains("ann"));
    let logs = std::fs::read_dir(stage.home.paths().logs()).unwrap().flatten();
    let logs: String = logs.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
    assert!(logs.contains("the port of the team tools is taken"), "{logs}");
    drop(taken);
    stage.home.restart();
    stage.client = stage.home.client();
    assert_eq!(after.post(&list()).status, 200, "the new one is kept");
}
