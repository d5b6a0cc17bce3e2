//! What a runner is told to start.
//!
//! A [`Spec`] holds an agent's secrets (its environment), so it travels over the socket only: it is never written to
//! disk, logged or quoted in an error, and its `Debug` form leaves the arguments and the environment out.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The version of [`Spec`] this program writes and accepts.
pub const SPEC_VERSION: u32 = 1;

/// One child process: what it is and the limits under which it is held.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub version: u32,
    /// A path, or a name looked up in the `PATH` of `env`.
    pub program: String,
    pub args: Vec<String>,
    /// The child's whole environment: it gets these and nothing else.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub framing: Framing,
    #[serde(default)]
    pub stdin: Stdin,
    /// Whether stderr goes into the same stream as stdout, in the order of writing; the stderr tail then stays empty.
    #[serde(default)]
    pub merge_stderr: bool,
    /// How long a runner waits for a daemon before it ends an idle child.
    #[serde(default = "defaults::orphan_after_ms")]
    pub orphan_after_ms: u64,
    /// How long a child must have said and read nothing to count as idle.
    #[serde(default = "defaults::idle_after_ms")]
    pub idle_after_ms: u64,
    /// The time limits of a stop that names none itself.
    #[serde(default)]
    pub stop_limits: StopLimits,
    /// How many bytes the journal may hold before the child's output is no longer read.
    #[serde(default = "defaults::journal_bytes")]
    pub journal_bytes: u64,
}

mod defaults {
    pub fn orphan_after_ms() -> u64 {
        24 * 60 * 60 * 1000
    }

    pub fn idle_after_ms() -> u64 {
        60 * 1000
    }

    pub fn journal_bytes() -> u64 {
        1 << 30
    }
}

impl Spec {
    /// A child that speaks lines, with default limits and an empty environment.
    pub fn new(program: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            version: SPEC_VERSION,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            framing: Framing::Lines,
            stdin: Stdin::Pipe,
            merge_stderr: false,
            orphan_after_ms: defaults::orphan_after_ms(),
            idle_after_ms: defaults::idle_after_ms(),
            stop_limits: StopLimits::default(),
            journal_bytes: defaults::journal_bytes(),
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Spec")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// How the child's output is cut into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// At every newline, which is left out.
    Lines,
    /// As it was read, for commands whose output is shown and not parsed.
    Raw,
}

/// What the child's stdin is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// A pipe that takes the numbered input.
    #[default]
    Pipe,
    /// Nothing, for commands that would wait for input on a pipe.
    Null,
}

/// How long each step of a stop may take before the next one follows; a step of zero is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopLimits {
    /// After the protocol's own stop was written to stdin.
    pub protocol_ms: u64,
    /// After stdin was closed.
    pub stdin_ms: u64,
    /// After SIGINT to the child's process group.
    pub interrupt_ms: u64,
    /// After SIGTERM to the child's process group.
    pub terminate_ms: u64,
    /// After SIGKILL to every process of the tree: when it is over, what the kernel cannot end is left to it.
    pub kill_ms: u64,
}

impl Default for StopLimits {
    fn default() -> Self {
        Self { protocol_ms: 2_000, stdin_ms: 2_000, interrupt_ms: 2_000, terminate_ms: 1_000, kill_ms: 5_000 }
    }
}

impl StopLimits {
    /// Straight to SIGKILL.
    pub fn at_once() -> Self {
        Self { protocol_ms: 0, stdin_ms: 0, interrupt_ms: 0, terminate_ms: 0, ..Self::default() }
    }

    /// The limit of one step.
    pub fn of(&self, step: StopStep) -> Duration {
        Duration::from_millis(match step {
            StopStep::Protocol => self.protocol_ms,
            StopStep::Stdin => self.stdin_ms,
            StopStep::Interrupt => self.interrupt_ms,
            StopStep::Terminate => self.terminate_ms,
            StopStep::Kill => self.kill_ms,
        })
    }
}

/// The steps in which a process tree is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopStep {
    Protocol,
    Stdin,
    Interrupt,
    Terminate,
    Kill,
}

impl StopStep {
    /// The step that follows when this one's time is over.
    pub fn next(self) -> Self {
        match self {
            Self::Protocol => Self::Stdin,
            Self::Stdin => Self::Interrupt,
            Self::Interrupt => Self::Terminate,
            Self::Terminate | Self::Kill => Self::Kill,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_form_holds_no_secret() {
        let mut spec = Spec::new("agent", "/");
        spec.args = vec!["--key=hunter2".into()];
        spec.env = vec![("KEY".into(), "hunter2".into())];
        assert!(!format!("{spec:?}").contains("hunter2"));
    }

    #[test]
    fn a_spec_without_limits_gets_the_defaults() {
        let json = r#"{"version":1,"program":"p","args":[],"env":[],"cwd":"/","framing":"lines"}"#;
        let spec: Spec = serde_json::from_str(json).unwrap();
        assert_eq!(spec, Spec::new("p", "/"));
    }
}
