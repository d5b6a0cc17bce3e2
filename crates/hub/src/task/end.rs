//! The end of a task: what the process said last is kept, the agent fails or is let go, and no process stays behind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use consort_drivers::{Driver, Output};
use consort_model::{AgentId, Failure, Signal, State, Timestamp, decide};
use consort_runner::client::{Receiver, Sender};
use consort_runner::protocol::{Exit, FromRunner, Record, RecordBody, Stop, Welcome};
use consort_runner::spec::StopLimits;
use consort_runner::{journal, sweep};
use consort_store::{CommitError, LinkChange};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Ending, Process, RETRY_INTERVAL, Task, change, current, ends_of_tools, of};
use crate::assemble::Assembler;
use crate::shared::{Decide, PROCESS_MARK, Shared};
use crate::terminals::Terminals;

/// How long a runner may take to tell the end of stderr.
const TAIL_LIMIT: Duration = Duration::from_secs(2);

/// How long a runner may take to end a process tree; its own steps are shorter.
const STOP_LIMIT: Duration = Duration::from_secs(30);

impl Process {
    /// Ends the task in the way that `ending` says.
    pub(super) async fn end(mut self, ending: Ending) {
        let failure = match ending {
            Ending::Detached | Ending::StoreClosed => return,
            Ending::Stopped => None,
            Ending::Exited(exit) => {
                let mut failure = Task::failure(exit_message(exit));
                match exit {
                    Exit::Code(code) => failure.exit_code = Some(code),
                    Exit::Signal(signal) => failure.signal = Some(signal),
                    Exit::Unknown => {}
                }
                failure.stderr_tail = self.stderr_tail().await;
                Some(failure)
            }
            Ending::Useless(message) => {
                let mut failure = Task::failure(message);
                failure.stderr_tail = self.stderr_tail().await;
                Some(failure)
            }
            Ending::StartFailed(message) => Some(Task::failure(message)),
            Ending::RunnerGone => {
                let left = salvaged(&self.dir, self.next_offset).await;
                let mut last = signals_of(&mut self.driver, &mut self.assembler, left);
                last.extend(self.driver.ended().signals);
                let failure = Task::failure("its runner was killed, and its process with it".to_owned());
                settle(&self.shared, self.id, self.generation, last, Some(failure)).await;
                return self.leave_nothing().await;
            }
        };
        // Asked before the driver is told of the end, after which it has nothing more to say.
        let farewell = self.driver.farewell();
        let last = self.driver.ended().signals;
        settle(&self.shared, self.id, self.generation, last, failure).await;
        self.terminals.release_all().await;
        match self.exit_offset {
            Some(offset) => {
                if let Err(error) = self.sender.confirm(offset).await {
                    tracing::debug!(agent = %self.id, %error, "the runner was gone already");
                }
            }
            None => {
                stop_runner(&self.sender, &mut self.receiver, farewell).await;
            }
        }
        self.leave_nothing().await;
    }

    /// The end of what the process wrote to stderr.
    async fn stderr_tail(&mut self) -> String {
        let ask = async {
            self.sender.stderr_tail().await.ok()?;
            let mut messages = Vec::new();
            loop {
                self.receiver.next_batch(&mut messages).await.ok()?;
                let tail = messages.drain(..).find_map(|message| match message {
                    FromRunner::StderrTail { text } => Some(text),
                    _ => None,
                });
                if tail.is_some() {
                    return tail;
                }
            }
        };
        timeout(TAIL_LIMIT, ask).await.ok().flatten().unwrap_or_default()
    }

    async fn leave_nothing(&self) {
        self.terminals.release_all().await;
        leave_nothing(self.id, self.generation, &self.dir).await;
    }
}

impl Task {
    /// The agent fails because no process could be started or found.
    pub(super) async fn fail(&self, message: String) {
        settle(&self.shared, self.id, self.generation, vec![], Some(Self::failure(message))).await;
        leave_nothing(self.id, self.generation, &self.dir).await;
    }

    /// The agent fails because its runner is gone; what its process said before is kept.
    pub(super) async fn salvage(&self, mut driver: Driver, left: Vec<Record>, message: String) {
        let mut last = signals_of(&mut driver, &mut Assembler::default(), left);
        last.extend(driver.ended().signals);
        settle(&self.shared, self.id, self.generation, last, Some(Self::failure(message))).await;
    }

    /// Forgets how to reach a process that never was.
    pub(super) async fn forget(&self) {
        settle(&self.shared, self.id, self.generation, vec![], None).await;
    }
}

/// Ends what is left of a process that its agent does not want any more.
pub(super) async fn clear_away(
    shared: &Arc<Shared>,
    id: AgentId,
    generation: u32,
    dir: &Path,
    driver: Option<Driver>,
    reached: Option<(Welcome, Sender, Receiver)>,
) {
    let mut farewell = None;
    let mut last = Vec::new();
    if let Some(mut driver) = driver {
        farewell = driver.farewell();
        last = driver.ended().signals;
    }
    Terminals::new(shared.program.clone(), dir, vec![], dir.to_owned()).release_all().await;
    if let Some((_, sender, mut receiver)) = reached {
        stop_runner(&sender, &mut receiver, farewell).await;
    }
    leave_nothing(id, generation, dir).await;
    settle(shared, id, generation, last, None).await;
}

/// Ends the process tree and lets the runner go.
pub async fn stop_runner(sender: &Sender, receiver: &mut Receiver, farewell: Option<Vec<u8>>) {
    let stop = async {
        // No pause after the farewell: not every protocol's ends the process. Its input ends right behind it, and an agent
        // reads the one before it sees the other.
        let limits = StopLimits { protocol_ms: 0, ..StopLimits::default() };
        sender.stop(Stop { protocol_stop: farewell, limits: Some(limits) }).await?;
        let mut messages = Vec::new();
        loop {
            receiver.next_batch(&mut messages).await?;
            for message in messages.drain(..) {
                if let FromRunner::Record(Record { offset, body: RecordBody::Exit(_) }) = message {
                    return sender.confirm(offset + 1).await;
                }
            }
        }
    };
    match timeout(STOP_LIMIT, stop).await {
        Ok(Ok(()) | Err(consort_runner::client::Error::Closed)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the runner was gone before it was stopped"),
        Err(_) => tracing::warn!("a runner did not end its process in time"),
    }
}

/// Makes sure that no process of this generation is left, and removes the runner's folder.
async fn leave_nothing(id: AgentId, generation: u32, dir: &Path) {
    match sweep::sweep(PROCESS_MARK, &Shared::process_mark(id, generation)).await {
        Ok(killed) if !killed.is_empty() => {
            tracing::info!(agent = %id, ?killed, "ended processes left behind")
        }
        Ok(_) => {}
        Err(error) => tracing::error!(agent = %id, %error, "looking for processes left behind failed"),
    }
    if let Err(error) = tokio::fs::remove_dir_all(dir).await
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::debug!(%error, dir = %dir.display(), "the runner's folder is still in use");
    }
}

/// Writes down how the process ended, and forgets how to reach it. An agent that is closed or rests keeps only what
/// became of its tools.
async fn settle(shared: &Shared, id: AgentId, generation: u32, last: Vec<Signal>, failure: Option<Failure>) {
    let decide: Decide = Arc::new(move |state: &State, at: Timestamp| {
        let fresh = &mut Uuid::now_v7;
        if let (Some(agent), Some(failure)) = (current(state, id, generation), &failure) {
            let failure = Failure { at, ..failure.clone() };
            return Ok(of(id, decide::fail(agent, &last, failure, &state.limits, at, fresh)));
        }
        Ok(ends_of_tools(state, id, &last, at))
    });
    let link = LinkChange {
        agent: id,
        generation,
        driver_state: None,
        next_offset: None,
        outbox: vec![],
        confirmed_input: None,
        forget: true,
    };
    loop {
        match shared.store.commit(change(&decide, link.clone())).await {
            Ok(_) | Err(CommitError::Stopped) => return,
            Err(CommitError::Refused(refusal)) => {
                return tracing::error!(agent = %id, %refusal, "the end of a process was not written down");
            }
            Err(CommitError::Unavailable { reason }) => {
                tracing::warn!(agent = %id, reason, "waiting for the store");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// What a process said that a runner left behind; up to where it can be read.
pub(super) async fn salvaged(dir: &Path, from: u64) -> Vec<Record> {
    let dir = dir.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let records = journal::read_from(&dir, from)?;
        Ok::<_, std::io::Error>(records.map_while(Result::ok).collect())
    });
    read.await.map_err(std::io::Error::other).and_then(|records| records).unwrap_or_else(|error| {
        tracing::warn!(%error, "what a runner left cannot be read");
        vec![]
    })
}

/// What these records say, for an agent that can no longer be answered.
fn signals_of(driver: &mut Driver, assembler: &mut Assembler, records: Vec<Record>) -> Vec<Signal> {
    let mut all = Output::default();
    for record in records {
        if let RecordBody::Output { bytes, end_of_line } = record.body {
            assembler.push(&bytes, end_of_line, |frame| all.append(driver.receive(frame)));
        }
    }
    all.signals
}

fn exit_message(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("its process exited with code {code}"),
        Exit::Signal(signal) => format!("its process was killed by signal {signal}"),
        Exit::Unknown => "its process ended in an unknown way".to_owned(),
    }
}
