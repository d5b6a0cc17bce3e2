//! Words into a running turn.

use consort_drivers::Output;
use consort_model::{Signal, TurnOutcome};
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

fn message(key: Value) -> Value {
    json!({"type": "userMessage", "id": "i", "clientId": key, "content": []})
}

#[test]
fn a_running_turn_is_given_words_and_says_when_it_took_them() {
    let mut talk = Talk::working();
    assert_eq!(steer(&mut talk, "p", "also this").signals, []);
    let expected = json!({"threadId": "t", "expectedTurnId": "u", "clientUserMessageId": "p",
        "input": [{"type": "text", "text": "also this", "text_elements": []}]});
    assert_eq!(*talk.sent("turn/steer"), expected);
    assert_eq!(talk.replies("turn/steer", json!({"turnId": "u"})).signals, []);
    assert_eq!(talk.item("started", message(json!(null))).signals, [], "a prompt of no name of ours");
    assert_eq!(talk.item("started", message(json!("p"))).signals, [joined("p")]);
    assert_eq!(talk.item("completed", message(json!("p"))).signals, []);
    assert_eq!(talk.ends("completed").signals, [Signal::TurnEnded(TurnOutcome::Completed)]);
}

#[test]
fn what_a_turn_is_given_before_it_began_waits_for_its_beginning() {
    let mut talk = Talk::open();
    talk.prompt("go");
    assert_eq!(steer(&mut talk, "p", "also this"), Output::default());
    assert!(!talk.methods().contains(&"turn/steer"));
    talk.begins();
    assert_eq!(talk.sent("turn/steer")["expectedTurnId"], "u");
}

#[test]
fn what_a_turn_refuses_or_does_not_take_in_before_its_end_waits_for_its_own_turn() {
    let mut talk = Talk::working();
    steer(&mut talk, "p", "also this");
    assert_eq!(talk.fails("turn/steer", "this turn cannot be steered").signals, [not_joined("p")]);
    steer(&mut talk, "q", "and this");
    talk.replies("turn/steer", json!({"turnId": "u"}));
    let over = Signal::TurnEnded(TurnOutcome::Interrupted);
    assert_eq!(talk.ends("interrupted").signals, [not_joined("q"), over]);
    assert_eq!(talk.item("started", message(json!("q"))).signals, [], "once is enough");
}

#[test]
fn without_a_turn_or_in_one_that_is_being_stopped_nothing_is_taken() {
    let mut talk = Talk::open();
    assert_eq!(steer(&mut talk, "p", "x").signals, [not_joined("p")]);
    let mut talk = Talk::working();
    let out = talk.driver.interrupt();
    talk.note(out);
    let out = steer(&mut talk, "p", "x");
    assert_eq!((out.signals, out.frames.len()), (vec![not_joined("p")], 0));
}
