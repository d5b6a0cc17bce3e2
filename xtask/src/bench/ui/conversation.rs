//! Long conversations in the files that other UIs of agents keep, so that they can resume one.
//!
//! Owns what each program reads back; the formats are those of the versions that are installed for the tests. Questions and
//! answers take turns, the answers being [`MARKDOWN`]; the last one says [`last_words`].

use std::fmt::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use consort_testkit::clis::{Cli, MODEL};
use serde_json::{Value, json};
use uuid::Uuid;

use super::MARKDOWN;
use super::peers::{Peer, Place};
use super::stage::last_words;

/// One message of a conversation.
struct Message {
    index: usize,
    is_question: bool,
    text: String,
}

/// Whose words the last ones are, see [`last_words`].
pub const SPEAKER: &str = "speaker";

fn messages(count: usize) -> impl Iterator<Item = Message> {
    (0..count).map(move |index| {
        let is_question = index % 2 == 0;
        let text = match index {
            _ if index + 1 == count => last_words(SPEAKER),
            _ if is_question => format!("Question {index}: what was found in part {index}?"),
            _ => format!("Step {index}: {MARKDOWN}"),
        };
        Message { index, is_question, text }
    })
}

/// Writes a conversation of so many messages into the place of a program; its id.
pub fn write(place: &Place, count: usize) -> anyhow::Result<String> {
    match place.peer {
        Peer::Agent(Cli::Claude) | Peer::Claudechic => write_claude(place, count),
        Peer::Agent(Cli::Codex) => write_codex(place, count),
        Peer::Agent(Cli::OpenCode) => import_opencode(place, count),
        peer => bail!("{} resumes no conversation", peer.name()),
    }
}

/// A second for each message.
fn at(index: usize) -> String {
    format!("2026-01-01T{:02}:{:02}:{:02}.000Z", index / 3600, index / 60 % 60, index % 60)
}

fn write_lines(file: &Path, lines: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    let folder = file.parent().context("a file without a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}")?;
    }
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

/// A line per message, each naming the one before.
fn write_claude(place: &Place, count: usize) -> anyhow::Result<String> {
    let session = Uuid::now_v7().to_string();
    let work = place.work().display().to_string();
    let project = work.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
    let file = place.home().join(".claude/projects").join(project).join(format!("{session}.jsonl"));
    let mut before = Value::Null;
    let lines = messages(count).map(|Message { index, is_question, text }| {
        let (kind, message) = if is_question {
            ("user", json!({"role": "user", "content": text}))
        } else {
            let usage = json!({"input_tokens": 10, "output_tokens": 50});
            let message = json!({
                "id": format!("msg_{index:024}"), "type": "message", "role": "assistant", "model": MODEL,
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": usage,
            });
            ("assistant", message)
        };
        let id = json!(Uuid::now_v7());
        let before = std::mem::replace(&mut before, id.clone());
        json!({
            "parentUuid": before, "isSidechain": false, "userType": "external", "cwd": work,
            "sessionId": session, "version": Cli::Claude.version(), "gitBranch": "", "type": kind,
            "message": message, "uuid": id, "timestamp": at(index),
        })
    });
    write_lines(&file, lines)?;
    Ok(session)
}

/// What was said to the model and what was told to the screen, side by side.
fn write_codex(place: &Place, count: usize) -> anyhow::Result<String> {
    let session = Uuid::now_v7().to_string();
    let work = place.work();
    let name = format!("rollout-2026-01-01T00-00-00-{session}.jsonl");
    let file = place.home().join(".codex/sessions/2026/01/01").join(name);
    let line =
        |index, kind: &str, payload: Value| json!({"timestamp": at(index), "type": kind, "payload": payload});
    let first = json!({
        "id": session, "session_id": session, "timestamp": at(0), "cwd": work, "originator": "codex_cli_rs",
        "cli_version": Cli::Codex.version(), "source": "cli", "model_provider": "scripted", "instructions": null,
    });
    let rest = messages(count).flat_map(|Message { index, is_question, text }| {
        let said = |role: &str, kind: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        if is_question {
            let turn = format!("turn-{index}");
            vec![
                line(index, "event_msg", json!({"type": "task_started", "turn_id": turn, "model_context_window": 100_000})),
                line(index, "turn_context", json!({
                    "turn_id": turn, "cwd": work, "approval_policy": "on-request",
                    "sandbox_policy": {"type": "read-only"}, "model": MODEL, "summary": "auto",
                })),
                line(index, "response_item", said("user", "input_text")),
                line(index, "event_msg", json!({
                    "type": "user_message", "message": text, "images": [], "local_images": [], "text_elements": [],
                })),
            ]
        } else {
            let turn = format!("turn-{}", index - 1);
            vec![
                line(index, "event_msg", json!({"type": "agent_message", "message": text})),
                line(index, "response_item", said("assistant", "output_text")),
                line(index, "event_msg", json!({"type": "task_complete", "turn_id": turn, "last_agent_message": text})),
            ]
        }
    });
    write_lines(&file, std::iter::once(line(0, "session_meta", first)).chain(rest))?;
    Ok(session)
}

/// It keeps a database and imports what it exports.
fn import_opencode(place: &Place, count: usize) -> anyhow::Result<String> {
    const BEGAN: usize = 1_767_225_600_000;
    // Its ids sort by their first twelve digits.
    let id =
        |kind: &str, index: usize| format!("{kind}_{:012x}001AAAAAAAAAAA", 0x1b00_0000_0000_usize + index);
    let session = id("ses", 0);
    let work = place.work();
    let tokens = json!({"input": 10, "output": 20, "reasoning": 0, "cache": {"write": 0, "read": 0}});
    let written = messages(count).map(|Message { index, is_question, text }| {
        let created = BEGAN + index * 1000;
        let mut part = json!({
            "type": "text", "text": text, "id": id("prt", index), "sessionID": session, "messageID": id("msg", index),
        });
        let info = if is_question {
            json!({
                "id": id("msg", index), "sessionID": session, "role": "user", "time": {"created": created},
                "agent": "build", "model": {"providerID": "scripted", "modelID": MODEL}, "summary": {"diffs": []},
            })
        } else {
            part["time"] = json!({"start": created, "end": created + 400});
            json!({
                "id": id("msg", index), "sessionID": session, "role": "assistant", "parentID": id("msg", index - 1),
                "time": {"created": created, "completed": created + 500}, "agent": "build", "mode": "build",
                "path": {"cwd": work, "root": work}, "cost": 0, "tokens": tokens, "providerID": "scripted",
                "modelID": MODEL, "finish": "stop",
            })
        };
        json!({"info": info, "parts": [part]})
    });
    let exported = json!({
        "info": {
            "id": session, "slug": "bench", "projectID": "global", "directory": work, "path": "", "title": "bench",
            "agent": "build", "model": {"id": MODEL, "providerID": "scripted", "variant": "default"},
            "version": Cli::OpenCode.version(), "summary": {"additions": 0, "deletions": 0, "files": 0},
            "cost": 0, "tokens": tokens, "time": {"created": BEGAN, "updated": BEGAN + count * 1000},
        },
        "messages": written.collect::<Vec<_>>(),
    });
    let file = place.home().join("exported.json");
    std::fs::write(&file, exported.to_string())?;
    let output = place.command()?.arg("import").arg(&file).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("opencode imports no conversation: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_take_turns_until_the_last_words() {
        let all: Vec<Message> = messages(4).collect();
        let questions: Vec<bool> = all.iter().map(|message| message.is_question).collect();
        assert_eq!(questions, [true, false, true, false]);
        assert!(all[1].text.contains(MARKDOWN));
        assert_eq!(all[3].text, last_words(SPEAKER));
    }

    #[test]
    fn every_message_has_its_second() {
        assert_eq!(
            (at(59), at(9_999)),
            ("2026-01-01T00:00:59.000Z".into(), "2026-01-01T02:46:39.000Z".into())
        );
    }
}
