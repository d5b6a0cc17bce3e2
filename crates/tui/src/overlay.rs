//! What lies over everything else: lists to choose from, fields to fill, texts to read.
//!
//! An overlay holds what it shows and what has been typed. What follows from a choice is a [`Command`] that the app
//! carries out.

pub mod field;
pub mod form;
pub mod inbox;
pub mod pager;
pub mod picker;
pub mod press;
pub mod settings;
pub mod whole;

use consort_daemon::protocol::WorktreeView;
use consort_model::{AgentId, AskId, Integration, PermissionMode, ProfileId, PromptId};

use crate::desk::Layout;
use crate::keys::{Action, Context};
use crate::memory::Notices;

pub use field::{Field, Purpose};
pub use form::Form;
pub use inbox::Inbox;
pub use pager::Pager;
pub use picker::{Awaited, Choice, Picker};
pub use press::Press;
pub use settings::Settings;
pub use whole::Whole;

/// What lies over everything else.
pub enum Overlay {
    /// A list to choose from.
    Picker(Picker),
    /// A field to fill.
    Field(Field),
    /// Several of them.
    Form(Form),
    /// A text to read.
    Pager(Pager),
    /// Everything that agents ask.
    Inbox(Inbox),
    /// The settings.
    Settings(Settings),
    /// The question for a key.
    Press(Press),
}

impl Overlay {
    /// What has the keyboard while it is on top.
    pub fn context(&self) -> Context {
        match self {
            Self::Picker(_) | Self::Field(_) | Self::Form(_) | Self::Press(_) => Context::List,
            Self::Pager(_) => Context::Pager,
            Self::Inbox(_) => Context::Ask,
            Self::Settings(_) => Context::Settings,
        }
    }
}

/// What follows from a choice.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// As if its key had been pressed.
    Act(Action),
    /// Show an agent; one that is closed is opened again when something is sent to it.
    Show(AgentId),
    /// A new agent of a profile.
    Create {
        /// The profile's id.
        profile: String,
        /// Whose companion it is.
        companion_of: Option<AgentId>,
    },
    /// A value for one of a session's options.
    Choose {
        /// Whose.
        agent: AgentId,
        /// Which option.
        option: String,
        /// Which value.
        value: String,
    },
    /// The options of a session, to choose one.
    PickOption(AgentId, String),
    /// A permission mode.
    Mode(AgentId, PermissionMode),
    /// Open a closed or failed agent again.
    Reopen(AgentId),
    /// Give an agent another profile.
    Rebind(AgentId, String),
    /// Start an agent's process anew.
    Restart(AgentId),
    /// Close an agent.
    Close(AgentId),
    /// Stop an agent's turn.
    Interrupt(AgentId),
    /// Branch an agent's conversation off.
    Fork(AgentId),
    /// A layout of panes.
    Layout(Layout),
    /// A theme by its name; none: as the terminal is.
    Theme(Option<&'static str>),
    /// How a person who looks elsewhere is told.
    Notices(Notices),
    /// Show images, or tell of them in words alone.
    Pictures(bool),
    /// Go to a workspace.
    Workspace(usize),
    /// Make a workspace.
    NewWorkspace,
    /// Rename the workspace on the screen.
    RenameWorkspace,
    /// Remove the workspace on the screen; its agents go to the first one.
    RemoveWorkspace,
    /// Put an agent into a workspace.
    Move(AgentId, usize),
    /// One of the answers that an agent offers.
    AnswerOption(AskId, String),
    /// Edit a prompt that waits.
    EditQueued(AgentId, PromptId),
    /// Drop a prompt that waits.
    DropQueued(AgentId, PromptId),
    /// Give a prompt that waits to the turn that runs.
    SteerQueued(AgentId, PromptId),
    /// Go on with a session that an agent's program keeps, as a new agent.
    Resume {
        /// The program's name for it.
        session: String,
        /// The profile whose program keeps it.
        profile: ProfileId,
        /// The folder it worked in.
        cwd: String,
    },
    /// Remove a profile whatever runs by it.
    RemoveProfile(String),
    /// Remove a rule.
    RemoveRule(consort_model::RuleId),
    /// Edit the settings' file.
    EditConfig,
    /// Rename an agent.
    Rename(AgentId),
    /// Start the daemon.
    StartDaemon,
    /// What can be chosen for a new agent, in a form.
    DescribeAgent {
        /// Whether it begins with a worktree of its own.
        worktree: bool,
    },
    /// What can be done with a worktree.
    Worktree(Box<WorktreeView>),
    /// What an agent changed.
    Changes(AgentId),
    /// Bring a worktree's branch home, by its folder.
    FinishWorktree {
        /// The folder.
        path: String,
        /// How it is brought up to date first.
        by: Integration,
        /// Whether it stays.
        keep: bool,
    },
    /// Remove a worktree without work in it, by its folder.
    RemoveWorktree(String),
    /// Ask whether a worktree is to be removed with the work in it: its folder, and what would be lost.
    DiscardWorktree(String, String),
    /// Nothing but to say why this cannot be had.
    Explain(String),
    /// Nothing.
    Nothing,
}
