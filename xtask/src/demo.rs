//! `cargo xtask demo`: builds everything and runs `consort demo`, what a fresh machine can show without any agent installed.

use std::io::IsTerminal;
use std::process::Command;

use crate::tools::{self, build_programs};

/// Arguments go to `consort demo`. Without a terminal it plays by itself.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let programs = build_programs(true)?;
    let mut demo = Command::new(&programs.consort);
    demo.arg("demo").args(args);
    let attended = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !attended && args.is_empty() {
        demo.arg("--headless");
    }
    tools::run(&mut demo)
}
