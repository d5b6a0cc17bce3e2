//! What ties agents together: briefs, tasks, waits, inquiries and letters.
//!
//! Owns the records; who may do what with them stands in [`crate::decide`]. All of them are small: texts of results and
//! answers are cut to [`MAX_RESULT`], and only the last letters are remembered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, PromptId, Timestamp, TurnId, WaitId};

/// The longest result or answer that is handed on whole, in bytes; of a longer one the head and the tail are.
pub const MAX_RESULT: usize = 32 << 10;

/// How many letters an agent remembers.
pub const REMEMBERED_LETTERS: usize = 64;

/// How much of a letter's text is remembered, in characters.
const PREVIEW: usize = 200;

/// What an agent was given beyond its profile.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Brief {
    /// What it is there for, in a few words, for people and for other agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The model it starts with in place of its profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The only tools that it may use: kinds of tools, such as `read`, or names of its program's own; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

impl Brief {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How far a sub-agent's task is, beside its result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Task {
    /// Whether it was reminded to give its result.
    pub reminded: bool,
    /// Whether the parent has the result.
    pub report: Report,
    /// How long it has worked, in milliseconds, but for the time since `working_since`. What it waited for a person does
    /// not count.
    pub worked_ms: u64,
    /// Since when it works; none: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
}

impl Task {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How long it has worked by now, in milliseconds.
    pub fn worked(&self, now: Timestamp) -> u64 {
        let since = self.working_since.map_or(0, |since| now.0.saturating_sub(since.0));
        self.worked_ms + u64::try_from(since).unwrap_or(0)
    }

    /// Lets the clock run or stand from now on.
    pub(crate) fn keep_time(&mut self, works: bool, now: Timestamp) {
        if works == self.working_since.is_some() {
            return;
        }
        self.worked_ms = self.worked(now);
        self.working_since = works.then_some(now);
    }
}

/// Whether what is owed to an agent has reached it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// Not yet.
    #[default]
    Due,
    /// It was the answer to a call; whether the agent saw that answer is not known yet.
    HandedOut {
        /// Whether the daemon that answered is still the same: else the answer may never have been sent.
        certain: bool,
    },
    /// It has.
    Made,
}

/// A call in which an agent waits for others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Which call.
    pub id: WaitId,
    /// What it waits for.
    pub on: Vec<Awaited>,
}

/// Something that an agent waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "awaited", rename_all = "snake_case")]
pub enum Awaited {
    /// Another agent's task, or that it has nothing to do any more.
    Agent {
        /// Which agent.
        agent: AgentId,
    },
    /// Another agent's answer.
    Answer {
        /// Which agent.
        agent: AgentId,
        /// To which message.
        prompt: PromptId,
    },
}

impl Awaited {
    /// The agent that is waited for.
    pub fn agent(self) -> AgentId {
        match self {
            Self::Agent { agent } | Self::Answer { agent, .. } => agent,
        }
    }
}

/// A message whose sender wants what the turn says that it begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Inquiry {
    /// The message.
    pub prompt: PromptId,
    /// Who wants to know.
    pub by: AgentId,
    /// The turn that the message began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Whether the sender has it.
    #[serde(default)]
    pub report: Report,
}

/// A message as it is remembered by the one it went to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Letter {
    /// The message.
    pub prompt: PromptId,
    /// Who sent it.
    pub from: AgentId,
    /// When.
    pub at: Timestamp,
    /// How far it is.
    pub state: LetterState,
    /// How its text begins; the whole of it stands in the recipient's transcript.
    pub preview: String,
}

impl Letter {
    /// A letter that just arrived.
    pub(crate) fn new(prompt: PromptId, from: AgentId, at: Timestamp, text: &str) -> Self {
        let preview = match text.char_indices().nth(PREVIEW) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        };
        Self { prompt, from, at, state: LetterState::Queued, preview }
    }
}

/// How far a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LetterState {
    /// It waits for the recipient.
    Queued,
    /// The recipient was given it.
    Delivered,
    /// The recipient has worked on it.
    Read,
    /// A person took it back.
    Dropped,
}

impl LetterState {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Dropped => "dropped",
        }
    }
}

/// The words in the answer to a call that prove that the agent saw a sub-agent's result.
pub fn result_receipt(child: AgentId) -> String {
    format!("result-{child}")
}

/// The words in the answer to a call that prove that the agent saw a message, or the answer to one.
pub fn message_receipt(prompt: PromptId) -> String {
    format!("message-{prompt}")
}

/// Head and tail of a text that is too long to be handed on whole, with where all of it is.
pub fn abridged(text: &str, whole_in: &str) -> String {
    let half = MAX_RESULT / 2;
    let head_end = (0..=half.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let tail_start = text.len().saturating_sub(half);
    let tail_start = (tail_start..=text.len()).find(|start| text.is_char_boundary(*start)).unwrap_or(0);
    let (head, tail) = (text.get(..head_end).unwrap_or_default(), text.get(tail_start..).unwrap_or_default());
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    format!("{head}\n\n[... {left_out} bytes are left out here; all of it is in {whole_in} ...]\n\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_head_and_tail_whole_characters_too() {
        let text = format!("begin {} end", "é".repeat(MAX_RESULT));
        let short = abridged(&text, "/x/all.txt");
        assert!(short.starts_with("begin é") && short.ends_with("é end"));
        assert!(short.contains("all of it is in /x/all.txt"));
        assert!(short.len() < MAX_RESULT + 200, "{}", short.len());
    }

    #[test]
    fn the_clock_of_a_task_stands_while_it_does_not_work() {
        let mut task = Task::default();
        task.keep_time(true, Timestamp(100));
        task.keep_time(true, Timestamp(120));
        assert_eq!(task.worked(Timestamp(150)), 50);
        task.keep_time(false, Timestamp(160));
        assert_eq!(task.worked(Timestamp(900)), 60);
        task.keep_time(true, Timestamp(1000));
        assert_eq!(task.worked(Timestamp(1001)), 61);
        assert_eq!(task.worked(Timestamp(0)), 60, "a clock that was set back takes nothing away");
    }

    #[test]
    fn a_letter_remembers_how_its_text_begins() {
        let letter = |text: &str| {
            Letter::new(PromptId::new(uuid::Uuid::nil()), AgentId::new(uuid::Uuid::nil()), Timestamp(0), text)
        };
        assert_eq!(letter("short").preview, "short");
        assert_eq!(letter(&"ü".repeat(300)).preview, format!("{}...", "ü".repeat(200)));
    }
}
