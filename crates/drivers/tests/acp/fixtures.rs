//! Recorded conversations give what was recorded, also if the daemon dies between any two frames.

use consort_drivers::Driver;

use crate::scene::{self, Line};

/// What each fixture must show at least.
#[test]
fn there_are_fixtures_of_every_part_of_a_conversation() {
    let names: Vec<String> = scene::all().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["approvals", "calls", "interrupt", "login", "noise", "resume", "talk", "tools"]);
}

#[test]
fn recorded_conversations_give_what_was_recorded() {
    for (name, fixture) in scene::all() {
        let mut driver = scene::launch(&fixture);
        let mut lines = vec![];
        for input in scene::inputs(&fixture) {
            lines.push(input.clone());
            lines.extend(scene::lines(&scene::give(&mut driver, input)));
        }
        assert_eq!(lines, fixture[1..], "{name}");
    }
}

#[test]
fn a_crash_between_any_two_frames_changes_nothing() {
    for (name, fixture) in scene::all() {
        let inputs = scene::inputs(&fixture);
        let mut driver = scene::launch(&fixture);
        let mut states = vec![];
        let mut outputs: Vec<Vec<Line>> = vec![];
        for input in &inputs {
            states.push(serde_json::to_string(&driver).unwrap());
            outputs.push(scene::lines(&scene::give(&mut driver, input)));
        }
        for (cut, state) in states.iter().enumerate() {
            let mut again: Driver = serde_json::from_str(state).unwrap();
            for (input, output) in inputs[cut..].iter().zip(&outputs[cut..]) {
                assert_eq!(scene::lines(&scene::give(&mut again, input)), *output, "{name} cut at {cut}");
            }
            assert_eq!(again, driver, "{name} cut at {cut}");
        }
    }
}

#[test]
fn calls_of_the_host_are_known_again_after_a_crash() {
    let (_, fixture) = scene::all().into_iter().find(|(name, _)| name == "calls").unwrap();
    let mut driver = scene::launch(&fixture);
    let mut open = vec![];
    let mut seen = 0;
    for input in scene::inputs(&fixture) {
        if let Line::Do { step: scene::Step::Complete { call, .. } } = input {
            open.retain(|(id, _)| id != call);
        }
        open.extend(scene::give(&mut driver, input).calls);
        seen = seen.max(open.len());
        let again: Driver = serde_json::from_str(&serde_json::to_string(&driver).unwrap()).unwrap();
        if !matches!(input, Line::Do { step: scene::Step::Ended }) {
            assert_eq!(again.pending_calls(), open);
        }
    }
    assert!(seen > 0);
}
