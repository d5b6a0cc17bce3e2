//! What an agent may ask of its host: files and terminals. The hub does it; a driver only asks and is answered.

use serde::{Deserialize, Serialize};

/// Names a call between a driver and the hub.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

/// Something for the host to do. Paths are absolute and were checked against the agent's roots by their text; the
/// host checks again where links lead.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum HostCall {
    /// Read a text file.
    ReadFile {
        /// Which file.
        path: String,
        /// The first line wanted, from 1.
        line: Option<u32>,
        /// How many lines.
        limit: Option<u32>,
    },
    /// Write a text file, making its folders.
    WriteFile {
        /// Which file.
        path: String,
        /// Its whole new text.
        text: String,
    },
    /// Start a command.
    TerminalCreate {
        /// The name it goes by from now on.
        terminal: String,
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables besides the agent's own environment.
        env: Vec<(String, String)>,
        /// Where it runs.
        cwd: Option<String>,
        /// How much of its output is kept.
        output_limit: Option<u64>,
    },
    /// Tell a command's output so far.
    TerminalOutput {
        /// Which one.
        terminal: String,
    },
    /// Wait until a command ended.
    TerminalWait {
        /// Which one.
        terminal: String,
    },
    /// End a command; its output stays.
    TerminalKill {
        /// Which one.
        terminal: String,
    },
    /// End a command and forget it.
    TerminalRelease {
        /// Which one.
        terminal: String,
    },
}

/// The host's answer to a [`HostCall`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum CallResult {
    /// It was done.
    Done,
    /// The text of a file.
    Text {
        /// The text.
        text: String,
    },
    /// Output of a command.
    Output {
        /// The text so far, from the end if it was cut.
        text: String,
        /// Whether the beginning was cut.
        truncated: bool,
        /// How it ended; none while it runs.
        exit: Option<TerminalExit>,
    },
    /// A command ended.
    Exited(TerminalExit),
    /// The file is not there.
    NotFound {
        /// One sentence.
        message: String,
    },
    /// It could not be done.
    Failed {
        /// One sentence.
        message: String,
    },
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TerminalExit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<String>,
}
