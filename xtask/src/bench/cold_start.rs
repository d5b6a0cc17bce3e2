//! From starting the daemon to its first answer, against a bare program that opens SQLite and a socket.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use consort_daemon::home::Home;
use consort_daemon::protocol::Call;

use super::Bench;
use super::lab::{RawConnection, request, spawn_until_ready};
use super::statistics::{Sample, figure};
use super::supervise;
use super::table::{Goal, Line};

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let folder = supervise::folder()?;
    let mut fresh = Pair::default();
    let mut existing = Pair::default();
    let repetitions = bench.repetitions(25);
    // The first one reads the programs from disk and is not counted.
    for n in 0..=repetitions {
        let round = folder.path().join(n.to_string());
        std::fs::create_dir(&round)?;
        let (home, reference) = (round.join("h"), round.join("r"));
        for pair in [&mut fresh, &mut existing] {
            let measured = start_daemon(bench, &home)?;
            let reference = start_reference(bench, &reference)?;
            if n > 0 {
                pair.measured.push(measured);
                pair.reference.push(reference);
            }
        }
        std::fs::remove_dir_all(&round)?;
    }
    Ok(vec![fresh.line("cold-start, new home"), existing.line("cold-start, existing home")])
}

#[derive(Default)]
struct Pair {
    measured: Vec<Duration>,
    reference: Vec<Duration>,
}

impl Pair {
    fn line(&self, name: &str) -> Line {
        let (measured, reference) =
            (Sample::of_durations(&self.measured), Sample::of_durations(&self.reference));
        Line {
            name: name.to_owned(),
            measured: format!("{} ms", figure(measured.undisturbed())),
            reference: format!("{} ms", figure(reference.undisturbed())),
            figure: measured.undisturbed() / reference.undisturbed(),
            unit: "x",
            goal: Goal::AtMost(3.0),
            notes: vec![
                format!(
                    "the quickest tenth; middle half: {}, reference {}",
                    measured.spread(),
                    reference.spread()
                ),
                format!("ratio of the medians {}x", figure(measured.median() / reference.median())),
            ],
        }
    }
}

fn start_daemon(bench: &Bench, root: &Path) -> anyhow::Result<Duration> {
    let home = Home::at(root)?;
    let status = request(&Call::Status {})?;
    let stop = request(&Call::Stop { force: true, keep_agents: false })?;
    let started = Instant::now();
    let mut command = Command::new(&bench.programs.consort);
    command.args(["daemon", "run", "--detached"]).env("CONSORT_HOME", root);
    let daemon = Ended(spawn_until_ready(&mut command)?);
    let mut connection = RawConnection::greet(&home)?;
    connection.ask(&status)?;
    let took = started.elapsed();
    connection.ask(&stop)?;
    daemon.wait()?;
    Ok(took)
}

fn start_reference(bench: &Bench, folder: &Path) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let reference = Ended(spawn_until_ready(Command::new(&bench.reference).arg(folder))?);
    RawConnection::connect(&folder.join("s"))?.ask(b"{}\n")?;
    let took = started.elapsed();
    reference.wait()?;
    Ok(took)
}

/// A process that does not outlive this.
struct Ended(Child);

impl Ended {
    fn wait(mut self) -> anyhow::Result<()> {
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // Fails only for a process that has ended and was waited for.
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}
