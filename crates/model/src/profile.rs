//! Profiles: configured ways to run an agent.
//!
//! A [`Profile`] holds secrets (its environment) and stays inside the daemon and `config.toml`; what clients and events
//! see is the [`ProfileSummary`]. Whether a profile was edited since an agent was started shows in its
//! [`ProfileRevision`], which tells two versions apart and nothing else.

mod revision;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ProfileId;
use crate::policy::PermissionMode;

pub use revision::{ProfileRevision, RevisionKey};

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

    /// Whether a running turn can be given more words. In ACP a prompt is a turn.
    pub fn can_steer(self) -> bool {
        match self {
            Self::Claude | Self::Codex => true,
            Self::Acp | Self::Native | Self::Terminal => false,
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

/// An enum whose variants have one word each, in config, CLI and UI alike.
macro_rules! words {
    ($(#[$about:meta])* $name:ident ($what:literal) { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in the order they are listed to people.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for it in config, CLI and UI.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|it| it.word() == text).ok_or_else(|| {
                    format!("unknown {} `{text}`: use one of {}", $what, [$($word),+].join(", "))
                })
            }
        }
    };
}

words! {
    /// What Codex lets the commands of an agent do by themselves.
    SandboxMode ("sandbox mode") {
        /// They may read.
        ReadOnly = "readOnly",
        /// They may write inside the working directory.
        WorkspaceWrite = "workspaceWrite",
        /// They may do everything.
        FullAccess = "fullAccess",
    }
}

words! {
    /// When Codex asks for an approval.
    ApprovalPolicy ("approval policy") {
        /// Before everything but what it knows to be harmless.
        Untrusted = "untrusted",
        /// When the agent wants to leave the sandbox.
        OnRequest = "onRequest",
        /// When a command failed in the sandbox.
        OnFailure = "onFailure",
        /// Not at all.
        Never = "never",
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
    /// For `codex`: what its commands may do by themselves; none: as Codex is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_mode: Option<SandboxMode>,
    /// For `codex`: when it asks; none: as Codex is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<ApprovalPolicy>,
}

impl Profile {
    /// A profile with a name and a driver, and nothing else said.
    pub fn new(id: ProfileId, name: impl Into<String>, driver: DriverKind) -> Self {
        Self {
            id,
            name: name.into(),
            driver,
            command: None,
            args: vec![],
            environment: vec![],
            default_model: None,
            default_permissions: PermissionMode::Default,
            sandbox_mode: None,
            approval_policy: None,
        }
    }

    /// Whether what it says fits together: the field that does not, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.name.trim().is_empty() {
            return Err(("name", "a profile needs a name".to_owned()));
        }
        if self.name.chars().any(char::is_control) {
            return Err(("name", "a profile's name is one line of printable characters".to_owned()));
        }
        if self.command.iter().chain(&self.args).any(|word| word.contains('\0')) {
            return Err((
                "command",
                "neither a program nor its arguments can hold a NUL character".to_owned(),
            ));
        }
        let said = [
            ("sandbox_mode", self.sandbox_mode.is_some()),
            ("approval_policy", self.approval_policy.is_some()),
        ];
        match said.into_iter().find(|(_, said)| *said && self.driver != DriverKind::Codex) {
            Some((field, _)) => Err((
                field,
                format!("only the driver `codex` has it, and this profile's is `{}`", self.driver),
            )),
            None => Ok(()),
        }
    }

    /// Whether it runs the same thing in the same way as another, whatever they are called.
    pub fn runs_like(&self, other: &Self) -> bool {
        let named = Self { id: self.id.clone(), name: self.name.clone(), ..other.clone() };
        *self == named
    }

    /// The program that is really started: the profile's, or the driver's own.
    pub fn program(&self) -> Option<&str> {
        self.command.as_deref().filter(|command| !command.is_empty()).or(self.driver.default_program())
    }

    /// What clients may see of it.
    pub fn summary(&self, key: &RevisionKey, availability: Availability, is_default: bool) -> ProfileSummary {
        ProfileSummary {
            id: self.id.clone(),
            name: self.name.clone(),
            driver: self.driver,
            command: self.program().unwrap_or_default().to_owned(),
            args: hide_secrets(&self.args),
            environment: self.environment.iter().map(EnvironmentChange::shown).collect(),
            default_model: self.default_model.clone(),
            default_permissions: self.default_permissions,
            sandbox_mode: self.sandbox_mode,
            approval_policy: self.approval_policy,
            revision: self.revision(key),
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
    /// For `codex`: what its commands may do by themselves.
    #[serde(default)]
    pub sandbox_mode: Option<SandboxMode>,
    /// For `codex`: when it asks.
    #[serde(default)]
    pub approval_policy: Option<ApprovalPolicy>,
    /// Which version of it this is: another one after an edit that concerns running agents.
    pub revision: ProfileRevision,
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
            command: Some("agent".into()),
            environment: environment
                .iter()
                .map(|text| EnvironmentChange::try_from((*text).to_owned()).unwrap())
                .collect(),
            ..Profile::new(ProfileId::new("p"), "p", DriverKind::Acp)
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
    fn profiles_of_one_driver_have_exactly_their_own_environment() {
        let inherited =
            [("API_KEY", "inherited"), ("PATH", "/bin")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let one = profile(&["API_KEY=one", "CLAUDE_CONFIG_DIR=/one"]).apply_environment(inherited.clone());
        let other = profile(&["-API_KEY", "CLAUDE_CONFIG_DIR=/other"]).apply_environment(inherited);
        let of = |environment: &[(String, String)], key: &str| {
            environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
        };
        assert_eq!(of(&one, "API_KEY").as_deref(), Some("one"));
        assert_eq!(of(&other, "API_KEY"), None);
        assert_eq!(of(&one, "CLAUDE_CONFIG_DIR").as_deref(), Some("/one"));
        assert_eq!(of(&other, "CLAUDE_CONFIG_DIR").as_deref(), Some("/other"));
        assert_eq!((one.len(), other.len()), (3, 2), "and nothing else");
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
        let shown = format!("{:?}", profile.summary(&RevisionKey::default(), Availability::Unknown, false));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("--verbose") && shown.contains("task"));
        profile.args.clear();
        assert!(!format!("{profile:?}").contains("hunter2"));
    }

    #[test]
    fn sandbox_and_approval_policy_are_for_codex_alone() {
        for driver in DriverKind::ALL {
            let mut profile = Profile::new(ProfileId::new("p"), "p", driver);
            assert_eq!(profile.check(), Ok(()));
            profile.sandbox_mode = Some(SandboxMode::ReadOnly);
            assert_eq!(profile.check().is_ok(), driver == DriverKind::Codex, "{driver}");
            profile.sandbox_mode = None;
            profile.approval_policy = Some(ApprovalPolicy::Never);
            let checked = profile.check();
            assert_eq!(checked.is_ok(), driver == DriverKind::Codex, "{driver}");
            assert!(checked.is_ok() || checked.unwrap_err().0 == "approval_policy");
        }
    }

    #[test]
    fn every_word_is_read_and_written_alike() {
        for mode in SandboxMode::ALL {
            assert_eq!(mode.word().parse(), Ok(*mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.word());
        }
        for policy in ApprovalPolicy::ALL {
            assert_eq!(policy.word().parse(), Ok(*policy));
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.word());
        }
        let error = "all".parse::<SandboxMode>().unwrap_err();
        assert_eq!(error, "unknown sandbox mode `all`: use one of readOnly, workspaceWrite, fullAccess");
    }

    #[test]
    fn a_profile_runs_like_another_whatever_they_are_called() {
        let one = profile(&["A=1"]);
        let mut other = Profile { id: ProfileId::new("q"), name: "q".into(), ..one.clone() };
        assert!(one.runs_like(&other));
        other.environment.clear();
        assert!(!one.runs_like(&other));
    }
}
