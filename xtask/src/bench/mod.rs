//! `cargo xtask bench`: speed and memory.
//!
//! Every figure is a ratio to a reference that was measured in the same run, in turns with it, or a count of memory,
//! processor time or wake-ups; so it means the same on any machine. Each row is a module of its own. The work is done by
//! a release build of this program, in a process that another one supervises; a debug one only builds everything and
//! hands over.

mod added;
mod bare;
mod cli_agents;
mod cold_start;
mod driver;
mod first_page;
mod idle;
mod lab;
mod processes;
mod statistics;
mod stream;
mod supervise;
mod table;
mod team;
mod team_tool;
mod throughput;
mod transcripts;
mod ui;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use crate::tools::{self, Programs, cargo, target};
use table::Line;

pub use driver::replay_command;

/// What every row is given.
pub struct Bench {
    programs: Programs,
    /// What a cold start is measured against.
    reference: PathBuf,
    /// Fewer repetitions.
    quick: bool,
}

impl Bench {
    /// A number of repetitions, or fewer.
    fn repetitions(&self, usual: usize) -> usize {
        if self.quick { usual.div_ceil(5) } else { usual }
    }
}

type Row = (&'static str, fn(&Bench) -> anyhow::Result<Vec<Line>>);

const ROWS: [Row; 17] = [
    ("cold-start", cold_start::run),
    ("cli-agents", cli_agents::run),
    ("idle-200", idle::run),
    ("stream-100", stream::run),
    ("durable-throughput", throughput::run),
    ("first-page", first_page::run),
    ("driver", driver::run),
    ("added", added::run),
    ("team-tool", team_tool::run),
    ("team", team::run),
    ("ui-start", ui::start::run),
    ("ui-history", ui::history::run),
    ("ui-idle", ui::idle::run),
    ("ui-keys", ui::keys::run),
    ("ui-switch", ui::switch::run),
    ("ui-stream", ui::stream::run),
    ("ui-many", ui::many::run),
];

#[derive(Default)]
struct Arguments {
    rows: Vec<Row>,
    json: Option<PathBuf>,
    quick: bool,
}

fn parse(args: &[String]) -> anyhow::Result<Arguments> {
    let mut parsed = Arguments::default();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => parsed.quick = true,
            "--json" => parsed.json = Some(words.next().context("--json needs a file")?.into()),
            name => match ROWS.iter().find(|(row, _)| *row == name) {
                Some(row) => parsed.rows.push(*row),
                None => {
                    bail!("there is no row `{name}`; the rows are {}", ROWS.map(|(row, _)| row).join(", "))
                }
            },
        }
    }
    if parsed.rows.is_empty() {
        parsed.rows = ROWS.to_vec();
    }
    Ok(parsed)
}

pub fn run(args: &[String]) -> anyhow::Result<()> {
    let arguments = parse(args)?;
    if cfg!(debug_assertions) {
        tools::build_programs(true)?;
        tools::run(cargo().args(["build", "--quiet", "--release", "--package", "xtask", "--bins"]))?;
        let released = target(true).join("xtask");
        let error = Command::new(&released).arg("bench").args(args).exec();
        return Err(error).with_context(|| format!("{} cannot be run", released.display()));
    }
    if !supervise::is_worker() {
        return supervise::run(args);
    }
    let folder = target(true);
    let bench = Bench {
        programs: Programs { consort: folder.join("consort"), testkit: folder.join("consort-testkit") },
        reference: folder.join("bench-reference"),
        quick: arguments.quick,
    };
    let mut lines = Vec::new();
    for (name, measure) in arguments.rows {
        eprintln!("{name} ...");
        lines.extend(measure(&bench).with_context(|| format!("the row {name} was not measured"))?);
    }
    print!("{}", table::render(&lines));
    let json = serde_json::to_string_pretty(&table::json(&lines))?;
    match arguments.json {
        Some(file) => std::fs::write(&file, json + "\n")
            .with_context(|| format!("{} cannot be written", file.display()))?,
        None => println!("{json}"),
    }
    let missed = lines.iter().filter(|line| !line.met()).count();
    if missed > 0 {
        bail!("{missed} of {} goals were missed", lines.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn rows_and_options_may_come_in_any_order() {
        let parsed = parse(&words("idle-200 --json out.json --quick cold-start")).unwrap();
        let names: Vec<&str> = parsed.rows.iter().map(|(name, _)| *name).collect();
        assert_eq!((names, parsed.quick), (vec!["idle-200", "cold-start"], true));
        assert_eq!(parsed.json, Some("out.json".into()));
        assert_eq!(parse(&[]).unwrap().rows.len(), ROWS.len());
    }

    #[test]
    fn an_unknown_row_is_refused_with_those_there_are() {
        let error = parse(&words("warm-start")).err().unwrap();
        assert!(error.to_string().contains("cold-start, cli-agents"), "{error}");
    }
}
