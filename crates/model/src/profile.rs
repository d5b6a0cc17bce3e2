//! Profiles: configured ways to run an agent.
//!
//! A [`Profile`] holds secrets (its environment) and stays inside the daemon and `config.toml`; what clients and events
//! see is the [`ProfileSummary`].

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ProfileId;
use crate::policy::PermissionMode;

/// The protocol that Consort speaks with an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// Claude Code over stream-json.
    Claude,
    /// `codex app-server`.
    Codex,
    /// Any agent of the Agent Client Protocol.
    Acp,
    /// The built-in agent.
    Native,
    /// Any program in a PTY.
    Terminal,
}

impl DriverKind {
    /// All drivers, in the order they are listed to people.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Acp, Self::Native, Self::Terminal];

    /// The word for it in config, CLI and UI.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Acp => "acp",
            Self::Native => "native",
            Self::Terminal => "terminal",
        }
    }

    /// The program it runs where a profile names none.
    pub fn default_program(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("claude"),
            Self::Codex => Some("codex"),
            Self::Native => Some("consort"),
            Self::Acp | Self::Terminal => None,
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl std::str::FromStr for DriverKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|driver| driver.word() == text).ok_or_else(|| {
            format!("unknown driver `{text}`: use one of {}", Self::ALL.map(Self::word).join(", "))
        })
    }
}

/// One change to the environment that an agent's process inherits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum EnvironmentChange {
    /// `KEY=VALUE`; a bare `KEY=` sets it empty.
    Set {
        /// The variable.
        key: String,
        /// Its value, possibly a secret.
        value: String,
    },
    /// `-KEY` takes an inherited variable away.
    Remove {
        /// The variable.
        key: String,
    },
}

impl EnvironmentChange {
    /// The variable it is about.
    pub fn key(&self) -> &str {
        match self {
            Self::Set { key, .. } | Self::Remove { key } => key,
        }
    }

    /// How it is shown to a person: never with its value.
    pub fn shown(&self) -> String {
        match self {
            Self::Set { key, value } if value.is_empty() => format!("{key}="),
            Self::Set { key, .. } => format!("{key}=…"),
            Self::Remove { key } => format!("-{key}"),
        }
    }
}

/// Shows no value, so that a profile can be logged without leaking a key.
impl fmt::Debug for EnvironmentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl TryFrom<String> for EnvironmentChange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let valid = |key: &str| !key.is_empty() && !key.contains(['=', '\0']);
        if let Some(key) = text.strip_prefix('-') {
            return if valid(key) {
                Ok(Self::Remove { key: key.to_owned() })
            } else {
                Err("an environment entry `-KEY` names one variable and nothing else".to_owned())
            };
        }
        match text.split_once('=') {
            Some((key, value)) if valid(key) && !value.contains('\0') => {
                Ok(Self::Set { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err("an environment entry is KEY=VALUE, KEY= or -KEY".to_owned()),
        }
    }
}

impl From<EnvironmentChange> for String {
    fn from(change: EnvironmentChange) -> Self {
        match change {
            EnvironmentChange::Set { key, value } => format!("{key}={value}"),
            EnvironmentChange::Remove { key } => format!("-{key}"),
        }
    }
}

/// A configured way to run an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Stable over renames.
    pub id: ProfileId,
    /// What people call it.
    pub name: String,
    /// The protocol it speaks.
    pub driver: DriverKind,
    /// The program; none: the driver's own, found on PATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Changes to the environment it inherits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<EnvironmentChange>,
    /// The model it starts with; none: the agent's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// The permission mode it starts with.
    #[serde(default)]
    pub default_permissions: PermissionMode,
}

impl Profile {
    /// The program that is really started: the profile's, or the driver's own.
    pub fn program(&self) -> Option<&str> {
        self.command.as_deref().filter(|command| !command.is_empty()).or(self.driver.default_program())
    }

    /// What clients may see of it.
    pub fn summary(&self, availability: Availability, is_default: bool) -> ProfileSummary {
        ProfileSummary {
            id: self.id.clone(),
            name: self.name.clone(),
            driver: self.driver,
            command: self.program().unwrap_or_default().to_owned(),
            args: hide_secrets(&self.args),
            environment: self.environment.iter().map(EnvironmentChange::shown).collect(),
            default_model: self.default_model.clone(),
            default_permissions: self.default_permissions,
            availability,
            is_default,
        }
    }

    /// The environment of its process: the inherited one with the profile's changes, in a stable order.
    pub fn apply_environment(
        &self,
        inherited: impl IntoIterator<Item = (String, String)>,
    ) -> Vec<(String, String)> {
        let mut environment: std::collections::BTreeMap<String, String> = inherited.into_iter().collect();
        for change in &self.environment {
            match change {
                EnvironmentChange::Set { key, value } => {
                    environment.insert(key.clone(), value.clone());
                }
                EnvironmentChange::Remove { key } => {
                    environment.remove(key);
                }
            }
        }
        environment.into_iter().collect()
    }
}

/// Hides the values of arguments whose names say that they are secret, given as `--key=value` or `--key value`.
fn hide_secrets(args: &[String]) -> Vec<String> {
    let secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with('-') && ["key", "token", "secret", "password"].iter().any(|word| name.contains(word))
    };
    let mut after_secret = false;
    args.iter()
        .map(|arg| {
            let hide = std::mem::take(&mut after_secret);
            match arg.split_once('=') {
                Some((name, _)) if secret(name) => format!("{name}=…"),
                _ if hide && !arg.starts_with('-') => "…".to_owned(),
                _ => {
                    after_secret = secret(arg);
                    arg.clone()
                }
            }
        })
        .collect()
}

/// What clients and events see of a profile: everything but the values of its environment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSummary {
    /// Stable over renames.
    pub id: ProfileId,
    /// What people call it.
    pub name: String,
    /// The protocol it speaks.
    pub driver: DriverKind,
    /// The program that is started.
    pub command: String,
    /// Its arguments, secrets hidden.
    pub args: Vec<String>,
    /// The changes to its environment, values hidden.
    pub environment: Vec<String>,
    /// The model it starts with.
    pub default_model: Option<String>,
    /// The permission mode it starts with.
    pub default_permissions: PermissionMode,
    /// Whether its program can be run here.
    pub availability: Availability,
    /// Whether it is used where none is named.
    pub is_default: bool,
}

/// Whether a profile can be used on this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Availability {
    /// Not looked at yet.
    Unknown,
    /// Its program was found.
    Available {
        /// Where.
        path: String,
    },
    /// It cannot be used.
    Unavailable {
        /// Why, and what to do about it.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(environment: &[&str]) -> Profile {
        Profile {
            id: ProfileId::new("p"),
            name: "p".into(),
            driver: DriverKind::Acp,
            command: Some("agent".into()),
            args: vec![],
            environment: environment
                .iter()
                .map(|text| EnvironmentChange::try_from((*text).to_owned()).unwrap())
                .collect(),
            default_model: None,
            default_permissions: PermissionMode::Default,
        }
    }

    #[test]
    fn environment_entries_set_empty_and_remove() {
        let inherited = [("A", "1"), ("B", "2"), ("C", "3")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let environment = profile(&["A=x=y", "B=", "-C", "D=4"]).apply_environment(inherited);
        let expected = [("A", "x=y"), ("B", ""), ("D", "4")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(environment, expected);
    }

    #[test]
    fn malformed_environment_entries_are_refused() {
        for text in ["", "KEY", "=x", "-", "-A=1", "A\0=1", "A=\0"] {
            assert!(EnvironmentChange::try_from(text.to_owned()).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn neither_debug_nor_summary_shows_a_secret() {
        let mut profile = profile(&["API_KEY=hunter2"]);
        profile.args =
            ["--api-key=hunter2", "--token", "hunter2", "--verbose", "task"].map(str::to_owned).to_vec();
        let shown = format!("{:?}", profile.summary(Availability::Unknown, false));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("--verbose") && shown.contains("task"));
        profile.args.clear();
        assert!(!format!("{profile:?}").contains("hunter2"));
    }
}
