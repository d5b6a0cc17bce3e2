//! `config.toml`: the profiles, which of them is the default, and the limits.
//!
//! Owns what the file means ([`Config::parse`]), reading and safely writing it ([`ConfigFile`]), and changing one thing
//! in it while all else, comments and unknown keys too, stays as a person wrote it ([`edit`]). What older settings mean is
//! [`migrate`]'s, whether a profile's program is there is [`crate::availability`]'s business.
//!
//! Invariant: a file that cannot be understood is never written to, and nothing is written that cannot be understood.

mod edit;
mod file;
pub mod migrate;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use consort_model::{
    Availability, EnvironmentChange, Limits, Profile, ProfileId, ProfileSummary, RevisionKey,
};
use thiserror::Error;
use toml_edit::{Document, Item, TableLike, Value};

pub use edit::{slug, unique_slug};
pub use file::ConfigFile;

/// What `config.toml` says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// The profiles, in the order of the file.
    pub profiles: Vec<Profile>,
    /// The one that is used where none is named.
    pub default_profile: Option<ProfileId>,
    /// The limits.
    pub limits: Limits,
    /// What it says in keys from before there were profiles.
    old: migrate::OldSettings,
}

/// Why the configuration cannot be used or changed. The message names no value, since values may be secret.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be understood.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// Where in the file by name, what is wrong, and what to do.
        message: String,
    },
    /// It cannot be read or written.
    #[error("{} cannot be {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// There is already such a profile.
    #[error("there is already a profile `{id}`; choose another name, or remove it first")]
    ProfileExists {
        /// Its id.
        id: ProfileId,
    },
    /// There is no such profile.
    #[error("there is no profile `{id}`; `consort profiles list` shows them")]
    NoSuchProfile {
        /// What was asked for.
        id: ProfileId,
    },
    /// Something in the file is of another form than what is to be written there.
    #[error("{} cannot be changed: `{key}` is not a table; write it as one", path.display())]
    NotATable {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        key: String,
    },
}

/// What is wrong, and where in the text.
struct Problem {
    at: usize,
    message: String,
}

impl Config {
    /// Understands the text of the file at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::read(text).map_err(|problem| {
            let (line, column) = position(text, problem.at);
            ConfigError::Broken { path: path.to_owned(), line, column, message: problem.message }
        })
    }

    /// The profile that a person means: by id, or by name.
    pub fn find(&self, wanted: &str) -> Option<&Profile> {
        let by_id = self.profiles.iter().find(|profile| profile.id.as_str() == wanted);
        by_id.or_else(|| self.profiles.iter().find(|profile| profile.name == wanted))
    }

    /// What clients may see of the profiles. `availability` looks whether one can be used.
    pub fn summaries(
        &self,
        key: &RevisionKey,
        availability: impl Fn(&Profile) -> Availability,
    ) -> Vec<ProfileSummary> {
        let is_default = |profile: &Profile| self.default_profile.as_ref() == Some(&profile.id);
        self.profiles
            .iter()
            .map(|profile| profile.summary(key, availability(profile), is_default(profile)))
            .collect()
    }

    fn read(text: &str) -> Result<Self, Problem> {
        let document = Document::parse(text).map_err(|error| Problem {
            at: error.span().map_or(0, |span| span.start),
            message: error.message().lines().collect::<Vec<_>>().join(", "),
        })?;
        let root = Section { name: String::new(), table: document.as_table(), at: 0 };
        let mut profiles = Vec::new();
        if let Some(section) = root.section("profiles")? {
            for (id, item) in section.table.iter() {
                profiles.push(profile(id, &section.inner(id, item)?)?);
            }
        }
        let default_profile = root.text("default_profile")?.map(ProfileId::new);
        if let Some(id) = &default_profile
            && !profiles.iter().any(|profile: &Profile| profile.id == *id)
        {
            let message = format!("`default_profile` names `{id}`, which is not one of the profiles");
            return Err(root.problem("default_profile", message));
        }
        let limits = root.section("limits")?.map_or(Ok(Limits::default()), |section| limits(&section))?;
        let old = migrate::old_settings(&root)?;
        Ok(Self { profiles, default_profile, limits, old })
    }
}

fn profile(id: &str, section: &Section<'_>) -> Result<Profile, Problem> {
    if id.is_empty() {
        return Err(Problem { at: section.at, message: "a profile's id cannot be empty".to_owned() });
    }
    let Some(driver) = section.word("driver")? else {
        let message = format!("`{}` names no `driver`", section.name);
        return Err(Problem { at: section.at, message });
    };
    let environment = section
        .texts("environment")?
        .into_iter()
        .map(|(at, line)| {
            EnvironmentChange::try_from(line.to_owned())
                .map_err(|error| Problem { at, message: format!("`{}.environment`: {error}", section.name) })
        })
        .collect::<Result<_, _>>()?;
    let profile = Profile {
        id: ProfileId::new(id),
        name: section.text("name")?.unwrap_or(id).to_owned(),
        driver,
        command: section.text("command")?.map(str::to_owned),
        args: section.texts("args")?.into_iter().map(|(_, arg)| arg.to_owned()).collect(),
        environment,
        default_model: section.text("default_model")?.map(str::to_owned),
        default_permissions: section.word("default_permissions")?.unwrap_or_default(),
        sandbox_mode: section.word("sandbox_mode")?,
        approval_policy: section.word("approval_policy")?,
    };
    profile.check().map_err(|(field, why)| section.wrong(field, why))?;
    Ok(profile)
}

fn limits(section: &Section<'_>) -> Result<Limits, Problem> {
    let default = Limits::default();
    Ok(Limits {
        companions_per_owner: section.count("companions_per_owner")?.unwrap_or(default.companions_per_owner),
        subagent_depth: section.count("subagent_depth")?.unwrap_or(default.subagent_depth),
        subagents_per_parent: section.count("subagents_per_parent")?.unwrap_or(default.subagents_per_parent),
        subagents_total: section.count("subagents_total")?.unwrap_or(default.subagents_total),
        subagents_queued: section.count("subagents_queued")?.unwrap_or(default.subagents_queued),
        subagent_seconds: section.count("subagent_seconds")?.unwrap_or(default.subagent_seconds),
        tree_tokens: section.count("tree_tokens")?.unwrap_or(default.tree_tokens),
        tree_cents: section.count("tree_cents")?.unwrap_or(default.tree_cents),
        messages_between_two: section.count("messages_between_two")?.unwrap_or(default.messages_between_two),
        queued_prompts: section.count("queued_prompts")?.unwrap_or(default.queued_prompts),
        crashes_before_parking: section
            .count("crashes_before_parking")?
            .unwrap_or(default.crashes_before_parking),
        stalled_after_ms: section.count("stalled_after_ms")?.unwrap_or(default.stalled_after_ms),
    })
}

/// A table of the file with its name and place, for messages.
struct Section<'a> {
    name: String,
    table: &'a dyn TableLike,
    at: usize,
}

impl<'a> Section<'a> {
    fn section(&self, key: &str) -> Result<Option<Section<'a>>, Problem> {
        self.table.get(key).map(|item| self.inner(key, item)).transpose()
    }

    fn inner(&self, key: &str, item: &'a Item) -> Result<Section<'a>, Problem> {
        let name = self.full_name(key);
        let at = start(item).or_else(|| self.key_start(key)).unwrap_or(self.at);
        match item.as_table_like() {
            Some(table) => Ok(Section { name, table, at }),
            None => Err(Problem { at, message: format!("`{name}` must be a table") }),
        }
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        item.as_str().map(Some).ok_or_else(|| self.wrong(key, "it must be a text in quotes"))
    }

    fn word<T: std::str::FromStr<Err = String>>(&self, key: &str) -> Result<Option<T>, Problem> {
        let word = self.text(key)?.map(str::parse).transpose();
        word.map_err(|error| self.wrong(key, error))
    }

    fn texts(&self, key: &str) -> Result<Vec<(usize, &'a str)>, Problem> {
        let Some(item) = self.table.get(key) else { return Ok(Vec::new()) };
        let wrong = "it must be a list of texts in quotes";
        let array = item.as_array().ok_or_else(|| self.wrong(key, wrong))?;
        let text = |value: &'a Value| {
            let at = value.span().map_or(self.at, |span| span.start);
            let message = format!("`{}`: {wrong}", self.full_name(key));
            value.as_str().map(|text| (at, text)).ok_or(Problem { at, message })
        };
        array.iter().map(text).collect()
    }

    fn count<N: TryFrom<i64>>(&self, key: &str) -> Result<Option<N>, Problem> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let number = item.as_integer().and_then(|number| N::try_from(number).ok());
        number
            .map(Some)
            .ok_or_else(|| self.wrong(key, "it must be a whole number, 0 or more, and not too large"))
    }

    fn wrong(&self, key: &str, why: impl std::fmt::Display) -> Problem {
        self.problem(key, format!("`{}`: {why}", self.full_name(key)))
    }

    fn problem(&self, key: &str, message: String) -> Problem {
        let at = self.table.get(key).and_then(start).or_else(|| self.key_start(key)).unwrap_or(self.at);
        Problem { at, message }
    }

    fn key_start(&self, key: &str) -> Option<usize> {
        self.table.get_key_value(key).and_then(|(key, _)| key.span()).map(|span| span.start)
    }

    fn full_name(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

fn start(item: &Item) -> Option<usize> {
    item.span().map(|span| span.start)
}

/// Line and column, counted from 1, of a place in a text.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}
