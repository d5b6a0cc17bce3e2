//! What closes with what, who may close whom, and what can be taken up again.

use crate::agent::{Lifecycle, Status, TurnOutcome};
use crate::ask::{AskBody, SettledBy};
use crate::command::{Actor, Refusal};
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::{AgentEvent, Event};
use crate::ids::Timestamp;
use crate::item::ToolKind;
use crate::relation::TaskResult;

/// The agents that these events close, in order.
fn closed(events: &[Event]) -> Vec<AgentId> {
    let is_closed = |event: &&Event| matches!(event, Event::Agent { change: AgentEvent::Closed, .. });
    events.iter().filter(is_closed).filter_map(Event::agent).collect()
}

fn closing(team: &Team, id: AgentId) -> Vec<Event> {
    close(&team.state, Actor::Person, id, Timestamp(9)).unwrap()
}

#[test]
fn an_agent_closes_only_those_it_created() {
    let mut team = Team::deep();
    let owner = team.primary(1);
    let companion = team.companion(2, owner);
    let child = team.sub_agent(3, owner);
    let grandchild = team.sub_agent(4, child);
    let stranger = team.primary(5);
    let persons = team.create(Actor::Person, &request(6, companion_of(owner))).unwrap();
    let table = [
        (Actor::Person, owner, true),
        (Actor::Person, grandchild, true),
        (Actor::Agent(owner), companion, true),
        (Actor::Agent(owner), child, true),
        (Actor::Agent(child), grandchild, true),
        (Actor::Agent(owner), grandchild, false),
        (Actor::Agent(owner), owner, false),
        (Actor::Agent(owner), stranger, false),
        (Actor::Agent(owner), persons, false),
        (Actor::Agent(companion), owner, false),
        (Actor::Agent(child), owner, false),
        (Actor::Agent(stranger), companion, false),
    ];
    for (actor, target, allowed) in table {
        assert_eq!(may_close(&team.state, actor, target).is_ok(), allowed, "{actor:?} closes {target}");
        assert_eq!(close(&team.state, actor, target, Timestamp(9)).is_ok(), allowed);
    }
    assert!(matches!(may_close(&team.state, Actor::Person, id(77)), Err(Refusal::NoSuchAgent { .. })));
}

#[test]
fn closing_an_owner_closes_all_that_is_bound_to_it_first() {
    let mut team = Team::deep();
    let owner = team.primary(1);
    let companion = team.companion(9, owner);
    let child = team.sub_agent(8, owner);
    let companion_of_child = team.companion(7, child);
    let grandchild = team.sub_agent(2, child);
    let unrelated = team.create(Actor::Agent(owner), &request(3, Relation::Primary)).unwrap();

    let order = closed(&closing(&team, owner));
    let place = |id| order.iter().position(|closed| *closed == id).unwrap();
    assert_eq!(order.len(), 5);
    assert_eq!(order.last(), Some(&owner));
    assert!(place(grandchild) < place(child) && place(companion_of_child) < place(child));
    assert!(order.contains(&companion));

    team.close(owner);
    assert!(!team.agent(unrelated).is_closed(), "an agent that stands by itself closes by itself");
}

#[test]
fn closing_a_companion_leaves_its_owner_alone() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let (one, two) = (team.companion(2, owner), team.companion(3, owner));
    team.working(owner);
    let before = team.agent(owner).clone();
    team.close(one);
    assert_eq!(team.agent(owner), &before);
    assert!(team.agent(one).is_closed());
    assert!(!team.agent(two).is_closed());
}

#[test]
fn closing_twice_changes_nothing() {
    let mut team = Team::new();
    let owner = team.primary(1);
    team.companion(2, owner);
    team.sub_agent(3, owner);
    team.close(owner);
    assert_eq!(closing(&team, owner), []);
    assert_eq!(closing(&team, id(2)), []);
}

#[test]
fn closing_ends_the_turn_and_settles_open_asks() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.working(agent);
    team.send(agent, &prompt(50, "later")).unwrap();
    team.ask(agent, 60, AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] });
    let events = closing(&team, agent);
    let settled = |event: &Event| {
        matches!(event, Event::Agent { change: AgentEvent::Settled { settlement, .. }, .. }
            if settlement.by == SettledBy::AgentEnded && settlement.answer.is_none())
    };
    assert!(events.iter().any(settled));
    team.apply(events);
    let agent = team.agent(agent);
    assert_eq!(agent.status(), Status::Closed);
    assert_eq!(agent.turn, None);
    assert_eq!(agent.last_outcome, Some(TurnOutcome::Interrupted));
    assert!(agent.asks.is_empty());
    assert_eq!(agent.queue.len(), 1, "an accepted prompt waits for the reopening");
}

#[test]
fn closing_an_unfinished_sub_agent_wakes_its_parent_unless_that_did_it_or_closes_too() {
    let mut team = Team::deep();
    let top = team.primary(1);
    let middle = team.sub_agent(2, top);
    let low = team.sub_agent(3, middle);
    let woken = |actor, target| -> Vec<AgentId> {
        let events = team.whole(close(&team.state, actor, target, Timestamp(9)).unwrap());
        let queued =
            |event: &&Event| matches!(event, Event::Agent { change: AgentEvent::PromptQueued { .. }, .. });
        events.iter().filter(queued).filter_map(Event::agent).collect()
    };
    assert_eq!(woken(Actor::Person, low), [middle]);
    assert_eq!(woken(Actor::Agent(middle), low), []);
    assert_eq!(woken(Actor::Person, middle), [top]);
    assert_eq!(woken(Actor::Person, top), []);

    team.close(middle);
    assert_eq!(team.agent(top).queue.len(), 1);
    assert!(team.agent(top).queue[0].text.contains("was closed"));
    assert!(team.agent(middle).queue.is_empty());
    for child in [middle, low] {
        let over = Relation::SubAgent {
            parent: team.agent(child).relation.parent().unwrap(),
            tool_call: None,
            result: Some(TaskResult::Closed),
        };
        assert_eq!(team.agent(child).relation, over);
    }
    assert_eq!(closing(&team, middle), []);
}

#[test]
fn closed_and_failed_agents_reopen_with_a_new_process() {
    let mut team = Team::new();
    let agent = team.primary(1);
    for end in [Team::close, |team: &mut Team, id| team.fail(id, 0)] {
        end(&mut team, agent);
        let generation = team.agent(agent).generation;
        let events = reopen(&team.state, agent).unwrap();
        team.apply(events);
        assert_eq!(team.agent(agent).lifecycle, Lifecycle::Starting);
        assert_eq!(team.agent(agent).generation, generation + 1);
    }
}

#[test]
fn what_is_running_or_resting_or_has_lost_its_profile_does_not_reopen() {
    let mut team = Team::new();
    let agent = team.primary(1);
    let refused = |team: &Team| matches!(reopen(&team.state, agent), Err(Refusal::WrongStatus { .. }));
    assert!(refused(&team));
    team.ready(agent);
    assert!(refused(&team));
    team.rest(agent);
    assert!(refused(&team));
    team.close(agent);
    team.state.profiles.clear();
    assert!(matches!(reopen(&team.state, agent), Err(Refusal::ProfileRemoved { .. })));
    assert!(matches!(reopen(&team.state, id(77)), Err(Refusal::NoSuchAgent { .. })));
}

#[test]
fn a_companion_reopens_only_beside_an_open_owner_with_room() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let companion = team.companion(2, owner);
    team.close(owner);
    assert!(matches!(reopen(&team.state, companion), Err(Refusal::NotAllowed { .. })));
    team.apply(reopen(&team.state, owner).unwrap());
    assert!(team.agent(companion).is_closed(), "reopening an owner reopens it alone");
    for n in 3..6 {
        team.companion(n, owner);
    }
    assert!(matches!(reopen(&team.state, companion), Err(Refusal::LimitReached { limit: 3, .. })));
    team.close(id(3));
    team.apply(reopen(&team.state, companion).unwrap());
    assert!(!team.agent(companion).is_closed());
}

#[test]
fn reopening_takes_another_name_where_its_own_was_taken_meanwhile() {
    let mut team = Team::new();
    let first = team.named(1, "bee");
    team.close(first);
    let second = team.named(2, "bee");
    team.apply(reopen(&team.state, first).unwrap());
    assert_eq!(team.agent(first).name, "bee-2");
    assert_eq!(team.agent(second).name, "bee");
}

#[test]
fn a_sub_agent_whose_task_is_over_reopens_without_a_slot() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.close(child);
    team.apply(reopen(&team.state, child).unwrap());
    assert!(!team.agent(child).is_closed());
    assert!(!holds_slot(team.agent(child)));
}
