//! Committed items per second through the store, against raw inserts of the same rows in batches of the same sizes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use consort_model::AgentId;
use consort_store::{Change, DATABASE_FILE, Store};
use rusqlite::{Connection, params};

use super::Bench;
use super::statistics::{Sample, figure};
use super::supervise;
use super::table::{Goal, Line};
use super::transcripts::{added, create, item, open, runtime};

/// Agents that commit at the same time, each waiting for its last item before it hands over the next.
const SUBMITTERS: usize = 64;
const ITEMS_EACH: u64 = 200;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let (mut measured, mut reference, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut batches = Vec::new();
    for n in 0..=bench.repetitions(25) {
        let folder = supervise::folder()?;
        let (through_store, sizes) = through_store(&folder.path().join("m"))?;
        let raw = raw(&folder.path().join("r"), &sizes)?;
        if n > 0 {
            measured.push(through_store);
            reference.push(raw);
            ratios.push(through_store / raw);
            batches.extend(sizes.iter().map(|size| *size as f64));
        }
    }
    let (measured, reference) = (Sample::new(measured), Sample::new(reference));
    let (ratios, batches) = (Sample::new(ratios), Sample::new(batches));
    Ok(vec![Line {
        name: "durable-throughput".to_owned(),
        measured: format!("{} items/s", figure(measured.median())),
        reference: format!("{} items/s", figure(reference.median())),
        figure: measured.median() / reference.median(),
        unit: "x",
        goal: Goal::AtLeast(0.5),
        notes: vec![
            format!("middle half: {}, reference {}", measured.spread(), reference.spread()),
            format!("ratios of the single runs: {}", ratios.spread()),
            format!(
                "{SUBMITTERS} at once; items in a commit: middle half {}, at most {}",
                batches.spread(),
                batches.max()
            ),
        ],
    }])
}

/// Items per second, and how many were in each commit.
fn through_store(folder: &Path) -> anyhow::Result<(f64, Vec<usize>)> {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&sizes);
    let store = open(folder, move |size| heard.lock().unwrap_or_else(PoisonError::into_inner).push(size))?;
    let runtime = runtime()?;
    let rate = runtime.block_on(async {
        let mut agents = Vec::new();
        for n in 0..SUBMITTERS {
            agents.push(create(&store, &format!("a{n}")).await?);
        }
        sizes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let started = Instant::now();
        let tasks: Vec<_> = agents.into_iter().map(|id| tokio::spawn(submit(store.clone(), id))).collect();
        for task in tasks {
            task.await??;
        }
        anyhow::Ok((SUBMITTERS as u64 * ITEMS_EACH) as f64 / started.elapsed().as_secs_f64())
    })?;
    store.close();
    let sizes = sizes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((rate, sizes))
}

async fn submit(store: Store, agent: AgentId) -> anyhow::Result<()> {
    for index in 0..ITEMS_EACH {
        store.commit(Change::new(move |_, _| Ok(vec![added(agent, item(index))]))).await?;
    }
    Ok(())
}

/// One row of the table of items.
struct RawRow {
    agent: [u8; 16],
    index: i64,
    at: i64,
    body: String,
}

/// Items per second of inserts into the same table with nothing around it.
fn raw(folder: &Path, sizes: &[usize]) -> anyhow::Result<f64> {
    // The store makes the table, so that it is the same one.
    open(folder, |_| {})?.close();
    let database = Connection::open(folder.join(DATABASE_FILE))?;
    database.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.pragma_update(None, "cache_size", -2048)?;
    database.pragma_update_and_check(None, "wal_autocheckpoint", 2000, |_| Ok(()))?;
    let agents: Vec<[u8; 16]> = (0..SUBMITTERS).map(|_| uuid::Uuid::now_v7().into_bytes()).collect();
    let mut rows = Vec::new();
    for index in 0..ITEMS_EACH {
        let item = item(index);
        let body = serde_json::to_string(&item.body)?;
        let index = i64::try_from(index).context("too many items")?;
        rows.extend(agents.iter().map(|agent| RawRow {
            agent: *agent,
            index,
            at: item.at.0,
            body: body.clone(),
        }));
    }
    let mut rest = rows.as_slice();
    let started = Instant::now();
    for size in sizes {
        let (batch, later) = rest.split_at((*size).min(rest.len()));
        rest = later;
        database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut insert = database.prepare_cached(
            "INSERT INTO items (agent, idx, turn, at, done, within, kind, body)
             VALUES (?1, ?2, NULL, ?3, 1, NULL, 'text', ?4)",
        )?;
        for row in batch {
            insert.execute(params![row.agent, row.index, row.at, row.body])?;
        }
        database.prepare_cached("COMMIT")?.execute([])?;
    }
    Ok(rows.len() as f64 / started.elapsed().as_secs_f64())
}
