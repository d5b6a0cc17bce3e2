//! Decisions that only agents ask for, through the tools by which they reach each other.

use crate::agent::TeamTools;
use crate::command::{Actor, Refusal};
use crate::event::{AgentEvent, Event};
use crate::ids::AgentId;
use crate::state::State;

/// The most characters of a note.
const MAX_NOTE: usize = 200;

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
    use crate::agent::{Agent, TurnOutcome};
    use crate::decide::testing::{agent, apply, id};
    use crate::ids::Timestamp;

    fn team(agents: impl IntoIterator<Item = Agent>) -> State {
        State { agents: agents.into_iter().map(|agent| (agent.id, agent)).collect(), ..State::default() }
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
