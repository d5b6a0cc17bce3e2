//! `cargo xtask record`: conversations of the real CLIs with the scripted model, as fixtures for the drivers' tests.
//!
//! The driver itself plays each scenario with the CLI over pipes, without a daemon; so a fixture holds exactly what the
//! driver was given (`do`, `in`) and what it wrote (`out`), and replaying it is exact. What is of this machine or this
//! run (folders, the model's port) is the same or replaced by the same words every time. What the driver makes of it is not
//! recorded: the tests say what is right.

mod play;

pub use play::{Process, act};

use std::path::PathBuf;

use anyhow::{Context, bail};
use consort_drivers::{CallId, CallResult, Launch};
use consort_model::{Answer, DriverKind};
use consort_testkit::clis::{self, Cli};
use consort_testkit::model;
use serde::{Deserialize, Serialize};

use crate::tools::root;

const HELP: &str = "cargo xtask record [claude] [codex] [gemini] [opencode]";

/// One line of a fixture.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "dir", rename_all = "snake_case")]
pub enum Line {
    /// What the driver was made with; the first line.
    Launch { driver: DriverKind, launch: Launch },
    /// What Consort did.
    Do { step: Step },
    /// What the CLI wrote.
    In { frame: String },
    /// What the driver wrote.
    Out { frame: String },
}

/// Something that Consort does with a driver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    Start,
    Prompt { text: String },
    Interrupt,
    Answer { key: String, answer: Answer },
    Complete { call: CallId, result: CallResult },
}

/// Claude behind its ACP adapter tells the ACP driver nothing that Gemini CLI and OpenCode do not.
const RECORDED: [Cli; 4] = [Cli::Claude, Cli::Codex, Cli::Gemini, Cli::OpenCode];

/// One conversation to record.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    prompts: &'static [&'static str],
    /// The person interrupts when this was said.
    interrupt_at: Option<&'static str>,
    /// Which CLIs can play it.
    clis: &'static [Cli],
}

const SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "plain",
        prompts: &["[[thinking]] Good day.", "[[say Grüße, päivää, 你好.]]"],
        interrupt_at: None,
        clis: &RECORDED,
    },
    Scenario {
        name: "shell",
        prompts: &["[[shell-escalated]] Run it."],
        interrupt_at: None,
        clis: &RECORDED,
    },
    Scenario { name: "edit", prompts: &["[[edit]] Change it."], interrupt_at: None, clis: &RECORDED },
    Scenario {
        name: "interrupt",
        prompts: &["[[slow]] Take your time.", "[[say It goes on.]]"],
        interrupt_at: Some("tick 2"),
        clis: &RECORDED,
    },
    // Codex has the tool in its plan mode only, the others not over ACP.
    Scenario {
        name: "question",
        prompts: &["[[question]] Ask me."],
        interrupt_at: None,
        clis: &[Cli::Claude],
    },
];

/// Where the fixtures are.
pub fn folder() -> PathBuf {
    root().join("crates/drivers/tests/fixtures/recorded")
}

/// A fixture's lines.
pub fn read(name: &str) -> anyhow::Result<Vec<Line>> {
    let path = folder().join(format!("{name}.jsonl"));
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    text.lines()
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("{} is not a fixture", path.display()))
        })
        .collect()
}

/// Records all scenarios of the CLIs that are named, or of all.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let unknown = args.iter().find(|arg| Cli::ALL.iter().all(|cli| cli.name() != arg.as_str()));
    if unknown.is_some() {
        bail!("{HELP}");
    }
    let chosen = |cli: &Cli| args.is_empty() || args.iter().any(|arg| arg == cli.name());
    crate::clis::ensure()?;
    let model = model::Server::start()?;
    std::fs::create_dir_all(folder())?;
    for cli in Cli::ALL.into_iter().filter(chosen) {
        for scenario in SCENARIOS.iter().filter(|scenario| scenario.clis.contains(&cli)) {
            let file = folder().join(format!("{cli}-{}.jsonl", scenario.name));
            let lines = record(cli, scenario, &model)
                .with_context(|| format!("{cli} did not play `{}` to its end", scenario.name))?;
            let text = lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?.join("\n");
            std::fs::write(&file, text + "\n")
                .with_context(|| format!("{} cannot be written", file.display()))?;
            println!("{cli}: {} in {} lines", scenario.name, lines.len());
        }
    }
    Ok(())
}

fn record(cli: Cli, scenario: &Scenario, model: &model::Server) -> anyhow::Result<Vec<Line>> {
    // Always the same folder: it is in what the CLIs say, also in pieces that no search would find.
    let scratch = tempfile::Builder::new()
        .prefix("consort-record")
        .rand_bytes(0)
        .tempdir_in("/tmp")
        .context("/tmp/consort-record cannot be made; remove it unless another recording runs")?;
    let (home, work) = (scratch.path().join("home"), scratch.path().join("project"));
    std::fs::create_dir(&work)?;
    std::fs::write(work.join("notes.txt"), "first line\nold line\nlast line\n")?;
    let profile = cli.profile(&model.url(), &home)?;
    let launch = Launch { cwd: work.display().to_string(), ..Launch::default() };
    let lines = play::play(scenario, &profile, launch, &work)?;
    let port = model.address().port();
    lines.iter().map(|line| anonymous(line, port)).collect()
}

/// A line without what is of this machine or this run. The same words for the same things, so that a reply still names
/// what it replies to.
fn anonymous(line: &Line, port: u16) -> anyhow::Result<Line> {
    let replaced = |text: &str| {
        text.replace(&clis::folder().display().to_string(), "/clis")
            .replace(&format!("127.0.0.1:{port}"), "127.0.0.1:1")
    };
    Ok(serde_json::from_str(&replaced(&serde_json::to_string(line)?))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_this_run_is_not_recorded() {
        let frame = format!(
            r#"{{"program":"{}/claude","url":"http://127.0.0.1:4711/v1"}}"#,
            clis::folder().display()
        );
        let line = anonymous(&Line::In { frame }, 4711).unwrap();
        let expected = r#"{"program":"/clis/claude","url":"http://127.0.0.1:1/v1"}"#;
        assert_eq!(line, Line::In { frame: expected.into() });
    }

    #[test]
    fn every_fixture_can_be_read() {
        for scenario in SCENARIOS {
            for cli in scenario.clis {
                let lines = read(&format!("{cli}-{}", scenario.name)).unwrap();
                assert!(matches!(lines[0], Line::Launch { .. }), "{cli} {}", scenario.name);
            }
        }
    }
}
