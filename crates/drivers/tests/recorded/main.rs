//! Conversations of the real CLIs with the scripted model, played to the drivers.
//!
//! `cargo xtask record` writes the fixtures; a line is what the driver was made with (`launch`), what Consort did (`do`),
//! what the CLI wrote (`in`) and what the driver wrote then (`out`, to be read by people).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod frames;

use consort_drivers::{CallId, CallResult, Driver, Frame, Launch, Output};
use consort_model::{Answer, AskBody, DriverKind, NoticeLevel, Signal, ToolStatus, TurnOutcome};
use serde::Deserialize;

#[derive(Deserialize, Clone, Debug)]
#[serde(tag = "dir", rename_all = "snake_case")]
enum Line {
    Launch { driver: DriverKind, launch: Launch },
    Do { step: Step },
    In { frame: String },
    Out {},
}

#[derive(Deserialize, Clone, Debug)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Step {
    Start,
    Prompt { text: String },
    Interrupt,
    Answer { key: String, answer: Answer },
    Complete { call: CallId, result: CallResult },
}

/// A conversation: its name, the driver as it was made, and what it is given.
struct Recording {
    name: String,
    driver: Driver,
    inputs: Vec<Line>,
}

fn recordings() -> Vec<Recording> {
    let found = frames::all("").into_iter().map(|(name, lines)| {
        let mut lines = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {line}: {error}")));
        let Some(Line::Launch { driver, launch }) = lines.next() else { panic!("{name} has no launch") };
        let inputs = lines.filter(|line| matches!(line, Line::Do { .. } | Line::In { .. })).collect();
        Recording { driver: Driver::new(driver, launch).unwrap(), inputs, name }
    });
    found.collect()
}

fn give(driver: &mut Driver, input: &Line) -> Output {
    match input {
        Line::In { frame } => driver.receive(Frame::Line(frame.as_bytes())),
        Line::Do { step: Step::Start } => driver.start(),
        Line::Do { step: Step::Prompt { text } } => driver.prompt(text, &[]),
        Line::Do { step: Step::Interrupt } => driver.interrupt(),
        Line::Do { step: Step::Answer { key, answer } } => driver.answer(key, answer),
        Line::Do { step: Step::Complete { call, result } } => driver.complete(call, result.clone()),
        Line::Launch { .. } | Line::Out {} => panic!("{input:?} is no input"),
    }
}

/// What a conversation comes to.
#[derive(Default, Debug)]
struct Told {
    text: String,
    thought: String,
    outcomes: Vec<TurnOutcome>,
    approvals: usize,
    questions: usize,
    completed_tools: usize,
    /// Changes of files that tools showed.
    diffs: usize,
    /// What should not be there.
    odd: Vec<String>,
}

fn told(recording: &Recording) -> Told {
    let mut driver = recording.driver.clone();
    let mut told = Told::default();
    for input in &recording.inputs {
        for signal in give(&mut driver, input).signals {
            match signal {
                Signal::Text { text, .. } => told.text.push_str(&text),
                Signal::Thinking { text, .. } => told.thought.push_str(&text),
                Signal::TurnEnded(outcome) => told.outcomes.push(outcome),
                Signal::Ask { body: AskBody::Approval { .. }, .. } => told.approvals += 1,
                Signal::Ask { body: AskBody::Question(_), .. } => told.questions += 1,
                Signal::Tool { call, .. } if call.status == ToolStatus::Completed => {
                    told.completed_tools += 1;
                    told.diffs += call.diffs.len();
                }
                Signal::Notice { level: NoticeLevel::Info, .. } => {}
                Signal::Notice { .. }
                | Signal::Unknown { .. }
                | Signal::StartFailed { .. }
                | Signal::SessionLost
                | Signal::AskWithdrawn { .. } => told.odd.push(format!("{signal:?}")),
                _ => {}
            }
        }
    }
    told
}

#[test]
fn every_cli_has_its_recordings() {
    let names: Vec<String> = recordings().into_iter().map(|recording| recording.name).collect();
    for cli in ["claude", "codex", "gemini", "opencode"] {
        for scenario in ["plain", "shell", "edit", "interrupt"] {
            assert!(names.contains(&format!("{cli}-{scenario}")), "{cli}-{scenario} is not recorded");
        }
    }
}

#[test]
fn recorded_conversations_are_understood() {
    use TurnOutcome::{Completed, Interrupted};
    for recording in recordings() {
        let told = told(&recording);
        let name = &recording.name;
        assert!(told.odd.is_empty(), "{name}: {:#?}", told.odd);
        let (_, scenario) = name.split_once('-').unwrap();
        let said =
            |words: &str| assert!(told.text.contains(words), "{name} does not say {words:?}: {told:#?}");
        let outcomes = match scenario {
            "plain" => {
                assert_eq!(told.text, "I have thought about it.Grüße, päivää, 你好.", "{name}");
                assert!(told.thought.contains("The question is simple"), "{name}: {told:#?}");
                vec![Completed, Completed]
            }
            "shell" => {
                said("made by the shell");
                assert_eq!(told.approvals, 1, "{name}: {told:#?}");
                assert!(told.completed_tools > 0, "{name}: {told:#?}");
                vec![Completed]
            }
            "edit" => {
                said("The edit gave: ");
                assert!(told.diffs > 0, "{name}: {told:#?}");
                vec![Completed]
            }
            "interrupt" => {
                said("tick 1, tick 2");
                assert!(told.text.ends_with("It goes on."), "{name}: {told:#?}");
                vec![Interrupted, Completed]
            }
            "question" => {
                assert_eq!(told.questions, 1, "{name}: {told:#?}");
                said("The answer is: ");
                said("Red");
                vec![Completed]
            }
            _ => panic!("{name}: nothing is known about this scenario"),
        };
        assert_eq!(told.outcomes, outcomes, "{name}");
    }
}

#[test]
fn a_crash_between_any_two_steps_of_a_recording_changes_nothing() {
    for Recording { name, driver: fresh, inputs } in recordings() {
        let mut driver = fresh;
        let (mut states, mut outputs) = (vec![], vec![]);
        for input in &inputs {
            states.push(serde_json::to_string(&driver).unwrap());
            outputs.push(give(&mut driver, input));
        }
        for (cut, state) in states.iter().enumerate() {
            let mut again: Driver = serde_json::from_str(state).unwrap();
            // The state after each step is compared with that of the driver that never crashed, so one step is enough.
            assert_eq!(give(&mut again, &inputs[cut]), outputs[cut], "{name} cut at {cut}");
            let expected =
                states.get(cut + 1).cloned().unwrap_or_else(|| serde_json::to_string(&driver).unwrap());
            assert_eq!(serde_json::to_string(&again).unwrap(), expected, "{name} cut at {cut}");
        }
    }
}
