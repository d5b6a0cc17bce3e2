//! Conversations as data: what the agent writes and what Consort does, one step a line, in `fixtures/*.jsonl`.

use std::path::Path;

use consort_drivers::{Driver, Frame, Launch, Output};
use consort_model::{Answer, DriverKind, PermissionMode};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The agent writes this.
    In(Value),
    Start,
    Prompt(String),
    Interrupt,
    Answer(String, Answer),
    Choose(String, String),
    Permissions(PermissionMode),
}

/// Every conversation with its name.
pub fn all() -> Vec<(String, Vec<Step>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude/fixtures");
    let mut scenes: Vec<(String, Vec<Step>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let steps = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")));
            (path.file_stem().unwrap().to_string_lossy().into_owned(), steps.collect())
        })
        .collect();
    scenes.sort_by(|a, b| a.0.cmp(&b.0));
    scenes
}

pub fn driver() -> Driver {
    Driver::new(DriverKind::Claude, Launch { cwd: "/project".into(), ..Launch::default() }).unwrap()
}

pub fn give(driver: &mut Driver, step: &Step) -> Output {
    match step {
        Step::In(message) => driver.receive(Frame::Line(message.to_string().as_bytes())),
        Step::Start => driver.start(),
        Step::Prompt(text) => driver.prompt(text, &[]),
        Step::Interrupt => driver.interrupt(),
        Step::Answer(key, answer) => driver.answer(key, answer),
        Step::Choose(option, value) => driver.choose(option, value).unwrap(),
        Step::Permissions(permissions) => driver.set_permissions(*permissions),
    }
}
