//! Identities as newtypes, so that one cannot be passed for another.
//!
//! Ids that Consort makes are time-ordered UUIDs; making one needs a clock and is the caller's business.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that the caller made.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// The UUID itself.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name given by a person or an agent.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The name itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

uuid_id!(
    /// One agent, from its creation on and through every reopening.
    AgentId
);
uuid_id!(
    /// One turn of an agent.
    TurnId
);
uuid_id!(
    /// One prompt. The sender makes it, so that sending the same prompt again is recognised.
    PromptId
);
uuid_id!(
    /// One approval or question.
    AskId
);
uuid_id!(
    /// One approval rule.
    RuleId
);
uuid_id!(
    /// One call in which an agent waits for others.
    WaitId
);
uuid_id!(
    /// One workspace.
    WorkspaceId
);
text_id!(
    /// The stable id of a profile, as it stands in `config.toml`.
    ProfileId
);
text_id!(
    /// A tool call, named by the agent that makes it; unique within one agent's session.
    ToolCallId
);

/// The place of an item in its agent's transcript, counted from 0.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ItemIndex(pub u64);

/// Milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);
