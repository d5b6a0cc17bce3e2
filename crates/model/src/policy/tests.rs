//! What needs a person and what does not, by table.

mod answers;
mod commands;
mod denials;
mod files;
mod modes;

use super::*;
use crate::decide::testing::{agent, tool, uuid};
use crate::ids::{RuleId, Timestamp};
use crate::item::{Diff, ToolCall};

fn edit(path: &str) -> ToolCall {
    let mut call = tool(ToolKind::Edit, "Edit");
    call.diffs.push(Diff { path: path.into(), old_text: None, new_text: "x".into() });
    call
}

fn read(path: &str) -> ToolCall {
    let mut call = tool(ToolKind::Read, "Read");
    call.locations.push(path.into());
    call
}

/// A call that runs a command, the way most agents say it.
fn run(command: &str) -> ToolCall {
    let mut call = tool(ToolKind::Execute, command);
    call.input = serde_json::json!({"command": command, "description": "does it", "timeout": 1000});
    call
}

fn rule(effect: Effect, tool: Option<ToolKind>, subject: Subject) -> Rule {
    let id = RuleId::new(uuid(70));
    Rule { id, effect, scope: RuleScope::All, tool, subject, at: Timestamp(0), origin: RuleOrigin::Added }
}

fn command_rule(effect: Effect, pattern: &str) -> Rule {
    let subject = Subject::Command { pattern: pattern.to_owned() };
    subject.check().unwrap();
    rule(effect, None, subject)
}

fn files_rule(effect: Effect, tool: Option<ToolKind>, patterns: &[&str]) -> Rule {
    let subject = Subject::Files { patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect() };
    subject.check().unwrap();
    rule(effect, tool, subject)
}

/// A disk on which `/work/out` leads to `/etc`, `/work/near` to `/work/src`, and `/home` to `/usr/home`. `/work/lost`
/// cannot be looked at.
fn resolve(path: &str) -> Option<String> {
    let mut real = String::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => real.truncate(real.rfind('/').unwrap_or(0)),
            part => {
                real = format!("{real}/{part}");
                match real.as_str() {
                    "/work/out" => real = "/etc".to_owned(),
                    "/work/near" => real = "/work/src".to_owned(),
                    "/home" => real = "/usr/home".to_owned(),
                    "/work/lost" => return None,
                    _ => {}
                }
            }
        }
    }
    Some(if real.is_empty() { "/".to_owned() } else { real })
}

fn verdict(agent: &Agent, rules: &[Rule], tool: ToolCall) -> Verdict {
    judge(agent, rules, &AskBody::Approval { tool, options: vec![] }, &resolve)
}

fn allowed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Settle(Answer::Allow { .. }, _))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Allowed,
    Denied,
    Asked,
}

fn outcome(agent: &Agent, rules: &[Rule], tool: ToolCall) -> Outcome {
    match verdict(agent, rules, tool) {
        Verdict::AskPerson => Outcome::Asked,
        verdict if allowed(&verdict) => Outcome::Allowed,
        _ => Outcome::Denied,
    }
}

fn in_mode(mode: PermissionMode) -> Agent {
    Agent { permissions: mode, ..agent(1) }
}
