//! Decisions about the team: a command and the state go in, events or a [`Refusal`] come out.
//!
//! Every check stands here and comes before any side effect, so a refused command leaves nothing behind. What an
//! agent's process must be told follows from the events and is the hub's business.

mod rules;
mod tools;

pub use rules::{add_rule, granted, remove_rule};
pub use tools::{connect_tools, create_for, may_create, may_interrupt, set_note, stricter};

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::agent::{Agent, Failure, Fork, Lifecycle, Prompt, PromptOrigin, Status, TurnOutcome};
use crate::ask::{Answer, Ask, AskBody, SettledBy};
use crate::command::{Actor, CreateAgent, Refusal};
use crate::event::{AgentEvent, Event};
use crate::ids::{AgentId, AskId, ProfileId, PromptId, RuleId, Timestamp, TurnId};
use crate::item::NoticeLevel;
use crate::limits::Limits;
use crate::policy;
use crate::profile::DriverKind;
use crate::relation::{Relation, TaskResult};
use crate::signal::Signal;
use crate::state::State;
use crate::transcript::Writer;

/// Longest name an agent may have, in characters.
const MAX_NAME: usize = 64;

/// May this agent be created, and as what. Asking again with the same id changes nothing.
pub fn create(
    state: &State,
    actor: Actor,
    request: &CreateAgent,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    if let Some(existing) = state.agents.get(&request.id) {
        let same = existing.profile == request.profile && existing.created_by == actor.agent();
        return if same { Ok(vec![]) } else { Err(Refusal::IdTaken { id: request.id }) };
    }
    if let Some(asker) = actor.agent() {
        check_open(state.agent(asker)?)?;
    }
    let Some(profile) = state.profile(&request.profile) else {
        return Err(Refusal::NoSuchProfile { wanted: request.profile.to_string() });
    };
    let relation = request.relation.without_result();
    check_relation(state, actor, &relation)?;
    if let Some(prompt) = &request.prompt {
        check_not_empty(&prompt.text, prompt)?;
    }
    let base = match &request.name {
        Some(name) => valid_name(name)?,
        None => request.profile.to_string(),
    };
    let record = Agent {
        id: request.id,
        name: free_name(state, &base, request.name.is_none()),
        profile: request.profile.clone(),
        driver: request.driver,
        cwd: request.cwd.clone(),
        created_by: actor.agent(),
        relation,
        created_at: at,
        lifecycle: Lifecycle::Starting,
        generation: 1,
        profile_revision: Some(profile.revision.clone()),
        crashes: vec![],
        permissions: request.permissions,
        turn: None,
        last_outcome: None,
        queue: request.prompt.clone().into_iter().collect(),
        taken: Default::default(),
        asks: vec![],
        session: None,
        fork: None,
        worktrees: request.worktree.clone().into_iter().collect(),
        options: vec![],
        commands: vec![],
        plan: vec![],
        usage: Default::default(),
        title: None,
        note: None,
        team_tools: Default::default(),
        cursor: Default::default(),
    };
    Ok(vec![Event::of(request.id, AgentEvent::Created { record: Box::new(record) })])
}

/// A new agent whose conversation branches off from that of `source`, as it stands.
pub fn fork(
    state: &State,
    source: AgentId,
    id: AgentId,
    name: Option<String>,
    prompt: Option<Prompt>,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(source)?;
    let Some(session) = agent.session.as_ref().filter(|session| session.resumable && !session.id.is_empty())
    else {
        let reason = format!("`{}` has no session yet that another agent could go on from", agent.name);
        return Err(Refusal::Invalid { reason });
    };
    let request = CreateAgent {
        id,
        name: name.or_else(|| Some(format!("{}-fork", agent.name))),
        profile: agent.profile.clone(),
        driver: agent.driver,
        cwd: agent.cwd.clone(),
        relation: Relation::Primary,
        permissions: agent.permissions,
        worktree: None,
        prompt,
    };
    let mut events = create(state, Actor::Person, &request, at)?;
    if let Some(Event::Agent { change: AgentEvent::Created { record }, .. }) = events.first_mut() {
        record.fork = Some(Fork { of: source, session: session.id.clone() });
        let mut writer = Writer::new(record, at);
        writer.notice(
            NoticeLevel::Info,
            format!("Forked from {} after its item {}.", agent.name, agent.cursor.items),
        );
        let notes = writer.finish().into_iter().map(|change| Event::of(id, change));
        events.extend(notes.collect::<Vec<_>>());
    }
    Ok(events)
}

/// The one predicate for the limits on companions and sub-agents.
fn check_relation(state: &State, actor: Actor, relation: &Relation) -> Result<(), Refusal> {
    let Some(bound_to) = relation.bound_to() else { return Ok(()) };
    let creator = state.agent(bound_to)?;
    check_open(creator)?;
    if let Some(asker) = actor.agent()
        && asker != bound_to
    {
        return Err(Refusal::NotAllowed {
            reason: "an agent creates companions and sub-agents for itself only".into(),
        });
    }
    let limits = &state.limits;
    let reached = |limit: u32, what: &str| Err(Refusal::LimitReached { limit, what: what.to_owned() });
    match relation {
        Relation::Primary => Ok(()),
        Relation::Companion { owner } => {
            if creator.relation.owner().is_some() {
                return Err(Refusal::CompanionOfCompanion);
            }
            if companions(state, *owner).count() >= limits.companions_per_owner as usize {
                return reached(limits.companions_per_owner, "companions of one agent");
            }
            Ok(())
        }
        Relation::SubAgent { parent, .. } => {
            if creator.relation.owner().is_some() {
                return Err(Refusal::NotAllowed {
                    reason: "a companion cannot have sub-agents; ask its owner to spawn one".into(),
                });
            }
            if depth(state, *parent) >= limits.subagent_depth {
                return reached(limits.subagent_depth, "how deep sub-agents may nest");
            }
            let unsettled = |agent: &&Agent| holds_slot(agent);
            let all = state.agents.values().filter(unsettled).count();
            let of_parent = state
                .agents
                .values()
                .filter(unsettled)
                .filter(|a| a.relation.parent() == Some(*parent))
                .count();
            if of_parent >= limits.subagents_per_parent as usize {
                return reached(limits.subagents_per_parent, "unfinished sub-agents of one agent");
            }
            if all >= limits.subagents_total as usize {
                return reached(limits.subagents_total, "unfinished sub-agents in all");
            }
            Ok(())
        }
    }
}

/// Whether it is a sub-agent whose task is not over. A finished one frees its slot.
pub fn holds_slot(agent: &Agent) -> bool {
    matches!(agent.relation, Relation::SubAgent { result: None, .. }) && !agent.is_closed()
}

/// How many parents stand above an agent.
pub fn depth(state: &State, id: AgentId) -> u32 {
    let mut depth = 0;
    let mut seen = BTreeSet::from([id]);
    let mut next = state.agents.get(&id).and_then(|agent| agent.relation.parent());
    while let Some(parent) = next.filter(|parent| seen.insert(*parent)) {
        depth += 1;
        next = state.agents.get(&parent).and_then(|agent| agent.relation.parent());
    }
    depth
}

/// The companions of an agent that are not closed.
pub fn companions(state: &State, owner: AgentId) -> impl Iterator<Item = &Agent> {
    state.agents.values().filter(move |agent| !agent.is_closed() && agent.relation.owner() == Some(owner))
}

fn valid_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    let fits = !name.is_empty() && name.chars().count() <= MAX_NAME && !name.chars().any(char::is_control);
    if fits && name.parse::<AgentId>().is_err() {
        return Ok(name.to_owned());
    }
    Err(Refusal::Invalid {
        reason: format!("an agent's name is 1 to {MAX_NAME} printable characters and not an id"),
    })
}

/// The name itself if no open agent has it, else the first of `name-2`, `name-3`, ... that is free.
/// A made-up name is numbered from the start. A long one is cut, so that the number still fits.
fn free_name(state: &State, base: &str, numbered: bool) -> String {
    let taken: BTreeSet<&str> =
        state.agents.values().filter(|agent| !agent.is_closed()).map(|agent| agent.name.as_str()).collect();
    if !numbered && !taken.contains(base) {
        return base.to_owned();
    }
    let first = if numbered { 1u32 } else { 2 };
    let with_number = |n: u32| {
        let number = format!("-{n}");
        base.chars().take(MAX_NAME - number.len()).chain(number.chars()).collect::<String>()
    };
    (first..).map(with_number).find(|name| !taken.contains(name.as_str())).unwrap_or_default()
}

/// Gives an agent another name.
pub fn rename(state: &State, id: AgentId, name: &str) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    let name = valid_name(name)?;
    if agent.name == name {
        return Ok(vec![]);
    }
    if state.agents.values().any(|other| other.id != id && !other.is_closed() && other.name == name) {
        return Err(Refusal::Invalid { reason: format!("another agent is already called `{name}`") });
    }
    Ok(vec![Event::of(id, AgentEvent::Renamed { name })])
}

/// Accepts a prompt into the queue, and starts a process for it where there is none. The same prompt again changes
/// nothing.
pub fn send(state: &State, id: AgentId, prompt: &Prompt) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    if agent.knows_prompt(prompt.id) {
        return Ok(vec![]);
    }
    check_open(agent)?;
    check_profile(state, agent)?;
    if let Lifecycle::Failed(Failure { parked: true, .. }) = agent.lifecycle {
        return Err(Refusal::Parked { name: agent.name.clone() });
    }
    check_not_empty(&prompt.text, prompt)?;
    if agent.queue.len() >= state.limits.queued_prompts as usize {
        return Err(Refusal::LimitReached {
            limit: state.limits.queued_prompts,
            what: format!("prompts waiting for `{}`", agent.name),
        });
    }
    Ok(queue(state, agent, prompt.clone()))
}

/// Puts a prompt into the queue, and starts a process for it where there is none.
fn queue(state: &State, agent: &Agent, prompt: Prompt) -> Vec<Event> {
    let mut events = vec![Event::of(agent.id, AgentEvent::PromptQueued { prompt })];
    if !agent.wants_process() {
        events.push(Event::of(agent.id, start(state, agent, &agent.profile)));
    }
    events
}

/// Starts the agent's next process by a profile as it is now.
fn start(state: &State, agent: &Agent, profile: &ProfileId) -> AgentEvent {
    AgentEvent::Starting {
        generation: agent.generation + 1,
        profile_revision: state.profile(profile).map(|profile| profile.revision.clone()),
    }
}

/// Whether a prompt with this text says anything.
fn check_not_empty(text: &str, prompt: &Prompt) -> Result<(), Refusal> {
    if text.trim().is_empty() && prompt.attachments.is_empty() {
        return Err(Refusal::Invalid { reason: "the prompt is empty; give some text".into() });
    }
    Ok(())
}

/// Changes the text of a prompt that still waits, or drops it where the text is none.
pub fn edit_queued(
    state: &State,
    id: AgentId,
    prompt: PromptId,
    text: Option<&str>,
) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    let Some(waiting) = agent.queue.iter().find(|waiting| waiting.id == prompt) else {
        let reason = "that prompt does not wait any more: it was delivered or dropped".to_owned();
        return Err(Refusal::Invalid { reason });
    };
    let change = match text {
        Some(text) => {
            check_not_empty(text, waiting)?;
            AgentEvent::PromptEdited { prompt, text: text.to_owned() }
        }
        None => AgentEvent::PromptDropped { prompt },
    };
    Ok(vec![Event::of(id, change)])
}

/// How many prompts at the front of the queue make the next turn: one from a person, or all agents' messages up to
/// the next one from a person.
pub fn next_delivery(agent: &Agent) -> usize {
    let from_agent = |prompt: &&Prompt| matches!(prompt.origin, PromptOrigin::Agent { .. });
    let messages = agent.queue.iter().take_while(from_agent).count();
    if messages > 0 { messages } else { agent.queue.len().min(1) }
}

/// The prompts that the next turn takes, if a turn can begin now.
pub fn deliverable(agent: &Agent) -> Option<Vec<Prompt>> {
    let ready = matches!(agent.lifecycle, Lifecycle::Ready) && agent.turn.is_none();
    let count = next_delivery(agent);
    (ready && count > 0).then(|| agent.queue.iter().take(count).cloned().collect())
}

/// Begins a turn with the prompts of [`deliverable`].
pub fn start_turn(agent: &Agent, turn: TurnId, prompts: &[Prompt], at: Timestamp) -> Vec<AgentEvent> {
    let mut writer = Writer::new(agent, at);
    writer.start_turn(turn, prompts);
    writer.finish()
}

/// Whom an interrupt of `id` reaches: itself and its sub-agents at every depth, being started or running, below closed
/// ones too; deepest first, so that no parent goes on by itself because its child ended.
pub fn interrupt_targets(state: &State, id: AgentId) -> Vec<AgentId> {
    let mut targets = descendants(state, id, |agent| agent.relation.parent());
    targets.retain(|target| state.agents.get(target).is_some_and(|agent| !agent.is_closed()));
    targets.reverse();
    targets
}

/// `id` and everything bound to it by `link`, parents before children.
fn descendants(state: &State, id: AgentId, link: impl Fn(&Agent) -> Option<AgentId>) -> Vec<AgentId> {
    let mut found = vec![id];
    let mut seen = BTreeSet::from([id]);
    let mut next = 0;
    while next < found.len() {
        let above = found[next];
        let below = state.agents.values().filter(|agent| link(agent) == Some(above)).map(|agent| agent.id);
        found.extend(below.filter(|id| seen.insert(*id)));
        next += 1;
    }
    found
}

/// What an interrupt does to one agent: its turn is told to stop, and an agent that is still being started loses the
/// prompts it was started for.
pub fn interrupt(agent: &Agent) -> Vec<AgentEvent> {
    match (&agent.lifecycle, &agent.turn) {
        (Lifecycle::Starting, _) => {
            agent.queue.iter().map(|prompt| AgentEvent::PromptDropped { prompt: prompt.id }).collect()
        }
        (_, Some(turn)) if !turn.interrupted => vec![AgentEvent::TurnInterrupted],
        _ => vec![],
    }
}

/// Who may close whom: a person anyone, an agent only those it created.
pub fn may_close(state: &State, actor: Actor, id: AgentId) -> Result<(), Refusal> {
    let target = state.agent(id)?;
    match actor {
        Actor::Person => Ok(()),
        Actor::Agent(asker) if target.created_by == Some(asker) => Ok(()),
        Actor::Agent(_) => {
            Err(Refusal::NotAllowed { reason: "an agent may close only agents that it created".into() })
        }
    }
}

/// Closes an agent with all that is bound to it: companions and sub-agents first, at every depth. Closing a closed
/// agent changes nothing. A parent whose unfinished sub-agent is closed by another is woken; one that closed it itself
/// knows.
pub fn close(state: &State, actor: Actor, id: AgentId, at: Timestamp) -> Result<Vec<Event>, Refusal> {
    may_close(state, actor, id)?;
    let mut closing = descendants(state, id, |agent| agent.relation.bound_to());
    closing.reverse();
    let mut events = Vec::new();
    for id in closing {
        let agent = state.agent(id)?;
        if agent.is_closed() {
            continue;
        }
        let mut writer = Writer::new(agent, at);
        writer.end_process(TurnOutcome::Interrupted);
        if holds_slot(agent) {
            writer.push(AgentEvent::TaskSettled { result: TaskResult::Closed });
        }
        writer.push(AgentEvent::Closed);
        events.extend(writer.finish().into_iter().map(|change| Event::of(id, change)));
    }
    // Everything else that closes is below `id`, so its parent alone can be left to wake.
    if state.agent(id)?.relation.parent() != actor.agent() {
        // A task ends once, so the child's own id names the message about it.
        events.extend(wake_parent(state, id, &TaskResult::Closed, PromptId::new(id.uuid()), at));
    }
    Ok(events)
}

/// Starts a closed or failed agent again; it takes up its session where it can.
pub fn reopen(state: &State, id: AgentId) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    check_profile(state, agent)?;
    if agent.wants_process() || matches!(agent.lifecycle, Lifecycle::Resting) {
        return Err(Refusal::WrongStatus {
            name: agent.name.clone(),
            status: agent.status().words().to_owned(),
            action: "reopened".to_owned(),
        });
    }
    if agent.is_closed()
        && let Some(owner) = agent.relation.owner()
    {
        if state.agent(owner)?.is_closed() {
            return Err(Refusal::NotAllowed { reason: "its owner is closed; reopen the owner first".into() });
        }
        if companions(state, owner).count() >= state.limits.companions_per_owner as usize {
            let limit = state.limits.companions_per_owner;
            return Err(Refusal::LimitReached { limit, what: "companions of one agent".into() });
        }
    }
    let mut events = Vec::new();
    let name = free_name_for(state, agent);
    if name != agent.name {
        events.push(Event::of(id, AgentEvent::Renamed { name }));
    }
    events.push(Event::of(id, start(state, agent, &agent.profile)));
    Ok(events)
}

/// Ends an agent's process, if it has one, and starts another that takes up the session where it can. Its turn is
/// interrupted; prompts that wait stay.
pub fn restart(state: &State, id: AgentId, at: Timestamp) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    check_open(agent)?;
    check_profile(state, agent)?;
    Ok(start_anew(state, agent, &agent.profile, vec![], at))
}

/// Lets an agent run by another profile of the same driver from now on. One that has a process, or prompts that wait,
/// is started by it at once; another one with its next prompt. Closed and parked ones stay so until they are reopened.
pub fn rebind(state: &State, id: AgentId, profile: &ProfileId, at: Timestamp) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    let Some(new) = state.profile(profile) else {
        return Err(Refusal::NoSuchProfile { wanted: profile.to_string() });
    };
    if new.driver != agent.driver {
        let reason = format!(
            "agent `{}` runs by the driver `{}` and the profile `{}` by `{}`; rebind it to a profile of its own driver",
            agent.name, agent.driver, new.name, new.driver
        );
        return Err(Refusal::NotAllowed { reason });
    }
    if agent.profile == *profile {
        return Ok(vec![]);
    }
    let rebound = AgentEvent::Rebound { profile: profile.clone(), driver: new.driver };
    let parked = matches!(agent.lifecycle, Lifecycle::Failed(Failure { parked: true, .. }));
    let waits = !agent.queue.is_empty() && !agent.is_closed() && !parked;
    if agent.wants_process() || waits {
        return Ok(start_anew(state, agent, profile, vec![rebound], at));
    }
    Ok(vec![Event::of(id, rebound)])
}

/// Ends the process there is, does what comes `between`, and starts the next one by a profile.
fn start_anew(
    state: &State,
    agent: &Agent,
    profile: &ProfileId,
    between: Vec<AgentEvent>,
    at: Timestamp,
) -> Vec<Event> {
    let mut writer = Writer::new(agent, at);
    if agent.wants_process() {
        writer.end_process(TurnOutcome::Interrupted);
    }
    between.into_iter().for_each(|change| writer.push(change));
    writer.push(start(state, agent, profile));
    writer.finish().into_iter().map(|change| Event::of(agent.id, change)).collect()
}

/// Its own name, unless another open agent took it meanwhile.
fn free_name_for(state: &State, agent: &Agent) -> String {
    let taken = state
        .agents
        .values()
        .any(|other| other.id != agent.id && !other.is_closed() && other.name == agent.name);
    if taken { free_name(state, &agent.name, false) } else { agent.name.clone() }
}

/// Starts a process for an agent that rests although prompts wait for it, as after a stop in the middle of work.
pub fn wake(state: &State, agent: &Agent) -> Option<AgentEvent> {
    let waits = matches!(agent.lifecycle, Lifecycle::Resting) && !agent.queue.is_empty();
    (waits && state.has_profile(&agent.profile)).then(|| start(state, agent, &agent.profile))
}

/// Ends an agent's process for now; the next prompt starts one again.
pub fn rest(agent: &Agent, at: Timestamp) -> Vec<AgentEvent> {
    if !agent.wants_process() {
        return vec![];
    }
    let mut writer = Writer::new(agent, at);
    writer.end_process(TurnOutcome::Interrupted);
    writer.push(AgentEvent::Rested);
    writer.finish()
}

/// A process ended that should not have, or could not be started. `last` is what it said last. Where this settles a
/// sub-agent's task, the caller also commits what [`wake_parent`] says.
pub fn fail(
    agent: &Agent,
    last: &[Signal],
    mut failure: Failure,
    limits: &Limits,
    at: Timestamp,
    fresh: &mut dyn FnMut() -> Uuid,
) -> Vec<AgentEvent> {
    if !agent.wants_process() {
        return vec![];
    }
    let recent = agent.crashes.iter().filter(|crash| at.0 - crash.0 < Limits::CRASH_WINDOW_MS).count();
    failure.parked = recent + 1 >= limits.crashes_before_parking as usize;
    let mut writer = Writer::new(agent, at);
    for signal in last {
        writer.signal(signal.clone(), &[], fresh);
    }
    writer.end_process(TurnOutcome::Failed { message: failure.message.clone() });
    writer.notice(NoticeLevel::Error, failure.message.clone());
    if holds_slot(agent) {
        writer
            .push(AgentEvent::TaskSettled { result: TaskResult::Failed { reason: failure.message.clone() } });
    }
    writer.push(AgentEvent::Failed { failure });
    writer.finish()
}

/// The open ask that a person means: by id or by a unique beginning or end of it.
pub fn find_ask<'a>(state: &'a State, wanted: &str) -> Result<(&'a Agent, &'a Ask), Refusal> {
    let open = state.inbox();
    let short = wanted.to_ascii_lowercase();
    let fits = |id: AskId| {
        let id = id.to_string();
        id == short || (short.len() >= 4 && (id.starts_with(&short) || id.ends_with(&short)))
    };
    let mut found = open.into_iter().filter(|(_, ask)| fits(ask.id));
    let first = found.next().ok_or_else(|| Refusal::NotOpen { wanted: wanted.to_owned() })?;
    if found.next().is_some() {
        let reason = format!("`{wanted}` fits more than one open request; give more of the id");
        return Err(Refusal::Invalid { reason });
    }
    Ok(first)
}

/// Checks an answer against what was asked. An agent can answer nothing.
pub fn check_answer(
    actor: Actor,
    driver: DriverKind,
    body: &AskBody,
    answer: &Answer,
) -> Result<(), Refusal> {
    if actor != Actor::Person {
        return Err(Refusal::NotAllowed { reason: "only a person answers approvals and questions".into() });
    }
    let wrong = |reason: String| Err(Refusal::WrongAnswer { reason });
    match (body, answer) {
        (AskBody::Approval { options, .. }, Answer::Choose { option }) => {
            if options.iter().any(|offered| offered.id == *option) {
                return Ok(());
            }
            let offered = options.iter().map(|offered| offered.id.as_str()).collect::<Vec<_>>().join(", ");
            wrong(format!("the agent offers no `{option}`, only: {offered}"))
        }
        (AskBody::Approval { .. }, Answer::Reply { value }) if value.is_object() => {
            if driver == DriverKind::Claude {
                return Ok(());
            }
            wrong(format!(
                "an agent with the driver `{driver}` cannot be allowed something else than it asked for"
            ))
        }
        (AskBody::Approval { .. }, Answer::Reply { .. }) => {
            wrong("this is an approval: allow or deny it".to_owned())
        }
        (AskBody::Question(_), Answer::Allow { .. } | Answer::Choose { .. }) => {
            wrong("this is a question: answer it with a text, or deny it".to_owned())
        }
        _ => Ok(()),
    }
}

/// Settles an open ask with a person's answer, and sets the rule that the answer asks for.
pub fn answer(
    agent: &Agent,
    ask: AskId,
    answer: &Answer,
    at: Timestamp,
    fresh: &mut dyn FnMut() -> Uuid,
    resolve: policy::Resolve<'_>,
) -> Result<Vec<Event>, Refusal> {
    let open = agent
        .asks
        .iter()
        .find(|open| open.id == ask)
        .ok_or_else(|| Refusal::NotOpen { wanted: ask.to_string() })?;
    check_answer(Actor::Person, agent.driver, &open.body, answer)?;
    let rule = granted(agent, open, answer, RuleId::new(fresh()), at, resolve)?;
    let mut writer = Writer::new(agent, at);
    writer.settle(open, Some(answer.clone()), SettledBy::Person);
    let mut events: Vec<Event> =
        writer.finish().into_iter().map(|change| Event::of(agent.id, change)).collect();
    events.extend(rule.map(|rule| Event::RuleAdded { rule }));
    Ok(events)
}

/// Ends a sub-agent's task with its result and wakes the parent with it. A task that is over stays as it is.
pub fn settle_task(
    state: &State,
    child: AgentId,
    result: TaskResult,
    prompt: PromptId,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    if !holds_slot(state.agent(child)?) {
        return Ok(vec![]);
    }
    let woken = wake_parent(state, child, &result, prompt, at);
    let mut events = vec![Event::of(child, AgentEvent::TaskSettled { result })];
    events.extend(woken);
    Ok(events)
}

/// Wakes the parent of a sub-agent whose task ends with `result`. `state` is the one before the task is settled: for
/// anything but an unfinished sub-agent there is nobody to wake. `prompt` becomes the id of the message.
pub fn wake_parent(
    state: &State,
    child: AgentId,
    result: &TaskResult,
    prompt: PromptId,
    at: Timestamp,
) -> Vec<Event> {
    tell_parent(state, child, prompt, at, |name| match result {
        TaskResult::Yielded { text } => format!("Sub-agent {name} is done:\n{text}"),
        TaskResult::Failed { reason } => format!("Sub-agent {name} failed: {reason}"),
        TaskResult::Closed => format!("Sub-agent {name} was closed before it gave a result."),
    })
}

/// Wakes the parent of an unfinished sub-agent that waits for a person to settle `ask`. The parent cannot answer it; it
/// learns why nothing comes.
pub fn wake_parent_of_waiting(state: &State, child: AgentId, ask: &Ask, at: Timestamp) -> Vec<Event> {
    // It is asked once, so the ask's own id names the message about it.
    tell_parent(state, child, PromptId::new(ask.id.uuid()), at, |name| {
        format!("Sub-agent {name} is waiting for a person: {}", ask.title)
    })
}

/// Queues a message from a sub-agent's life for its parent. The limit on waiting prompts is for those who send: a
/// result is never lost to it. A parent that cannot be started keeps the message until it is reopened or rebound.
fn tell_parent(
    state: &State,
    child: AgentId,
    prompt: PromptId,
    at: Timestamp,
    text: impl FnOnce(&str) -> String,
) -> Vec<Event> {
    let Some(agent) = state.agents.get(&child).filter(|agent| holds_slot(agent)) else { return vec![] };
    let parent = agent.relation.parent().and_then(|parent| state.agents.get(&parent));
    let Some(parent) = parent.filter(|parent| !parent.is_closed() && !parent.knows_prompt(prompt)) else {
        return vec![];
    };
    let origin = PromptOrigin::Agent { agent: child };
    let prompt = Prompt { id: prompt, origin, text: text(&agent.name), attachments: vec![], at };
    let parked = matches!(parent.lifecycle, Lifecycle::Failed(Failure { parked: true, .. }));
    if parked || !state.has_profile(&parent.profile) {
        return vec![Event::of(parent.id, AgentEvent::PromptQueued { prompt })];
    }
    queue(state, parent, prompt)
}

/// Whether the agent still has its profile.
fn check_profile(state: &State, agent: &Agent) -> Result<(), Refusal> {
    if state.has_profile(&agent.profile) {
        return Ok(());
    }
    Err(Refusal::ProfileRemoved { profile: agent.profile.clone() })
}

fn check_open(agent: &Agent) -> Result<(), Refusal> {
    if agent.status() == Status::Closed {
        return Err(Refusal::Closed { name: agent.name.clone() });
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
