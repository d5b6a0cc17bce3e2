//! `consort agents` with a warm daemon, the whole command, against `true` spawned the same way.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_daemon::client::Client;

use super::Bench;
use super::lab::Lab;
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};

const AGENTS: usize = 5;

/// Runs of each that are not counted, until everything is in memory.
const WARM_UP: usize = 5;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lab = Lab::new(bench)?;
    lab.start()?;
    let mut client = Client::connect(&lab.home)?;
    lab.add_profile(&mut client)?;
    lab.add_agents(&mut client, AGENTS)?;
    let nothing = ["/usr/bin/true", "/bin/true"].map(Path::new).into_iter().find(|path| path.exists());
    let nothing = nothing.context("this system has no `true`")?;
    let (mut measured, mut reference) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + bench.repetitions(250) {
        let agents = time(Command::new(&bench.programs.consort).arg("agents"), &lab)?;
        let baseline = time(Command::new(nothing).arg("agents"), &lab)?;
        if n >= WARM_UP {
            measured.push(agents);
            reference.push(baseline);
        }
    }
    lab.stop()?;
    let (measured, reference) = (Sample::of_durations(&measured), Sample::of_durations(&reference));
    Ok(vec![Line {
        name: "cli-agents".to_owned(),
        measured: format!("{} ms", figure(measured.undisturbed())),
        reference: format!("{} ms", figure(reference.undisturbed())),
        figure: measured.undisturbed() / reference.undisturbed(),
        unit: "x",
        goal: Goal::AtMost(4.0),
        notes: vec![
            format!(
                "the quickest tenth; middle half: {}, reference {}",
                measured.spread(),
                reference.spread()
            ),
            format!("ratio of the medians {}x", figure(measured.median() / reference.median())),
        ],
    }])
}

fn time(command: &mut Command, lab: &Lab) -> anyhow::Result<Duration> {
    command.env("CONSORT_HOME", lab.home.root()).stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let took = started.elapsed();
    if !status.success() {
        bail!("{} failed ({status})", command.get_program().to_string_lossy());
    }
    Ok(took)
}
