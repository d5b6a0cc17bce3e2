//! Whatever an agent writes, the driver neither panics nor loses its turn.

use std::sync::LazyLock;

use consort_drivers::{Driver, Frame};
use consort_model::Signal;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::recorded;
use crate::scene::{self, Line};
use crate::support::{Talk, hello, launch};

/// Every frame that an agent wrote in a fixture, as if it spoke of the session `s`.
fn frames() -> Vec<String> {
    let lines = scene::all().into_iter().flat_map(|(_, lines)| lines);
    let frames = lines.filter_map(|line| match line {
        Line::In { frame } => Some(frame),
        _ => None,
    });
    let recorded = ["gemini-", "opencode-"].into_iter().flat_map(recorded::written);
    let ours = frames.chain(recorded).map(|frame| match serde_json::from_str::<Value>(&frame) {
        Ok(mut message) if message["params"]["sessionId"].is_string() => {
            message["params"]["sessionId"] = json!("s");
            message.to_string()
        }
        _ => frame,
    });
    ours.collect()
}

/// Read once, not for every case.
static FRAMES: LazyLock<Vec<String>> = LazyLock::new(frames);

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
        Just(json!([])),
        Just(json!([[[]]])),
        Just(json!({})),
        Just(json!({"type": "text"})),
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

fn damaged(frame: &str, damage: &Damage) -> Vec<u8> {
    let mut bytes = frame.as_bytes().to_vec();
    match damage {
        Damage::Flip(at, bits) if !bytes.is_empty() => {
            let at = at % bytes.len();
            bytes[at] ^= bits;
        }
        Damage::Cut(at) => bytes.truncate(at % (bytes.len() + 1)),
        Damage::Repeat(at) => {
            let at = at % (bytes.len() + 1);
            let tail = bytes[at..].to_vec();
            bytes.extend(tail);
        }
        Damage::Remove(at) | Damage::Replace(at, _) => {
            if let Ok(mut message) = serde_json::from_str::<Value>(frame) {
                let mut left = at % (count(&message) + 1);
                change(&mut message, &mut left, damage);
                bytes = serde_json::to_vec(&message).unwrap();
            }
        }
        Damage::Flip(..) => {}
    }
    bytes
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(|field| 1 + count(field)).sum(),
        Value::Array(items) => items.iter().map(|item| 1 + count(item)).sum(),
        _ => 0,
    }
}

/// Walks to the field at `left` and removes or replaces it.
fn change(value: &mut Value, left: &mut usize, damage: &Damage) -> bool {
    if let Value::Object(fields) = value {
        let keys: Vec<String> = fields.keys().cloned().collect();
        for key in keys {
            if *left == 0 {
                match damage {
                    Damage::Replace(_, new) => fields[&key] = new.clone(),
                    _ => drop(fields.remove(&key)),
                }
                return true;
            }
            *left -= 1;
            if change(&mut fields[&key], left, damage) {
                return true;
            }
        }
    } else if let Value::Array(items) = value {
        for item in items {
            if *left == 0 {
                if let Damage::Replace(_, new) = damage {
                    *item = new.clone();
                }
                return true;
            }
            *left -= 1;
            if change(item, left, damage) {
                return true;
            }
        }
    }
    false
}

/// A turn whose answer has an id that no fixture and hardly any damage hits.
fn working() -> (Driver, String) {
    let mut driver = Talk::working().driver;
    let mut state = serde_json::to_value(&driver).unwrap();
    state["requests"][0][0] = json!(777_777);
    driver = serde_json::from_value(state).unwrap();
    (driver, json!({"id": 777_777, "result": {"stopReason": "end_turn"}}).to_string())
}

fn still_works(mut driver: Driver, end: &str) {
    let stored = serde_json::to_string(&driver).unwrap();
    assert_eq!(serde_json::from_str::<Driver>(&stored).unwrap(), driver);
    let out = driver.receive(Frame::Line(end.as_bytes()));
    assert!(matches!(out.signals.last(), Some(Signal::TurnEnded(_))), "{out:?}");
    assert_eq!(driver.prompt("again", &[]).frames.len(), 1);
}

proptest! {
    #[test]
    fn noise_leaves_the_turn_alone(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)) {
        let (mut driver, end) = working();
        for line in &lines {
            driver.receive(Frame::Line(line));
            driver.receive(Frame::Oversized { len: u64::MAX, head: line });
        }
        still_works(driver, &end);
    }

    #[test]
    fn damaged_frames_leave_the_turn_alone(
        picks in prop::collection::vec((any::<prop::sample::Index>(), damage(), damage()), 1..30),
    ) {
        let frames = &*FRAMES;
        let (mut driver, end) = working();
        for (index, first, second) in &picks {
            let bytes = damaged(&frames[index.index(frames.len())], first);
            let twice = damaged(&String::from_utf8_lossy(&bytes), second);
            for line in [&bytes, &twice] {
                driver.receive(Frame::Line(line));
                driver.receive(Frame::Oversized { len: 1, head: line });
            }
        }
        still_works(driver, &end);
    }

    #[test]
    fn a_damaged_handshake_never_panics(first in damage(), second in damage()) {
        let mut talk = Talk::start(launch());
        let answer = json!({"id": 1, "result": hello()}).to_string();
        talk.hears_line(damaged(&answer, &first));
        let answer = json!({"id": 2, "result": {"sessionId": "s", "modes": {"currentModeId": "a", "availableModes": []},
            "configOptions": [{"id": "m", "name": "M", "type": "boolean", "currentValue": true}]}}).to_string();
        talk.hears_line(damaged(&answer, &second));
    }
}
