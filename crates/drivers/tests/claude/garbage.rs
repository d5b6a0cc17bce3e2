//! Whatever the agent writes, the driver neither panics nor loses its turn.

use std::sync::LazyLock;

use consort_drivers::{Driver, Frame};
use consort_model::Signal;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::recorded;
use crate::scene::{self, Step};
use crate::support::{Talk, hello, launch};

/// Every frame that the agent wrote in a fixture, but for those that end or begin a turn.
fn frames() -> Vec<String> {
    let steps = scene::all().into_iter().flat_map(|(_, steps)| steps);
    let frames = steps.filter_map(|step| match step {
        Step::In(message) => Some(message),
        _ => None,
    });
    let recorded =
        recorded::written("claude-").into_iter().map(|frame| serde_json::from_str(&frame).unwrap());
    let frames = frames.chain(recorded).filter(|message: &Value| message["type"] != "result");
    frames.map(|message| message.to_string()).collect()
}

/// Read once, not for every case.
static FRAMES: LazyLock<Vec<String>> = LazyLock::new(frames);

/// A damage done to a frame. Numbers pick a place, whatever the frame's size.
#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    Repeat(usize),
    Replace(usize, Option<Value>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let value = prop_oneof![
        Just(None),
        Just(Some(Value::Null)),
        Just(Some(json!(-1))),
        Just(Some(json!(1e300))),
        Just(Some(json!(u64::MAX))),
        Just(Some(json!(""))),
        Just(Some(json!([[[]]]))),
        Just(Some(json!({"type": "text"}))),
        Just(Some(json!(true))),
        ".{0,8}".prop_map(|text| Some(Value::String(text))),
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        any::<usize>().prop_map(Damage::Cut),
        any::<usize>().prop_map(Damage::Repeat),
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
        Damage::Flip(..) => {}
        Damage::Cut(at) => bytes.truncate(at % (bytes.len() + 1)),
        Damage::Repeat(at) => bytes.extend_from_within(at % (bytes.len() + 1)..),
        Damage::Replace(at, value) => {
            if let Ok(mut message) = serde_json::from_str::<Value>(frame) {
                let mut left = at % (count(&message) + 1);
                change(&mut message, &mut left, value.as_ref());
                bytes = serde_json::to_vec(&message).unwrap();
            }
        }
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

/// Walks to the value at `left` and replaces it, or removes it where that is possible.
fn change(value: &mut Value, left: &mut usize, new: Option<&Value>) -> bool {
    let mut removed = None;
    let children: Vec<(Option<String>, &mut Value)> = match value {
        Value::Object(fields) => fields.iter_mut().map(|(key, field)| (Some(key.clone()), field)).collect(),
        Value::Array(items) => items.iter_mut().map(|item| (None, item)).collect(),
        _ => return false,
    };
    let mut done = false;
    for (key, child) in children {
        if *left == 0 {
            match new {
                Some(new) => *child = new.clone(),
                None => removed = key,
            }
            done = true;
            break;
        }
        *left -= 1;
        if change(child, left, new) {
            return true;
        }
    }
    if let (Some(key), Value::Object(fields)) = (removed, value) {
        fields.remove(&key);
    }
    done
}

/// The turn ends, and the next one begins and ends.
fn still_works(mut driver: Driver) {
    let stored = serde_json::to_string(&driver).unwrap();
    assert_eq!(serde_json::from_str::<Driver>(&stored).unwrap(), driver);
    let end = json!({"type": "result", "subtype": "success", "is_error": false}).to_string();
    // Damage may have ended the turn already, or begun one of the agent's own.
    driver.receive(Frame::Line(end.as_bytes()));
    assert_eq!(driver.prompt("again", &[]).frames.len(), 1);
    let out = driver.receive(Frame::Line(end.as_bytes()));
    assert!(out.signals.iter().any(|signal| matches!(signal, Signal::TurnEnded(_))), "{out:?}");
}

proptest! {
    #[test]
    fn noise_leaves_the_turn_alone(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)) {
        let mut driver = Talk::working().driver;
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
        let mut driver = Talk::working().driver;
        for (index, first, second) in &picks {
            let bytes = damaged(&frames[index.index(frames.len())], first);
            let twice = damaged(&String::from_utf8_lossy(&bytes), second);
            for line in [&bytes, &twice] {
                driver.receive(Frame::Line(line));
                driver.receive(Frame::Oversized { len: 1, head: line });
            }
        }
        still_works(driver);
    }

    #[test]
    fn damaged_results_end_the_turn_or_leave_it_alone(first in damage(), second in damage()) {
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": "x", "errors": ["y"],
            "origin": {"kind": "task-notification"}, "total_cost_usd": 1.0, "modelUsage": {"m": {"inputTokens": 1}}});
        let mut talk = Talk::working();
        talk.hears_line(damaged(&result.to_string(), &first));
        talk.hears_line(damaged(&result.to_string(), &second));
        still_works(talk.driver);
    }

    #[test]
    fn a_damaged_handshake_never_panics(first in damage(), second in damage()) {
        let mut talk = Talk::start(launch());
        let answer = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "consort-1", "response": hello()}});
        talk.hears_line(damaged(&answer.to_string(), &first));
        talk.hears_line(damaged(&answer.to_string(), &second));
    }
}
