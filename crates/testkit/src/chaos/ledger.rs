//! What a worker did to one agent and what it was told about it.

use std::collections::BTreeMap;

use consort_model::{AgentId, Answer, AskId, PromptId};

/// What may happen to an agent besides the daemon's death.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Nothing: every one of its turns must be complete.
    Peaceful,
    /// Its turns are interrupted.
    Interrupted,
    /// It crashes, its child and its runner are killed, it is reopened.
    Crashing,
    /// It is closed and reopened.
    Closing,
}

impl Fate {
    /// The fate of the agent with this number.
    pub fn of(number: usize) -> Self {
        // Not by the remainder of the workers' count: each of them gets agents of every fate.
        match (number / 4) % 4 {
            0 => Self::Peaceful,
            1 => Self::Interrupted,
            2 => Self::Crashing,
            _ => Self::Closing,
        }
    }
}

/// One agent's ledger.
pub struct Ledger {
    pub agent: AgentId,
    pub fate: Fate,
    pub prompts: Vec<SentPrompt>,
    pub answers: BTreeMap<AskId, Given>,
    /// The names that it may have: one, unless a call to change it broke.
    pub names: Vec<String>,
    pub interrupts: usize,
    pub closes: usize,
    pub process_kills: usize,
    /// What was wrong at once.
    pub findings: Vec<String>,
}

/// A prompt that was sent at least once.
pub struct SentPrompt {
    pub id: PromptId,
    pub tag: String,
    pub text: String,
    pub expected: Expected,
    pub acknowledged: bool,
}

/// What a whole turn says besides its end mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Nothing,
    /// This many numbered words, in order.
    Words(usize),
    /// This many answers to asks.
    Replies(usize),
    /// This text, once.
    Text(String),
    /// The turn has no end of its own.
    Open,
}

/// What was answered to one ask.
#[derive(Default)]
pub struct Given {
    /// The answer that was acknowledged.
    pub acknowledged: Option<Answer>,
    /// All that were tried.
    pub tried: Vec<Answer>,
}

impl Ledger {
    pub fn new(agent: AgentId, fate: Fate, name: String) -> Self {
        Self {
            agent,
            fate,
            prompts: vec![],
            answers: BTreeMap::new(),
            names: vec![name],
            interrupts: 0,
            closes: 0,
            process_kills: 0,
            findings: vec![],
        }
    }
}
