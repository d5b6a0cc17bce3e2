//! Settings from before there were profiles, and those of CC-Insights, as profiles.
//!
//! Pure: text or keys go in, profiles come out; [`super::file`] writes them and keeps a backup. Two sources, one meaning:
//! the flat keys `session.*` in `config.toml`, and CC-Insights' `config.json` with its list of agents and, from older
//! versions, the same flat keys.
//!
//! Invariant: a message names keys, names and places, never a value: values may be secret.

#[cfg(test)]
mod tests;

use consort_model::{
    ApprovalPolicy, DriverKind, EnvironmentChange, PermissionMode, Profile, ProfileId, SandboxMode,
};
use serde_json::{Map, Value};
use thiserror::Error;
use toml_edit::{DocumentMut, Item, RawString};

use super::{Config, Problem, Section, edit};

/// The largest file that is read as settings, in bytes.
pub const MAX_IMPORT: usize = 4 << 20;

/// The most agents that are taken from one file.
const MAX_AGENTS: usize = 200;

const CLAUDE_PATH: &str = "session.claudeCliPath";
const CODEX_PATH: &str = "session.codexCliPath";
const ACP_PATH: &str = "session.acpCliPath";
const ACP_ARGS: &str = "session.acpCliArgs";
const PERMISSIONS: &str = "session.defaultPermissionMode";
const OLD_KEYS: [&str; 5] = [CLAUDE_PATH, CODEX_PATH, ACP_PATH, ACP_ARGS, PERMISSIONS];

const AGENTS: &str = "agents.available";
const DEFAULT_AGENT: &str = "agents.defaultAgent";

/// What the flat keys say. Empty texts say nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OldSettings {
    /// Whether any of the keys is there.
    pub there: bool,
    claude: Option<String>,
    codex: Option<String>,
    acp: Option<String>,
    acp_args: Vec<String>,
    permissions: Option<PermissionMode>,
}

impl OldSettings {
    /// The profiles that they stand for: the usual ones where there are none yet, else one for each driver that they
    /// speak of and that has no profile.
    pub(super) fn profiles(&self, present: &[Profile]) -> Vec<Profile> {
        if !self.there {
            return vec![];
        }
        let wanted = |driver: DriverKind, said: bool| {
            present.is_empty() || (said && !present.iter().any(|profile| profile.driver == driver))
        };
        let mut profiles = Vec::new();
        if wanted(DriverKind::Claude, self.claude.is_some()) {
            profiles.push(Profile {
                command: self.claude.clone(),
                default_model: Some("opus".to_owned()),
                default_permissions: self.permissions.unwrap_or_default(),
                ..new("Claude", DriverKind::Claude)
            });
        }
        if wanted(DriverKind::Codex, self.codex.is_some()) {
            profiles.push(Profile {
                command: self.codex.clone(),
                sandbox_mode: Some(SandboxMode::WorkspaceWrite),
                approval_policy: Some(ApprovalPolicy::OnRequest),
                ..new("Codex", DriverKind::Codex)
            });
        }
        if wanted(DriverKind::Acp, self.acp.is_some() || !self.acp_args.is_empty()) {
            let name = self.acp.as_deref().map_or("Gemini", acp_name);
            let mut profile = new(name, DriverKind::Acp);
            profile.command.clone_from(&self.acp);
            profile.args.clone_from(&self.acp_args);
            name_acp_program(&mut profile);
            profiles.push(profile);
        }
        if present.is_empty() {
            profiles.push(new("Consort", DriverKind::Native));
        }
        profiles
    }
}

/// A profile that gets its id when it is added.
fn new(name: &str, driver: DriverKind) -> Profile {
    Profile::new(ProfileId::new(""), name, driver)
}

/// What an ACP agent is called, by its program.
fn acp_name(path: &str) -> &str {
    match path.rsplit('/').next() {
        Some(file) if !file.is_empty() && !file.contains("gemini") => file,
        _ => "Gemini",
    }
}

/// An ACP agent without a program was Gemini: the driver has no program of its own.
fn name_acp_program(profile: &mut Profile) {
    if profile.command.is_none() {
        profile.command = Some("gemini".to_owned());
        if profile.args.is_empty() {
            profile.args = vec!["--acp".to_owned()];
        }
    }
}

/// The flat keys of `config.toml`, as keys in quotes or in a table `session`.
pub(super) fn old_settings(root: &Section<'_>) -> Result<OldSettings, Problem> {
    let session = match root.table.get("session") {
        Some(item) if item.is_table_like() => root.section("session")?,
        _ => None,
    };
    let there = |key: &str| {
        root.table.contains_key(key)
            || session.as_ref().is_some_and(|session| session.table.contains_key(short(key)))
    };
    let text = |key: &str| -> Result<Option<&str>, Problem> {
        let found = match (root.text(key)?, &session) {
            (Some(text), _) => Some(text),
            (None, Some(session)) => session.text(short(key))?,
            (None, None) => None,
        };
        Ok(found.filter(|text| !text.is_empty()))
    };
    let acp_args = text(ACP_ARGS)?.unwrap_or_default();
    let unbalanced = || root.wrong(ACP_ARGS, "a quote in it is not closed");
    Ok(OldSettings {
        there: OLD_KEYS.iter().any(|key| there(key)),
        claude: text(CLAUDE_PATH)?.map(str::to_owned),
        codex: text(CODEX_PATH)?.map(str::to_owned),
        acp: text(ACP_PATH)?.map(str::to_owned),
        acp_args: shlex::split(acp_args).ok_or_else(unbalanced)?,
        permissions: text(PERMISSIONS)?.and_then(permissions),
    })
}

/// A key inside its table `session`.
fn short(key: &str) -> &str {
    key.strip_prefix("session.").unwrap_or(key)
}

/// Takes the flat keys out of the document. What else it holds, and comments that are set off from them, stay.
pub(super) fn remove_old_settings(document: &mut DocumentMut) {
    let mut comments = String::new();
    for key in OLD_KEYS {
        if let Some((key, _)) = document.remove_entry(key) {
            let own = key.leaf_decor().prefix().and_then(RawString::as_str).unwrap_or_default();
            comments.push_str(own.rfind("\n\n").map_or("", |end| &own[..end + 2]));
        }
    }
    if !comments.trim().is_empty() {
        edit::keep_comments(document, &comments, None);
    }
    let Some(session) = document.get_mut("session").and_then(Item::as_table_like_mut) else { return };
    for key in OLD_KEYS {
        session.remove(short(key));
    }
    if session.is_empty()
        && let Some(Item::Table(table)) = document.remove("session")
    {
        let comments = table.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
        edit::keep_file_comments(document, comments, table.position());
    }
}

/// A permission mode by its name here or in Claude Code.
fn permissions(word: &str) -> Option<PermissionMode> {
    match word {
        "acceptEdits" => Some(PermissionMode::AcceptEdits),
        "bypassPermissions" => Some(PermissionMode::Bypass),
        other => other.parse().ok(),
    }
}

/// Profiles found in a file of CC-Insights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The profiles; they get their ids when they are added.
    pub profiles: Vec<Profile>,
    /// Which of them is the default.
    pub default: Option<usize>,
    /// What was read otherwise than it stands there, for a person.
    pub notes: Vec<String>,
}

/// What became of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Imported {
    /// The profiles that were added.
    pub added: Vec<ProfileId>,
    /// The profiles that run the same thing already.
    pub present: Vec<ProfileId>,
    /// The profile that became the default.
    pub default: Option<ProfileId>,
}

/// Why a file cannot be imported.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ImportError {
    /// There is nothing in it.
    #[error("it is empty; give CC-Insights' config.json")]
    Empty,
    /// It is no settings file.
    #[error("it has more than {} MiB, which no settings have; give CC-Insights' config.json", MAX_IMPORT >> 20)]
    TooLarge,
    /// It is not JSON.
    #[error("line {line}, column {column}: it is not JSON ({message}); correct it, nothing was imported")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// It is JSON of something else.
    #[error(
        "it holds no settings of agents (neither `agents.available` nor `session.…CliPath`); give CC-Insights' config.json"
    )]
    NothingThere,
    /// There are too many.
    #[error("it lists {count} agents, and {MAX_AGENTS} is the limit; nothing was imported")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// Something in it cannot be understood.
    #[error("{place}: {why}; correct it, nothing was imported")]
    Wrong {
        /// Which key or agent.
        place: String,
        /// What is wrong with it.
        why: String,
    },
}

fn wrong(place: impl Into<String>, why: impl Into<String>) -> ImportError {
    ImportError::Wrong { place: place.into(), why: why.into() }
}

/// Reads CC-Insights' `config.json`: its agents, its default agent, and the flat keys where it has no agents yet.
pub fn cc_insights(text: &str) -> Result<Found, ImportError> {
    if text.len() > MAX_IMPORT {
        return Err(ImportError::TooLarge);
    }
    if text.trim().is_empty() {
        return Err(ImportError::Empty);
    }
    let root: Value = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        ImportError::NotJson { line: error.line(), column: error.column(), message }
    })?;
    let root = root.as_object().ok_or(ImportError::NothingThere)?;
    let mut found = Found::default();
    let mut ids = Vec::new();
    if let Some(list) = key(root, AGENTS) {
        let list = list.as_array().ok_or_else(|| wrong(format!("`{AGENTS}`"), "it must be a list"))?;
        if list.len() > MAX_AGENTS {
            return Err(ImportError::TooMany { count: list.len() });
        }
        for (n, entry) in list.iter().enumerate() {
            let place = format!("`{AGENTS}`, agent {}", n + 1);
            let entry = entry.as_object().ok_or_else(|| wrong(&place, "it must be an object"))?;
            let agent = Entry { place, entry };
            found.profiles.push(agent.profile(&mut found.notes)?);
            ids.push(agent.text("id")?);
        }
    } else if key(root, "agents").is_some_and(|agents| !agents.is_object()) {
        return Err(wrong("`agents`", "it must be an object"));
    }
    let old = old_settings_of_json(root, &mut found.notes)?;
    if found.profiles.is_empty() && !old.there {
        return Err(ImportError::NothingThere);
    }
    if let Some(wanted) = text_of(root, DEFAULT_AGENT)? {
        found.default = ids.iter().position(|id| *id == Some(wanted));
        if found.default.is_none() {
            found.notes.push(format!("`{DEFAULT_AGENT}` names no agent of the file, so no default is set"));
        }
    }
    found.profiles.extend(old.profiles(&found.profiles));
    Ok(found)
}

fn old_settings_of_json(
    root: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<OldSettings, ImportError> {
    let path = |key| Ok::<_, ImportError>(text_of(root, key)?.map(str::to_owned));
    let mode = text_of(root, PERMISSIONS)?;
    Ok(OldSettings {
        there: OLD_KEYS.iter().any(|old| key(root, old).is_some()),
        claude: path(CLAUDE_PATH)?,
        codex: path(CODEX_PATH)?,
        acp: path(ACP_PATH)?,
        acp_args: match key(root, ACP_ARGS) {
            Some(value) => words(value, &format!("`{ACP_ARGS}`"))?,
            None => vec![],
        },
        permissions: mode.map(|word| mode_or_default(word, &format!("`{PERMISSIONS}`"), notes)),
    })
}

/// The value of a key with a dot in it, written flat or as an object in an object.
fn key<'a>(root: &'a Map<String, Value>, dotted: &str) -> Option<&'a Value> {
    let nested = || {
        let (outer, inner) = dotted.split_once('.')?;
        root.get(outer)?.as_object()?.get(inner)
    };
    root.get(dotted).or_else(nested).filter(|value| !value.is_null())
}

fn text_of<'a>(root: &'a Map<String, Value>, dotted: &str) -> Result<Option<&'a str>, ImportError> {
    let Some(value) = key(root, dotted) else { return Ok(None) };
    let text = value.as_str().ok_or_else(|| wrong(format!("`{dotted}`"), "it must be a text"))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Arguments: a list, or one text as a shell has it.
fn words(value: &Value, place: &str) -> Result<Vec<String>, ImportError> {
    if let Some(text) = value.as_str() {
        return shlex::split(text).ok_or_else(|| wrong(place, "a quote in it is not closed"));
    }
    texts(value).ok_or_else(|| wrong(place, "it must be a text, or a list of texts"))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn mode_or_default(word: &str, place: &str, notes: &mut Vec<String>) -> PermissionMode {
    permissions(word).unwrap_or_else(|| {
        notes.push(format!("{place}: there is no such permission mode here, so it is `default`"));
        PermissionMode::Default
    })
}

/// One of the file's agents.
struct Entry<'a> {
    place: String,
    entry: &'a Map<String, Value>,
}

impl<'a> Entry<'a> {
    fn profile(&self, notes: &mut Vec<String>) -> Result<Profile, ImportError> {
        let driver = match self.text("driver")? {
            Some("direct" | "directCli") => DriverKind::Claude,
            Some(word) => word.parse().map_err(|why: String| self.wrong("driver", why))?,
            None => return Err(self.wrong("driver", "it is missing")),
        };
        let mut profile = new(self.text("name")?.unwrap_or(driver.word()), driver);
        profile.command = self.text("cliPath")?.map(str::to_owned);
        if let Some(value) = self.entry.get("cliArgs").filter(|value| !value.is_null()) {
            profile.args = words(value, &self.of("cliArgs"))?;
        }
        profile.environment = self.environment()?;
        profile.default_model = self.text("defaultModel")?.map(str::to_owned);
        if let Some(word) = self.text("defaultPermissions")? {
            profile.default_permissions = mode_or_default(word, &self.of("defaultPermissions"), notes);
        }
        if driver == DriverKind::Codex {
            profile.sandbox_mode = self.word("codexSandboxMode", notes)?;
            profile.approval_policy = self.word("codexApprovalPolicy", notes)?;
        }
        if driver == DriverKind::Acp {
            name_acp_program(&mut profile);
        }
        profile.check().map_err(|(field, why)| self.wrong(field, why))?;
        Ok(profile)
    }

    /// Lines of `KEY=VALUE`, `KEY=` and `-KEY`; empty ones and comments are left out.
    fn environment(&self) -> Result<Vec<EnvironmentChange>, ImportError> {
        let lines = match self.entry.get("environment") {
            None | Some(Value::Null) => vec![],
            Some(Value::String(text)) => text.lines().map(str::to_owned).collect(),
            Some(list) => {
                texts(list).ok_or_else(|| self.wrong("environment", "it must be a text of lines"))?
            }
        };
        let said = |line: &&String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let change = |(n, line): (usize, &String)| {
            EnvironmentChange::try_from(line.trim().to_owned())
                .map_err(|why| self.wrong("environment", format!("line {}: {why}", n + 1)))
        };
        lines.iter().enumerate().filter(|(_, line)| said(line)).map(change).collect()
    }

    fn word<T: std::str::FromStr>(
        &self,
        key: &str,
        notes: &mut Vec<String>,
    ) -> Result<Option<T>, ImportError> {
        let Some(word) = self.text(key)? else { return Ok(None) };
        let read = word.parse().ok();
        if read.is_none() {
            notes.push(format!("{}: there is no such value here, so it is left open", self.of(key)));
        }
        Ok(read)
    }

    /// A text that says something.
    fn text(&self, key: &str) -> Result<Option<&'a str>, ImportError> {
        let Some(value) = self.entry.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(key, "it must be a text"))?;
        Ok(Some(text.trim()).filter(|text| !text.is_empty()))
    }

    fn of(&self, key: &str) -> String {
        format!("{}, `{key}`", self.place)
    }

    fn wrong(&self, key: &str, why: impl Into<String>) -> ImportError {
        wrong(self.of(key), why)
    }
}

/// A name that no profile has, neither as its name nor as its id.
pub(super) fn unique_name(name: &str, config: &Config) -> String {
    let numbered = (2_u64..).map(|number| format!("{name} {number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| config.find(name).is_none())
        .unwrap_or_else(|| name.to_owned())
}
