//! Scenes: what the person and the host do in a recorded conversation, and the file it is kept in.
//!
//! A fixture has one JSON object per line. `launch` and `do` are given to the driver, `in` are the agent's lines; `out`
//! and `signal` are what the driver made of them.

use std::path::{Path, PathBuf};

use consort_drivers::{CallId, CallResult, Driver, Frame, Launch, Output};
use consort_model::{Answer, DriverKind};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "dir", rename_all = "snake_case")]
pub enum Line {
    Launch {
        launch: Launch,
    },
    Do {
        step: Step,
    },
    In {
        frame: String,
    },
    Out {
        frame: String,
    },
    /// As Rust shows it; it is compared and read, never parsed.
    Signal {
        signal: String,
    },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    Start,
    Prompt { text: String },
    Interrupt,
    Answer { key: String, answer: Answer },
    Choose { option: String, value: String },
    Complete { call: CallId, result: CallResult },
    Farewell,
    Ended,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// All fixtures by name.
pub fn all() -> Vec<(String, Vec<Line>)> {
    let mut fixtures: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| {
            let lines = std::fs::read_to_string(&path).unwrap();
            let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), lines)
        })
        .collect();
    fixtures.sort_by(|a, b| a.0.cmp(&b.0));
    fixtures
}

pub fn launch(lines: &[Line]) -> Driver {
    let launch = lines.iter().find_map(|line| match line {
        Line::Launch { launch } => Some(launch.clone()),
        _ => None,
    });
    Driver::new(DriverKind::Acp, launch.unwrap()).unwrap()
}

/// What is given to the driver, in order.
pub fn inputs(lines: &[Line]) -> Vec<&Line> {
    lines.iter().filter(|line| matches!(line, Line::Do { .. } | Line::In { .. })).collect()
}

pub fn give(driver: &mut Driver, input: &Line) -> Output {
    match input {
        Line::In { frame } => driver.receive(Frame::Line(frame.as_bytes())),
        Line::Do { step } => act(driver, step),
        other => panic!("{other:?} is no input"),
    }
}

pub fn act(driver: &mut Driver, step: &Step) -> Output {
    match step {
        Step::Start => driver.start(),
        Step::Prompt { text } => driver.prompt(text, &[]),
        Step::Interrupt => driver.interrupt(),
        Step::Answer { key, answer } => driver.answer(key, answer),
        Step::Choose { option, value } => driver.choose(option, value).unwrap(),
        Step::Complete { call, result } => driver.complete(call, result.clone()),
        Step::Farewell => Output { frames: driver.farewell().into_iter().collect(), ..Output::default() },
        Step::Ended => driver.ended(),
    }
}

/// An output as the lines of a fixture.
pub fn lines(output: &Output) -> Vec<Line> {
    let frames = output.frames.iter().map(|frame| {
        let frame = std::str::from_utf8(frame).unwrap().trim_end_matches('\n');
        // A new version of Consort needs no new recording.
        let version = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
        Line::Out { frame: frame.replace(version, "\"version\":\"$VERSION\"") }
    });
    let signals = output.signals.iter().map(|signal| Line::Signal { signal: format!("{signal:?}") });
    frames.chain(signals).collect()
}
