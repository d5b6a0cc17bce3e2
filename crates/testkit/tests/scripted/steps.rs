//! Steps that end by themselves: a prompt in, updates and a result out.

use serde_json::{Value, json};

use crate::client::{Client, said};

/// Whether every member of `expected` is in `actual`, deeply; arrays element by element.
pub fn holds(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| actual.get(key).is_some_and(|actual| holds(actual, value)))
        }
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, e)| holds(a, e))
        }
        _ => actual == expected,
    }
}

fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

#[test]
fn each_step_sends_its_updates() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let file = |name: &str| path.join(name);
    let plan = |statuses: [&str; 2]| json!({"sessionUpdate": "plan", "entries": [{"content": "a", "status": statuses[0]}, {"content": "b", "status": statuses[1]}]});
    let table: Vec<(&str, Vec<Value>)> = vec![
        ("hello", vec![chunk("You said: hello")]),
        ("x [[say Hello there]] y", vec![chunk("Hello there")]),
        (r"[[say a\nb \[\[c\]\] \\]]", vec![chunk("a\nb [[c]] \\")]),
        ("[[say chunk=3 åbcdefg]]", vec![chunk("åbc"), chunk("def"), chunk("g")]),
        ("[[say -- chunk=3 x]]", vec![chunk("chunk=3 x")]),
        ("[[think hm]]", vec![json!({"sessionUpdate": "agent_thought_chunk", "content": {"text": "hm"}})]),
        (
            r#"[[tool read location=src/a.rs:7 input={"p":[1]} output="two words" src/a.rs]]"#,
            vec![
                json!({"sessionUpdate": "tool_call", "kind": "read", "title": "src/a.rs", "status": "pending",
                       "rawInput": {"p": [1]}, "locations": [{"path": file("src/a.rs"), "line": 7}]}),
                json!({"sessionUpdate": "tool_call_update", "status": "in_progress"}),
                json!({"sessionUpdate": "tool_call_update", "status": "completed", "rawOutput": {"output": "two words"},
                       "content": [{"type": "content", "content": {"type": "text", "text": "two words"}}]}),
            ],
        ),
        (
            r#"[[tool edit diff="a.rs|old|new" fail Edit a]]"#,
            vec![
                json!({"sessionUpdate": "tool_call", "kind": "edit", "title": "Edit a"}),
                json!({"status": "in_progress"}),
                json!({"status": "failed", "content": [
                    {"type": "diff", "path": file("a.rs"), "oldText": "old", "newText": "new"},
                    {"type": "content"},
                ]}),
            ],
        ),
        (
            "[[plan a|b]]",
            vec![
                plan(["pending", "pending"]),
                plan(["in_progress", "pending"]),
                plan(["completed", "in_progress"]),
                plan(["completed", "completed"]),
            ],
        ),
        ("[[mode code]]", vec![json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})]),
        ("[[title A b]]", vec![json!({"sessionUpdate": "session_info_update", "title": "A b"})]),
        (
            "[[commands one,two]]",
            vec![json!({"sessionUpdate": "available_commands_update",
                        "availableCommands": [{"name": "one"}, {"name": "two"}]})],
        ),
        (
            "[[usage used=5 size=10 cost=0.25]]",
            vec![json!({"sessionUpdate": "usage_update", "used": 5, "size": 10,
                        "cost": {"amount": 0.25, "currency": "USD"}})],
        ),
        (
            "[[config_option_update]]",
            vec![json!({"sessionUpdate": "config_option_update",
                        "configOptions": [{"id": "model"}, {"id": "effort"}, {"id": "verbose"}]})],
        ),
        ("[[unknown_update]]", vec![json!({"sessionUpdate": "from_the_future"})]),
        (r#"[[update {"sessionUpdate":"x","y":[1]}]]"#, vec![json!({"sessionUpdate": "x", "y": [1]})]),
        ("[[env GREETING]]", vec![chunk("GREETING=good day")]),
        ("[[env NOT_THERE]]", vec![chunk("NOT_THERE is not set")]),
        ("[[args]]", vec![chunk(r#"args: ["--config-options"]"#)]),
        ("[[meta]]", vec![chunk(r#"meta: {"mark":7}"#)]),
        ("[[mcp]]", vec![chunk("mcp: []")]),
        ("[[empty-lines-are-not-a-step", vec![]),
    ];
    let mut client = Client::start(&path, &["--config-options"]);
    for (prompt, expected) in table {
        let id = client.prompt(prompt);
        let (frames, answer) = client.until_answer(id);
        let updates: Vec<Value> = frames.iter().map(|frame| frame["params"]["update"].clone()).collect();
        assert!(holds(&json!(updates), &json!(expected)), "{prompt}: {updates:#?}");
        match answer {
            Ok(result) => assert_eq!(result["stopReason"], "end_turn", "{prompt}"),
            Err(error) => assert_eq!(error["code"], -32602, "{prompt}: {error}"),
        }
    }
}

#[test]
fn a_prompt_ends_as_it_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    for (prompt, reason) in [
        ("[[refuse]] [[say never]]", "refusal"),
        ("[[max_tokens]]", "max_tokens"),
        ("[[max_turns]]", "max_turn_requests"),
        ("[[stop strange]]", "strange"),
    ] {
        let (updates, result) = client.play(prompt);
        assert_eq!(updates, Vec::<Value>::new());
        assert_eq!(result["stopReason"], reason);
    }
    for (prompt, code) in [
        ("[[error -32603 out of order]]", -32603),
        ("[[error 429 slow down]]", 429),
        ("[[say first]] [[fly]]", -32602),
        ("[[wait soon]]", -32602),
        ("[[script none]]", -32602),
    ] {
        let id = client.prompt(prompt);
        let (before, answer) = client.until_answer(id);
        assert_eq!(answer.unwrap_err()["code"], code, "{prompt}");
        assert_eq!(before, Vec::<Value>::new(), "a prompt is read whole before it is played");
    }
    let (_, result) = client.play("[[turn_usage input=3 output=4]]");
    assert_eq!(result["usage"], json!({"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}));
    assert_eq!(result["_meta"], json!({"mark": 7}));
}

#[test]
fn a_stream_has_as_many_deltas_as_told_and_stamps_go_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let (updates, _) = client.play("[[stream n=50 rate=2000 stamp]]");
    let stamps: Vec<(u64, usize)> = updates
        .iter()
        .map(|update| {
            let text = update["content"]["text"].as_str().unwrap().strip_suffix(' ').unwrap();
            let (stamp, index) = text.split_once(':').unwrap();
            (stamp.parse().unwrap(), index.parse().unwrap())
        })
        .collect();
    assert_eq!(stamps.iter().map(|(_, index)| *index).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    assert!(stamps.is_sorted());
    let spread = stamps[49].0 - stamps[0].0;
    assert!(spread >= 49 * 500_000 - 1_000_000, "the deltas keep to the rate: {spread} ns");

    let (updates, _) = client.play(r"[[stream n=4 rate=2000 size=3 **a** \n\[b\]]]");
    let pieces: Vec<&str> =
        updates.iter().map(|update| update["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(pieces, ["**a", "** ", "\n[b", "]"], "a text comes in pieces");

    let (updates, _) = client.play("[[flood n=3000 size=20]]");
    assert_eq!(updates.len(), 3000);
    assert!(updates.iter().all(|update| update["content"]["text"].as_str().unwrap().len() == 20));
}

#[test]
fn attachments_are_named_with_type_and_size() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &[]);
    let id = client.prompt_blocks(json!([
        {"type": "text", "text": "[[echo_images]]"},
        {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "four"}},
        {"type": "resource_link", "uri": "file:///b", "name": "b"},
    ]));
    let (frames, _) = client.until_answer(id);
    let updates: Vec<Value> = frames.iter().map(|frame| frame["params"]["update"].clone()).collect();
    assert_eq!(
        said(&updates),
        "image image/png 5 bytes\nresource file:///a text/plain 4 bytes\nresource_link file:///b"
    );
}

#[test]
fn scripts_come_from_a_file_and_default_steps_from_an_option() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scripts");
    std::fs::write(&file, "# two\ngreet: [[say Hello]]\n  [[script name]]\nname: [[say you]]\n").unwrap();
    let args = ["--script", file.to_str().unwrap(), "--on-prompt", "[[script greet]]", "--chunk", "4"];
    let mut client = Client::start(dir.path(), &args);
    let (updates, _) = client.play("no steps");
    assert_eq!(said(&updates), "Helloyou");
    assert_eq!(updates.len(), 3);

    std::fs::write(&file, "loop: [[script loop]]\n").unwrap();
    let mut client = Client::spawn(dir.path(), &["--script", file.to_str().unwrap()]);
    assert_eq!(client.wait().code(), Some(2));
    assert!(client.stderr().contains("without end"));
}

#[test]
fn message_ids_are_one_per_step() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::start(dir.path(), &["--message-ids"]);
    let (updates, _) = client.play("[[say chunk=1 ab]] [[say c]]");
    let ids: Vec<&Value> = updates.iter().map(|update| &update["messageId"]).collect();
    assert!(ids[0].is_string() && ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
}
