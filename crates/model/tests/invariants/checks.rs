//! What must be true after every step. Written from the rules, not from the code that keeps them.

use std::collections::{BTreeMap, BTreeSet};

use consort_model::event::AgentEvent;
use consort_model::relation::TaskResult;
use consort_model::{
    Agent, AgentId, Awaited, Event, Failure, Lifecycle, Refusal, Relation, Report, Stamped, State, Timestamp,
};

use crate::world::{Step, World};

/// Checks a step that led from `before` to the world as it is.
pub fn after(before: &State, world: &mut World, step: &Step, outcome: &Result<Vec<Event>, Refusal>) {
    match outcome {
        Err(refusal) => {
            assert_eq!(&world.state, before, "{step:?} was refused ({refusal}) and left something behind");
            world.seen.refused += 1;
            world.seen.limits += u32::from(matches!(refusal, Refusal::LimitReached { .. }));
        }
        Ok(events) => {
            follow_events(before, world, events);
            match step {
                Step::Close { of, by } => closing(before, world, World::id(*of), World::actor(*by).agent()),
                Step::Interrupt(n) => interrupting(before, world, World::id(*n), events),
                Step::Send { to, .. } => {
                    let waiting = before.agents[&World::id(*to)].queue.len();
                    assert!(waiting < before.limits.queued_prompts as usize, "a full queue took a prompt");
                }
                _ => {}
            }
            slots_and_wakes(before, world, step);
        }
    }
    standing(&world.state);
}

/// What holds of every state.
fn standing(state: &State) {
    let limits = &state.limits;
    let mut names = BTreeSet::new();
    let mut companions: BTreeMap<AgentId, u32> = BTreeMap::new();
    let mut running: BTreeMap<AgentId, u32> = BTreeMap::new();
    for agent in state.agents.values() {
        if !agent.is_closed() {
            assert!(names.insert(&agent.name), "two open agents are called {}", agent.name);
            if let Some(owner) = agent.relation.owner() {
                assert!(!state.agents[&owner].is_closed(), "{} outlived its owner", agent.name);
                assert!(state.agents[&owner].relation.owner().is_none(), "a companion has a companion");
                *companions.entry(owner).or_default() += 1;
            }
        }
        if let Some(parent) = agent.relation.parent() {
            let mut depth = 1;
            let mut above = parent;
            while let Some(next) = state.agents[&above].relation.parent() {
                (depth, above) = (depth + 1, next);
            }
            assert!(depth <= limits.subagent_depth, "{} is {depth} deep", agent.name);
            assert!(state.agents[&parent].relation.owner().is_none(), "a companion has a sub-agent");
        }
        if unfinished(agent) {
            let parent = agent.relation.parent().unwrap();
            assert!(
                !agent.is_closed() && !state.agents[&parent].is_closed(),
                "{} works for nobody",
                agent.name
            );
            let at_work = agent.turn.is_some() || !agent.queue.is_empty();
            let runs = match agent.lifecycle {
                Lifecycle::Starting => true,
                Lifecycle::Ready | Lifecycle::Resting => at_work,
                _ => false,
            };
            if runs && agent.waits.is_empty() {
                *running.entry(parent).or_default() += 1;
            }
        }
        if agent.lifecycle == Lifecycle::Queued {
            assert!(unfinished(agent) && agent.generation == 0, "{} has no reason to wait", agent.name);
        }
        if let Relation::SubAgent { parent, result: Some(_), .. } = &agent.relation {
            let parent = &state.agents[parent];
            let awaited = Awaited::Agent { agent: agent.id };
            match agent.task.report {
                Report::Due => {
                    let waits = parent.waits.iter().any(|wait| wait.on.contains(&awaited));
                    assert!(waits, "{}'s result is lost", agent.name);
                }
                Report::HandedOut { .. } => {
                    assert!(parent.turn.is_some(), "nothing will tell whether {}'s result came", agent.name)
                }
                Report::Made => {}
            }
        }
        assert!(agent.turn.is_some() || agent.waits.is_empty(), "{} waits outside of a turn", agent.name);
        let ready = agent.lifecycle == Lifecycle::Ready;
        assert!(ready || agent.turn.is_none(), "{} is in a turn without a process", agent.name);
        assert!(agent.turn.is_some() || agent.asks.is_empty(), "{} asks outside of a turn", agent.name);
    }
    assert!(companions.values().all(|count| *count <= limits.companions_per_owner));
    let all = running.values().sum::<u32>();
    for agent in state.agents.values().filter(|agent| agent.lifecycle == Lifecycle::Queued) {
        let of_parent = running.get(&agent.relation.parent().unwrap()).copied().unwrap_or(0);
        let full = of_parent >= limits.subagents_per_parent || all >= limits.subagents_total;
        assert!(full, "{} waits although there is room", agent.name);
    }
    let text = serde_json::to_string(state).unwrap();
    assert_eq!(&serde_json::from_str::<State>(&text).unwrap(), state, "the state changed on its way: {text}");
}

/// What holds of every event.
fn follow_events(before: &State, world: &mut World, events: &[Event]) {
    let mut state = before.clone();
    for event in events {
        if let Event::Agent { agent, change } = event {
            follow_report(&state, world, *agent, change);
            let known = state.agents.get(agent);
            assert_eq!(known.is_none(), matches!(change, AgentEvent::Created { .. }), "{event:?}");
            if let Some(agent) = known {
                follow_change(agent, change, &mut world.settled);
            }
        }
        state.apply(&Stamped { seq: state.seq + 1, at: Timestamp(0), event: event.clone() });
    }
    for event in events {
        let Event::Agent { change, .. } = event else { continue };
        world.seen.joined += u32::from(matches!(change, AgentEvent::PromptJoined { .. }));
        world.seen.returned += u32::from(matches!(change, AgentEvent::PromptReturned { .. }));
    }
    world.seen.answered += events
        .iter()
        .filter(|event| {
            matches!(event, Event::Agent { change: AgentEvent::Settled { settlement, .. }, .. }
                if settlement.answer.is_some())
        })
        .count() as u32;
}

/// A result reaches the parent once, as a message or in the answer to a call.
fn follow_report(state: &State, world: &mut World, id: AgentId, change: &AgentEvent) {
    let handed_out = |agent: &Agent| matches!(agent.task.report, Report::HandedOut { .. });
    let reached = match change {
        AgentEvent::PromptQueued { prompt } => {
            let child = AgentId::new(prompt.id.uuid());
            let known = state.agents.get(&child).filter(|child| child.relation.parent() == Some(id));
            known.map(|child| child.id)
        }
        AgentEvent::TaskReported { report: Report::Made } if handed_out(&state.agents[&id]) => {
            // Where it is told as well, only that counts; it follows.
            world.seen.handed_out += 1;
            None
        }
        AgentEvent::TaskReported { report: Report::HandedOut { certain: false } } => {
            world.seen.uncertain += 1;
            None
        }
        AgentEvent::Created { record } => {
            world.seen.queued += u32::from(record.lifecycle == Lifecycle::Queued);
            None
        }
        _ => None,
    };
    if let Some(child) = reached {
        let count = world.reached.entry(child).or_default();
        *count += 1;
        assert_eq!(*count, 1, "a result came twice");
        assert_eq!(state.agents[&child].task.report, Report::Made, "it is told and still owed");
    }
    if let AgentEvent::TaskReported { .. } = change {
        assert_ne!(state.agents[&id].task.report, Report::Made, "a result that came is reported again");
    }
}

fn follow_change(agent: &Agent, change: &AgentEvent, settled: &mut BTreeSet<consort_model::AskId>) {
    match change {
        AgentEvent::Settled { ask, .. } => {
            assert!(agent.asks.iter().any(|open| open.id == *ask), "{ask} was not open");
            assert!(settled.insert(*ask), "{ask} was settled twice");
        }
        AgentEvent::TaskSettled { .. } => assert!(unfinished(agent), "{}'s task ended twice", agent.name),
        AgentEvent::PromptQueued { prompt } => {
            assert!(!agent.is_closed(), "a closed agent was sent a prompt");
            assert!(!agent.knows_prompt(prompt.id), "a prompt was accepted twice");
        }
        AgentEvent::TurnStarted { prompts, .. } => {
            assert_eq!((&agent.lifecycle, &agent.turn), (&Lifecycle::Ready, &None));
            let front = agent.queue.iter().take(prompts.len()).map(|prompt| prompt.id);
            assert!(front.eq(prompts.iter().copied()), "a prompt was passed over");
        }
        AgentEvent::PromptOffered { prompt } => {
            assert!(
                agent.turn.is_some() && agent.queued(*prompt).is_some(),
                "no turn for what does not wait"
            );
            assert!(!agent.offered.contains(prompt), "a turn was given a prompt twice");
        }
        AgentEvent::PromptJoined { prompt } | AgentEvent::PromptReturned { prompt } => {
            assert!(agent.offered.contains(prompt), "no turn was given it");
            assert!(agent.queued(*prompt).is_some(), "it was delivered already");
        }
        AgentEvent::PromptEdited { prompt, .. } | AgentEvent::PromptDropped { prompt } => {
            assert!(!agent.offered.contains(prompt), "it was changed after a turn was given it");
        }
        AgentEvent::Starting { generation, .. } => {
            assert!(!agent.wants_process(), "a second process for {}", agent.name);
            assert_eq!(*generation, agent.generation + 1);
        }
        AgentEvent::Closed | AgentEvent::Failed { .. } | AgentEvent::Rested => {
            assert!(!agent.is_closed(), "{} ended after it was closed", agent.name);
            assert!(agent.turn.is_none() && agent.asks.is_empty(), "{} left something open", agent.name);
        }
        _ => {}
    }
}

/// Closing an owner closes what is bound to it, and nothing else; closing a companion leaves the owner alone.
fn closing(before: &State, world: &mut World, target: AgentId, by: Option<AgentId>) {
    let bound = below(before, target, &|agent| agent.relation.bound_to());
    for (id, agent) in &world.state.agents {
        let was = &before.agents[id];
        if bound.contains(id) {
            assert!(agent.is_closed(), "{} stayed open when its owner closed", agent.name);
        } else if was.lifecycle == Lifecycle::Queued {
            // It may have been given the slot.
            assert!(matches!(agent.lifecycle, Lifecycle::Queued | Lifecycle::Starting));
        } else if was != agent {
            let parent = before.agents[&target].relation.parent();
            assert_eq!(Some(*id), parent, "{} was changed by the closing of another", agent.name);
            let told = agent.queue.iter().any(|prompt| was.queued(prompt.id).is_none());
            assert!(!told || Some(*id) != by, "{} was told what it did itself", agent.name);
        }
    }
    let open = |id: &&AgentId| !before.agents[*id].is_closed();
    let closed: Vec<_> = bound.iter().filter(open).collect();
    world.seen.cascades +=
        u32::from(closed.iter().any(|id| before.agents[*id].relation.owner() == Some(target)));
    let alone = before.agents[&target].relation.owner().is_some() && !closed.is_empty();
    world.seen.lone_companions += u32::from(alone);
    let again =
        consort_model::decide::close(&world.state, consort_model::Actor::Person, target, Timestamp(0));
    assert_eq!(again, Ok(vec![]), "closing twice changes something");
}

/// An interrupt reaches every sub-agent below, the ones being started too, and no one else.
fn interrupting(before: &State, world: &mut World, target: AgentId, events: &[Event]) {
    let reached = below(before, target, &|agent| agent.relation.parent());
    let told = |event: &&Event| {
        matches!(
            event,
            Event::Agent { change: AgentEvent::PromptQueued { .. } | AgentEvent::Starting { .. }, .. }
        )
    };
    let parent = before.agents[&target].relation.parent();
    let mut stopped: Vec<AgentId> =
        events.iter().filter(|event| !told(event)).filter_map(Event::agent).collect();
    stopped.dedup();
    for (id, agent) in &world.state.agents {
        let was = &before.agents[id];
        if !reached.contains(id) {
            if Some(*id) == parent {
                assert!(agent.queue.len() <= was.queue.len() + 1);
                continue;
            }
            assert_eq!(agent, was, "{} was interrupted with another", agent.name);
            continue;
        }
        assert!(agent.turn.as_ref().is_none_or(|turn| turn.interrupted), "{} works on", agent.name);
        assert!(agent.lifecycle != Lifecycle::Queued, "{} will be started later", agent.name);
        let starting = agent.lifecycle == Lifecycle::Starting;
        assert!(!starting || agent.queue.is_empty(), "{} will begin when it has started", agent.name);
        let hit = *id != target && stopped.contains(id);
        world.seen.starting_interrupts += u32::from(hit && starting);
        world.seen.deep_interrupts += u32::from(hit && agent.relation.parent() != Some(target));
    }
    for (place, id) in stopped.iter().enumerate() {
        let parent = before.agents[id].relation.parent();
        let before_it = parent.is_some_and(|parent| stopped[..place].contains(&parent));
        assert!(!before_it, "a parent was interrupted before its child");
    }
}

/// A task that ends frees its slot, and wakes the parent unless that is closed or closed the child itself.
fn slots_and_wakes(before: &State, world: &mut World, step: &Step) {
    let closed_by = match step {
        Step::Close { by, .. } => World::actor(*by).agent(),
        _ => None,
    };
    for (id, was) in &before.agents {
        let now = &world.state.agents[id];
        if !unfinished(was) || unfinished(now) {
            continue;
        }
        assert!(!consort_model::decide::holds_slot(now));
        let Relation::SubAgent { parent, result: Some(result), .. } = &now.relation else {
            panic!("{} lost its task", now.name);
        };
        assert!(now.is_closed() || *result != TaskResult::Closed);
        let parent_now = &world.state.agents[parent];
        let told = parent_now.queue.iter().any(|prompt| prompt.id.uuid() == id.uuid());
        let awaited = Awaited::Agent { agent: *id };
        let waits = parent_now.waits.iter().any(|wait| wait.on.contains(&awaited));
        let dropped = matches!(step, Step::Interrupt(n) if World::id(*n) != *id);
        let expected = !parent_now.is_closed() && closed_by != Some(*parent) && !waits && !dropped;
        assert_eq!(told, expected, "{} was not told of {}", parent_now.name, now.name);
        if expected {
            let parked = matches!(parent_now.lifecycle, Lifecycle::Failed(Failure { parked: true, .. }));
            assert!(parent_now.wants_process() || parked, "{} sleeps on", parent_now.name);
            world.seen.woken += 1;
        }
    }
}

/// The events alone give the same state, read back from their text too.
pub fn replay(world: &World) {
    let mut state = world.first.clone();
    for (n, stamped) in world.log.iter().enumerate() {
        assert_eq!(stamped.seq, n as u64 + 1);
        let text = serde_json::to_string(stamped).unwrap();
        state.apply(&serde_json::from_str(&text).unwrap());
    }
    assert_eq!(state, world.state);
}

fn unfinished(agent: &Agent) -> bool {
    matches!(agent.relation, Relation::SubAgent { result: None, .. })
}

/// An agent and all that hang below it.
fn below(state: &State, top: AgentId, link: &dyn Fn(&Agent) -> Option<AgentId>) -> BTreeSet<AgentId> {
    let mut found = BTreeSet::from([top]);
    for agent in state.agents.values().filter(|agent| link(agent) == Some(top)) {
        found.extend(below(state, agent.id, link));
    }
    found
}
