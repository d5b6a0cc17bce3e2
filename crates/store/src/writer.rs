//! The writer thread: the one place where changes are decided, committed and applied.
//!
//! It takes what waits in the queue as one batch. Each change is decided against a private state that already holds the
//! batch's earlier changes; then the batch is committed in one transaction; only then the shared state follows, the
//! listener is told, and those who asked get their answers, in this order. If the commit fails, the private state is
//! put back to the shared one, everybody in the batch is told that nothing was changed, and the next batch tries
//! again: when the disk has room once more, work goes on by itself.
//!
//! Invariant: between batches the private and the shared state are equal.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, mem};

use consort_model::event::AgentEvent;
use consort_model::{AgentId, Event, Refusal, RuleId, Stamped, State, Timestamp};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::checkpoint::Checkpointer;
use crate::error::{CommitError, sentence};
use crate::rows::Batch;
use crate::{Change, Committed, Listener, schema};

/// How many changes may wait; who comes later waits outside.
const QUEUE: usize = 1024;
/// A batch is closed at this many changes,
const BATCH_CHANGES: usize = 512;
/// or at this many bytes.
const BATCH_BYTES: usize = 4 << 20;

/// Changes that nobody waits for are committed this long after the commit before, together. A hundred agents that stream
/// then cost a few hundred commits a second instead of a few thousand, and one that streams alone never waits.
const COMPANY: Duration = Duration::from_millis(4);

type Reply<T> = oneshot::Sender<Result<T, CommitError>>;

/// The way to the writer thread.
#[derive(Clone)]
pub(crate) struct Handle {
    jobs: Sender<Job>,
    room: Arc<Semaphore>,
    /// Wakes the thread where it waits for company.
    waker: Thread,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

enum Job {
    Change {
        change: Change,
        reply: Reply<Committed>,
        _room: OwnedSemaphorePermit,
    },
    Setting {
        key: String,
        value: Option<String>,
        reply: Reply<()>,
        _room: OwnedSemaphorePermit,
    },
    #[cfg(test)]
    Interfere(&'static str),
    Stop,
}

impl Job {
    fn may_wait(&self) -> bool {
        matches!(self, Self::Change { change: Change { link: Some(link), .. }, .. } if link.only_follows())
    }
}

impl Handle {
    pub(crate) async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        self.ask(|reply, room| Job::Change { change, reply, _room: room }).await
    }

    pub(crate) async fn set(&self, key: String, value: Option<String>) -> Result<(), CommitError> {
        self.ask(|reply, room| Job::Setting { key, value, reply, _room: room }).await
    }

    async fn ask<T>(
        &self,
        job: impl FnOnce(Reply<T>, OwnedSemaphorePermit) -> Job,
    ) -> Result<T, CommitError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| CommitError::Stopped)?;
        let (reply, answer) = oneshot::channel();
        let job = job(reply, room);
        let may_wait = job.may_wait();
        self.jobs.send(job).map_err(|_| CommitError::Stopped)?;
        if !may_wait {
            self.waker.unpark();
        }
        answer.await.map_err(|_| CommitError::Stopped)?
    }

    #[cfg(test)]
    pub(crate) fn interfere(&self, sql: &'static str) {
        self.jobs.send(Job::Interfere(sql)).unwrap();
    }

    /// Has the queue finished and waits for the end of the thread.
    pub(crate) fn stop(&self) {
        self.room.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // It fails only if the thread is gone already.
        drop(self.jobs.send(Job::Stop));
        self.waker.unpark();
        if thread.join().is_err() {
            tracing::error!("the store's writer thread panicked");
        }
    }
}

/// Starts the thread. `shared` holds the same state as `state`.
pub(crate) fn start(
    connection: Connection,
    path: PathBuf,
    state: State,
    shared: Arc<RwLock<State>>,
    listener: Listener,
) -> io::Result<Handle> {
    let (jobs, queue) = channel();
    let checkpointer = Checkpointer::new(path.clone());
    let mut writer = Writer {
        connection,
        path,
        state,
        shared,
        listener,
        recorded: HashMap::new(),
        checkpointer,
        syncs: true,
        committed_at: Instant::now(),
    };
    let thread = Builder::new().name("store-writer".to_owned()).spawn(move || writer.run(&queue))?;
    let waker = thread.thread().clone();
    let thread = Arc::new(Mutex::new(Some(thread)));
    Ok(Handle { jobs, room: Arc::new(Semaphore::new(QUEUE)), waker, thread })
}

struct Writer {
    connection: Connection,
    path: PathBuf,
    state: State,
    shared: Arc<RwLock<State>>,
    listener: Listener,
    /// How many items each agent had when its record was last written.
    recorded: HashMap<AgentId, u64>,
    checkpointer: Checkpointer,
    /// Whether the connection waits for the disk when it commits.
    syncs: bool,
    committed_at: Instant,
}

/// What a batch gathers besides its rows.
#[derive(Default)]
struct Gathered {
    batch: Batch,
    events: Vec<Arc<Stamped>>,
    answers: Vec<Answer>,
}

/// An answer that waits for the commit.
enum Answer {
    Change(Reply<Committed>, Result<Committed, Refusal>),
    Setting(Reply<()>),
}

impl Answer {
    /// Whoever asked may have stopped waiting; the change stands all the same.
    fn give(self, failure: Option<&CommitError>) {
        match self {
            Self::Change(reply, result) => {
                let result = failure.cloned().map_or_else(|| result.map_err(CommitError::from), Err);
                drop(reply.send(result));
            }
            Self::Setting(reply) => drop(reply.send(failure.cloned().map_or(Ok(()), Err))),
        }
    }
}

impl Writer {
    fn run(&mut self, queue: &Receiver<Job>) {
        let mut stop = false;
        while !stop {
            let Ok(first) = queue.recv() else { break };
            if first.may_wait() {
                self.wait_for_company();
            }
            let mut gathered = Gathered::default();
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    Job::Change { change, reply, .. } => {
                        let result = self.decide(change, &mut gathered);
                        gathered.answers.push(Answer::Change(reply, result));
                    }
                    Job::Setting { key, value, reply, .. } => {
                        gathered.batch.set(key, value);
                        gathered.answers.push(Answer::Setting(reply));
                    }
                    #[cfg(test)]
                    Job::Interfere(sql) => {
                        self.connection.execute_batch(sql).unwrap();
                        break;
                    }
                    Job::Stop => {
                        stop = true;
                        break;
                    }
                }
                if gathered.answers.len() < BATCH_CHANGES && gathered.batch.size() < BATCH_BYTES {
                    next = queue.try_recv().ok();
                }
            }
            self.finish(gathered);
        }
        self.checkpointer.stop();
        if let Err(error) = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "the write-ahead log was not folded into the database; the next start does it");
        }
    }

    /// Lets changes that nobody waits for gather, until one comes that somebody waits for.
    fn wait_for_company(&self) {
        let rest = COMPANY.saturating_sub(self.committed_at.elapsed());
        if !rest.is_zero() {
            thread::park_timeout(rest);
        }
    }

    /// Decides one change and applies it to the private state.
    fn decide(&mut self, change: Change, gathered: &mut Gathered) -> Result<Committed, Refusal> {
        let Change { decide, link, to_disk } = change;
        let at = now();
        let state = &self.state;
        let events = catch_unwind(AssertUnwindSafe(|| decide(state, at))).unwrap_or_else(|_| {
            tracing::error!("a decision panicked and was refused");
            Err(Refusal::Invalid { reason: "this could not be decided: an error inside Consort".to_owned() })
        })?;
        known(state, &events)?;
        let first_seq = state.seq + 1;
        let events: Vec<Arc<Stamped>> =
            (first_seq..).zip(events).map(|(seq, event)| Arc::new(Stamped { seq, at, event })).collect();
        let staged = Batch::stage(&events)
            .map_err(|error| Refusal::Invalid { reason: format!("this cannot be stored: {error}") })?;
        for stamped in &events {
            self.state.apply(stamped);
        }
        gathered.batch.add(staged, link);
        gathered.batch.to_disk |= to_disk;
        gathered.events.extend(events.iter().cloned());
        Ok(Committed { first_seq, events })
    }

    /// Commits a batch and lets everybody know.
    fn finish(&mut self, gathered: Gathered) {
        let Gathered { mut batch, events, answers } = gathered;
        batch.bound_catching_up(&self.state, &self.recorded);
        let failure = if batch.is_empty() && events.is_empty() {
            None
        } else {
            self.commit(&batch).err().map(|error| {
                let reason = sentence(&self.path, &error);
                tracing::error!(%reason, "a batch of changes was not committed");
                self.restore(&events);
                CommitError::Unavailable { reason }
            })
        };
        if failure.is_none() && !events.is_empty() {
            {
                let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
                for stamped in &events {
                    shared.apply(stamped);
                }
            }
            for id in batch.recorded() {
                if let Some(agent) = self.state.agents.get(&id) {
                    self.recorded.insert(id, agent.cursor.items);
                }
            }
            let listener = &self.listener;
            let state = &self.state;
            if catch_unwind(AssertUnwindSafe(|| listener(&events, state))).is_err() {
                tracing::error!("the listener of the store panicked");
            }
        }
        for answer in answers {
            answer.give(failure.as_ref());
        }
    }

    fn commit(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        let result = self.sync(batch.to_disk).and_then(|()| batch.write(&self.connection, &self.state));
        self.committed_at = Instant::now();
        if result.is_ok() {
            self.checkpointer.wrote(batch.pages());
        }
        if result.is_err() && !self.connection.is_autocommit() {
            // After a failed commit SQLite may have rolled back by itself; where it has not and cannot, only a new
            // connection helps.
            if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                tracing::error!(%error, "a failed transaction was not rolled back; the database is opened anew");
                match schema::connect(&self.path) {
                    Ok(connection) => {
                        drop(mem::replace(&mut self.connection, connection));
                        self.syncs = true;
                    }
                    Err(error) => tracing::error!(%error, "the database was not opened anew"),
                }
            }
        }
        result
    }

    /// Has commits wait for the disk, or not.
    fn sync(&mut self, wanted: bool) -> rusqlite::Result<()> {
        if self.syncs != wanted {
            self.connection.pragma_update(None, "synchronous", if wanted { "FULL" } else { "NORMAL" })?;
            self.syncs = wanted;
        }
        Ok(())
    }

    /// Takes back from the private state what these events did.
    fn restore(&mut self, events: &[Arc<Stamped>]) {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        let mut agents: BTreeSet<AgentId> = BTreeSet::new();
        let mut rules: BTreeSet<RuleId> = BTreeSet::new();
        for stamped in events {
            match &stamped.event {
                Event::Agent { agent, .. } => drop(agents.insert(*agent)),
                Event::RuleAdded { rule } => drop(rules.insert(rule.id)),
                Event::RuleRemoved { rule } => drop(rules.insert(*rule)),
                Event::ProfilesChanged { .. } => self.state.profiles.clone_from(&shared.profiles),
                Event::LimitsChanged { .. } => self.state.limits = shared.limits,
            }
        }
        for id in agents {
            match shared.agents.get(&id) {
                Some(agent) => drop(self.state.agents.insert(id, agent.clone())),
                None => drop(self.state.agents.remove(&id)),
            }
        }
        for id in rules {
            match shared.rules.get(&id) {
                Some(rule) => drop(self.state.rules.insert(id, rule.clone())),
                None => drop(self.state.rules.remove(&id)),
            }
        }
        self.state.seq = shared.seq;
    }
}

/// Refuses events about an agent that is not there: they would leave rows behind that belong to nobody.
fn known(state: &State, events: &[Event]) -> Result<(), Refusal> {
    let mut created = BTreeSet::new();
    for event in events {
        match event {
            Event::Agent { agent, change: AgentEvent::Created { .. } } => {
                created.insert(*agent);
            }
            Event::Agent { agent, .. } if !created.contains(agent) => {
                state.agent(*agent)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
