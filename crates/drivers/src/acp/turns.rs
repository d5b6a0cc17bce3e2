//! Turns: a prompt out, and what its answer means.

use agent_client_protocol_schema::v1;
use consort_model::{Attachment, Signal, TurnOutcome, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{self, RpcError, code, one_line};
use super::{Acp, Phase, Request, warn};
use crate::Output;

/// The running turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// Whether it was told to stop.
    pub interrupted: bool,
}

/// Tokens over the life of the process: the protocol counts them by turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tokens {
    read: u64,
    written: u64,
}

impl Tokens {
    /// Counts on from what earlier processes used.
    pub fn since(used: &Usage) -> Self {
        Self { read: used.input_tokens.unwrap_or(0), written: used.output_tokens.unwrap_or(0) }
    }
}

impl Acp {
    pub(crate) fn begin_turn(&mut self, text: &str, attachments: &[Attachment], out: &mut Output) {
        let (Phase::Open, None, Some(session)) = (self.phase, self.turn, self.session.clone()) else {
            return warn(out, "A prompt came at a time when the agent takes none, and was not sent.");
        };
        let mut blocks = Vec::new();
        if !text.is_empty() || attachments.is_empty() {
            blocks.push(v1::ContentBlock::Text(v1::TextContent::new(text)));
        }
        for attachment in attachments {
            match attachment {
                Attachment::Image(image) if self.peer.can.images => {
                    let image = v1::ImageContent::new(image.data.clone(), image.mime_type.clone());
                    blocks.push(v1::ContentBlock::Image(image));
                }
                Attachment::Image(_) => {
                    warn(out, "The agent takes no images, so one was left out of the prompt.");
                }
                Attachment::File { path, text } if self.peer.can.files => {
                    let file = v1::TextResourceContents::new(text.clone(), file_uri(path));
                    let file = v1::EmbeddedResourceResource::TextResourceContents(file);
                    blocks.push(v1::ContentBlock::Resource(v1::EmbeddedResource::new(file)));
                }
                Attachment::File { path, text } => {
                    let text = format!("The file {path} holds:\n{text}");
                    blocks.push(v1::ContentBlock::Text(v1::TextContent::new(text)));
                }
            }
        }
        self.replaying = false;
        self.message = None;
        self.tools.clear();
        self.turn = Some(Turn { interrupted: false });
        let params = v1::PromptRequest::new(session, blocks);
        self.send(Request::Prompt, "session/prompt", params, out);
    }

    pub(crate) fn stop_turn(&mut self, out: &mut Output) {
        let Some(turn) = &mut self.turn else { return };
        turn.interrupted = true;
        self.cancel_asks(out);
        let session = self.session.as_deref().unwrap_or_default();
        out.frames.push(wire::notification("session/cancel", json!({"sessionId": session})));
    }

    pub(super) fn turn_ended(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        let interrupted = self.turn.take().is_some_and(|turn| turn.interrupted);
        self.message = None;
        self.fail_tools(out);
        // The agent does not wait for these any more; answered all the same, since an answer is owed.
        self.cancel_asks(out);
        let outcome = match outcome {
            Ok(result) => {
                let ended: Ended<'_> = serde_json::from_str(result).unwrap_or_default();
                self.count_tokens(&ended, out);
                match ended.stop_reason.as_deref() {
                    _ if interrupted => TurnOutcome::Interrupted,
                    Some("end_turn") => TurnOutcome::Completed,
                    Some("cancelled") => TurnOutcome::Interrupted,
                    Some(reason) => TurnOutcome::Stopped { reason: stop_words(reason) },
                    None => {
                        warn(out, "The agent ended its turn without a reason.");
                        TurnOutcome::Completed
                    }
                }
            }
            Err(_) if interrupted => TurnOutcome::Interrupted,
            Err(error) if error.code == code::AUTH_REQUIRED => {
                let mut message = format!("The agent is not logged in: {}.", error.sentence());
                if let Some(command) = self.peer.logins.iter().find_map(|login| login.terminal.as_ref()) {
                    message.push_str(&format!(" Run {command} in a terminal and prompt again."));
                }
                TurnOutcome::Failed { message }
            }
            Err(error) => TurnOutcome::Failed { message: format!("The agent failed: {}.", error.sentence()) },
        };
        out.signals.push(Signal::TurnEnded(outcome));
    }

    pub(crate) fn give_up(&mut self, out: &mut Output) {
        self.fail_tools(out);
        self.phase = Phase::Over;
        self.turn = None;
        self.message = None;
        self.requests.clear();
        self.asks.clear();
        self.calls.clear();
    }

    pub(super) fn close_session(&mut self) -> Option<Vec<u8>> {
        let session = self.session.clone().filter(|_| self.phase == Phase::Open && self.peer.can.close)?;
        let mut out = Output::default();
        self.send(Request::Close, "session/close", v1::CloseSessionRequest::new(session), &mut out);
        out.frames.pop()
    }

    fn fail_tools(&mut self, out: &mut Output) {
        for call in self.tools.fail_all() {
            self.tell_tool(&call, out);
        }
    }

    fn count_tokens(&mut self, ended: &Ended<'_>, out: &mut Output) {
        let by_protocol = || {
            let usage: v1::Usage = serde_json::from_str(ended.usage?.get()).ok()?;
            let cached =
                usage.cached_read_tokens.unwrap_or(0).saturating_add(usage.cached_write_tokens.unwrap_or(0));
            let read = usage.input_tokens.saturating_add(cached);
            Some((read, usage.output_tokens.saturating_add(usage.thought_tokens.unwrap_or(0))))
        };
        let by_quota = || {
            let meta: Value = serde_json::from_str(ended.meta?.get()).ok()?;
            let count = meta.get("quota")?.get("token_count")?;
            Some((count.get("input_tokens")?.as_u64()?, count.get("output_tokens")?.as_u64()?))
        };
        let counted = by_protocol().or_else(|| if self.quirks().quota_in_meta { by_quota() } else { None });
        let Some((read, written)) = counted else { return };
        self.tokens.read = self.tokens.read.saturating_add(read);
        self.tokens.written = self.tokens.written.saturating_add(written);
        out.signals.push(Signal::Usage(Usage {
            input_tokens: Some(self.tokens.read),
            output_tokens: Some(self.tokens.written),
            ..Usage::default()
        }));
    }
}

/// The answer to a prompt.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Ended<'a> {
    stop_reason: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

fn stop_words(reason: &str) -> String {
    match reason {
        "max_tokens" => "it reached the limit of tokens".to_owned(),
        "max_turn_requests" => "it reached the limit of requests to its model".to_owned(),
        "refusal" => "it refused".to_owned(),
        other => one_line(other),
    }
}

/// A path as a URI.
fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(byte.into())
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
