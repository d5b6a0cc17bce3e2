//! Asks: what an agent wants from a person. An approval ("may I run this") or a question ("which of these").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, AskId, ItemIndex, RuleId, Timestamp};
use crate::item::ToolCall;

/// An open approval or question.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    /// Its id, the one that `consort approve` takes.
    pub id: AskId,
    /// How the driver calls it; only the driver of its agent understands this.
    pub key: String,
    /// Where its record stands in the transcript.
    pub item: ItemIndex,
    /// When it was asked.
    pub at: Timestamp,
    /// What is asked, in one line.
    pub title: String,
    /// What is asked, whole.
    pub body: AskBody,
}

/// What is asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "ask", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every ask is an approval")]
pub enum AskBody {
    /// May this tool call run.
    Approval {
        /// The call, with its command or diff in full.
        tool: ToolCall,
        /// The answers that the agent itself offers.
        options: Vec<AnswerOption>,
    },
    /// A question with choices, free text, or a form.
    Question(Question),
}

impl AskBody {
    /// The word for it in lists and `--json`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Approval { .. } => "approval",
            Self::Question(_) => "question",
        }
    }
}

/// A question to a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question itself.
    pub text: String,
    /// A JSON schema of the object that answers it; null for plain text.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub schema: Value,
    /// A page to open instead of answering here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// An answer that an agent offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AnswerOption {
    /// The agent's name for it. Two options may share a kind; the id tells them apart.
    pub id: String,
    /// What it says on the button.
    pub name: String,
    /// What it means.
    pub kind: OptionKind,
}

/// What an offered answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// Allow this call.
    AllowOnce,
    /// Allow this call and others like it; how long is the agent's business.
    AllowAlways,
    /// Deny this call.
    RejectOnce,
    /// Deny this call and others like it.
    RejectAlways,
}

impl OptionKind {
    /// Whether it lets the call run.
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// How far an allowance reaches beyond the call at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// This call only.
    Once,
    /// Calls like it by this agent.
    Session,
    /// Calls like it by any agent of this profile, kept as a rule that can be seen and removed.
    Always,
    /// Calls like it by any agent that works in this agent's folder, kept likewise.
    Project,
}

/// A person's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Let it run.
    Allow {
        /// How far that reaches.
        scope: GrantScope,
        /// Which calls count as like it, such as `git *` for a command: a command pattern, a path pattern or a title, by
        /// the kind of the call, which it must cover. None: the very same call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// Do not let it run.
    Deny {
        /// What to do instead, told to the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// One of the answers that the agent offers.
    Choose {
        /// Its id.
        option: String,
    },
    /// The answer to a question: text, or an object that fits its schema. To an approval, an object allows the call with
    /// this input instead of its own, where the agent's protocol can carry that.
    Reply {
        /// The answer.
        value: Value,
    },
    /// Deny, and stop the turn.
    Stop,
}

impl Answer {
    /// Lets the very call run, and the same again as far as `scope` reaches.
    pub fn allow(scope: GrantScope) -> Self {
        Self::Allow { scope, pattern: None }
    }
}

/// How an ask ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Settlement {
    /// The answer; none if it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Who or what gave it.
    pub by: SettledBy,
    /// When.
    pub at: Timestamp,
}

impl Settlement {
    /// Who settled it and how, in few words: for whoever comes too late.
    pub fn words(&self) -> &'static str {
        let allowed = matches!(self.answer, Some(Answer::Allow { .. }));
        let denied = matches!(self.answer, Some(Answer::Deny { .. } | Answer::Stop));
        match (self.by, allowed, denied) {
            (SettledBy::Person, true, _) => "a person allowed it",
            (SettledBy::Person, _, true) => "a person denied it",
            (SettledBy::Person, ..) => "a person answered it",
            (SettledBy::Rule { .. }, true, _) => "a rule allowed it",
            (SettledBy::Rule { .. }, ..) => "a rule denied it",
            (SettledBy::Mode, true, _) => "the permission mode allowed it",
            (SettledBy::Mode, ..) => "the permission mode denied it",
            (SettledBy::Relation { .. }, ..) => "it was allowed, since sub-agents may read and search",
            (SettledBy::Cancelled, ..) => "it was cancelled",
            (SettledBy::AgentEnded, ..) => "its agent's process ended",
        }
    }
}

/// An ask that was settled lately, kept so that whoever answers too late learns how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SettledAsk {
    /// Which one.
    pub id: AskId,
    /// Who settled it and how, in few words.
    pub how: String,
}

/// Who settled an ask. Never an agent: only a person, or a rule or mode that a person set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum SettledBy {
    /// A person, in any client.
    Person,
    /// A rule that a person set.
    Rule {
        /// Which one.
        rule: RuleId,
    },
    /// The agent's permission mode.
    Mode,
    /// The relation: a sub-agent's reading and searching is allowed.
    Relation {
        /// The sub-agent's parent.
        parent: AgentId,
    },
    /// The turn was interrupted or ended, or the agent took it back.
    Cancelled,
    /// The agent's process ended.
    AgentEnded,
}
