//! Rules in the protocol.

use std::path::PathBuf;

use consort_model::policy::{Effect, Rule, RuleOrigin, Subject};
use consort_model::{RuleId, RuleScope, Timestamp, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new rule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewRule {
    /// Made by the client, so that asking again is harmless.
    pub id: RuleId,
    /// Whether it allows or denies.
    #[serde(default)]
    pub effect: Effect,
    /// Whom it covers.
    #[serde(flatten)]
    pub scope: NewRuleScope,
    /// The kind of call; none: any.
    #[serde(default)]
    pub tool: Option<ToolKind>,
    /// What the call must be.
    #[serde(flatten)]
    pub subject: Subject,
}

/// Whom a new rule covers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum NewRuleScope {
    /// One agent.
    Agent {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// Every agent of a profile.
    Profile {
        /// Its id or name.
        profile: String,
    },
    /// Every agent that works in a folder.
    Project {
        /// The folder, absolute.
        folder: PathBuf,
    },
    /// Every agent.
    All,
}

/// A rule, as lists show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Which rule.
    pub id: RuleId,
    /// Whether it allows or denies.
    pub effect: Effect,
    /// Whom it covers.
    #[serde(flatten)]
    pub scope: RuleScope,
    /// The kind of call; none: any.
    #[serde(default)]
    pub tool: Option<ToolKind>,
    /// What the call must be.
    #[serde(flatten)]
    pub subject: Subject,
    /// When it was set.
    pub at: Timestamp,
    /// Where it comes from.
    pub origin: RuleOrigin,
}

impl From<&Rule> for RuleView {
    fn from(rule: &Rule) -> Self {
        let Rule { id, effect, scope, tool, subject, at, origin } = rule.clone();
        Self { id, effect, scope, tool, subject, at, origin }
    }
}
