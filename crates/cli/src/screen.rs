//! `consort` without a command: the terminal UI.

use std::io::IsTerminal;
use std::process::ExitCode;

use crate::exit::Stop;
use crate::link::{Link, program};
use crate::prompt::working_directory;

/// Whether there is a terminal to show it on.
pub fn is_wanted() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Shows it until a person leaves.
pub fn open() -> Result<ExitCode, Stop> {
    let link = Link::new()?;
    link.home().make().map_err(|error| Stop::failed(error.to_string()))?;
    let cwd = working_directory(None)?;
    consort_tui::open(link.home().clone(), program()?, cwd, None)
        .map_err(|error| Stop::failed(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
