//! The limits on how many agents there may be and on what they use. All can be configured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many agents may exist and run, and what they may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Companions of one owner.
    pub companions_per_owner: u32,
    /// How deep sub-agents may nest: 1 means that a sub-agent has none itself.
    pub subagent_depth: u32,
    /// Sub-agents of one parent that run at the same time; further ones are queued.
    pub subagents_per_parent: u32,
    /// Sub-agents in all that run at the same time; further ones are queued.
    pub subagents_total: u32,
    /// Sub-agents that may be queued.
    pub subagents_queued: u32,
    /// Seconds that a sub-agent may work on its task; 0: as long as it takes.
    pub subagent_seconds: u64,
    /// Tokens that all sub-agents below one agent may use; 0: any number.
    pub tree_tokens: u64,
    /// US cents that all sub-agents below one agent may cost; 0: any number.
    pub tree_cents: u64,
    /// Messages between two agents within [`Limits::MESSAGE_WINDOW_MS`].
    pub messages_between_two: u32,
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

    /// Messages longer ago than this do not add up.
    pub const MESSAGE_WINDOW_MS: i64 = 10 * 60 * 1000;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            companions_per_owner: 3,
            subagent_depth: 1,
            subagents_per_parent: 8,
            subagents_total: 32,
            subagents_queued: 256,
            subagent_seconds: 2 * 60 * 60,
            tree_tokens: 0,
            tree_cents: 0,
            messages_between_two: 30,
            queued_prompts: 100,
            crashes_before_parking: 3,
            stalled_after_ms: 5 * 60 * 1000,
        }
    }
}
