//! `cargo xtask screenshots`: the pictures of the documentation, drawn from the real views.
//!
//! The drawing itself is a test of the terminal UI, which otherwise compares the pictures with what is drawn; here it is told
//! to write them.

use crate::tools::{cargo, root, run};

pub fn run_command() -> anyhow::Result<()> {
    let mut test = cargo();
    test.args(["test", "--quiet", "--package", "consort-tui", "--lib", "scenes::screenshots::"]);
    run(test.env("CONSORT_WRITE_SCREENSHOTS", "1"))?;
    println!("the pictures are in {}", root().join("docs/screenshots").display());
    Ok(())
}
