//! Whatever the app server writes, the driver neither panics nor loses its turn.

use std::sync::LazyLock;

use consort_drivers::{Driver, Frame};
use consort_model::Signal;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::recorded;
use crate::reload::{Input, conversation};
use crate::support::{Talk, launch, warning};

/// The frames of a whole conversation, answers aside: those would settle what they do not belong to.
fn frames() -> Vec<Value> {
    let frames = conversation().into_iter().filter_map(|input| match input {
        Input::Frame(frame) => Some(frame),
        _ => None,
    });
    let recorded = recorded::written("codex-").into_iter().map(|frame| {
        let mut frame: Value = serde_json::from_str(&frame).unwrap();
        if frame["params"]["threadId"].is_string() {
            frame["params"]["threadId"] = json!("t");
        }
        frame
    });
    frames.chain(recorded).filter(|frame| frame.get("method").is_some()).collect()
}

/// Read once, not for every case.
static FRAMES: LazyLock<Vec<Value>> = LazyLock::new(frames);

/// A damage done to a frame. Numbers pick a place, whatever the frame's size.
#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    Repeat(usize),
    Remove(usize),
    Replace(usize, Value),
}

fn damage() -> impl Strategy<Value = Damage> {
    let value = prop_oneof![
        Just(Value::Null),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!("")),
        Just(json!("t")),
        Just(json!([])),
        Just(json!([[[]]])),
        Just(json!({})),
        Just(json!({"type": "x", "id": "y"})),
        Just(json!(true)),
        ".{0,8}".prop_map(Value::String),
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        any::<usize>().prop_map(Damage::Cut),
        any::<usize>().prop_map(Damage::Repeat),
        any::<usize>().prop_map(Damage::Remove),
        (any::<usize>(), value).prop_map(|(at, value)| Damage::Replace(at, value)),
    ]
}

fn damaged(frame: &Value, damage: &Damage) -> Vec<u8> {
    let mut bytes = frame.to_string().into_bytes();
    match damage {
        Damage::Flip(at, bits) => {
            let at = at % bytes.len();
            bytes[at] ^= bits;
        }
        Damage::Cut(at) => bytes.truncate(at % (bytes.len() + 1)),
        Damage::Repeat(at) => {
            let tail = bytes[at % (bytes.len() + 1)..].to_vec();
            bytes.extend(tail);
        }
        Damage::Remove(at) | Damage::Replace(at, _) => {
            let mut frame = frame.clone();
            let mut left = at % (count(&frame) + 1);
            change(&mut frame, &mut left, damage);
            bytes = serde_json::to_vec(&frame).unwrap();
        }
    }
    bytes
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => vec![],
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(|field| 1 + count(field)).sum(),
        Value::Array(items) => items.iter().map(|item| 1 + count(item)).sum(),
        _ => 0,
    }
}

/// Walks to the value at `left` and takes its place; whether it was there.
fn change(value: &mut Value, left: &mut usize, damage: &Damage) -> bool {
    for child in children(value) {
        if *left == 0 {
            *child = match damage {
                Damage::Replace(_, new) => new.clone(),
                _ => Value::Null,
            };
            return true;
        }
        *left -= 1;
        if change(child, left, damage) {
            return true;
        }
    }
    false
}

/// A turn whose name no fixture and hardly any damage hits.
fn working() -> Driver {
    let mut talk = Talk::open();
    talk.prompt("go");
    talk.replies("turn/start", json!({"turn": {"id": "777777"}}));
    talk.tells("turn/started", json!({"turn": {"id": "777777"}}));
    talk.driver
}

fn still_works(mut driver: Driver) {
    let stored = serde_json::to_string(&driver).unwrap();
    assert_eq!(serde_json::from_str::<Driver>(&stored).unwrap(), driver);
    let end = json!({"method": "turn/completed", "params": {"threadId": "t",
        "turn": {"id": "777777", "status": "completed"}}});
    let out = driver.receive(Frame::Line(end.to_string().as_bytes()));
    assert!(matches!(out.signals.last(), Some(Signal::TurnEnded(_))), "{out:?}");
    assert_eq!(driver.prompt("again", &[]).frames.len(), 1);
}

#[test]
fn what_is_no_message_gives_a_notice() {
    let mut talk = Talk::working();
    for line in [
        "log line",
        "{\"id\":",
        "[1]",
        "{}",
        "{\"id\":99,\"result\":1}",
        "{\"id\":\"x\",\"result\":1}",
        "{\"id\":1}",
        "{\"error\":{\"message\":\"no\"}}",
        "{\"method\":\"item/agentMessage/delta\",\"params\":{\"delta\":1}}",
    ] {
        assert!(!warning(&talk.hears_line(line)).is_empty(), "{line}");
    }
    assert!(!warning(&talk.hears_line(b"\xff\xfe")).is_empty());
    assert_eq!(talk.hears_line("").signals, []);
}

proptest! {
    #[test]
    fn noise_leaves_the_turn_alone(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)) {
        let mut driver = working();
        for line in &lines {
            driver.receive(Frame::Line(line));
            driver.receive(Frame::Oversized { len: u64::MAX, head: line });
        }
        still_works(driver);
    }

    #[test]
    fn damaged_frames_leave_the_turn_alone(
        picks in prop::collection::vec((any::<prop::sample::Index>(), damage(), damage()), 1..30),
    ) {
        let frames = &*FRAMES;
        let mut driver = working();
        for (index, first, second) in &picks {
            let frame = &frames[index.index(frames.len())];
            for line in [damaged(frame, first), damaged(frame, second)] {
                // A turn's end whose turn cannot be read is the end of the one that runs.
                let may_end = line.windows(14).any(|words| words == b"turn/completed");
                let named = serde_json::from_slice::<Value>(&line)
                    .is_ok_and(|frame| frame["params"]["turn"]["id"].is_string());
                if !may_end || named {
                    driver.receive(Frame::Line(&line));
                    driver.receive(Frame::Oversized { len: 1, head: &line });
                }
            }
        }
        still_works(driver);
    }

    #[test]
    fn a_damaged_handshake_never_panics(first in damage(), second in damage(), third in damage()) {
        let mut talk = Talk::start(launch());
        let answers = [
            json!({"id": 1, "result": {"userAgent": "consort/0.166.0 (x)"}}),
            json!({"id": 4, "result": crate::support::models()}),
            json!({"id": 5, "result": crate::support::modes()}),
            json!({"id": 2, "result": {"account": null, "requiresOpenaiAuth": false}}),
            json!({"id": 3, "result": {"config": {"approval_policy": "never", "projects": {"/": {"trust_level": "x"}}}}}),
            json!({"id": 6, "result": crate::support::thread()}),
        ];
        for (answer, damage) in answers.iter().zip([&first, &second, &third].into_iter().cycle()) {
            talk.hears_line(damaged(answer, damage));
            talk.hears(answer.clone());
        }
    }
}
