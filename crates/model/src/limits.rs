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

/// A limit by its name in `config.toml`, and what it limits, in few words.
pub const NAMED: [(&str, &str); 12] = [
    ("companions_per_owner", "companions of one agent"),
    ("subagent_depth", "how deep sub-agents may nest"),
    ("subagents_per_parent", "that run for one parent at a time"),
    ("subagents_total", "that run in all at a time"),
    ("subagents_queued", "that may wait for room"),
    ("subagent_seconds", "for one task; 0: as long as it takes"),
    ("tree_tokens", "for all below one agent; 0: any number"),
    ("tree_cents", "US cents, likewise; 0: any number"),
    ("messages_between_two", "between two agents in ten minutes"),
    ("queued_prompts", "that may wait for one agent"),
    ("crashes_before_parking", "in ten minutes until it is parked"),
    ("stalled_after_ms", "without a sign of life"),
];

impl Limits {
    /// A limit by its name.
    pub fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            "companions_per_owner" => self.companions_per_owner.into(),
            "subagent_depth" => self.subagent_depth.into(),
            "subagents_per_parent" => self.subagents_per_parent.into(),
            "subagents_total" => self.subagents_total.into(),
            "subagents_queued" => self.subagents_queued.into(),
            "subagent_seconds" => self.subagent_seconds,
            "tree_tokens" => self.tree_tokens,
            "tree_cents" => self.tree_cents,
            "messages_between_two" => self.messages_between_two.into(),
            "queued_prompts" => self.queued_prompts.into(),
            "crashes_before_parking" => self.crashes_before_parking.into(),
            "stalled_after_ms" => self.stalled_after_ms,
            _ => return None,
        })
    }

    /// Sets a limit by its name, or says why it cannot be set.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
        let count = match name {
            "companions_per_owner" => &mut self.companions_per_owner,
            "subagent_depth" => &mut self.subagent_depth,
            "subagents_per_parent" => &mut self.subagents_per_parent,
            "subagents_total" => &mut self.subagents_total,
            "subagents_queued" => &mut self.subagents_queued,
            "messages_between_two" => &mut self.messages_between_two,
            "queued_prompts" => &mut self.queued_prompts,
            "crashes_before_parking" => &mut self.crashes_before_parking,
            other => {
                let amount = match other {
                    "subagent_seconds" => &mut self.subagent_seconds,
                    "tree_tokens" => &mut self.tree_tokens,
                    "tree_cents" => &mut self.tree_cents,
                    "stalled_after_ms" => &mut self.stalled_after_ms,
                    _ => return Err(format!("there is no limit `{name}`")),
                };
                // The file has signed numbers.
                *amount = i64::try_from(value)
                    .map(i64::unsigned_abs)
                    .map_err(|_| format!("`{name}` can be at most {}", i64::MAX))?;
                return Ok(());
            }
        };
        *count = u32::try_from(value).map_err(|_| format!("`{name}` can be at most {}", u32::MAX))?;
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_read_and_set_by_its_name() {
        let written = serde_json::to_value(Limits::default()).unwrap();
        let names: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.len(), NAMED.len());
        let mut limits = Limits::default();
        for (number, (name, _)) in NAMED.iter().enumerate() {
            assert!(names.contains(name), "{name}");
            limits.set(name, number as u64 + 7).unwrap();
            assert_eq!(limits.get(name), Some(number as u64 + 7), "{name}");
            assert!(limits.set(name, u64::MAX).is_err(), "{name}");
        }
        assert!(limits.set("patience", 1).is_err());
        assert_eq!(limits.get("patience"), None);
    }
}
