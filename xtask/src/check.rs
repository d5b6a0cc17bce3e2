//! Tests and checks, with all their set-up.

use std::process::Command;

use crate::tools::{build_programs, cargo, run};

/// Runs every test. Arguments go to nextest.
pub fn test(args: &[String]) -> anyhow::Result<()> {
    ensure_nextest()?;
    crate::clis::ensure()?;
    // The tests start the real programs, which nextest alone would not build.
    build_programs(false)?;
    run(cargo().args(["nextest", "run", "--workspace", "--all-targets", "--no-fail-fast"]).args(args))?;
    run(cargo().args(["test", "--quiet", "--workspace", "--doc"]))?;
    crate::schema::run(&["--check".to_owned()])
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
