//! The project's own commands: `cargo xtask test`, `bench`, `chaos`, `screenshots`, `schema`, `demo`.
//!
//! Each does all its set-up itself, so that a fresh machine needs nothing but cargo.

mod agents_table;
mod bench;
mod chaos;
mod check;
mod clis;
mod demo;
mod record;
mod schema;
mod screenshots;
mod tee;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test [NEXTEST ARGS...]   set everything up and run every test
  check                    formatting, lints, and the files made by `schema`, as CI does
  clis                     install the real CLIs that the conformance tests run, into target/clis
  demo                     three scripted agents at once, headless, on a real daemon
  chaos [--minutes N] [--seed N]
                           random work while the daemon and its children are killed
  bench [ROW...] [--json FILE] [--quick]
                           speed and memory, as ratios to a reference in the same run
  record [CLI...]          play with the real CLIs and write what they say as fixtures for the drivers' tests
  agents-table [--check]   write the table of what each CLI can do into docs/agents.md, or check that it is up to date
  screenshots              draw the pictures in docs/screenshots from the real views
  schema [--check]         write the client protocol's schema into docs/, or check that it is up to date
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let outcome = match args.first().map(String::as_str) {
        Some("test") => check::test(rest),
        Some("check") => check::check(),
        Some("clis") => clis::run_command(),
        Some("demo") => demo::run(rest),
        Some("chaos") => chaos::run(rest),
        Some("bench") => bench::run(rest),
        Some("record") => record::run(rest),
        Some("agents-table") => agents_table::run(rest),
        Some("schema") => schema::run(rest),
        Some("screenshots") => screenshots::run_command(),
        // Only for the benchmarks' own use.
        Some("tee") => tee::run(rest),
        Some("driver-replay") => bench::replay_command(rest),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
