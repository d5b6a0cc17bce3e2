//! Installs the real CLIs for the conformance tests: pinned versions, from npm, into a folder under `target/`.
//!
//! The versions are those of `xtask/clis/package.json`. A stamp beside the installation holds the file that it was made
//! from, so a second run costs nothing and a changed version is installed anew. No lock file is kept: it would name the
//! registry of the machine that wrote it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use consort_testkit::clis::{self, Cli};

use crate::tools::run;

const STAMP: &str = "installed.json";

/// `cargo xtask clis`: installs what is missing.
pub fn run_command() -> anyhow::Result<()> {
    let folder = clis::folder();
    if !is_installed(&folder) {
        install(&folder)?;
    }
    for cli in Cli::ALL {
        println!("{cli} {}: {}", cli.version(), cli.program()?.display());
    }
    Ok(())
}

/// For `cargo xtask test`: the tests of the CLIs are skipped where these cannot be installed, except in CI.
pub fn ensure() -> anyhow::Result<()> {
    let folder = clis::folder();
    if is_installed(&folder) {
        return Ok(());
    }
    match install(&folder) {
        Err(error) if std::env::var("CI").as_deref() != Ok("true") => {
            eprintln!("xtask: the tests of the real CLIs are skipped: {error:#}");
            Ok(())
        }
        outcome => outcome,
    }
}

fn is_installed(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == stamp_text())
        && Cli::ALL.into_iter().all(|cli| cli.program().is_ok())
        && clis::mcp_suite().is_some()
}

fn install(folder: &Path) -> anyhow::Result<()> {
    ensure_npm()?;
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    let stamp = folder.join(STAMP);
    // An installation that is broken off is not to be taken for a whole one.
    if stamp.exists() {
        std::fs::remove_file(&stamp).with_context(|| format!("{} cannot be removed", stamp.display()))?;
    }
    install_packages(folder, clis::PACKAGES, &[])?;
    // Without the CLI of its own: the tests give it theirs.
    install_packages(&Cli::ClaudeAcp.folder(), clis::ADAPTER_PACKAGES, &["--omit=optional"])?;
    install_packages(&clis::mcp_suite_folder(), clis::MCP_SUITE_PACKAGES, &[])?;
    for cli in Cli::ALL {
        check_version(cli)?;
    }
    write(&stamp, &stamp_text())
}

/// What an installation was made from.
fn stamp_text() -> String {
    [clis::PACKAGES, clis::ADAPTER_PACKAGES, clis::MCP_SUITE_PACKAGES].concat()
}

fn install_packages(folder: &Path, packages: &str, options: &[&str]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    write(&folder.join("package.json"), packages)?;
    let mut npm = Command::new("npm");
    npm.arg("install").arg("--prefix").arg(folder).current_dir(folder);
    npm.args(["--no-audit", "--no-fund", "--no-package-lock", "--no-progress", "--no-update-notifier"]);
    npm.args(["--loglevel", "error"]).args(options);
    run(&mut npm)
}

fn check_version(cli: Cli) -> anyhow::Result<()> {
    let program = cli.program()?;
    let said = if cli == Cli::ClaudeAcp {
        // It takes no arguments.
        let path = cli.folder().join("node_modules").join(cli.package()).join("package.json");
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?
    } else {
        let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("{} cannot be run", program.display()))?;
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    if !said.contains(&cli.version()) {
        bail!("{} should be version {} and says {:?}", program.display(), cli.version(), said.trim());
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// npm, by the system's package manager where that is allowed.
fn ensure_npm() -> anyhow::Result<()> {
    let there = |program| {
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        output.is_ok_and(|output| output.status.success())
    };
    if there("node") && there("npm") {
        return Ok(());
    }
    let root = rustix::process::geteuid().is_root();
    if !root || !there("apt-get") {
        bail!(
            "node and npm are missing; install them with the system's package manager, then run `cargo xtask clis`"
        );
    }
    run(Command::new("apt-get").args(["update", "--quiet=2"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet=2", "--no-install-recommends", "nodejs", "npm"]);
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}
