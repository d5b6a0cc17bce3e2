//! The pure heart of Consort: its words as types, its state, and every decision about them.
//!
//! Owns the vocabulary (profiles, agents, turns, items, asks), the commands and events, [`State::apply`], and the
//! decisions that turn a command into events or a [`Refusal`]. Leaves all I/O, time and randomness to its callers:
//! a timestamp and fresh ids are arguments here. The daemon and every client run this same code, so that a replica
//! cannot drift from what it mirrors.
//!
//! Invariant: state changes by [`State::apply`] alone, and `apply` never fails; whether an event may happen is
//! decided before, in [`decide`], [`policy`] and [`transcript`].
#![deny(missing_docs)]

pub mod agent;
pub mod ask;
pub mod command;
pub mod decide;
pub mod event;
pub mod ids;
pub mod image;
pub mod item;
pub mod limits;
pub mod policy;
pub mod profile;
pub mod program;
pub mod relation;
pub mod session;
pub mod signal;
pub mod state;
pub mod team;
pub mod transcript;
pub mod visibility;
pub mod worktree;

pub use agent::{
    Agent, Failure, Fork, Lifecycle, Prompt, PromptOrigin, Status, TeamTools, Turn, TurnOutcome,
};
pub use ask::{
    Answer, AnswerOption, Ask, AskBody, GrantScope, OptionKind, Question, SettledAsk, SettledBy, Settlement,
};
pub use command::{Actor, CreateAgent, Refusal};
pub use event::{Event, Stamped};
pub use ids::{
    AgentId, AskId, ItemIndex, ProfileId, PromptId, RuleId, Timestamp, ToolCallId, TurnId, WaitId,
    WorkspaceId,
};
pub use item::{
    Attachment, Diff, Image, Item, ItemBody, NoticeLevel, PlanEntry, PlanStatus, ToolCall, ToolKind,
    ToolStatus,
};
pub use limits::Limits;
pub use policy::{Effect, PermissionMode, Rule, RuleOrigin, RuleScope};
pub use profile::{
    ApprovalPolicy, Availability, DriverKind, EnvironmentChange, Profile, ProfileRevision, ProfileSummary,
    RevisionKey, SandboxMode,
};
pub use program::{Login, Program, Support};
pub use relation::{Relation, TaskResult};
pub use session::{Choice, KeptSession, SessionInfo, SessionOption, SlashCommand, Usage};
pub use signal::Signal;
pub use state::State;
pub use team::{Awaited, Brief, Letter, LetterState, Report, Wait};

/// The version of everything this crate serialises. A reader refuses what is newer than itself.
pub const MODEL_VERSION: u32 = 1;
pub use worktree::{ChangeKind, Changes, DiffText, FileChange, Integration, Worktree};
