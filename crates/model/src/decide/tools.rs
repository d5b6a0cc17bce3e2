//! Decisions that only agents ask for, through the tools by which they reach each other.

use crate::agent::{Agent, TeamTools};
use crate::command::{Actor, CreateAgent, Refusal};
use crate::event::{AgentEvent, Event};
use crate::ids::{AgentId, Timestamp};
use crate::policy::PermissionMode;
use crate::relation::Relation;
use crate::state::State;

/// The most characters of a note.
const MAX_NOTE: usize = 200;

/// Whether an agent may create others at all. Only those that a person made may, so that a team that misunderstands its
/// task does not grow by itself: sub-agents have limits of their own, and what an agent made makes no more.
pub fn may_create(asker: &Agent) -> Result<(), Refusal> {
    if asker.relation == Relation::Primary && asker.created_by.is_none() {
        return Ok(());
    }
    let reason =
        "only agents that a person made create others; ask the one that created you to do it".to_owned();
    Err(Refusal::NotAllowed { reason })
}

/// Creates an agent for another one. It may do no more by itself than its creator may, whatever its profile says, and
/// one agent has no more open ones that stand by themselves than it may have sub-agents.
pub fn create_for(
    state: &State,
    asker: AgentId,
    request: &CreateAgent,
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let creator = state.agent(asker)?;
    // Sub-agents have limits of their own, at every depth.
    if request.relation.parent().is_none() {
        may_create(creator)?;
    }
    let own = |agent: &&Agent| agent.created_by == Some(asker) && agent.relation == Relation::Primary;
    let limit = state.limits.subagents_per_parent;
    let open = state.agents.values().filter(own).filter(|agent| !agent.is_closed()).count();
    if request.relation == Relation::Primary && open >= limit as usize {
        return Err(Refusal::LimitReached { limit, what: "agents that one agent created".to_owned() });
    }
    let permissions = stricter(creator.permissions, request.permissions);
    super::create(state, Actor::Agent(asker), &CreateAgent { permissions, ..request.clone() }, at)
}

/// The mode of the two that lets fewer things happen without a person.
pub fn stricter(one: PermissionMode, other: PermissionMode) -> PermissionMode {
    let freedom = |mode: &PermissionMode| match mode {
        PermissionMode::Plan => 0,
        PermissionMode::Default => 1,
        PermissionMode::AcceptEdits => 2,
        PermissionMode::Bypass => 3,
    };
    std::cmp::min_by_key(one, other, freedom)
}

/// Who may interrupt whom: a person anyone, an agent only those it created.
pub fn may_interrupt(state: &State, actor: Actor, id: AgentId) -> Result<(), Refusal> {
    let target = state.agent(id)?;
    match actor {
        Actor::Agent(asker) if target.created_by != Some(asker) => {
            Err(Refusal::NotAllowed { reason: "an agent may interrupt only agents that it created".into() })
        }
        _ => Ok(()),
    }
}

/// Notes what an agent says that it is doing: one line, cut where it is long. An empty one takes the note away.
pub fn set_note(state: &State, id: AgentId, note: &str) -> Result<Vec<Event>, Refusal> {
    let agent = state.agent(id)?;
    let words = note.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line: String = words.collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(MAX_NOTE).collect();
    let note = Some(cut).filter(|note| !note.is_empty());
    Ok(if agent.note == note { vec![] } else { vec![Event::of(id, AgentEvent::NoteChanged { note })] })
}

/// An agent's process came for its tools.
pub fn connect_tools(state: &State, id: AgentId) -> Result<Vec<Event>, Refusal> {
    let known = state.agent(id)?.team_tools == TeamTools::Connected;
    Ok(if known { vec![] } else { vec![Event::of(id, AgentEvent::TeamToolsConnected)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::TurnOutcome;
    use crate::decide::testing::{agent, apply, companion_of, id, request, state, sub_agent_of};

    fn team(agents: impl IntoIterator<Item = Agent>) -> State {
        State { agents: agents.into_iter().map(|agent| (agent.id, agent)).collect(), ..State::default() }
    }

    #[test]
    fn an_agent_creates_some_others_and_they_create_none() {
        let mut state = State { agents: team([agent(1)]).agents, ..state() };
        state.limits.subagents_per_parent = 2;
        state.agents.get_mut(&id(1)).unwrap().permissions = PermissionMode::AcceptEdits;
        let bypass = |n| CreateAgent { permissions: PermissionMode::Bypass, ..request(n, Relation::Primary) };
        for n in [2, 3] {
            let events = create_for(&state, id(1), &bypass(n), Timestamp(0)).unwrap();
            apply(&mut state, events);
        }
        let made = &state.agents[&id(2)];
        assert_eq!((made.created_by, made.permissions), (Some(id(1)), PermissionMode::AcceptEdits));
        let refused = create_for(&state, id(1), &bypass(4), Timestamp(0)).unwrap_err();
        assert!(matches!(refused, Refusal::LimitReached { limit: 2, .. }), "{refused}");
        let refused = create_for(&state, id(2), &bypass(4), Timestamp(0)).unwrap_err();
        assert!(matches!(refused, Refusal::NotAllowed { .. }), "{refused}");
        for relation in [companion_of(id(1)), sub_agent_of(id(1))] {
            assert!(may_create(&Agent { relation, ..agent(5) }).is_err());
        }
    }

    #[test]
    fn the_stricter_mode_is_the_one_with_fewer_freedoms() {
        use PermissionMode::{AcceptEdits, Bypass, Default, Plan};
        for (one, other, expected) in
            [(Plan, Bypass, Plan), (Bypass, Default, Default), (AcceptEdits, Bypass, AcceptEdits)]
        {
            assert_eq!((stricter(one, other), stricter(other, one)), (expected, expected));
        }
    }

    #[test]
    fn an_agent_interrupts_only_those_it_created() {
        let state = team([agent(1), Agent { created_by: Some(id(1)), ..agent(2) }]);
        for (actor, target, allowed) in [
            (Actor::Person, 1, true),
            (Actor::Agent(id(1)), 2, true),
            (Actor::Agent(id(2)), 1, false),
            (Actor::Agent(id(1)), 1, false),
            (Actor::Agent(id(1)), 9, false),
        ] {
            assert_eq!(may_interrupt(&state, actor, id(target)).is_ok(), allowed, "{actor:?} of {target}");
        }
    }

    #[test]
    fn a_note_is_one_line_and_goes_away_when_it_is_empty() {
        let mut state = team([agent(1)]);
        for (said, kept) in [
            ("  reading\n the\ttests ", Some("reading the tests".to_owned())),
            (&"x".repeat(500), Some("x".repeat(MAX_NOTE))),
            (" \n\u{7}", None),
        ] {
            let events = set_note(&state, id(1), said).unwrap();
            apply(&mut state, events);
            assert_eq!(state.agents[&id(1)].note, kept);
            assert_eq!(set_note(&state, id(1), said).unwrap(), vec![], "the same again");
        }
    }

    #[test]
    fn tools_are_missing_when_a_turn_went_by_without_them_until_the_agent_comes_for_them() {
        let mut agent = agent(1);
        let at = Timestamp(0);
        agent.apply(&AgentEvent::TurnEnded { outcome: TurnOutcome::Completed }, at);
        assert_eq!(agent.team_tools, TeamTools::Missing);
        agent.apply(&AgentEvent::Starting { generation: 2, profile_revision: None }, at);
        assert_eq!(agent.team_tools, TeamTools::Unknown);
        let mut state = team([agent]);
        let events = connect_tools(&state, id(1)).unwrap();
        apply(&mut state, events);
        assert_eq!(connect_tools(&state, id(1)).unwrap(), vec![]);
        state
            .agents
            .get_mut(&id(1))
            .unwrap()
            .apply(&AgentEvent::TurnEnded { outcome: TurnOutcome::Completed }, at);
        assert_eq!(state.agents[&id(1)].team_tools, TeamTools::Connected);
    }
}
