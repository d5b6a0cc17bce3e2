//! Rules: what a person allowed or denied beyond the call at hand.
//!
//! Owns their form, what makes one valid, and which calls one is about. Leaves to [`judge`](super::judge) what follows
//! from several of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Act, is_file_kind};
use super::command::{self, Denial, Pattern};
use super::paths::{self, Glob, Names, Resolve};
use crate::agent::Agent;
use crate::ask::GrantScope;
use crate::ids::{AgentId, AskId, ProfileId, RuleId, Timestamp};
use crate::item::{ToolCall, ToolKind};

/// A standing answer that a person gave.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Which rule.
    pub id: RuleId,
    /// What it does.
    #[serde(default, skip_serializing_if = "Effect::is_allow")]
    pub effect: Effect,
    /// Whom it covers.
    pub scope: RuleScope,
    /// The kind of call it is about; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolKind>,
    /// What the call must be, as [`Subject`] has it.
    pub subject: Subject,
    /// When it was set.
    pub at: Timestamp,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "RuleOrigin::is_unrecorded")]
    pub origin: RuleOrigin,
}

/// What a rule does to the calls it is about. A denial wins over everything that allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// They run without asking.
    #[default]
    Allow,
    /// They do not run.
    Deny,
}

impl Effect {
    /// Whether it allows.
    pub fn is_allow(&self) -> bool {
        *self == Self::Allow
    }
}

/// Where a rule comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum RuleOrigin {
    /// It was set before origins were kept.
    #[default]
    Unrecorded,
    /// A person answered an approval so.
    Answer {
        /// Whose.
        agent: AgentId,
        /// Which one.
        ask: AskId,
    },
    /// A person added it, as with `consort rules add`.
    Added,
}

impl RuleOrigin {
    /// Whether nothing is known of it.
    pub fn is_unrecorded(&self) -> bool {
        *self == Self::Unrecorded
    }
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
    /// Every agent that works in a folder.
    Project {
        /// The folder, absolute.
        folder: String,
    },
    /// Every agent.
    All,
}

/// What a call does, in the form in which a rule is compared with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum Subject {
    /// It touches these files and no others; absolute, sorted, without `.` and `..`.
    Paths {
        /// The files, by every name that they go by.
        paths: Vec<String>,
    },
    /// It is exactly this.
    Exact {
        /// The call in one line.
        title: String,
        /// Its input as JSON text, with sorted keys.
        input: String,
    },
    /// It touches files that fit these patterns and no others.
    Files {
        /// Such as `src/**`; a relative one is taken from the project's folder on, or else from the agent's.
        patterns: Vec<String>,
    },
    /// It runs commands like this and no others.
    Command {
        /// Such as `git *`.
        pattern: String,
    },
    /// It is a tool with a title like this; commands and changes to files are none.
    Title {
        /// Such as `github: *`; `*` stands for any characters.
        pattern: String,
    },
}

impl Subject {
    /// What a call of an agent in `cwd` does, and nothing else.
    pub fn of(tool: &ToolCall, cwd: &str, resolve: Resolve<'_>) -> Self {
        Self::exactly(&Act::of(tool, cwd, resolve))
    }

    fn exactly(act: &Act<'_>) -> Self {
        if is_file_kind(act.tool.tool) && !act.names.all.is_empty() {
            return Self::Paths { paths: act.names.all.clone() };
        }
        Self::Exact { title: act.tool.title.clone(), input: sorted(&act.tool.input).to_string() }
    }

    /// Whether it can be kept as a rule; otherwise what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Command { pattern } => Pattern::parse(pattern).map(drop),
            Self::Files { patterns } if patterns.is_empty() => {
                Err("give at least one path pattern".to_owned())
            }
            Self::Files { patterns } => patterns.iter().try_for_each(|pattern| Glob::check(pattern)),
            Self::Title { pattern } if pattern.is_empty() => Err("give a title, or `*` for any".to_owned()),
            Self::Paths { paths } if paths.is_empty() => Err("give at least one path".to_owned()),
            Self::Title { .. } | Self::Paths { .. } | Self::Exact { .. } => Ok(()),
        }
    }
}

impl Rule {
    /// The same rule for an agent that works in a worktree of the rule's project: what holds in a folder of the repository
    /// holds in that folder of the worktree.
    pub fn in_worktree(&self, agent: &Agent) -> Option<Self> {
        let RuleScope::Project { folder } = &self.scope else { return None };
        let worktree = agent.worktrees.iter().find(|worktree| worktree.holds(&agent.cwd))?;
        let (folder, repository) = (Path::new(folder), Path::new(&worktree.repository));
        let place = match folder.strip_prefix(repository) {
            Ok(inside) => Path::new(&worktree.path).join(inside),
            Err(_) if repository.starts_with(folder) => PathBuf::from(&worktree.path),
            Err(_) => return None,
        };
        let folder = paths::normal("/", &place.to_string_lossy());
        Some(Self { scope: RuleScope::Project { folder }, ..self.clone() })
    }

    /// Whether the rule is about this agent.
    pub fn concerns(&self, agent: &Agent, resolve: Resolve<'_>) -> bool {
        match &self.scope {
            RuleScope::Agent { agent: id } => *id == agent.id,
            RuleScope::Profile { profile } => *profile == agent.profile,
            RuleScope::Project { folder } => {
                let (written, real) = paths::is_folder_inside(&agent.cwd, folder, resolve);
                if self.effect.is_allow() { written && real } else { written || real }
            }
            RuleScope::All => true,
        }
    }

    /// The command pattern of a rule that allows commands.
    pub(super) fn allowed_commands(&self) -> Option<Pattern> {
        let commands = self.effect.is_allow() && self.tool.is_none_or(|kind| kind == ToolKind::Execute);
        match &self.subject {
            Subject::Command { pattern } if commands => Pattern::parse(pattern).ok(),
            _ => None,
        }
    }

    /// Whether the rule by itself allows a call of an agent in `cwd`. Command patterns are not looked at: several of them
    /// may cover one line together.
    pub(super) fn allows(&self, act: &Act<'_>, cwd: &str, resolve: Resolve<'_>) -> bool {
        let kind = act.tool.tool;
        if !self.effect.is_allow() || self.tool.is_some_and(|tool| tool != kind) {
            return false;
        }
        match &self.subject {
            Subject::Paths { paths } => {
                is_file_kind(kind)
                    && act.names.certain
                    && act.names.all.iter().all(|name| paths.contains(name))
            }
            Subject::Exact { .. } => Subject::exactly(act) == self.subject,
            Subject::Files { patterns } => {
                let globs = self.globs(patterns, cwd, resolve);
                (is_file_kind(kind) || kind == ToolKind::Search)
                    && act.names.certain
                    && act.names.all.iter().all(|name| globs.iter().any(|glob| glob.fits(name, false)))
            }
            Subject::Title { pattern } => {
                let harmless = !is_file_kind(kind) && kind != ToolKind::Execute && act.tool.diffs.is_empty();
                harmless && command::fits(&title_parts(pattern), &act.tool.title, false)
            }
            Subject::Command { .. } => false,
        }
    }

    /// Whether the rule denies a call of an agent in `cwd`.
    pub(super) fn denies(&self, act: &Act<'_>, cwd: &str, resolve: Resolve<'_>) -> Denial {
        if self.effect.is_allow() {
            return Denial::No;
        }
        let fits_kind = self.tool.is_none_or(|tool| {
            tool == act.tool.tool
                || (tool == ToolKind::Edit && !act.tool.diffs.is_empty())
                || (tool == ToolKind::Execute && !act.commands.is_empty())
        });
        if !fits_kind {
            return Denial::No;
        }
        let yes_if = |denied: bool| if denied { Denial::Yes } else { Denial::No };
        match &self.subject {
            Subject::Exact { .. } => yes_if(Subject::exactly(act) == self.subject),
            Subject::Title { pattern } => yes_if(command::fits(&title_parts(pattern), &act.tool.title, true)),
            Subject::Command { pattern } => denied_command(pattern, act),
            Subject::Paths { paths } => {
                let paths: Vec<String> = paths.iter().map(|path| path.to_lowercase()).collect();
                denied_files(act, cwd, resolve, &|name| paths.contains(&name.to_lowercase()))
            }
            Subject::Files { patterns } => {
                let globs = self.globs(patterns, cwd, resolve);
                denied_files(act, cwd, resolve, &|name| globs.iter().any(|glob| glob.fits(name, true)))
            }
        }
    }

    fn globs(&self, patterns: &[String], cwd: &str, resolve: Resolve<'_>) -> Vec<Glob> {
        let base: &str = match &self.scope {
            RuleScope::Project { folder } => folder,
            _ => cwd,
        };
        let real = resolve(base);
        let everywhere = (!self.effect.is_allow()).then_some("/");
        patterns
            .iter()
            .flat_map(|pattern| {
                let everywhere = everywhere.filter(|_| pattern.starts_with("**/"));
                let bases = [Some(base), real.as_deref(), everywhere];
                bases.into_iter().flatten().map(|base| Glob::new(base, pattern)).collect::<Vec<_>>()
            })
            .collect()
    }
}

fn denied_command(pattern: &str, act: &Act<'_>) -> Denial {
    // What cannot be read any more is taken for the worst.
    let Ok(pattern) = Pattern::parse(pattern) else { return Denial::Perhaps };
    let given = act.commands.iter().map(|line| pattern.denies_line(line)).fold(Denial::No, Denial::max);
    match (&act.title, act.commands.is_empty()) {
        (Some(title), true) => pattern.denies_line(title),
        // Beside a command, a title is words for people.
        (Some(title), false) if pattern.denies_line(title) == Denial::Yes => Denial::Yes,
        _ => given,
    }
}

fn denied_files(act: &Act<'_>, cwd: &str, resolve: Resolve<'_>, denied: &dyn Fn(&str) -> bool) -> Denial {
    if act.names.all.iter().any(|name| denied(name)) {
        return Denial::Yes;
    }
    if act.is_about_files() {
        return if act.names.certain { Denial::No } else { Denial::Perhaps };
    }
    // A command touches what it names, or it only speaks of it.
    let named = act.lines().any(|line| {
        let script = line.read();
        let words = script.commands.iter().flatten().chain(&script.files);
        if words.clone().count() > command::MAX_WORDS {
            return true;
        }
        words.flat_map(|word| word.text.split(['=', ':', ' ', '\n', '\'', '"'])).any(|path| {
            let Names { all, .. } = paths::names(cwd, std::iter::once(path), resolve);
            !path.is_empty() && all.iter().any(|name| denied(name))
        })
    });
    if named { Denial::Perhaps } else { Denial::No }
}

fn title_parts(pattern: &str) -> Vec<String> {
    pattern.split('*').map(str::to_owned).collect()
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

/// What a person allows beyond a call: how far, and more than just the same again if there is a pattern.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    /// How far it reaches.
    pub scope: GrantScope,
    /// A command pattern, path pattern or title, by the kind of the call.
    pub pattern: Option<&'a str>,
}

/// The rule that a person's answer sets, if its scope reaches beyond the call at hand. The error says why the pattern
/// cannot be: above all, it must cover that call.
pub fn rule_for(
    agent: &Agent,
    tool: &ToolCall,
    grant: Grant<'_>,
    id: RuleId,
    origin: RuleOrigin,
    at: Timestamp,
    resolve: Resolve<'_>,
) -> Result<Option<Rule>, String> {
    let scope = match grant.scope {
        GrantScope::Once if grant.pattern.is_some() => {
            return Err("a pattern is for later calls: say for whom they are allowed".to_owned());
        }
        GrantScope::Once => return Ok(None),
        GrantScope::Session => RuleScope::Agent { agent: agent.id },
        GrantScope::Always => RuleScope::Profile { profile: agent.profile.clone() },
        GrantScope::Project => RuleScope::Project { folder: paths::normal("/", &project_folder(agent)) },
    };
    let act = Act::of(tool, &agent.cwd, resolve);
    let subject = match grant.pattern {
        None => Subject::exactly(&act),
        Some(pattern) if tool.tool == ToolKind::Execute => Subject::Command { pattern: pattern.to_owned() },
        Some(pattern) if is_file_kind(tool.tool) || tool.tool == ToolKind::Search => {
            Glob::check(pattern)?;
            let mut patterns = paths::kept_globs(&agent.cwd, pattern, resolve);
            if let RuleScope::Project { folder } = &scope
                && *folder != agent.cwd
            {
                // The same files, wherever the project is.
                let inside = format!("{}/", agent.cwd.trim_end_matches('/'));
                let relative =
                    |pattern: String| pattern.strip_prefix(&inside).map(str::to_owned).unwrap_or(pattern);
                patterns = patterns.into_iter().map(relative).collect();
            }
            Subject::Files { patterns }
        }
        Some(pattern) => Subject::Title { pattern: pattern.to_owned() },
    };
    subject.check()?;
    let rule = Rule { id, effect: Effect::Allow, scope, tool: Some(tool.tool), subject, at, origin };
    let here = rule.in_worktree(agent).unwrap_or_else(|| rule.clone());
    if let Some(pattern) = grant.pattern
        && !here.allows(&act, &agent.cwd, resolve)
        && covered_by_commands(std::iter::once(&here), &act).is_none()
    {
        return Err(format!(
            "`{pattern}` does not cover this call; a pattern covers commands word by word, and none that are more than \
             simple commands"
        ));
    }
    Ok(Some(rule))
}

/// The folder that an agent's project is: its own, or the one of the repository that its worktree's folder stands for. A
/// worktree is gone when its work is done, and what was allowed for the project is to stay.
fn project_folder(agent: &Agent) -> Cow<'_, str> {
    let inside = agent.worktrees.iter().find_map(|worktree| {
        let inside = Path::new(&agent.cwd).strip_prefix(&worktree.path).ok()?;
        Some(Path::new(&worktree.repository).join(inside))
    });
    inside.map_or(Cow::Borrowed(&agent.cwd), |folder| Cow::Owned(folder.to_string_lossy().into_owned()))
}

/// The rule whose command pattern covers a call; with several commands, the one for the first of them.
pub(super) fn covered_by_commands<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    act: &Act<'_>,
) -> Option<RuleId> {
    if !act.ordinary {
        return None;
    }
    let patterns: Vec<(RuleId, Pattern)> =
        rules.filter_map(|rule| Some((rule.id, rule.allowed_commands()?))).collect();
    let mut first = None;
    for line in act.lines() {
        let used = command::covering(&patterns, line)?;
        first = first.or_else(|| used.first().map(|id| **id));
    }
    first
}

/// For people: a rule's subject in one line.
impl std::fmt::Display for Subject {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Paths { paths } | Self::Files { patterns: paths } => out.write_str(&paths.join(", ")),
            Self::Exact { title, .. } => out.write_str(title),
            Self::Command { pattern } | Self::Title { pattern } => out.write_str(pattern),
        }
    }
}
