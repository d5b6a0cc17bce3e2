//! Tasks: the agent's own sub-agents and background commands that are at work.
//!
//! The agent tells when a task begins and ends and which tool call began it. A task whose call has a result while it
//! still works is in the background: its work, and what it asks, outlives the turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many tasks are followed.
const TASKS: usize = 256;

/// The tasks at work and the tool calls that began them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tasks(BTreeMap<String, String>);

impl Tasks {
    pub fn begin(&mut self, task: &str, tool: &str) {
        if self.0.len() < TASKS {
            self.0.insert(task.to_owned(), tool.to_owned());
        }
    }

    pub fn end(&mut self, task: &str) {
        self.0.remove(task);
    }

    /// The tool call that began it.
    pub fn tool(&self, task: &str) -> Option<&str> {
        self.0.get(task).map(String::as_str)
    }

    /// Whether the task that this tool call began is at work.
    pub fn works(&self, tool: &str) -> bool {
        self.0.values().any(|began| began == tool)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
