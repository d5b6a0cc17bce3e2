//! Recorded conversations with the real program give the normal form: nothing unknown, every text once, every turn
//! ended. The folder of recordings is named by `CONSORT_TRANSCRIPTS`; without it there is nothing to check.

use std::collections::BTreeMap;
use std::path::Path;

use consort_drivers::{Driver, Frame, Output};
use consort_model::{Answer, DriverKind, NoticeLevel, Signal};
use serde_json::{Value, json};

use crate::support::{allow, launch};

/// What a recording came to.
#[derive(Default)]
struct Told {
    texts: Vec<String>,
    writing: bool,
    ready: u32,
    asks: u32,
    turns: Vec<String>,
    tools: BTreeMap<String, String>,
    odd: Vec<String>,
    notices: Vec<String>,
}

impl Told {
    fn take(&mut self, out: Output) {
        for signal in out.signals {
            match signal {
                Signal::Text { text, within: None } => {
                    if !self.writing {
                        self.texts.push(String::new());
                    }
                    self.writing = true;
                    self.texts.last_mut().unwrap().push_str(&text);
                    continue;
                }
                Signal::Ready(_) => self.ready += 1,
                Signal::StartFailed { message } => self.turns.push(format!("start failed: {message}")),
                Signal::Ask { .. } => self.asks += 1,
                Signal::TurnEnded(outcome) => self.turns.push(format!("{outcome:?}")),
                Signal::Tool { call, .. } => {
                    self.tools.insert(call.id.to_string(), format!("{} {:?}", call.title, call.status));
                }
                Signal::Unknown { label, .. } => self.odd.push(format!("unknown {label}")),
                Signal::Notice { level: NoticeLevel::Info, text } => self.notices.push(text),
                Signal::Notice { text, .. } => self.odd.push(text),
                Signal::Usage(_) | Signal::Options(_) => continue,
                _ => {}
            }
            self.writing = false;
        }
    }
}

/// Plays a recording; the host's own lines become calls of the driver where it has such a call.
fn play(lines: &[Value]) -> (Told, Vec<String>, usize) {
    let mut driver = Driver::new(DriverKind::Claude, launch()).unwrap();
    let mut told = Told::default();
    // Which of our requests stands for which of the recording's.
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let mut expected = Vec::new();
    let mut results = 0;
    let mut started = false;
    let sent = |out: &Output| -> Option<String> {
        let frame: Value = serde_json::from_slice(out.frames.first()?).unwrap();
        Some(frame["request_id"].as_str()?.to_owned())
    };
    for line in lines {
        let message = &line["msg"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match line["dir"].as_str() {
            Some("in") => {
                let out = match message["type"].as_str() {
                    Some("user") if !started => {
                        started = true;
                        let mut out = driver.start();
                        let id = sent(&out).unwrap();
                        let answer = json!({"type": "control_response", "response":
                            {"subtype": "success", "request_id": id, "response": {}}});
                        out.append(driver.receive(Frame::Line(answer.to_string().as_bytes())));
                        out.append(driver.prompt("go", &[]));
                        out
                    }
                    Some("user") => {
                        let mut copy = driver.clone();
                        let out = copy.prompt(&word(&message["message"]["content"]), &[]);
                        if out.frames.is_empty() { Output::default() } else { driver.prompt("go", &[]) }
                    }
                    Some("control_response") => {
                        let response = &message["response"];
                        let key = word(&response["request_id"]);
                        let body = &response["response"];
                        let answer = match (body["behavior"].as_str(), body["interrupt"].as_bool()) {
                            (Some("allow"), _) if body["updatedInput"]["answers"].is_object() => {
                                Answer::Reply { value: body["updatedInput"]["answers"].clone() }
                            }
                            (Some("allow"), _) => allow("once"),
                            (_, Some(true)) => Answer::Stop,
                            _ => Answer::Deny { message: body["message"].as_str().map(str::to_owned) },
                        };
                        driver.answer(&key, &answer)
                    }
                    Some("control_request") => {
                        let request = &message["request"];
                        let out = match request["subtype"].as_str() {
                            Some("initialize") if !started => {
                                started = true;
                                driver.start()
                            }
                            Some("interrupt") => driver.interrupt(),
                            Some("set_permission_mode") => {
                                driver.choose("mode", &word(&request["mode"])).unwrap_or_default()
                            }
                            Some("set_model") => {
                                let model = request["model"].as_str().unwrap_or("default");
                                driver.choose("model", model).unwrap_or_default()
                            }
                            _ => Output::default(),
                        };
                        if let Some(id) = sent(&out) {
                            ids.insert(word(&message["request_id"]), id);
                        }
                        out
                    }
                    _ => Output::default(),
                };
                told.take(out);
            }
            Some("out") => {
                let mut message = message.clone();
                if let Some(ours) = ids.get(&word(&message["response"]["request_id"])) {
                    message["response"]["request_id"] = json!(ours);
                }
                let main = message["parent_tool_use_id"].is_null() && message["error"].is_null();
                if message["type"] == "assistant" && main {
                    for block in message["message"]["content"].as_array().unwrap() {
                        if block["type"] == "text" && block["text"] != "(no content)" {
                            expected.push(word(&block["text"]));
                        }
                    }
                }
                results += usize::from(message["type"] == "result");
                told.take(driver.receive(Frame::Line(message.to_string().as_bytes())));
            }
            _ => {}
        }
        let stored = serde_json::to_string(&driver).unwrap();
        assert_eq!(serde_json::from_str::<Driver>(&stored).unwrap(), driver);
    }
    (told, expected, results)
}

#[test]
fn recorded_conversations_are_understood() {
    let Some(folder) = std::env::var_os("CONSORT_TRANSCRIPTS") else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(Path::new(&folder)).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if name.starts_with("acp") || file.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let lines = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (told, expected, results) = play(&lines);
        println!(
            "{name}: {} ready, {} asks, {} results, turns {:?}",
            told.ready, told.asks, results, told.turns
        );
        for (what, lines) in [("notice", &told.notices), ("odd", &told.odd)] {
            lines.iter().for_each(|line| println!("    {what}: {line}"));
        }
        told.tools.values().for_each(|tool| println!("    tool: {tool}"));
        // What was told in pieces of a message that never came whole stays told.
        let cut =
            told.turns.len() < results.max(1) || told.notices.iter().any(|notice| notice.contains("cut off"));
        let whole: Vec<&String> = told.texts.iter().filter(|text| !cut || expected.contains(text)).collect();
        if whole != expected.iter().collect::<Vec<_>>() {
            wrong.push(format!("{name}: {:?} instead of {expected:?}", told.texts));
        }
        if told.turns.len() != results {
            wrong.push(format!("{name}: {results} results, {:?}", told.turns));
        }
        let known = [
            "hook_callback",
            "mcp_message",
            "The model's API failed",
            "The MCP server",
            "did not take",
            "cannot be read",
        ];
        let odd = told.odd.iter().filter(|odd| known.iter().all(|known| !odd.contains(known)));
        wrong.extend(odd.map(|odd| format!("{name}: {odd}")));
        let failed = |turn: &&String| turn.contains("no reason");
        wrong.extend(told.turns.iter().filter(failed).map(|turn| format!("{name}: {turn}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
