//! What must not happen to a person: answers to what was not seen, words that are lost, keys that do nothing.

use std::time::Duration;

use consort_model::command::Refusal;
use consort_model::{Answer, Attachment, Image, Question, TurnOutcome};

use super::*;
use crate::app::Draft;
use crate::overlay::Overlay;
use crate::testing::{agent, companion};

fn with_asks(asks: Vec<Ask>) -> State {
    team(vec![Agent { asks, ..working(named("one", agent(1))) }, named("two", agent(2))])
}

fn answers(scene: &Scene) -> usize {
    scene.calls.iter().filter(|call| matches!(call, Call::Answer { .. } | Call::AnswerMany { .. })).count()
}

#[test]
fn an_inbox_that_is_left_open_takes_answers_to_what_comes_later() {
    let mut scene = Scene::new(120, 40, with_asks(vec![]), talked());
    scene.press("ctrl-o");
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(60, "make") });
    scene.press("y");
    assert_eq!(answers(&scene), 0, "it came under the finger");
    assert!(scene.app.due().is_some(), "and is due to take keys");
    scene.pass(Duration::from_secs(1));
    scene.press("y");
    assert_eq!(answers(&scene), 1);
}

#[test]
fn what_there_is_no_room_to_show_is_not_answered() {
    let owner =
        Agent { asks: vec![approval(60, "cargo build --release")], ..working(named("one", agent(1))) };
    let companions = (2..5).map(|n| named(&format!("c{n}"), companion(n, 1)));
    let state = || team(std::iter::once(owner.clone()).chain(companions.clone()).collect());
    let mut small = Scene::new(80, 24, state(), talked());
    small.press("ctrl-g");
    small.sees("cargo build --release");
    small.sees("y once");
    small.press("y");
    assert_eq!(answers(&small), 1);
    let mut tiny = Scene::new(80, 24, state(), talked());
    tiny.press("ctrl-g");
    tiny.resize(40, 10);
    tiny.press("y");
    assert_eq!(answers(&tiny), 0, "what was on the screen before counts no more");
    tiny.resize(20, 5);
    tiny.press("ctrl-o");
    tiny.does_not_see("cargo build");
    tiny.press("y");
    assert_eq!(answers(&tiny), 0);
    tiny.sees("no room");
}

#[test]
fn prompts_that_no_daemon_was_told_of_are_drafts_again() {
    let mut scene = Scene::new(80, 24, with_asks(vec![]), talked());
    scene.app.show(agent_id(1), false);
    scene.write("third");
    let unsent = vec![(agent_id(1), "first".to_owned()), (agent_id(1), "second".to_owned())];
    scene.app.keep_unsent(unsent);
    assert_eq!(scene.app.to_remember().drafts[&agent_id(1)], "first\nsecond\nthird");
}

#[test]
fn an_image_is_taken_back_and_comes_back_with_a_prompt_that_is_refused() {
    let mut scene = Scene::new(80, 24, with_asks(vec![]), talked());
    scene.app.show(agent_id(1), false);
    let image = || Attachment::Image(Image { mime_type: "image/png".into(), data: "AA==".into() });
    scene.app.image_read(Ok(image()));
    scene.app.image_read(Ok(image()));
    scene.settle();
    scene.sees("2 images");
    scene.press("backspace");
    scene.sees("1 image ");
    scene.press("ctrl-c");
    scene.does_not_see("1 image");
    let draft = Draft { text: "look".into(), images: vec![image()] };
    scene.app.answered(Reply::Sent(agent_id(1), draft), Err(refusal("it is parked")));
    scene.settle();
    scene.sees("1 image ");
    assert_eq!(scene.app.composer().text(), "look");
}

#[test]
fn a_spinner_stays_below_what_lies_over_it() {
    let mut scene = Scene::new(80, 24, with_asks(vec![]), talked());
    scene.press("f1");
    let before = scene.screen();
    scene.pass(Duration::from_millis(200));
    scene.pass(Duration::from_millis(200));
    assert_eq!(scene.screen(), before);
}

#[test]
fn leaving_and_going_to_who_needs_a_person_work_over_everything() {
    for open in ["f1", "alt-s", "ctrl-p", "ctrl-r", "alt-w", "ctrl-t"] {
        let mut scene = Scene::new(120, 40, with_asks(vec![approval(60, "make")]), talked());
        scene.app.show(agent_id(2), false);
        scene.press(open);
        assert!(!scene.app.overlays.is_empty(), "{open}");
        scene.press("ctrl-g");
        assert!(scene.app.overlays.is_empty(), "{open}");
        assert_eq!(scene.app.focused(), Some(agent_id(1)), "{open}");
        scene.press(open);
        scene.press("ctrl-q");
        assert!(scene.effects.contains(&Effect::Quit), "{open}");
    }
}

#[test]
fn what_is_new_stays_marked_when_the_screen_is_opened_again() {
    let mut scene = Scene::new(120, 40, with_asks(vec![]), talked());
    scene.app.show(agent_id(1), false);
    scene.event(agent_id(2), AgentEvent::TurnEnded { outcome: TurnOutcome::Completed });
    let memory = scene.app.to_remember();
    assert!(memory.unread.contains(&agent_id(2)));
    let later = Timestamp(memory.left_at + 1);
    let mut state = with_asks(vec![]);
    state.agents.insert(agent_id(3), Agent { ended_at: Some(later), ..named("three", agent(3)) });
    state.agents.insert(agent_id(4), Agent { ended_at: Some(Timestamp(1)), ..named("four", agent(4)) });
    let mut again = Scene::unconnected(120, 40, state, talked());
    again.app.memory = memory;
    again.connect();
    let unread = [2, 3, 4].map(|n| again.app.unread.contains(&agent_id(n)));
    assert_eq!(unread, [true, true, false]);
}

#[test]
fn a_plan_is_read_and_answered_as_one() {
    let call = ToolCall {
        input: json!({ "plan": "# The plan\n\n1. Look\n2. Change" }),
        status: ToolStatus::Pending,
        ..tool(ToolKind::Think, "Plan")
    };
    let body = AskBody::Approval { tool: call, options: vec![] };
    let ask = Ask { body, title: "Plan".into(), ..approval(60, "") };
    let mut scene = Scene::new(120, 40, with_asks(vec![ask]), talked());
    scene.press("ctrl-g");
    scene.sees("1. Look");
    scene.sees("y go ahead");
    scene.does_not_see("\"plan\"");
    scene.does_not_see("session");
}

#[test]
fn a_pattern_that_does_not_fit_is_typed_again() {
    let mut scene = Scene::new(120, 40, with_asks(vec![approval(60, "make all")]), talked());
    scene.press("ctrl-g p ctrl-u");
    scene.write("ls *");
    scene.press("enter");
    assert_eq!(answers(&scene), 0);
    assert!(
        matches!(scene.app.overlays.last(), Some(Overlay::Field(field)) if field.editor.text() == "ls *")
    );
    scene.sees("does not fit");
    scene.press("ctrl-u");
    scene.write("make *");
    scene.press("enter");
    assert_eq!(answers(&scene), 1);
}

#[test]
fn a_question_is_answered_with_up_and_down_and_needs_what_it_needs() {
    let schema = json!({ "required": ["colour", "why"], "properties": {
        "colour": { "enum": ["red", "blue"] }, "why": { "type": "string" },
    } });
    let question = Question { text: "Which?".into(), schema, url: None };
    let ask = Ask { body: AskBody::Question(question), ..approval(60, "Which?") };
    let mut scene = Scene::new(120, 40, with_asks(vec![ask]), talked());
    scene.press("ctrl-g enter down down enter");
    scene.sees("why is needed");
    scene.write("because");
    scene.press("enter");
    let wanted = Answer::Reply { value: json!({ "colour": "blue", "why": "because" }) };
    assert!(matches!(scene.calls.last(), Some(Call::Answer { answer, .. }) if *answer == wanted));
}

#[test]
fn who_answered_too_late_is_told_what_was_answered() {
    let mut scene = Scene::new(120, 40, with_asks(vec![]), talked());
    let wanted = "01a1e396-5eb8-7000-8000-000000000000".to_owned();
    let late = Refusal::NotOpen { wanted, settled: Some("a person denied it".to_owned()) };
    scene.app.answered(Reply::Answer(ask_id(60)), Err(late.into()));
    scene.settle();
    scene.sees("that request is not open any more: a person denied it");
    scene.does_not_see("01a1e396");
}
