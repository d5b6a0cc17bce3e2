//! Whole conversations, and that a daemon that dies between any two steps of them changes nothing.

use consort_drivers::{Driver, Output};
use consort_model::{Signal, TurnOutcome};

use crate::scene;

/// What a conversation comes to, in a few words.
fn summary(outputs: &[Output]) -> String {
    let mut words: Vec<String> = vec![];
    let mut text = String::new();
    for signal in outputs.iter().flat_map(|output| &output.signals) {
        if let Signal::Text { text: piece, .. } = signal {
            text.push_str(piece);
            continue;
        }
        if !text.is_empty() {
            words.push(format!("\"{}\"", std::mem::take(&mut text)));
        }
        match signal {
            Signal::Ready(session) => words.push(format!("ready {}", session.id)),
            Signal::Thinking { .. } => words.push("thinking".into()),
            Signal::Tool { call, .. } if call.status.is_over() => {
                words.push(format!("{} {:?}", call.title, call.status))
            }
            Signal::Ask { key, .. } => words.push(format!("ask {key}")),
            Signal::AskWithdrawn { key } => words.push(format!("withdrawn {key}")),
            Signal::TurnStarted => words.push("begins".into()),
            Signal::TurnEnded(TurnOutcome::Failed { .. }) => words.push("failed".into()),
            Signal::TurnEnded(outcome) => words.push(format!("{outcome:?}").to_lowercase()),
            Signal::Permissions(mode) => words.push(mode.word().to_owned()),
            Signal::Plan(entries) => words.push(format!("plan {:?}", entries[0].status)),
            Signal::Notice { .. } => words.push("notice".into()),
            Signal::Unknown { label, .. } => words.push(format!("unknown {label}")),
            _ => {}
        }
    }
    words.join(", ")
}

#[test]
fn conversations_come_to_what_was_said() {
    let expected = [
        (
            "approvals",
            "ready , ready s1, \"I build.\", ask r1, npm run build Completed, ask r2, Write /project/a Failed, ask r3, \
            AskUserQuestion Completed, completed",
        ),
        (
            "background",
            "ready , ready s1, Agent Sub job Completed, \"Sub here.\", ask r1, \"It runs.\", completed, ask r1, \"Yes?\", \
            completed, ask r1, npm test Completed, \"All fine.\", notice, begins, \"Noticed.\", completed",
        ),
        (
            "errors",
            "ready , ready s1, notice, notice, \"partial \", notice, \"partial and whole\", failed, ready s2, completed, \
            unknown novelty, notice",
        ),
        (
            "interrupt",
            "ready , ready s1, \"word word\", interrupted, ask r1, withdrawn r1, npm test Failed, interrupted, ask r2, \
            npm test Failed, interrupted",
        ),
        (
            "plan",
            "ready , ready s1, ask r1, accept-edits, Plan Completed, TaskCreate A Completed, plan Pending, TaskUpdate 1 Completed, \
            plan InProgress, completed",
        ),
        (
            "talk",
            "ready , ready s1, thinking, \"Good day to you, päivää.\", completed, \"Once more.\", completed",
        ),
    ];
    let scenes = scene::all();
    assert_eq!(scenes.len(), expected.len());
    for ((name, steps), (expected_name, expected)) in scenes.into_iter().zip(expected) {
        let mut driver = scene::driver();
        let outputs: Vec<Output> = steps.iter().map(|step| scene::give(&mut driver, step)).collect();
        assert_eq!((name.as_str(), summary(&outputs).as_str()), (expected_name, expected));
    }
}

#[test]
fn a_crash_between_any_two_steps_changes_nothing() {
    for (name, steps) in scene::all() {
        let mut driver = scene::driver();
        let mut states = vec![];
        let mut outputs = vec![];
        for step in &steps {
            states.push(serde_json::to_string(&driver).unwrap());
            outputs.push(scene::give(&mut driver, step));
        }
        for (cut, state) in states.iter().enumerate() {
            let mut again: Driver = serde_json::from_str(state).unwrap();
            for (step, output) in steps[cut..].iter().zip(&outputs[cut..]) {
                assert_eq!(scene::give(&mut again, step), *output, "{name} cut at {cut}");
            }
            assert_eq!(again, driver, "{name} cut at {cut}");
        }
    }
}

#[test]
fn the_state_stays_small_whatever_is_said() {
    let mut driver = scene::driver();
    let (_, steps) = scene::all().into_iter().find(|(name, _)| name == "talk").unwrap();
    steps.iter().for_each(|step| drop(scene::give(&mut driver, step)));
    let before = serde_json::to_string(&driver).unwrap().len();
    for _ in 0..50 {
        steps[2..].iter().for_each(|step| drop(scene::give(&mut driver, step)));
    }
    assert!(serde_json::to_string(&driver).unwrap().len() <= before + 8, "{driver:?}");
}
