//! Signals: what an agent says, in the one normal form that every driver translates to.
//!
//! A driver turns frames into signals; [`crate::transcript`] turns signals into events. Signals carry no ids or
//! times of Consort's, so a driver needs neither clock nor randomness and gives the same signals for the same frames.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::TurnOutcome;
use crate::ask::AskBody;
use crate::ids::ToolCallId;
use crate::item::{Image, NoticeLevel, PlanEntry, ToolCall};
use crate::policy::PermissionMode;
use crate::session::{SessionInfo, SessionOption, SlashCommand, Usage};

/// One thing that an agent said.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "signal", content = "body", rename_all = "snake_case")]
pub enum Signal {
    /// The session is open and takes prompts.
    Ready(SessionInfo),
    /// There is no such session any more; the next process is to begin a new one.
    SessionLost,
    /// The session cannot be opened; the process is of no further use.
    StartFailed {
        /// One sentence for a person: what failed and what to do.
        message: String,
    },
    /// More of what it says.
    Text {
        /// The piece.
        text: String,
        /// The tool call of its own sub-agent that says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<ToolCallId>,
    },
    /// More of what it thinks.
    Thinking {
        /// The piece.
        text: String,
        /// The tool call of its own sub-agent that thinks it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<ToolCallId>,
    },
    /// It shows an image.
    Image {
        /// The image.
        image: Image,
        /// The tool call of its own sub-agent that shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<ToolCallId>,
    },
    /// What follows is a new message, even if it is text again.
    MessageEnd,
    /// A tool call began or changed; always the whole call.
    Tool {
        /// The call as it stands.
        call: ToolCall,
        /// The tool call of its own sub-agent that makes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<ToolCallId>,
    },
    /// The whole plan as it stands.
    Plan(Vec<PlanEntry>),
    /// Figures that are known now; unknown ones stay as they were.
    Usage(Usage),
    /// Everything that can be chosen for the session, with what is chosen.
    Options(Vec<SessionOption>),
    /// All slash commands.
    Commands(Vec<SlashCommand>),
    /// The session's title.
    Title(String),
    /// It asks a person.
    Ask {
        /// The driver's name for the ask.
        key: String,
        /// What is asked, in one line.
        title: String,
        /// What is asked, whole.
        body: AskBody,
    },
    /// It does not wait for that answer any more.
    AskWithdrawn {
        /// The driver's name for the ask.
        key: String,
    },
    /// It took a prompt that it was given while its turn ran.
    Joined {
        /// The hub's name for the prompt.
        key: String,
    },
    /// It did not take a prompt that it was given while its turn ran, and will not: the prompt waits for its own turn.
    NotJoined {
        /// The hub's name for the prompt.
        key: String,
    },
    /// It begins a turn by itself, without a prompt: work of its own in the background ended. Never within a turn.
    TurnStarted,
    /// The turn is over.
    TurnEnded(TurnOutcome),
    /// A person's answer to the agent changed what approvals follow, such as approving a plan ends plan mode.
    Permissions(PermissionMode),
    /// Something to know.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// One sentence.
        text: String,
    },
    /// Something the driver does not know.
    Unknown {
        /// What the agent calls it.
        label: String,
        /// The thing itself.
        raw: Value,
    },
}
