//! A hundred agents that stream, one of them on the screen: what that costs the screen, and how long a key takes meanwhile.

use std::time::{Duration, Instant};

use consort_daemon::client::Client;
use consort_model::AgentId;
use consort_testkit::terminal::Terminal;

use super::keys::Typist;
use super::stage::{Stage, leave};
use super::{MARKDOWN, TOKEN, hear_for};
use crate::bench::Bench;
use crate::bench::lab::Lab;
use crate::bench::processes::{Activity, Machine};
use crate::bench::statistics::{Sample, figure};
use crate::bench::table::{Goal, Line};

const AGENTS: usize = 100;

/// Deltas a second of each agent.
const RATE: usize = 200;

/// How long is streamed before anything is counted, and how long is counted.
const BEGIN: Duration = Duration::from_secs(2);
const WATCHED: Duration = Duration::from_secs(8);

const NAME: &str = "speaker";

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut stage = Stage::new(bench)?;
    let mut client = Client::connect(&stage.lab.home)?;
    let hidden = stage.lab.add_agents(&mut client, AGENTS - 1)?;
    let shown = stage.talk(NAME, 20)?;
    let mut terminal = stage.open(NAME)?;
    let all: Vec<AgentId> = hidden.iter().copied().chain([shown]).collect();

    let alone = watch(&mut stage, &mut terminal, &[shown])?;
    let machine = Machine::now();
    let among = watch(&mut stage, &mut terminal, &all)?;
    let machine = Machine::now().since(machine);
    let mut typist = Typist::new(terminal);
    let keys = bench.repetitions(300);
    let seconds = keys as f64 * 0.07 + 4.0;
    begin(&mut stage, &all, seconds)?;
    hear_for(&mut typist.terminal, BEGIN)?;
    let mut times = Vec::new();
    for _ in 0..keys {
        times.push(typist.key()?);
    }
    leave(typist.terminal)?;
    let times = Sample::of_durations(&times);
    let busy = machine.busy as f64 / (machine.busy + machine.idle).max(1) as f64;
    Ok(vec![
        Line::new(
            "ui-many, screen with 100 agents to one",
            format!("{} ms a second", figure(among)),
            among / alone,
            "x",
            Goal::AtMost(3.0),
        )
        .against(format!("{} ms a second", figure(alone)))
        .noting(format!(
            "processor time of the screen; {RATE} deltas a second from each agent, one agent visible; the machine is busy to {} %",
            figure(busy * 100.0)
        )),
        Line::new(
            "ui-many, key to character",
            format!("median {} ms", figure(times.median())),
            times.percentile(99.0),
            " ms",
            Goal::AtMost(16.0),
        )
        .noting(format!(
            "99th of 100 of {} while {AGENTS} agents stream; 90th {} ms, longest {} ms",
            times.len(),
            figure(times.percentile(90.0)),
            figure(times.max())
        )),
    ])
}

/// Lets agents stream for so many seconds.
fn begin(stage: &mut Stage, agents: &[AgentId], seconds: f64) -> anyhow::Result<()> {
    let text = MARKDOWN.replace('\n', "\\n");
    let count = (seconds * RATE as f64) as usize;
    for agent in agents {
        Lab::send(
            &mut stage.client,
            *agent,
            &format!("[[stream n={count} rate={RATE} size={TOKEN} {text}]]"),
        )?;
    }
    Ok(())
}

/// The screen's processor time while agents stream, in milliseconds a second.
fn watch(stage: &mut Stage, terminal: &mut Terminal, agents: &[AgentId]) -> anyhow::Result<f64> {
    begin(stage, agents, (BEGIN + WATCHED).as_secs_f64() + 1.0)?;
    hear_for(terminal, BEGIN)?;
    let (before, from) = (Activity::of(&[terminal.pid()]), Instant::now());
    hear_for(terminal, WATCHED)?;
    let work = Activity::of(&[terminal.pid()]).since(&before);
    let took = from.elapsed();
    // Until all have ended.
    terminal.wait_until("an end of the work", super::LIMIT, |screen| !screen.contains("working"))?;
    hear_for(terminal, Duration::from_secs(1))?;
    Ok(work.milliseconds / took.as_secs_f64())
}
