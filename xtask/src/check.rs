//! Tests and checks, with all their set-up.

use std::process::Command;
use std::time::Duration;

use anyhow::bail;
use consort_testkit::harness::processes;

use crate::tools::{build_programs, cargo, run};

/// Runs every test. Arguments go to nextest.
pub fn test(args: &[String]) -> anyhow::Result<()> {
    ensure_nextest()?;
    crate::clis::ensure()?;
    // The tests start the real programs, which nextest alone would not build.
    build_programs(false)?;
    let mark = format!("CONSORT_TEST_RUN={}", uuid::Uuid::now_v7());
    let mut tests = cargo();
    tests.args(["nextest", "run", "--workspace", "--all-targets", "--no-fail-fast"]).args(args);
    tests.envs(mark.split_once('='));
    let outcome = run(&mut tests);
    // First, so that a test killed at its limit leaves nothing behind.
    end_leftovers(&mark)?;
    outcome?;
    run(cargo().args(["test", "--quiet", "--workspace", "--doc"]))?;
    crate::schema::run(&["--check".to_owned()])
}

/// Ends whatever the tests started and left running, which is an error.
fn end_leftovers(mark: &str) -> anyhow::Result<()> {
    let mut left = processes::with_mark(mark);
    // What was told to end as its test ended may need a moment.
    left.retain(|process| !processes::wait_until_gone(process.pid, Duration::from_secs(2)));
    if left.is_empty() {
        return Ok(());
    }
    for process in &left {
        eprintln!("left over by a test: {} {}", process.pid, process.command);
        processes::kill(process.pid);
    }
    bail!("the tests left {} processes behind, which were ended", left.len())
}

/// Formatting and lints, as CI demands them.
pub fn check() -> anyhow::Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    crate::schema::run(&["--check".to_owned()])
}

/// Installs nextest where it is missing.
fn ensure_nextest() -> anyhow::Result<()> {
    let there =
        Command::new("cargo-nextest").arg("--version").output().is_ok_and(|output| output.status.success());
    if there {
        return Ok(());
    }
    run(cargo().args(["install", "--locked", "cargo-nextest"]))
}
