//! What the commands share: where the project is, and running programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The project's root folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; an error unless it succeeds.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let shown = std::iter::once(program.clone())
        .chain(command.get_args().map(|arg| arg.to_string_lossy().into_owned()))
        .collect::<Vec<_>>()
        .join(" ");
    eprintln!("+ {shown}");
    let status = command.status().with_context(|| format!("{program} cannot be run"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// The folder that cargo builds into.
pub fn build_folder() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from))
}

/// The folder in it for a profile.
pub fn target(release: bool) -> PathBuf {
    build_folder().join(if release { "release" } else { "debug" })
}

/// Builds `consort` and the scripted agent, and tells where they are.
pub fn build_programs(release: bool) -> anyhow::Result<Programs> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "consort-cli", "--package", "consort-testkit", "--bins"]);
    if release {
        build.arg("--release");
    }
    run(&mut build)?;
    let folder = target(release);
    Ok(Programs { consort: folder.join("consort"), testkit: folder.join("consort-testkit") })
}

/// The programs under test.
pub struct Programs {
    pub consort: PathBuf,
    pub testkit: PathBuf,
}
