//! 200 idle agents: what each costs in memory, and that nothing runs while nothing happens.

use std::time::Duration;

use anyhow::ensure;
use consort_daemon::client::Client;

use super::Bench;
use super::lab::Lab;
use super::processes::{Activity, Family, Memory, ticks};
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};

const AGENTS: usize = 200;

/// Until what was under way has settled: threads that end when they have nothing to do, caches that are given back.
const SETTLE: Duration = Duration::from_secs(12);

const WATCHED: Duration = Duration::from_secs(10);

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lab = Lab::new(bench)?;
    let daemon = lab.start()?;
    let mut client = Client::connect(&lab.home)?;
    lab.add_profile(&mut client)?;
    let before = Memory::of(daemon)?;
    lab.add_agents(&mut client, AGENTS)?;
    drop(client);
    std::thread::sleep(SETTLE);
    let family = Family::of(lab.home.root())?;
    ensure!(family.runners.len() == AGENTS, "{} runners were found", family.runners.len());
    ensure!(family.children.len() == AGENTS, "{} children were found", family.children.len());
    let after = Memory::of(daemon)?;
    let mut runners = Vec::new();
    for pid in &family.runners {
        runners.push(Memory::of(*pid)?.private as f64 / 1024.0);
    }

    let mut ours = family.runners.clone();
    ours.push(daemon);
    let ticks_before: u64 = ours.iter().map(|pid| ticks(*pid)).sum();
    let looks = [Activity::of(&ours), Activity::of(&[daemon]), Activity::of(&family.children)];
    std::thread::sleep(WATCHED);
    let work = Activity::of(&ours).since(&looks[0]);
    let of_daemon = Activity::of(&[daemon]).since(&looks[1]);
    let of_children = Activity::of(&family.children).since(&looks[2]);
    let ticks_after: u64 = ours.iter().map(|pid| ticks(*pid)).sum();
    lab.stop()?;

    let per_second = |count: u64| count as f64 / WATCHED.as_secs_f64();
    let runners = Sample::new(runners);
    let grown = |after: u64, before: u64| after.saturating_sub(before) as f64 / AGENTS as f64;
    Ok(vec![
        Line::new(
            "idle-200, daemon per agent",
            format!("{} KB", after.resident),
            grown(after.resident, before.resident),
            " KB",
            Goal::AtMost(64.0),
        )
        .noting(format!(
            "resident without agents {} KB, with {AGENTS} {} KB (shared pages included)",
            before.resident, after.resident
        ))
        .noting(format!(
            "heap and stacks alone: {} KB per agent",
            figure(grown(after.anonymous, before.anonymous))
        )),
        Line::new(
            "idle-200, runner, private",
            format!("{} MB", figure(runners.median())),
            runners.max(),
            " MB",
            Goal::AtMost(4.0),
        )
        .noting(format!("the largest; middle half {}", runners.spread())),
        Line::new(
            "idle-200, processor time",
            format!("{} ms in {} s", figure(work.milliseconds), WATCHED.as_secs()),
            (ticks_after.saturating_sub(ticks_before)) as f64,
            " ticks",
            Goal::AtMost(0.0),
        )
        .noting(format!(
            "of it the daemon {} ms; the scripted children besides: {} ms",
            figure(of_daemon.milliseconds),
            figure(of_children.milliseconds)
        )),
        Line::new(
            "idle-200, wake-ups",
            format!("{} in {} s", work.wake_ups, WATCHED.as_secs()),
            per_second(work.wake_ups),
            "/s",
            Goal::Below(20.0),
        )
        .noting(format!(
            "of it the daemon {}; the scripted children besides: {}",
            of_daemon.wake_ups, of_children.wake_ups
        )),
    ])
}
