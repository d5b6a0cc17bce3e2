//! Profiles in the protocol: making, changing, checking and importing them.

use consort_model::{
    ApprovalPolicy, DriverKind, Login, PermissionMode, ProfileSummary, SandboxMode, Support,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new profile, as a person asks for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewProfile {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: DriverKind,
    /// Its program; none: the driver's own.
    #[serde(default)]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// `KEY=VALUE`, `KEY=` or `-KEY`.
    #[serde(default)]
    pub environment: Vec<String>,
    /// The model it starts with.
    #[serde(default)]
    pub default_model: Option<String>,
    /// The permission mode it starts with.
    #[serde(default)]
    pub default_permissions: PermissionMode,
    /// For `codex`: what its commands may do by themselves.
    #[serde(default)]
    pub sandbox_mode: Option<SandboxMode>,
    /// For `codex`: when it asks.
    #[serde(default)]
    pub approval_policy: Option<ApprovalPolicy>,
}

impl NewProfile {
    /// A program that speaks ACP, with everything else as it is where nobody says otherwise.
    pub fn acp(name: &str, command: &str, args: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            driver: DriverKind::Acp,
            command: Some(command.to_owned()),
            args,
            environment: vec![],
            default_model: None,
            default_permissions: PermissionMode::default(),
            sandbox_mode: None,
            approval_policy: None,
        }
    }
}

/// What is to be different about a profile. What is not mentioned stays as it is; where a profile may leave something
/// open, an empty text leaves it open again.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileEdit {
    /// The name; the id stays.
    pub name: Option<String>,
    /// The program.
    pub command: Option<String>,
    /// All arguments, in place of those before.
    pub args: Option<Vec<String>>,
    /// `KEY=VALUE`, `KEY=` or `-KEY`: added, or in place of what the profile says about the same variable.
    pub environment: Vec<String>,
    /// Variables that the profile is to say nothing about any more.
    pub environment_dropped: Vec<String>,
    /// The model it starts with.
    pub default_model: Option<String>,
    /// The permission mode it starts with.
    pub default_permissions: Option<PermissionMode>,
    /// For `codex`: one of the sandbox modes, or empty.
    pub sandbox_mode: Option<String>,
    /// For `codex`: one of the approval policies, or empty.
    pub approval_policy: Option<String>,
}

/// Another program whose settings can be imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportSource {
    /// CC-Insights: its `config.json`.
    CcInsights,
}

/// What became of imported settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportedProfiles {
    /// Ids of the profiles that were added.
    pub added: Vec<String>,
    /// Ids of the profiles that ran the same thing already.
    pub present: Vec<String>,
    /// Id of the profile that became the default; null: the default stays as it was.
    pub default: Option<String>,
    /// What was read otherwise than it stands in the settings.
    pub notes: Vec<String>,
}

/// A profile that was looked at closely.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileCheck {
    /// The profile.
    #[serde(flatten)]
    pub profile: ProfileSummary,
    /// What its program says to `--version`; null: nothing, or it was not asked.
    pub version: Option<String>,
    /// Why it said nothing although it was asked.
    pub version_problem: Option<String>,
    /// The version that Consort was tested with; null: it was tested with none of this program.
    #[serde(default)]
    pub tested_version: Option<String>,
    /// How its version compares with that; null: one of them is not known.
    #[serde(default)]
    pub support: Option<Support>,
    /// Whether it is logged in; null: that cannot be known without asking its service.
    #[serde(default)]
    pub login: Option<Login>,
}
