//! Messages into a running turn.

use consort_drivers::Output;
use consort_model::{Attachment, Image, Signal, TurnOutcome};
use serde_json::{Value, json};

use crate::support::Talk;

fn steer(talk: &mut Talk, key: &str, text: &str) -> Output {
    let out = talk.driver.steer(key, text, &[]);
    talk.note(out)
}

fn joined(key: &str) -> Signal {
    Signal::Joined { key: key.into() }
}

fn not_joined(key: &str) -> Signal {
    Signal::NotJoined { key: key.into() }
}

/// The agent repeats a message that it has taken in.
fn repeats(talk: &mut Talk, key: &str) -> Output {
    talk.hears(
        json!({"type": "user", "message": {"role": "user", "content": "x"}, "uuid": key, "isReplay": true}),
    )
}

fn idle(talk: &mut Talk) -> Output {
    talk.system("session_state_changed", json!({"state": "idle"}))
}

fn ended(outcome: TurnOutcome) -> Signal {
    Signal::TurnEnded(outcome)
}

#[test]
fn a_message_is_sent_under_its_name_and_joins_when_it_is_repeated() {
    let mut talk = Talk::working();
    assert_eq!(steer(&mut talk, "p", "also this").signals, []);
    assert_eq!(
        (&talk.last_sent()["uuid"], &talk.last_sent()["message"]["content"]),
        (&json!("p"), &json!("also this"))
    );
    assert_eq!(repeats(&mut talk, "of the first prompt").signals, []);
    assert_eq!(repeats(&mut talk, "p").signals, [joined("p")]);
    assert_eq!(repeats(&mut talk, "p").signals, []);
    assert_eq!(talk.results(json!({})).signals, [ended(TurnOutcome::Completed)]);
    assert_eq!(idle(&mut talk), Output::default());
    let image = [Attachment::Image(Image { mime_type: "image/png".into(), data: "AA==".into() })];
    talk.prompt("go");
    let out = talk.driver.steer("q", "look", &image);
    talk.note(out);
    assert_eq!(talk.last_sent()["message"]["content"][1]["type"], "image");
}

#[test]
fn what_comes_too_late_begins_the_next_turn_of_the_agents_own() {
    let mut talk = Talk::working();
    steer(&mut talk, "p", "also this");
    steer(&mut talk, "q", "and this");
    assert_eq!(talk.results(json!({})).signals, [ended(TurnOutcome::Completed)]);
    // Several are repeated before the turn that takes them together.
    assert_eq!(repeats(&mut talk, "p").signals, []);
    assert_eq!(talk.begins("s").signals, [Signal::TurnStarted, joined("p"), joined("q")]);
    assert_eq!(repeats(&mut talk, "q").signals, []);
    assert_eq!(talk.results(json!({})).signals, [ended(TurnOutcome::Completed)]);
}

#[test]
fn an_interrupt_takes_back_what_was_not_taken_in() {
    let take_back = |key: &str| json!({"subtype": "cancel_async_message", "message_uuid": key});
    for (answer, told) in [(true, not_joined("p")), (false, joined("p"))] {
        let mut talk = Talk::working();
        steer(&mut talk, "p", "also this");
        let before = talk.sent.len();
        talk.interrupts();
        let sent: Vec<&Value> = talk.sent[before..].iter().map(|message| &message["request"]).collect();
        assert_eq!(sent, [&take_back("p"), &json!({"subtype": "interrupt"})], "in this order");
        assert_eq!(talk.replies("cancel_async_message", json!({"cancelled": answer})).signals, [told]);
        talk.results(json!({"subtype": "error_during_execution", "is_error": true}));
        assert_eq!(idle(&mut talk), Output::default());
    }
}

#[test]
fn what_crossed_the_end_of_the_turn_is_taken_back_or_begins_a_turn() {
    let mut talk = Talk::working();
    steer(&mut talk, "p", "also this");
    talk.results(json!({}));
    assert_eq!(idle(&mut talk).frames.len(), 1, "it may not have been seen");
    assert_eq!(talk.begins("s").signals, [Signal::TurnStarted, joined("p")]);
    assert_eq!(talk.replies("cancel_async_message", json!({"cancelled": false})).signals, []);
}

#[test]
fn without_a_turn_or_in_one_that_is_being_stopped_nothing_is_taken() {
    let mut talk = Talk::open();
    assert_eq!(steer(&mut talk, "p", "x").signals, [not_joined("p")]);
    let mut talk = Talk::working();
    talk.interrupts();
    let out = steer(&mut talk, "p", "x");
    assert_eq!((out.signals, out.frames.len()), (vec![not_joined("p")], 0));
}
