//! Who runs, who waits for a slot, and what budgets stop.

use crate::agent::{Lifecycle, Status};
use crate::command::{Actor, CreateAgent, Refusal};
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::{AgentEvent, Event};
use crate::ids::{PromptId, Timestamp, WaitId};
use crate::relation::TaskResult;
use crate::session::Usage;
use crate::team::{Awaited, Wait};

/// A team in which `per_parent` and `total` sub-agents run at the same time.
fn small(per_parent: u32, total: u32) -> Team {
    let mut team = Team::deep();
    team.state.limits.subagents_per_parent = per_parent;
    team.state.limits.subagents_total = total;
    team
}

fn spawn(team: &mut Team, n: u128, parent: AgentId) -> AgentId {
    let task = CreateAgent { prompt: Some(prompt(n + 500, "do it")), ..request(n, sub_agent_of(parent)) };
    team.create(Actor::Agent(parent), &task).unwrap()
}

fn wait(team: &mut Team, who: AgentId, n: u128, on: &[AgentId]) {
    let on = on.iter().map(|agent| Awaited::Agent { agent: *agent }).collect();
    let events = begin_wait(&team.state, who, Wait { id: WaitId::new(uuid(n)), on }).unwrap();
    team.apply(events);
}

fn is_queued(team: &Team, id: AgentId) -> bool {
    team.agent(id).lifecycle == Lifecycle::Queued
}

#[test]
fn queued_sub_agents_start_when_a_person_raises_the_limit() {
    let mut team = small(1, 8);
    let parent = team.primary(1);
    let (first, second) = (spawn(&mut team, 10, parent), spawn(&mut team, 11, parent));
    assert!(!is_queued(&team, first) && is_queued(&team, second));
    let limits = crate::Limits { subagents_per_parent: 2, ..team.state.limits };
    team.apply(vec![Event::LimitsChanged { limits }]);
    assert!(!is_queued(&team, second));
}

#[test]
fn sub_agents_past_the_limits_are_queued_and_start_in_order() {
    let mut team = small(2, 3);
    let (one, two) = (team.primary(1), team.primary(2));
    let first = spawn(&mut team, 11, one);
    let _second = spawn(&mut team, 12, one);
    let third = spawn(&mut team, 13, one);
    let fourth = spawn(&mut team, 14, one);
    let other = spawn(&mut team, 21, two);
    let full = spawn(&mut team, 22, two);
    assert!(is_queued(&team, third) && is_queued(&team, fourth) && is_queued(&team, full));
    assert!(!is_queued(&team, other), "one parent's queue does not stop another's sub-agents");
    assert_eq!(team.agent(third).status(), Status::Queued);
    assert_eq!(team.agent(third).generation, 0);
    assert!(!team.agent(third).wants_process());

    team.close(first);
    assert_eq!(team.agent(third).lifecycle, Lifecycle::Starting, "the first in the queue takes the slot");
    assert_eq!(team.agent(third).generation, 1);
    assert!(is_queued(&team, fourth) && is_queued(&team, full));
}

#[test]
fn a_sub_agent_leaves_its_slot_however_its_task_ends() {
    type End = fn(&mut Team, AgentId);
    let ends: [(&str, End); 5] = [
        ("yields", |team, child| {
            let result = TaskResult::Yielded { text: "42".into(), file: None };
            team.apply(settle_task(&team.state, child, result).unwrap());
        }),
        ("is closed", |team, child| team.close(child)),
        ("fails", |team, child| team.fail(child, 0)),
        ("is stopped at a limit", |team, child| {
            team.change(child, stop_task(team.agent(child), "too long", Timestamp(0)));
        }),
        ("is interrupted", |team, child| {
            team.ready(child);
            team.begin_turn(child);
            team.change(child, vec![AgentEvent::TurnInterrupted]);
            team.end_turn_with(child, TurnOutcome::Interrupted);
        }),
    ];
    for (how, end) in ends {
        let mut team = small(1, 32);
        let parent = team.primary(1);
        let child = spawn(&mut team, 2, parent);
        let next = spawn(&mut team, 3, parent);
        assert!(is_queued(&team, next));
        end(&mut team, child);
        assert!(!holds_slot(team.agent(child)));
        assert!(!is_queued(&team, next), "a sub-agent that {how} still holds its slot");
    }
}

#[test]
fn a_starting_sub_agent_holds_its_slot_and_a_parent_has_none() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = spawn(&mut team, 2, parent);
    assert!(holds_slot(team.agent(child)));
    team.rest(child);
    assert!(holds_slot(team.agent(child)), "it has something to do when it is back");
    assert!(!holds_slot(team.agent(parent)));
}

#[test]
fn a_waiting_parent_leaves_its_slot_to_its_queued_child() {
    let mut team = small(8, 1);
    let top = team.primary(1);
    let middle = spawn(&mut team, 2, top);
    team.ready(middle);
    team.begin_turn(middle);
    let low = spawn(&mut team, 3, middle);
    assert!(is_queued(&team, low), "there is one slot, and the parent has it");
    wait(&mut team, middle, 90, &[low]);
    assert!(!is_queued(&team, low), "both would wait for each other for ever");
}

#[test]
fn the_queue_itself_has_a_limit() {
    let mut team = small(1, 1);
    team.state.limits.subagents_queued = 1;
    let parent = team.primary(1);
    spawn(&mut team, 2, parent);
    spawn(&mut team, 3, parent);
    let refused = team.create(Actor::Agent(parent), &request(4, sub_agent_of(parent)));
    assert!(matches!(refused, Err(Refusal::LimitReached { limit: 1, .. })), "{refused:?}");
}

#[test]
fn an_interrupted_or_closed_parent_drops_its_queued_sub_agents() {
    for close_it in [false, true] {
        let mut team = small(1, 32);
        let parent = team.primary(1);
        team.working(parent);
        let child = spawn(&mut team, 2, parent);
        let queued = spawn(&mut team, 3, parent);
        if close_it {
            team.close(parent);
        } else {
            let message = PromptId::new(uuid(70));
            let events = interrupt_team(&team.state, Actor::Person, parent, message, Timestamp(0)).unwrap();
            team.apply(events);
            assert!(team.agent(parent).queue.is_empty(), "it is not woken by what it lost");
            assert!(!team.agent(child).is_closed());
        }
        assert!(team.agent(queued).is_closed());
        assert_eq!(team.agent(queued).generation, 0, "it never had a process");
    }
}

#[test]
fn a_person_may_drop_a_queued_sub_agent_and_the_parent_learns_of_it() {
    let mut team = small(1, 32);
    let parent = team.primary(1);
    team.ready(parent);
    spawn(&mut team, 2, parent);
    let queued = spawn(&mut team, 3, parent);
    let events =
        interrupt_team(&team.state, Actor::Person, queued, PromptId::new(uuid(70)), Timestamp(0)).unwrap();
    team.apply(events);
    assert!(team.agent(queued).is_closed());
    assert!(team.agent(parent).queue[0].text.contains("was closed"));
}

#[test]
fn a_queued_sub_agent_takes_prompts_and_is_not_started_by_them() {
    let mut team = small(1, 32);
    let parent = team.primary(1);
    spawn(&mut team, 2, parent);
    let queued = spawn(&mut team, 3, parent);
    team.send(queued, &prompt(80, "and this")).unwrap();
    assert!(is_queued(&team, queued));
    assert_eq!(team.agent(queued).queue.len(), 2);
    assert!(matches!(reopen(&team.state, queued), Err(Refusal::WrongStatus { .. })));
    assert!(matches!(restart(&team.state, queued, Timestamp(0)), Err(Refusal::WrongStatus { .. })));
}

#[test]
fn a_queued_sub_agent_whose_profile_is_gone_fails_when_its_turn_comes() {
    let mut team = small(1, 32);
    let parent = team.primary(1);
    let child = spawn(&mut team, 2, parent);
    let queued = spawn(&mut team, 3, parent);
    team.state.profiles.clear();
    team.close(child);
    assert!(matches!(team.agent(queued).relation.result(), Some(TaskResult::Failed { .. })));
    assert!(team.agent(queued).is_closed());
}

#[test]
fn after_an_interrupt_a_late_call_spawns_nothing() {
    let mut team = Team::new();
    let parent = team.primary(1);
    team.working(parent);
    team.change(parent, vec![AgentEvent::TurnInterrupted]);
    let late = |team: &mut Team| team.create(Actor::Agent(parent), &request(2, sub_agent_of(parent)));
    assert!(matches!(late(&mut team), Err(Refusal::NotAllowed { .. })));
    team.end_turn_with(parent, TurnOutcome::Interrupted);
    assert!(matches!(late(&mut team), Err(Refusal::NotAllowed { .. })));
    team.send(parent, &prompt(80, "again")).unwrap();
    team.begin_turn(parent);
    assert!(late(&mut team).is_ok(), "the next prompt begins anew");
}

#[test]
fn a_tree_stops_when_its_budget_is_used_up() {
    type Budget = fn(&mut Team);
    let budgets: [(Budget, Usage); 2] = [
        (
            |team| team.state.limits.tree_tokens = 100,
            Usage { input_tokens: Some(90), output_tokens: Some(10), ..Usage::default() },
        ),
        (|team| team.state.limits.tree_cents = 50, Usage { cost: Some(0.5), ..Usage::default() }),
    ];
    for (set, usage) in budgets {
        let mut team = small(2, 32);
        set(&mut team);
        let (parent, stranger) = (team.primary(1), team.primary(2));
        team.working(parent);
        let children = [spawn(&mut team, 11, parent), spawn(&mut team, 12, parent)];
        let queued = spawn(&mut team, 13, parent);
        let other = spawn(&mut team, 21, stranger);
        team.change(parent, vec![AgentEvent::UsageChanged { usage }]);
        assert!(has_open_task(team.agent(children[0])), "the parent's own use is not the sub-agents'");
        team.change(children[0], vec![AgentEvent::UsageChanged { usage }]);
        for child in [children[0], children[1], queued] {
            let result = team.agent(child).relation.result();
            assert!(matches!(result, Some(TaskResult::Stopped { .. })), "{result:?}");
        }
        assert!(team.agent(queued).is_closed());
        assert!(has_open_task(team.agent(other)));
        assert_eq!(team.agent(parent).queue.len(), 3);
        assert!(team.agent(parent).queue[0].text.contains("budget"));
        let more = team.create(Actor::Agent(parent), &request(14, sub_agent_of(parent)));
        assert!(matches!(more, Err(Refusal::BudgetSpent { .. })), "{more:?}");
    }
}

#[test]
fn time_is_up_for_who_works_and_not_for_who_waits_for_a_person() {
    let mut team = Team::new();
    team.state.limits.subagent_seconds = 10;
    let parent = team.primary(1);
    let child = spawn(&mut team, 2, parent);
    assert_eq!(time_is_up_at(team.agent(child), &team.state.limits), None, "it has not begun");
    team.ready(child);
    team.begin_turn(child);
    let end = time_is_up_at(team.agent(child), &team.state.limits).unwrap();
    let before = Timestamp(end.0 - 1);
    assert_eq!(stop_at_time(team.agent(child), &team.state.limits, before), []);
    let stopped = stop_at_time(team.agent(child), &team.state.limits, end);
    assert!(matches!(&stopped[..], [AgentEvent::TaskSettled { result: TaskResult::Stopped { .. } }]));
    assert_eq!(time_is_up_at(team.agent(parent), &team.state.limits), None);

    let body =
        crate::ask::AskBody::Approval { tool: tool(crate::item::ToolKind::Execute, "ls"), options: vec![] };
    team.ask(child, 60, body);
    assert_eq!(time_is_up_at(team.agent(child), &team.state.limits), None);
    team.state.limits.subagent_seconds = 0;
    assert_eq!(time_is_up_at(team.agent(child), &team.state.limits), None);
}
