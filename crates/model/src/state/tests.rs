//! How people name agents, and what the state remembers.

use super::*;
use crate::agent::Status;
use crate::command::{Actor, CreateAgent};
use crate::decide::testing::*;
use crate::decide::{create, reopen};
use crate::event::Stamped;
use crate::session::Usage;

fn with_id(team: &mut Team, id: &str, name: &str) -> AgentId {
    let id: AgentId = id.parse().unwrap();
    let request = CreateAgent { id, name: Some(name.into()), ..request(1, Relation::Primary) };
    team.create(Actor::Person, &request).unwrap()
}

#[test]
fn agents_are_found_by_id_name_and_either_end_of_the_id() {
    let mut team = Team::new();
    let bee = with_id(&mut team, "01890000-aaaa-7000-8000-00000000bbbb", "bee");
    let ant = with_id(&mut team, "01890000-cccc-7000-8000-00000000dddd", "ant");
    let table = [
        (bee.to_string(), Some(bee)),
        (bee.to_string().to_uppercase(), Some(bee)),
        ("bee".to_owned(), Some(bee)),
        ("01890000-a".to_owned(), Some(bee)),
        ("01890000-C".to_owned(), Some(ant)),
        ("dddd".to_owned(), Some(ant)),
        ("DDDD".to_owned(), Some(ant)),
        ("ddd".to_owned(), None),
        ("Bee".to_owned(), None),
        (String::new(), None),
        (id(77).to_string(), None),
        ("aaaa-7000".to_owned(), None),
    ];
    for (wanted, expected) in table {
        match (team.state.find(&wanted), expected) {
            (Ok(agent), Some(expected)) => assert_eq!(agent.id, expected, "{wanted:?}"),
            (Err(Refusal::NoSuchAgent { .. }), None) => {}
            (found, expected) => panic!("{wanted:?}: {found:?} instead of {expected:?}"),
        }
    }
    let ambiguous = team.state.find("0189");
    assert!(matches!(ambiguous, Err(Refusal::AmbiguousAgent { .. })), "{ambiguous:?}");
}

#[test]
fn an_open_agent_wins_over_closed_ones_and_a_name_over_an_id() {
    let mut team = Team::new();
    let old = with_id(&mut team, "01890000-aaaa-7000-8000-00000000bbbb", "bee");
    team.close(old);
    assert_eq!(team.state.find("bee").unwrap().id, old, "the only one, though closed");
    let older = with_id(&mut team, "01890000-aaab-7000-8000-00000000bbbb", "bee");
    assert_eq!(team.state.find("bee").unwrap().id, older);
    assert_eq!(team.state.find("bbbb").unwrap().id, older);
    team.close(older);
    assert!(matches!(team.state.find("bee"), Err(Refusal::AmbiguousAgent { .. })));
    let new = with_id(&mut team, "01890000-cccc-7000-8000-00000000dddd", "bbbb");
    assert_eq!(team.state.find("bbbb").unwrap().id, new);
}

#[test]
fn an_event_of_an_unknown_agent_changes_nothing_but_the_number() {
    let mut state = state();
    let before = state.clone();
    let event = Event::of(id(77), AgentEvent::Closed);
    state.apply(&Stamped { seq: 1, at: Timestamp(0), event });
    assert_eq!(state, State { seq: 1, ..before });
}

#[test]
fn an_agent_remembers_the_prompts_it_took_lately_and_no_more() {
    let mut subject = agent(1);
    let ids: Vec<_> = (0..REMEMBERED_PROMPTS as u128 + 1).map(|n| prompt(n, "x").id).collect();
    for prompt in &ids {
        subject.apply(&AgentEvent::PromptDropped { prompt: *prompt }, Timestamp(0));
    }
    assert_eq!(subject.taken.len(), REMEMBERED_PROMPTS);
    assert!(!subject.knows_prompt(ids[0]));
    assert!(ids[1..].iter().all(|prompt| subject.knows_prompt(*prompt)));
}

#[test]
fn old_crashes_are_forgotten_and_closing_forgets_all() {
    let mut team = Team::new();
    let agent = team.primary(1);
    for at in [0, 1, Limits::CRASH_WINDOW_MS] {
        if !team.agent(agent).wants_process() {
            team.apply(reopen(&team.state, agent).unwrap());
        }
        team.fail(agent, at);
    }
    assert_eq!(team.agent(agent).crashes, [Timestamp(1), Timestamp(Limits::CRASH_WINDOW_MS)]);
    team.close(agent);
    assert_eq!(team.agent(agent).crashes, []);
}

#[test]
fn a_stalled_turn_shows_and_recovers() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.working(agent);
    for (stalled, expected) in [(true, Status::Stalled), (false, Status::Working)] {
        team.change(agent, vec![AgentEvent::TurnStalled { stalled }]);
        assert_eq!(team.agent(agent).status(), expected);
    }
}

#[test]
fn a_client_with_one_agent_follows_it_as_the_state_does() {
    let mut team = Team::new();
    let events = create(&team.state, Actor::Person, &request(1, Relation::Primary), Timestamp(0)).unwrap();
    let mut replica = agent(2);
    for event in &events {
        if let Event::Agent { change, .. } = event {
            replica.apply(change, Timestamp(0));
        }
    }
    team.apply(events);
    assert_eq!(&replica, team.agent(id(1)));
}

#[test]
fn newer_usage_replaces_what_it_knows_and_keeps_the_rest() {
    let mut usage =
        Usage { input_tokens: Some(1), output_tokens: Some(2), cost: Some(0.5), ..Usage::default() };
    usage.update(&Usage { output_tokens: Some(3), context_used: Some(4), ..Usage::default() });
    let expected = Usage {
        input_tokens: Some(1),
        output_tokens: Some(3),
        context_used: Some(4),
        context_size: None,
        cost: Some(0.5),
    };
    assert_eq!(usage, expected);
    usage.update(&Usage::default());
    assert_eq!(usage, expected);
}
