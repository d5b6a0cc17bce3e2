//! Agents whose conversation branches off from another's.

use crate::agent::Fork;
use crate::command::Refusal;
use crate::decide::fork;
use crate::decide::testing::{Team, id, prompt};
use crate::event::AgentEvent;
use crate::ids::Timestamp;
use crate::session::SessionInfo;

fn with_session(team: &mut Team, resumable: bool) -> crate::ids::AgentId {
    let source = team.primary(1);
    let session = SessionInfo { id: "s-1".into(), resumable, ..SessionInfo::default() };
    team.change(source, vec![AgentEvent::Ready { session }]);
    source
}

#[test]
fn a_fork_goes_on_from_the_session_of_another_and_leaves_it_alone() {
    let mut team = Team::new();
    let source = with_session(&mut team, true);
    let before = team.agent(source).clone();
    let first = Some(prompt(9, "go on"));
    let events = fork(&team.state, source, id(2), Some("branch".into()), first, Timestamp(5)).unwrap();
    team.apply(events);
    assert_eq!(*team.agent(source), before);
    let branch = team.agent(id(2));
    assert_eq!(branch.fork, Some(Fork { of: source, session: "s-1".into() }));
    assert_eq!((branch.name.as_str(), branch.queue.len(), branch.cursor.items), ("branch", 1, 1));
    assert_eq!((&branch.profile, &branch.cwd), (&before.profile, &before.cwd));
    let again = fork(&team.state, source, id(2), Some("branch".into()), None, Timestamp(6)).unwrap();
    assert!(again.is_empty(), "asking again is harmless");
}

#[test]
fn only_a_session_that_can_be_taken_up_can_be_forked() {
    let mut team = Team::new();
    let source = team.primary(1);
    let refused = fork(&team.state, source, id(2), None, None, Timestamp(5));
    assert!(matches!(refused, Err(Refusal::Invalid { .. })));
    let mut team = Team::new();
    let source = with_session(&mut team, false);
    assert!(fork(&team.state, source, id(2), None, None, Timestamp(5)).is_err());
}

#[test]
fn a_program_that_cannot_fork_leaves_no_failed_agent_behind() {
    let mut team = Team::new();
    let source = with_session(&mut team, true);
    let session =
        SessionInfo { id: "s-1".into(), resumable: true, cannot_fork: true, ..SessionInfo::default() };
    team.change(source, vec![AgentEvent::Ready { session }]);
    let refused = fork(&team.state, source, id(2), None, None, Timestamp(5)).unwrap_err();
    assert!(refused.to_string().contains("cannot fork sessions"), "{refused}");
}
