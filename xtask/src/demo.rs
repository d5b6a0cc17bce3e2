//! Three scripted agents at once on a real daemon: what a fresh machine can show without any agent installed.

use std::process::Command;

use anyhow::Context;

use crate::tools::{self, Programs, build_programs};

const TASK: &str = "Tidy up [[think Which files are there?]] [[tool search output=notes.txt Find files]] \
    [[plan look around|write the note|report]] [[write notes.txt Tidy.]] [[say The note is written.]]";

/// Builds everything and plays a session in a scratch folder, asking for approvals on the terminal.
fn play(programs: &Programs, extra: &[String]) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir().context("no scratch folder can be made")?;
    let home = scratch.path().join("home");
    let work = scratch.path().join("work");
    std::fs::create_dir(&work)?;
    let consort = || {
        let mut command = Command::new(&programs.consort);
        command.env("CONSORT_HOME", &home).current_dir(&work);
        command
    };
    let add = ["profiles", "add", "scripted", "--driver", "acp", "--arg", "agent", "--command"];
    tools::run(consort().args(add).arg(&programs.testkit))?;
    for name in ["reader", "tester"] {
        tools::run(consort().args([
            "new",
            "--profile",
            "scripted",
            "--name",
            name,
            "[[stream n=50 rate=50]] [[say Done.]]",
        ]))?;
    }
    let outcome = tools::run(
        consort().args(["run", "--profile", "scripted", "--name", "writer"]).args(extra).arg(TASK),
    );
    tools::run(consort().arg("agents"))?;
    tools::run(consort().args(["daemon", "stop", "--force"]))?;
    outcome
}

/// `cargo xtask demo`: arguments go to `consort run`.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let programs = build_programs(true)?;
    let unattended = !std::io::IsTerminal::is_terminal(&std::io::stdin());
    let mut extra = args.to_vec();
    if unattended && extra.is_empty() {
        extra = vec!["--permissions".to_owned(), "accept-edits".to_owned()];
    }
    play(&programs, &extra)
}
