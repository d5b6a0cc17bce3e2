//! Items: the entries of an agent's transcript, in the one normal form that all drivers share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::PromptOrigin;
use crate::ask::{AskBody, Settlement};
use crate::ids::{AskId, ItemIndex, PromptId, Timestamp, ToolCallId, TurnId};

/// An entry of a transcript.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// Its place in the transcript.
    pub index: ItemIndex,
    /// The turn it belongs to; none for what happened between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// When it began.
    pub at: Timestamp,
    /// Whether nothing more will be added to it.
    pub done: bool,
    /// The tool call of the agent's own sub-agent that this is nested in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ToolCallId>,
    /// What it says.
    #[serde(flatten)]
    pub body: ItemBody,
}

/// What an item says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ItemBody {
    /// A prompt that was delivered to the agent.
    User {
        /// The prompt's id.
        prompt: PromptId,
        /// Who wrote it.
        origin: PromptOrigin,
        /// Its text.
        text: String,
        /// Its images and files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// What the agent said.
    Text {
        /// The text so far.
        text: String,
    },
    /// What the agent thought aloud.
    Thinking {
        /// The text so far.
        text: String,
    },
    /// An image that the agent showed.
    Image(Image),
    /// One use of a tool.
    Tool(ToolCall),
    /// The agent's plan as of this point of its turn.
    Plan {
        /// Its entries.
        entries: Vec<PlanEntry>,
    },
    /// An approval or question and how it was settled.
    Ask {
        /// Which one.
        ask: AskId,
        /// What was asked, in one line.
        title: String,
        /// What was asked, whole.
        body: AskBody,
        /// Who settled it and how; none while it is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settlement: Option<Settlement>,
    },
    /// Something to know that is not part of the conversation.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// One sentence.
        text: String,
    },
    /// Something the driver did not know, kept as it came.
    Unknown {
        /// What the agent called it.
        label: String,
        /// The thing itself.
        raw: Value,
    },
}

/// How much a notice matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something did not go as it should, and work goes on.
    Warning,
    /// Something failed.
    Error,
}

/// Something given with a prompt besides its text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Attachment {
    /// An image.
    Image(Image),
    /// A text file, embedded whole.
    File {
        /// Where it is.
        path: String,
        /// What it holds.
        text: String,
    },
}

/// An image, base64 encoded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Such as `image/png`.
    pub mime_type: String,
    /// The encoded bytes.
    pub data: String,
}

/// What a tool does, as far as approvals and pictures care.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Searches.
    Search,
    /// Changes or writes files.
    Edit,
    /// Removes files or data.
    Delete,
    /// Moves or renames files.
    Move,
    /// Runs a command.
    Execute,
    /// Fetches from elsewhere.
    Fetch,
    /// Thinks or plans.
    Think,
    /// Anything else.
    #[default]
    Other,
}

impl ToolKind {
    /// What a call of this kind is called before its title, such as `run` before a command.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Execute => "run",
            Self::Fetch => "fetch",
            Self::Think => "think",
            Self::Other => "tool",
        }
    }
}

/// How far a tool call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Announced, or waiting for an approval.
    #[default]
    Pending,
    /// At work.
    Running,
    /// Ended well.
    Completed,
    /// Ended badly, was denied, or was cut off by the end of its turn.
    Failed,
}

impl ToolStatus {
    /// Whether the call is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// One use of a tool: always whole, never a partial update.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The agent's own name for the call.
    pub id: ToolCallId,
    /// What kind of tool.
    pub tool: ToolKind,
    /// The call in one line, such as the command itself.
    pub title: String,
    /// How far it is.
    pub status: ToolStatus,
    /// The arguments, where the agent shows them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// What came out as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The result in the agent's own form, where it differs from `output`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub raw_output: Value,
    /// The images that came out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The changes to files that it makes or made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<Diff>,
    /// The files it touches, as `path` or `path:line`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<String>,
    /// What the agent said beside the protocol's own fields.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub meta: Value,
}

impl ToolCall {
    /// A call that was announced, of which nothing else is known yet.
    pub fn new(id: ToolCallId, tool: ToolKind, title: impl Into<String>) -> Self {
        Self {
            id,
            tool,
            title: title.into(),
            status: ToolStatus::Pending,
            input: Value::Null,
            output: String::new(),
            raw_output: Value::Null,
            images: Vec::new(),
            diffs: Vec::new(),
            locations: Vec::new(),
            meta: Value::Null,
        }
    }
}

/// A change to one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// Which file.
    pub path: String,
    /// Its text before; none for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// Its text after.
    pub new_text: String,
}

/// One step of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}
