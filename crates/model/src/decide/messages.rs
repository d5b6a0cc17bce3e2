//! Messages between agents, inquiries, and the calls in which agents wait.
//!
//! Owns who may write to whom and how often. A message is a prompt in the recipient's queue; the letters that an
//! agent remembers tell its state.

use super::tasks::has_open_task;
use super::{check_open, queue};
use crate::agent::{Agent, Failure, Lifecycle, Prompt, PromptOrigin, Status};
use crate::command::Refusal;
use crate::event::{AgentEvent, Event};
use crate::ids::{AgentId, PromptId, Timestamp, WaitId};
use crate::limits::Limits;
use crate::state::State;
use crate::team::{Awaited, Report, Wait};
use crate::visibility::knows;

/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = 64 << 10;

/// How many calls of one agent may wait at the same time.
const MAX_WAITS: usize = 32;

/// The agents that another one may see, itself among them.
pub fn visible(state: &State, viewer: AgentId) -> Result<Vec<&Agent>, Refusal> {
    let viewer = state.agent(viewer)?;
    Ok(state.agents.values().filter(|agent| knows(viewer, agent)).collect())
}

/// The agent that another one means, among those that it may see.
pub fn find_visible<'a>(state: &'a State, viewer: AgentId, wanted: &str) -> Result<&'a Agent, Refusal> {
    let viewer = state.agent(viewer)?;
    let found = state.find(wanted)?;
    // What it may not see is for it as if it were not there.
    if knows(viewer, found) { Ok(found) } else { Err(Refusal::NoSuchAgent { wanted: wanted.to_owned() }) }
}

/// Accepts a message from one agent to another. The same message again changes nothing.
pub fn send_message(
    state: &State,
    to: AgentId,
    message: &Prompt,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let PromptOrigin::Agent { agent: from } = message.origin else {
        return Err(Refusal::Invalid { reason: "a message comes from an agent".to_owned() });
    };
    let (sender, recipient) = (state.agent(from)?, state.agent(to)?);
    if recipient.knows_prompt(message.id) {
        return Ok(vec![]);
    }
    check_open(sender)?;
    if !knows(sender, recipient) {
        return Err(Refusal::NoSuchAgent { wanted: to.to_string() });
    }
    if from == to {
        return Err(Refusal::Invalid { reason: "that is yourself; write to another agent".to_owned() });
    }
    if message.text.len() > MAX_MESSAGE {
        let reason =
            format!("a message has {MAX_MESSAGE} bytes at most; write the rest to a file and name it");
        return Err(Refusal::Invalid { reason });
    }
    check_rate(&state.limits, sender, recipient, at)?;
    super::check_recipient(state, recipient, message)?;
    // One that works gets it at its next safe point.
    Ok(queue(state, recipient, Prompt { steers: true, ..message.clone() }))
}

/// Refuses what looks like two agents that cannot stop answering each other.
fn check_rate(limits: &Limits, sender: &Agent, recipient: &Agent, at: Timestamp) -> Result<(), Refusal> {
    let recent = |of: &Agent, from: AgentId| {
        let fits = |letter: &&crate::team::Letter| {
            letter.from == from && at.0 - letter.at.0 < Limits::MESSAGE_WINDOW_MS
        };
        of.letters.iter().filter(fits).count()
    };
    if recent(recipient, sender.id) + recent(sender, recipient.id) < limits.messages_between_two as usize {
        return Ok(());
    }
    Err(Refusal::TooManyMessages {
        limit: limits.messages_between_two,
        name: recipient.name.clone(),
        minutes: (Limits::MESSAGE_WINDOW_MS / 60_000) as u32,
    })
}

/// Accepts a message whose sender wants the answer, and waits for it in a call.
pub fn inquire(
    state: &State,
    to: AgentId,
    message: &Prompt,
    wait: WaitId,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let PromptOrigin::Agent { agent: by } = message.origin else {
        return Err(Refusal::Invalid { reason: "a message comes from an agent".to_owned() });
    };
    let mut events = send_message(state, to, message, at)?;
    if events.is_empty() {
        return Ok(events);
    }
    check_no_circle(state, by, to)?;
    events.push(Event::of(to, AgentEvent::Inquired { prompt: message.id, by }));
    let on = vec![Awaited::Answer { agent: to, prompt: message.id }];
    events.extend(begin_wait(state, by, Wait { id: wait, on })?);
    Ok(events)
}

/// Two agents that wait for each other would wait for ever.
fn check_no_circle(state: &State, waits: AgentId, for_agent: AgentId) -> Result<(), Refusal> {
    let mut next = vec![for_agent];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = next.pop() {
        if id == waits {
            let reason = "that agent waits for you already; answer it first, or use send_message".to_owned();
            return Err(Refusal::NotAllowed { reason });
        }
        let Some(agent) = state.agents.get(&id).filter(|_| seen.insert(id)) else { continue };
        next.extend(agent.waits.iter().flat_map(|wait| wait.on.iter().map(|awaited| awaited.agent())));
    }
    Ok(())
}

/// Begins a call in which an agent waits for others that it may see.
pub fn begin_wait(state: &State, id: AgentId, wait: Wait) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    check_open(agent)?;
    if agent.waits.iter().any(|open| open.id == wait.id) {
        return Ok(vec![]);
    }
    if agent.waits.len() >= MAX_WAITS {
        return Err(Refusal::LimitReached {
            limit: MAX_WAITS as u32,
            what: "calls that wait at once".into(),
        });
    }
    if wait.on.is_empty() {
        return Err(Refusal::Invalid { reason: "name at least one agent to wait for".to_owned() });
    }
    for awaited in &wait.on {
        let other = state.agent(awaited.agent())?;
        if other.id == id || !knows(agent, other) {
            return Err(Refusal::NoSuchAgent { wanted: other.id.to_string() });
        }
        check_no_circle(state, id, other.id)?;
    }
    Ok(vec![Event::of(id, AgentEvent::WaitBegan { wait })])
}

/// Ends a call without an answer: what it waited for comes as a message.
pub fn end_wait(state: &State, id: AgentId, wait: WaitId) -> Vec<Event> {
    let open = state.agents.get(&id).is_some_and(|agent| agent.waits.iter().any(|open| open.id == wait));
    if open { vec![Event::of(id, AgentEvent::WaitEnded { wait })] } else { vec![] }
}

/// Ends a call with the answer that holds everything it waited for and that is there: the caller sends it.
pub fn hand_out(state: &State, id: AgentId, wait: WaitId) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    let Some(open) = agent.waits.iter().find(|open| open.id == wait) else {
        let reason = "this call waits no more: the turn it belongs to is over".to_owned();
        return Err(Refusal::Invalid { reason });
    };
    let report = Report::HandedOut { certain: true };
    let mut events = Vec::new();
    let mut shown = Vec::new();
    for awaited in &open.on {
        let Ok(other) = state.agent(awaited.agent()) else { continue };
        match *awaited {
            Awaited::Agent { .. } => {
                let theirs = other.relation.parent() == Some(id) && other.relation.result().is_some();
                if theirs && other.task.report == Report::Due {
                    events.push(Event::of(other.id, AgentEvent::TaskReported { report }));
                }
                // A message about it that still waits is shown with this and need not come again.
                let message = PromptId::new(other.id.uuid());
                if theirs && agent.queued(message).is_some() && !agent.offered.contains(&message) {
                    shown.push(message);
                }
            }
            Awaited::Answer { prompt, .. } => {
                let due = other.inquiries.iter().any(|inquiry| {
                    inquiry.prompt == prompt && inquiry.answer.is_some() && inquiry.report == Report::Due
                });
                if due {
                    events.push(Event::of(other.id, AgentEvent::AnswerReported { prompt, report }));
                }
            }
        }
    }
    if !shown.is_empty() {
        events.push(Event::of(id, AgentEvent::MessagesShown { prompts: shown, certain: true }));
    }
    events.push(Event::of(id, AgentEvent::WaitEnded { wait }));
    Ok(events)
}

/// Whether there is an answer to what is waited for.
pub fn is_there(state: &State, waiting: AgentId, awaited: Awaited) -> bool {
    let Ok(other) = state.agent(awaited.agent()) else { return true };
    match awaited {
        Awaited::Answer { prompt, .. } => {
            let open = other.inquiries.iter().find(|inquiry| inquiry.prompt == prompt);
            open.is_none_or(|inquiry| inquiry.answer.is_some())
        }
        // A task is over when it has a result, whatever its agent is doing by then.
        Awaited::Agent { .. } if other.relation.parent() == Some(waiting) => !has_open_task(other),
        Awaited::Agent { .. } => match other.status() {
            Status::Idle => other.queue.is_empty(),
            Status::NeedsInput | Status::Failed | Status::Closed => true,
            Status::Queued | Status::Starting | Status::Working | Status::Stalled => false,
        },
    }
}

/// The messages that wait for an agent, shown to it before their turn.
pub fn show_messages(state: &State, id: AgentId) -> Result<(Vec<Prompt>, Vec<Event>), Refusal> {
    let agent = state.agent(id)?;
    let waiting: Vec<Prompt> = agent
        .queue
        .iter()
        .filter(|prompt| matches!(prompt.origin, PromptOrigin::Agent { .. }) && prompt.attachments.is_empty())
        // The running turn has these already, or is about to.
        .filter(|prompt| !agent.offered.contains(&prompt.id))
        .cloned()
        .collect();
    let prompts: Vec<PromptId> = waiting.iter().map(|prompt| prompt.id).collect();
    let shown = AgentEvent::MessagesShown { prompts, certain: true };
    let events = if waiting.is_empty() { vec![] } else { vec![Event::of(id, shown)] };
    Ok((waiting, events))
}

/// The inquiries of an agent that are to be answered now with what its turn said last: by message.
pub fn answerable(agent: &Agent) -> Vec<PromptId> {
    let current = agent.turn.as_ref().map(|turn| turn.id);
    let over = |inquiry: &&crate::team::Inquiry| {
        inquiry.answer.is_none() && inquiry.turn.is_some() && inquiry.turn != current
    };
    agent.inquiries.iter().filter(over).map(|inquiry| inquiry.prompt).collect()
}

/// After a start of the daemon no call is open any more, and answers that were sent last may not have arrived.
pub fn reopen_calls(state: &State) -> Vec<Event> {
    let mut events = Vec::new();
    let uncertain = Report::HandedOut { certain: false };
    for agent in state.agents.values() {
        let mut push = |change| events.push(Event::of(agent.id, change));
        for wait in &agent.waits {
            push(AgentEvent::WaitEnded { wait: wait.id });
        }
        // Without a turn, or a process that could have one, nothing will show that the answer arrived.
        let hopeless = |to: AgentId| {
            state.agents.get(&to).is_none_or(|agent| !agent.wants_process() || agent.turn.is_none())
        };
        let changed = |to: AgentId| if hopeless(to) { Report::Due } else { uncertain };
        if let (Report::HandedOut { .. }, Some(parent)) = (agent.task.report, agent.relation.parent()) {
            push(AgentEvent::TaskReported { report: changed(parent) });
        }
        for inquiry in &agent.inquiries {
            if matches!(inquiry.report, Report::HandedOut { .. }) {
                let report = changed(inquiry.by);
                push(AgentEvent::AnswerReported { prompt: inquiry.prompt, report });
            }
        }
        let shown: Vec<PromptId> = agent.shown.keys().copied().collect();
        if !shown.is_empty() && hopeless(agent.id) {
            push(AgentEvent::MessagesHidden { prompts: shown });
        } else if !shown.is_empty() {
            push(AgentEvent::MessagesShown { prompts: shown, certain: false });
        }
    }
    events
}

/// Whether an agent crashed so often that only a reopening starts it again.
pub(super) fn parked(agent: &Agent) -> bool {
    matches!(agent.lifecycle, Lifecycle::Failed(Failure { parked: true, .. }))
}
