//! A screen on which nothing happens: no processor time, no bytes, little memory. The others beside it, at the same time.

use std::time::{Duration, Instant};

use consort_testkit::model;
use consort_testkit::terminal::Terminal;

use super::hear_for;
use super::peers::{ALL, Peer, Running, places};
use super::stage::{Stage, leave};
use crate::bench::Bench;
use crate::bench::processes::{Activity, Memory, ticks};
use crate::bench::statistics::figure;
use crate::bench::table::{Goal, Line};

/// Until what was under way has settled: threads that end when they have nothing to do, caches that are given back.
const SETTLE: Duration = Duration::from_secs(12);

const WATCHED: Duration = Duration::from_secs(20);

/// How long one is listened to before the next, so that none waits for a full terminal.
const SLICE: Duration = Duration::from_millis(50);

const NAME: &str = "speaker";

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let model = model::Server::start()?;
    let mut stage = Stage::new(bench)?;
    stage.talk(NAME, 100)?;
    let mut screen = stage.open(NAME)?;
    let ours = [screen.pid(), stage.daemon];
    let (places, mut lines) = places("ui-idle", &ALL, &model)?;
    let mut peers = Vec::new();
    for place in &places {
        peers.push((place.peer, place.start()?));
    }
    hear_all(&mut screen, &mut peers, SETTLE)?;
    let look = |pids: &[u32]| pids.iter().map(|pid| ticks(*pid)).sum::<u64>();
    let before = (Activity::of(&ours), look(&ours), screen.count());
    let mut others = Vec::new();
    for (_, running) in &peers {
        let pids = running.processes()?;
        others.push((Activity::of(&pids), running.terminal.count(), pids));
    }
    hear_all(&mut screen, &mut peers, WATCHED)?;
    let work = Activity::of(&ours).since(&before.0);
    let spent = look(&ours) - before.1;
    let written = screen.count() - before.2;
    let memory = [Memory::of(ours[0])?, Memory::of(ours[1])?];
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
    let resident = megabytes(memory[0].resident + memory[1].resident);

    let both = |kilobytes: [u64; 2]| {
        let [screen, daemon] = kilobytes.map(|kilobytes| figure(megabytes(kilobytes)));
        format!("screen {screen} MB, daemon {daemon} MB")
    };
    let seconds = WATCHED.as_secs();
    lines.push(
        Line::new(
            "ui-idle, processor time",
            format!("{} ms in {seconds} s", figure(work.milliseconds)),
            spent as f64,
            " ticks",
            Goal::AtMost(0.0),
        )
        .noting(format!("screen and daemon; {} wake-ups", work.wake_ups)),
    );
    lines.push(Line::new(
        "ui-idle, written to the terminal",
        format!("in {seconds} s"),
        written as f64,
        " bytes",
        Goal::AtMost(0.0),
    ));
    lines.push(
        Line::new(
            "ui-idle, memory",
            both(memory.map(|memory| memory.resident)),
            resident,
            " MB",
            Goal::AtMost(40.0),
        )
        .noting(format!(
            "resident, shared pages counted twice; private: {}",
            both(memory.map(|memory| memory.private))
        )),
    );
    for ((peer, running), (activity, count, pids)) in peers.iter().zip(others) {
        let work = Activity::of(&pids).since(&activity);
        let mut theirs = 0;
        for pid in running.processes()? {
            // What ends meanwhile needs no memory any more.
            theirs += Memory::of(pid).map_or(0, |memory| memory.resident);
        }
        let note = format!(
            "{} took {} ms of processor time and wrote {} bytes meanwhile",
            peer.name(),
            figure(work.milliseconds),
            running.terminal.count() - count
        );
        if *peer == Peer::Tmux {
            // It holds no conversation, so its memory says nothing.
            lines.last_mut().into_iter().for_each(|line| line.notes.push(note.clone()));
            continue;
        }
        let name = format!("ui-idle, memory to {}", peer.name());
        let ratio = resident / megabytes(theirs);
        lines.push(
            Line::new(name, format!("{} MB", figure(resident)), ratio, "x", Goal::Below(1.0))
                .against(format!("{} MB {}", figure(megabytes(theirs)), peer.name()))
                .noting(note),
        );
    }
    leave(screen)?;
    Ok(lines)
}

/// Takes in what all of them write for a while.
fn hear_all(screen: &mut Terminal, peers: &mut [(Peer, Running<'_>)], time: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        hear_for(screen, SLICE)?;
        for (_, running) in peers.iter_mut() {
            hear_for(&mut running.terminal, SLICE)?;
        }
    }
    Ok(())
}
