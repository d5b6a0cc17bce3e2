//! Calls in which agents wait, and that what they wait for reaches them exactly once.

use crate::agent::TurnOutcome;
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::{PromptId, Timestamp, WaitId};
use crate::item::{ItemBody, ToolKind, ToolStatus};
use crate::profile::DriverKind;
use crate::relation::TaskResult;
use crate::signal::Signal;
use crate::team::{Awaited, Report, Wait, message_receipt, result_receipt};
use crate::transcript::Writer;

struct Stage {
    team: Team,
    parent: AgentId,
    child: AgentId,
}

/// A parent of this driver at work, with a sub-agent.
fn stage(driver: DriverKind) -> Stage {
    let mut team = Team::new();
    let parent = team.primary(1);
    team.working(parent);
    team.state.agents.get_mut(&parent).unwrap().driver = driver;
    let child = team.sub_agent(2, parent);
    Stage { team, parent, child }
}

impl Stage {
    fn wait(&mut self, n: u128) -> WaitId {
        let id = WaitId::new(uuid(n));
        let wait = Wait { id, on: vec![Awaited::Agent { agent: self.child }] };
        let events = begin_wait(&self.team.state, self.parent, wait).unwrap();
        self.team.apply(events);
        id
    }

    fn settle(&mut self) {
        let result = TaskResult::Yielded { text: "42".into(), file: None };
        let events = settle_task(&self.team.state, self.child, result).unwrap();
        self.team.apply(events);
    }

    fn hand_out(&mut self, wait: WaitId) {
        let events = hand_out(&self.team.state, self.parent, wait).unwrap();
        self.team.apply(events);
    }

    /// The parent's transcript shows how a call ended.
    fn tool_says(&mut self, output: &str) {
        let mut call = tool(ToolKind::Other, "wait_for_agents");
        call.status = ToolStatus::Completed;
        call.output = output.to_owned();
        let mut writer = Writer::new(self.team.agent(self.parent), Timestamp(0));
        writer.signal(Signal::Tool { call, within: None }, &[], &mut || uuid(0));
        self.team.change(self.parent, writer.finish());
    }

    fn told(&self) -> usize {
        self.team.agent(self.parent).queue.len()
    }

    fn report(&self) -> Report {
        self.team.agent(self.child).task.report
    }

    fn daemon_restarts(&mut self) {
        let events = reopen_calls(&self.team.state);
        self.team.apply(events);
    }
}

const DRIVERS: [DriverKind; 3] = [DriverKind::Claude, DriverKind::Codex, DriverKind::Acp];

#[test]
fn a_result_goes_into_the_waiting_call_and_not_into_a_message() {
    for driver in DRIVERS {
        let mut stage = stage(driver);
        let wait = stage.wait(90);
        stage.settle();
        assert_eq!((stage.told(), stage.report()), (0, Report::Due));
        assert!(is_there(&stage.team.state, stage.parent, Awaited::Agent { agent: stage.child }));
        stage.hand_out(wait);
        assert_eq!(stage.report(), Report::HandedOut { certain: true });
        stage.tool_says(&format!("42 {}", result_receipt(stage.child)));
        assert_eq!(stage.report(), Report::Made);
        stage.team.end_turn(stage.parent);
        assert_eq!(stage.told(), 0, "{driver}: the result came twice");
    }
}

#[test]
fn a_call_that_breaks_off_leaves_the_result_as_a_message() {
    let mut stage = stage(DriverKind::Claude);
    let wait = stage.wait(90);
    stage.settle();
    let events = end_wait(&stage.team.state, stage.parent, wait);
    stage.team.apply(events);
    assert_eq!((stage.told(), stage.report()), (1, Report::Made));
    assert_eq!(end_wait(&stage.team.state, stage.parent, wait), []);
    assert!(hand_out(&stage.team.state, stage.parent, wait).is_err(), "it is not handed out any more");
    stage.team.end_turn(stage.parent);
    assert_eq!(stage.told(), 1);
}

#[test]
fn a_call_that_breaks_off_before_the_result_changes_nothing_for_it() {
    let mut stage = stage(DriverKind::Claude);
    let wait = stage.wait(90);
    let events = end_wait(&stage.team.state, stage.parent, wait);
    stage.team.apply(events);
    assert_eq!(stage.told(), 0);
    stage.settle();
    assert_eq!(stage.told(), 1);
}

#[test]
fn a_continued_wait_gets_the_result_that_a_broken_one_did_not() {
    let mut stage = stage(DriverKind::Codex);
    let first = stage.wait(90);
    let second = stage.wait(91);
    let events = end_wait(&stage.team.state, stage.parent, first);
    stage.team.apply(events);
    stage.settle();
    assert_eq!(stage.told(), 0);
    stage.hand_out(second);
    stage.tool_says(&result_receipt(stage.child));
    stage.team.end_turn(stage.parent);
    assert_eq!(stage.told(), 0);
}

#[test]
fn a_continued_wait_shows_what_came_as_a_message_meanwhile_and_that_comes_no_more() {
    for seen in [true, false] {
        let mut stage = stage(DriverKind::Claude);
        stage.settle();
        assert_eq!(stage.told(), 1, "nobody waited, so it waits for the end of the turn");
        let wait = stage.wait(90);
        stage.hand_out(wait);
        if seen {
            stage.tool_says(&result_receipt(stage.child));
        }
        stage.team.end_turn(stage.parent);
        assert_eq!(stage.told(), usize::from(!seen));
    }
}

#[test]
fn what_a_tool_still_said_while_its_turn_was_stopped_comes_no_more() {
    let mut stage = stage(DriverKind::Acp);
    stage.settle();
    let wait = stage.wait(90);
    stage.hand_out(wait);
    stage.daemon_restarts();
    stage.team.end_turn_with(stage.parent, TurnOutcome::Interrupted);
    assert_eq!(stage.told(), 1);
    stage.tool_says(&result_receipt(stage.child));
    assert_eq!(stage.told(), 0);
}

#[test]
fn a_turn_that_ends_before_its_call_leaves_the_result_as_a_message() {
    for outcome in [TurnOutcome::Completed, TurnOutcome::Interrupted] {
        let mut stage = stage(DriverKind::Claude);
        let wait = stage.wait(90);
        stage.settle();
        stage.team.end_turn_with(stage.parent, outcome);
        assert_eq!(stage.told(), 1);
        assert!(hand_out(&stage.team.state, stage.parent, wait).is_err());
    }
}

#[test]
fn an_answer_that_the_transcript_does_not_show_comes_as_a_message() {
    // An ACP agent need not show what its tools answered, so there an answer that was sent counts.
    for (driver, told) in [(DriverKind::Claude, 1), (DriverKind::Codex, 1), (DriverKind::Acp, 0)] {
        let mut stage = stage(driver);
        let wait = stage.wait(90);
        stage.settle();
        stage.hand_out(wait);
        stage.tool_says("the connection was lost");
        stage.team.end_turn(stage.parent);
        assert_eq!((stage.told(), stage.report()), (told, Report::Made), "{driver}");
    }
}

#[test]
fn after_a_restart_of_the_daemon_nothing_is_lost_and_nothing_comes_twice() {
    for driver in DRIVERS {
        // Killed while the call waits: it is settled later, or was settled and not handed out.
        for settled_before in [false, true] {
            let mut stage = stage(driver);
            stage.wait(90);
            if settled_before {
                stage.settle();
            }
            stage.daemon_restarts();
            stage.settle();
            assert_eq!(stage.told(), 1, "{driver}");
        }
        // Killed after it was handed out: the transcript tells.
        for seen in [false, true] {
            let mut stage = stage(driver);
            let wait = stage.wait(90);
            stage.settle();
            stage.hand_out(wait);
            stage.daemon_restarts();
            assert_eq!(stage.report(), Report::HandedOut { certain: false });
            if seen {
                stage.tool_says(&result_receipt(stage.child));
            }
            stage.team.end_turn(stage.parent);
            assert_eq!(stage.told(), usize::from(!seen), "{driver}");
        }
        // Killed after the turn was over.
        let mut stage = stage(driver);
        let wait = stage.wait(90);
        stage.settle();
        stage.hand_out(wait);
        stage.tool_says(&result_receipt(stage.child));
        stage.team.end_turn(stage.parent);
        stage.daemon_restarts();
        assert_eq!(stage.told(), 0, "{driver}");
    }
}

#[test]
fn a_parent_that_fails_or_rests_finds_the_result_in_its_queue() {
    for end in [Team::rest, |team: &mut Team, id| team.fail(id, 0)] {
        let mut stage = stage(DriverKind::Claude);
        let wait = stage.wait(90);
        stage.settle();
        stage.hand_out(wait);
        end(&mut stage.team, stage.parent);
        assert_eq!(stage.told(), 1);
        assert!(!stage.team.agent(stage.parent).wants_process(), "it ended; the next prompt starts it");
    }
}

#[test]
fn who_waits_in_a_call_is_not_told_beside_it() {
    let mut stage = stage(DriverKind::Claude);
    stage.wait(90);
    let body = crate::ask::AskBody::Approval { tool: tool(ToolKind::Execute, "ls"), options: vec![] };
    stage.team.ask(stage.child, 60, body);
    assert_eq!(stage.told(), 0);
    let child = stage.child;
    let events =
        interrupt_team(&stage.team.state, Actor::Person, child, PromptId::new(uuid(70)), Timestamp(0))
            .unwrap();
    stage.team.apply(events);
    assert_eq!(stage.told(), 0);
}

#[test]
fn one_waits_for_others_that_one_sees_and_never_in_a_circle() {
    let mut team = Team::new();
    let (one, two, three) = (team.primary(1), team.primary(2), team.primary(3));
    let companion = team.companion(4, three);
    let begin = |team: &Team, who, on: &[AgentId]| {
        let on = on.iter().map(|agent| Awaited::Agent { agent: *agent }).collect();
        begin_wait(&team.state, who, Wait { id: WaitId::new(uuid(90 + team.state.seq as u128)), on })
    };
    for (who, on) in [(one, vec![]), (one, vec![one]), (one, vec![companion]), (one, vec![id(77)])] {
        assert!(begin(&team, who, &on).is_err(), "{on:?}");
    }
    let events = begin(&team, one, &[two]).unwrap();
    team.apply(events);
    let events = begin(&team, two, &[three]).unwrap();
    team.apply(events);
    assert!(begin(&team, three, &[one]).unwrap_err().to_string().contains("waits for you already"));
    assert!(begin(&team, three, &[companion]).is_ok());
}

#[test]
fn an_answer_comes_into_the_call_or_as_a_message() {
    for in_time in [true, false] {
        let mut team = Team::new();
        let (one, two) = (team.primary(1), team.primary(2));
        team.working(one);
        team.ready(two);
        let wait = WaitId::new(uuid(90));
        let question = message(80, one);
        let events = inquire(&team.state, two, &question, wait, Timestamp(0)).unwrap();
        team.apply(events);
        let awaited = Awaited::Answer { agent: two, prompt: question.id };
        assert!(!is_there(&team.state, one, awaited));
        assert_eq!(answerable(team.agent(two)), []);
        team.begin_turn(two);
        assert_eq!(answerable(team.agent(two)), []);
        if !in_time {
            team.apply(end_wait(&team.state, one, wait));
        }
        team.end_turn(two);
        assert_eq!(answerable(team.agent(two)), [question.id]);
        team.change(two, vec![AgentEvent::Answered { prompt: question.id, text: "blue".into() }]);
        assert_eq!(team.agent(one).queue.len(), usize::from(!in_time));
        if in_time {
            assert!(is_there(&team.state, one, awaited));
            team.apply(hand_out(&team.state, one, wait).unwrap());
            let mut call = tool(ToolKind::Other, "ask_agent");
            call.status = ToolStatus::Completed;
            call.raw_output = serde_json::json!({ "text": message_receipt(question.id) });
            let index = crate::ids::ItemIndex(0);
            let shown = AgentEvent::ItemChanged { index, done: true, body: ItemBody::Tool(call) };
            team.change(one, vec![shown]);
        } else {
            assert!(team.agent(one).queue[0].text.ends_with("blue"));
        }
        assert_eq!(team.agent(two).inquiries, [], "who has the answer asks no more");
        team.end_turn(one);
        assert_eq!(team.agent(one).queue.len(), usize::from(!in_time));
    }
}

#[test]
fn an_inquiry_of_who_is_gone_is_answered_by_that() {
    type End = fn(&mut Team, AgentId);
    let ends: [(End, &str); 3] = [
        (|team, id| team.close(id), "closed"),
        (|team, id| team.fail(id, 0), "failed"),
        (
            |team, id| {
                let events = edit_queued(&team.state, id, PromptId::new(uuid(80)), None).unwrap();
                team.apply(events);
            },
            "dropped",
        ),
    ];
    for (end, word) in ends {
        let mut team = Team::new();
        let (one, two) = (team.primary(1), team.primary(2));
        team.ready(one);
        let wait = WaitId::new(uuid(90));
        let events = inquire(&team.state, two, &message(80, one), wait, Timestamp(0)).unwrap();
        team.apply(events);
        end(&mut team, two);
        assert!(is_there(&team.state, one, Awaited::Answer { agent: two, prompt: PromptId::new(uuid(80)) }));
        team.apply(end_wait(&team.state, one, wait));
        assert!(team.agent(one).queue[0].text.contains(word), "{word}");
    }
}
