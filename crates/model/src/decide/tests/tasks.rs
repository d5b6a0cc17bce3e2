//! How a sub-agent's task ends, and how its parent learns of it.

use crate::agent::{Lifecycle, PromptOrigin};
use crate::ask::AskBody;
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::{PromptId, Timestamp};
use crate::item::ToolKind;
use crate::relation::TaskResult;

fn yielded() -> TaskResult {
    TaskResult::Yielded { text: "42".into() }
}

fn settle(team: &mut Team, child: AgentId, n: u128) -> Vec<Event> {
    let events = settle_task(&team.state, child, yielded(), PromptId::new(uuid(n)), Timestamp(0)).unwrap();
    team.apply(events.clone());
    events
}

#[test]
fn a_result_ends_the_task_once_and_wakes_the_parent() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.ready(parent);
    assert_eq!(settle(&mut team, child, 50).len(), 2);
    let message = &team.agent(parent).queue[0];
    assert_eq!(message.origin, PromptOrigin::Agent { agent: child });
    assert_eq!(message.text, format!("Sub-agent {} is done:\n42", team.agent(child).name));
    assert!(deliverable(team.agent(parent)).is_some());
    assert_eq!(settle(&mut team, child, 51), [], "a task ends once");
    assert!(!team.agent(child).is_closed(), "a finished sub-agent stays for people to talk to");
}

#[test]
fn only_sub_agents_have_tasks() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let companion = team.companion(2, owner);
    assert_eq!(settle(&mut team, owner, 50), []);
    assert_eq!(settle(&mut team, companion, 50), []);
    assert!(settle_task(&team.state, id(77), yielded(), PromptId::new(uuid(50)), Timestamp(0)).is_err());
}

#[test]
fn a_parent_without_a_process_is_started_for_a_result_where_it_can_be() {
    type Prepare = fn(&mut Team, AgentId);
    let table: [(&str, Prepare, bool); 5] = [
        ("ready", |team, id| team.ready(id), false),
        ("resting", |team, id| team.rest(id), true),
        ("failed", |team, id| team.fail(id, 0), true),
        (
            "parked",
            |team, id| {
                team.state.limits.crashes_before_parking = 1;
                team.fail(id, 0);
            },
            false,
        ),
        (
            "without its profile",
            |team, id| {
                team.rest(id);
                team.state.profiles.clear();
            },
            false,
        ),
    ];
    for (what, prepare, starts) in table {
        let mut team = Team::new();
        let parent = team.primary(1);
        let child = team.sub_agent(2, parent);
        prepare(&mut team, parent);
        let before = team.agent(parent).generation;
        settle(&mut team, child, 50);
        let parent = team.agent(parent);
        assert_eq!(parent.queue.len(), 1, "the result is lost on a parent that is {what}");
        assert_eq!(parent.lifecycle == Lifecycle::Starting, starts, "a parent that is {what}");
        assert_eq!(parent.generation, before + u32::from(starts));
    }
}

#[test]
fn a_result_is_kept_though_the_parents_queue_is_full() {
    let mut team = Team::new();
    team.state.limits.queued_prompts = 1;
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.send(parent, &prompt(10, "a")).unwrap();
    settle(&mut team, child, 50);
    assert_eq!(team.agent(parent).queue.len(), 2);
}

#[test]
fn a_closed_parent_is_not_woken() {
    let mut team = Team::deep();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    let before = team.agent(parent).clone();
    // A closed parent closes its sub-agents; this child only stands for one that is on its way out.
    team.change(parent, vec![AgentEvent::Closed]);
    assert_eq!(settle(&mut team, child, 50).len(), 1);
    assert_eq!(team.agent(parent).queue, before.queue);
}

#[test]
fn a_parent_learns_once_that_its_sub_agent_waits_for_a_person() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    let body = || AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] };
    let ask = team.ask(child, 60, body());
    let events = wake_parent_of_waiting(&team.state, child, &ask, Timestamp(0));
    team.apply(events);
    assert!(team.agent(parent).queue[0].text.ends_with("is waiting for a person: ask 60"));
    assert_eq!(wake_parent_of_waiting(&team.state, child, &ask, Timestamp(0)), []);
    assert!(holds_slot(team.agent(child)));

    let ask = team.ask(parent, 61, body());
    assert_eq!(wake_parent_of_waiting(&team.state, parent, &ask, Timestamp(0)), []);
}
