//! What a queue takes, in which order it is delivered, and how it can be changed.

use crate::agent::{Lifecycle, Prompt};
use crate::command::Refusal;
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::{PromptId, Timestamp, TurnId};
use crate::item::{Attachment, Image};

fn waiting(team: &Team, id: AgentId) -> Vec<u128> {
    team.agent(id).queue.iter().map(|prompt| prompt.id.uuid().as_u128()).collect()
}

#[test]
fn a_persons_prompts_go_one_by_one_and_agents_messages_together() {
    let from = id(9);
    let (person, message) = (|n| prompt(n, "do"), |n| message(n, from));
    let table: [(&str, Vec<Prompt>, usize); 6] = [
        ("nothing", vec![], 0),
        ("a person's", vec![person(1), person(2)], 1),
        ("a person's before messages", vec![person(1), message(2), message(3)], 1),
        ("a message", vec![message(1)], 1),
        ("messages", vec![message(1), message(2), message(3)], 3),
        ("messages up to a person's", vec![message(1), message(2), person(3), message(4)], 2),
    ];
    for (what, queue, expected) in table {
        let mut agent = agent(1);
        agent.queue = queue.into();
        assert_eq!(next_delivery(&agent), expected, "{what}");
        let delivered = deliverable(&agent).map_or(0, |prompts| prompts.len());
        assert_eq!(delivered, expected, "{what}");
    }
}

#[test]
fn a_queue_is_delivered_whole_and_in_order() {
    let mut team = Team::new();
    let subject = team.primary(1);
    team.ready(subject);
    let from = id(9);
    for prompt in [prompt(10, "a"), message(11, from), message(12, from), prompt(13, "b"), prompt(14, "c")] {
        team.send(subject, &prompt).unwrap();
    }
    let mut turns: Vec<Vec<u128>> = vec![];
    while let Some(prompts) = deliverable(team.agent(subject)) {
        let turn = TurnId::new(uuid(100 + turns.len() as u128));
        team.change(subject, start_turn(team.agent(subject), turn, &prompts, Timestamp(0)));
        assert_eq!(deliverable(team.agent(subject)), None, "no turn begins within a turn");
        team.end_turn(subject);
        turns.push(prompts.iter().map(|prompt| prompt.id.uuid().as_u128()).collect());
    }
    assert_eq!(turns, [vec![10], vec![11, 12], vec![13], vec![14]]);
}

#[test]
fn nothing_is_delivered_to_an_agent_that_is_not_ready() {
    let mut agent = agent(1);
    agent.queue.push_back(prompt(10, "a"));
    let not_ready = [
        Lifecycle::Starting,
        Lifecycle::Resting,
        Lifecycle::Failed(failure("it broke")),
        Lifecycle::Closed { at: Timestamp(0) },
    ];
    for lifecycle in not_ready {
        agent.lifecycle = lifecycle;
        assert_eq!(deliverable(&agent), None, "{:?}", agent.lifecycle);
    }
}

#[test]
fn the_same_prompt_twice_is_one_waiting_or_taken() {
    let mut team = Team::new();
    let subject = team.primary(1);
    let go = prompt(10, "go");
    team.send(subject, &go).unwrap();
    assert_eq!(send(&team.state, subject, &go), Ok(vec![]));
    team.ready(subject);
    let prompts = deliverable(team.agent(subject)).unwrap();
    team.change(subject, start_turn(team.agent(subject), TurnId::new(uuid(90)), &prompts, Timestamp(0)));
    assert_eq!(send(&team.state, subject, &go), Ok(vec![]));
    team.close(subject);
    assert_eq!(send(&team.state, subject, &go), Ok(vec![]), "it was accepted, whatever came after");
    assert!(team.agent(subject).queue.is_empty());
}

#[test]
fn prompts_are_refused_where_nobody_could_take_them() {
    let mut team = Team::new();
    let (closed, parked, fine) = (team.primary(1), team.primary(2), team.primary(3));
    team.close(closed);
    for at in 0..3 {
        if !team.agent(parked).wants_process() {
            team.apply(reopen(&team.state, parked).unwrap());
        }
        team.fail(parked, at);
    }
    let go = prompt(10, "go");
    assert!(matches!(send(&team.state, closed, &go), Err(Refusal::Closed { .. })));
    assert!(matches!(send(&team.state, parked, &go), Err(Refusal::Parked { .. })));
    assert!(matches!(send(&team.state, id(77), &go), Err(Refusal::NoSuchAgent { .. })));
    for empty in ["", " ", "\n\t"] {
        assert!(matches!(send(&team.state, fine, &prompt(11, empty)), Err(Refusal::Invalid { .. })));
    }
    team.state.profiles.clear();
    assert!(matches!(send(&team.state, fine, &go), Err(Refusal::ProfileRemoved { .. })));
}

#[test]
fn an_attachment_alone_is_a_prompt() {
    let mut team = Team::new();
    let subject = team.primary(1);
    let image = Attachment::Image(Image { mime_type: "image/png".into(), data: "AAAA".into() });
    let picture = Prompt { attachments: vec![image], ..prompt(10, "") };
    team.send(subject, &picture).unwrap();
    assert!(edit_queued(&team.state, subject, picture.id, Some("")).is_ok());
}

#[test]
fn a_queue_takes_as_many_as_its_limit() {
    let mut team = Team::new();
    team.state.limits.queued_prompts = 2;
    let subject = team.primary(1);
    team.send(subject, &prompt(10, "a")).unwrap();
    team.send(subject, &prompt(11, "b")).unwrap();
    let third = team.send(subject, &prompt(12, "c"));
    assert!(matches!(third, Err(Refusal::LimitReached { limit: 2, .. })));
    team.apply(edit_queued(&team.state, subject, PromptId::new(uuid(10)), None).unwrap());
    team.send(subject, &prompt(12, "c")).unwrap();
    assert_eq!(waiting(&team, subject), [11, 12]);
}

#[test]
fn a_prompt_starts_a_process_where_there_is_none() {
    let mut team = Team::new();
    let subject = team.primary(1);
    let starts = |team: &Team, n| {
        let events = send(&team.state, subject, &prompt(n, "go")).unwrap();
        let starting = |event: &Event| match event {
            Event::Agent { change: AgentEvent::Starting { generation, .. }, .. } => Some(*generation),
            _ => None,
        };
        events.iter().find_map(starting)
    };
    assert_eq!(starts(&team, 10), None);
    team.ready(subject);
    assert_eq!(starts(&team, 10), None);
    team.rest(subject);
    assert_eq!(starts(&team, 10), Some(2));
    team.send(subject, &prompt(10, "go")).unwrap();
    team.fail(subject, 0);
    assert_eq!(starts(&team, 11), Some(3));
    team.send(subject, &prompt(11, "go")).unwrap();
    assert_eq!(waiting(&team, subject), [10, 11], "what waited before is delivered first");
}

#[test]
fn a_waiting_prompt_can_be_changed_or_dropped_and_a_delivered_one_cannot() {
    let mut team = Team::new();
    let subject = team.primary(1);
    for n in [10, 11, 12] {
        team.send(subject, &prompt(n, "old")).unwrap();
    }
    let waits = |n| PromptId::new(uuid(n));
    team.apply(edit_queued(&team.state, subject, waits(11), Some("new")).unwrap());
    team.apply(edit_queued(&team.state, subject, waits(10), None).unwrap());
    assert_eq!(waiting(&team, subject), [11, 12]);
    assert_eq!(team.agent(subject).queue[0].text, "new");
    assert!(edit_queued(&team.state, subject, waits(10), Some("back")).is_err());
    assert!(edit_queued(&team.state, subject, waits(11), Some(" ")).is_err());
    assert!(edit_queued(&team.state, subject, waits(99), None).is_err());
    assert!(edit_queued(&team.state, id(77), waits(11), None).is_err());

    team.ready(subject);
    let prompts = deliverable(team.agent(subject)).unwrap();
    team.change(subject, start_turn(team.agent(subject), TurnId::new(uuid(90)), &prompts, Timestamp(0)));
    assert!(edit_queued(&team.state, subject, waits(11), Some("too late")).is_err());
}
