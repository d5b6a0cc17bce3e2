//! The client protocol: what crosses the daemon's socket.
//!
//! JSON-RPC 2.0, one message per line. A client says [`Call::Hello`] first. [`Call::Subscribe`] answers with a snapshot;
//! from then on every event with a higher number follows as an `event` notification. A client that reads too slowly
//! gets a `snapshot` notification instead of the events it missed.

mod profiles;
mod queue;
mod rules;
mod sessions;
mod views;
mod worktree;

use std::collections::BTreeMap;
use std::path::PathBuf;

use consort_model::{
    AgentId, Answer, AskId, Attachment, GrantScope, Integration, Item, ItemIndex, PermissionMode, PromptId,
    Refusal, RuleId, Stamped, State,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use profiles::{ImportSource, ImportedProfiles, NewProfile, ProfileCheck, ProfileEdit};
pub use queue::QueuedPrompt;
pub use rules::{NewRule, NewRuleScope, RuleView};
pub use sessions::SessionView;
pub use views::{AgentView, InboxEntry, MessageView};
pub use worktree::{NewWorktree, WorktreeFinished, WorktreeRemoved, WorktreeView};

/// The version of this protocol. A client and a daemon of different versions do not talk.
pub const PROTOCOL_VERSION: u32 = 1;

/// The longest message that a client may send, in bytes.
pub const MAX_MESSAGE: usize = 64 << 20;

/// The longest settings that can be imported, in bytes.
pub const MAX_IMPORT: usize = consort_hub::MAX_IMPORT;

/// What a client may ask: the JSON-RPC method and its params.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params")]
pub enum Call {
    /// Says who is there; must come first. Answer: [`Welcome`].
    #[serde(rename = "hello")]
    Hello {
        /// The client's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The client's name and version.
        client: String,
    },
    /// A snapshot now and events from then on. Answer: [`Snapshot`].
    #[serde(rename = "subscribe")]
    Subscribe {},
    /// From now on, events about the transcripts of other agents than these are left out; everything else still comes.
    /// Without this call they all come. Answer: [`Done`].
    #[serde(rename = "transcripts.watch")]
    Watch {
        /// Whose transcripts.
        transcripts: Vec<AgentId>,
    },
    /// All agents. Answer: list of [`AgentView`].
    #[serde(rename = "agents.list")]
    ListAgents {
        /// Closed ones too.
        #[serde(default)]
        closed: bool,
    },
    /// One agent. Answer: [`AgentView`].
    #[serde(rename = "agents.get")]
    GetAgent {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// A new agent. Answer: [`AgentView`].
    #[serde(rename = "agents.create")]
    CreateAgent(NewAgent),
    /// The sessions of a folder that the program of a profile keeps. It may be run for that, which takes seconds.
    /// Answer: list of [`SessionView`].
    #[serde(rename = "sessions.list")]
    ListSessions {
        /// Id or name of the profile; none: the default one.
        #[serde(default)]
        profile: Option<String>,
        /// The folder; absolute.
        cwd: PathBuf,
    },
    /// A new agent that goes on with a session of its program's. Answer: [`AgentView`].
    #[serde(rename = "sessions.resume")]
    ResumeSession {
        /// The program's name for the session.
        session: String,
        /// The agent, which works where the session did.
        agent: NewAgent,
    },
    /// A prompt for an agent. Answer: [`Sent`].
    #[serde(rename = "agents.send")]
    Send {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// The prompt.
        prompt: NewPrompt,
    },
    /// A prompt that joins the turn that runs, at its next safe point. Where none runs, or the agent takes nothing into
    /// a running turn, it is a prompt like any other. The id of a prompt that waits already makes that one join. Answer:
    /// [`Sent`].
    #[serde(rename = "agents.steer")]
    Steer {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// The prompt.
        prompt: NewPrompt,
    },
    /// The prompts that wait for an agent, in order. Answer: list of [`QueuedPrompt`].
    #[serde(rename = "agents.queue")]
    Queue {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// Changes a prompt that still waits. Answer: [`Done`].
    #[serde(rename = "agents.edit_prompt")]
    EditPrompt {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// Which prompt.
        prompt: PromptId,
        /// The new text; none drops the prompt.
        #[serde(default)]
        text: Option<String>,
    },
    /// Stops an agent's turn and its sub-agents'. Answer: [`Done`].
    #[serde(rename = "agents.interrupt")]
    Interrupt {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// Closes an agent with all that is bound to it. Answer: [`Done`].
    #[serde(rename = "agents.close")]
    Close {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// A new agent whose conversation branches off from another's. Answer: [`AgentView`].
    #[serde(rename = "agents.fork")]
    Fork {
        /// The other one: id, beginning or end of the id, or name.
        agent: String,
        /// The new one, made by the client.
        id: AgentId,
        /// The wished name.
        #[serde(default)]
        name: Option<String>,
        /// The first prompt.
        #[serde(default)]
        prompt: Option<NewPrompt>,
    },
    /// Starts a closed or failed agent again. Answer: [`AgentView`].
    #[serde(rename = "agents.reopen")]
    Reopen {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// Ends an agent's process and starts another that takes up the session. Answer: [`AgentView`].
    #[serde(rename = "agents.restart")]
    Restart {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// Lets an agent run by another profile of the same driver. Answer: [`AgentView`].
    #[serde(rename = "agents.rebind")]
    Rebind {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// Id or name of the profile.
        profile: String,
    },
    /// Gives an agent another name. Answer: [`Done`].
    #[serde(rename = "agents.rename")]
    Rename {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// The new name.
        name: String,
    },
    /// Changes what an agent's approvals follow. Answer: [`Done`].
    #[serde(rename = "agents.permissions")]
    SetPermissions {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// The mode.
        permissions: PermissionMode,
    },
    /// Chooses a value for one of the session's options, such as `mode` or `model`. Answer: [`Done`].
    #[serde(rename = "agents.choose")]
    Choose {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// Which option.
        option: String,
        /// Which value.
        value: String,
    },
    /// What an agent changed: since its branch began if it has a worktree, else since the last commit of its folder.
    /// Answer: [`consort_model::Changes`].
    #[serde(rename = "agents.changes")]
    Changes {
        /// Id, beginning or end of the id, or name.
        agent: String,
    },
    /// The same with the diff. Answer: [`consort_model::DiffText`].
    #[serde(rename = "agents.diff")]
    Diff {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// Only these files, by their paths in the repository; none: all.
        #[serde(default)]
        paths: Vec<String>,
    },
    /// All worktrees of agents. Answer: list of [`WorktreeView`].
    #[serde(rename = "worktrees.list")]
    ListWorktrees {},
    /// Brings a worktree's branch home to its base, and removes it with the agents that work in it unless it is kept.
    /// Answer: [`WorktreeFinished`].
    #[serde(rename = "worktrees.finish")]
    FinishWorktree {
        /// Its agent, name, branch or folder.
        worktree: String,
        /// How it is brought up to date first.
        #[serde(default)]
        by: Integration,
        /// Leave the worktree and its agents as they are.
        #[serde(default)]
        keep: bool,
    },
    /// Closes the agents in a worktree and removes it with its branch; refused if there is work in it and `force` is not
    /// set. Answer: [`WorktreeRemoved`].
    #[serde(rename = "worktrees.remove")]
    RemoveWorktree {
        /// Its agent, name, branch or folder.
        worktree: String,
        /// Even if there is work in it.
        #[serde(default)]
        force: bool,
    },
    /// A page of a transcript. Answer: [`TranscriptPage`].
    #[serde(rename = "transcript.page")]
    Transcript {
        /// Id, beginning or end of the id, or name.
        agent: String,
        /// The items before this one; none: the last ones.
        #[serde(default)]
        before: Option<ItemIndex>,
        /// The items from this one on, instead of `before`.
        #[serde(default)]
        from: Option<ItemIndex>,
        /// How many, at most 1000.
        limit: u32,
    },
    /// All open approvals and questions, oldest first. Answer: list of [`InboxEntry`].
    #[serde(rename = "inbox.list")]
    Inbox {},
    /// Answers an approval or question. Answer: [`Done`].
    #[serde(rename = "inbox.answer")]
    Answer {
        /// Its id, or a unique beginning or end of it.
        ask: String,
        /// The answer.
        answer: Answer,
    },
    /// The last messages between agents, oldest first. Answer: list of [`MessageView`].
    #[serde(rename = "messages.list")]
    ListMessages {
        /// Only those that this agent wrote or got: id, beginning or end of the id, or name; none: all.
        #[serde(default)]
        agent: Option<String>,
    },
    /// Answers several approvals and questions, in order and each by its whole id: nothing but what was shown is answered.
    /// Answer: list of [`Answered`], one for each.
    #[serde(rename = "inbox.answer_many")]
    AnswerMany {
        /// Which ones and how, at most 1000.
        answers: Vec<AskAnswer>,
    },
    /// All rules. Answer: list of [`RuleView`].
    #[serde(rename = "rules.list")]
    ListRules {},
    /// A new rule. Answer: [`RuleView`].
    #[serde(rename = "rules.add")]
    AddRule(NewRule),
    /// Removes a rule. Answer: [`Done`].
    #[serde(rename = "rules.remove")]
    RemoveRule {
        /// Which one.
        rule: RuleId,
    },
    /// All profiles. Answer: list of [`ProfileSummary`].
    #[serde(rename = "profiles.list")]
    ListProfiles {},
    /// A new profile. Answer: [`ProfileSummary`].
    #[serde(rename = "profiles.add")]
    AddProfile(NewProfile),
    /// Changes a profile. Its agents go on as they were started until they are restarted. Answer:
    /// [`ProfileSummary`].
    #[serde(rename = "profiles.edit")]
    EditProfile {
        /// Its id or name.
        profile: String,
        /// What is to be different.
        changes: ProfileEdit,
    },
    /// A new profile that is like another but for its name. Answer: [`ProfileSummary`].
    #[serde(rename = "profiles.duplicate")]
    DuplicateProfile {
        /// Id or name of the one that is there.
        profile: String,
        /// The name of the new one.
        name: String,
    },
    /// Removes a profile and ends its agents' processes. Answer: [`Done`].
    #[serde(rename = "profiles.remove")]
    RemoveProfile {
        /// Its id or name.
        profile: String,
        /// Even if agents run by it.
        #[serde(default)]
        force: bool,
    },
    /// Makes a profile the one that is used where none is named. Answer: [`Done`].
    #[serde(rename = "profiles.default")]
    SetDefaultProfile {
        /// Its id or name.
        profile: String,
    },
    /// Looks again which profiles can be used, and asks their programs for their versions. Answer: list of
    /// [`ProfileCheck`].
    #[serde(rename = "profiles.check")]
    CheckProfiles {
        /// Id or name of one; none: all.
        #[serde(default)]
        profile: Option<String>,
    },
    /// Adds the profiles of another program's settings, but for those that are there already. Answer:
    /// [`ImportedProfiles`].
    #[serde(rename = "profiles.import")]
    ImportProfiles {
        /// Whose settings.
        from: ImportSource,
        /// The text of the settings, at most [`MAX_IMPORT`] bytes.
        text: String,
    },
    /// Sets limits by their names in `config.toml`. Answer: [`consort_model::Limits`], all that are in force now.
    #[serde(rename = "limits.set")]
    SetLimits {
        /// What is to be different.
        limits: BTreeMap<String, u64>,
    },
    /// Sets the keys of an action of the terminal UI, in `config.toml`. Answer: [`Done`].
    #[serde(rename = "keys.set")]
    SetKeys {
        /// The action's name.
        action: String,
        /// Its keys by their names; none: those that it has by itself.
        #[serde(default)]
        keys: Option<Vec<String>>,
    },
    /// How the daemon is. Answer: [`DaemonStatus`].
    #[serde(rename = "daemon.status")]
    Status {},
    /// Ends the daemon. Answer: [`Done`]; an error [`codes::WOULD_STOP_WORK`] if agents are working and `force` is not set.
    #[serde(rename = "daemon.stop")]
    Stop {
        /// Even if agents are working.
        #[serde(default)]
        force: bool,
        /// Leave the runners and their agents running for the next daemon.
        #[serde(default)]
        keep_agents: bool,
    },
}

/// The codes of JSON-RPC errors besides the standard ones.
pub mod codes {
    /// The line is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message is not a JSON-RPC request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const NO_SUCH_METHOD: i64 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The command was refused; `data` holds the [`super::Refusal`].
    pub const REFUSED: i64 = -32001;
    /// The daemon cannot keep what it is told (disk full, database locked). Nothing was changed.
    pub const UNAVAILABLE: i64 = -32002;
    /// `hello` must come first, with a version that both sides speak.
    pub const NO_HELLO: i64 = -32003;
    /// Agents are working; `data` holds how many.
    pub const WOULD_STOP_WORK: i64 = -32004;
    /// `config.toml` cannot be read or written.
    pub const CONFIG: i64 = -32005;
}

/// A request as it stands on the wire.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// Any number or string; the answer has the same.
    pub id: Value,
    /// What is asked.
    #[serde(flatten)]
    pub call: Call,
}

/// What the daemon sends.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "one at a time, and read at once")]
pub enum FromDaemon {
    /// The answer to a request that was done.
    Result {
        /// Of the request.
        id: Value,
        /// What the method answers with.
        result: Value,
    },
    /// The answer to a request that was not.
    Error {
        /// Of the request; null if it could not be read.
        id: Value,
        /// Why.
        error: ErrorBody,
    },
    /// Something happened.
    Notification(Notification),
}

/// A notification to a subscribed client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every notification is an event")]
pub enum Notification {
    /// An event.
    Event(Stamped),
    /// A new snapshot, because the client did not keep up.
    Snapshot(Snapshot),
}

/// Why a request was not done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// One of [`codes`].
    pub code: i64,
    /// One sentence for a person: what happened and what to do.
    pub message: String,
    /// More for programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl ErrorBody {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }
}

impl From<Refusal> for ErrorBody {
    fn from(refusal: Refusal) -> Self {
        let data = serde_json::to_value(&refusal).unwrap_or_default();
        Self { code: codes::REFUSED, message: refusal.to_string(), data }
    }
}

/// The answer to [`Call::Hello`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// The daemon's [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// The daemon's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
}

/// Everything but the transcripts, as of one event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The state; `state.seq` is the number of the last event in it.
    pub state: State,
}

/// The answer where there is nothing to tell.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// A new agent, as a person asks for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewAgent {
    /// Made by the client, so that asking again after a lost connection is harmless.
    pub id: AgentId,
    /// Id or name of the profile; none: the default one.
    #[serde(default)]
    pub profile: Option<String>,
    /// The wished name.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it works; absolute.
    pub cwd: PathBuf,
    /// Makes it a companion of this agent: id, beginning or end of the id, or name.
    #[serde(default)]
    pub companion_of: Option<String>,
    /// What its approvals follow; none: as the profile says.
    #[serde(default)]
    pub permissions: Option<PermissionMode>,
    /// A git worktree of its own, made from the repository that `cwd` is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<NewWorktree>,
    /// The first prompt.
    #[serde(default)]
    pub prompt: Option<NewPrompt>,
}

/// A prompt, as a person gives it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewPrompt {
    /// Made by the client, so that sending again after a lost connection is harmless.
    pub id: PromptId,
    /// Its text.
    pub text: String,
    /// Images and files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// The answer to [`Call::Send`] and [`Call::Steer`]: the prompt is kept from now on, whatever happens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The agent.
    pub agent: AgentId,
    /// The prompt.
    pub prompt: PromptId,
    /// How many prompts stand before it; none: it was delivered.
    pub waiting_behind: Option<u32>,
    /// Whether it joins the turn that runs.
    #[serde(default)]
    pub joins: bool,
}

/// A page of a transcript.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptPage {
    /// The items, in order.
    pub items: Vec<Item>,
    /// How many items the transcript has in all.
    pub total: u64,
}

/// How the daemon is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its folder.
    pub home: PathBuf,
    /// Agents that are not closed.
    pub agents: u32,
    /// Agents that are in a turn.
    pub working: u32,
    /// Agents that wait for a person.
    pub needs_input: u32,
    /// Clients that are connected, this one included.
    pub clients: u32,
    /// Seconds since it started.
    pub uptime_seconds: u64,
    /// What stands in the way of new work, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The answer to one of several asks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AskAnswer {
    /// Its whole id.
    pub ask: AskId,
    /// The answer.
    pub answer: Answer,
}

/// What became of one of several answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// Which ask.
    pub ask: AskId,
    /// Whether this answer is the one that counts.
    pub answered: bool,
    /// Why it is not.
    pub error: Option<ErrorBody>,
}

/// How far an approval on the command line reaches.
pub fn scope_of(always: bool, project: bool, session: bool) -> GrantScope {
    match (always, project, session) {
        (true, ..) => GrantScope::Always,
        (false, true, _) => GrantScope::Project,
        (false, false, true) => GrantScope::Session,
        (false, false, false) => GrantScope::Once,
    }
}
