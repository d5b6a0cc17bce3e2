//! The limits on how many agents there may be. All can be configured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many agents may exist and run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Companions of one owner.
    pub companions_per_owner: u32,
    /// How deep sub-agents may nest: 1 means that a sub-agent has none itself.
    pub subagent_depth: u32,
    /// Unsettled sub-agents of one parent.
    pub subagents_per_parent: u32,
    /// Unsettled sub-agents in all.
    pub subagents_total: u32,
    /// Prompts that may wait for one agent.
    pub queued_prompts: u32,
    /// Crashes within [`Limits::CRASH_WINDOW_MS`] after which an agent is parked.
    pub crashes_before_parking: u32,
    /// Milliseconds without a sign of life after which a working agent counts as stalled.
    pub stalled_after_ms: u64,
}

impl Limits {
    /// Crashes further apart than this do not add up.
    pub const CRASH_WINDOW_MS: i64 = 10 * 60 * 1000;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            companions_per_owner: 3,
            subagent_depth: 1,
            subagents_per_parent: 8,
            subagents_total: 32,
            queued_prompts: 100,
            crashes_before_parking: 3,
            stalled_after_ms: 5 * 60 * 1000,
        }
    }
}
