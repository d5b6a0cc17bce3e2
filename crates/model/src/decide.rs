//! Decisions about the team: a command and the state go in, events or a [`Refusal`] come out.
//!
//! Every check stands here and comes before any side effect, so a refused command leaves nothing behind. What an
//! agent's process must be told follows from the events and is the hub's business. What events lead to by themselves,
//! such as the message about a task that ended, [`consequences`] adds to those of any decision.

mod asks;
mod consequences;
mod messages;
mod rules;
mod steering;
mod tasks;
mod tools;

pub use asks::{answer, check_answer, find_ask, not_open};
pub use consequences::consequences;
pub use messages::{
    MAX_MESSAGE, answerable, begin_wait, end_wait, find_visible, hand_out, inquire, is_there, reopen_calls,
    send_message, show_messages, visible,
};
pub use rules::{add_rule, granted, remove_rule};
pub use steering::{joins, steerable};
pub use tasks::{
    AfterTurn, Running, after_turn, has_open_task, holds_slot, result_text, settle_task, stop_at_time,
    stop_task, time_is_up_at, yield_to_parent,
};
pub use tools::{connect_tools, create_for, may_create, may_interrupt, set_note, stricter};

use messages::parked;

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::agent::{Agent, Failure, Fork, Lifecycle, Prompt, PromptOrigin, Status, TurnOutcome};
use crate::command::{Actor, CreateAgent, Refusal};
use crate::event::{AgentEvent, Event};
use crate::ids::{AgentId, ProfileId, PromptId, Timestamp, TurnId};
use crate::item::NoticeLevel;
use crate::limits::Limits;
use crate::relation::{Relation, TaskResult};
use crate::session::SessionInfo;
use crate::signal::Signal;
use crate::state::State;
use crate::team::{Awaited, Report};
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
    check_session_free(state, request)?;
    let waits = match relation.parent() {
        Some(parent) => must_queue(state, parent)?,
        None => false,
    };
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
        brief: request.brief.clone(),
        task: Default::default(),
        created_at: at,
        lifecycle: if waits { Lifecycle::Queued } else { Lifecycle::Starting },
        generation: u32::from(!waits),
        profile_revision: Some(profile.revision.clone()),
        crashes: vec![],
        permissions: request.permissions,
        turn: None,
        last_outcome: None,
        ended_at: None,
        queue: request.prompt.clone().into_iter().collect(),
        taken: Default::default(),
        offered: vec![],
        shown: Default::default(),
        letters: Default::default(),
        inquiries: vec![],
        waits: vec![],
        asks: vec![],
        settled: Default::default(),
        session: request.session.as_deref().map(taken_up),
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
    let mut writer = Writer::new(&record, at);
    if let Some(session) = &request.session {
        let text =
            format!("Goes on with the session {session}; what was said in it before is not shown here.");
        writer.notice(NoticeLevel::Info, text);
    }
    let notes = writer.finish().into_iter().map(|change| Event::of(request.id, change));
    let created = Event::of(request.id, AgentEvent::Created { record: Box::new(record) });
    Ok(std::iter::once(created).chain(notes).collect())
}

/// A session that a program kept, to be taken up by a new agent's first process.
fn taken_up(session: &str) -> SessionInfo {
    SessionInfo { id: session.to_owned(), resumable: true, ..SessionInfo::default() }
}

/// Two programs that go on with the same session would know nothing of each other.
fn check_session_free(state: &State, request: &CreateAgent) -> Result<(), Refusal> {
    let Some(wanted) = &request.session else { return Ok(()) };
    let has = |agent: &&Agent| {
        !agent.is_closed()
            && agent.driver == request.driver
            && agent.session.as_ref().is_some_and(|session| session.id == *wanted)
    };
    match state.agents.values().find(has) {
        Some(agent) => {
            let name = &agent.name;
            let reason =
                format!("agent `{name}` has that session; use it, or `consort fork {name}` to branch off");
            Err(Refusal::Invalid { reason })
        }
        None => Ok(()),
    }
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
    // What is known to fail is refused here, so that no failed agent is left behind.
    if session.cannot_fork {
        let reason =
            format!("the program of `{}` cannot fork sessions; start a new agent instead", agent.name);
        return Err(Refusal::Invalid { reason });
    }
    let request = CreateAgent {
        id,
        name: name.or_else(|| Some(format!("{}-fork", agent.name))),
        profile: agent.profile.clone(),
        driver: agent.driver,
        cwd: agent.cwd.clone(),
        relation: Relation::Primary,
        permissions: agent.permissions,
        worktree: None,
        session: None,
        prompt,
        brief: agent.brief.clone(),
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
            may_spawn(state, creator)?;
            if actor.agent().is_some() {
                tasks::check_not_stopped(creator)?;
            }
            tasks::check_budget(state, *parent)
        }
    }
}

/// Whether an agent may have sub-agents at all: no companion has, and no sub-agent that is as deep as they may nest.
pub fn may_spawn(state: &State, agent: &Agent) -> Result<(), Refusal> {
    if agent.relation.owner().is_some() {
        let reason = "a companion cannot have sub-agents; ask its owner to spawn one".to_owned();
        return Err(Refusal::NotAllowed { reason });
    }
    let limit = state.limits.subagent_depth;
    if depth(state, agent.id) >= limit {
        return Err(Refusal::LimitReached { limit, what: "how deep sub-agents may nest".to_owned() });
    }
    Ok(())
}

/// Whether a new sub-agent has to wait for a slot; refused where too many wait already. Who waits longer comes first.
fn must_queue(state: &State, parent: AgentId) -> Result<bool, Refusal> {
    let queued = state.agents.values().filter(|agent| agent.lifecycle == Lifecycle::Queued).count();
    let running = Running::count(state.agents.values());
    if running.has_room(parent, &state.limits) {
        return Ok(false);
    }
    if queued >= state.limits.subagents_queued as usize {
        let limit = state.limits.subagents_queued;
        return Err(Refusal::LimitReached { limit, what: "sub-agents that wait to be started".to_owned() });
    }
    Ok(true)
}

/// The sub-agents of an agent, closed ones too.
fn children<'a>(agents: impl Iterator<Item = &'a Agent>, parent: AgentId) -> impl Iterator<Item = &'a Agent> {
    agents.filter(move |agent| agent.relation.parent() == Some(parent))
}

/// The agent at the top of the sub-agents that this one belongs to; itself if it is none.
fn top_of<'a>(agent: impl Fn(AgentId) -> Option<&'a Agent>, id: AgentId) -> AgentId {
    let mut top = id;
    let mut seen = BTreeSet::from([id]);
    while let Some(parent) =
        agent(top).and_then(|agent| agent.relation.parent()).filter(|id| seen.insert(*id))
    {
        top = parent;
    }
    top
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
        return Ok(steering::change_mind(agent, prompt));
    }
    check_recipient(state, agent, prompt)?;
    Ok(queue(state, agent, prompt.clone()))
}

/// Whether an agent takes one more prompt.
fn check_recipient(state: &State, agent: &Agent, prompt: &Prompt) -> Result<(), Refusal> {
    check_open(agent)?;
    check_profile(state, agent)?;
    if parked(agent) {
        return Err(Refusal::Parked { name: agent.name.clone() });
    }
    check_not_empty(&prompt.text, prompt)?;
    if agent.queue.len() >= state.limits.queued_prompts as usize {
        return Err(Refusal::LimitReached {
            limit: state.limits.queued_prompts,
            what: format!("prompts waiting for `{}`", agent.name),
        });
    }
    Ok(())
}

/// Puts a prompt into the queue, and starts a process for it where there is none.
fn queue(state: &State, agent: &Agent, prompt: Prompt) -> Vec<Event> {
    let mut events = vec![Event::of(agent.id, AgentEvent::PromptQueued { prompt })];
    if !agent.wants_process() && agent.lifecycle != Lifecycle::Queued {
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
    if agent.offered.contains(&prompt) {
        let reason =
            "that prompt was given to the running turn already; it waits only to be taken in".to_owned();
        return Err(Refusal::Invalid { reason });
    }
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
    let by_person = |prompt: &&Prompt| prompt.origin == PromptOrigin::Person;
    let messages = agent.queue.iter().take_while(|prompt| !by_person(prompt)).count();
    if messages > 0 { messages } else { agent.queue.len().min(1) }
}

/// The prompts that the next turn takes, if a turn can begin now. What the last turn was given and has not taken in comes
/// first: the agent may be about to begin a turn with it.
pub fn deliverable(agent: &Agent) -> Option<Vec<Prompt>> {
    let ready =
        matches!(agent.lifecycle, Lifecycle::Ready) && agent.turn.is_none() && agent.offered.is_empty();
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

/// What an interrupt does to one agent: its turn is told to stop, an agent that is still being started loses the
/// prompts it was started for, and a sub-agent that waits for a slot is closed.
pub fn interrupt(agent: &Agent) -> Vec<AgentEvent> {
    match (&agent.lifecycle, &agent.turn) {
        (Lifecycle::Queued, _) => {
            vec![AgentEvent::TaskSettled { result: TaskResult::Closed }, AgentEvent::Closed]
        }
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

/// Interrupts an agent and its sub-agents at every depth, in one step, so that nothing new is spawned in between; their
/// processes are told afterwards. The parent of a sub-agent that another one interrupted learns of it.
pub fn interrupt_team(
    state: &State,
    actor: Actor,
    id: AgentId,
    message: PromptId,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    check_open(state.agent(id)?)?;
    may_interrupt(state, actor, id)?;
    let mut events = Vec::new();
    for target in interrupt_targets(state, id) {
        let Some(agent) = state.agents.get(&target) else { continue };
        // The parent is interrupted as well, unless the interrupt begins here.
        if target != id && agent.lifecycle == Lifecycle::Queued {
            events.push(Event::of(target, AgentEvent::TaskReported { report: Report::Made }));
        }
        events.extend(interrupt(agent).into_iter().map(|change| Event::of(target, change)));
    }
    let Some(agent) = state.agents.get(&id).filter(|agent| has_open_task(agent)) else { return Ok(events) };
    let parent = agent.relation.parent().filter(|parent| actor.agent() != Some(*parent));
    let waits = |parent: &&Agent| {
        parent.waits.iter().any(|wait| wait.on.contains(&Awaited::Agent { agent: id })) || parent.is_closed()
    };
    let parent = parent.and_then(|parent| state.agents.get(&parent)).filter(|parent| !waits(parent));
    if let (Some(parent), Some(_)) = (parent, &agent.turn) {
        let text = format!(
            "Sub-agent `{}` was interrupted and waits for a person to go on with it; it has given no result yet.",
            agent.name
        );
        let origin = PromptOrigin::Agent { agent: id };
        let prompt = Prompt { id: message, origin, text, attachments: vec![], steers: true, at };
        if parked(parent) || !state.has_profile(&parent.profile) {
            events.push(Event::of(parent.id, AgentEvent::PromptQueued { prompt }));
        } else {
            events.extend(queue(state, parent, prompt));
        }
    }
    Ok(events)
}

/// Closes an agent with all that is bound to it: companions and sub-agents first, at every depth. Closing a closed
/// agent changes nothing. A parent whose unfinished sub-agent is closed by another learns of it; one that closed it itself
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
        if has_open_task(agent) {
            if actor.agent().is_some() && agent.relation.parent() == actor.agent() {
                writer.push(AgentEvent::TaskReported { report: Report::Made });
            }
            writer.push(AgentEvent::TaskSettled { result: TaskResult::Closed });
        }
        writer.push(AgentEvent::Closed);
        events.extend(writer.finish().into_iter().map(|change| Event::of(id, change)));
    }
    Ok(events)
}

/// Starts a closed or failed agent again; it takes up its session where it can.
pub fn reopen(state: &State, id: AgentId) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    check_profile(state, agent)?;
    if agent.wants_process() || matches!(agent.lifecycle, Lifecycle::Resting | Lifecycle::Queued) {
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
    if agent.lifecycle == Lifecycle::Queued {
        return Err(Refusal::WrongStatus {
            name: agent.name.clone(),
            status: agent.status().words().to_owned(),
            action: "restarted".to_owned(),
        });
    }
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
    let may_start = !agent.is_closed() && !parked(agent) && agent.lifecycle != Lifecycle::Queued;
    let waits = !agent.queue.is_empty() && may_start;
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

/// A process ended that should not have, or could not be started. `last` is what it said last.
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
    if has_open_task(agent) {
        writer
            .push(AgentEvent::TaskSettled { result: TaskResult::Failed { reason: failure.message.clone() } });
    }
    writer.push(AgentEvent::Failed { failure });
    writer.finish()
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
