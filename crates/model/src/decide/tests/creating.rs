//! Who may create what, and under which name.

use crate::command::{Actor, CreateAgent, Refusal};
use crate::decide::testing::*;
use crate::decide::*;
use crate::ids::{ProfileId, Timestamp};
use crate::profile::DriverKind;
use crate::relation::{Relation, TaskResult};

fn limit_of(result: Result<AgentId, Refusal>) -> u32 {
    match result {
        Err(Refusal::LimitReached { limit, .. }) => limit,
        other => panic!("no limit was reached: {other:?}"),
    }
}

fn by_person(n: u128, relation: Relation) -> (Actor, CreateAgent) {
    (Actor::Person, request(n, relation))
}

#[test]
fn the_fourth_companion_is_refused_wherever_it_comes_from() {
    let mut team = Team::new();
    let owner = team.primary(1);
    for (n, actor) in [(2, Actor::Person), (3, Actor::Agent(owner)), (4, Actor::Person)] {
        team.create(actor, &request(n, companion_of(owner))).unwrap();
    }
    for actor in [Actor::Person, Actor::Agent(owner)] {
        assert_eq!(limit_of(team.create(actor, &request(5, companion_of(owner)))), 3);
    }
    let other = team.primary(6);
    team.companion(7, other);

    team.close(id(3));
    team.create(Actor::Person, &request(5, companion_of(owner))).unwrap();
    assert_eq!(companions(&team.state, owner).count(), 3);
}

#[test]
fn companions_have_neither_companions_nor_sub_agents() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let companion = team.companion(2, owner);
    for actor in [Actor::Person, Actor::Agent(companion)] {
        let companion_of_it = team.create(actor, &request(3, companion_of(companion)));
        assert_eq!(companion_of_it, Err(Refusal::CompanionOfCompanion));
        let sub_agent_of_it = team.create(actor, &request(3, sub_agent_of(companion)));
        assert!(matches!(sub_agent_of_it, Err(Refusal::NotAllowed { .. })));
    }
}

#[test]
fn sub_agents_nest_as_deep_as_the_limit() {
    for allowed in 0..4 {
        let mut team = Team::new();
        team.state.limits.subagent_depth = allowed;
        let mut parent = team.primary(1);
        for n in 0..allowed {
            parent = team.sub_agent(10 + u128::from(n), parent);
            assert_eq!(depth(&team.state, parent), n + 1);
        }
        assert_eq!(limit_of(team.create(Actor::Agent(parent), &request(99, sub_agent_of(parent)))), allowed);
    }
}

#[test]
fn a_request_cannot_pass_off_its_task_as_done() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let relation = Relation::SubAgent { parent, tool_call: None, result: Some(TaskResult::Closed) };
    let child = team.create(Actor::Agent(parent), &request(2, relation)).unwrap();
    assert!(holds_slot(team.agent(child)));
}

#[test]
fn what_cannot_be_created_is_refused() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let other = team.primary(2);
    let closed = team.primary(3);
    team.close(closed);
    let unknown_profile = CreateAgent { profile: ProfileId::new("nobody"), ..request(9, Relation::Primary) };
    let empty_prompt = CreateAgent { prompt: Some(prompt(50, " \n")), ..request(9, Relation::Primary) };
    let table = [
        ("an unknown profile", (Actor::Person, unknown_profile)),
        ("an empty prompt", (Actor::Person, empty_prompt)),
        ("a companion of nobody", by_person(9, companion_of(id(77)))),
        ("a sub-agent of nobody", by_person(9, sub_agent_of(id(77)))),
        ("a companion of itself", by_person(9, companion_of(id(9)))),
        ("a companion of a closed agent", by_person(9, companion_of(closed))),
        ("a sub-agent of a closed agent", by_person(9, sub_agent_of(closed))),
        ("a companion for another agent", (Actor::Agent(other), request(9, companion_of(owner)))),
        ("a sub-agent for another agent", (Actor::Agent(other), request(9, sub_agent_of(owner)))),
        ("anything by a closed agent", (Actor::Agent(closed), request(9, Relation::Primary))),
        ("anything by an unknown agent", (Actor::Agent(id(77)), request(9, Relation::Primary))),
    ];
    let before = team.state.clone();
    for (what, (actor, request)) in table {
        assert!(team.create(actor, &request).is_err(), "{what} was created");
        assert_eq!(team.state, before, "{what} left something behind");
    }
}

#[test]
fn asking_again_with_the_same_id_is_harmless_and_with_another_profile_refused() {
    let mut team = Team::new();
    let first = request(1, Relation::Primary);
    team.create(Actor::Person, &first).unwrap();
    let before = team.state.clone();
    assert_eq!(create(&before, Actor::Person, &first, Timestamp(5)), Ok(vec![]));
    let taken = Err(Refusal::IdTaken { id: id(1) });
    let other_profile = CreateAgent { profile: ProfileId::new("other"), ..first.clone() };
    assert_eq!(create(&before, Actor::Person, &other_profile, Timestamp(5)), taken);
    assert_eq!(create(&before, Actor::Agent(id(8)), &first, Timestamp(5)), taken);
}

#[test]
fn a_new_agent_starts_with_its_prompt_and_remembers_who_created_it() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let with_prompt = CreateAgent { prompt: Some(prompt(50, "go")), ..request(2, companion_of(owner)) };
    let companion = team.create(Actor::Agent(owner), &with_prompt).unwrap();
    let agent = team.agent(companion);
    assert_eq!(agent.created_by, Some(owner));
    assert_eq!(agent.status(), Status::Starting);
    assert_eq!((agent.generation, agent.queue.len()), (1, 1));
    assert_eq!(team.agent(owner).created_by, None);
}

#[test]
fn made_up_names_are_numbered_and_clashing_ones_get_a_number() {
    let mut team = Team::new();
    let name = |team: &Team, id| team.agent(id).name.clone();
    let (one, two) = (team.primary(1), team.primary(2));
    assert_eq!([name(&team, one), name(&team, two)], ["p-1", "p-2"]);
    team.close(one);
    let again = team.primary(3);
    assert_eq!(name(&team, again), "p-1");

    let (bee, clash, third) = (team.named(4, "bee"), team.named(5, " bee "), team.named(6, "bee"));
    assert_eq!([name(&team, bee), name(&team, clash), name(&team, third)], ["bee", "bee-2", "bee-3"]);

    let long = "x".repeat(64);
    let (whole, cut) = (team.named(7, &long), team.named(8, &long));
    assert_eq!(name(&team, whole), long);
    assert_eq!(name(&team, cut), format!("{}-2", "x".repeat(62)));
}

#[test]
fn names_are_printable_short_and_no_ids() {
    let mut team = Team::new();
    let long = "x".repeat(65);
    let an_id = id(1).to_string();
    for name in ["", "  ", "a\nb", "a\u{1b}[31m", "a\0", &long, &an_id, &an_id.replace('-', "")] {
        let request = CreateAgent { name: Some(name.into()), ..request(1, Relation::Primary) };
        let refused = team.create(Actor::Person, &request);
        assert!(matches!(refused, Err(Refusal::Invalid { .. })), "{name:?} was accepted");
    }
    for (n, name) in ["a", "Zoë", "the one", "蜂"].into_iter().enumerate() {
        let agent = team.named(10 + n as u128, name);
        assert_eq!(team.agent(agent).name, name);
    }
}

#[test]
fn renaming_keeps_names_unique_among_open_agents() {
    let mut team = Team::new();
    let (bee, ant) = (team.named(1, "bee"), team.named(2, "ant"));
    assert!(rename(&team.state, ant, "bee").is_err());
    assert!(rename(&team.state, ant, "\t").is_err());
    assert_eq!(rename(&team.state, ant, "ant"), Ok(vec![]));
    team.close(bee);
    let events = rename(&team.state, ant, " bee ").unwrap();
    team.apply(events);
    assert_eq!(team.agent(ant).name, "bee");
}

#[test]
fn a_session_is_taken_up_by_one_open_agent_at_a_time() {
    let mut team = Team::new();
    let with_session = |n| CreateAgent { session: Some("s".into()), ..request(n, Relation::Primary) };
    let first = team.create(Actor::Person, &with_session(1)).unwrap();
    let session = team.agent(first).session.as_ref().unwrap();
    assert!(session.resumable && session.id == "s", "its first process takes it up");
    assert_eq!(team.agent(first).cursor.items, 1, "where it came from stands in its transcript");
    let refused = team.create(Actor::Person, &with_session(2)).unwrap_err();
    assert!(refused.to_string().contains("has that session"), "{refused}");
    let elsewhere = CreateAgent { driver: DriverKind::Codex, ..with_session(3) };
    team.create(Actor::Person, &elsewhere).unwrap();
    team.close(first);
    team.create(Actor::Person, &with_session(2)).unwrap();
}
