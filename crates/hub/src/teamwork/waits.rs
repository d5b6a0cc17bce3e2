//! Calls that wait: for tasks and other agents, and for answers.
//!
//! A wait is bounded and can be continued by another. What is there when it ends is handed out with it; what comes later
//! comes as a message, or through the next wait.

use std::sync::Arc;
use std::time::Duration;

use consort_model::relation::TaskResult;
use consort_model::team::{Awaited, Report, Wait, message_receipt, result_receipt};
use consort_model::{AgentId, Prompt, PromptId, Refusal, State, WaitId, decide};
use serde::Serialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::{message, status_words};
use crate::HubError;
use crate::hub::Hub;
use crate::shared::Shared;

/// How one agent that was waited for stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Outcome {
    /// Which agent.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// What it is there for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `done`, `failed`, `stopped` or `closed` for a task that is over; else what the agent is doing.
    pub status: String,
    /// What it waits for, where it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The result, or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Where all of a long result is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_file: Option<String>,
    /// Proves that the result was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
}

/// What came of a wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Waited {
    /// Who is done.
    pub finished: Vec<Outcome>,
    /// Who is not; waiting again goes on.
    pub unfinished: Vec<Outcome>,
}

/// What came of a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Answered {
    /// The answer.
    Answer {
        /// Who answers.
        name: String,
        /// Who that is: some programs show their model this form and not the words around it.
        written_by: &'static str,
        /// What it said.
        text: String,
        /// Proves that the answer was seen.
        receipt: String,
    },
    /// There is none yet; it comes as a message.
    Later {
        /// Who was asked.
        name: String,
        /// What it is doing.
        status: String,
    },
}

/// Marks what an agent wrote, wherever its words are shown as data.
pub const AN_AGENT: &str = "an agent, not a person";

/// Ends the record of a wait whose call is dropped, so that what it waited for comes as a message.
struct Open {
    shared: Arc<Shared>,
    agent: AgentId,
    wait: WaitId,
    ended: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (shared, agent, wait) = (Arc::clone(&self.shared), self.agent, self.wait);
        // Outside of a runtime the daemon is at its end; the next one ends the wait.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) =
                    shared.commit(move |state, _| Ok(decide::end_wait(state, agent, wait))).await
                {
                    tracing::warn!(%agent, %error, "a call that was given up still waits");
                }
            });
        }
    }
}

impl Hub {
    /// Waits until one of the agents, or all of them, are done, at most for `limit`. `progress` is told now and then what
    /// the wait is for.
    pub async fn wait_for_agents(
        &self,
        waiting: AgentId,
        agents: Vec<AgentId>,
        all: bool,
        limit: Duration,
        mut progress: impl FnMut(&Waited),
    ) -> Result<Waited, HubError> {
        let agents = if agents.is_empty() { self.open_tasks_of(waiting)? } else { agents };
        let on: Vec<Awaited> = agents.iter().map(|agent| Awaited::Agent { agent: *agent }).collect();
        let mut changes = self.teamwork.changed.subscribe();
        let id = WaitId::new(Uuid::now_v7());
        let wait = Wait { id, on: on.clone() };
        // Before the commit: a call that is dropped while it is being committed has begun to wait all the same.
        let mut open = Open { shared: Arc::clone(&self.shared), agent: waiting, wait: id, ended: false };
        self.run(move |state, _| decide::begin_wait(state, waiting, wait)).await?;
        let until = Instant::now() + limit;
        let mut told = None;
        loop {
            changes.borrow_and_update();
            if self.with(|state| is_over(state, waiting, &on, all)) {
                break;
            }
            let now = self.with(|state| outcomes(state, waiting, &agents));
            if told.as_ref() != Some(&now) {
                progress(&now);
                told = Some(now);
            }
            if !self.is_open(waiting, id) {
                open.ended = true;
                return Err(over());
            }
            tokio::select! {
                changed = changes.changed() => changed.map_err(|_| over())?,
                () = tokio::time::sleep_until(until) => break,
            }
        }
        // What is told is what is handed out: both are of one state.
        let (sender, handed) = tokio::sync::oneshot::channel();
        self.run(move |state, _| {
            let events = decide::hand_out(state, waiting, id)?;
            drop(sender.send(outcomes(state, waiting, &agents)));
            Ok(events)
        })
        .await?;
        open.ended = true;
        handed.await.map_err(|_| over())
    }

    /// Sends a message and waits for what its turn says, at most for `limit`; after that the answer comes as a message.
    pub async fn ask_agent(
        &self,
        asker: AgentId,
        to: AgentId,
        text: String,
        limit: Duration,
    ) -> Result<Answered, HubError> {
        self.refresh_profiles().await?;
        let mut changes = self.teamwork.changed.subscribe();
        let message = message(asker, text);
        let (prompt, id) = (message.id, WaitId::new(Uuid::now_v7()));
        let mut open = Open { shared: Arc::clone(&self.shared), agent: asker, wait: id, ended: false };
        self.run(move |state, at| decide::inquire(state, to, &Prompt { at, ..message }, id, at)).await?;
        let awaited = Awaited::Answer { agent: to, prompt };
        let until = Instant::now() + limit;
        let in_time = loop {
            changes.borrow_and_update();
            if self.with(|state| decide::is_there(state, asker, awaited)) {
                break true;
            }
            if !self.is_open(asker, id) {
                open.ended = true;
                return Err(over());
            }
            tokio::select! {
                changed = changes.changed() => changed.map_err(|_| over())?,
                () = tokio::time::sleep_until(until) => break false,
            }
        };
        let (sender, handed) = tokio::sync::oneshot::channel();
        self.run(move |state, _| {
            // The answer may have come at the last moment.
            let answer = answer(state, to, prompt);
            let events = match &answer {
                Some(_) => decide::hand_out(state, asker, id)?,
                None => decide::end_wait(state, asker, id),
            };
            drop(sender.send(answer));
            Ok(events)
        })
        .await?;
        open.ended = true;
        let answer = handed.await.map_err(|_| over())?;
        let (name, status) = self.with(|state| {
            state.agent(to).map(|agent| (agent.name.clone(), status_words(agent).to_owned()))
        })?;
        Ok(match answer {
            Some(text) => {
                Answered::Answer { name, written_by: AN_AGENT, text, receipt: message_receipt(prompt) }
            }
            None if in_time => return Err(over()),
            None => Answered::Later { name, status },
        })
    }

    fn is_open(&self, agent: AgentId, wait: WaitId) -> bool {
        self.with(|state| {
            state.agents.get(&agent).is_some_and(|agent| agent.waits.iter().any(|open| open.id == wait))
        })
    }

    /// The sub-agents of an agent that are not done, or whose results it does not have yet.
    fn open_tasks_of(&self, parent: AgentId) -> Result<Vec<AgentId>, HubError> {
        let children: Vec<AgentId> = self.with(|state| {
            let mine = state.agents.values().filter(|agent| agent.relation.parent() == Some(parent));
            let wanted = mine.filter(|agent| {
                let unknown = agent.task.report != Report::Made || message_waits(state, parent, agent.id);
                decide::has_open_task(agent) || (agent.relation.result().is_some() && unknown)
            });
            wanted.map(|agent| agent.id).collect()
        });
        if children.is_empty() {
            let reason = "you have no sub-agents at work; name the agents to wait for".to_owned();
            return Err(Refusal::Invalid { reason }.into());
        }
        Ok(children)
    }
}

fn over() -> HubError {
    let reason = "this call waits no more: the turn that it belongs to is over".to_owned();
    Refusal::Invalid { reason }.into()
}

/// Whether what is waited for is there. Who waits for any of several gets what is new first.
fn is_over(state: &State, waiting: AgentId, on: &[Awaited], all: bool) -> bool {
    let there = |awaited: &&Awaited| decide::is_there(state, waiting, **awaited);
    let count = on.iter().filter(there).count();
    if all || count == on.len() {
        return count == on.len();
    }
    on.iter().filter(there).any(|awaited| {
        let known = state.agents.get(&awaited.agent()).is_some_and(|agent| {
            agent.relation.result().is_some()
                && agent.task.report == Report::Made
                && !message_waits(state, waiting, agent.id)
        });
        !known
    })
}

/// Whether the message about a sub-agent's result still waits for its parent.
fn message_waits(state: &State, parent: AgentId, child: AgentId) -> bool {
    let parent = state.agents.get(&parent);
    parent.is_some_and(|parent| parent.queue.iter().any(|prompt| prompt.id.uuid() == child.uuid()))
}

fn outcomes(state: &State, waiting: AgentId, agents: &[AgentId]) -> Waited {
    let (mut finished, mut unfinished) = (Vec::new(), Vec::new());
    for id in agents {
        let Ok(agent) = state.agent(*id) else { continue };
        let mut outcome = Outcome {
            agent: *id,
            name: agent.name.clone(),
            label: agent.brief.label.clone(),
            status: status_words(agent).to_owned(),
            waits_for: agent.asks.first().map(|ask| ask.title.clone()),
            result: None,
            result_file: None,
            receipt: None,
        };
        if agent.relation.parent() == Some(waiting)
            && let Some(result) = agent.relation.result()
        {
            let (status, text, file) = match result {
                TaskResult::Yielded { text, file } => ("done", Some(text), file.clone()),
                TaskResult::Failed { reason } => ("failed", Some(reason), None),
                TaskResult::Stopped { reason } => ("stopped", Some(reason), None),
                TaskResult::Closed => ("closed", None, None),
            };
            outcome.status = status.to_owned();
            outcome.waits_for = None;
            outcome.result = text.cloned();
            outcome.result_file = file;
            outcome.receipt = Some(result_receipt(*id));
        }
        let there = decide::is_there(state, waiting, Awaited::Agent { agent: *id });
        if there { finished.push(outcome) } else { unfinished.push(outcome) }
    }
    Waited { finished, unfinished }
}

/// The answer to a message, if it is there.
fn answer(state: &State, agent: AgentId, prompt: PromptId) -> Option<String> {
    let agent = state.agents.get(&agent)?;
    agent.inquiries.iter().find(|inquiry| inquiry.prompt == prompt)?.answer.clone()
}
