//! The agent: what Consort knows of one participant without its transcript.
//!
//! This is what the daemon holds in memory per agent and what a client's replica holds, so it stays small however long
//! the conversation grows. Status is derived from it, never stored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::{Ask, SettledAsk};
use crate::ids::{AgentId, ItemIndex, ProfileId, PromptId, Timestamp, ToolCallId, TurnId};
use crate::item::{Attachment, PlanEntry};
use crate::policy::PermissionMode;
use crate::profile::{DriverKind, ProfileRevision};
use crate::relation::Relation;
use crate::session::{SessionInfo, SessionOption, SlashCommand, Usage};
use crate::team::{Brief, Inquiry, Letter, Task, Wait};
use crate::worktree::Worktree;

/// One participant: one profile, one working directory, one conversation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Who it is.
    pub id: AgentId,
    /// What people call it; unique among agents that are not closed.
    pub name: String,
    /// How it is run.
    pub profile: ProfileId,
    /// The protocol it speaks.
    pub driver: DriverKind,
    /// Where it works.
    pub cwd: String,
    /// The agent that created it; none: a person did.
    pub created_by: Option<AgentId>,
    /// How it stands to its creator.
    #[serde(flatten)]
    pub relation: Relation,
    /// What it was given beyond its profile.
    #[serde(default, skip_serializing_if = "Brief::is_empty")]
    pub brief: Brief,
    /// How far its task is, for a sub-agent.
    #[serde(default, skip_serializing_if = "Task::is_empty")]
    pub task: Task,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether its process is there.
    pub lifecycle: Lifecycle,
    /// How many processes it has had; each one's runner has its own folder.
    pub generation: u32,
    /// The version of its profile that the newest process was started with; none: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_revision: Option<ProfileRevision>,
    /// When its processes crashed lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashes: Vec<Timestamp>,
    /// What its approvals follow.
    pub permissions: PermissionMode,
    /// The turn it is in.
    pub turn: Option<Turn>,
    /// How the last turn ended.
    pub last_outcome: Option<TurnOutcome>,
    /// When it last ended a turn or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Prompts that wait for their turn, in order.
    pub queue: VecDeque<Prompt>,
    /// Prompts taken lately, so that the same prompt sent again is recognised.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub taken: VecDeque<PromptId>,
    /// Prompts of the queue that its running turn was given and has not taken in yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<PromptId>,
    /// Messages in the queue that it was shown before their turn; whether the daemon that showed them is still the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shown: BTreeMap<PromptId, bool>,
    /// The last messages from other agents, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub letters: VecDeque<Letter>,
    /// What other agents want to know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inquiries: Vec<Inquiry>,
    /// The calls in which it waits for other agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Its open approvals and questions, oldest first.
    pub asks: Vec<Ask>,
    /// Approvals and questions that were settled lately.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub settled: VecDeque<SettledAsk>,
    /// The agent's own session.
    pub session: Option<SessionInfo>,
    /// The session that its own one branches off from; taken up with its first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// The git worktrees that were made for it, the one it works in first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worktrees: Vec<Worktree>,
    /// What can be chosen for the session.
    pub options: Vec<SessionOption>,
    /// Its slash commands.
    pub commands: Vec<SlashCommand>,
    /// Its plan.
    pub plan: Vec<PlanEntry>,
    /// What it used.
    pub usage: Usage,
    /// The session's title.
    pub title: Option<String>,
    /// What it says that it is doing, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether its newest process uses the tools by which agents reach each other.
    #[serde(default)]
    pub team_tools: TeamTools,
    /// Where its transcript stands.
    pub cursor: Cursor,
}

/// Whether an agent's process uses the tools by which agents reach each other. They are offered to every process, and
/// programs differ in whether they take the offer and whether they say so; what counts is that they come for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamTools {
    /// It had no turn yet, so it may still come for them.
    #[default]
    Unknown,
    /// It came for them.
    Connected,
    /// It went through a turn without them.
    Missing,
}

/// Where an agent's conversation branched off from another's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The other agent.
    pub of: AgentId,
    /// The other agent's session, as its program calls it.
    pub session: String,
}

/// Where a transcript stands: what the next signal needs to know about the items before it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cursor {
    /// How many items there are.
    pub items: u64,
    /// The text that is being written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Writing>,
    /// The tool calls of this turn, and those of earlier ones that go on in the background.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<ToolCallId, ItemIndex>,
    /// Those of them that have not ended.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub running: BTreeSet<ToolCallId>,
    /// The plan of this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<ItemIndex>,
}

/// A text item that grows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Writing {
    /// Which item.
    pub index: ItemIndex,
    /// Whether it is thinking rather than saying.
    pub thinking: bool,
    /// How many bytes it has.
    pub len: u64,
    /// The tool call it is nested in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ToolCallId>,
}

/// Whether an agent's process is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Lifecycle {
    /// A sub-agent past the limit: it is started when another one is done.
    Queued,
    /// Its process is being started, or its session opened.
    Starting,
    /// Its session takes prompts.
    Ready,
    /// It has no process and needs none until the next prompt, which starts one and takes up the session.
    Resting,
    /// Its process ended or could not be started. It can be reopened.
    Failed(Failure),
    /// Closed by a person, an owner, or with its owner. It can be reopened.
    Closed {
        /// When.
        at: Timestamp,
    },
}

/// Why an agent failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// One sentence.
    pub message: String,
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal, if one killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The end of what it wrote to stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// When.
    pub at: Timestamp,
    /// Whether it crashed so often that only an explicit reopening starts it again.
    #[serde(default)]
    pub parked: bool,
}

/// A prompt until its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Which one.
    pub id: TurnId,
    /// When it began.
    pub started_at: Timestamp,
    /// Whether it was told to stop and has not yet.
    #[serde(default)]
    pub interrupted: bool,
    /// Whether there was no sign of life for too long.
    #[serde(default)]
    pub stalled: bool,
    /// Whether it gave its task's result in this turn, which ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub yielded: bool,
}

/// How a turn ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The agent said what it had to say.
    Completed,
    /// It was interrupted.
    Interrupted,
    /// It stopped at a limit or refused.
    Stopped {
        /// Which limit, or that it refused.
        reason: String,
    },
    /// It failed.
    Failed {
        /// Why, in one sentence.
        message: String,
    },
}

/// What someone wants an agent to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Made by the sender, so that sending it again is harmless.
    pub id: PromptId,
    /// Who wrote it.
    pub origin: PromptOrigin,
    /// Its text.
    pub text: String,
    /// Images and files that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Whether it joins the turn that runs, where the agent can take it in; else it waits for its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steers: bool,
    /// When it was accepted.
    pub at: Timestamp,
}

/// Who wrote a prompt. Text from an agent is marked as such and is never a person's consent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum PromptOrigin {
    /// A person.
    Person,
    /// Another agent.
    Agent {
        /// Which one.
        agent: AgentId,
    },
    /// Consort itself: a reminder.
    Consort,
}

/// What an agent is doing, for people and for other agents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits until another sub-agent is done.
    Queued,
    /// Its process or session is being started.
    Starting,
    /// It waits for a prompt.
    Idle,
    /// It is in a turn.
    Working,
    /// It waits for a person.
    NeedsInput,
    /// It is in a turn and has shown no sign of life for too long.
    Stalled,
    /// Its process is gone.
    Failed,
    /// It is closed.
    Closed,
}

impl Status {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::NeedsInput => "needs input",
            Self::Stalled => "stalled",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

impl Agent {
    /// What it is doing, derived from everything else.
    pub fn status(&self) -> Status {
        match &self.lifecycle {
            Lifecycle::Closed { .. } => Status::Closed,
            Lifecycle::Failed(_) => Status::Failed,
            _ if !self.asks.is_empty() => Status::NeedsInput,
            Lifecycle::Queued => Status::Queued,
            Lifecycle::Starting => Status::Starting,
            Lifecycle::Ready | Lifecycle::Resting => match &self.turn {
                None => Status::Idle,
                Some(turn) if turn.stalled => Status::Stalled,
                Some(_) => Status::Working,
            },
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Closed { .. })
    }

    /// Whether a process should be there for it.
    pub fn wants_process(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Starting | Lifecycle::Ready)
    }

    /// A prompt that still waits.
    pub fn queued(&self, id: PromptId) -> Option<&Prompt> {
        self.queue.iter().find(|prompt| prompt.id == id)
    }

    /// Whether this prompt was accepted before, waiting or taken.
    pub fn knows_prompt(&self, id: PromptId) -> bool {
        self.queue.iter().any(|prompt| prompt.id == id) || self.taken.contains(&id)
    }
}
