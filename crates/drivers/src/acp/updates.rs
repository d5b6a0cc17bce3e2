//! Session updates: what an agent says while it works, and what it says about its session.
//!
//! Pieces of text are nearly all of the traffic and take a short way that copies nothing but the text itself. While
//! the past of a taken-up session is told again, only what describes the session now is heard.

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1;
use consort_model::{NoticeLevel, PlanEntry, PlanStatus, Signal, SlashCommand, Usage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::tools::Piece;
use super::wire::{TextBlock, UpdateHead, UpdateParams, excerpt, one_line};
use super::{Acp, FOREIGN_NOTICES, notice, quirks, unknown, warn};
use crate::Output;
use crate::images::image_of;

/// The parameters of `session/update`, with the update as it came.
#[derive(Deserialize)]
struct RawUpdate<'a> {
    #[serde(borrow)]
    update: &'a RawValue,
}

impl Acp {
    pub(super) fn session_update(&mut self, params: &str, out: &mut Output) {
        let UpdateParams { session, update } = match serde_json::from_str(params) {
            Ok(params) => params,
            Err(_) => {
                let shown = excerpt(params.as_bytes());
                return warn(out, format!("The agent sent a session update that cannot be read: {shown}"));
            }
        };
        // Until the answer to session/new names the session, any name is right.
        if self.session.as_deref().is_some_and(|ours| ours != session.0) {
            return self.foreign_update(&session.0, out);
        }
        match &*update.kind.0 {
            "agent_message_chunk" => self.chunk(&update, false, params, out),
            "agent_thought_chunk" => self.chunk(&update, true, params, out),
            // The person's own words are in the transcript already.
            "user_message_chunk" => {}
            kind => {
                let Ok(RawUpdate { update }) = serde_json::from_str(params) else { return };
                if self.other_update(kind, update.get(), out).is_none() {
                    out.signals.push(unknown(kind, update.get()));
                }
            }
        }
    }

    fn foreign_update(&mut self, session: &str, out: &mut Output) {
        if self.foreign.len() < FOREIGN_NOTICES && !self.foreign.iter().any(|seen| seen == session) {
            let session = one_line(session);
            warn(out, format!("The agent speaks of another session, {session}, which is left out."));
            self.foreign.push(session);
        }
    }

    /// A piece of a message or thought.
    fn chunk(&mut self, update: &UpdateHead<'_>, thinking: bool, params: &str, out: &mut Output) {
        let block = update.content.and_then(|raw| serde_json::from_str::<TextBlock<'_>>(raw.get()).ok());
        let text = block.filter(|block| block.kind.0 == "text").and_then(|block| block.text);
        if let Some(text) = &text
            && !thinking
            && self.quirks().mode_in_text
            && let Some(mode) = quirks::mode_in(&text.0)
        {
            return self.mode_is(mode, out);
        }
        if self.replaying {
            return;
        }
        let Some(text) = text else {
            let kind = &*update.kind.0;
            let raw = update.content.map_or(params, RawValue::get);
            let image = serde_json::from_str(raw).ok().and_then(|block| image_of(&block));
            out.signals.push(match image {
                Some(image) => Signal::Image { image, within: None },
                None => unknown(&content_label(kind, raw), raw),
            });
            return;
        };
        if let Some(message) = &update.message
            && self.message.as_deref() != Some(&*message.0)
        {
            if self.message.is_some() {
                out.signals.push(Signal::MessageEnd);
            }
            self.message = Some(message.0.clone().into_owned());
        }
        if text.0.is_empty() {
            return;
        }
        let text = text.0.into_owned();
        out.signals.push(match thinking {
            true => Signal::Thinking { text, within: None },
            false => Signal::Text { text, within: None },
        });
    }

    /// Every other kind of update; none if it cannot be read or is of no known kind.
    fn other_update(&mut self, kind: &str, update: &str, out: &mut Output) -> Option<()> {
        match kind {
            "tool_call" | "tool_call_update" => {
                let piece: Piece<'_> = serde_json::from_str(update).ok()?;
                if !self.replaying {
                    self.tool_piece(&piece, out);
                }
            }
            "plan" => {
                let plan: v1::Plan = read(update)?;
                if !self.replaying {
                    out.signals.push(Signal::Plan(plan.entries.into_iter().map(plan_entry).collect()));
                }
            }
            "available_commands_update" => {
                let update: v1::AvailableCommandsUpdate = read(update)?;
                let commands = update.available_commands.into_iter().map(slash_command).collect();
                out.signals.push(Signal::Commands(commands));
            }
            "current_mode_update" => {
                let update: v1::CurrentModeUpdate = read(update)?;
                self.mode_is(&update.current_mode_id.0, out);
            }
            "config_option_update" => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Config<'a> {
                    #[serde(borrow)]
                    config_options: &'a RawValue,
                }
                let update: Config<'_> = serde_json::from_str(update).ok()?;
                self.config_is(update.config_options.get(), out);
            }
            "session_info_update" => {
                let update: v1::SessionInfoUpdate = read(update)?;
                if let MaybeUndefined::Value(title) = update.title {
                    out.signals.push(Signal::Title(one_line(&title)));
                }
            }
            "usage_update" => {
                let update: v1::UsageUpdate = read(update)?;
                out.signals.push(Signal::Usage(usage(&update)));
            }
            "notice" => {
                let update: v1::Notice = read(update)?;
                let level = match update.severity {
                    v1::NoticeSeverity::Warning => NoticeLevel::Warning,
                    v1::NoticeSeverity::Error => NoticeLevel::Error,
                    _ => NoticeLevel::Info,
                };
                let text = match update.description {
                    Some(description) => format!("{}: {description}", update.title),
                    None => update.title,
                };
                notice(out, level, one_line(&text));
            }
            "compaction_update" => {
                let update: v1::CompactionUpdate = read(update)?;
                if !self.replaying {
                    compaction(&update, out);
                }
            }
            "compaction_summary_chunk" => {
                let update: v1::CompactionSummaryChunk = read(update)?;
                if let v1::ContentBlock::Text(text) = update.content
                    && !self.replaying
                {
                    out.signals.push(Signal::Thinking { text: text.text, within: None });
                }
            }
            _ => return None,
        }
        Some(())
    }
}

fn read<T: DeserializeOwned>(update: &str) -> Option<T> {
    serde_json::from_str(update).ok()
}

/// What a piece of a message is that is not text.
fn content_label(kind: &str, content: &str) -> String {
    let block = serde_json::from_str::<TextBlock<'_>>(content).ok();
    let what = block.as_ref().map_or("content", |block| &*block.kind.0);
    match kind {
        "agent_thought_chunk" => format!("{what} in a thought"),
        _ => format!("{what} in a message"),
    }
}

fn plan_entry(entry: v1::PlanEntry) -> PlanEntry {
    let status = match entry.status {
        v1::PlanEntryStatus::InProgress => PlanStatus::InProgress,
        v1::PlanEntryStatus::Completed => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    };
    PlanEntry { text: entry.content, status }
}

fn slash_command(command: v1::AvailableCommand) -> SlashCommand {
    let hint = match command.input {
        Some(v1::AvailableCommandInput::Unstructured(input)) => Some(input.hint),
        _ => None,
    };
    SlashCommand { name: command.name, description: command.description, hint }
}

fn usage(update: &v1::UsageUpdate) -> Usage {
    let dollars = update.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD"));
    Usage {
        context_used: Some(update.used),
        context_size: Some(update.size),
        cost: dollars.map(|cost| cost.amount),
        ..Usage::default()
    }
}

fn compaction(update: &v1::CompactionUpdate, out: &mut Output) {
    let error = update.error.value().map(|error| one_line(error));
    match (&update.status, error) {
        (v1::CompactionStatus::InProgress, _) => {
            notice(out, NoticeLevel::Info, "The agent is making its context shorter.");
        }
        (v1::CompactionStatus::Completed, _) => {
            notice(out, NoticeLevel::Info, "The agent has made its context shorter.");
        }
        (v1::CompactionStatus::Failed, error) => {
            let why = error.unwrap_or_else(|| "it did not say why".to_owned());
            warn(out, format!("The agent could not make its context shorter: {why}."));
        }
        (v1::CompactionStatus::Cancelled, _) => {
            notice(out, NoticeLevel::Info, "The agent has stopped making its context shorter.");
        }
        (status, _) => {
            let status = format!("{status:?}");
            notice(
                out,
                NoticeLevel::Info,
                format!("The shortening of the agent's context is {}.", one_line(&status)),
            );
        }
    }
}
