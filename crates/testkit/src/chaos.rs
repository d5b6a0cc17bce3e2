//! Chaos: random work over many agents while the daemon is killed at random moments, and the proof that nothing
//! acknowledged was lost or done twice.
//!
//! Workers ([`worker`]) send prompts, some of which have the agent spawn sub-agents and wait for them, answer asks,
//! interrupt, close, reopen and kill, and write down what was acknowledged ([`ledger`]). Meanwhile the daemon is killed and started again. When all is quiet the ledgers are held
//! against the transcripts ([`verdict`]). The same seed makes the same choices; what the machine does between them stays
//! its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

mod ledger;
mod random;
mod verdict;
mod worker;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use consort_model::{Lifecycle, State};

use crate::harness::{Client, Home};
use ledger::Ledger;
use random::Random;
use worker::Worker;

/// How many threads share the agents.
const WORKERS: usize = 4;

/// How long the daemon lives between two kills, at most.
const LONGEST_LIFE: Duration = Duration::from_millis(700);

/// How long the agents may take to come to rest at the end.
const QUIET_LIMIT: Duration = Duration::from_secs(90);

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What the choices follow from.
    pub seed: u64,
    /// How many agents.
    pub agents: usize,
    /// How often the daemon is killed at least.
    pub kills: u32,
    /// How long it goes on at least.
    pub time: Duration,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// How often the daemon was killed.
    pub kills: u32,
    /// Prompts that were acknowledged.
    pub prompts: usize,
    /// Prompts whose call broke.
    pub unsure_prompts: usize,
    /// Answers that were acknowledged.
    pub answers: usize,
    /// Turns that were interrupted.
    pub interrupts: usize,
    /// Agents that were closed, each time counted.
    pub closes: usize,
    /// Children and runners that were killed.
    pub process_kills: usize,
    /// Sub-agents that were spawned.
    pub sub_agents: usize,
}

/// What went wrong.
#[derive(Debug)]
pub struct Failure {
    /// Makes the same choices again.
    pub seed: u64,
    /// Everything that was found.
    pub findings: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chaos with seed {} found {} faults:", self.seed, self.findings.len())?;
        self.findings.iter().take(40).try_for_each(|finding| writeln!(f, "- {finding}"))
    }
}

impl std::error::Error for Failure {}

/// Runs the plan on a home of its own.
pub fn run(plan: Plan) -> Result<Report, Failure> {
    let home = Home::new();
    home.profile(worker::SUB_AGENTS, &["--on-prompt", r#"[[mcp yield_to_parent {"result": "a part"}]]"#]);
    home.start_daemon();
    let stop = AtomicBool::new(false);
    let mut random = Random::new(plan.seed);
    let mut kills = 0;
    let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
        let (home, stop) = (&home, &stop);
        let shares = (0..WORKERS).map(|worker| (worker..plan.agents).step_by(WORKERS).collect::<Vec<_>>());
        let workers: Vec<_> = shares
            .map(|numbers| {
                let worker = Worker::new(home, stop, random.fork(), &numbers);
                scope.spawn(move || worker.work())
            })
            .collect();
        let deadline = Instant::now() + plan.time;
        while (kills < plan.kills || Instant::now() < deadline)
            && !workers.iter().any(|worker| worker.is_finished())
        {
            random.pause(LONGEST_LIFE);
            home.restart();
            kills += 1;
        }
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not fail")).collect()
    });
    let client = home.client();
    let mut findings = come_to_rest(&client);
    for ledger in &ledgers {
        findings.extend(verdict::of(&client, ledger));
    }
    findings.extend(replica_differs(&client));
    let report = Report {
        kills,
        prompts: sum(&ledgers, |ledger| ledger.prompts.iter().filter(|prompt| prompt.acknowledged).count()),
        unsure_prompts: sum(&ledgers, |ledger| {
            ledger.prompts.iter().filter(|prompt| !prompt.acknowledged).count()
        }),
        answers: sum(&ledgers, |ledger| {
            ledger.answers.values().filter(|given| given.acknowledged.is_some()).count()
        }),
        interrupts: sum(&ledgers, |ledger| ledger.interrupts),
        closes: sum(&ledgers, |ledger| ledger.closes),
        process_kills: sum(&ledgers, |ledger| ledger.process_kills),
        sub_agents: client.look(|followed| {
            followed.state.agents.values().filter(|agent| agent.relation.parent().is_some()).count()
        }),
    };
    drop(client);
    // Fails by itself if a process is left over.
    if findings.is_empty() {
        home.finish();
        Ok(report)
    } else {
        home.abandon();
        Err(Failure { seed: plan.seed, findings })
    }
}

fn sum(ledgers: &[Ledger], count: impl Fn(&Ledger) -> usize) -> usize {
    ledgers.iter().map(count).sum()
}

/// Answers what is still asked, stops what hangs, and waits until no agent has anything to do.
fn come_to_rest(client: &Client) -> Vec<String> {
    let deadline = Instant::now() + QUIET_LIMIT;
    loop {
        // The number is taken first: what happens while the asks are answered must not be waited for again.
        let (seq, busy) = client.look(|followed| (followed.state.seq, unrest(&followed.state)));
        if busy.is_empty() {
            return vec![];
        }
        if Instant::now() > deadline {
            return vec![format!("these agents do not come to rest: {busy:?}")];
        }
        worker::settle(client);
        client.wait_until("something happens", |state| {
            (state.seq != seq || unrest(state).is_empty()).then_some(())
        });
    }
}

/// The agents that have something to do, and what.
fn unrest(state: &State) -> Vec<String> {
    let waits = |agent: &&consort_model::Agent| match agent.lifecycle {
        Lifecycle::Queued | Lifecycle::Starting => true,
        Lifecycle::Ready => agent.turn.is_some() || !agent.queue.is_empty() || !agent.asks.is_empty(),
        Lifecycle::Resting | Lifecycle::Failed(_) | Lifecycle::Closed { .. } => false,
    };
    let busy = state.agents.values().filter(waits);
    busy.map(|agent| format!("{} is {}, turn {:?}", agent.name, agent.status().words(), agent.turn)).collect()
}

/// A client that followed must have what a fresh snapshot has.
fn replica_differs(client: &Client) -> Option<String> {
    let fresh = client.snapshot();
    let replica = client.wait_until("the replica is as new as the snapshot", |state| {
        (state.seq >= fresh.seq).then(|| state.clone())
    });
    if replica == fresh {
        return None;
    }
    let differs: Vec<_> =
        fresh.agents.iter().filter(|(id, agent)| replica.agents.get(id) != Some(agent)).collect();
    Some(format!(
        "a replica differs from the snapshot (event {} and {}): {differs:?}",
        replica.seq, fresh.seq
    ))
}
