//! Drivers: the protocols that Consort speaks with agents.
//!
//! A driver is a state machine without I/O: a frame goes in, [`Output`] comes out (signals for the hub, frames for the
//! agent, calls for the host). It holds no socket, task or clock, and its state serialises, so the hub can commit it
//! with what a frame caused and go on from there after a crash.
//!
//! Invariant: the same state and the same input give the same output. Bad input gives a notice, never a panic.
#![deny(missing_docs)]

pub mod acp;
pub mod claude;
pub mod codex;
pub mod host;
mod images;
mod lines;
pub mod sessions;

use std::fmt;

use consort_model::{
    Answer, ApprovalPolicy, Attachment, DriverKind, PermissionMode, SandboxMode, Signal, Usage,
};
use serde::{Deserialize, Serialize};

pub use host::{CallId, CallResult, HostCall};

/// What the agent is started with.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Launch {
    /// Where it works; absolute.
    pub cwd: String,
    /// Folders besides `cwd` that it may read and write through the host; absolute.
    #[serde(default)]
    pub roots: Vec<String>,
    /// The session to take up again.
    #[serde(default)]
    pub resume: Option<String>,
    /// Whether `resume` stays as it is and this session branches off from it.
    #[serde(default)]
    pub fork: bool,
    /// The model to begin with.
    #[serde(default)]
    pub model: Option<String>,
    /// The permission mode to begin with, where the agent has such modes itself.
    #[serde(default)]
    pub permissions: PermissionMode,
    /// The only tools that the agent may use, kinds or names of its own, where its program can be told; none: all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// For Codex: what its commands may do by themselves.
    #[serde(default)]
    pub sandbox_mode: Option<SandboxMode>,
    /// For Codex: when it asks.
    #[serde(default)]
    pub approval_policy: Option<ApprovalPolicy>,
    /// What the agent used in its earlier processes; figures over its life begin there.
    #[serde(default)]
    pub used: Usage,
    /// MCP servers to give to the agent.
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
}

/// An MCP server over HTTP that an agent is told about. Its tools are Consort's own: the agent needs nobody's approval
/// to use them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub url: String,
    /// HTTP headers, such as its token.
    pub headers: Vec<(String, String)>,
    /// A program that speaks for it on stdio, for agents that take no other servers.
    #[serde(default)]
    pub bridge: Option<Bridge>,
}

/// A program that reaches an MCP server over HTTP for whoever speaks to it on stdio.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Bridge {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, which holds the token.
    pub environment: Vec<(String, String)>,
}

// Both hold a token, which shows nowhere.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("name", &self.name).field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("command", &self.command).finish_non_exhaustive()
    }
}

/// How an agent's process is started beyond what its profile says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CommandLine {
    /// Arguments in front of the profile's own.
    pub before: Vec<String>,
    /// Arguments after the profile's own.
    pub after: Vec<String>,
    /// Variables that the driver needs; the profile's own win over them.
    pub environment: Vec<(String, String)>,
}

/// One frame from the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A line without its end.
    Line(&'a [u8]),
    /// A line too long to be held in memory.
    Oversized {
        /// How long it was.
        len: u64,
        /// How it began.
        head: &'a [u8],
    },
}

/// What a driver wants done after one input, in order of each list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Output {
    /// What the agent said.
    pub signals: Vec<Signal>,
    /// What is to be written to the agent, each with its line end.
    pub frames: Vec<Vec<u8>>,
    /// What the host is to do; each is answered once through [`Driver::complete`].
    pub calls: Vec<(CallId, HostCall)>,
    /// A person's words that the protocol had no place for: the next prompt says them.
    pub follow_up: Option<String>,
}

impl Output {
    /// Adds what came after.
    pub fn append(&mut self, mut later: Self) {
        self.signals.append(&mut later.signals);
        self.frames.append(&mut later.frames);
        self.calls.append(&mut later.calls);
        self.follow_up = later.follow_up.or(self.follow_up.take());
    }
}

/// The state machine of one agent's protocol.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "driver", rename_all = "snake_case")]
pub enum Driver {
    /// The Agent Client Protocol.
    Acp(acp::Acp),
    /// Codex's app server.
    Codex(codex::Codex),
    /// Claude Code's own protocol.
    Claude(claude::Claude),
}

/// The same for every driver, which it is by name.
macro_rules! each {
    ($self:ident, $driver:ident => $does:expr) => {
        match $self {
            Self::Acp($driver) => $does,
            Self::Codex($driver) => $does,
            Self::Claude($driver) => $does,
        }
    };
}

/// What a driver tells while it does something.
fn told(does: impl FnOnce(&mut Output)) -> Output {
    let mut out = Output::default();
    does(&mut out);
    out
}

impl Driver {
    /// A fresh state machine, if this version of Consort has one for `kind`.
    pub fn new(kind: DriverKind, launch: Launch) -> Option<Self> {
        match kind {
            DriverKind::Acp => Some(Self::Acp(acp::Acp::new(launch))),
            DriverKind::Codex => Some(Self::Codex(codex::Codex::new(launch))),
            DriverKind::Claude => Some(Self::Claude(claude::Claude::new(launch))),
            DriverKind::Native | DriverKind::Terminal => None,
        }
    }

    /// How the driver wants the process to be started.
    pub fn command_line(&self) -> CommandLine {
        match self {
            Self::Acp(_) => CommandLine::default(),
            Self::Codex(codex) => codex.command_line(),
            Self::Claude(claude) => claude.command_line(),
        }
    }

    /// The process runs: what to say first.
    pub fn start(&mut self) -> Output {
        told(|out| each!(self, driver => driver.hello(out)))
    }

    /// Takes in one frame.
    pub fn receive(&mut self, frame: Frame<'_>) -> Output {
        if each!(self, driver => driver.is_over()) {
            return Output::default();
        }
        told(|out| match frame {
            Frame::Line(line) => each!(self, driver => driver.line(line.trim_ascii(), out)),
            Frame::Oversized { len, head } => each!(self, driver => driver.oversized(len, head, out)),
        })
    }

    /// Begins a turn. Called only between [`Signal::Ready`] and the next turn's [`Signal::TurnEnded`], one at a time.
    pub fn prompt(&mut self, text: &str, attachments: &[Attachment]) -> Output {
        told(|out| each!(self, driver => driver.begin_turn(text, attachments, out)))
    }

    /// Gives more words to the running turn. What becomes of them is told by [`Signal::Joined`] or [`Signal::NotJoined`]
    /// with the same key, once, unless the process ends first. Called for drivers that can, while a turn runs.
    pub fn steer(&mut self, key: &str, text: &str, attachments: &[Attachment]) -> Output {
        told(|out| match self {
            Self::Acp(_) => out.signals.push(Signal::NotJoined { key: key.to_owned() }),
            Self::Codex(codex) => codex.offer(key, text, attachments, out),
            Self::Claude(claude) => claude.offer(key, text, attachments, out),
        })
    }

    /// Tells the running turn to stop; open asks are answered as cancelled. Without a turn it does nothing.
    pub fn interrupt(&mut self) -> Output {
        told(|out| each!(self, driver => driver.stop_turn(out)))
    }

    /// Answers an ask by its key. An unknown key does nothing.
    pub fn answer(&mut self, key: &str, answer: &Answer) -> Output {
        told(|out| each!(self, driver => driver.answer_ask(key, answer, out)))
    }

    /// The person chose another permission mode; told to agents that have such modes themselves.
    pub fn set_permissions(&mut self, permissions: PermissionMode) -> Output {
        told(|out| match self {
            // An ACP agent asks for everything that it does not allow by itself; Consort's policy answers.
            Self::Acp(_) => {}
            Self::Codex(codex) => codex.follow_permissions(permissions, out),
            Self::Claude(claude) => claude.follow_permissions(permissions, out),
        })
    }

    /// Chooses a value for one of the session's options; the reason if it cannot.
    pub fn choose(&mut self, option: &str, value: &str) -> Result<Output, String> {
        let mut out = Output::default();
        each!(self, driver => driver.choose_option(option, value, &mut out))?;
        Ok(out)
    }

    /// Takes in the host's answer to a call. An unknown call does nothing.
    pub fn complete(&mut self, call: &CallId, result: CallResult) -> Output {
        told(|out| match self {
            Self::Acp(acp) => acp.complete_call(call, result, out),
            // They work on files and commands themselves and call for nothing.
            Self::Codex(_) | Self::Claude(_) => {}
        })
    }

    /// Calls that were handed out and not answered; made again after a crash.
    pub fn pending_calls(&self) -> Vec<(CallId, HostCall)> {
        match self {
            Self::Acp(acp) => acp.pending_calls(),
            Self::Codex(_) | Self::Claude(_) => Vec::new(),
        }
    }

    /// The process ended: unfinished tool calls have failed. The turn is ended and asks are settled by the hub, which knows
    /// why.
    pub fn ended(&mut self) -> Output {
        told(|out| each!(self, driver => driver.give_up(out)))
    }

    /// What to write before the process is stopped, where the protocol has such a thing.
    pub fn farewell(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Acp(acp) => acp.farewell(),
            // It ends, and its commands with it, when its stdin closes.
            Self::Codex(_) => None,
            Self::Claude(claude) => claude.farewell(),
        }
    }
}
