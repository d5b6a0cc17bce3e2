//! Which approvals need a person.
//!
//! Pure: permission mode, rules, relation and the call itself go in, a [`Verdict`] comes out. A rule matches only a call
//! that would do the very same thing (same kind, same command and input, or no other paths), so that an agent cannot
//! widen what a person granted by choosing its words.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::ask::{Answer, AskBody, GrantScope, SettledBy};
use crate::ids::{AgentId, ProfileId, RuleId, Timestamp};
use crate::item::{ToolCall, ToolKind};

/// What an agent's approvals follow when no rule does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Everything that the agent asks reaches a person.
    #[default]
    Default,
    /// Edits inside the working directory are allowed.
    AcceptEdits,
    /// Nothing may be changed: edits are denied.
    Plan,
    /// Everything is allowed.
    Bypass,
}

impl PermissionMode {
    /// All modes, in the order one steps through them.
    pub const ALL: [Self; 4] = [Self::Default, Self::AcceptEdits, Self::Plan, Self::Bypass];

    /// The word for it in config, CLI and UI.
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Bypass => "bypass",
        }
    }
}

impl std::str::FromStr for PermissionMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.word() == text).ok_or_else(|| {
            format!("unknown permission mode `{text}`: use one of {}", Self::ALL.map(Self::word).join(", "))
        })
    }
}

/// A standing allowance that a person gave.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Which rule.
    pub id: RuleId,
    /// Whom it covers.
    pub scope: RuleScope,
    /// The kind of call it covers.
    pub tool: ToolKind,
    /// What the call must be, as [`Subject`] has it.
    pub subject: Subject,
    /// When it was set.
    pub at: Timestamp,
}

/// Whom a rule covers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum RuleScope {
    /// One agent.
    Agent {
        /// Which one.
        agent: AgentId,
    },
    /// Every agent of a profile.
    Profile {
        /// Which one.
        profile: ProfileId,
    },
}

/// What a call does, in the form in which two calls are compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum Subject {
    /// It touches these files and no others; absolute, sorted, without `.` and `..`.
    Paths {
        /// The files.
        paths: Vec<String>,
    },
    /// It is exactly this.
    Exact {
        /// The call in one line.
        title: String,
        /// Its input as JSON text, with sorted keys.
        input: String,
    },
}

/// What is to be done about an approval.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// A person decides.
    AskPerson,
    /// It is decided.
    Settle(Answer, SettledBy),
}

/// Decides an ask of `agent`: questions always go to a person.
pub fn judge<'a>(agent: &Agent, rules: impl IntoIterator<Item = &'a Rule>, body: &AskBody) -> Verdict {
    let AskBody::Approval { tool, .. } = body else { return Verdict::AskPerson };
    let allow = |by| Verdict::Settle(Answer::Allow { scope: GrantScope::Once }, by);
    let changes_files = matches!(tool.tool, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    if agent.permissions == PermissionMode::Plan && changes_files {
        let message = Some("plan mode is on: describe the change instead of making it".to_owned());
        return Verdict::Settle(Answer::Deny { message }, SettledBy::Mode);
    }
    if agent.permissions == PermissionMode::Bypass {
        return allow(SettledBy::Mode);
    }
    let subject = Subject::of(tool, &agent.cwd);
    if let Some(rule) = rules.into_iter().find(|rule| rule.covers(agent, tool, &subject)) {
        return allow(SettledBy::Rule { rule: rule.id });
    }
    if agent.permissions == PermissionMode::AcceptEdits
        && tool.tool == ToolKind::Edit
        && let Subject::Paths { paths } = &subject
        && paths.iter().all(|path| Path::new(path).starts_with(&agent.cwd))
    {
        return allow(SettledBy::Mode);
    }
    match agent.relation.parent() {
        Some(parent) if matches!(tool.tool, ToolKind::Read | ToolKind::Search) => {
            allow(SettledBy::Relation { parent })
        }
        _ => Verdict::AskPerson,
    }
}

impl Rule {
    fn covers(&self, agent: &Agent, tool: &ToolCall, subject: &Subject) -> bool {
        let in_scope = match &self.scope {
            RuleScope::Agent { agent: id } => *id == agent.id,
            RuleScope::Profile { profile } => *profile == agent.profile,
        };
        in_scope && self.tool == tool.tool && self.subject.covers(subject)
    }
}

impl Subject {
    /// What a call of an agent in `cwd` does.
    pub fn of(tool: &ToolCall, cwd: &str) -> Self {
        let file_kind =
            matches!(tool.tool, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
        let mut paths: Vec<String> = tool
            .diffs
            .iter()
            .map(|diff| diff.path.as_str())
            .chain(tool.locations.iter().map(|location| without_line(location)))
            .map(|path| normal(Path::new(cwd), path))
            .collect();
        if !file_kind || paths.is_empty() {
            return Self::Exact { title: tool.title.clone(), input: sorted(&tool.input).to_string() };
        }
        paths.sort();
        paths.dedup();
        Self::Paths { paths }
    }

    /// Whether a call that does `other` does nothing that this does not.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Paths { paths }, Self::Paths { paths: others }) => {
                others.iter().all(|path| paths.contains(path))
            }
            (Self::Exact { .. }, Self::Exact { .. }) => self == other,
            _ => false,
        }
    }
}

/// The same value with the keys of its objects in order, so that equal inputs have equal texts.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let ordered: BTreeMap<&String, Value> =
                fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            ordered.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// `src/main.rs:12` without the line.
fn without_line(location: &str) -> &str {
    match location.rsplit_once(':') {
        Some((path, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => location,
    }
}

/// An absolute path without `.` and `..`, by the text alone: links are not followed.
fn normal(cwd: &Path, path: &str) -> String {
    let mut normal = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal.to_string_lossy().into_owned()
}

/// The rule that a person's answer sets, if its scope reaches beyond the call at hand.
pub fn rule_for(
    agent: &Agent,
    tool: &ToolCall,
    scope: GrantScope,
    id: RuleId,
    at: Timestamp,
) -> Option<Rule> {
    let scope = match scope {
        GrantScope::Once => return None,
        GrantScope::Session => RuleScope::Agent { agent: agent.id },
        GrantScope::Always => RuleScope::Profile { profile: agent.profile.clone() },
    };
    Some(Rule { id, scope, tool: tool.tool, subject: Subject::of(tool, &agent.cwd), at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::testing::{agent, tool, uuid};
    use crate::item::Diff;
    use crate::relation::Relation;

    fn edit(path: &str) -> ToolCall {
        let mut call = tool(ToolKind::Edit, "Edit");
        call.diffs.push(Diff { path: path.into(), old_text: None, new_text: "x".into() });
        call
    }

    fn verdict(agent: &Agent, rules: &[Rule], tool: ToolCall) -> Verdict {
        judge(agent, rules, &AskBody::Approval { tool, options: vec![] })
    }

    fn allowed(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Settle(Answer::Allow { .. }, _))
    }

    #[test]
    fn modes_decide_by_kind_and_place() {
        use PermissionMode::{AcceptEdits, Bypass, Default, Plan};
        // (mode, call, allowed; None: a person is asked)
        let table = [
            (Default, tool(ToolKind::Execute, "ls"), None),
            (Default, edit("/work/a"), None),
            (Default, tool(ToolKind::Read, "a"), None),
            (AcceptEdits, edit("/work/a"), Some(true)),
            (AcceptEdits, edit("sub/a"), Some(true)),
            (AcceptEdits, edit("/etc/passwd"), None),
            (AcceptEdits, edit("../etc/passwd"), None),
            (AcceptEdits, edit("/work/../etc/passwd"), None),
            (AcceptEdits, edit("/workshop/a"), None),
            (AcceptEdits, tool(ToolKind::Edit, "no paths given"), None),
            (AcceptEdits, tool(ToolKind::Execute, "rm a"), None),
            (AcceptEdits, tool(ToolKind::Delete, "a"), None),
            (Plan, edit("/work/a"), Some(false)),
            (Plan, tool(ToolKind::Delete, "a"), Some(false)),
            (Plan, tool(ToolKind::Execute, "ls"), None),
            (Bypass, tool(ToolKind::Execute, "rm -rf x"), Some(true)),
            (Bypass, edit("/etc/passwd"), Some(true)),
        ];
        for (mode, call, expected) in table {
            let mut agent = agent(1);
            agent.permissions = mode;
            let got = verdict(&agent, &[], call.clone());
            let as_bool = (got != Verdict::AskPerson).then(|| allowed(&got));
            assert_eq!(as_bool, expected, "{mode:?} {call:?}");
        }
    }

    #[test]
    fn a_sub_agent_may_read_and_search_but_not_change() {
        let mut child = agent(2);
        child.relation = Relation::SubAgent { parent: agent(1).id, tool_call: None, result: None };
        for (kind, expected) in [
            (ToolKind::Read, true),
            (ToolKind::Search, true),
            (ToolKind::Edit, false),
            (ToolKind::Execute, false),
            (ToolKind::Fetch, false),
            (ToolKind::Other, false),
        ] {
            assert_eq!(allowed(&verdict(&child, &[], tool(kind, "x"))), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_grant_covers_the_same_call_only() {
        let asker = agent(1);
        let granted = tool(ToolKind::Execute, "git status");
        let rule = |scope| rule_for(&asker, &granted, scope, RuleId::new(uuid(9)), Timestamp(0));
        let session = rule(GrantScope::Session).unwrap();
        let always = rule(GrantScope::Always).unwrap();
        assert_eq!(rule(GrantScope::Once), None);

        let mut twin = agent(2);
        twin.profile = asker.profile.clone();
        let mut stranger = agent(3);
        stranger.profile = ProfileId::new("other");
        let mut disguised = granted.clone();
        disguised.input = serde_json::json!({"command": "rm -rf x"});
        let table = [
            (&asker, granted.clone(), &session, true),
            (&twin, granted.clone(), &session, false),
            (&twin, granted.clone(), &always, true),
            (&stranger, granted.clone(), &always, false),
            (&asker, tool(ToolKind::Execute, "git status; rm -rf x"), &session, false),
            (&asker, tool(ToolKind::Execute, "git"), &session, false),
            (&asker, tool(ToolKind::Other, "git status"), &session, false),
            (&asker, disguised, &session, false),
        ];
        for (agent, call, rule, expected) in table {
            let got = verdict(agent, std::slice::from_ref(rule), call.clone());
            assert_eq!(allowed(&got), expected, "{call:?} under {rule:?}");
        }
    }

    #[test]
    fn the_order_of_keys_in_an_input_does_not_matter() {
        let call = |text: &str| {
            let mut call = tool(ToolKind::Execute, "run");
            call.input = serde_json::from_str(text).unwrap();
            Subject::of(&call, "/work")
        };
        assert_eq!(call(r#"{"a":1,"b":[{"c":2,"d":3}]}"#), call(r#"{"b":[{"d":3,"c":2}],"a":1}"#));
        assert_ne!(call(r#"{"a":1}"#), call(r#"{"a":2}"#));
    }

    #[test]
    fn a_grant_for_paths_covers_those_files_however_they_are_written() {
        let asker = agent(1);
        let grant =
            rule_for(&asker, &edit("/work/a"), GrantScope::Session, RuleId::new(uuid(9)), Timestamp(0));
        let rules: Vec<Rule> = grant.into_iter().collect();
        let mut both = edit("/work/a");
        both.locations.push("/work/b:3".into());
        for (call, expected) in [
            (edit("a"), true),
            (edit("./a"), true),
            (edit("x/../a"), true),
            (edit("b"), false),
            (both, false),
            (edit("../work/a"), true),
            (edit("a/b"), false),
        ] {
            assert_eq!(allowed(&verdict(&asker, &rules, call.clone())), expected, "{call:?}");
        }
    }
}
