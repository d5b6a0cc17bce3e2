//! Turns with two sides: permissions, requests to the client, cancels, deaths.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use crate::client::{Client, said};

fn updates(frames: &[Value]) -> Vec<Value> {
    frames.iter().map(|frame| frame["params"]["update"].clone()).filter(|update| !update.is_null()).collect()
}

fn statuses(frames: &[Value]) -> Vec<String> {
    let updates = updates(frames);
    let tools = updates.iter().filter(|update| update["toolCallId"].is_string());
    tools.filter_map(|update| update["status"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_permission_decides_what_becomes_of_its_tool() {
    let dir = tempfile::tempdir().unwrap();
    let table = [
        ("ask execute rm x", "allow-once", vec!["in_progress", "completed"], "allowed: allow-once"),
        ("ask execute rm x", "allow-always", vec!["in_progress", "completed"], "allowed: allow-always"),
        ("ask edit a.rs", "reject-once", vec!["failed"], "rejected: reject-once"),
        ("ask edit reject-always a.rs", "reject-always", vec!["failed"], "rejected: reject-always"),
        (
            "ask execute gemini rm x",
            "proceed_once",
            vec!["in_progress", "completed"],
            "allowed: proceed_once",
        ),
        ("ask execute gemini rm x", "cancel", vec![], "rejected: cancel"),
        ("ask execute rm x", "allow_once", vec!["failed"], "rejected: unknown option"),
    ];
    let mut client = Client::start(dir.path(), &[]);
    for (step, option, expected, text) in table {
        let id = client.prompt(&format!("[[{step}]] [[say  over]]"));
        if !step.contains("gemini") {
            let call = client.frame();
            assert_eq!(call["params"]["update"]["sessionUpdate"], "tool_call", "{step}");
            assert_eq!(call["params"]["update"]["status"], "pending", "{step}");
        }
        let request = client.frame();
        assert_eq!(request["method"], "session/request_permission", "{step}");
        let tool_call = &request["params"]["toolCall"];
        assert_eq!(tool_call["content"][0]["type"] == "diff", step.contains("edit"), "{step}");
        let count = if step.contains("reject-always") { 4 } else { 3 };
        assert_eq!(request["params"]["options"].as_array().unwrap().len(), count, "{step}");
        client.choose(&request, option);
        let (frames, answer) = client.until_answer(id);
        assert_eq!(statuses(&frames), expected, "{step} {option}");
        assert!(said(&updates(&frames)).starts_with(text), "{step} {option}: {frames:?}");
        assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    }
}

#[test]
fn a_remembered_permission_is_not_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt("[[ask execute remember one]] [[ask execute remember two]]");
    let request = client.until_method("session/request_permission");
    client.choose(&request, "allow-always");
    let (frames, _) = client.until_answer(id);
    assert!(frames.iter().all(|frame| frame.get("id").is_none()), "only one request");
    assert_eq!(statuses(&frames), ["in_progress", "completed", "in_progress", "completed"]);
}

#[test]
fn many_permissions_are_open_at_once_and_answered_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt("[[ask-many 3]]");
    let requests: Vec<Value> = (0..3).map(|_| client.until_method("session/request_permission")).collect();
    client.choose(&requests[2], "allow-once");
    let done = client.until(|frame| frame["params"]["update"]["status"] == "completed");
    assert_eq!(done["params"]["update"]["toolCallId"], requests[2]["params"]["toolCall"]["toolCallId"]);
    client.choose(&requests[0], "reject-once");
    client.choose(&requests[1], "allow-once");
    let (frames, answer) = client.until_answer(id);
    assert_eq!(statuses(&frames), ["failed", "completed"]);
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
}

#[test]
fn an_outcome_of_cancelled_ends_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt("[[ask execute x]] [[say never]]");
    let request = client.until_method("session/request_permission");
    client.answer(&request, json!({"outcome": {"outcome": "cancelled"}}));
    let (frames, answer) = client.until_answer(id);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    assert_eq!(said(&updates(&frames)), "");
}

#[test]
fn edits_reach_the_disk_only_after_approval() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.txt");
    std::fs::write(&file, "one two three").unwrap();
    let mut client = Client::start(dir.path(), &[]);

    let id = client.prompt(r#"[[edit a.txt two "2 and a half"]]"#);
    let request = client.until_method("session/request_permission");
    let diff = &request["params"]["toolCall"]["content"][0];
    assert_eq!(diff["oldText"], "one two three");
    assert_eq!(diff["newText"], "one 2 and a half three");
    client.choose(&request, "reject-once");
    client.until_answer(id).1.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one two three");

    let id = client.prompt("[[edit a.txt two 2]] [[write noask b.txt all new]] [[edit a.txt absent x]]");
    let request = client.until_method("session/request_permission");
    client.choose(&request, "allow-once");
    let (frames, _) = client.until_answer(id);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one 2 three");
    assert_eq!(std::fs::read_to_string(dir.path().join("b.txt")).unwrap(), "all new");
    assert_eq!(said(&updates(&frames)), "allowed: allow-oncenot edited: the old text is not in the file");
}

/// Methods and the results to answer them with; the others are unknown.
type Answers<'a> = &'a [(&'a str, Value)];

/// Plays a prompt and answers its requests from a table of methods and results; gives the methods seen and what was said.
fn play_with(client: &mut Client, prompt: &str, answers: Answers) -> (Vec<String>, String) {
    let id = client.prompt(prompt);
    let (mut methods, mut frames) = (Vec::new(), Vec::new());
    loop {
        let frame = client.frame();
        match (frame["method"].as_str(), frame.get("id")) {
            (Some(method), Some(_)) => {
                methods.push(method.to_owned());
                match answers.iter().find(|(name, _)| *name == method) {
                    Some((_, result)) => client.answer(&frame, result.clone()),
                    None => {
                        let error = json!({"code": -32601, "message": "no"});
                        client
                            .line(&json!({"jsonrpc": "2.0", "id": frame["id"], "error": error}).to_string());
                    }
                }
            }
            (None, Some(answered)) if *answered == id => return (methods, said(&updates(&frames))),
            _ => frames.push(frame),
        }
    }
}

#[test]
fn what_the_client_does_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let terminal = [
        ("terminal/create", json!({"terminalId": "t1"})),
        ("terminal/wait_for_exit", json!({"exitCode": 3})),
        ("terminal/output", json!({"output": "out\n", "truncated": true})),
        ("terminal/release", json!({})),
        ("terminal/kill", json!({})),
    ];
    let content = [("fs/read_text_file", json!({"content": "text"})), ("fs/write_text_file", json!({}))];
    let accept = json!({"action": "accept", "content": {"name": "n"}});
    let table: [(&str, Answers, &[&str], &str); 7] = [
        ("[[fs_read line=2 a]]", &content, &["fs/read_text_file"], "fs_read: text"),
        ("[[fs_read a]]", &[], &["fs/read_text_file"], "fs_read: error -32601: no"),
        ("[[fs_write a b c]]", &content, &["fs/write_text_file"], "fs_write: written"),
        (
            "[[terminal limit=9 ls -l]]",
            &terminal,
            &["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"],
            "terminal: exit 3 (truncated)\nout\n",
        ),
        (
            "[[terminal kill sleep 9]]",
            &terminal,
            &[
                "terminal/create",
                "terminal/kill",
                "terminal/wait_for_exit",
                "terminal/output",
                "terminal/release",
            ],
            "terminal: exit 3 (truncated)\nout\n",
        ),
        (
            "[[elicit Who?]]",
            &[("elicitation/create", accept)],
            &["elicitation/create"],
            r#"elicitation: accept {"name":"n"}"#,
        ),
        ("[[unknown_request]]", &[], &["_scripted/unknown"], "unknown request: error -32601: no"),
    ];
    for (prompt, answers, methods, text) in table {
        let (seen, heard) = play_with(&mut client, prompt, answers);
        assert_eq!(seen, methods, "{prompt}");
        assert_eq!(heard, text, "{prompt}");
    }
}

#[test]
fn a_cancel_ends_every_kind_of_wait() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    for (prompt, method) in [
        ("[[wait 600000]]", "session/update"),
        ("[[hang]]", "session/update"),
        ("[[ask execute x]]", "session/request_permission"),
        ("[[ask-many 2]]", "session/request_permission"),
        ("[[stream n=10 rate=0.001]]", "session/update"),
        ("[[fs_read x]]", "fs/read_text_file"),
        ("[[flood n=100000000]]", "session/update"),
    ] {
        let id = client.prompt(&format!("[[say started]] {prompt} [[say never]]"));
        client.until_method(method);
        client.cancel();
        let (frames, answer) = client.until_answer(id);
        assert_eq!(answer.unwrap()["stopReason"], "cancelled", "{prompt}");
        assert!(!said(&updates(&frames)).contains("never"), "{prompt}");
        assert_eq!(statuses(&frames).contains(&"failed".to_owned()), prompt.contains("ask"), "{prompt}");
    }
    assert_eq!(client.play("[[say still here]]").0.len(), 1);
}

#[test]
fn a_cancel_fails_the_tool_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt("[[tool execute delay=600000 x]]");
    client.until(|frame| frame["params"]["update"]["status"] == "in_progress");
    client.cancel();
    let (frames, answer) = client.until_answer(id);
    assert_eq!(statuses(&frames), ["failed"]);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
}

#[test]
fn a_patient_permission_is_cancelled_only_by_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt("[[ask execute patient x]]");
    let request = client.until_method("session/request_permission");
    client.cancel();
    assert_eq!(client.call("session/list", json!({})).unwrap()["sessions"].as_array().unwrap().len(), 1);
    client.answer(&request, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(client.until_answer(id).1.unwrap()["stopReason"], "cancelled");
}

#[test]
fn a_second_prompt_waits_and_a_cancel_ends_both_but_no_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let first = client.prompt("[[hang]]");
    let second = client.prompt("[[say never]]");
    client.cancel();
    let third = client.prompt("[[say third]]");
    assert_eq!(client.until_answer(first).1.unwrap()["stopReason"], "cancelled");
    let (frames, answer) = client.until_answer(second);
    assert_eq!((frames.len(), answer.unwrap()["stopReason"].as_str()), (0, Some("cancelled")));
    let (frames, answer) = client.until_answer(third);
    assert_eq!(
        (said(&updates(&frames)).as_str(), answer.unwrap()["stopReason"].as_str()),
        ("third", Some("end_turn"))
    );
}

#[test]
fn a_late_chunk_follows_the_answer_to_a_cancel() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt("[[late too late]] [[say started]] [[hang]]");
    client.until(|frame| frame["params"]["update"]["content"]["text"] == "started");
    client.cancel();
    let (frames, answer) = client.until_answer(id);
    assert_eq!((frames.len(), answer.unwrap()["stopReason"].as_str()), (0, Some("cancelled")));
    assert_eq!(client.frame()["params"]["update"]["content"]["text"], "too late");
}

#[test]
fn the_end_of_input_ends_the_agent_in_the_middle_of_any_step() {
    let dir = tempfile::tempdir().unwrap();
    for step in ["hang", "hang-deaf", "wait 600000", "ask execute x"] {
        let mut client = Client::start(dir.path(), &[]);
        client.prompt(&format!("[[say started]] [[{step}]]"));
        client.until(|frame| frame["params"]["update"]["content"]["text"] == "started");
        if step == "hang-deaf" {
            client.cancel();
        }
        client.close_stdin();
        assert_eq!(client.wait().code(), Some(0), "{step}");
    }
}

#[test]
fn an_agent_dies_as_it_is_told() {
    let dir = tempfile::tempdir().unwrap();
    for (step, code, signal) in
        [("crash 7", Some(7), None), ("kill-self", None, Some(9)), ("torn", Some(1), None)]
    {
        let mut client = Client::start(dir.path(), &[]);
        client.prompt(&format!("[[{step}]]"));
        let status = client.wait();
        assert_eq!((status.code(), status.signal()), (code, signal), "{step}");
        if step == "torn" {
            assert!(serde_json::from_slice::<Value>(&client.raw_line().unwrap()).is_err());
        }
        assert_eq!(client.raw_line(), None, "{step}");
    }
}

#[test]
fn broken_output_is_followed_by_a_good_frame() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let is_frame = |line: &[u8]| serde_json::from_slice::<Value>(line).is_ok();
    for (step, lines) in [("garbage", 1), ("garbage Loading model", 1), ("bad-utf8", 1), ("empty_lines", 4)] {
        let id = client.prompt(&format!("[[{step}]]"));
        for _ in 0..lines {
            let line = client.raw_line().unwrap();
            assert!(!is_frame(&line), "{step}");
            assert_eq!(std::str::from_utf8(&line).is_err(), step == "bad-utf8", "{step}");
        }
        assert_eq!(client.until_answer(id).1.unwrap()["stopReason"], "end_turn", "{step}");
    }
    let id = client.prompt(r#"[[reply_to_nothing]] [[unknown_notification]] [[raw {"a":1}]]"#);
    let (frames, _) = client.until_answer(id);
    assert_eq!(frames[0]["id"], 999_999_999);
    assert_eq!(frames[1]["method"], "_scripted/unknown");
    assert_eq!(frames[2], json!({"a": 1}));
    let (big, _) = client.play("[[bigline 2]]");
    assert_eq!(said(&big).len(), 2 << 20);

    client.play("[[stderr oh no]]");
    client.close_stdin();
    assert_eq!(client.stderr(), "oh no\n");
}

#[test]
fn an_orphan_sleeps_in_its_own_session_and_outlives_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let (updates, _) = client.play("[[spawn_orphan seconds=60]]");
    let pid: i32 = said(&updates).strip_prefix("orphan: ").unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
    client.close_stdin();
    assert_eq!(client.wait().code(), Some(0));
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_agent_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    client.play("hello");
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kilobytes: u64 = resident.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(kilobytes < 4096, "{kilobytes} kB of its own");
}
