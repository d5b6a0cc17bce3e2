//! What the tools do, called by agents.

use consort_model::{PermissionMode, Status, TeamTools};
use serde_json::{Value, json};

use crate::stage::{Given, Stage};

fn names(given: &Given) -> Vec<String> {
    let listed = given.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn result(given: &Given, tool: &str, arguments: Value) -> Value {
    given.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
}

#[test]
fn an_agent_learns_who_it_is_and_who_the_others_are() {
    let stage = Stage::new();
    let (ann, bob) = (stage.agent("ann"), stage.agent("bob"));
    let said = stage.call(ann, "whoami", &json!({}));
    assert!(said.starts_with(&format!("whoami: You are `ann` ({ann})")), "{said}");
    assert!(stage.call(bob, "whoami", &json!({})).starts_with("whoami: You are `bob`"));
    let said = stage.call(ann, "list_agents", &json!({}));
    assert!(said.contains("bob") && !said.contains("ann"), "{said}");
    let given = stage.given(ann);
    let listed = result(&given, "list_agents", json!({}));
    assert_eq!(listed["structuredContent"]["agents"][0]["name"], "bob", "{listed}");
    assert_eq!(listed["isError"], false);
    let details = result(&given, "get_agent", json!({"agent": "bob"}));
    assert_eq!(details["structuredContent"]["status"], "idle", "{details}");
    assert!(
        details["structuredContent"]["last_text"].as_str().unwrap().contains("You are `bob`"),
        "{details}"
    );
    let profiles = result(&given, "list_profiles", json!({}));
    assert_eq!(profiles["structuredContent"]["profiles"][0]["id"], "scripted", "{profiles}");
}

#[test]
fn refusals_are_tool_errors_that_say_what_to_do() {
    let stage = Stage::new();
    let ann = stage.agent("ann");
    stage.agent("bob");
    let given = stage.given(ann);
    for (tool, arguments, advice) in [
        ("get_agent", json!({"agent": "nobody"}), "list_agents"),
        ("get_agent", json!({}), "schema"),
        ("list_agents", json!({"closed": true}), "schema"),
        ("send_message", json!({"to": "ann", "text": "hi"}), "yourself"),
        ("send_message", json!({"to": "bob", "text": " "}), "empty"),
        ("send_message", json!({"to": "bob", "text": "x".repeat(70_000)}), "file"),
        ("close_agent", json!({"agent": "bob"}), "only agents that it created"),
        ("interrupt_agent", json!({"agent": "bob"}), "only agents that it created"),
        ("create_agent", json!({"profile": "nothing"}), "list_profiles"),
        ("create_agent", json!({"cwd": ".."}), "inside"),
        ("create_agent", json!({"cwd": "/"}), "inside"),
    ] {
        let refused = result(&given, tool, arguments.clone());
        assert_eq!(refused["isError"], true, "{tool} {arguments}: {refused}");
        assert!(
            refused["content"][0]["text"].as_str().unwrap().contains(advice),
            "{tool} {arguments}: {refused}"
        );
    }
    let unknown = given.ask("tools/call", &json!({"name": "approve", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(stage.client.snapshot().agents.len(), 2, "nothing was made");
}

#[test]
fn a_companion_and_its_owner_see_each_other_and_nobody_else_sees_it() {
    let stage = Stage::new();
    let (ann, bob) = (stage.agent("ann"), stage.agent("bob"));
    let made = stage.call(ann, "create_agent", &json!({"companion": true, "name": "cat"}));
    assert!(made.contains("cat (your companion"), "{made}");
    let cat = stage.client.snapshot().find("cat").unwrap().id;
    stage.client.wait_status(cat, Status::Idle);
    assert!(stage.call(ann, "list_agents", &json!({})).contains("cat"));
    assert!(!stage.call(bob, "list_agents", &json!({})).contains("cat"));
    assert!(stage.call(bob, "send_message", &json!({"to": "cat", "text": "hi"})).contains("refused"));
    let seen = stage.call(cat, "list_agents", &json!({}));
    assert!(seen.contains("ann") && !seen.contains("bob"), "{seen}");
    assert!(
        stage.call(cat, "get_agent", &json!({"agent": "bob"})).contains("refused: there is no agent `bob`")
    );
    let of_cat = names(&stage.given(cat));
    assert!(!of_cat.contains(&"create_agent".to_owned()), "{of_cat:?}");
    assert!(stage.call(ann, "close_agent", &json!({"agent": "cat"})).contains("is closed"));
    stage.client.wait_status(cat, Status::Closed);
}

#[test]
fn an_agent_makes_another_that_may_do_no_more_than_itself() {
    let stage = Stage::new();
    let ann = stage.agent("ann");
    let said = stage.call(ann, "create_agent", &json!({"name": "bob", "prompt": "be ready"}));
    assert!(said.contains("bob (created by you"), "{said}");
    let bob = stage.client.snapshot().find("bob").unwrap().clone();
    assert_eq!((bob.created_by, bob.permissions), (Some(ann), PermissionMode::Default));
    stage.client.wait_text(bob.id, "You said: [Message from agent `ann`, not from a person]\nbe ready");
    assert!(!names(&stage.given(bob.id)).contains(&"create_agent".to_owned()));
    assert!(stage.call(ann, "interrupt_agent", &json!({"agent": "bob"})).contains("told to stop"));
    assert!(stage.call(ann, "close_agent", &json!({"agent": "bob"})).contains("is closed"));
}

#[test]
fn a_message_wakes_its_reader_and_says_that_no_person_wrote_it() {
    let stage = Stage::new();
    let (ann, bob) = (stage.agent("ann"), stage.agent("bob"));
    stage.client.wait_status(bob, Status::Idle);
    let said = stage.call(ann, "send_message", &json!({"to": "bob", "text": "look at main.rs"}));
    assert!(said.starts_with("send_message: "), "{said}");
    let read = stage.client.wait_text(bob, "You said: [Message from agent `ann`, not from a person]");
    assert!(read.contains("look at main.rs"), "{read}");
    let said = stage.call(bob, "broadcast_message", &json!({"text": "done"}));
    assert!(said.contains("`ann`"), "{said}");
}

#[test]
fn what_an_agent_says_it_is_doing_is_seen_by_others() {
    let stage = Stage::new();
    let (ann, bob) = (stage.agent("ann"), stage.agent("bob"));
    stage.client.run(bob, "[[say nothing with tools]]");
    assert_eq!(stage.client.view(bob).team_tools, TeamTools::Missing);
    stage.call(ann, "set_status", &json!({"text": "counting\nlines"}));
    assert_eq!(stage.client.view(ann).note.as_deref(), Some("counting lines"));
    assert_eq!(stage.client.view(ann).team_tools, TeamTools::Connected);
    assert!(stage.call(bob, "list_agents", &json!({})).contains("ann (independent, idle): counting lines"));
    let shown = String::from_utf8(stage.home.consort(&["agents"]).stdout).unwrap();
    assert!(shown.contains("counting lines") && !shown.contains("no team tools"), "{shown}");
}

#[test]
fn a_rule_that_a_person_set_keeps_agents_from_a_tool() {
    let stage = Stage::new();
    let ann = stage.agent("ann");
    let added = stage.home.consort(&["rules", "add", "deny", "--title", "consort: create_*", "--all"]);
    assert!(added.status.success(), "{added:?}");
    let said = stage.call(ann, "create_agent", &json!({"name": "bob"}));
    assert!(said.starts_with("create_agent refused: a rule denies this"), "{said}");
    assert!(stage.call(ann, "whoami", &json!({})).starts_with("whoami: You are `ann`"));
}

#[test]
fn a_call_that_waits_says_so_now_and_then_and_can_be_continued() {
    let stage = Stage::new();
    stage.home.profile("hanging", &["--on-prompt", "[[hang]]"]);
    let ann = stage.agent("ann");
    stage.call(ann, "spawn_subagent", &json!({"task": "wait", "profile": "hanging"}));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "wait_for_agents", "arguments": {"seconds": 11}, "_meta": {"progressToken": "a-token"},
    }});
    let answer = stage.given(ann).post(&call.to_string());
    let told = answer.body.find("notifications/progress").expect("progress");
    let ended = answer.body.find("Call wait_for_agents again").expect("how to go on");
    assert!(told < ended && answer.body.contains("a-token"), "{answer:?}");
}
