//! One field over everything else, and what is done with what was typed.

use consort_model::{AgentId, AskId, GrantScope, PromptId};

use crate::editor::Editor;

/// What a field is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The new name of an agent.
    Rename(AgentId),
    /// The pattern of calls to allow.
    Pattern(Vec<AskId>, GrantScope),
    /// What to do instead of what is denied.
    DenyWith(Vec<AskId>),
    /// The answer to a question in plain text.
    Reply(AskId),
    /// What to search in the conversation.
    Search(AgentId),
    /// The name of a new workspace.
    NewWorkspace,
    /// The new name of the workspace on the screen.
    RenameWorkspace,
    /// The text of a prompt that waits.
    EditQueued(AgentId, PromptId),
    /// The name of the copy of a profile.
    DuplicateProfile(String),
    /// The new value of a limit, by its name.
    Limit(&'static str),
    /// The word by which a worktree is removed with the work in it; its folder.
    DiscardWorktree(String),
}

/// A field to fill.
pub struct Field {
    /// What it is about.
    pub title: String,
    /// What is being typed.
    pub editor: Editor,
    /// What follows.
    pub purpose: Purpose,
    /// More about it.
    pub hint: String,
    /// What is wrong with what was typed.
    pub problem: Option<String>,
}

impl Field {
    /// A field with something in it.
    pub fn new(title: impl Into<String>, text: impl Into<String>, purpose: Purpose) -> Self {
        Self { title: title.into(), editor: Editor::with(text), purpose, hint: String::new(), problem: None }
    }

    /// With what is wrong with it.
    pub fn problem(self, problem: impl Into<String>) -> Self {
        Self { problem: Some(problem.into()), ..self }
    }

    /// With more about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}
