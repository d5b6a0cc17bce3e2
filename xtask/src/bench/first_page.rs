//! The last page of a short and of a long transcript, through the daemon.

use std::time::{Duration, Instant};

use consort_daemon::protocol::Call;
use consort_model::AgentId;
use consort_store::{Change, Store};

use super::Bench;
use super::lab::{Lab, RawConnection, request};
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};
use super::transcripts::{added, create, item, open, runtime};

const SHORT: u64 = 10_000;
const LONG: u64 = 100_000;
const PAGE: u32 = 50;

/// Items of one commit while the transcripts are written.
const CHUNK: u64 = 2000;

/// Pages that are read and not counted, from each.
const WARM_UP: usize = 5;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lab = Lab::new(bench)?;
    lab.home.make()?;
    let store = open(lab.home.root(), |_| {})?;
    let (short, long) = runtime()?.block_on(async {
        anyhow::Ok((fill(&store, "short", SHORT).await?, fill(&store, "long", LONG).await?))
    })?;
    store.close();
    let pages = [short, long].map(|agent| {
        request(&Call::Transcript { agent: agent.to_string(), before: None, from: None, limit: PAGE })
    });
    let [short, long] = pages;
    let (short, long) = (short?, long?);

    let mut first = [Vec::new(), Vec::new()];
    for _ in 0..bench.repetitions(10) {
        lab.start()?;
        // In turns, so that neither is always the one that warms things up for the other.
        let mut connection = RawConnection::greet(&lab.home)?;
        let order =
            if first[0].len() % 2 == 0 { [(0, &short), (1, &long)] } else { [(1, &long), (0, &short)] };
        for (n, page) in order {
            first[n].push(time(&mut connection, page)?);
        }
        drop(connection);
        lab.stop()?;
    }

    lab.start()?;
    let mut connection = RawConnection::greet(&lab.home)?;
    let (mut of_short, mut of_long) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + bench.repetitions(500) {
        let (one, other) = (time(&mut connection, &short)?, time(&mut connection, &long)?);
        if n >= WARM_UP {
            of_short.push(one);
            of_long.push(other);
        }
    }
    lab.stop()?;
    let (of_short, of_long) = (Sample::of_durations(&of_short), Sample::of_durations(&of_long));
    let first = first.map(|durations| Sample::of_durations(&durations));
    Ok(vec![Line {
        name: "first-page".to_owned(),
        measured: format!("{} ms of {LONG}", figure(of_long.median())),
        reference: format!("{} ms of {SHORT}", figure(of_short.median())),
        figure: of_long.median() / of_short.median(),
        unit: "x",
        goal: Goal::AtMost(1.5),
        notes: vec![
            format!("middle half: {}, reference {}", of_long.spread(), of_short.spread()),
            format!(
                "as one of the first two requests of a daemon: {} ms, reference {} ms",
                figure(first[1].median()),
                figure(first[0].median())
            ),
        ],
    }])
}

async fn fill(store: &Store, name: &str, items: u64) -> anyhow::Result<AgentId> {
    let agent = create(store, name).await?;
    for first in (0..items).step_by(CHUNK as usize) {
        let events = (first..items.min(first + CHUNK)).map(|index| added(agent, item(index))).collect();
        store.commit(Change::new(move |_, _| Ok(events))).await?;
    }
    Ok(agent)
}

fn time(connection: &mut RawConnection, page: &[u8]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    connection.ask(page)?;
    Ok(started.elapsed())
}
