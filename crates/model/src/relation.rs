//! How an agent stands to the one that created it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ToolCallId};

/// How an agent stands to its creator. Who created it is on the agent itself (`created_by`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "relation", rename_all = "snake_case")]
pub enum Relation {
    /// Stands by itself.
    #[default]
    Primary,
    /// Bound to its owner: shown with it, closed with it.
    Companion {
        /// The agent it belongs to.
        owner: AgentId,
    },
    /// Spawned for a task; yields one result.
    SubAgent {
        /// The agent it works for.
        parent: AgentId,
        /// The parent's tool call that spawned it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call: Option<ToolCallId>,
        /// How its task ended; none while it holds a slot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<TaskResult>,
    },
}

impl Relation {
    /// How its task ended, for a sub-agent that is done with it.
    pub fn result(&self) -> Option<&TaskResult> {
        match self {
            Self::SubAgent { result, .. } => result.as_ref(),
            Self::Primary | Self::Companion { .. } => None,
        }
    }

    /// The owner, for a companion.
    pub fn owner(&self) -> Option<AgentId> {
        match self {
            Self::Companion { owner } => Some(*owner),
            Self::Primary | Self::SubAgent { .. } => None,
        }
    }

    /// The parent, for a sub-agent.
    pub fn parent(&self) -> Option<AgentId> {
        match self {
            Self::SubAgent { parent, .. } => Some(*parent),
            Self::Primary | Self::Companion { .. } => None,
        }
    }

    /// The same relation with the task, if it is one, still to be done.
    pub fn without_result(&self) -> Self {
        match self {
            Self::SubAgent { parent, tool_call, .. } => {
                Self::SubAgent { parent: *parent, tool_call: tool_call.clone(), result: None }
            }
            Self::Primary | Self::Companion { .. } => self.clone(),
        }
    }

    /// The agent whose end ends this one: the owner or the parent.
    pub fn bound_to(&self) -> Option<AgentId> {
        self.owner().or(self.parent())
    }
}

/// How a sub-agent's task ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum TaskResult {
    /// It gave a result.
    Yielded {
        /// The result; of a long one the head and the tail.
        text: String,
        /// Where all of a long one is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// It was stopped at a limit.
    Stopped {
        /// Which one, in one sentence.
        reason: String,
    },
    /// Its process failed.
    Failed {
        /// Why, in one sentence.
        reason: String,
    },
    /// It was closed before it gave a result.
    Closed,
}
