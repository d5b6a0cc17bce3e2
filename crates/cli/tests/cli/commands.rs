//! Every command: what it prints, the shape of its JSON, its exit code.

use consort_testkit::harness::Home;
use serde_json::Value;

use crate::{Ran, consort, wait_status};

/// Fails unless an object has these keys.
#[track_caller]
fn has(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no `{key}` in {value}");
    }
}

#[test]
fn the_daemon_is_started_told_about_and_stopped() {
    let home = Home::new();
    let none = consort(&home, &["daemon", "status", "--json"]).code(3);
    assert!(none.err.contains("no daemon runs"), "{}", none.err);
    consort(&home, &["daemon", "stop"]).code(3);
    let pid = consort(&home, &["daemon", "start"]).code(0).out.trim().to_owned();
    assert_eq!(consort(&home, &["daemon", "start"]).code(0).out.trim(), pid);
    let status = consort(&home, &["daemon", "status", "--json"]).code(0).json();
    has(&status, &["pid", "version", "agents", "working", "needs_input", "home"]);
    assert_eq!(status["pid"].to_string(), pid);
    assert!(consort(&home, &["daemon", "status"]).code(0).out.contains(&pid));
    consort(&home, &["daemon", "stop"]).code(0);
    consort(&home, &["daemon", "status"]).code(3);
}

#[test]
fn several_requests_are_answered_at_once_and_each_is_told() {
    let home = Home::started();
    let client = home.client();
    consort(&home, &["new", "--name", "ann", "[[ask-many 3 execute cmd]]"]).code(0);
    let ids = client.wait_until("three are open", |state| {
        let agent = state.agents.values().find(|agent| agent.name == "ann")?;
        let ids: Vec<String> = agent.asks.iter().map(|ask| ask.id.to_string()).collect();
        Some(ids).filter(|ids| ids.len() == 3)
    });
    let mixed = consort(&home, &["deny", &ids[0], "00000000", "--json"]).code(4);
    assert_eq!(mixed.json().as_array().unwrap().len(), 2);
    assert!(mixed.err.contains("never asked"), "{}", mixed.err);
    let late = consort(&home, &["approve", &ids[0]]).code(4);
    assert!(late.err.contains("a person denied it"), "{}", late.err);
    let all = consort(&home, &["approve", "--agent", "ann", "--all"]).code(0);
    assert_eq!(all.out.lines().count(), 2, "{}", all.out);
    wait_status(&home, "ann", "idle");
    let none = consort(&home, &["approve", "--agent", "ann", "--all"]).code(4);
    assert!(none.err.contains("asks for nothing now"), "{}", none.err);
}

#[test]
fn any_command_starts_the_daemon() {
    let home = Home::new();
    assert_eq!(consort(&home, &["agents", "--json"]).code(0).json(), serde_json::json!([]));
    consort(&home, &["daemon", "status"]).code(0);
}

#[test]
fn agents_are_created_listed_talked_to_and_closed() {
    let home = Home::started();
    let new =
        consort(&home, &["new", "--profile", "scripted", "--name", "ann", "--json", "[[say hi]]"]).code(0);
    let id = new.json()["id"].as_str().unwrap().to_owned();
    wait_status(&home, "ann", "idle");
    let agents = consort(&home, &["agents", "--json"]).code(0).json();
    let ann = &agents.as_array().unwrap()[0];
    has(
        ann,
        &[
            "id",
            "name",
            "profile",
            "status",
            "created_by",
            "companion",
            "parent",
            "cwd",
            "queued",
            "open_asks",
        ],
    );
    assert_eq!(
        (&ann["id"], &ann["name"], &ann["companion"]),
        (&id.as_str().into(), &"ann".into(), &false.into())
    );
    assert!(consort(&home, &["agents"]).code(0).out.contains("ann"));
    for agent in ["ann", &id, &id[..13], &id[24..]] {
        let items = consort(&home, &["log", agent, "--json"]).code(0).json_lines();
        assert_eq!(items.len(), 2, "{agent}");
        assert_eq!((&items[0]["kind"], &items[1]["text"]), (&"user".into(), &"hi".into()));
    }
    assert!(consort(&home, &["log", "ann"]).code(0).out.contains("hi"));
    let sent = consort(&home, &["send", "ann", "[[say more]]", "--json"]).code(0).json();
    has(&sent, &["agent", "prompt"]);
    let waited = consort(&home, &["send", "ann", "[[say last]]", "--wait", "--json"]).code(0).json();
    assert_eq!((&waited["outcome"], &waited["text"]), (&"completed".into(), &"last".into()));
    consort(&home, &["rename", "ann", "bob"]).code(0);
    consort(&home, &["mode", "bob", "accept-edits"]).code(0);
    consort(&home, &["choose", "bob"]).code(0);
    consort(&home, &["interrupt", "bob"]).code(0);
    consort(&home, &["close", "bob"]).code(0);
    assert_eq!(consort(&home, &["agents", "--json"]).json(), serde_json::json!([]));
    let all = consort(&home, &["agents", "--all", "--json"]).code(0).json();
    assert_eq!(all[0]["status"], "closed");
    assert_eq!(all[0]["permissions"], "accept-edits");
    consort(&home, &["send", "bob", "x"]).code(4);
    consort(&home, &["reopen", "bob"]).code(0);
    consort(&home, &["reopen", "bob"]).code(4);
    consort(&home, &["send", "bob", "[[say back]]", "--wait"]).code(0);
}

#[test]
fn what_waits_is_listed_changed_and_dropped() {
    let home = Home::started();
    consort(&home, &["new", "--name", "ann", "[[ask execute make]]"]).code(0);
    wait_status(&home, "ann", "needs input");
    for text in ["[[say one]]", "[[say two]]", "[[say three]]"] {
        consort(&home, &["send", "ann", text]).code(0);
    }
    let waiting = || consort(&home, &["queue", "ann", "--json"]).code(0).json();
    let texts = |waiting: &Value| -> Vec<String> {
        waiting.as_array().unwrap().iter().map(|prompt| prompt["text"].as_str().unwrap().to_owned()).collect()
    };
    let before = waiting();
    assert_eq!(texts(&before), ["[[say one]]", "[[say two]]", "[[say three]]"]);
    has(&before[0], &["id", "origin", "at", "joins"]);
    let id = |n: usize| before[n]["id"].as_str().unwrap();
    consort(&home, &["queue", "ann", "--drop", id(0)]).code(0);
    consort(&home, &["queue", "ann", "--edit", id(1), "[[say 2]]"]).code(0);
    let steer = consort(&home, &["queue", "ann", "--steer", id(2)]).code(0);
    assert!(steer.out.contains("cannot be steered"), "{}", steer.out);
    assert_eq!(texts(&waiting()), ["[[say 2]]", "[[say three]]"]);
    let gone = consort(&home, &["queue", "ann", "--drop", id(0)]).code(4);
    assert!(gone.err.contains("no prompt"), "{}", gone.err);
    consort(&home, &["approve", "--agent", "ann", "--all"]).code(0);
    home.client().wait_until("all were delivered", |state| {
        state.agents.values().find(|agent| agent.name == "ann" && agent.queue.is_empty()).map(drop)
    });
    assert_eq!(consort(&home, &["queue", "ann"]).code(0).out, "nothing waits\n");
}

#[test]
fn asks_are_shown_and_answered_once() {
    let home = Home::started();
    let ask = |steps: &str| {
        consort(&home, &["new", "--profile", "scripted", "--name", "asker", steps]).code(0);
        wait_status(&home, "asker", "needs input");
        let inbox = consort(&home, &["inbox", "--json"]).code(0).json();
        has(&inbox[0], &["id", "agent", "kind", "title"]);
        inbox[0]["id"].as_str().unwrap().to_owned()
    };
    let over = |said: &str| {
        wait_status(&home, "asker", "idle");
        let log = consort(&home, &["log", "asker"]).code(0).out;
        assert!(log.contains(said), "{log}");
        consort(&home, &["close", "asker"]).code(0);
    };
    let approval = "[[ask execute input={\"command\":\"make\"} make]]";
    for (flags, said) in [
        (&["approve"][..], "allowed"),
        (&["deny"], "rejected"),
        (&["deny", "--message", "-no"], "-no"),
        (&["approve", "--session"], "allowed"),
        (&["approve", "--always"], "allowed"),
    ] {
        let id = ask(approval);
        assert!(consort(&home, &["inbox"]).code(0).out.contains("make"));
        let args: Vec<&str> = [&flags[..1], &[id.as_str()], &flags[1..]].concat();
        consort(&home, &args).code(0);
        over(said);
        consort(&home, &args).code(4);
    }
    let rules = consort(&home, &["rules", "list", "--json"]).code(0).json();
    let always = rules.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    consort(&home, &["rules", "list"]).code(0);
    consort(&home, &["rules", "remove", &always]).code(0);
    consort(&home, &["rules", "remove", &always]).code(4);
    let id = ask("[[elicit Who?]]");
    consort(&home, &["approve", &id]).code(4);
    consort(&home, &["answer", &id, "{\"name\": \"Ada\"}"]).code(0);
    over("Ada");
    assert_eq!(consort(&home, &["inbox", "--json"]).code(0).json(), serde_json::json!([]));
    consort(&home, &["approve", "00000000"]).code(4);
}

#[test]
fn profiles_are_listed_added_checked_and_removed() {
    let home = Home::started();
    let program = home.programs().testkit.display().to_string();
    let add = ["profiles", "add", "local", "--driver", "acp", "--command", &program];
    let more =
        ["--arg", "agent", "--arg", "--name", "--arg", "x", "--env", "KEY=hidden-value", "--env", "-GONE"];
    consort(&home, &[&add[..], &more[..]].concat()).code(0);
    assert_ne!(consort(&home, &[&add[..], &more[..]].concat()).code, 0, "a name is taken once");
    let profiles = consort(&home, &["profiles", "list", "--json"]).code(0);
    assert!(!profiles.out.contains("hidden-value"));
    let local = profiles.json().as_array().unwrap().iter().find(|one| one["id"] == "local").cloned().unwrap();
    has(&local, &["id", "name", "driver", "command", "args", "environment", "availability", "is_default"]);
    consort(&home, &["profiles", "list"]).code(0);
    consort(&home, &["profiles", "check", "--json"]).code(0);
    consort(&home, &["profiles", "default", "local"]).code(0);
    consort(&home, &["profiles", "default", "nobody"]).code(4);
    consort(&home, &["new", "--name", "by-default", "[[say hi]]"]).code(0);
    wait_status(&home, "by-default", "idle");
    consort(&home, &["profiles", "remove", "local"]).code(4);
    consort(&home, &["profiles", "remove", "local", "--force"]).code(0);
    assert!(consort(&home, &["log", "by-default"]).code(0).out.contains("hi"));
    assert_ne!(consort(&home, &["send", "by-default", "x"]).code, 0);
}

#[test]
fn what_cannot_be_done_is_told_in_one_sentence_with_a_code() {
    let home = Home::started();
    for (args, code) in [
        (&["log", "nobody"][..], 4),
        (&["send", "nobody", "x"], 4),
        (&["close", "nobody"], 4),
        (&["interrupt", "nobody"], 4),
        (&["reopen", "nobody"], 4),
        (&["new", "--profile", "nobody"], 4),
        (&["new", "--profile", "scripted", "--cwd", "/nowhere"], 2),
        (&["run", "--profile", "nobody", "x"], 4),
        (&["nonsense"], 2),
        (&["approve"], 2),
        (&["send", "x"], 2),
        (&["new", "--permissions", "all"], 2),
    ] {
        let ran = consort(&home, args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{args:?}: {}", ran.out);
        assert!(
            code == 2 || (ran.err.starts_with("consort: ") && ran.err.lines().count() == 1),
            "{args:?}: {}",
            ran.err
        );
    }
}

#[test]
fn a_stop_asks_for_more_where_agents_work() {
    let home = Home::started();
    consort(&home, &["new", "--profile", "scripted", "--name", "busy", "[[stream n=200 rate=100]]"]).code(0);
    wait_status(&home, "busy", "working");
    let refused = consort(&home, &["daemon", "stop"]).code(1);
    assert!(refused.err.contains("--force") && refused.err.contains("--keep-agents"), "{}", refused.err);
    consort(&home, &["daemon", "stop", "--keep-agents"]).code(0);
    consort(&home, &["daemon", "status"]).code(3);
    let log = consort(&home, &["log", "busy", "--json"]).code(0);
    assert!(log.out.contains("word0 "), "{}", log.out);
    wait_status(&home, "busy", "idle");
    let whole: String = (0..200).map(|n| format!("word{n} ")).collect();
    assert!(consort(&home, &["log", "busy", "--json"]).code(0).out.contains(&whole));
    consort(&home, &["send", "busy", "[[hang]]"]).code(0);
    wait_status(&home, "busy", "working");
    consort(&home, &["daemon", "stop", "--force"]).code(0);
    assert!(home.processes().is_empty(), "{:?}", home.processes());
}

#[test]
fn the_rest_answers_too() {
    let home = Home::started();
    let doctor = consort(&home, &["doctor", "--json"]);
    assert!(doctor.json().is_object() || doctor.json().is_array());
    assert!(!consort(&home, &["doctor"]).out.is_empty());
    for shell in ["bash", "zsh", "fish"] {
        assert!(consort(&home, &["completions", shell]).code(0).out.contains("consort"));
    }
    assert!(consort(&home, &["exit-codes"]).code(0).out.contains("130"));
    assert!(consort(&home, &["--version"]).code(0).out.starts_with("consort "));
    assert!(consort(&home, &["--help"]).code(0).out.contains("Usage"));
    assert!(consort(&home, &[]).code(0).out.contains("0 open"));
}

#[test]
fn no_colour_is_used_where_nobody_sees_it() {
    let home = Home::started();
    consort(&home, &["new", "--profile", "scripted", "--name", "ann", "[[say hi]]"]).code(0);
    wait_status(&home, "ann", "idle");
    for args in [&["agents"][..], &["log", "ann"], &["profiles", "list"], &["inbox"], &["doctor"], &[]] {
        let mut command = home.consort_command(args);
        command.env_remove("NO_COLOR");
        let ran = Ran::of(command.output().unwrap());
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{args:?}: {:?}", ran.out);
    }
}

#[test]
fn a_broken_file_of_settings_is_told_with_its_place() {
    let home = Home::started();
    let config = home.paths().config();
    let good = std::fs::read_to_string(&config).unwrap();
    let lines = good.lines().count();
    std::fs::write(&config, format!("{good}bro[ken\n")).unwrap();
    let place = format!("config.toml:{}:", lines + 1);
    let listed = consort(&home, &["profiles", "list"]).code(0);
    assert!(listed.out.contains("scripted"), "the last good ones are shown: {}", listed.out);
    assert!(listed.err.contains(&place), "{}", listed.err);
    let refused = consort(&home, &["profiles", "default", "scripted"]).code(7);
    assert!(refused.err.contains(&place), "{}", refused.err);
    std::fs::write(&config, good).unwrap();
    assert_eq!(consort(&home, &["profiles", "list"]).code(0).err, "");
}
