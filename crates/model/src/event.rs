//! Events: everything that ever changes the state, and what clients are told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Failure, Prompt, TurnOutcome};
use crate::ask::{Ask, Settlement};
use crate::ids::{AgentId, AskId, ItemIndex, ProfileId, PromptId, RuleId, Timestamp, TurnId, WaitId};
use crate::item::{Item, ItemBody, PlanEntry};
use crate::limits::Limits;
use crate::policy::{PermissionMode, Rule};
use crate::profile::{DriverKind, ProfileRevision, ProfileSummary};
use crate::relation::TaskResult;
use crate::session::{SessionInfo, SessionOption, SlashCommand, Usage};
use crate::team::{Report, Wait};
use crate::worktree::Worktree;

/// An event with its number and time. Numbers grow by one and are never reused, over restarts too.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stamped {
    /// Its number.
    pub seq: u64,
    /// When it was committed.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every event is of an agent")]
pub enum Event {
    /// Something happened to an agent.
    Agent {
        /// To which one.
        agent: AgentId,
        /// What.
        #[serde(flatten)]
        change: AgentEvent,
    },
    /// A rule was set.
    RuleAdded {
        /// The rule.
        rule: Rule,
    },
    /// A rule was removed.
    RuleRemoved {
        /// Which one.
        rule: RuleId,
    },
    /// The profiles or their availability changed. Not stored: `config.toml` is where they live.
    ProfilesChanged {
        /// All of them.
        profiles: Vec<ProfileSummary>,
    },
    /// Other limits are in force. Not stored: `config.toml` is where they live.
    LimitsChanged {
        /// All of them.
        limits: Limits,
    },
}

/// Something that happened to an agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum AgentEvent {
    /// It came to be.
    Created {
        /// As it was made.
        record: Box<Agent>,
    },
    /// It has a new name.
    Renamed {
        /// The name.
        name: String,
    },
    /// It runs by another profile from now on.
    Rebound {
        /// Which one.
        profile: ProfileId,
        /// That profile's driver.
        driver: DriverKind,
    },
    /// A process is being started for it.
    Starting {
        /// The number of the process.
        generation: u32,
        /// The version of the profile it is started with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile_revision: Option<ProfileRevision>,
    },
    /// Its session is open.
    Ready {
        /// The session.
        session: SessionInfo,
    },
    /// Its session cannot be taken up again: the next process begins a new one.
    SessionLost,
    /// Its process was ended and is not needed until the next prompt.
    Rested,
    /// Its process ended or could not be started.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// It was closed.
    Closed,
    /// A prompt was accepted.
    PromptQueued {
        /// The prompt.
        prompt: Prompt,
    },
    /// A waiting prompt has a new text.
    PromptEdited {
        /// Which one.
        prompt: PromptId,
        /// The text.
        text: String,
    },
    /// A waiting prompt was taken back.
    PromptDropped {
        /// Which one.
        prompt: PromptId,
    },
    /// A waiting prompt is to join the turn that runs.
    PromptSteered {
        /// Which one.
        prompt: PromptId,
    },
    /// The running turn was given a waiting prompt, which waits until that takes it in.
    PromptOffered {
        /// Which one.
        prompt: PromptId,
    },
    /// The running turn took in a prompt that it was given.
    PromptJoined {
        /// Which one.
        prompt: PromptId,
    },
    /// The turn that was given a prompt did not take it in: it waits for its own turn like any other.
    PromptReturned {
        /// Which one.
        prompt: PromptId,
    },
    /// A turn began with the first `prompts` of the queue.
    TurnStarted {
        /// Which turn.
        turn: TurnId,
        /// The prompts it took.
        prompts: Vec<PromptId>,
    },
    /// The turn was told to stop.
    TurnInterrupted,
    /// The turn shows no sign of life, or does again.
    TurnStalled {
        /// Which of the two.
        stalled: bool,
    },
    /// The turn is over.
    TurnEnded {
        /// How it ended.
        outcome: TurnOutcome,
    },
    /// A new item at the end of the transcript.
    ItemAdded {
        /// The item.
        item: Item,
    },
    /// An item changed; its place, turn and time stay.
    ItemChanged {
        /// Which item.
        index: ItemIndex,
        /// Whether nothing more will be added to it.
        done: bool,
        /// All of what it says now.
        body: ItemBody,
    },
    /// A text item grew.
    TextAppended {
        /// Which item.
        index: ItemIndex,
        /// How many bytes it had before.
        offset: u64,
        /// What came.
        text: String,
    },
    /// Nothing more will be added to a text item.
    TextDone {
        /// Which item.
        index: ItemIndex,
    },
    /// It asks a person.
    Asked {
        /// The approval or question.
        ask: Ask,
    },
    /// An approval or question was settled.
    Settled {
        /// Which one.
        ask: AskId,
        /// How.
        settlement: Settlement,
    },
    /// Its plan changed.
    PlanChanged {
        /// All of it.
        plan: Vec<PlanEntry>,
    },
    /// It used more.
    UsageChanged {
        /// The figures.
        usage: Usage,
    },
    /// What can be chosen for its session, or what is chosen, changed.
    OptionsChanged {
        /// All of it.
        options: Vec<SessionOption>,
    },
    /// Its slash commands changed.
    CommandsChanged {
        /// All of them.
        commands: Vec<SlashCommand>,
    },
    /// Its title changed.
    TitleChanged {
        /// The title.
        title: String,
    },
    /// It says something else that it is doing, or nothing any more.
    NoteChanged {
        /// Its words.
        note: Option<String>,
    },
    /// Its process came for the tools by which agents reach each other.
    TeamToolsConnected,
    /// Its permission mode changed.
    PermissionsChanged {
        /// The mode.
        permissions: PermissionMode,
    },
    /// A git worktree was made for it, beside what it was created with.
    WorktreeAdded {
        /// The worktree.
        worktree: Worktree,
    },
    /// A git worktree that was made for it is gone.
    WorktreeRemoved {
        /// Its folder.
        path: String,
    },
    /// Its task as a sub-agent is over.
    TaskSettled {
        /// How.
        result: TaskResult,
    },
    /// It was reminded to give its task's result.
    TaskReminded,
    /// How far its task's result has come to the parent changed.
    TaskReported {
        /// How far.
        report: Report,
    },
    /// It waits for others in a call.
    WaitBegan {
        /// The call.
        wait: Wait,
    },
    /// It waits no more in that call.
    WaitEnded {
        /// Which call.
        wait: WaitId,
    },
    /// Another agent wants to know what it says to a message that waits.
    Inquired {
        /// Which message.
        prompt: PromptId,
        /// Who wants to know.
        by: AgentId,
    },
    /// What came of an inquiry is known.
    Answered {
        /// Which message.
        prompt: PromptId,
        /// What came of it.
        text: String,
    },
    /// How far an answer has come to the one who wanted it changed.
    AnswerReported {
        /// To which message.
        prompt: PromptId,
        /// How far.
        report: Report,
    },
    /// It was shown messages of its queue before their turn.
    MessagesShown {
        /// Which ones.
        prompts: Vec<PromptId>,
        /// Whether the daemon that showed them is still the same.
        certain: bool,
    },
    /// It may not have seen messages that it was shown: they wait for their turn again.
    MessagesHidden {
        /// Which ones.
        prompts: Vec<PromptId>,
    },
    /// It has seen messages of its queue before their turn, which they need no more.
    MessagesRead {
        /// Which ones.
        prompts: Vec<PromptId>,
    },
}

impl Event {
    /// An event of one agent.
    pub fn of(agent: AgentId, change: AgentEvent) -> Self {
        Self::Agent { agent, change }
    }

    /// The agent it concerns.
    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Self::Agent { agent, .. } => Some(*agent),
            _ => None,
        }
    }
}

impl AgentEvent {
    /// Whether it is about the transcript alone and leaves the rest of the agent as it is but for the cursor.
    pub fn is_transcript(&self) -> bool {
        matches!(
            self,
            Self::ItemAdded { .. }
                | Self::ItemChanged { .. }
                | Self::TextAppended { .. }
                | Self::TextDone { .. }
        )
    }
}

#[cfg(test)]
mod tests;
