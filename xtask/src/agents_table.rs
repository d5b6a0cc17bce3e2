//! The table of `docs/agents.md`, made from the scenarios that the conformance suite runs.

use anyhow::{Context, bail};
use consort_testkit::conformance::with_table;

use crate::tools::root;

/// Writes the table, or with `--check` fails if the one in `docs/` is not it.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let path = root().join("docs/agents.md");
    let docs =
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let text = with_table(&docs).with_context(|| format!("{} has no place for the table", path.display()))?;
    if args.iter().any(|arg| arg == "--check") {
        if docs != text {
            bail!("docs/agents.md is out of date; `cargo xtask agents-table` writes it");
        }
        return Ok(());
    }
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}
