//! Where a program departs from the protocol, known by the name it gives itself.
//!
//! Each entry says what the program does and why Consort must know. Everything else in the driver follows the
//! protocol alone.

/// What one program does differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quirks {
    /// Takes no error for "there is no such file": reading before writing a new file fails, and with it the writing.
    /// It is told that the file is empty.
    pub missing_file_is_empty: bool,
    /// Announces a change of mode as a piece of text `[MODE_UPDATE] name` instead of `current_mode_update`.
    pub mode_in_text: bool,
    /// Reports tokens only in `_meta.quota.token_count` of the prompt's answer.
    pub quota_in_meta: bool,
    /// Says nothing more about a tool call that was denied, and the turn goes on.
    pub denied_call_stays_silent: bool,
    /// Sends no plan; its plan is the `todos` of the tool `todowrite`.
    pub plan_in_todowrite: bool,
    /// Names the sub-agent's tool call that a tool call belongs to in `_meta.claudeCode.parentToolUseId`.
    pub parent_in_meta: bool,
    /// Calls a command that an interrupt stopped completed, with these words in its output.
    pub stopped_command_says: Option<&'static str>,
}

impl Quirks {
    const NONE: Self = Self {
        missing_file_is_empty: false,
        mode_in_text: false,
        quota_in_meta: false,
        denied_call_stays_silent: false,
        plan_in_todowrite: false,
        parent_in_meta: false,
        stopped_command_says: None,
    };

    /// The quirks of the program with this `agentInfo.name`.
    pub fn of(name: &str) -> Self {
        match name {
            "gemini-cli" => Self {
                missing_file_is_empty: true,
                mode_in_text: true,
                quota_in_meta: true,
                denied_call_stays_silent: true,
                stopped_command_says: Some("Command cancelled by user."),
                ..Self::NONE
            },
            "OpenCode" => Self {
                plan_in_todowrite: true,
                stopped_command_says: Some("User aborted the command"),
                ..Self::NONE
            },
            "@agentclientprotocol/claude-agent-acp" | "@zed-industries/claude-code-acp" => {
                Self { parent_in_meta: true, ..Self::NONE }
            }
            _ => Self::NONE,
        }
    }
}

/// The mode named by a piece of text, if it is such an announcement.
pub fn mode_in(text: &str) -> Option<&str> {
    text.trim().strip_prefix("[MODE_UPDATE] ").map(str::trim).filter(|mode| !mode.is_empty())
}
