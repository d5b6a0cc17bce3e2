//! From a key to the character on the screen while nothing else happens, in turns with the others.

use std::time::{Duration, Instant};

use anyhow::Context;
use consort_testkit::model;
use consort_testkit::terminal::Terminal;

use super::peers::{ALL, Peer, places};
use super::stage::{Stage, leave};
use super::{LIMIT, compared, hear_for};
use crate::bench::Bench;
use crate::bench::statistics::{Sample, figure};
use crate::bench::table::{Goal, Line};

/// Between two keys: longer than a frame, so that no key waits for the one before.
pub const APART: Duration = Duration::from_millis(40);

/// Keys after which the line is emptied.
const WORD: usize = 20;

const NAME: &str = "speaker";

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let model = model::Server::start()?;
    let mut stage = Stage::new(bench)?;
    stage.talk(NAME, 100)?;
    let (places, mut lines) = places("ui-keys", &ALL, &model)?;
    let mut ours = (Typist::new(stage.open(NAME)?), Vec::new());
    let mut others = Vec::new();
    for place in &places {
        let running = place.start().with_context(|| place.peer.name())?;
        others.push((running, String::new(), Vec::new()));
    }
    for (running, ..) in &mut others {
        hear_for(&mut running.terminal, Duration::from_secs(1))?;
    }
    for _ in 0..bench.repetitions(200) {
        ours.1.push(ours.0.key()?);
        for (running, typed, times) in &mut others {
            times.push(key(&mut running.terminal, typed)?);
        }
    }
    let typed = Sample::of_durations(&ours.1);
    for ((running, _, times), place) in others.into_iter().zip(&places) {
        drop(running);
        let name = place.peer.name();
        let theirs = Sample::of_durations(&times);
        let goal = if place.peer == Peer::Tmux { Goal::AtMost(3.0) } else { Goal::Below(1.0) };
        let line = compared(format!("ui-keys, to {name}"), " ms", &typed, (name, &theirs), goal);
        lines.push(line.noting(format!(
            "99th of 100: {} ms, {name} {} ms",
            figure(typed.percentile(99.0)),
            figure(theirs.percentile(99.0))
        )));
    }
    leave(ours.0.terminal)?;
    Ok(lines)
}

/// A terminal in whose prompt is typed.
pub struct Typist {
    pub terminal: Terminal,
    typed: String,
}

impl Typist {
    pub fn new(terminal: Terminal) -> Self {
        Self { terminal, typed: String::new() }
    }

    /// Types a character; how long it took to be seen.
    pub fn key(&mut self) -> anyhow::Result<Duration> {
        key(&mut self.terminal, &mut self.typed)
    }
}

/// Types a character after a pause; how long it took to be seen.
fn key(terminal: &mut Terminal, typed: &mut String) -> anyhow::Result<Duration> {
    if typed.len() >= WORD {
        terminal.write("\x15")?;
        terminal.wait_until("an empty prompt", LIMIT, |screen| !screen.contains(typed.as_str()))?;
        typed.clear();
    }
    hear_for(terminal, APART)?;
    let next = b"zqxjvkw"[typed.len() % 7] as char;
    typed.push(next);
    let pressed = Instant::now();
    terminal.write(next.encode_utf8(&mut [0; 4]))?;
    let seen = terminal.wait_for(typed, LIMIT)?;
    Ok(seen - pressed)
}
