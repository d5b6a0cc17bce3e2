//! What the screen remembers from one time to the next, in `ui.json` beside the settings: panes, drafts, sent prompts.
//!
//! Nothing here matters to the daemon or to an agent. A file that cannot be read counts as none, and is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use consort_model::AgentId;
use serde::{Deserialize, Serialize};

use crate::desk::Desk;

/// Prompts that are remembered.
const MAX_HISTORY: usize = 200;

/// The longest prompt that is remembered, in bytes.
const MAX_REMEMBERED: usize = 64 << 10;

/// What is remembered.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Workspaces and panes.
    pub desk: Desk,
    /// Prompts that were begun and not sent.
    pub drafts: BTreeMap<AgentId, String>,
    /// A prompt that was begun for an agent that does not exist yet.
    pub blank_draft: String,
    /// Prompts that were sent, oldest first.
    pub history: Vec<String>,
    /// Agents with something new since they were last looked at.
    pub unread: BTreeSet<AgentId>,
    /// When the screen was left, in milliseconds since 1970; 0: never.
    pub left_at: i64,
    /// The name of the theme; none: as the terminal is.
    pub theme: Option<String>,
    /// Whether the list of agents is hidden.
    pub sidebar_hidden: bool,
    /// What rings or pops up.
    pub notices: Notices,
    /// Whether images are told in words alone.
    pub pictures_hidden: bool,
}

/// How a person who looks elsewhere is told that an agent needs them or is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notices {
    /// By the terminal: its bell, and its own notifications where it has such.
    #[default]
    Terminal,
    /// By the desktop as well, for terminals that have none.
    Desktop,
    /// Not at all.
    Off,
}

impl Notices {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Terminal, Self::Desktop, Self::Off];

    /// What people call it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Terminal => "by the terminal",
            Self::Desktop => "desktop too",
            Self::Off => "off",
        }
    }

    /// The next one, and after the last the first.
    pub fn next(self) -> Self {
        match self {
            Self::Terminal => Self::Desktop,
            Self::Desktop => Self::Off,
            Self::Off => Self::Terminal,
        }
    }
}

impl Memory {
    /// What was remembered last time.
    pub fn load(path: &Path) -> Self {
        let text = std::fs::read(path).unwrap_or_default();
        let mut memory: Self = serde_json::from_slice(&text).unwrap_or_default();
        memory.desk = memory.desk.mended();
        memory
    }

    /// Keeps it for the next time: whole or not at all.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        let beside = path.with_extension(format!("json.{}", std::process::id()));
        let text = serde_json::to_vec(self)?;
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&text)?;
        drop(file);
        std::fs::rename(&beside, path)
    }

    /// Remembers a prompt that was sent.
    pub fn sent(&mut self, prompt: &str) {
        if prompt.len() > MAX_REMEMBERED || self.history.last().is_some_and(|last| last == prompt) {
            return;
        }
        self.history.push(prompt.to_owned());
        if self.history.len() > MAX_HISTORY {
            self.history.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::agent_id;

    #[test]
    fn what_was_remembered_comes_back_and_damage_counts_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ui.json");
        assert_eq!(Memory::load(&path), Memory::default());
        let mut memory = Memory::default();
        memory.drafts.insert(agent_id(1), "half a".into());
        memory.sent("one");
        memory.sent("one");
        assert_eq!(memory.history, ["one"]);
        memory.save(&path).unwrap();
        assert_eq!(Memory::load(&path), memory);
        std::fs::write(&path, "{\"desk\":{\"workspaces\":[],\"current\":7}}").unwrap();
        assert_eq!(Memory::load(&path), Memory::default());
        std::fs::write(&path, "garbage").unwrap();
        assert_eq!(Memory::load(&path), Memory::default());
    }
}
