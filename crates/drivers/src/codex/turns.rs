//! Turns: a prompt out, what it says, and what its end means.
//!
//! Owns the running turn, the messages that are being written in it, and the sub-agents that work for it, each in a
//! thread of its own. A turn is ours when we started it; it ends once, by `turn/completed`.

use consort_model::{Attachment, Image, NoticeLevel, Signal, ToolCallId, ToolStatus, TurnOutcome, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::items::{Item, ItemKind};
use super::notices::{Failure, hash_of, sentence_of};
use super::tools::Ended;
use super::wire::{RpcError, lenient, one_line, read};
use super::{Codex, Phase, Place, Request, notice, warn};
use crate::Output;

/// How many sub-agents are known at once; the oldest are forgotten.
const CHILDREN: usize = 64;

/// How many messages may be open; a cut one stays open until its turn ends.
const MESSAGES: usize = 32;

/// The running turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The request that began it; 0 if the agent began it by itself.
    request: u64,
    /// The app server's name for it, once that is known.
    id: Option<String>,
    /// Whether the app server said that it began; before that it can neither be interrupted nor steered.
    pub(super) begun: bool,
    /// Whether it was told to stop.
    pub(super) interrupted: bool,
}

/// A message or thought that is being written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    item: String,
    place: Place,
    /// How many bytes of it were told.
    told: u64,
}

/// A sub-agent of the agent's own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Child {
    thread: String,
    /// The call that started it.
    within: ToolCallId,
    /// Its running turn.
    turn: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnParams {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    turn: TurnState,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TurnState {
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    status: TurnStatus,
    #[serde(deserialize_with = "lenient")]
    error: Option<Failure>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
enum TurnStatus {
    Completed,
    Interrupted,
    Failed,
    InProgress,
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct UsageParams {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    token_usage: TokenUsage,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TokenUsage {
    #[serde(deserialize_with = "lenient")]
    total: Tokens,
    #[serde(deserialize_with = "lenient")]
    last: Tokens,
    #[serde(deserialize_with = "lenient")]
    model_context_window: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    #[serde(deserialize_with = "lenient")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
}

impl Codex {
    pub(crate) fn begin_turn(&mut self, text: &str, attachments: &[Attachment], out: &mut Output) {
        let (Phase::Open, None, Some(thread)) = (self.phase, &self.turn, self.thread.clone()) else {
            return warn(out, "A prompt came at a time when Codex takes none, and was not sent.");
        };
        let command = if attachments.is_empty() { slash_command(text, &thread) } else { None };
        let (method, params) = command.unwrap_or_else(|| {
            ("turn/start", json!({"threadId": thread, "input": input(text, attachments)}))
        });
        let request = self.send(Request::Turn, method, params, out);
        self.last_error = None;
        self.last_warning = None;
        self.last_said = None;
        self.turn = Some(Turn { request, id: None, begun: false, interrupted: false });
    }

    /// The thread of a place and the turn that runs there.
    pub(super) fn running(&self, place: &Place) -> Option<(String, String)> {
        match place {
            Place::Main => Some((self.thread.clone()?, self.turn.as_ref()?.id.clone()?)),
            Place::Child { thread, .. } => {
                let child = self.children.iter().find(|child| child.thread == *thread)?;
                Some((thread.clone(), child.turn.clone()?))
            }
        }
    }

    pub(crate) fn stop_turn(&mut self, out: &mut Output) {
        let Some(turn) = &mut self.turn else { return };
        let again = std::mem::replace(&mut turn.interrupted, true);
        if turn.begun && !again {
            self.send_interrupt(out);
        }
        self.cancel_asks(out);
    }

    /// Stops the turn, its sub-agents' turns, and the commands that would outlive them.
    fn send_interrupt(&mut self, out: &mut Output) {
        let main = self.running(&Place::Main);
        let children =
            self.children.iter().filter_map(|child| Some((child.thread.clone(), child.turn.clone()?)));
        let turns: Vec<(String, String)> = main.into_iter().chain(children).collect();
        let thread_of = |place: &Place| match place {
            Place::Main => self.thread.clone(),
            Place::Child { thread, .. } => Some(thread.clone()),
        };
        let named = |(place, name): (&Place, &str)| Some((thread_of(place)?, name.to_owned()));
        let commands: Vec<(String, String)> = self.tools.processes().filter_map(named).collect();
        // The process of a command that had to be approved is not told with its beginning.
        let mut unknown = std::collections::BTreeMap::<String, Vec<String>>::new();
        for (thread, call) in self.tools.commands_of_unknown_process().filter_map(named) {
            unknown.entry(thread).or_default().push(call);
        }
        for (index, (thread, turn)) in turns.into_iter().enumerate() {
            let request = if index == 0 { Request::Interrupt } else { Request::Ignored };
            self.send(request, "turn/interrupt", json!({"threadId": thread, "turnId": turn}), out);
        }
        for (thread, process) in commands {
            self.end_command(&thread, &process, out);
        }
        for (thread, calls) in unknown {
            let params = json!({"threadId": thread});
            self.send(Request::Running { thread, calls }, "thread/backgroundTerminals/list", params, out);
        }
    }

    fn end_command(&mut self, thread: &str, process: &str, out: &mut Output) {
        let params = json!({"threadId": thread, "processId": process});
        self.send(Request::Ignored, "thread/backgroundTerminals/terminate", params, out);
    }

    /// Which commands run: those of the calls that were stopped are ended.
    pub(super) fn end_running(
        &mut self,
        thread: &str,
        calls: &[String],
        outcome: Result<&str, RpcError>,
        out: &mut Output,
    ) {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Page {
            #[serde(deserialize_with = "lenient")]
            data: Vec<Running>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Running {
            #[serde(deserialize_with = "lenient")]
            item_id: String,
            #[serde(deserialize_with = "lenient")]
            process_id: String,
        }
        let Ok(result) = outcome else { return };
        for running in read::<Page>(result).data {
            if calls.contains(&running.item_id) {
                self.end_command(thread, &running.process_id, out);
            }
        }
    }

    /// The answer to an interrupt. Where nothing runs any more, the turn is over.
    pub(super) fn interrupt_answered(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        if outcome.is_err() && self.turn.as_ref().is_some_and(|turn| turn.interrupted) {
            self.finish_turn(TurnOutcome::Interrupted, out);
        }
    }

    /// The answer to what began the turn.
    pub(super) fn turn_answered(&mut self, request: u64, outcome: Result<&str, RpcError>, out: &mut Output) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.request == request) else { return };
        match outcome {
            Ok(result) => {
                let answer: TurnParams = read(result);
                if answer.turn.id.is_some() {
                    turn.id = answer.turn.id;
                }
            }
            Err(_) if turn.interrupted => self.finish_turn(TurnOutcome::Interrupted, out),
            Err(error) => {
                let message = format!("Codex did not take the prompt: {}.", error.sentence());
                self.finish_turn(TurnOutcome::Failed { message }, out);
            }
        }
    }

    pub(super) fn turn_started(&mut self, params: &str, out: &mut Output) {
        let TurnParams { thread_id, turn: state } = read(params);
        match self.place(thread_id.as_deref()) {
            Some(Place::Main) => {
                let Some(turn) = &mut self.turn else {
                    if let (Some(id), Phase::Open) = (state.id, self.phase) {
                        // It goes on by itself, such as when something in its background ended.
                        self.turn = Some(Turn { request: 0, id: Some(id), begun: true, interrupted: false });
                        out.signals.push(Signal::TurnStarted);
                    }
                    return;
                };
                if turn.id.is_none() {
                    turn.id = state.id;
                } else if turn.id != state.id {
                    return;
                }
                let first = !std::mem::replace(&mut turn.begun, true);
                if first && turn.interrupted {
                    self.send_interrupt(out);
                } else if first {
                    self.send_offered(out);
                }
            }
            Some(Place::Child { thread, .. }) => {
                if let Some(child) = self.children.iter_mut().find(|child| child.thread == thread) {
                    child.turn = state.id;
                }
            }
            None => {}
        }
    }

    pub(super) fn turn_completed(&mut self, params: &str, out: &mut Output) {
        let TurnParams { thread_id, turn: state } = read(params);
        match self.place(thread_id.as_deref()) {
            Some(Place::Main) => {
                let ours = self.turn.as_ref().is_some_and(|turn| match &turn.id {
                    Some(id) => state.id.as_deref().is_none_or(|ended| ended == id),
                    None => false,
                });
                if !ours {
                    // The agent worked by itself, such as on its context; what it said is over.
                    return self.end_messages(&Place::Main, out);
                }
                let outcome = self.outcome(&state, out);
                self.finish_turn(outcome, out);
            }
            Some(place @ Place::Child { .. }) => self.child_ended(&place, &state, out),
            None => {}
        }
    }

    /// The end of a turn was too long to be read.
    pub(super) fn turn_ended_unread(&mut self, thread: Option<&str>, turn: Option<&str>, out: &mut Output) {
        let state = TurnState { id: turn.map(str::to_owned), status: TurnStatus::Completed, error: None };
        match self.place(thread) {
            Some(Place::Main) if self.turn.as_ref().is_some_and(|ours| ours.id.as_deref() == turn) => {
                let outcome = self.outcome(&state, out);
                self.finish_turn(outcome, out);
            }
            Some(place @ Place::Child { .. }) => self.child_ended(&place, &state, out),
            _ => {}
        }
    }

    fn outcome(&mut self, state: &TurnState, out: &mut Output) -> TurnOutcome {
        let interrupted = self.turn.as_ref().is_some_and(|turn| turn.interrupted);
        match state.status {
            _ if interrupted => TurnOutcome::Interrupted,
            TurnStatus::Completed => TurnOutcome::Completed,
            TurnStatus::Interrupted => TurnOutcome::Interrupted,
            TurnStatus::Failed => {
                let told = state.error.as_ref().map(Failure::sentence).or_else(|| self.last_error.take());
                let message = told.unwrap_or_else(|| "Codex failed and did not say why.".to_owned());
                TurnOutcome::Failed { message }
            }
            TurnStatus::InProgress | TurnStatus::Unknown => {
                warn(out, "Codex ended its turn without saying how.");
                TurnOutcome::Completed
            }
        }
    }

    fn finish_turn(&mut self, outcome: TurnOutcome, out: &mut Output) {
        self.turn = None;
        self.last_error = None;
        self.requests.retain(|(_, request)| !matches!(request, Request::Turn | Request::Interrupt));
        if !self.messages.is_empty() {
            self.messages.clear();
            out.signals.push(Signal::MessageEnd);
        }
        self.end_tools(Ended::Turn { cleanly: outcome == TurnOutcome::Completed }, out);
        self.withdraw_asks(out);
        self.none_joined(out);
        out.signals.push(Signal::TurnEnded(outcome));
    }

    /// Remembers the threads that a call started; whether there is one.
    pub(super) fn adopt(&mut self, threads: &[String], within: &ToolCallId) -> bool {
        let mut any = false;
        for thread in threads.iter().filter(|thread| !thread.is_empty()) {
            if self.thread.as_ref() == Some(thread) {
                continue;
            }
            any = true;
            self.children.retain(|child| child.thread != *thread);
            self.children.push(Child { thread: thread.clone(), within: within.clone(), turn: None });
        }
        let excess = self.children.len().saturating_sub(CHILDREN);
        self.children.drain(..excess);
        any
    }

    fn child_ended(&mut self, place: &Place, state: &TurnState, out: &mut Output) {
        let Place::Child { thread, within } = place else { return };
        if let Some(child) = self.children.iter_mut().find(|child| child.thread == *thread) {
            child.turn = None;
        }
        self.end_messages(place, out);
        self.end_tools(Ended::Thread(place), out);
        let status = match state.status {
            TurnStatus::Completed => ToolStatus::Completed,
            _ => ToolStatus::Failed,
        };
        if let Some(error) = &state.error {
            warn(out, format!("A sub-agent of Codex failed: {}", error.sentence()));
        }
        self.parent_ended(within, status, out);
    }

    /// Where a thread belongs; none if it is not of this agent.
    pub(super) fn place(&self, thread: Option<&str>) -> Option<Place> {
        let Some(thread) = thread else { return Some(Place::Main) };
        if self.thread.as_deref() == Some(thread) {
            return Some(Place::Main);
        }
        let child = self.children.iter().find(|child| child.thread == thread)?;
        Some(Place::Child { thread: child.thread.clone(), within: child.within.clone() })
    }

    /// A piece of a message or thought.
    pub(super) fn told(&mut self, item: &str, place: Place, piece: &str, thought: bool, out: &mut Output) {
        if piece.is_empty() {
            return;
        }
        let index = self.messages.iter().position(|message| message.item == item).unwrap_or_else(|| {
            self.open_message(item, place.clone(), out);
            self.messages.len() - 1
        });
        let message = &mut self.messages[index];
        message.told = message.told.saturating_add(piece.len() as u64);
        say(place, piece.to_owned(), thought, out);
    }

    /// A message began; one of the same thread that was being written is over, however it ended.
    pub(super) fn open_message(&mut self, item: &str, place: Place, out: &mut Output) {
        if self.messages.iter().any(|message| message.item == item) {
            return;
        }
        if self.messages.iter().any(|message| message.place == place && message.told > 0) {
            out.signals.push(Signal::MessageEnd);
        }
        self.messages.push(Message { item: item.to_owned(), place, told: 0 });
        let excess = self.messages.len().saturating_sub(MESSAGES);
        self.messages.drain(..excess);
    }

    /// A message or thought is whole: whatever its pieces left out is told now.
    pub(super) fn message_completed(&mut self, item: &Item, place: Place, out: &mut Output) {
        let known = self.messages.iter().position(|message| message.item == item.id);
        let told = known.map_or(0, |index| self.messages.remove(index).told);
        let thought = item.kind == ItemKind::Reasoning;
        if !thought && self.is_said_twice(item) && told == 0 {
            return;
        }
        let rest = match item.kind {
            // Thoughts come in two forms at once, so only one that was not told at all can be told whole.
            ItemKind::Reasoning if told > 0 => String::new(),
            ItemKind::Reasoning => item.thought(),
            ItemKind::ExitedReviewMode => item.review.clone(),
            _ => {
                let told = usize::try_from(told).unwrap_or(usize::MAX);
                item.text.get(told..).unwrap_or_default().to_owned()
            }
        };
        let anything = told > 0 || !rest.is_empty();
        if !rest.is_empty() {
            say(place, rest, thought, out);
        }
        if anything {
            out.signals.push(Signal::MessageEnd);
        }
    }

    /// Whether it says the same as what was said before it: a review comes as its own item and as a message.
    fn is_said_twice(&mut self, item: &Item) -> bool {
        let review = item.kind == ItemKind::ExitedReviewMode;
        let hash = hash_of(if review { &item.review } else { &item.text });
        let before = self.last_said.replace((hash, review));
        before.is_some_and(|(said, was_review)| said == hash && review != was_review)
    }

    fn end_messages(&mut self, place: &Place, out: &mut Output) {
        let before = self.messages.len();
        self.messages.retain(|message| message.place != *place);
        if self.messages.len() < before {
            out.signals.push(Signal::MessageEnd);
        }
    }

    /// The stream broke and is tried again: what was being written is not written on.
    pub(super) fn cut_messages(&mut self, place: &Place, out: &mut Output) {
        self.end_messages(place, out);
    }

    pub(super) fn usage_changed(&mut self, params: &str, out: &mut Output) {
        let UsageParams { thread_id, token_usage } = read(params);
        // A sub-agent counts its own; the context is the agent's.
        if self.place(thread_id.as_deref()) != Some(Place::Main) {
            return;
        }
        let TokenUsage { total, last, model_context_window } = token_usage;
        out.signals.push(Signal::Usage(Usage {
            input_tokens: total.input_tokens,
            output_tokens: total.output_tokens,
            context_used: last.total_tokens,
            context_size: model_context_window,
            cost: None,
        }));
    }

    /// The process ended: unfinished tool calls have failed. The turn itself is ended by the hub, which knows why.
    pub(crate) fn give_up(&mut self, out: &mut Output) {
        self.end_tools(Ended::Process, out);
        self.phase = Phase::Over;
        self.turn = None;
        self.messages.clear();
        self.offered.clear();
        self.requests.clear();
        self.asks.clear();
        self.children.clear();
        self.tools.clear();
    }

    /// An error that the app server tells while a turn runs.
    pub(super) fn error_told(&mut self, failure: &Failure, retries: bool, place: &Place, out: &mut Output) {
        let sentence = failure.sentence();
        if retries {
            self.cut_messages(place, out);
            let sentence = sentence_of("Codex lost its model", &failure.details());
            self.warn_anew(format!("{sentence} It tries again."), out);
        } else if *place == Place::Main && self.turn.is_some() {
            // The end of the turn tells it.
            self.last_error = Some(one_line(&sentence));
        } else {
            notice(out, NoticeLevel::Error, sentence);
        }
    }
}

fn say(place: Place, text: String, thought: bool, out: &mut Output) {
    let within = place.within();
    out.signals.push(if thought { Signal::Thinking { text, within } } else { Signal::Text { text, within } });
}

/// The commands that are offered, by name and what they do.
pub const COMMANDS: [(&str, &str, Option<&str>); 2] = [
    ("compact", "Make the context shorter", None),
    ("review", "Review what was changed and not committed, or what the words say", Some("what to review")),
];

/// The request that a command is: the app server reads none from a prompt.
fn slash_command(text: &str, thread: &str) -> Option<(&'static str, Value)> {
    let text = text.trim().strip_prefix('/')?;
    let (name, words) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match (name, words.trim()) {
        ("compact", "") => Some(("thread/compact/start", json!({"threadId": thread}))),
        ("review", words) => {
            let target = match words {
                "" => json!({"type": "uncommittedChanges"}),
                words => json!({"type": "custom", "instructions": words}),
            };
            Some(("review/start", json!({"threadId": thread, "target": target})))
        }
        _ => None,
    }
}

/// A prompt in the app server's form. It takes no files, so their text goes with the words.
pub(super) fn input(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let words = |text: &str| json!({"type": "text", "text": text, "text_elements": []});
    let mut input = Vec::new();
    if !text.is_empty() || attachments.is_empty() {
        input.push(words(text));
    }
    for attachment in attachments {
        input.push(match attachment {
            Attachment::Image(Image { mime_type, data }) => {
                json!({"type": "image", "url": format!("data:{mime_type};base64,{data}")})
            }
            Attachment::File { path, text } => words(&format!("The file {path} holds:\n{text}")),
        });
    }
    input
}
