//! claudechic, a terminal UI for Claude Code written in Python: installed when it is first measured, into a virtualenv under
//! `target/`.
//!
//! The versions are those of `xtask/clis/requirements.txt`; a stamp beside the installation holds the file that it was made from.
//! It brings a Claude Code of its own along.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;

use crate::tools::{self, build_folder};

const REQUIREMENTS: &str = include_str!("../../../clis/requirements.txt");

const STAMP: &str = "installed.txt";

/// Where its program is, or why it cannot be had here. What came of the first call holds for all.
pub fn program() -> Result<&'static Path, &'static str> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find().map_err(|error| format!("claudechic is missing: {error:#}")));
    found.as_deref().map_err(String::as_str)
}

fn find() -> anyhow::Result<PathBuf> {
    let folder = build_folder().join("peers/claudechic-venv");
    let program = folder.join("bin/claudechic");
    let stamp = folder.join(STAMP);
    if std::fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == REQUIREMENTS) && program.is_file() {
        return Ok(program);
    }
    // `--clear` takes the stamp with it, so what is broken off is not taken for whole.
    tools::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let requirements = folder.join("requirements.txt");
    let write = |path: &Path| {
        std::fs::write(path, REQUIREMENTS).with_context(|| format!("{} cannot be written", path.display()))
    };
    write(&requirements)?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--no-input", "--disable-pip-version-check", "--requirement"]);
    tools::run(pip.arg(&requirements))?;
    write(&stamp)?;
    Ok(program)
}
