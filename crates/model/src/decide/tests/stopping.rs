//! What an interrupt reaches, and what a failure and a rest leave.

use crate::agent::{Lifecycle, Status, TurnOutcome};
use crate::ask::AskBody;
use crate::command::Actor;
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::Timestamp;
use crate::item::{ItemBody, ToolKind};
use crate::limits::Limits;
use crate::relation::TaskResult;
use crate::signal::Signal;

#[test]
fn an_interrupt_reaches_sub_agents_at_every_depth_deepest_first() {
    let mut team = Team::deep();
    let top = team.primary(1);
    let starting = team.sub_agent(2, top);
    let middle = team.sub_agent(3, top);
    let low = team.sub_agent(4, middle);
    let closed = team.sub_agent(5, top);
    let companion = team.companion(6, top);
    let other = team.primary(7);
    team.working(top);
    team.working(middle);
    team.working(low);
    team.close(closed);

    let targets = interrupt_targets(&team.state, top);
    assert_eq!(targets, [low, middle, starting, top]);
    assert!(!targets.contains(&companion) && !targets.contains(&other));
    assert_eq!(interrupt_targets(&team.state, middle), [low, middle]);
    assert_eq!(interrupt_targets(&team.state, closed), []);
}

#[test]
fn an_interrupt_reaches_below_a_closed_parent() {
    let mut team = Team::deep();
    let top = team.primary(1);
    let middle = team.sub_agent(2, top);
    let low = team.sub_agent(3, middle);
    team.close(middle);
    team.apply(reopen(&team.state, low).unwrap());
    assert_eq!(interrupt_targets(&team.state, top), [low, top]);
}

#[test]
fn a_turn_is_told_to_stop_once_and_what_waits_stays() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.working(agent);
    team.send(agent, &prompt(50, "later")).unwrap();
    let changes = interrupt(team.agent(agent));
    assert_eq!(changes, [AgentEvent::TurnInterrupted]);
    team.change(agent, changes);
    assert_eq!(interrupt(team.agent(agent)), []);
    assert_eq!(team.agent(agent).queue.len(), 1);
}

#[test]
fn a_starting_agent_loses_what_it_was_started_for_and_idle_ones_nothing() {
    let mut team = Team::new();
    let with_prompt = CreateAgent { prompt: Some(prompt(50, "go")), ..request(1, Relation::Primary) };
    let agent = team.create(Actor::Person, &with_prompt).unwrap();
    team.send(agent, &prompt(51, "and this")).unwrap();
    team.change(agent, interrupt(team.agent(agent)));
    assert!(team.agent(agent).queue.is_empty());
    assert_eq!(team.agent(agent).status(), Status::Starting);
    team.ready(agent);
    assert_eq!(deliverable(team.agent(agent)), None);
    assert_eq!(interrupt(team.agent(agent)), []);
    assert_eq!(send(&team.state, agent, &prompt(50, "go")), Ok(vec![]), "a dropped prompt stays dropped");
    for end in [Team::rest, |team: &mut Team, id| team.fail(id, 0), Team::close] {
        end(&mut team, agent);
        assert_eq!(interrupt(team.agent(agent)), []);
    }
}

#[test]
fn a_failure_ends_the_turn_and_settles_open_asks() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.working(agent);
    team.send(agent, &prompt(50, "later")).unwrap();
    team.ask(agent, 60, AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] });
    let limits = team.state.limits;
    let last = [Signal::Text { text: "I was about to".into(), within: None }];
    let changes =
        fail(team.agent(agent), &last, failure("it broke"), &limits, Timestamp(5), &mut || uuid(70));
    let texts: Vec<&str> = changes
        .iter()
        .filter_map(|change| match change {
            AgentEvent::ItemAdded { item } => match &item.body {
                ItemBody::Text { text } | ItemBody::Notice { text, .. } => Some(text.as_str()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["I was about to", "it broke"]);
    team.change(agent, changes);
    let agent = team.agent(agent);
    assert_eq!(agent.status(), Status::Failed);
    assert_eq!(agent.last_outcome, Some(TurnOutcome::Failed { message: "it broke".into() }));
    assert_eq!((agent.turn.as_ref(), agent.asks.len(), agent.queue.len()), (None, 0, 1));
    assert_eq!(agent.cursor.writing, None);
    assert_eq!(fail(agent, &[], failure("again"), &limits, Timestamp(6), &mut || uuid(71)), []);
}

#[test]
fn crashes_close_together_park_an_agent_and_others_do_not() {
    let window = Limits::CRASH_WINDOW_MS;
    let table: [(&[i64], bool); 6] = [
        (&[0], false),
        (&[0, 1], false),
        (&[0, 1, 2], true),
        (&[0, 1, window - 1], true),
        (&[0, 1, window], false),
        (&[0, window, 2 * window, 3 * window], false),
    ];
    for (crashes, expected) in table {
        let mut team = Team::new();
        let agent = team.primary(1);
        for at in crashes {
            if !team.agent(agent).wants_process() {
                team.apply(reopen(&team.state, agent).unwrap());
            }
            team.fail(agent, *at);
        }
        let parked = matches!(&team.agent(agent).lifecycle, Lifecycle::Failed(failure) if failure.parked);
        assert_eq!(parked, expected, "{crashes:?}");
    }
}

#[test]
fn a_failed_sub_agent_has_ended_its_task_and_its_parent_is_woken() {
    let mut team = Team::new();
    let parent = team.primary(1);
    let child = team.sub_agent(2, parent);
    team.fail(child, 0);
    let result = TaskResult::Failed { reason: "it broke".into() };
    assert_eq!(team.agent(child).relation.result(), Some(&result));
    assert!(!holds_slot(team.agent(child)));
    assert!(team.agent(parent).queue[0].text.ends_with("failed: it broke"));
    team.apply(reopen(&team.state, child).unwrap());
    team.fail(child, 0);
    assert_eq!(team.agent(parent).queue.len(), 1, "a task ends once");
}

#[test]
fn a_resting_agent_has_no_turn_and_takes_up_the_next_prompt() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.working(agent);
    team.ask(agent, 60, AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] });
    team.rest(agent);
    assert_eq!(team.agent(agent).lifecycle, Lifecycle::Resting);
    assert_eq!(team.agent(agent).status(), Status::Idle);
    assert_eq!(team.agent(agent).last_outcome, Some(TurnOutcome::Interrupted));
    assert!(team.agent(agent).asks.is_empty());
    assert_eq!(rest(team.agent(agent), Timestamp(0)), []);
    team.close(agent);
    assert_eq!(rest(team.agent(agent), Timestamp(0)), []);
}
