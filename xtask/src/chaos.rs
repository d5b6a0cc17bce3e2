//! Random work while things are killed: the long form of the chaos test.

use std::time::Duration;

use anyhow::{Context, bail};
use consort_testkit::chaos::{Plan, run as run_plan};

use crate::tools::build_programs;

const HELP: &str = "cargo xtask chaos [--minutes N] [--seed N]";

/// Runs chaos for so many minutes (default: 1), round after round, each with the next seed.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let (mut minutes, mut seed) = (1u64, 1u64);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|value| value.parse().ok()).context(HELP);
        match arg.as_str() {
            "--minutes" => minutes = number()?,
            "--seed" => seed = number()?,
            _ => bail!(HELP),
        }
    }
    build_programs(false)?;
    // Rounds, so that what one found is told before the end and can be tried again by its seed alone.
    for round in 0..minutes.max(1) {
        let seed = seed + round;
        let plan = Plan { seed, agents: 20, kills: 50, time: Duration::from_secs(60) };
        println!("round {} of {minutes}, --seed {seed}", round + 1);
        // What the harness finds it tells by a panic; the seed must be told all the same.
        match std::panic::catch_unwind(|| run_plan(plan)) {
            Ok(Ok(report)) => println!("{report:?}"),
            Ok(Err(failure)) => bail!("{failure}"),
            Err(_) => bail!("the harness failed with --seed {seed}; what it found stands above"),
        }
    }
    println!("nothing was lost and nothing was done twice");
    Ok(())
}
