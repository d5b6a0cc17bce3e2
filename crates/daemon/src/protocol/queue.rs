//! Prompts that wait, as clients see them.

use consort_model::{Agent, PromptId, PromptOrigin, Timestamp, decide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prompt that waits for an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueuedPrompt {
    /// Which one.
    pub id: PromptId,
    /// Who wrote it.
    pub origin: PromptOrigin,
    /// Its text.
    pub text: String,
    /// How many images and files go with it.
    pub attachments: usize,
    /// When it was accepted.
    pub at: Timestamp,
    /// Whether it joins the turn that runs, or was given to it already and cannot be changed any more.
    pub joins: bool,
}

impl QueuedPrompt {
    /// What waits for an agent, in order.
    pub fn list(agent: &Agent) -> Vec<Self> {
        let view = |prompt: &consort_model::Prompt| Self {
            id: prompt.id,
            origin: prompt.origin,
            text: prompt.text.clone(),
            attachments: prompt.attachments.len(),
            at: prompt.at,
            joins: decide::joins(agent, prompt.id),
        };
        agent.queue.iter().map(view).collect()
    }
}
