//! Scripts: what the model says, as data.
//!
//! Owns the form of a script file and of the built-in scenarios, which are one (`scenarios.json` beside this file).
//! Which step answers a request is decided in [`super::choose`]; how a step looks in an API, in [`super::reply`]. The
//! invariant: a script that was read can be played, so every mistake in one is found before the server listens.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The scenarios that are always there.
const BUILT_IN: &str = include_str!("scenarios.json");
/// A client that waits for an end is to see one.
pub const LONGEST_PAUSE_MS: u64 = 10 * 60 * 1000;
/// Bounds what a step can make the server render.
const MOST_REPEATS: usize = 200_000;

/// Scenarios by name, and the answers to what a CLI asks beside the conversation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(default)]
    pub scenarios: BTreeMap<String, Scenario>,
    /// Tried in order, before any marker.
    #[serde(default)]
    pub side: Vec<SideRule>,
}

/// One course of a conversation after its marker: the answers one after the other, each but the last with tool calls.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// For readers.
    #[serde(default)]
    pub about: String,
    /// What `{arg}` is where the marker has no argument.
    #[serde(default)]
    pub arg: String,
    pub steps: Vec<Step>,
}

/// An answer to requests that are no part of a conversation: titles, routing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideRule {
    /// Words of the system prompt that give such a request away.
    pub system_contains: String,
    pub step: Step,
}

/// One answer of the model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Waits before the answer begins.
    #[serde(default)]
    pub delay_ms: u64,
    /// Answers with an HTTP error instead.
    #[serde(default)]
    pub error: Option<Failure>,
    #[serde(default)]
    pub thinking: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    /// Says the text this many times.
    #[serde(default = "once")]
    pub repeat: usize,
    /// How many characters come in one event.
    #[serde(default = "chunk")]
    pub chunk: usize,
    /// Waits between two events of text or thinking.
    #[serde(default)]
    pub pace_ms: u64,
    /// All of them in one answer, that is: in parallel.
    #[serde(default)]
    pub calls: Vec<Call>,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub end: End,
}

impl Step {
    /// One text at once, nothing else.
    pub fn saying(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), repeat: 1, chunk: usize::MAX, ..Self::default() }
    }
}

fn once() -> usize {
    1
}

fn chunk() -> usize {
    12
}

/// How an answer ends once all of it was said.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum End {
    #[default]
    Normal,
    /// The connection is closed where the end would come. An answer that is not streamed comes whole: this is what a
    /// client falls back to.
    Cut,
    /// Nothing more comes, until the client leaves.
    Hang,
}

/// An HTTP error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub status: u16,
    /// The error's message, put into the form of each API.
    #[serde(default)]
    pub message: Option<String>,
    /// The whole body, in place of that form.
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub retry_after: Option<u64>,
    /// Fails only so often, where the client counts its attempts in a header; else always.
    #[serde(default)]
    pub attempts: Option<u64>,
    /// Fails only the first so many requests with the same marker, however the client counts: a text, so that it can
    /// come from the marker. The one thing that a server remembers.
    #[serde(default)]
    pub first: Option<String>,
    /// Fails only until this time, in milliseconds since 1970: a text, so that it can come from the marker.
    #[serde(default)]
    pub until_ms: Option<String>,
}

/// Tokens as the scripts count them: no number is part of another, but `reasoning`, which is part of `output`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub cached: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 11, cached: 0, cache_write: 0, output: 7, reasoning: 0 }
    }
}

/// A use of a tool: an act that every CLI has a tool for, or a tool by its name.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum Call {
    Shell {
        command: String,
        /// Asks to leave the sandbox, where the CLI has one.
        #[serde(default)]
        escalated: bool,
    },
    Read {
        path: String,
        /// Only because an edit of the file comes next: left out where a CLI does not demand it.
        #[serde(default)]
        before_edit: bool,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Write {
        path: String,
        content: String,
    },
    Question {
        question: String,
        header: String,
        options: Vec<String>,
        #[serde(default)]
        several: bool,
    },
    /// Writes the plan down, only where a CLI presents it as a file: left out where not.
    PlanFile {
        plan: String,
    },
    /// Presents a plan for approval.
    Plan {
        plan: String,
    },
    /// Sets the list of tasks.
    Todo {
        items: Vec<Todo>,
    },
    /// A sub-agent of the CLI's own.
    Task {
        description: String,
        prompt: String,
    },
    Mcp {
        server: String,
        tool: String,
        #[serde(default)]
        arguments: Arguments,
    },
    /// Exactly this tool, offered or not.
    Tool {
        name: String,
        #[serde(default)]
        namespace: Option<String>,
        #[serde(default)]
        arguments: Map<String, Value>,
    },
}

/// Arguments as JSON, or as text that is JSON once its placeholders are filled.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    Json(Map<String, Value>),
    Text(String),
}

impl Default for Arguments {
    fn default() -> Self {
        Self::Json(Map::new())
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    pub text: String,
    pub state: TodoState,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script {path}: {error}")]
    Read { path: String, error: std::io::Error },
    #[error("the script is not valid: {0}; see `consort-testkit model --help`")]
    Json(#[from] serde_json::Error),
    #[error("scenario {0:?} needs a name of lower case letters, digits and hyphens, as its marker has")]
    Name(String),
    #[error("scenario {scenario:?}, step {step}: {what}")]
    Step { scenario: String, step: usize, what: &'static str },
}

impl Script {
    /// The scenarios that are always there, alone.
    pub fn built_in() -> Result<Self, ScriptError> {
        Self::parse(BUILT_IN)
    }

    /// Reads a script and checks it.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(text)?;
        for (name, scenario) in &script.scenarios {
            if !is_name(name) {
                return Err(ScriptError::Name(name.clone()));
            }
            check_steps(name, &scenario.steps)?;
        }
        for rule in &script.side {
            check_steps("side", std::slice::from_ref(&rule.step))?;
        }
        Ok(script)
    }

    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ScriptError::Read { path: path.display().to_string(), error })?;
        Self::parse(&text)
    }

    /// This script over another: its scenarios win, its side rules come first.
    pub fn over(mut self, mut base: Self) -> Self {
        base.scenarios.append(&mut self.scenarios);
        self.side.append(&mut base.side);
        Self { scenarios: base.scenarios, side: self.side }
    }
}

fn check_steps(scenario: &str, steps: &[Step]) -> Result<(), ScriptError> {
    let wrong =
        |step: usize, what| Err(ScriptError::Step { scenario: scenario.into(), step: step + 1, what });
    if steps.is_empty() {
        return wrong(0, "there must be at least one step");
    }
    for (at, step) in steps.iter().enumerate() {
        // The next step begins with the results of this one's calls.
        if at + 1 < steps.len() && step.calls.is_empty() {
            return wrong(at, "only the last step may be without calls: the turn ends there");
        }
        if step.chunk == 0 {
            return wrong(at, "`chunk` must be at least 1");
        }
        if step.repeat > MOST_REPEATS {
            return wrong(at, "`repeat` must be at most 200000");
        }
        if step.delay_ms > LONGEST_PAUSE_MS || step.pace_ms > LONGEST_PAUSE_MS {
            return wrong(at, "a pause must be at most 600000 ms");
        }
        if step.error.as_ref().is_some_and(|error| !(400..=599).contains(&error.status)) {
            return wrong(at, "an error's status must be between 400 and 599");
        }
    }
    Ok(())
}

/// Whether a marker can have this name.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
