//! Codex, by its app server: `codex app-server`, JSON-RPC on lines.
//!
//! Owns the conversation with one process: the handshake, one thread, its turns, its asks, and the threads of the
//! sub-agents that Codex starts by itself. Leaves to the hub when to prompt and who answers. [`Codex`] is cloned for
//! every batch of frames and serialised when it changed, so it holds what later frames need and never the text of
//! messages.
//!
//! Invariant: every request of the app server is answered at most once, and every request of ours is settled at most
//! once; a frame that makes no sense changes nothing and gives a notice.

mod asks;
mod diffs;
mod handshake;
mod items;
mod notices;
mod settings;
mod shell;
mod steering;
mod tools;
mod turns;
mod wire;

use std::sync::Arc;

use consort_model::{NoticeLevel, PermissionMode, PlanEntry, PlanStatus, Signal, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{CommandLine, Launch, Output};
use asks::Asks;
use diffs::Change;
use handshake::Way;
use items::{Item, ItemKind};
use notices::Limits;
use settings::{Access, Settings, Wanted};
use steering::Offer;
use tools::Tools;
use turns::{Child, Message, Turn};
use wire::{Delta, Envelope, RpcError, code, excerpt, lenient, one_line, read};

/// How many requests of the app server may be open at once. More is a fault of it, not work.
const OPEN_REQUESTS: usize = 256;

/// How many threads that are not ours get a notice of their own.
const FOREIGN_NOTICES: usize = 8;

/// What the app server tells and nobody needs: it is known by other means, or of no interest to an agent's person.
const PASSED_OVER: [&str; 37] = [
    // What a turn changed in all is told with its calls, change by change.
    "turn/diff/updated",
    // Status follows from turns and asks.
    "thread/status/changed",
    "thread/started",
    "thread/closed",
    "thread/archived",
    "thread/unarchived",
    "thread/deleted",
    "thread/readState/changed",
    "thread/attachment/updated",
    "thread/goal/updated",
    "thread/goal/cleared",
    "thread/prediction/updated",
    "thread/queue/changed",
    "thread/project/updated",
    "thread/environment/connected",
    "thread/environment/disconnected",
    // The item `contextCompaction` tells it.
    "thread/compacted",
    "project/changed",
    "skills/changed",
    "app/list/updated",
    "fs/changed",
    "account/updated",
    "account/login/completed",
    "mcpServer/oauthLogin/completed",
    "remoteControl/status/changed",
    "hook/started",
    "rawResponse/completed",
    "rawResponseItem/completed",
    "item/commandExecution/terminalInteraction",
    "turn/moderationMetadata",
    // Who reviews approvals in a person's stead is a setting of the profile; what comes of it, the calls tell.
    "item/autoApprovalReview/started",
    "item/autoApprovalReview/completed",
    "autoApprovalReview/strictReviewRequired",
    "model/verification",
    "model/safetyBuffering/updated",
    "modelProvider/authRecoveryStarted",
    "modelProvider/authRecoveryCompleted",
];

/// The state machine of one Codex process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Codex {
    launch: Launch,
    phase: Phase,
    /// The program's name and version.
    program: String,
    /// The thread, once its id is known.
    thread: Option<String>,
    account_known: bool,
    config_known: bool,
    model_pages: usize,
    turn: Option<Turn>,
    /// What the running turn was given and has not taken in, oldest first.
    #[serde(default)]
    offered: Vec<Offer>,
    messages: Vec<Message>,
    children: Vec<Child>,
    next_request: u64,
    /// Requests of ours that wait for an answer.
    requests: Vec<(u64, Request)>,
    tools: Tools,
    asks: Asks,
    settings: Arc<Settings>,
    /// What the profile itself allows unasked.
    baseline: Arc<Access>,
    /// The permission mode that the app server was told.
    permissions: PermissionMode,
    limits: Limits,
    /// The hash of the last message of the turn, and whether it was a review.
    last_said: Option<(u64, bool)>,
    /// Why the turn is about to fail.
    last_error: Option<String>,
    /// What this turn warned of last: some things are told again and again.
    last_warning: Option<String>,
    /// Hashes of what was told about the surroundings.
    told_warnings: Vec<u64>,
    /// Threads that are not ours and were reported.
    foreign: Vec<String>,
}

/// How far the conversation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// From the first frame until the thread takes prompts.
    Opening,
    /// The thread takes prompts.
    Open,
    /// The thread could not be opened or the process ended; nothing matters any more.
    Over,
}

/// Where something happens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    /// In the agent's own thread.
    Main,
    /// In the thread of a sub-agent, which a tool call started.
    Child { thread: String, within: ToolCallId },
}

impl Place {
    fn within(&self) -> Option<ToolCallId> {
        match self {
            Self::Main => None,
            Self::Child { within, .. } => Some(within.clone()),
        }
    }
}

/// A request of ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Request {
    Initialize,
    Account,
    Config,
    Models,
    Modes,
    Open {
        way: Way,
    },
    Turn,
    Interrupt,
    /// Which commands run, so that those of these calls can be ended.
    Running {
        thread: String,
        calls: Vec<String>,
    },
    /// Words for the running turn, and the hub's name for them if they are a prompt.
    Steer {
        key: Option<String>,
    },
    Choose(Wanted),
    /// Whatever the answer is, there is nothing to do about it.
    Ignored,
}

/// A request of the app server's.
struct Incoming<'a> {
    /// Its id as it stood in the JSON.
    id: &'a str,
    method: &'a str,
    params: &'a str,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ItemParams {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    item: Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PieceParams {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    item_id: String,
    #[serde(deserialize_with = "lenient")]
    summary_index: u64,
    #[serde(deserialize_with = "lenient")]
    message: String,
    #[serde(deserialize_with = "lenient")]
    changes: Vec<Change>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PlanParams {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    plan: Vec<PlanStep>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PlanStep {
    #[serde(deserialize_with = "lenient")]
    step: String,
    #[serde(deserialize_with = "lenient")]
    status: String,
}

impl Codex {
    /// A state machine that has said nothing yet.
    pub fn new(launch: Launch) -> Self {
        Self {
            permissions: launch.permissions,
            launch,
            phase: Phase::Opening,
            program: "Codex".to_owned(),
            thread: None,
            account_known: false,
            config_known: false,
            model_pages: 0,
            turn: None,
            offered: Vec::new(),
            messages: Vec::new(),
            children: Vec::new(),
            next_request: 1,
            requests: Vec::new(),
            tools: Tools::default(),
            asks: Asks::default(),
            settings: Arc::default(),
            baseline: Arc::default(),
            limits: Limits::default(),
            last_said: None,
            last_error: None,
            last_warning: None,
            told_warnings: Vec::new(),
            foreign: Vec::new(),
        }
    }

    /// The subcommand comes first; `-c` and the like of the profile belong to it.
    pub fn command_line(&self) -> CommandLine {
        CommandLine { before: vec!["app-server".to_owned()], ..CommandLine::default() }
    }

    /// Whether the session is over: what the process says then means nothing.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Takes in one line.
    pub(crate) fn line(&mut self, line: &[u8], out: &mut Output) {
        if line.is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return warn(out, format!("Codex sent a line that is not UTF-8: {}", excerpt(line)));
        };
        let envelope: Envelope<'_> = match serde_json::from_str(text) {
            Ok(envelope) => envelope,
            Err(_) => {
                let what = if text.starts_with('{') { "broken JSON" } else { "a line that is not a message" };
                return warn(out, format!("Codex sent {what}: {}", excerpt(line)));
            }
        };
        let params = envelope.params.map_or("null", RawValue::get);
        let id = envelope.id.map(RawValue::get).filter(|id| *id != "null");
        match (envelope.method, id) {
            (Some(method), Some(id)) => self.request(&Incoming { id, method: &method.0, params }, out),
            (Some(method), None) => self.notified(&method.0, params, envelope.emitted_at, out),
            (None, Some(id)) => {
                match (envelope.result, envelope.error.filter(|error| error.get() != "null")) {
                    (_, Some(error)) => self.response(id, Err(RpcError::read(error)), out),
                    (Some(result), None) => self.response(id, Ok(result.get()), out),
                    (None, None) => warn(out, format!("Codex sent an empty answer: {}", excerpt(line))),
                }
            }
            (None, None) => match envelope.error {
                Some(error) => {
                    let error = RpcError::read(error).sentence();
                    warn(out, format!("Codex did not understand a message: {error}."));
                }
                None => warn(out, format!("Codex sent no message: {}", excerpt(line))),
            },
        }
    }

    /// Takes in the beginning of a line that was too long.
    pub(crate) fn oversized(&mut self, len: u64, head: &[u8], out: &mut Output) {
        let peek = wire::peek(head);
        let what = one_line(peek.method.unwrap_or("message"));
        warn(out, format!("A {what} of {len} bytes was too long and was left out: {}", excerpt(head)));
        let too_long = format!("{len} bytes are too many");
        match (peek.method, peek.id) {
            (Some(_), Some(id)) => out.frames.push(wire::refuse(id, code::INVALID_REQUEST, &too_long)),
            // Whatever it answered is settled by this: nothing must wait for an answer that was thrown away.
            (None, Some(id)) => {
                self.response(id, Err(RpcError { code: code::INVALID_REQUEST, message: too_long }), out);
            }
            (Some("item/completed"), None) => {
                if let Some(item) = peek.item {
                    self.tool_ended_unread(item, out);
                }
            }
            (Some("turn/completed"), None) => self.turn_ended_unread(peek.thread, peek.turn, out),
            _ => {}
        }
    }

    /// Routes a request of the app server's.
    fn request(&mut self, request: &Incoming<'_>, out: &mut Output) {
        if self.asks.len() >= OPEN_REQUESTS {
            let message = format!("more than {OPEN_REQUESTS} requests are open");
            return out.frames.push(wire::refuse(request.id, code::INVALID_REQUEST, &message));
        }
        match request.method {
            "item/commandExecution/requestApproval" => self.command_approval(request, out),
            "item/fileChange/requestApproval" => self.change_approval(request, out),
            "item/permissions/requestApproval" => self.permissions_approval(request, out),
            "mcpServer/elicitation/request" => self.elicitation(request, out),
            "item/tool/requestUserInput" => self.user_input(request, out),
            method => {
                let message = format!("{method} is not known to Consort");
                out.frames.push(wire::refuse(request.id, code::METHOD_NOT_FOUND, &message));
                out.signals.push(unknown(method, request.params));
            }
        }
    }

    /// Routes a notification of the app server's.
    fn notified(&mut self, method: &str, params: &str, emitted_at: Option<u64>, out: &mut Output) {
        match method {
            "item/agentMessage/delta" | "item/plan/delta" => self.delta(params, false, out),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => self.delta(params, true, out),
            "item/reasoning/summaryPartAdded" => self.thought_part(params, out),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                if let Ok(Delta { item_id, delta, .. }) = serde_json::from_str::<Delta<'_>>(params) {
                    self.tool_grows(&item_id.0, &delta.0, out);
                }
            }
            "item/mcpToolCall/progress" => {
                let PieceParams { item_id, message, .. } = read(params);
                self.tool_grows(&item_id, &format!("{}\n", one_line(&message)), out);
            }
            "item/fileChange/patchUpdated" => {
                let PieceParams { item_id, changes, .. } = read(params);
                self.change_tool(&item_id, out, |call| items::set_changes(call, &changes));
            }
            "item/started" => self.item(params, false, out),
            "item/completed" => self.item(params, true, out),
            "turn/started" => self.turn_started(params, out),
            "turn/completed" => self.turn_completed(params, out),
            "turn/plan/updated" => self.plan_updated(params, out),
            "thread/tokenUsage/updated" => self.usage_changed(params, out),
            "thread/settings/updated" => self.settings_updated(params, out),
            "thread/name/updated" => self.renamed(params, out),
            "serverRequest/resolved" => self.resolved(params, out),
            "error" => self.error_notified(params, out),
            "warning" | "guardianWarning" | "configWarning" => self.warned(params, out),
            "deprecationNotice" => self.informed(params, out),
            "account/rateLimits/updated" => self.limits_changed(params, emitted_at, out),
            "mcpServer/startupStatus/updated" => self.server_status(params, out),
            "model/rerouted" => self.rerouted(params, out),
            "hook/completed" => self.hook_completed(params, out),
            method if PASSED_OVER.contains(&method) || method.starts_with("thread/realtime/") => {}
            method => out.signals.push(unknown(method, params)),
        }
    }

    /// Settles a request of ours.
    fn response(&mut self, id: &str, outcome: Result<&str, RpcError>, out: &mut Output) {
        let known = id
            .trim_matches('"')
            .parse::<u64>()
            .ok()
            .and_then(|id| self.requests.iter().position(|(open, _)| *open == id));
        let Some(index) = known else {
            // A turn that ended settles what was asked about it, and the answer may still come.
            if id.parse::<u64>().is_ok_and(|id| (1..self.next_request).contains(&id)) {
                return;
            }
            return warn(out, format!("Codex answered {}, which nothing asked.", excerpt(id.as_bytes())));
        };
        let (id, request) = self.requests.remove(index);
        match request {
            Request::Initialize => self.initialized(outcome, out),
            Request::Account => self.account_read(outcome, out),
            Request::Config => self.config_read(outcome, out),
            Request::Models => self.models_listed(outcome, out),
            Request::Modes => self.modes_listed(outcome, out),
            Request::Open { way } => self.opened(way, outcome, out),
            Request::Turn => self.turn_answered(id, outcome, out),
            Request::Interrupt => self.interrupt_answered(outcome, out),
            Request::Steer { key: Some(key) } => {
                if outcome.is_err() {
                    self.not_joined(&key, out);
                }
            }
            Request::Steer { key: None } => {
                if let Err(error) = outcome {
                    warn(
                        out,
                        format!("Codex did not take what was added to its turn: {}.", error.sentence()),
                    );
                }
            }
            Request::Choose(wanted) => self.chosen(&wanted, outcome, out),
            Request::Running { thread, calls } => self.end_running(&thread, &calls, outcome, out),
            Request::Ignored => {}
        }
    }

    /// A piece of what it says or thinks.
    fn delta(&mut self, params: &str, thought: bool, out: &mut Output) {
        match serde_json::from_str::<Delta<'_>>(params) {
            Ok(Delta { thread_id, item_id, delta }) => {
                if let Some(place) = self.known_place(Some(&thread_id.0), out) {
                    self.told(&item_id.0, place, &delta.0, thought, out);
                }
            }
            Err(_) => warn(
                out,
                format!("Codex sent a piece of text in no known form: {}", excerpt(params.as_bytes())),
            ),
        }
    }

    /// A thought goes on with a new part.
    fn thought_part(&mut self, params: &str, out: &mut Output) {
        let PieceParams { thread_id, item_id, summary_index, .. } = read(params);
        if summary_index > 0
            && let Some(place) = self.known_place(thread_id.as_deref(), out)
        {
            self.told(&item_id, place, "\n\n", true, out);
        }
    }

    /// An item began or ended.
    fn item(&mut self, params: &str, over: bool, out: &mut Output) {
        let ItemParams { thread_id, item: raw } = read(params);
        let Some(place) = self.known_place(thread_id.as_deref(), out) else { return };
        let Ok(item) = Item::deserialize(&raw) else {
            return warn(out, format!("Codex sent an item in no known form: {}", excerpt(params.as_bytes())));
        };
        match item.kind {
            // What was said to it is in the transcript already, but for what it takes in while it works.
            ItemKind::UserMessage if !over => self.joined(&item.client_id, out),
            ItemKind::UserMessage | ItemKind::HookPrompt => {}
            ItemKind::AgentMessage | ItemKind::Plan | ItemKind::Reasoning if !over => {
                self.open_message(&item.id, place, out);
            }
            ItemKind::AgentMessage | ItemKind::Plan | ItemKind::Reasoning => {
                self.message_completed(&item, place, out);
            }
            ItemKind::ExitedReviewMode if over => self.message_completed(&item, place, out),
            ItemKind::EnteredReviewMode if over => {
                let what = one_line(&item.review);
                notice(out, NoticeLevel::Info, format!("Codex reviews {what}."));
            }
            ItemKind::ContextCompaction if over => {
                notice(out, NoticeLevel::Info, "Codex made its context shorter.");
            }
            ItemKind::ExitedReviewMode | ItemKind::EnteredReviewMode | ItemKind::ContextCompaction => {}
            ItemKind::Unknown if over => {
                let label = raw.get("type").and_then(Value::as_str).unwrap_or("item").to_owned();
                out.signals.push(Signal::Unknown { label: one_line(&label), raw });
            }
            ItemKind::Unknown => {}
            _ if item.id.is_empty() => {
                warn(out, format!("Codex sent a tool call without a name: {}", excerpt(params.as_bytes())));
            }
            _ if over => self.tool_completed(&item, place, out),
            _ => self.tool_started(&item, place, out),
        }
    }

    fn plan_updated(&mut self, params: &str, out: &mut Output) {
        let PlanParams { thread_id, plan } = read(params);
        // A sub-agent's plan would take the place of the agent's own.
        if self.place(thread_id.as_deref()) != Some(Place::Main) {
            return;
        }
        let entries = plan.into_iter().map(|PlanStep { step, status }| PlanEntry {
            text: step,
            status: match status.as_str() {
                "inProgress" | "in_progress" => PlanStatus::InProgress,
                "completed" => PlanStatus::Completed,
                _ => PlanStatus::Pending,
            },
        });
        out.signals.push(Signal::Plan(entries.collect()));
    }

    /// Where a thread belongs; one that belongs nowhere is reported once.
    fn known_place(&mut self, thread: Option<&str>, out: &mut Output) -> Option<Place> {
        let place = self.place(thread);
        if place.is_none()
            && let Some(thread) = thread
            && self.foreign.len() < FOREIGN_NOTICES
            && !self.foreign.iter().any(|known| known == thread)
        {
            self.foreign.push(thread.to_owned());
            let text = format!(
                "Codex spoke of the thread {}, which is not this agent's.",
                excerpt(thread.as_bytes())
            );
            notice(out, NoticeLevel::Info, text);
        }
        place
    }

    /// Sends a request and remembers what it was.
    fn send(&mut self, request: Request, method: &str, params: impl Serialize, out: &mut Output) -> u64 {
        let id = self.next_request;
        self.next_request += 1;
        self.requests.push((id, request));
        out.frames.push(wire::request(id, method, params));
        id
    }
}

fn notice(out: &mut Output, level: NoticeLevel, text: impl Into<String>) {
    out.signals.push(Signal::Notice { level, text: text.into() });
}

fn warn(out: &mut Output, text: impl Into<String>) {
    notice(out, NoticeLevel::Warning, text);
}

fn unknown(label: &str, raw: &str) -> Signal {
    let raw = serde_json::from_str(raw).unwrap_or_else(|_| Value::String(excerpt(raw.as_bytes())));
    Signal::Unknown { label: one_line(label), raw }
}
