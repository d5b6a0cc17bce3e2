//! What follows from events by itself, whoever caused them.
//!
//! Every decision's events go through [`consequences`] before they are committed, so that what follows is committed with
//! them: a parent is told of a task that ended, a queued sub-agent takes the free slot, a sub-agent that forgot its result
//! is reminded, a budget that is used up stops its tree, and what an agent was handed in the answer to a call counts as
//! delivered once its own transcript shows it.
//!
//! Invariant: a result, an answer or a message reaches its agent exactly once: in the answer to a call that the transcript
//! shows, or as a prompt. What a crash or a broken call leaves open becomes a prompt.

use std::collections::{BTreeMap, BTreeSet};

use super::tasks::{self, AfterTurn};
use super::{parked, start};
use crate::agent::{Agent, Failure, Lifecycle, Prompt, PromptOrigin, TurnOutcome};
use crate::ask::Ask;
use crate::event::{AgentEvent, Event};
use crate::ids::{AgentId, AskId, PromptId, Timestamp};
use crate::item::ItemBody;
use crate::limits::Limits;
use crate::profile::DriverKind;
use crate::relation::TaskResult;
use crate::state::State;
use crate::team::{Awaited, Report, message_receipt, result_receipt};

/// Something that has consequences.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Trigger {
    /// Tools of an agent ended, with these words.
    ToolsEnded(AgentId, Vec<String>),
    /// An agent's turn is over, or its process.
    TurnOver(AgentId),
    /// An agent is closed or failed.
    Gone(AgentId),
    /// An agent asks a person.
    Asked(AgentId),
    /// What an agent asked is settled.
    Settled(AgentId, AskId),
    /// A sub-agent used more.
    Used(AgentId),
    /// Something that is owed to an agent became due.
    Owed(AgentId),
    /// A prompt was taken out of an agent's queue.
    Dropped(AgentId),
    /// A slot may have become free.
    SlotFreed,
}

/// The events of a decision with all that follows from them.
pub fn consequences(state: &State, events: Vec<Event>, at: Timestamp) -> Vec<Event> {
    if !events.iter().any(has_consequences) {
        return events;
    }
    let mut after = After {
        state,
        limits: state.limits,
        changed: BTreeMap::new(),
        events: vec![],
        triggers: BTreeSet::new(),
        at,
    };
    for event in events {
        after.push(event);
    }
    while let Some(trigger) = after.triggers.pop_first() {
        after.follow(trigger);
    }
    after.events
}

/// A quick look, since nearly all events are a conversation and nothing follows from them.
fn has_consequences(event: &Event) -> bool {
    let change = match event {
        Event::Agent { change, .. } => change,
        // There may be room for more sub-agents now.
        event => return matches!(event, Event::LimitsChanged { .. }),
    };
    match change {
        AgentEvent::ItemAdded { item } => matches!(item.body, ItemBody::Tool(_)) && item.done,
        AgentEvent::ItemChanged { done, body, .. } => *done && matches!(body, ItemBody::Tool(_)),
        AgentEvent::TextAppended { .. }
        | AgentEvent::TextDone { .. }
        | AgentEvent::Renamed { .. }
        | AgentEvent::PlanChanged { .. }
        | AgentEvent::OptionsChanged { .. }
        | AgentEvent::CommandsChanged { .. }
        | AgentEvent::TitleChanged { .. } => false,
        _ => true,
    }
}

/// The state as it will be after the events so far.
struct After<'a> {
    state: &'a State,
    limits: Limits,
    changed: BTreeMap<AgentId, Agent>,
    events: Vec<Event>,
    triggers: BTreeSet<Trigger>,
    at: Timestamp,
}

impl<'a> After<'a> {
    fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.changed.get(&id).or_else(|| self.state.agents.get(&id))
    }

    fn agents(&self) -> impl Iterator<Item = &Agent> + Clone {
        let known = self.state.agents.values();
        let made = self.changed.values().filter(|agent| !self.state.agents.contains_key(&agent.id));
        known.map(|agent| self.changed.get(&agent.id).unwrap_or(agent)).chain(made)
    }

    fn top(&self, id: AgentId) -> AgentId {
        super::top_of(|id| self.agent(id), id)
    }

    fn push_change(&mut self, agent: AgentId, change: AgentEvent) {
        self.push(Event::of(agent, change));
    }

    /// Adds an event and notes what it may lead to.
    fn push(&mut self, event: Event) {
        if let Event::LimitsChanged { limits } = &event {
            self.limits = *limits;
            self.triggers.insert(Trigger::SlotFreed);
        }
        if let Event::Agent { agent: id, change } = &event {
            self.note(*id, change);
            match change {
                AgentEvent::Created { record } => drop(self.changed.insert(*id, (**record).clone())),
                _ => {
                    if !self.changed.contains_key(id)
                        && let Some(agent) = self.state.agents.get(id)
                    {
                        self.changed.insert(*id, agent.clone());
                    }
                    if let Some(agent) = self.changed.get_mut(id) {
                        agent.apply(change, self.at);
                    }
                }
            }
        }
        self.events.push(event);
    }

    fn note(&mut self, id: AgentId, change: &AgentEvent) {
        let owed_to_parent =
            |after: &Self| after.agent(id).and_then(|agent| agent.relation.parent()).map(Trigger::Owed);
        match change {
            AgentEvent::ItemAdded { item } if item.done => self.note_tool(id, &item.body),
            AgentEvent::ItemChanged { done: true, body, .. } => self.note_tool(id, body),
            AgentEvent::TurnEnded { .. } | AgentEvent::Rested => {
                self.triggers.extend([Trigger::TurnOver(id), Trigger::SlotFreed]);
            }
            AgentEvent::Failed { .. } | AgentEvent::Closed => {
                self.triggers.extend([Trigger::TurnOver(id), Trigger::Gone(id), Trigger::SlotFreed]);
            }
            AgentEvent::TaskSettled { .. } => {
                let owed = owed_to_parent(self);
                self.triggers.extend(owed);
                self.triggers.insert(Trigger::SlotFreed);
            }
            // A call that was answered is open again: what it said is due once more.
            AgentEvent::TaskReported { report: Report::Due } => {
                let owed = owed_to_parent(self);
                self.triggers.extend(owed);
            }
            AgentEvent::AnswerReported { prompt, report: Report::Due } => self.note_answer(id, *prompt),
            // Who was started for nothing any more needs no slot.
            AgentEvent::WaitBegan { .. } | AgentEvent::Ready { .. } => {
                self.triggers.insert(Trigger::SlotFreed);
            }
            AgentEvent::WaitEnded { .. } => self.triggers.extend([Trigger::Owed(id)]),
            AgentEvent::Answered { prompt, .. } => self.note_answer(id, *prompt),
            AgentEvent::PromptDropped { .. } => {
                self.triggers.extend([Trigger::Dropped(id), Trigger::SlotFreed]);
            }
            AgentEvent::Asked { .. } => self.triggers.extend([Trigger::Asked(id)]),
            AgentEvent::Settled { ask, .. } => self.triggers.extend([Trigger::Settled(id, *ask)]),
            AgentEvent::UsageChanged { .. } => self.triggers.extend([Trigger::Used(id)]),
            _ => {}
        }
    }

    fn note_answer(&mut self, id: AgentId, prompt: PromptId) {
        let inquiries = self.agent(id).map_or(&[][..], |agent| &agent.inquiries[..]);
        let by = inquiries.iter().find(|inquiry| inquiry.prompt == prompt).map(|inquiry| inquiry.by);
        self.triggers.extend(by.map(Trigger::Owed));
    }

    /// Whether an agent was handed something that its transcript has not shown yet. A message that waits counts, whatever
    /// became of the call that showed it: of an agent that is being closed, the last words come after its turn is over.
    fn awaits_receipt(&self, id: AgentId) -> bool {
        let handed_out = |report: Report| matches!(report, Report::HandedOut { .. });
        let owes = |agent: &Agent| {
            (agent.relation.parent() == Some(id) && handed_out(agent.task.report))
                || agent.inquiries.iter().any(|inquiry| inquiry.by == id && handed_out(inquiry.report))
        };
        self.agent(id).is_some_and(|agent| letters(agent).next().is_some()) || self.agents().any(owes)
    }

    fn note_tool(&mut self, id: AgentId, body: &ItemBody) {
        let ItemBody::Tool(call) = body else { return };
        // What tools say may be long, and nearly never is anything waited to be seen in it.
        if !self.awaits_receipt(id) {
            return;
        }
        let raw = if call.raw_output.is_null() { String::new() } else { call.raw_output.to_string() };
        self.triggers.insert(Trigger::ToolsEnded(id, vec![call.output.clone(), raw]));
    }

    fn follow(&mut self, trigger: Trigger) {
        match trigger {
            Trigger::ToolsEnded(id, words) => self.confirm(id, &words),
            Trigger::TurnOver(id) => self.turn_over(id),
            Trigger::Gone(id) => self.gone(id),
            Trigger::Asked(id) => self.asked(id),
            Trigger::Settled(id, ask) => self.settled(id, ask),
            Trigger::Used(id) => self.used(id),
            Trigger::Owed(id) => self.pay(id, false),
            Trigger::Dropped(id) => self.dropped(id),
            Trigger::SlotFreed => self.start_queued(),
        }
    }

    /// What the answers to an agent's calls said has reached it.
    fn confirm(&mut self, id: AgentId, words: &[String]) {
        let seen = |receipt: String| words.iter().any(|words| words.contains(&receipt));
        let mut confirmed = Vec::new();
        for agent in self.agents() {
            let handed_out = matches!(agent.task.report, Report::HandedOut { .. });
            if handed_out && agent.relation.parent() == Some(id) && seen(result_receipt(agent.id)) {
                confirmed.push((agent.id, AgentEvent::TaskReported { report: Report::Made }));
            }
            for inquiry in agent.inquiries.iter().filter(|inquiry| inquiry.by == id) {
                let handed_out = matches!(inquiry.report, Report::HandedOut { .. });
                if handed_out && seen(message_receipt(inquiry.prompt)) {
                    let change = AgentEvent::AnswerReported { prompt: inquiry.prompt, report: Report::Made };
                    confirmed.push((agent.id, change));
                }
            }
        }
        if let Some(agent) = self.agent(id) {
            let read: Vec<PromptId> = letters(agent).filter(|prompt| is_seen(&seen, *prompt)).collect();
            if !read.is_empty() {
                confirmed.push((id, AgentEvent::MessagesRead { prompts: read }));
            }
        }
        for (agent, change) in confirmed {
            self.push_change(agent, change);
        }
    }

    /// No call of an agent is open any more: what it was handed is confirmed or never will be.
    fn turn_over(&mut self, id: AgentId) {
        let Some(agent) = self.agent(id) else { return };
        let trusted = !shows_answers(agent.driver);
        let (mut read, mut hidden) = (Vec::new(), Vec::new());
        for (prompt, certain) in &agent.shown {
            if *certain && trusted { read.push(*prompt) } else { hidden.push(*prompt) }
        }
        if !read.is_empty() {
            self.push_change(id, AgentEvent::MessagesRead { prompts: read });
        }
        if !hidden.is_empty() {
            self.push_change(id, AgentEvent::MessagesHidden { prompts: hidden });
        }
        self.pay(id, true);
        self.look_after_task(id);
    }

    /// Tells an agent what it is owed and no open call of it waits for. `calls_over`: what it was handed in a call, too.
    fn pay(&mut self, id: AgentId, calls_over: bool) {
        let Some(creditor) = self.agent(id) else { return };
        let trusted = !shows_answers(creditor.driver);
        let waits_for = |awaited: Awaited| creditor.waits.iter().any(|wait| wait.on.contains(&awaited));
        // What is to be done: nothing yet, only to be noted as made, or told.
        let due = |report: Report, awaited: Awaited| match report {
            Report::Due if waits_for(awaited) => None,
            Report::Due => Some(true),
            Report::HandedOut { certain } if calls_over => Some(!(certain && trusted)),
            Report::HandedOut { .. } | Report::Made => None,
        };
        let mut owed = Vec::new();
        for agent in self.agents() {
            if let Some(result) = agent.relation.result()
                && agent.relation.parent() == Some(id)
                && let Some(tell) = due(agent.task.report, Awaited::Agent { agent: agent.id })
            {
                // A task ends once, so the child's own id names the message about it.
                let message = (PromptId::new(agent.id.uuid()), tasks::result_text(agent, result));
                let made = AgentEvent::TaskReported { report: Report::Made };
                owed.push((agent.id, made, tell.then_some(message)));
            }
            for inquiry in agent.inquiries.iter().filter(|inquiry| inquiry.by == id) {
                let prompt = inquiry.prompt;
                let awaited = Awaited::Answer { agent: agent.id, prompt };
                if let (Some(answer), Some(tell)) = (&inquiry.answer, due(inquiry.report, awaited)) {
                    let text = format!("Answer to your question to `{}`:\n{answer}", agent.name);
                    let made = AgentEvent::AnswerReported { prompt, report: Report::Made };
                    owed.push((agent.id, made, tell.then_some((prompt, text))));
                }
            }
        }
        for (from, made, message) in owed {
            self.push_change(from, made);
            if let Some((prompt, text)) = message {
                self.tell(id, from, prompt, text);
            }
        }
    }

    /// Queues a message from another agent's life. The limit on waiting prompts is for those who send: a result is never
    /// lost to it. An agent that cannot be started keeps the message until it is reopened or rebound.
    fn tell(&mut self, id: AgentId, from: AgentId, prompt: PromptId, text: String) {
        let at = self.at;
        let Some(agent) = self.agent(id).filter(|agent| !agent.is_closed() && !agent.knows_prompt(prompt))
        else {
            return;
        };
        let startable = !agent.wants_process()
            && agent.lifecycle != Lifecycle::Queued
            && !parked(agent)
            && self.state.has_profile(&agent.profile);
        // An agent whose process just ended is not started again by what that leaves open.
        let ended_now = self.state.agents.get(&id).is_some_and(Agent::wants_process);
        let starting = (startable && !ended_now).then(|| start(self.state, agent, &agent.profile));
        let origin = PromptOrigin::Agent { agent: from };
        let prompt = Prompt { id: prompt, origin, text, attachments: vec![], steers: true, at };
        self.push_change(id, AgentEvent::PromptQueued { prompt });
        if let Some(starting) = starting {
            self.push_change(id, starting);
        }
    }

    /// A sub-agent's turn ended: without a result it is reminded once; a turn that failed ends the task.
    fn look_after_task(&mut self, id: AgentId) {
        let Some(agent) = self.agent(id).filter(|agent| tasks::has_open_task(agent)) else { return };
        if let (None, Some(TurnOutcome::Failed { message }), Lifecycle::Ready) =
            (&agent.turn, &agent.last_outcome, &agent.lifecycle)
        {
            let result = TaskResult::Failed { reason: message.clone() };
            return self.push_change(id, AgentEvent::TaskSettled { result });
        }
        if tasks::after_turn(agent, self.agents()) == AfterTurn::Remind {
            // It is reminded once, so its own id names the reminder.
            let prompt = Prompt {
                id: PromptId::new(id.uuid()),
                origin: PromptOrigin::Consort,
                text: tasks::REMINDER.to_owned(),
                attachments: vec![],
                steers: false,
                at: self.at,
            };
            self.push_change(id, AgentEvent::TaskReminded);
            self.push_change(id, AgentEvent::PromptQueued { prompt });
        }
    }

    /// Who is closed or failed answers no inquiry.
    fn gone(&mut self, id: AgentId) {
        let Some(agent) = self.agent(id) else { return };
        let why = match &agent.lifecycle {
            Lifecycle::Failed(Failure { message, .. }) => format!("It failed before it answered: {message}"),
            Lifecycle::Closed { .. } => "It was closed before it answered.".to_owned(),
            _ => return,
        };
        let open = agent.inquiries.iter().filter(|inquiry| inquiry.answer.is_none());
        let open: Vec<PromptId> = open.map(|inquiry| inquiry.prompt).collect();
        for prompt in open {
            self.push_change(id, AgentEvent::Answered { prompt, text: why.clone() });
        }
    }

    /// A message that a person took back is answered by that.
    fn dropped(&mut self, id: AgentId) {
        let Some(agent) = self.agent(id) else { return };
        let waits = |prompt: PromptId| agent.queue.iter().any(|waiting| waiting.id == prompt);
        let lost = agent
            .inquiries
            .iter()
            .filter(|inquiry| inquiry.turn.is_none() && inquiry.answer.is_none() && !waits(inquiry.prompt));
        let lost: Vec<PromptId> = lost.map(|inquiry| inquiry.prompt).collect();
        for prompt in lost {
            let text = "The message was dropped before it was read.".to_owned();
            self.push_change(id, AgentEvent::Answered { prompt, text });
        }
    }

    /// Tells the parent of an unfinished sub-agent that it waits for a person. The parent cannot answer it; it learns why
    /// nothing comes. One that waits in a call is told by that.
    fn asked(&mut self, id: AgentId) {
        let Some(agent) = self.agent(id).filter(|agent| tasks::has_open_task(agent)) else { return };
        let Some(parent) = agent.relation.parent() else { return };
        let awaited = Awaited::Agent { agent: id };
        let waits = |parent: &Agent| parent.waits.iter().any(|wait| wait.on.contains(&awaited));
        if self.agent(parent).is_none_or(waits) {
            return;
        }
        let name = agent.name.clone();
        let known = self.state.agents.get(&id).map_or(&[][..], |agent| &agent.asks[..]);
        let new = |ask: &&Ask| !known.iter().any(|known| known.id == ask.id);
        let asks: Vec<Ask> = agent.asks.iter().filter(new).cloned().collect();
        for ask in asks {
            // It is asked once, so the ask's own id names the message about it.
            let text = format!("Sub-agent `{name}` is waiting for a person: {}", ask.title);
            self.tell(parent, id, PromptId::new(ask.id.uuid()), text);
        }
    }

    /// Nobody waits for a person any more: a parent that has not heard of it need not.
    fn settled(&mut self, id: AgentId, ask: AskId) {
        let Some(parent) = self.agent(id).and_then(|agent| agent.relation.parent()) else { return };
        let prompt = PromptId::new(ask.uuid());
        let waits = |parent: &Agent| parent.queued(prompt).is_some() && !parent.offered.contains(&prompt);
        if self.agent(parent).is_some_and(waits) {
            self.push_change(parent, AgentEvent::PromptDropped { prompt });
        }
    }

    /// Stops all sub-agents below the same top agent once their budget is used up.
    fn used(&mut self, id: AgentId) {
        if self.agent(id).is_none_or(|agent| agent.relation.parent().is_none()) {
            return;
        }
        let top = self.top(id);
        let of = |agent: &Agent| self.top(agent.id);
        let Some(budget) = tasks::spent_budget(self.agents(), of, top, &self.limits) else { return };
        let stopped: Vec<(AgentId, Vec<AgentEvent>)> = tasks::open_tasks_below(self.agents(), of, top)
            .into_iter()
            .filter_map(|id| self.agent(id))
            .map(|agent| (agent.id, tasks::stop_task(agent, &format!("{budget} is used up"), self.at)))
            .collect();
        for (id, changes) in stopped {
            for change in changes {
                self.push_change(id, change);
            }
        }
    }

    /// Starts the queued sub-agents that there is room for.
    fn start_queued(&mut self) {
        for id in tasks::startable(self.agents(), &self.limits) {
            let Some(agent) = self.agent(id) else { continue };
            if self.state.has_profile(&agent.profile) {
                let starting = start(self.state, agent, &agent.profile);
                self.push_change(id, starting);
                continue;
            }
            let reason = format!("its profile `{}` was removed before it was started", agent.profile);
            self.push_change(id, AgentEvent::TaskSettled { result: TaskResult::Failed { reason } });
            self.push_change(id, AgentEvent::Closed);
        }
    }
}

/// The messages from other agents that wait for an agent.
fn letters(agent: &Agent) -> impl Iterator<Item = PromptId> {
    let from_agent = |prompt: &&Prompt| matches!(prompt.origin, PromptOrigin::Agent { .. });
    agent.queue.iter().filter(from_agent).map(|prompt| prompt.id)
}

/// Whether a message was seen, or the result that it tells.
fn is_seen(seen: &impl Fn(String) -> bool, prompt: PromptId) -> bool {
    seen(message_receipt(prompt)) || seen(result_receipt(AgentId::new(prompt.uuid())))
}

/// Whether an agent's transcript shows what the answers to its calls of tools said. Where it does, only that counts as
/// having seen it; where it does not, an answer that was sent counts.
fn shows_answers(driver: DriverKind) -> bool {
    matches!(driver, DriverKind::Claude | DriverKind::Codex | DriverKind::Native)
}
