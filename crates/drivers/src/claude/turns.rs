//! Turns: a prompt out, an interrupt, and what the result means.
//!
//! The agent also begins turns by itself, when work in the background ended. It tells the beginning of every turn and
//! then its result, and a result says where it does not belong to a prompt. A prompt that was sent while such a turn
//! ran may have been merged into it; then the agent falls idle after that turn's result and no other one comes.

use consort_model::{Attachment, Image, Signal, TurnOutcome, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::messages::Stream;
use super::wire::{self, excerpt, one_line};
use super::{Claude, Phase, Request, warn};
use crate::Output;

/// The kinds of images that the model takes.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The running turn.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Turn {
    /// Whether the agent began it by itself.
    own: bool,
    /// Whether the agent has begun it.
    begun: bool,
    /// Whether it was told to stop.
    pub(super) interrupted: bool,
    /// How another turn ended that may have taken in this one's prompt.
    merged: Option<TurnOutcome>,
}

/// The end of a turn.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Ended<'a> {
    subtype: String,
    is_error: bool,
    result: Option<String>,
    stop_reason: Option<String>,
    terminal_reason: Option<String>,
    errors: Vec<String>,
    #[serde(borrow)]
    origin: Option<&'a RawValue>,
    total_cost_usd: Option<f64>,
    #[serde(borrow, rename = "modelUsage")]
    model_usage: Option<&'a RawValue>,
}

/// What was used of one model, over the life of the process.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    context_window: Option<u64>,
}

impl Claude {
    pub(crate) fn begin_turn(&mut self, text: &str, attachments: &[Attachment], out: &mut Output) {
        if self.phase != Phase::Open || self.turn.is_some() {
            return warn(out, "A prompt came at a time when the agent takes none, and was not sent.");
        }
        self.turn = Some(Turn::default());
        let message = user_message(text, attachments, out);
        out.frames.push(wire::line(&message));
    }

    pub(crate) fn stop_turn(&mut self, out: &mut Output) {
        let Some(turn) = &mut self.turn else { return };
        turn.interrupted = true;
        // The agent would begin a turn with what it has not taken in yet.
        self.take_back(out);
        self.send(Request::Interrupt, json!({"subtype": "interrupt"}), out);
        self.cancel_asks(out);
    }

    /// The agent begins a turn.
    pub(super) fn begin(&mut self, out: &mut Output) {
        match &mut self.turn {
            Some(turn) => {
                let missed = turn.interrupted && !turn.begun;
                turn.begun = true;
                turn.merged = None;
                // The interrupt may have come before there was anything to stop.
                if missed {
                    self.send(Request::Interrupt, json!({"subtype": "interrupt"}), out);
                }
            }
            None if self.phase == Phase::Open => {
                self.turn = Some(Turn { own: true, begun: true, ..Turn::default() });
                out.signals.push(Signal::TurnStarted);
                self.joined_by_turn(out);
            }
            None => {}
        }
    }

    /// The agent says that it does nothing.
    pub(super) fn idle(&mut self, out: &mut Output) {
        let outcome = match &self.turn {
            Some(Turn { merged: Some(outcome), .. }) => outcome.clone(),
            Some(Turn { own: true, .. }) => TurnOutcome::Completed,
            // It may not have seen what it was given last.
            None => return self.take_back(out),
            // Said about the turn before this one.
            _ => return,
        };
        self.end_turn(outcome, out);
    }

    /// The agent took the interrupt.
    pub(super) fn interrupted(&mut self, outcome: Result<Value, String>, out: &mut Output) {
        if let Err(error) = outcome {
            return warn(out, format!("The agent did not take the interrupt: {}", one_line(&error)));
        }
        if let Some(Turn { merged: Some(outcome), .. }) = &self.turn {
            let outcome = outcome.clone();
            self.end_turn(outcome, out);
        }
    }

    pub(super) fn result(&mut self, text: &str, out: &mut Output) {
        let ended = match serde_json::from_str::<Ended<'_>>(text) {
            Ok(ended) => ended,
            Err(_) => {
                warn(
                    out,
                    format!(
                        "The agent ended a turn in a way that cannot be read: {}",
                        excerpt(text.as_bytes())
                    ),
                );
                Ended::default()
            }
        };
        if self.phase == Phase::Opening {
            let why = ended.failure().unwrap_or_else(|| "it gave no reason".to_owned());
            let message = match &self.launch.resume {
                // Gone for good: too old, or its process was killed before it wrote anything down.
                Some(session) if why.contains("No conversation found") => {
                    out.signals.push(Signal::SessionLost);
                    format!("Claude has no session {session} any more; reopen the agent to begin a new one.")
                }
                Some(session) => format!("Claude cannot take up the session {session}: {why}."),
                None => format!("Claude cannot open a session: {why}."),
            };
            return self.start_failed(message, out);
        }
        self.count(&ended, out);
        let outcome = ended.outcome(self.turn.as_ref().is_some_and(|turn| turn.interrupted));
        match &mut self.turn {
            Some(turn) if !turn.own && ended.is_by_agent() => turn.merged = Some(outcome),
            Some(_) => self.end_turn(outcome, out),
            // A turn whose beginning was not told, such as one before a crash.
            None => {}
        }
    }

    /// The end of a turn was too long to be read.
    pub(super) fn result_lost(&mut self, is_error: bool, out: &mut Output) {
        if self.turn.is_some() {
            let outcome = if is_error {
                TurnOutcome::Failed {
                    message: "The agent failed and said so at too great a length.".to_owned(),
                }
            } else {
                TurnOutcome::Completed
            };
            self.end_turn(outcome, out);
        }
    }

    fn end_turn(&mut self, outcome: TurnOutcome, out: &mut Output) {
        self.turn = None;
        self.stream = Stream::default();
        self.forget_asks();
        let tasks = &self.tasks;
        self.tools.fail(|tool| tasks.works(tool), out);
        out.signals.push(Signal::TurnEnded(outcome));
        self.ask_again(out);
    }

    /// The process ended: nothing that is open will end any more.
    pub(crate) fn give_up(&mut self, out: &mut Output) {
        self.tools.fail(|_| false, out);
        self.phase = Phase::Over;
        self.turn = None;
        self.stream = Stream::default();
        self.offered.clear();
        self.requests.clear();
        self.asks.clear();
        self.tasks.clear();
    }

    /// Tells what was used: the program counts over the life of its process, the model's context by its name.
    fn count(&self, ended: &Ended<'_>, out: &mut Output) {
        let models = ended.model_usage.and_then(|raw| {
            serde_json::from_str::<std::collections::BTreeMap<String, ModelUsage>>(raw.get()).ok()
        });
        let models = models.unwrap_or_default();
        let mut usage = Usage { cost: ended.total_cost_usd, ..Usage::default() };
        for (name, model) in &models {
            let read = [model.input_tokens, model.cache_read_input_tokens, model.cache_creation_input_tokens]
                .into_iter()
                .fold(usage.input_tokens.unwrap_or(0), u64::saturating_add);
            usage.input_tokens = Some(read);
            usage.output_tokens = Some(usage.output_tokens.unwrap_or(0).saturating_add(model.output_tokens));
            if *name == self.options.resolved {
                usage.context_size = model.context_window;
            }
        }
        if usage != Usage::default() {
            let used = &self.launch.used;
            usage.input_tokens = sum(usage.input_tokens, used.input_tokens);
            usage.output_tokens = sum(usage.output_tokens, used.output_tokens);
            usage.cost = usage.cost.map(|cost| cost + used.cost.unwrap_or_default());
            out.signals.push(Signal::Usage(usage));
        }
    }
}

/// What this process used, on top of the earlier ones.
fn sum(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    now.map(|now| now.saturating_add(before.unwrap_or(0)))
}

impl Ended<'_> {
    /// Whether the turn was the agent's own, or another program's, and not ours.
    fn is_by_agent(&self) -> bool {
        #[derive(Deserialize)]
        struct Origin {
            kind: String,
        }
        let origin = self.origin.and_then(|origin| serde_json::from_str::<Origin>(origin.get()).ok());
        origin.is_some_and(|origin| origin.kind != "human")
    }

    fn outcome(&self, interrupted: bool) -> TurnOutcome {
        let stopped = |reason: &str| TurnOutcome::Stopped { reason: reason.to_owned() };
        let aborted = self.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted"));
        match self.subtype.as_str() {
            _ if aborted || (interrupted && self.is_error) => TurnOutcome::Interrupted,
            "error_max_turns" => stopped("it reached the limit of turns"),
            "error_max_budget_usd" => stopped("it reached the limit of cost"),
            _ if self.stop_reason.as_deref() == Some("refusal") => match self.failure() {
                Some(why) => TurnOutcome::Stopped { reason: format!("it refused: {why}") },
                None => stopped("it refused"),
            },
            "success" if !self.is_error => TurnOutcome::Completed,
            _ => {
                let why = self.failure().unwrap_or_else(|| "it gave no reason".to_owned());
                TurnOutcome::Failed { message: format!("The agent failed: {why}.") }
            }
        }
    }

    /// What the agent says went wrong. Diagnostics for its makers are left out.
    fn failure(&self) -> Option<String> {
        let errors =
            self.errors.iter().map(String::as_str).filter(|error| !error.starts_with("[ede_diagnostic]"));
        let said: Vec<&str> = self.result.as_deref().into_iter().chain(errors).collect();
        let said = one_line(&said.join(" "));
        let said = said.trim_end_matches('.');
        (!said.is_empty()).then(|| said.to_owned())
    }
}

/// A message of a person, or of another agent.
pub(super) fn user_message(text: &str, attachments: &[Attachment], out: &mut Output) -> Value {
    // A slash command is only one as plain text.
    let content = if attachments.is_empty() { json!(text) } else { blocks(text, attachments, out) };
    json!({
        "type": "user",
        "session_id": "",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": null,
    })
}

fn blocks(text: &str, attachments: &[Attachment], out: &mut Output) -> Value {
    let mut blocks = Vec::new();
    if !text.is_empty() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for attachment in attachments {
        match attachment {
            Attachment::Image(Image { mime_type, data }) if IMAGES.contains(&mime_type.as_str()) => {
                let source = json!({"type": "base64", "media_type": mime_type, "data": data});
                blocks.push(json!({"type": "image", "source": source}));
            }
            Attachment::Image(image) => {
                let kind = one_line(&image.mime_type);
                warn(
                    out,
                    format!(
                        "The agent takes no images of the kind {kind}, so one was left out of the prompt."
                    ),
                );
            }
            Attachment::File { path, text } => {
                blocks.push(json!({"type": "text", "text": format!("The file {path} holds:\n{text}")}));
            }
        }
    }
    // The model takes no message without content.
    if blocks.is_empty() {
        blocks.push(json!({"type": "text", "text": "(an image that could not be sent)"}));
    }
    Value::Array(blocks)
}
