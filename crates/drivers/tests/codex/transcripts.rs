//! Recorded conversations with the real program, played to the driver; without the variable the test does nothing.
//!
//! `CONSORT_TRANSCRIPTS=FOLDER cargo nextest run -p consort-drivers codex`: every `codex-*.jsonl` in it, with lines
//! `{"dir": "->" | "<-", "msg": …}`. The recorded client's steps become calls of the driver.

use std::collections::HashMap;

use consort_drivers::{Driver, Frame, Launch, Output};
use consort_model::{Answer, DriverKind, NoticeLevel, Signal, ToolCallId};
use serde_json::{Value, json};

use crate::support::allow;

struct Player {
    driver: Driver,
    signals: Vec<Signal>,
    /// The recorded client's ids by ours, for requests that both make.
    ids: HashMap<u64, u64>,
    /// Our requests that were not yet matched with recorded ones.
    waiting: Vec<(u64, String)>,
}

impl Player {
    fn take(&mut self, out: Output) {
        for frame in &out.frames {
            let message: Value = serde_json::from_slice(frame).unwrap();
            if let (Some(id), Some(method)) = (message["id"].as_u64(), message["method"].as_str()) {
                self.waiting.push((id, method.to_owned()));
            }
        }
        self.signals.extend(out.signals);
    }

    fn hear(&mut self, message: &Value) {
        let out = self.driver.receive(Frame::Line(message.to_string().as_bytes()));
        self.take(out);
        let again: Driver = serde_json::from_str(&serde_json::to_string(&self.driver).unwrap()).unwrap();
        assert_eq!(again, self.driver);
    }

    /// Our request of this method, if we made one.
    fn matching(&mut self, method: &str) -> Option<u64> {
        let index = self.waiting.iter().position(|(_, waiting)| waiting == method)?;
        Some(self.waiting.remove(index).0)
    }

    /// Answers what the recorded client did not ask.
    fn answer_the_rest(&mut self, messages: &[(String, Value)]) {
        for method in ["account/read", "config/read", "model/list", "collaborationMode/list"] {
            let Some(id) = self.matching(method) else { continue };
            match answer_to(messages, method) {
                Some(mut answer) => {
                    answer["id"] = json!(id);
                    self.hear(&answer);
                }
                None => self.hear(&json!({"id": id, "result": {}})),
            }
        }
    }
}

fn answer_to(messages: &[(String, Value)], method: &str) -> Option<Value> {
    let id =
        messages.iter().find(|(dir, message)| dir == "->" && message["method"] == method)?.1["id"].clone();
    let answer = messages
        .iter()
        .find(|(dir, message)| dir == "<-" && message["id"] == id && message.get("method").is_none())?;
    Some(answer.1.clone())
}

fn play(messages: &[(String, Value)]) -> Player {
    let resumed = messages.iter().find(|(dir, message)| dir == "->" && message["method"] == "thread/resume");
    let resume = resumed.and_then(|(_, message)| message["params"]["threadId"].as_str().map(str::to_owned));
    let launch = Launch { cwd: "/project".into(), resume, ..Launch::default() };
    let mut player = Player {
        driver: Driver::new(DriverKind::Codex, launch).unwrap(),
        signals: vec![],
        ids: HashMap::new(),
        waiting: vec![],
    };
    let out = player.driver.start();
    player.take(out);
    for (dir, message) in messages {
        let method = message["method"].as_str();
        match (dir.as_str(), method) {
            ("->", Some("turn/start" | "turn/interrupt" | "thread/compact/start")) => {
                let out = match method {
                    Some("turn/start") => player
                        .driver
                        .prompt(message["params"]["input"][0]["text"].as_str().unwrap_or("x"), &[]),
                    Some("turn/interrupt") => player.driver.interrupt(),
                    _ => player.driver.prompt("/compact", &[]),
                };
                player.take(out);
                if let Some(ours) = player.matching(method.unwrap()) {
                    player.ids.insert(message["id"].as_u64().unwrap(), ours);
                }
            }
            ("->", Some(method)) => {
                if let (Some(theirs), Some(ours)) = (message["id"].as_u64(), player.matching(method)) {
                    player.ids.insert(theirs, ours);
                }
            }
            ("->", None) if message.get("id").is_some() => {
                let answer = match &message["result"] {
                    result if result["decision"] == "accept" || result["action"] == "accept" => allow("once"),
                    result if result["decision"] == "cancel" => Answer::Stop,
                    result if result["answers"].is_object() => {
                        Answer::Reply { value: json!({"color": "Blue"}) }
                    }
                    result if result["decision"].is_string() => {
                        Answer::Choose { option: result["decision"].as_str().unwrap().into() }
                    }
                    _ => Answer::Deny { message: None },
                };
                let out = player.driver.answer(&message["id"].to_string(), &answer);
                player.take(out);
            }
            ("<-", None) => {
                let Some(ours) = message["id"].as_u64().and_then(|id| player.ids.get(&id)) else { continue };
                let mut message = message.clone();
                message["id"] = json!(ours);
                player.hear(&message);
                player.answer_the_rest(messages);
            }
            ("<-", Some(_)) => player.hear(message),
            _ => {}
        }
    }
    player
}

/// The texts that were told, message by message.
fn texts(signals: &[Signal]) -> Vec<String> {
    let mut texts = vec![String::new()];
    for signal in signals {
        match signal {
            Signal::Text { text, .. } => texts.last_mut().unwrap().push_str(text),
            Signal::MessageEnd => texts.push(String::new()),
            _ => {}
        }
    }
    texts
}

#[test]
fn recorded_conversations_are_understood() {
    let Some(folder) = std::env::var_os("CONSORT_TRANSCRIPTS") else { return };
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("codex-"));
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let lines = std::fs::read_to_string(&path).unwrap();
        let messages: Vec<(String, Value)> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["msg"].is_object())
            .map(|line| (line["dir"].as_str().unwrap().to_owned(), line["msg"].clone()))
            .collect();
        let player = play(&messages);
        let told = texts(&player.signals);
        let mut ended = 0;
        for (dir, message) in &messages {
            if dir != "<-" {
                continue;
            }
            let item = &message["params"]["item"];
            if message["method"] == "item/completed" && item["type"] == "agentMessage" {
                assert!(
                    told.contains(&item["text"].as_str().unwrap().to_owned()),
                    "{name}: {item} in {told:?}"
                );
            }
            ended += usize::from(message["method"] == "turn/completed");
        }
        let outcomes: Vec<&Signal> =
            player.signals.iter().filter(|signal| matches!(signal, Signal::TurnEnded(_))).collect();
        assert_eq!(outcomes.len(), ended, "{name}: {outcomes:?}");
        let mut open: HashMap<ToolCallId, bool> = HashMap::new();
        for signal in &player.signals {
            match signal {
                Signal::Tool { call, .. } => {
                    open.insert(call.id.clone(), !call.status.is_over());
                }
                Signal::TurnEnded(_) => assert!(open.values().all(|open| !open), "{name}: {open:?}"),
                Signal::Unknown { label, .. } => assert_eq!(label, "item/tool/call", "{name}"),
                Signal::Notice { level: NoticeLevel::Warning | NoticeLevel::Error, text } => {
                    println!("{name}: {text}");
                }
                Signal::StartFailed { message } => println!("{name}: did not start: {message}"),
                _ => {}
            }
        }
        println!("{name}: {outcomes:?}");
    }
}
