//! Going to an agent with a long conversation and scrolling in it: within a frame, and as quick as with a short one.

use std::time::{Duration, Instant};

use consort_testkit::terminal::{Heard, Terminal};

use super::stage::{Stage, last_words, leave};
use super::{LIMIT, compared};
use crate::bench::Bench;
use crate::bench::processes::Activity;
use crate::bench::statistics::{Sample, figure};
use crate::bench::table::{Goal, Line};

const SHORT: usize = 100;
const LONG: usize = 10_000;

/// One frame of a terminal that shows 60 a second.
const FRAME: f64 = 16.0;

/// After this, what a key caused is over.
const AFTER: Duration = Duration::from_millis(60);

/// Pages that are scrolled up, and then down again.
const PAGES: usize = 20;

const NEXT_AGENT: &str = "\x1b[1;3B";
const PREVIOUS_AGENT: &str = "\x1b[1;3A";
const PAGE_UP: &str = "\x1b[5~";
const PAGE_DOWN: &str = "\x1b[6~";

/// What a key cost, in milliseconds.
#[derive(Default)]
struct Costs {
    /// Until the screen shows it.
    seen: Vec<f64>,
    /// The screen's processor time until all is over.
    work: Vec<f64>,
}

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut stage = Stage::new(bench)?;
    stage.talk("short", SHORT)?;
    stage.talk("long", LONG)?;
    let mut terminal = stage.open("long")?;
    let (mut to_short, mut to_long) = (Costs::default(), Costs::default());
    for _ in 0..bench.repetitions(60) {
        to_short.add(&mut terminal, PREVIOUS_AGENT, |screen, _| screen.contains(&last_words("short")))?;
        to_long.add(&mut terminal, NEXT_AGENT, |screen, _| screen.contains(&last_words("long")))?;
    }
    let (mut in_short, mut in_long) = (Costs::default(), Costs::default());
    for _ in 0..bench.repetitions(5) {
        scroll(&mut in_long, &mut terminal)?;
        terminal.write(PREVIOUS_AGENT)?;
        terminal.wait_for(&last_words("short"), LIMIT)?;
        scroll(&mut in_short, &mut terminal)?;
        terminal.write(NEXT_AGENT)?;
        terminal.wait_for(&last_words("long"), LIMIT)?;
    }
    leave(terminal)?;
    let mut lines = to_long.lines("switch", &to_short);
    lines.extend(in_long.lines("scroll a page", &in_short));
    Ok(lines)
}

/// Scrolls up and down again. A short conversation may end before; then nothing changes and nothing is counted.
fn scroll(costs: &mut Costs, terminal: &mut Terminal) -> anyhow::Result<()> {
    for key in [PAGE_UP, PAGE_DOWN] {
        for _ in 0..PAGES {
            costs.add(terminal, key, |screen, before| screen != before)?;
        }
    }
    Ok(())
}

impl Costs {
    /// Presses a key and waits until the screen is as wanted.
    fn add(
        &mut self,
        terminal: &mut Terminal,
        key: &str,
        wanted: impl Fn(&str, &str) -> bool,
    ) -> anyhow::Result<()> {
        let screen = [terminal.pid()];
        let before = terminal.text();
        let activity = Activity::of(&screen);
        let pressed = Instant::now();
        terminal.write(key)?;
        let seen = terminal.wait_until("what the key shows", LIMIT, |screen| wanted(screen, &before))?;
        // Pages that are loaded ahead count too.
        let over = Instant::now() + AFTER;
        while terminal.hear(over)? == Heard::Output {}
        self.seen.push((seen - pressed).as_secs_f64() * 1e3);
        self.work.push(Activity::of(&screen).since(&activity).milliseconds);
        Ok(())
    }

    fn lines(self, what: &str, short: &Self) -> Vec<Line> {
        let seen = Sample::new(self.seen);
        let (work, of_short) = (Sample::new(self.work), Sample::new(short.work.clone()));
        let seen_short = Sample::new(short.seen.clone());
        let name = |which: &str| format!("ui-switch, {what}: {which}");
        let median = |sample: &Sample| format!("median {} ms", figure(sample.median()));
        vec![
            Line::new(name("work"), median(&work), work.percentile(99.0), " ms", Goal::AtMost(FRAME)).noting(
                format!(
                    "processor time of the screen, 99th of 100 of {}; longest {} ms",
                    work.len(),
                    figure(work.max())
                ),
            ),
            Line::new(
                name("until it is seen"),
                median(&seen),
                seen.percentile(99.0),
                " ms",
                Goal::AtMost(FRAME),
            )
            .noting(format!("99th of 100; longest {} ms", figure(seen.max()))),
            compared(
                name("10,000 items to 100"),
                " ms",
                &seen,
                ("with 100 items", &seen_short),
                Goal::AtMost(1.5),
            )
            .noting(format!(
                "until it is seen; work: {} ms, with 100 items {} ms",
                figure(work.median()),
                figure(of_short.median())
            )),
        ]
    }
}
