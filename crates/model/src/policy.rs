//! Which approvals need a person.
//!
//! Pure: permission mode, rules, relation and the call itself go in, a [`Verdict`] comes out. What a rule allows cannot be
//! widened by the words an agent chooses: [`shell`] and [`command`] read command lines, [`paths`] knows files by their
//! real names, [`call`] takes a call by everything that is said about it. Leaves the look at the disk to the caller, who
//! lends it as [`Resolve`].
//!
//! Invariant: a denial wins over everything that allows, and what is not understood is not allowed by a rule. A mode is
//! the agent's own: a sub-agent has none of its parent's.

mod call;
pub mod command;
mod given;
mod paths;
mod rule;
pub mod shell;
mod wrappers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::ask::{Answer, AskBody, GrantScope, SettledBy};
use crate::item::ToolKind;

use call::Act;
use command::Denial;
pub use paths::{Resolve, kept_globs};
pub use rule::{Effect, Grant, Rule, RuleOrigin, RuleScope, Subject, rule_for};

/// What an agent's approvals follow when no rule does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Everything that the agent asks reaches a person.
    #[default]
    Default,
    /// Edits inside the working directory are allowed.
    AcceptEdits,
    /// Nothing may be changed: edits are denied, and commands ask whatever the rules say.
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

/// What is to be done about an approval.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// A person decides.
    AskPerson,
    /// It is decided.
    Settle(Answer, SettledBy),
}

/// Decides an ask of `agent`: questions always go to a person.
pub fn judge<'a>(
    agent: &Agent,
    rules: impl IntoIterator<Item = &'a Rule>,
    body: &AskBody,
    resolve: Resolve<'_>,
) -> Verdict {
    let AskBody::Approval { tool, .. } = body else { return Verdict::AskPerson };
    let allow = |by| Verdict::Settle(Answer::allow(GrantScope::Once), by);
    let deny = |message: String, by| Verdict::Settle(Answer::Deny { message: Some(message) }, by);
    let act = Act::of(tool, &agent.cwd, resolve);
    let mut rules: Vec<&Rule> = rules.into_iter().collect();
    let in_worktree: Vec<Rule> = rules.iter().filter_map(|rule| rule.in_worktree(agent)).collect();
    rules.extend(&in_worktree);
    rules.retain(|rule| rule.concerns(agent, resolve));

    let mut denial = Denial::No;
    for rule in &rules {
        let by_rule = rule.denies(&act, &agent.cwd, resolve);
        if by_rule == Denial::Yes {
            let message = format!("a rule denies this ({}): do not try it in another way", rule.subject);
            return deny(message, SettledBy::Rule { rule: rule.id });
        }
        denial = denial.max(by_rule);
    }
    if !given::is_given(agent, tool) {
        let listed = agent.brief.tools.as_deref().unwrap_or_default().join(", ");
        let message = format!(
            "this is not one of the tools that you were given ({listed}); do without it, and say in your result what is \
             missing"
        );
        return deny(message, SettledBy::Mode);
    }
    let changes_files =
        matches!(tool.tool, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) || !tool.diffs.is_empty();
    let planning = agent.permissions == PermissionMode::Plan;
    if planning && changes_files {
        return deny("plan mode is on: describe the change instead of making it".to_owned(), SettledBy::Mode);
    }
    if denial == Denial::Perhaps || (planning && tool.tool == ToolKind::Execute) {
        return Verdict::AskPerson;
    }
    if agent.permissions == PermissionMode::Bypass {
        return allow(SettledBy::Mode);
    }
    let by_itself = rules.iter().find(|rule| rule.allows(&act, &agent.cwd, resolve)).map(|rule| rule.id);
    if let Some(rule) = by_itself.or_else(|| rule::covered_by_commands(rules.iter().copied(), &act)) {
        return allow(SettledBy::Rule { rule });
    }
    let inside = call::are_inside(&act.names.all, &agent.cwd, resolve);
    if agent.permissions == PermissionMode::AcceptEdits
        && tool.tool == ToolKind::Edit
        && act.names.certain
        && inside
        && !act.names.all.iter().any(|name| is_machinery(name, &agent.cwd, resolve))
    {
        return allow(SettledBy::Mode);
    }
    match agent.relation.parent() {
        // It may name no paths, as a search of the web does.
        Some(parent)
            if matches!(tool.tool, ToolKind::Read | ToolKind::Search)
                && inside
                && (act.names.certain || act.names.all.is_empty()) =>
        {
            allow(SettledBy::Relation { parent })
        }
        _ => Verdict::AskPerson,
    }
}

/// Files that make other programs run something: editing one is more than an edit. What the agent's own folder is called
/// says nothing: a worktree may be in `~/.consort`.
fn is_machinery(path: &str, cwd: &str, resolve: Resolve<'_>) -> bool {
    let folders = [Some(cwd.to_owned()), resolve(cwd)];
    let inside = folders.iter().flatten().find_map(|folder| path.strip_prefix(folder.as_str()));
    inside
        .unwrap_or(path)
        .split('/')
        .any(|name| [".git", ".consort"].iter().any(|machinery| name.eq_ignore_ascii_case(machinery)))
}

#[cfg(test)]
mod tests;
