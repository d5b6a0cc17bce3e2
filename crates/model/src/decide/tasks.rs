//! Sub-agents' tasks: who may run, how a task ends, and how the parent learns of it.
//!
//! Nothing here tells a parent by itself: that a task ended is an event, and what follows from it (a message, the start of
//! one that waited for the slot) is [`super::consequences`]' business, so that it follows whatever ended the task.

use std::collections::{BTreeMap, BTreeSet};

use super::{children, top_of};
use crate::agent::{Agent, Lifecycle, TurnOutcome};
use crate::command::Refusal;
use crate::event::{AgentEvent, Event};
use crate::ids::{AgentId, Timestamp};
use crate::limits::Limits;
use crate::relation::{Relation, TaskResult};
use crate::state::State;
use crate::transcript::Writer;

/// Whether it is a sub-agent whose task is not over.
pub fn has_open_task(agent: &Agent) -> bool {
    matches!(agent.relation, Relation::SubAgent { result: None, .. }) && !agent.is_closed()
}

/// Whether it is a sub-agent that runs. One that is done, that waits for its own sub-agents, or that has nothing to do
/// until a person goes on with it leaves its place to another.
pub fn holds_slot(agent: &Agent) -> bool {
    has_open_task(agent)
        && agent.waits.is_empty()
        && match agent.lifecycle {
            Lifecycle::Starting => true,
            Lifecycle::Ready | Lifecycle::Resting => agent.turn.is_some() || !agent.queue.is_empty(),
            Lifecycle::Queued | Lifecycle::Failed(_) | Lifecycle::Closed { .. } => false,
        }
}

/// How many sub-agents run, for the limits on that.
#[derive(Default)]
pub struct Running {
    all: u32,
    of: BTreeMap<AgentId, u32>,
}

impl Running {
    /// Counts them.
    pub fn count<'a>(agents: impl Iterator<Item = &'a Agent>) -> Self {
        let mut running = Self::default();
        for agent in agents.filter(|agent| holds_slot(agent)) {
            running.add(agent);
        }
        running
    }

    /// Counts one more.
    pub fn add(&mut self, agent: &Agent) {
        self.all += 1;
        if let Some(parent) = agent.relation.parent() {
            *self.of.entry(parent).or_default() += 1;
        }
    }

    /// The one predicate for how many sub-agents run at the same time: whether one more of this parent may.
    pub fn has_room(&self, parent: AgentId, limits: &Limits) -> bool {
        let of_parent = self.of.get(&parent).copied().unwrap_or(0);
        self.all < limits.subagents_total && of_parent < limits.subagents_per_parent
    }
}

/// The budget of the sub-agents below the same top agent that is used up, in words, with `agents` as they are.
pub fn spent_budget<'a>(
    agents: impl Iterator<Item = &'a Agent>,
    top: impl Fn(&Agent) -> AgentId,
    below: AgentId,
    limits: &Limits,
) -> Option<String> {
    if limits.tree_tokens == 0 && limits.tree_cents == 0 {
        return None;
    }
    let (mut tokens, mut dollars) = (0_u64, 0.0_f64);
    for agent in agents.filter(|agent| agent.relation.parent().is_some() && top(agent) == below) {
        let usage = &agent.usage;
        tokens += usage.input_tokens.unwrap_or(0) + usage.output_tokens.unwrap_or(0);
        dollars += usage.cost.unwrap_or(0.0);
    }
    if limits.tree_tokens > 0 && tokens >= limits.tree_tokens {
        return Some(format!("the budget of {} tokens for all sub-agents together", limits.tree_tokens));
    }
    let budget = limits.tree_cents as f64 / 100.0;
    (limits.tree_cents > 0 && dollars >= budget)
        .then(|| format!("the budget of ${budget:.2} for all sub-agents together"))
}

/// Whether the sub-agents below an agent may use any more.
pub(super) fn check_budget(state: &State, parent: AgentId) -> Result<(), Refusal> {
    let top = top_of(|id| state.agents.get(&id), parent);
    let of = |agent: &Agent| top_of(|id| state.agents.get(&id), agent.id);
    match spent_budget(state.agents.values(), of, top, &state.limits) {
        Some(budget) => Err(Refusal::BudgetSpent { budget }),
        None => Ok(()),
    }
}

/// Whether a sub-agent's turn may still spawn: not after it was told to stop, however late the call comes.
pub(super) fn check_not_stopped(parent: &Agent) -> Result<(), Refusal> {
    let stopped = match &parent.turn {
        Some(turn) => turn.interrupted,
        None => parent.last_outcome == Some(TurnOutcome::Interrupted),
    };
    if stopped {
        let reason = "your turn was interrupted; nothing new is started until the next prompt".to_owned();
        return Err(Refusal::NotAllowed { reason });
    }
    Ok(())
}

/// Ends a sub-agent's task with its result. A task that is over stays as it is.
pub fn settle_task(state: &State, child: AgentId, result: TaskResult) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(child)?;
    // Who was not started has no result.
    if !has_open_task(agent) || agent.lifecycle == Lifecycle::Queued {
        return Ok(vec![]);
    }
    Ok(vec![Event::of(child, AgentEvent::TaskSettled { result })])
}

/// The result that a sub-agent gives itself. Only a sub-agent has a parent to give it to, and only once.
pub fn yield_to_parent(
    state: &State,
    child: AgentId,
    text: &str,
    file: Option<String>,
) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(child)?;
    let refused = |reason: &str| Err(Refusal::NotAllowed { reason: reason.to_owned() });
    match agent.relation {
        Relation::SubAgent { result: None, .. } if !agent.is_closed() => {
            settle_task(state, child, TaskResult::Yielded { text: text.to_owned(), file })
        }
        Relation::SubAgent { .. } => {
            refused("your task is over and its result delivered; tell your parent more with send_message")
        }
        _ => refused("only a sub-agent yields to a parent; use send_message to tell another agent something"),
    }
}

/// Stops a sub-agent at a limit: its task is over, and one that was not started yet is closed. Who has a process is
/// interrupted by the hub when it sees this.
pub fn stop_task(agent: &Agent, reason: &str, at: Timestamp) -> Vec<AgentEvent> {
    if !has_open_task(agent) {
        return vec![];
    }
    let mut changes =
        vec![AgentEvent::TaskSettled { result: TaskResult::Stopped { reason: reason.to_owned() } }];
    if agent.lifecycle == Lifecycle::Queued {
        let mut writer = Writer::new(agent, at);
        writer.push(AgentEvent::Closed);
        changes.extend(writer.finish());
    }
    changes
}

/// When a sub-agent that works has used up its time; none: never, or it does not work.
pub fn time_is_up_at(agent: &Agent, limits: &Limits) -> Option<Timestamp> {
    let limit = i64::try_from(limits.subagent_seconds.checked_mul(1000)?).ok().filter(|limit| *limit > 0)?;
    let since = agent.task.working_since.filter(|_| has_open_task(agent))?;
    let worked = i64::try_from(agent.task.worked_ms).unwrap_or(i64::MAX);
    Some(Timestamp(since.0.saturating_add(limit.saturating_sub(worked))))
}

/// Stops a sub-agent whose time is up.
pub fn stop_at_time(agent: &Agent, limits: &Limits, now: Timestamp) -> Vec<AgentEvent> {
    match time_is_up_at(agent, limits) {
        Some(end) if end <= now => {
            let reason = format!("it worked for {} seconds, the limit for one task", limits.subagent_seconds);
            stop_task(agent, &reason, now)
        }
        _ => vec![],
    }
}

/// The queued sub-agents among `agents` that may run now, first come first.
pub(super) fn startable<'a>(
    agents: impl Iterator<Item = &'a Agent> + Clone,
    limits: &Limits,
) -> Vec<AgentId> {
    let mut queued: Vec<&Agent> =
        agents.clone().filter(|agent| agent.lifecycle == Lifecycle::Queued).collect();
    if queued.is_empty() {
        return vec![];
    }
    queued.sort_by_key(|agent| (agent.created_at, agent.id));
    let mut running = Running::count(agents);
    queued.retain(|agent| {
        let fits = agent.relation.parent().is_some_and(|parent| running.has_room(parent, limits));
        if fits {
            running.add(agent);
        }
        fits
    });
    queued.into_iter().map(|agent| agent.id).collect()
}

/// What a sub-agent whose turn ended still owes its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterTurn {
    /// Nothing, or nothing that follows from the end of a turn.
    Nothing,
    /// It is to be reminded of its result.
    Remind,
    /// What it said last is its result.
    LastWords,
}

/// What follows for its task from a turn that ended without a result. An interrupted one stays open for a person, and one
/// with sub-agents of its own at work will hear from them.
pub fn after_turn<'a>(agent: &Agent, agents: impl Iterator<Item = &'a Agent>) -> AfterTurn {
    let ended_well = matches!(agent.last_outcome, Some(TurnOutcome::Completed | TurnOutcome::Stopped { .. }));
    let free = agent.turn.is_none() && agent.queue.is_empty() && agent.lifecycle == Lifecycle::Ready;
    if !has_open_task(agent) || !ended_well || !free {
        return AfterTurn::Nothing;
    }
    let is_busy = |child: &Agent| {
        holds_slot(child)
            || (has_open_task(child) && (child.lifecycle == Lifecycle::Queued || !child.waits.is_empty()))
    };
    if children(agents, agent.id).any(is_busy) {
        return AfterTurn::Nothing;
    }
    if agent.task.reminded { AfterTurn::LastWords } else { AfterTurn::Remind }
}

/// The text of the reminder.
pub(super) const REMINDER: &str = "Your turn ended, and your parent still waits for your result. If you are done, call \
     yield_to_parent with all of the result now. If you are not, go on. If you have no such tool, say the whole result in \
     your next message: it is taken as the result.";

/// How a task ended, for the parent. `receipt` proves to Consort that the parent saw it.
pub fn result_text(child: &Agent, result: &TaskResult) -> String {
    let name = match &child.brief.label {
        Some(label) if *label != child.name => format!("`{}` ({label})", child.name),
        _ => format!("`{}`", child.name),
    };
    match result {
        TaskResult::Yielded { text, .. } => format!("Sub-agent {name} is done:\n{text}"),
        TaskResult::Failed { reason } => format!("Sub-agent {name} failed: {reason}"),
        TaskResult::Stopped { reason } => format!("Sub-agent {name} was stopped: {reason}"),
        TaskResult::Closed => format!("Sub-agent {name} was closed before it gave a result."),
    }
}

/// The sub-agents with open tasks below the same top agent.
pub(super) fn open_tasks_below<'a>(
    agents: impl Iterator<Item = &'a Agent>,
    top: impl Fn(&Agent) -> AgentId,
    below: AgentId,
) -> BTreeSet<AgentId> {
    agents.filter(|agent| has_open_task(agent) && top(agent) == below).map(|agent| agent.id).collect()
}
