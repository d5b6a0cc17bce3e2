//! Restarting, rebinding, and what an edited or removed profile does to its agents.

use super::super::testing::*;
use super::super::{rebind, reopen, restart, send};
use crate::agent::{Lifecycle, Status, TurnOutcome};
use crate::ask::AskBody;
use crate::command::Refusal;
use crate::event::{AgentEvent, Event};
use crate::ids::{ProfileId, Timestamp};
use crate::item::ToolKind;
use crate::profile::DriverKind;

fn other() -> ProfileId {
    ProfileId::new("other")
}

/// A team with a second profile of the same driver and a third of another one.
fn team() -> Team {
    let mut team = Team::new();
    team.state.profiles.push(profile("other", DriverKind::Acp, "agent"));
    team.state.profiles.push(profile("codex", DriverKind::Codex, "codex"));
    team
}

fn edit_profile(team: &mut Team) {
    team.state.profiles[0] = profile("p", DriverKind::Acp, "another-agent");
}

fn remove_profile(team: &mut Team) {
    team.state.profiles.retain(|profile| profile.id != ProfileId::new("p"));
}

#[test]
fn an_edited_profile_marks_its_running_agents_until_they_are_restarted() {
    let mut team = team();
    let (running, resting) = (team.primary(1), team.primary(2));
    team.ready(running);
    team.rest(resting);
    let marked = |team: &Team, id| team.state.restart_to_apply(team.agent(id));
    assert!(!marked(&team, running));
    edit_profile(&mut team);
    assert!(marked(&team, running));
    assert!(!marked(&team, resting), "it starts with the new one anyway");

    let events = restart(&team.state, running, Timestamp(5)).unwrap();
    team.apply(events);
    assert!(!marked(&team, running));
    team.send(resting, &prompt(7, "go on")).unwrap();
    assert!(!marked(&team, resting));

    edit_profile(&mut team);
    remove_profile(&mut team);
    assert!(!marked(&team, running), "there is nothing to apply");
}

#[test]
fn an_agent_from_before_revisions_is_not_marked() {
    let mut team = team();
    let id = team.primary(1);
    team.change(id, vec![AgentEvent::Starting { generation: 1, profile_revision: None }]);
    edit_profile(&mut team);
    assert!(!team.state.restart_to_apply(team.agent(id)));
}

#[test]
fn a_restart_interrupts_the_turn_and_keeps_what_waits() {
    let mut team = team();
    let id = team.primary(1);
    team.working(id);
    team.ask(id, 50, AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] });
    team.send(id, &prompt(7, "later")).unwrap();
    let events = restart(&team.state, id, Timestamp(5)).unwrap();
    team.apply(events);
    let agent = team.agent(id);
    assert_eq!((agent.status(), agent.generation), (Status::Starting, 2));
    assert_eq!(agent.last_outcome, Some(TurnOutcome::Interrupted));
    assert_eq!((agent.asks.len(), agent.queue.len()), (0, 1));
}

#[test]
fn whoever_is_not_closed_can_be_restarted() {
    let mut team = team();
    let [starting, resting, failed, parked, closed] = [1, 2, 3, 4, 5].map(|n| team.primary(n));
    team.rest(resting);
    team.fail(failed, 0);
    for at in 0..3 {
        team.fail(parked, at);
        let events = reopen(&team.state, parked).unwrap();
        team.apply(events);
    }
    team.fail(parked, 3);
    team.close(closed);
    for id in [starting, resting, failed, parked] {
        let before = team.agent(id).generation;
        let events = restart(&team.state, id, Timestamp(5)).unwrap();
        team.apply(events);
        let agent = team.agent(id);
        assert_eq!((&agent.lifecycle, agent.generation), (&Lifecycle::Starting, before + 1));
    }
    assert!(matches!(restart(&team.state, closed, Timestamp(5)), Err(Refusal::Closed { .. })));
    remove_profile(&mut team);
    assert!(matches!(restart(&team.state, starting, Timestamp(5)), Err(Refusal::ProfileRemoved { .. })));
}

#[test]
fn a_removed_profile_refuses_input_in_plain_words_until_the_agent_is_rebound() {
    let mut team = team();
    let id = team.primary(1);
    team.rest(id);
    remove_profile(&mut team);
    let refusal = team.send(id, &prompt(7, "hi")).unwrap_err().to_string();
    assert!(refusal.starts_with("profile removed: this chat can no longer send messages; `consort rebind "));
    let events = rebind(&team.state, id, &other(), Timestamp(5)).unwrap();
    assert_eq!(events.len(), 1, "it starts with the next prompt");
    team.apply(events);
    team.send(id, &prompt(7, "hi")).unwrap();
    let agent = team.agent(id);
    assert_eq!((agent.status(), agent.profile.as_str()), (Status::Starting, "other"));
    assert!(!team.state.restart_to_apply(agent));
}

#[test]
fn rebinding_starts_whoever_runs_or_has_something_to_do() {
    let mut team = team();
    let [working, waiting, closed] = [1, 2, 3].map(|n| team.primary(n));
    team.working(working);
    team.send(waiting, &prompt(8, "hi")).unwrap();
    team.rest(waiting);
    team.close(closed);
    for (id, starts) in [(working, true), (waiting, true), (closed, false)] {
        let events = rebind(&team.state, id, &other(), Timestamp(5)).unwrap();
        let is_start =
            |event: &Event| matches!(event, Event::Agent { change: AgentEvent::Starting { .. }, .. });
        assert_eq!(events.iter().any(is_start), starts);
        team.apply(events);
        assert_eq!(team.agent(id).profile, other());
    }
    assert_eq!(team.agent(working).last_outcome, Some(TurnOutcome::Interrupted));
    assert!(rebind(&team.state, working, &other(), Timestamp(5)).unwrap().is_empty(), "once is enough");
}

#[test]
fn an_agent_is_rebound_within_its_driver_only() {
    let mut team = team();
    let id = team.primary(1);
    let refusal = rebind(&team.state, id, &ProfileId::new("codex"), Timestamp(5)).unwrap_err();
    assert!(refusal.to_string().contains("of its own driver"), "{refusal}");
    let nobody = rebind(&team.state, id, &ProfileId::new("nobody"), Timestamp(5));
    assert!(matches!(nobody, Err(Refusal::NoSuchProfile { .. })));
    assert!(send(&team.state, id, &prompt(9, "x")).is_ok(), "and stays as it was");
}
