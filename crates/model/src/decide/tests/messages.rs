//! Messages: who may write to whom, how often, and how far they are.

use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::Timestamp;
use crate::item::{ToolKind, ToolStatus};
use crate::profile::DriverKind;
use crate::signal::Signal;
use crate::team::{LetterState, message_receipt};

fn write(team: &mut Team, n: u128, from: AgentId, to: AgentId) -> Result<(), Refusal> {
    let events = send_message(&team.state, to, &message(n, from), Timestamp(team.state.seq as i64))?;
    team.apply(events);
    Ok(())
}

fn states(team: &Team, id: AgentId) -> Vec<LetterState> {
    team.agent(id).letters.iter().map(|letter| letter.state).collect()
}

#[test]
fn a_companion_and_its_owner_know_only_each_other() {
    let mut team = Team::new();
    let (owner, stranger) = (team.primary(1), team.primary(2));
    let companion = team.companion(3, owner);
    let sibling = team.companion(4, owner);
    let child = team.sub_agent(5, owner);
    let table = [
        (owner, companion, true),
        (companion, owner, true),
        (companion, companion, true),
        (companion, sibling, false),
        (companion, stranger, false),
        (companion, child, false),
        (stranger, companion, false),
        (child, companion, false),
        (stranger, owner, true),
        (stranger, child, true),
        (child, owner, true),
    ];
    for (n, (from, to, allowed)) in table.into_iter().enumerate() {
        let (viewer, other) = (team.agent(from).clone(), team.agent(to).clone());
        assert_eq!(crate::visibility::knows(&viewer, &other), allowed, "{} sees {}", viewer.name, other.name);
        assert_eq!(find_visible(&team.state, from, &other.name).is_ok(), allowed);
        let sees = visible(&team.state, from).unwrap().iter().any(|agent| agent.id == to);
        assert_eq!(sees, allowed);
        let sent = write(&mut team, 100 + n as u128, from, to);
        assert_eq!(sent.is_ok(), allowed && from != to, "{} writes to {}", viewer.name, other.name);
    }
}

#[test]
fn a_message_is_queued_delivered_and_read_once() {
    let mut team = Team::new();
    let (one, two) = (team.primary(1), team.primary(2));
    team.ready(two);
    write(&mut team, 80, one, two).unwrap();
    write(&mut team, 80, one, two).unwrap();
    write(&mut team, 81, one, two).unwrap();
    assert_eq!(states(&team, two), [LetterState::Queued, LetterState::Queued]);
    team.begin_turn(two);
    assert!(team.agent(two).queue.is_empty(), "several messages make one turn");
    assert_eq!(states(&team, two), [LetterState::Delivered, LetterState::Delivered]);
    write(&mut team, 82, one, two).unwrap();
    team.end_turn(two);
    assert_eq!(states(&team, two), [LetterState::Read, LetterState::Read, LetterState::Queued]);
    team.apply(edit_queued(&team.state, two, PromptId::new(uuid(82)), None).unwrap());
    assert_eq!(states(&team, two)[2], LetterState::Dropped);
}

#[test]
fn two_agents_that_cannot_stop_are_stopped_with_advice() {
    let mut team = Team::new();
    team.state.limits.messages_between_two = 6;
    team.state.limits.queued_prompts = 1000;
    let (one, two, three) = (team.primary(1), team.primary(2), team.primary(3));
    for n in 0..6 {
        let (from, to) = if n % 2 == 0 { (one, two) } else { (two, one) };
        write(&mut team, 100 + n, from, to).unwrap();
    }
    for (from, to) in [(one, two), (two, one)] {
        let refused = write(&mut team, 200, from, to).unwrap_err();
        assert!(matches!(refused, Refusal::TooManyMessages { limit: 6, .. }));
        assert!(refused.to_string().contains("end your turn without another message"), "{refused}");
    }
    write(&mut team, 201, one, three).unwrap();
    let later = Timestamp(crate::limits::Limits::MESSAGE_WINDOW_MS + 1000);
    assert!(
        send_message(&team.state, two, &message(202, one), later).is_ok(),
        "after a while they may again"
    );
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut team = Team::new();
    let (one, closed) = (team.primary(1), team.primary(2));
    team.close(closed);
    let two = team.primary(3);
    let mut long = message(90, one);
    long.text = "x".repeat(MAX_MESSAGE + 1);
    let mut empty = message(91, one);
    empty.text = " ".to_owned();
    let before = team.state.clone();
    let refused = |to, message: &Prompt| send_message(&before, to, message, Timestamp(0)).is_err();
    assert!(refused(closed, &message(92, one)));
    assert!(refused(two, &message(93, closed)));
    assert!(refused(one, &message(94, one)));
    assert!(refused(two, &long) && refused(two, &empty));
    assert!(refused(two, &prompt(95, "a person's words are no message")));
    assert!(refused(id(77), &message(96, one)));
}

#[test]
fn messages_that_are_looked_at_before_their_turn_come_once() {
    // What an agent's transcript shows counts; an ACP agent need not show it.
    for (driver, shown, comes_again) in [
        (DriverKind::Claude, true, false),
        (DriverKind::Claude, false, true),
        (DriverKind::Acp, false, false),
    ] {
        let mut team = Team::new();
        let (one, two) = (team.primary(1), team.primary(2));
        team.working(two);
        team.state.agents.get_mut(&two).unwrap().driver = driver;
        write(&mut team, 80, one, two).unwrap();
        let (prompts, events) = show_messages(&team.state, two).unwrap();
        assert_eq!(prompts.len(), 1);
        team.apply(events);
        if shown {
            let mut call = tool(ToolKind::Other, "check_messages");
            call.status = ToolStatus::Completed;
            call.output = message_receipt(prompts[0].id);
            let mut writer = Writer::new(team.agent(two), Timestamp(0));
            writer.signal(Signal::Tool { call, within: None }, &[], &mut || uuid(0));
            team.change(two, writer.finish());
            assert_eq!(states(&team, two), [LetterState::Read]);
        }
        team.end_turn(two);
        assert_eq!(team.agent(two).queue.len(), usize::from(comes_again), "{driver} {shown}");
        assert!(team.agent(two).shown.is_empty());
    }
}

#[test]
fn who_has_no_messages_is_shown_none() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.send(agent, &prompt(50, "a person's")).unwrap();
    let (prompts, events) = show_messages(&team.state, agent).unwrap();
    assert!(prompts.is_empty() && events.is_empty());
}

#[test]
fn only_the_last_letters_are_remembered() {
    let mut team = Team::new();
    let (one, two) = (team.primary(1), team.primary(2));
    for n in 0..200 {
        let prompt = message(1000 + n, one);
        team.change(two, vec![AgentEvent::PromptQueued { prompt }]);
    }
    assert_eq!(team.agent(two).letters.len(), crate::team::REMEMBERED_LETTERS);
    assert_eq!(team.agent(two).letters.back().unwrap().prompt, PromptId::new(uuid(1199)));
}
