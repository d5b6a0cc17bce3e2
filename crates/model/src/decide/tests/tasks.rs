//! How a sub-agent's task ends, and how its parent learns of it.

use crate::agent::{Lifecycle, PromptOrigin, TurnOutcome};
use crate::ask::{AskBody, SettledBy, Settlement};
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::{PromptId, Timestamp};
use crate::item::ToolKind;
use crate::relation::TaskResult;
use crate::team::Report;

fn yielded() -> TaskResult {
    TaskResult::Yielded { text: "42".into(), file: None }
}

fn settle(team: &mut Team, child: AgentId) -> Vec<Event> {
    let events = team.whole(settle_task(&team.state, child, yielded()).unwrap());
    apply(&mut team.state, events.clone());
    events
}

/// The texts that wait for an agent.
fn told(team: &Team, id: AgentId) -> Vec<String> {
    team.agent(id).queue.iter().map(|prompt| prompt.text.clone()).collect()
}

#[test]
fn a_result_ends_the_task_once_and_wakes_the_parent() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.ready(parent);
    settle(&mut team, child);
    let message = &team.agent(parent).queue[0];
    assert_eq!(message.origin, PromptOrigin::Agent { agent: child });
    assert_eq!(message.text, format!("Sub-agent `{}` is done:\n42", team.agent(child).name));
    assert_eq!(team.agent(child).task.report, Report::Made);
    assert!(deliverable(team.agent(parent)).is_some());
    assert_eq!(settle(&mut team, child), [], "a task ends once");
    assert!(!team.agent(child).is_closed(), "a finished sub-agent stays for people to talk to");
}

#[test]
fn only_sub_agents_have_tasks() {
    let mut team = Team::new();
    let owner = team.primary(1);
    let companion = team.companion(2, owner);
    for id in [owner, companion] {
        assert_eq!(settle(&mut team, id), []);
        let refused = yield_to_parent(&team.state, id, "42", None).unwrap_err().to_string();
        assert!(refused.contains("only a sub-agent"), "{refused}");
    }
    assert!(settle_task(&team.state, id(77), yielded()).is_err());
}

#[test]
fn a_second_yield_is_refused_with_advice() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    let events = yield_to_parent(&team.state, child, "42", None).unwrap();
    team.apply(events);
    let refused = yield_to_parent(&team.state, child, "43", None).unwrap_err().to_string();
    assert!(refused.contains("send_message"), "{refused}");
    assert_eq!(told(&team, parent).len(), 1);
}

#[test]
fn a_yield_ends_the_turn_as_it_should_although_that_is_cut_off() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.working(child);
    settle(&mut team, child);
    assert!(team.agent(child).turn.as_ref().unwrap().yielded);
    team.end_turn_with(child, TurnOutcome::Interrupted);
    assert_eq!(team.agent(child).last_outcome, Some(TurnOutcome::Completed));
    assert!(told(&team, child).is_empty(), "who is done is not reminded");
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
        settle(&mut team, child);
        let parent = team.agent(parent);
        assert_eq!(parent.queue.len(), 1, "the result is lost on a parent that is {what}");
        assert_eq!(parent.lifecycle == Lifecycle::Starting, starts, "a parent that is {what}");
        assert_eq!(parent.generation, before + u32::from(starts));
    }
}

#[test]
fn several_results_at_once_start_the_parent_once() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let children = [team.sub_agent(2, parent), team.sub_agent(3, parent)];
    team.rest(parent);
    let events = children.iter().flat_map(|child| settle_task(&team.state, *child, yielded()).unwrap());
    team.apply(events.collect());
    assert_eq!(team.agent(parent).generation, 2);
    assert_eq!(team.agent(parent).queue.len(), 2);
    team.ready(parent);
    assert_eq!(deliverable(team.agent(parent)).unwrap().len(), 2, "they make one turn");
}

#[test]
fn a_result_is_kept_though_the_parents_queue_is_full() {
    let mut team = Team::new();
    team.state.limits.queued_prompts = 1;
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.send(parent, &prompt(10, "a")).unwrap();
    settle(&mut team, child);
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
    settle(&mut team, child);
    assert_eq!(team.agent(parent).queue, before.queue);
}

#[test]
fn a_parent_learns_once_that_its_sub_agent_waits_for_a_person() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    let body = || AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] };
    team.ask(child, 60, body());
    assert!(told(&team, parent)[0].ends_with("is waiting for a person: ask 60"));
    team.ask(child, 61, body());
    assert_eq!(told(&team, parent).len(), 2);
    assert!(has_open_task(team.agent(child)));

    team.ask(parent, 62, body());
    assert_eq!(told(&team, parent).len(), 2);
}

#[test]
fn a_parent_is_not_told_of_a_wait_that_is_over() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    let body = AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] };
    let ask = team.ask(child, 60, body).id;
    assert_eq!(told(&team, parent).len(), 1);
    let settlement = Settlement { answer: None, by: SettledBy::Person, at: Timestamp(61) };
    team.change(child, vec![AgentEvent::Settled { ask, settlement }]);
    assert!(told(&team, parent).is_empty());
}

#[test]
fn a_sub_agent_that_forgets_its_result_is_reminded_once() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.working(child);
    team.end_turn(child);
    let reminder = team.agent(child).queue[0].clone();
    assert_eq!(reminder.origin, PromptOrigin::Consort);
    assert!(reminder.text.contains("yield_to_parent"));
    assert_eq!(after_turn(team.agent(child), team.state.agents.values()), AfterTurn::Nothing);

    team.begin_turn(child);
    team.end_turn(child);
    assert!(team.agent(child).queue.is_empty(), "one reminder is enough");
    assert_eq!(after_turn(team.agent(child), team.state.agents.values()), AfterTurn::LastWords);
    settle(&mut team, child);
    assert_eq!(after_turn(team.agent(child), team.state.agents.values()), AfterTurn::Nothing);
}

#[test]
fn how_a_turn_ends_decides_what_becomes_of_the_task() {
    let stopped = TurnOutcome::Stopped { reason: "max tokens".into() };
    let failed = TurnOutcome::Failed { message: "no credit".into() };
    let table = [
        (TurnOutcome::Completed, true, None),
        (stopped, true, None),
        (TurnOutcome::Interrupted, false, None),
        (failed, false, Some(TaskResult::Failed { reason: "no credit".into() })),
    ];
    for (outcome, reminded, result) in table {
        let mut team = Team::new();
        let parent = team.primary(1);
        let child = team.sub_agent(2, parent);
        team.working(child);
        team.end_turn_with(child, outcome.clone());
        let agent = team.agent(child);
        assert_eq!(agent.task.reminded, reminded, "{outcome:?}");
        assert_eq!(agent.relation.result(), result.as_ref(), "{outcome:?}");
        assert_eq!(told(&team, parent).len(), usize::from(result.is_some()), "{outcome:?}");
    }
}

#[test]
fn who_waits_for_sub_agents_of_its_own_is_not_reminded() {
    let mut team = Team::deep();
    let top = team.primary(1);
    let middle = team.sub_agent(2, top);
    let low = team.sub_agent(3, middle);
    team.working(middle);
    team.working(low);
    team.end_turn(middle);
    assert!(!team.agent(middle).task.reminded);
    settle(&mut team, low);
    assert_eq!(told(&team, middle).len(), 1, "its sub-agent's result wakes it");
    team.begin_turn(middle);
    team.end_turn(middle);
    assert!(team.agent(middle).task.reminded);
}

#[test]
fn an_interrupt_by_a_person_is_told_to_the_parent_and_one_from_above_is_not() {
    let interrupt_of = |which: fn(AgentId, AgentId) -> (Actor, AgentId)| {
        let mut team = Team::new();
        let parent = team.primary(1);
        let child = team.sub_agent(2, parent);
        team.working(parent);
        team.working(child);
        let (actor, target) = which(parent, child);
        let events =
            interrupt_team(&team.state, actor, target, PromptId::new(uuid(70)), Timestamp(0)).unwrap();
        team.apply(events);
        told(&team, parent)
    };
    assert!(interrupt_of(|_, child| (Actor::Person, child))[0].contains("was interrupted"));
    assert!(interrupt_of(|parent, _| (Actor::Person, parent)).is_empty());
    assert!(interrupt_of(|parent, child| (Actor::Agent(parent), child)).is_empty());
}
