//! What an agent tells about its session: who it is, what can be chosen, what it used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Timestamp;

/// The agent's own session, as far as Consort needs to know it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// The agent's name for the session, with which it can be resumed.
    pub id: String,
    /// The program's name and version, where it says them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Whether an earlier session was taken up again.
    #[serde(default)]
    pub resumed: bool,
    /// Whether it can be taken up again after its process ended.
    #[serde(default)]
    pub resumable: bool,
    /// Whether the program said that it cannot branch a session off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cannot_fork: bool,
    /// Whether prompts may hold images.
    #[serde(default)]
    pub images: bool,
    /// Whether prompts may hold whole files.
    #[serde(default)]
    pub files: bool,
}

/// A session that an agent's program keeps, Consort's or not.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct KeptSession {
    /// The program's name for it, with which it can be taken up.
    pub id: String,
    /// What it is about, in one line, where the program says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The folder it worked in.
    pub cwd: String,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// Something that can be chosen for the session: its mode, its model, or anything else the agent offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionOption {
    /// The agent's name for the option; `mode` and `model` are the two that every driver maps.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What is chosen now.
    pub current: String,
    /// What can be chosen.
    pub choices: Vec<Choice>,
}

/// One value of a [`SessionOption`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The agent's name for the value.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A command that the agent understands when a prompt begins with `/name`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What to type after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Tokens and money. A field is none where the agent does not say.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read, over the agent's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written, over the agent's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens in the context now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// Tokens that the context can hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// Cost in US dollars, over the agent's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Takes over every figure that `newer` knows.
    pub fn update(&mut self, newer: &Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.context_used = newer.context_used.or(self.context_used);
        self.context_size = newer.context_size.or(self.context_size);
        self.cost = newer.cost.or(self.cost);
    }
}
