//! What an agent owes others when its turn is over: its task's result, and answers.
//!
//! What a turn said is in the transcript and not in the state, so it is read here. All of it follows from the state, so it
//! is looked for again when a daemon finds the process, and doing it twice does no harm.

use std::sync::Arc;

use consort_model::event::AgentEvent;
use consort_model::relation::TaskResult;
use consort_model::{
    Agent, Event, Item, ItemBody, PromptId, Refusal, Signal, State, Timestamp, TurnId, decide,
};
use consort_store::{CommitError, Page};
use tokio::time::Instant;

use super::{Batch, Ending, Process, current};
use crate::results;

/// How many of the last items are looked at for what a turn said.
const LOOK_BACK: usize = 200;

impl Process {
    /// Gives what is due after a turn.
    pub(super) async fn look_after(&mut self) -> Result<(), Ending> {
        let due = self.shared.store.with(|state| {
            let agent = current(state, self.id, self.generation)?;
            let last_words = decide::after_turn(agent, state.agents.values()) == decide::AfterTurn::LastWords;
            let answers: Vec<(PromptId, Option<TurnId>)> = decide::answerable(agent)
                .into_iter()
                .map(|prompt| (prompt, turn_of(agent, prompt)))
                .collect();
            (last_words || !answers.is_empty()).then_some((last_words, answers))
        });
        let Some((last_words, answers)) = due else { return Ok(()) };
        let items = match self.shared.store.items(self.id, Page::Last { limit: LOOK_BACK }).await {
            Ok(items) => items,
            Err(error) => {
                tracing::warn!(agent = %self.id, %error, "what the agent said last cannot be read");
                return Ok(());
            }
        };
        for (prompt, turn) in answers {
            let said = words(items.iter().filter(|item| item.turn == turn));
            let text = said.unwrap_or_else(|| "It ended its turn without saying anything.".to_owned());
            let text = self.keep(text).await.text;
            let id = self.id;
            self.commit_team(move |state, _| {
                let open =
                    state.agent(id)?.inquiries.iter().any(|i| i.prompt == prompt && i.answer.is_none());
                let answered = AgentEvent::Answered { prompt, text: text.clone() };
                Ok(if open { vec![Event::of(id, answered)] } else { vec![] })
            })
            .await?;
        }
        if last_words {
            let said = words(items.iter()).unwrap_or_else(|| "(it said nothing)".to_owned());
            let results::Kept { text, file } = self.keep(said).await;
            let (id, file) = (self.id, file.map(|file| file.display().to_string()));
            self.commit_team(move |state, _| {
                if decide::after_turn(state.agent(id)?, state.agents.values()) != decide::AfterTurn::LastWords
                {
                    return Ok(vec![]);
                }
                decide::settle_task(state, id, TaskResult::Yielded { text: text.clone(), file: file.clone() })
            })
            .await?;
        }
        Ok(())
    }

    /// Keeps a long text in a file; where that fails, what is handed on says so.
    async fn keep(&self, text: String) -> results::Kept {
        self.shared.keep_result(self.id, text).await.unwrap_or_else(|error| {
            tracing::warn!(agent = %self.id, %error, "a long result was not kept whole");
            let text = format!("(its result was too long and could not be kept: {error})");
            results::Kept { text, file: None }
        })
    }

    /// Commits something that leaves the driver as it is, and waits for as long as the store cannot keep it.
    async fn commit_team(
        &mut self,
        decide: impl Fn(&State, Timestamp) -> Result<Vec<Event>, Refusal> + Send + Sync + 'static,
    ) -> Result<(), Ending> {
        let decide = Arc::new(decide);
        loop {
            let decide = Arc::clone(&decide);
            match self.shared.commit(move |state, at| decide(state, at)).await {
                Ok(_) | Err(CommitError::Refused(_)) => return Ok(()),
                Err(CommitError::Stopped) => return Err(Ending::StoreClosed),
                Err(CommitError::Unavailable { reason }) => {
                    tracing::warn!(agent = %self.id, reason, "waiting for the store");
                    self.wait_out().await?;
                }
            }
        }
    }

    /// Whether the turn is to be ended because the agent gave its result in it and the call by which it did is over.
    pub(super) fn cuts_off(&mut self, batch: &Batch) -> bool {
        let goes_on = |signal: &Signal| match signal {
            Signal::Tool { call, .. } => call.status.is_over(),
            Signal::Text { .. } | Signal::Thinking { .. } => true,
            _ => false,
        };
        if !batch.output.signals.iter().any(goes_on) {
            return false;
        }
        let yielded = self.shared.store.with(|state| {
            let turn = current(state, self.id, self.generation)?.turn.as_ref()?;
            (turn.yielded && !turn.interrupted).then_some(turn.id)
        });
        let cuts = yielded.is_some() && self.cut_off != yielded;
        if cuts {
            self.cut_off = yielded;
        }
        cuts
    }

    /// When a sub-agent that works will have used up its time.
    pub(super) fn time_is_up_at(&self) -> Option<Instant> {
        let end = self.shared.store.with(|state| {
            let agent = current(state, self.id, self.generation)?;
            decide::time_is_up_at(agent, &state.limits)
        })?;
        let left = u64::try_from(end.0 - now().0).unwrap_or(0);
        Some(Instant::now() + std::time::Duration::from_millis(left))
    }

    /// Stops a sub-agent whose time is up; the hub then interrupts it as any that is stopped.
    pub(super) async fn stop_at_time(&mut self) -> Result<(), Ending> {
        let (id, generation) = (self.id, self.generation);
        self.commit_team(move |state, at| {
            let Some(agent) = current(state, id, generation) else { return Ok(vec![]) };
            let stopped = decide::stop_at_time(agent, &state.limits, at);
            Ok(stopped.into_iter().map(|change| Event::of(id, change)).collect())
        })
        .await
    }
}

fn turn_of(agent: &Agent, prompt: PromptId) -> Option<TurnId> {
    agent.inquiries.iter().find(|inquiry| inquiry.prompt == prompt)?.turn
}

/// What was said last among these items: the texts at the end, without what stands between them and the last use of a
/// tool.
fn words<'a>(items: impl DoubleEndedIterator<Item = &'a Item>) -> Option<String> {
    let mut said = Vec::new();
    for item in items.rev().filter(|item| item.within.is_none()) {
        match &item.body {
            ItemBody::Text { text } => said.push(text.as_str()),
            ItemBody::Tool(_) | ItemBody::User { .. } if !said.is_empty() => break,
            ItemBody::User { .. } => return None,
            _ => {}
        }
    }
    said.reverse();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{ItemIndex, NoticeLevel, PromptOrigin, ToolCall, ToolCallId, ToolKind, ToolStatus};

    fn item(body: ItemBody) -> Item {
        Item { index: ItemIndex(0), turn: None, at: Timestamp(0), done: true, within: None, body }
    }

    fn text(text: &str) -> Item {
        item(ItemBody::Text { text: text.to_owned() })
    }

    fn tool() -> Item {
        item(ItemBody::Tool(ToolCall {
            status: ToolStatus::Completed,
            output: "secret".to_owned(),
            ..ToolCall::new(ToolCallId::new("t"), ToolKind::Read, "read")
        }))
    }

    fn prompt() -> Item {
        let (prompt, origin) = (PromptId::new(uuid::Uuid::nil()), PromptOrigin::Person);
        item(ItemBody::User { prompt, origin, text: "do".to_owned(), attachments: vec![] })
    }

    #[test]
    fn the_last_words_are_text_alone() {
        let nested = Item { within: Some(ToolCallId::new("t")), ..text("of its own helper") };
        let notice = item(ItemBody::Notice { level: NoticeLevel::Info, text: "n".to_owned() });
        let thinking = item(ItemBody::Thinking { text: "hm".to_owned() });
        let table: [(Vec<Item>, Option<&str>); 7] = [
            (vec![prompt(), text("a"), tool(), text("b")], Some("b")),
            (vec![prompt(), text("a"), text("b")], Some("a\n\nb")),
            (vec![prompt(), text("a"), tool()], Some("a")),
            (vec![prompt(), text("a"), tool(), text("b"), thinking, text("c"), notice], Some("b\n\nc")),
            (vec![prompt(), tool(), text("b"), nested], Some("b")),
            (vec![text("earlier"), prompt(), tool()], None),
            (vec![], None),
        ];
        for (items, expected) in table {
            assert_eq!(words(items.iter()).as_deref(), expected);
        }
    }
}
