//! From the start of the program to a screen that takes keys: the conversation is there, and a typed character is seen.
//!
//! Warm and cold, in turns with tmux (which starts its server and a shell) and the agents' UIs; with a long conversation it is
//! [`super::history`].

use std::time::{Duration, Instant};

use anyhow::Context;
use consort_testkit::model;

use super::conversation::SPEAKER;
use super::peers::{ALL, Peer, Place, Running, places};
use super::stage::{Stage, last_words, leave};
use super::{LIMIT, compared};
use crate::bench::Bench;
use crate::bench::statistics::Sample;
use crate::bench::table::{Goal, Line};

/// A character that no program shows by itself.
const TYPED: &str = "ø";

const ITEMS: usize = 20;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let model = model::Server::start()?;
    let warm = Opened::new(bench, ITEMS)?;
    let mut cold = Opened::new(bench, ITEMS)?;
    cold.stage.lab.stop_any()?;
    let (places, mut lines) = places("ui-start", &ALL, &model)?;
    let mut peers: Vec<(Place, Vec<Duration>)> = places.into_iter().map(|place| (place, vec![])).collect();
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..=bench.repetitions(20) {
        let ours = [warm.time()?, cold.time_cold()?];
        for (times, time) in times.iter_mut().zip(ours) {
            // The first of each loads the program into memory.
            times.extend((n > 0).then_some(time));
        }
        for (place, times) in &mut peers {
            // The agents take a hundred times as long; a few of each tell enough.
            if place.peer == Peer::Tmux || n <= bench.repetitions(5) {
                let time = time_peer(place).with_context(|| place.peer.name())?;
                times.extend((n > 0).then_some(time));
            }
        }
    }
    let [warm, cold] = times.map(|times| Sample::of_durations(&times));
    for (place, times) in peers {
        let theirs = Sample::of_durations(&times);
        let name = place.peer.name();
        let line = |which: &str, ours: &Sample, goal| {
            compared(format!("ui-start, {which} to {name}"), " ms", ours, (name, &theirs), goal)
        };
        if place.peer == Peer::Tmux {
            lines.push(line("warm", &warm, Goal::AtMost(1.5)));
            lines.push(line("cold", &cold, Goal::AtMost(3.0)));
        } else {
            lines.push(line("cold", &cold, Goal::Below(1.0)));
        }
    }
    Ok(lines)
}

/// A home whose screen was open before, with one conversation.
pub struct Opened {
    stage: Stage,
    /// What the screen remembers, so that every start finds the same.
    memory: Vec<u8>,
}

impl Opened {
    pub fn new(bench: &Bench, items: usize) -> anyhow::Result<Self> {
        let mut stage = Stage::new(bench)?;
        stage.talk(SPEAKER, items)?;
        leave(stage.open(SPEAKER)?)?;
        let memory =
            std::fs::read(stage.lab.home.root().join("ui.json")).context("the screen remembered nothing")?;
        Ok(Self { stage, memory })
    }

    /// From the start of the screen to a typed character on it.
    pub fn time(&self) -> anyhow::Result<Duration> {
        std::fs::write(self.stage.lab.home.root().join("ui.json"), &self.memory)?;
        let (mut terminal, started) = self.stage.start()?;
        terminal.wait_for(&last_words(SPEAKER), LIMIT)?;
        terminal.write(TYPED)?;
        let seen = terminal.wait_for(TYPED, LIMIT)?;
        leave(terminal)?;
        Ok(seen - started)
    }

    /// The same where no daemon runs; ends the one that was started.
    fn time_cold(&mut self) -> anyhow::Result<Duration> {
        let time = self.time()?;
        self.stage.lab.stop_any()?;
        Ok(time)
    }
}

/// The same of another program.
pub fn time_peer(place: &Place) -> anyhow::Result<Duration> {
    time_until_typed(place.start()?)
}

/// From a program's start to a typed character; ends it.
pub fn time_until_typed(mut running: Running<'_>) -> anyhow::Result<Duration> {
    let typed_at = Instant::now();
    running.terminal.write(TYPED)?;
    // Some are drawn before they read keys, and drop what was typed until then.
    let seen = loop {
        if let Ok(seen) = running.terminal.wait_for(TYPED, Duration::from_millis(300)) {
            break seen;
        }
        if typed_at.elapsed() > LIMIT {
            anyhow::bail!("what is typed is not shown");
        }
        running.terminal.write(TYPED)?;
    };
    Ok(seen - running.started)
}
