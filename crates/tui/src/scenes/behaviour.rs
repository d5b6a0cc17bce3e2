//! What a person does, and what comes of it.

use std::time::Duration;

use consort_daemon::protocol::Answered;
use consort_model::{Answer, GrantScope, PermissionMode, PromptOrigin, SettledBy, Settlement, TurnOutcome};
use proptest::prelude::*;

use super::*;
use crate::app::{Connection, Draft, Focus};
use crate::testing::{agent, companion, said, sub_agent};

fn draft(text: &str) -> Draft {
    Draft { text: text.to_owned(), images: vec![] }
}

fn two() -> Scene {
    Scene::new(120, 40, team(vec![named("one", agent(1)), named("two", agent(2))]), talked())
}

fn answers(scene: &Scene) -> Vec<(String, Answer)> {
    let answers = |call: &Call| match call {
        Call::Answer { ask, answer } => vec![(ask.clone(), answer.clone())],
        Call::AnswerMany { answers } => {
            answers.iter().map(|it| (it.ask.to_string(), it.answer.clone())).collect()
        }
        _ => vec![],
    };
    scene.calls.iter().flat_map(answers).collect()
}

#[test]
fn what_is_typed_is_sent_to_the_agent_on_the_screen() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.write("hello");
    scene.press("enter");
    let Some(Call::Send { agent, prompt }) = scene.calls.last() else { panic!("{:?}", scene.calls) };
    assert_eq!((agent.as_str(), prompt.text.as_str()), (agent_id(1).to_string().as_str(), "hello"));
    scene.press("up");
    assert_eq!(scene.app.composer().text(), "hello", "and can be recalled");
}

#[test]
fn with_no_agent_a_prompt_makes_one() {
    let mut scene = Scene::new(120, 40, team(vec![]), BTreeMap::new());
    scene.write("hello");
    scene.press("enter");
    assert!(
        matches!(&scene.calls[..], [Call::CreateAgent(new), Call::Send { agent, .. }] if *agent == new.id.to_string())
    );
}

#[test]
fn a_request_never_takes_the_keyboard_from_what_one_is_typing() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.write("ye");
    scene.event(agent_id(1), AgentEvent::Asked { ask: approval(1, "git push") });
    scene.write("s, and n");
    assert_eq!(scene.app.composer().text(), "yes, and n");
    assert_eq!(answers(&scene), []);
    scene.sees("git push");
}

#[test]
fn every_answer_has_its_key() {
    let cases = [
        ("y", Answer::allow(GrantScope::Once)),
        ("s", Answer::allow(GrantScope::Session)),
        ("a", Answer::allow(GrantScope::Always)),
        ("w", Answer::allow(GrantScope::Project)),
        ("n", Answer::Deny { message: None }),
        ("x", Answer::Stop),
        ("p enter", Answer::Allow { scope: GrantScope::Session, pattern: Some("git *".into()) }),
        ("d n o enter", Answer::Deny { message: Some("no".into()) }),
        ("enter enter", Answer::Choose { option: "yes".into() }),
    ];
    for (keys, wanted) in cases {
        let mut scene = two();
        scene.event(agent_id(2), AgentEvent::Asked { ask: approval(1, "git push") });
        scene.press("ctrl-g");
        scene.press(keys);
        assert_eq!(answers(&scene), [(ask_id(1).to_string(), wanted)], "{keys}");
    }
}

#[test]
fn an_ask_that_slides_under_the_finger_is_not_answered_before_it_could_be_read() {
    let mut scene = two();
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(1, "make") });
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(2, "rm -rf /") });
    scene.press("ctrl-g");
    let settlement = Settlement { answer: None, by: SettledBy::Person, at: Timestamp(NOW) };
    scene.event(agent_id(2), AgentEvent::Settled { ask: ask_id(1), settlement });
    scene.press("y");
    assert_eq!(answers(&scene), [], "somebody else answered the first one that moment");
    scene.pass(Duration::from_secs(1));
    scene.press("y");
    assert_eq!(answers(&scene).len(), 1);
}

#[test]
fn several_requests_of_one_agent_are_answered_together_and_no_others() {
    let mut scene = two();
    for n in 1..=3 {
        scene.event(agent_id(2), AgentEvent::Asked { ask: approval(n, &format!("make {n}")) });
    }
    scene.event(agent_id(1), AgentEvent::Asked { ask: approval(9, "git push") });
    scene.app.show(agent_id(2), false);
    scene.press("tab *");
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(4, "make 4") });
    scene.press("y");
    let answered: Vec<String> = answers(&scene).into_iter().map(|(ask, _)| ask).collect();
    assert_eq!(answered, [1, 2, 3].map(|n| ask_id(n).to_string()), "only what was there when it was marked");
    assert!(matches!(scene.calls.last(), Some(Call::AnswerMany { .. })), "in one call");
    let refused = Answered { ask: ask_id(1), answered: false, error: Some(refusal("one was first")) };
    scene.app.answered(Reply::Answers, Ok(json(&[refused])));
    scene.settle();
    scene.sees("1 of 1 answers do not count: one was first");
}

#[test]
fn a_key_goes_to_everyone_who_needs_a_person_in_turn() {
    let mut scene = two();
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(1, "make") });
    scene.event(agent_id(1), AgentEvent::Asked { ask: approval(2, "git push") });
    scene.app.show(agent_id(1), false);
    scene.press("ctrl-g");
    assert_eq!((scene.app.focused(), scene.app.focus), (Some(agent_id(1)), Focus::Ask));
    scene.press("ctrl-g");
    assert_eq!(scene.app.focused(), Some(agent_id(2)));
    scene.press("n ctrl-g");
    assert_eq!(answers(&scene).len(), 1);
}

#[test]
fn the_chain_of_parents_is_shown_with_what_is_asked() {
    let state = team(vec![named("boss", agent(1)), named("helper", sub_agent(2, 1))]);
    let mut scene = Scene::new(120, 40, state, BTreeMap::new());
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(1, "git push") });
    scene.press("ctrl-o");
    scene.sees("helper ‹ boss wants to run");
}

#[test]
fn a_companion_made_while_its_owner_is_shown_joins_at_once_and_leaves_when_closed() {
    let mut scene = Scene::new(120, 40, team(vec![named("owner", agent(1))]), BTreeMap::new());
    let record = Box::new(named("server", companion(2, 1)));
    scene.event(agent_id(2), AgentEvent::Created { record });
    assert_eq!(scene.app.arranged().panes, [Some(agent_id(1)), Some(agent_id(2))]);
    assert_eq!(scene.watched, BTreeSet::from([agent_id(1), agent_id(2)]));
    assert_eq!(scene.app.focused(), Some(agent_id(1)));
    scene.press("alt-z");
    assert_eq!(scene.app.arranged().panes, [Some(agent_id(1))]);
    scene.press("alt-z");
    scene.event(agent_id(2), AgentEvent::Closed);
    assert_eq!(scene.app.arranged().panes, [Some(agent_id(1))]);
}

#[test]
fn hidden_agents_cost_nothing() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.settle();
    assert_eq!(scene.watched, BTreeSet::from([agent_id(1)]));
    let written = scene.written;
    for index in 0..50 {
        scene.event(agent_id(2), AgentEvent::ItemAdded { item: said(index, "hidden") });
    }
    assert_eq!(scene.written, written);
    assert!(!scene.app.damage.any());
}

#[test]
fn nothing_is_due_while_nothing_happens() {
    let mut scene = two();
    scene.pass(Duration::from_secs(60));
    scene.pass(Duration::from_secs(60));
    assert_eq!(scene.app.due(), None);
    let written = scene.written;
    scene.pass(Duration::from_secs(60));
    assert_eq!(scene.written, written);
}

#[test]
fn a_spinner_redraws_its_own_cells_alone() {
    let mut scene = Scene::new(120, 40, team(vec![working(named("one", agent(1)))]), BTreeMap::new());
    scene.pass(Duration::from_secs(5));
    let written = scene.written;
    scene.pass(Duration::from_millis(200));
    let cost = scene.written - written;
    assert!((1..200).contains(&cost), "{cost} bytes");
    scene.event(agent_id(1), AgentEvent::TurnEnded { outcome: TurnOutcome::Completed });
    scene.pass(Duration::from_secs(60));
    scene.pass(Duration::from_secs(60));
    assert_eq!(scene.app.due(), None);
}

#[test]
fn drafts_belong_to_their_agents() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.write("for one");
    scene.press("alt-down");
    scene.write("for two");
    scene.press("alt-down");
    assert_eq!(scene.app.composer().text(), "for one");
    assert_eq!(scene.app.to_remember().drafts.len(), 2);
}

#[test]
fn a_refused_prompt_comes_back() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.settle();
    scene.app.answered(Reply::Sent(agent_id(1), draft("lost?")), Err(refusal("the queue is full")));
    scene.settle();
    assert_eq!(scene.app.composer().text(), "lost?");
    scene.sees("the queue is full");
}

#[test]
fn the_daemons_end_is_told_and_a_new_snapshot_goes_on() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.settle();
    scene.app.disconnected("it ended");
    scene.settle();
    scene.sees("the daemon is gone");
    scene.items.get_mut(&agent_id(1)).unwrap().push(said(6, "said meanwhile"));
    scene.state.seq += 10;
    scene.connect();
    assert_eq!(scene.app.connection, Connection::Up);
    scene.sees("said meanwhile");
    scene.does_not_see("the daemon is gone");
}

#[test]
fn what_is_typed_before_the_first_snapshot_is_kept() {
    let mut scene = Scene::unconnected(120, 40, team(vec![named("one", agent(1))]), BTreeMap::new());
    scene.write("early");
    scene.sees("early");
    scene.connect();
    scene.sees("early");
    assert_eq!(scene.app.composer().text(), "early");
}

#[test]
fn what_is_sent_before_the_first_snapshot_goes_to_whom_the_screen_shows_then() {
    let mut scene = Scene::unconnected(120, 40, team(vec![named("one", agent(1))]), BTreeMap::new());
    scene.write("early");
    scene.press("enter");
    assert_eq!(scene.calls, []);
    scene.connect();
    assert!(matches!(&scene.calls[..], [Call::Send { agent, .. }] if *agent == agent_id(1).to_string()));
}

#[test]
fn a_removed_profile_disables_the_prompt_and_can_be_replaced() {
    let mut state = team(vec![named("one", agent(1))]);
    state.agents.get_mut(&agent_id(1)).unwrap().profile = ProfileId::new("gone");
    let mut scene = Scene::new(120, 40, state, BTreeMap::new());
    scene.sees("profile removed: this chat can no longer send messages");
    scene.write("hello");
    assert_eq!(scene.app.composer().text(), "");
    scene.press("enter");
    assert_eq!(scene.calls, []);
    scene.press("enter");
    assert!(matches!(&scene.calls[..], [Call::Rebind { profile, .. }] if profile == "scripted"));
}

#[test]
fn modes_are_stepped_through_and_bypass_is_chosen_by_name_only() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    for wanted in [PermissionMode::AcceptEdits, PermissionMode::Plan, PermissionMode::Default] {
        scene.press("shift-tab");
        let Some(Call::SetPermissions { permissions, .. }) = scene.calls.last() else { panic!() };
        assert_eq!(*permissions, wanted);
        let permissions = *permissions;
        scene.event(agent_id(1), AgentEvent::PermissionsChanged { permissions });
    }
}

#[test]
fn the_mouse_does_what_keys_do() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.settle();
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(1, "git push") });
    scene.click("two");
    assert_eq!(scene.app.focused(), Some(agent_id(2)));
    scene.click("wants to run");
    scene.click("once");
    assert_eq!(answers(&scene).len(), 1);
}

#[test]
fn notifications_are_for_those_who_look_elsewhere() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.settle();
    let notices = |scene: &mut Scene| {
        let effects = std::mem::take(&mut scene.effects);
        effects.into_iter().filter(|effect| matches!(effect, Effect::Notify(_))).collect::<Vec<_>>()
    };
    notices(&mut scene);
    scene.event(agent_id(1), AgentEvent::Asked { ask: approval(1, "make") });
    assert_eq!(notices(&mut scene), [], "it is on the screen");
    scene.event(agent_id(2), AgentEvent::Asked { ask: approval(2, "make") });
    assert_eq!(notices(&mut scene), [Effect::Notify("two needs you: make".into())]);
    scene.event(agent_id(2), AgentEvent::TurnEnded { outcome: TurnOutcome::Completed });
    assert_eq!(notices(&mut scene), [], "unread marks are enough while one is here");
    scene.app.input(Input::Focus(false));
    scene.event(agent_id(1), AgentEvent::TurnEnded { outcome: TurnOutcome::Completed });
    assert_eq!(notices(&mut scene), [Effect::Notify("one is done".into())]);
}

/// Two agents, the first of which works by this driver.
fn one_at_work(driver: DriverKind) -> Scene {
    let one = Agent { driver, ..working(named("one", agent(1))) };
    let mut scene = Scene::new(120, 40, team(vec![one, named("two", agent(2))]), talked());
    scene.app.show(agent_id(1), false);
    scene.settle();
    scene
}

#[test]
fn a_prompt_can_join_the_turn_that_runs() {
    let mut scene = one_at_work(DriverKind::Codex);
    scene.sees("enter waits for its turn · ctrl-s joins this one");
    scene.write("also the docs");
    scene.press("ctrl-s");
    let Some(Call::Steer { agent, prompt }) = scene.calls.last() else { panic!("{:?}", scene.calls) };
    assert_eq!((agent.clone(), prompt.text.as_str()), (agent_id(1).to_string(), "also the docs"));
    assert_eq!(scene.app.composer().text(), "");
    scene.sees("it joins one's turn at the next safe point");
}

#[test]
fn who_cannot_be_steered_is_told_of_and_the_prompt_waits() {
    let mut scene = one_at_work(DriverKind::Acp);
    scene.does_not_see("ctrl-s");
    scene.write("also the docs");
    scene.press("ctrl-s");
    assert!(matches!(scene.calls.last(), Some(Call::Steer { .. })));
    scene.sees("one takes nothing into a running turn; the prompt waits for its own");
}

#[test]
fn a_refused_steering_comes_back() {
    let mut scene = one_at_work(DriverKind::Codex);
    scene.app.answered(Reply::Steered(agent_id(1), draft("lost?")), Err(refusal("the queue is full")));
    scene.settle();
    assert_eq!(scene.app.composer().text(), "lost?");
}

#[test]
fn the_palette_steers_whatever_has_the_keyboard() {
    let mut scene = one_at_work(DriverKind::Codex);
    scene.write("also the docs");
    scene.press("esc ctrl-p");
    scene.write("where the agent can take it");
    scene.press("enter");
    assert!(matches!(scene.calls.last(), Some(Call::Steer { .. })), "{:?}", scene.calls);
}

fn later() -> consort_model::Prompt {
    consort_model::Prompt {
        id: consort_model::PromptId::new(Uuid::from_u128(5)),
        origin: PromptOrigin::Person,
        text: "later".into(),
        attachments: vec![],
        steers: false,
        at: Timestamp(0),
    }
}

#[test]
fn a_prompt_that_waits_can_join_the_turn_that_runs() {
    let mut scene = one_at_work(DriverKind::Claude);
    scene.event(agent_id(1), AgentEvent::PromptQueued { prompt: later() });
    scene.press("alt-q");
    scene.sees("ctrl-s joins the turn");
    scene.press("ctrl-s");
    assert!(matches!(scene.calls.last(), Some(Call::Steer { prompt, .. }) if prompt.id == later().id));
    scene.event(agent_id(1), AgentEvent::PromptSteered { prompt: later().id });
    scene.sees("⋯ later  joins this turn  alt-q edits");
    scene.press("alt-q");
    scene.sees("joins the turn");
    let calls = scene.calls.len();
    scene.press("ctrl-s");
    assert_eq!(scene.calls.len(), calls, "it joins already");
}

#[test]
fn prompts_that_wait_can_be_edited_and_dropped() {
    let mut scene = two();
    scene.app.show(agent_id(1), false);
    scene.event(agent_id(1), AgentEvent::PromptQueued { prompt: later() });
    scene.sees("⋯ later");
    scene.press("alt-q enter");
    scene.write(" today");
    scene.press("enter alt-q ctrl-d");
    let texts: Vec<Option<String>> = scene
        .calls
        .iter()
        .filter_map(|call| match call {
            Call::EditPrompt { text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [Some("later today".to_owned()), None]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_agents_say_no_control_character_reaches_the_terminal(text in "[\\PC\\x00-\\x1f\\x7f\\u{80}-\\u{9f}\\u{200b}-\\u{202e}]{0,120}") {
        let mut agent = named(&text, agent(1));
        agent.asks = vec![approval(1, &text)];
        let items = BTreeMap::from([(agent_id(1), vec![said(0, &text), item(1, ItemBody::Tool(tool(ToolKind::Execute, &text)))])]);
        let mut scene = Scene::new(80, 24, team(vec![agent]), items);
        scene.press("ctrl-o");
        for cell in &scene.canvas.next.content {
            prop_assert!(!cell.symbol().chars().any(char::is_control), "{:?}", cell.symbol());
        }
    }

    #[test]
    fn no_size_is_too_small(columns in 1u16..60, rows in 1u16..20, keys in proptest::collection::vec(
        prop_oneof![Just("ctrl-o"), Just("ctrl-p"), Just("f1"), Just("alt-s"), Just("esc"), Just("tab"), Just("alt-l"), Just("a")], 0..6)) {
        let mut agent = working(named("one", agent(1)));
        agent.asks = vec![edit_approval(1)];
        let mut scene = Scene::new(columns, rows, team(vec![agent, companion(2, 1)]), talked());
        for key in keys {
            scene.press(key);
        }
    }
}
