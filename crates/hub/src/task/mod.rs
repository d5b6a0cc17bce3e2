//! The task of one agent's process: it owns the driver and the connection to the runner.
//!
//! One task per process, from its start (or its finding by a new daemon) to its end. Frames go through a copy of the
//! driver; what they caused, the driver's new state and the frames' offset are committed together; only then does the
//! copy become the driver and are its frames sent. So nothing is lost or done twice, wherever the daemon is killed, and a
//! commit that fails can be tried again.
//!
//! Invariant: all that changes the driver goes through [`Task::commit`].

mod care;
mod end;
mod stall;
mod start;
mod steer;

pub use end::stop_runner;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_drivers::{CallId, CallResult, Driver, HostCall, Output};
use consort_model::event::AgentEvent;
use consort_model::policy::{self, Verdict};
use consort_model::transcript::{AutoAnswer, Writer};
use consort_model::{
    Agent, AgentId, Answer, AskId, Event, PermissionMode, Prompt, PromptId, PromptOrigin, Refusal, RuleId,
    Signal, State, Timestamp, TurnId, decide,
};
use consort_runner::client::{Receiver, Sender};
use consort_runner::protocol::{Exit, FromRunner, RecordBody, RefusalReason};
use consort_store::{Change, CommitError, Committed, LinkChange};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::HubError;
use crate::assemble::Assembler;
use crate::host;
use crate::real_path::RealPaths;
use crate::shared::{Decide, Shared, whole};
use crate::terminals::Terminals;

/// After text was read, the next read waits this long: more deltas are then handled at once, and clients get at most
/// 60 updates a second per agent.
const TEXT_INTERVAL: Duration = Duration::from_millis(17);

/// How long to wait before a commit is tried again that the store could not keep.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How long to wait before input is sent again that the runner had no room for.
const RESEND_INTERVAL: Duration = Duration::from_millis(200);

/// The runner is told what it may drop once this many records are done with, and when a turn ends.
const CONFIRM_EVERY: u64 = 512;

/// What the hub wants of a task.
pub enum Order {
    /// The queue changed: begin a turn if one can begin.
    Deliver,
    /// Stop the turn.
    Interrupt,
    /// A person answered an ask.
    Answer(Box<AnswerOrder>),
    /// A person chose a value for an option.
    Choose(Box<ChooseOrder>),
    /// A person chose another permission mode; it is committed already.
    Permissions(PermissionMode),
    /// The agent wants no process any more: end it.
    Stop,
    /// The daemon ends: leave the process to the next one.
    Detach,
}

pub struct AnswerOrder {
    pub ask: AskId,
    pub answer: Answer,
    pub reply: oneshot::Sender<Result<(), HubError>>,
}

pub struct ChooseOrder {
    pub option: String,
    pub value: String,
    pub reply: oneshot::Sender<Result<(), HubError>>,
}

/// A task that is ready to run.
pub struct Task {
    shared: Arc<Shared>,
    id: AgentId,
    generation: u32,
    dir: PathBuf,
    orders: mpsc::UnboundedReceiver<Order>,
}

/// A running process: the task's state while it serves.
struct Process {
    shared: Arc<Shared>,
    id: AgentId,
    generation: u32,
    dir: PathBuf,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Orders that came while the store could keep nothing.
    deferred: VecDeque<Order>,
    sender: Sender,
    receiver: Receiver,
    driver: Driver,
    terminals: Terminals,
    roots: Vec<PathBuf>,
    child: Option<i32>,
    assembler: Assembler,
    /// The first record that is not committed.
    next_offset: u64,
    confirmed_offset: u64,
    /// One past the exit record, once it came.
    exit_offset: Option<u64>,
    last_input: u64,
    /// Input that the runner has not acknowledged.
    unacknowledged: VecDeque<(u64, Arc<[u8]>)>,
    /// Acknowledged by the runner, and not yet written down as such.
    acknowledged: Option<u64>,
    resend_at: Option<Instant>,
    read_at: Option<Instant>,
    results: mpsc::UnboundedReceiver<(CallId, CallResult)>,
    result_sender: mpsc::UnboundedSender<(CallId, CallResult)>,
    /// The turn that this process was told to stop.
    stopped: Option<TurnId>,
    /// The turn that was ended because the agent gave its result in it.
    cut_off: Option<TurnId>,
    /// When the agent last showed a sign of life, and its processor time then.
    alive_at: Instant,
    processor_time: u64,
}

/// How a process is done with.
enum Ending {
    /// It exited by itself, or could not be started.
    Exited(Exit),
    /// Its runner said that it cannot be started.
    StartFailed(String),
    /// Its session could not be opened; it is of no further use.
    Useless(String),
    /// Its runner is gone without a word.
    RunnerGone,
    /// It was told to end.
    Stopped,
    /// The daemon ends and leaves it running.
    Detached,
    /// The store is closed.
    StoreClosed,
}

impl Task {
    pub fn new(
        shared: Arc<Shared>,
        id: AgentId,
        generation: u32,
        orders: mpsc::UnboundedReceiver<Order>,
    ) -> Self {
        let dir = shared.runner_dir(id, generation);
        Self { shared, id, generation, dir, orders }
    }
}

impl Process {
    /// Serves until the process is done with.
    async fn serve(&mut self) -> Ending {
        self.run_calls(self.driver.pending_calls());
        if let Err(ending) = self.take_up().await {
            return ending;
        }
        let mut messages = Vec::new();
        loop {
            if let Some(order) = self.deferred.pop_front() {
                match self.order(order).await {
                    Ok(()) => continue,
                    Err(ending) => return ending,
                }
            }
            let stall = self.stall_deadline();
            let time_is_up = self.time_is_up_at();
            let step = tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(order) => self.order(order).await,
                    None => Err(Ending::Detached),
                },
                Some((call, result)) = self.results.recv() => self.complete(&call, result).await,
                () = sleep_until(self.resend_at) => self.resend().await,
                () = sleep_until(stall) => self.check_stall().await,
                () = sleep_until(time_is_up) => self.stop_at_time().await,
                read = read(&mut self.receiver, self.read_at, &mut messages) => match read {
                    Ok(()) => self.take_in(std::mem::take(&mut messages)).await,
                    Err(_) => Err(Ending::RunnerGone),
                },
            };
            if let Err(ending) = step {
                return ending;
            }
        }
    }

    /// Goes on with what an earlier daemon may have left undone.
    async fn take_up(&mut self) -> Result<(), Ending> {
        let told_to_stop = |agent: &Agent| agent.turn.as_ref().is_some_and(|turn| turn.interrupted);
        if self.shared.store.with(|state| current(state, self.id, self.generation).is_some_and(told_to_stop))
        {
            self.interrupt().await?;
        }
        self.look_after().await?;
        self.deliver().await
    }

    async fn order(&mut self, order: Order) -> Result<(), Ending> {
        match order {
            Order::Deliver => self.deliver().await,
            Order::Interrupt => self.interrupt().await,
            Order::Answer(order) => {
                let outcome = self.answer(order.ask, order.answer).await;
                self.reply(order.reply, outcome)
            }
            Order::Choose(order) => {
                let outcome = self.choose(&order.option, &order.value).await;
                self.reply(order.reply, outcome)
            }
            Order::Permissions(permissions) => {
                let mut driver = self.driver.clone();
                let output = driver.set_permissions(permissions);
                self.commit_batch(driver, Batch { output, ..Batch::default() }, None).await
            }
            Order::Stop => Err(Ending::Stopped),
            Order::Detach => Err(Ending::Detached),
        }
    }

    fn reply(
        &self,
        reply: oneshot::Sender<Result<(), HubError>>,
        outcome: Result<Result<(), HubError>, Ending>,
    ) -> Result<(), Ending> {
        let outcome = outcome?;
        if reply.send(outcome).is_err() {
            tracing::debug!(agent = %self.id, "the client left before its answer came");
        }
        Ok(())
    }

    /// Takes in what the runner said.
    async fn take_in(&mut self, messages: Vec<FromRunner>) -> Result<(), Ending> {
        let read_at = Instant::now();
        let mut driver = self.driver.clone();
        let mut batch = Batch::default();
        let mut offset = None;
        let mut ending = None;
        for message in messages {
            match message {
                FromRunner::Record(record) => {
                    match record.body {
                        RecordBody::Output { bytes, end_of_line } => {
                            let assembler = &mut self.assembler;
                            assembler.push(&bytes, end_of_line, |frame| batch.add(driver.receive(frame)));
                            self.judge(&mut driver, &mut batch);
                        }
                        RecordBody::Input { .. } => {}
                        RecordBody::Exit(exit) => {
                            self.exit_offset = Some(record.offset + 1);
                            ending = Some(Ending::Exited(exit));
                        }
                    }
                    if !self.assembler.is_partial() && ending.is_none() {
                        offset = Some(record.offset + 1);
                    }
                }
                FromRunner::InputAck { number } => self.acknowledge(number),
                FromRunner::Started { child_pid } => self.child = Some(child_pid),
                FromRunner::StartFailed { message } => ending = Some(Ending::StartFailed(message)),
                FromRunner::Refused(refusal) => match refusal.reason {
                    RefusalReason::InputFull | RefusalReason::NotStarted | RefusalReason::InputGap => {
                        self.resend_at = Some(Instant::now() + RESEND_INTERVAL);
                    }
                    RefusalReason::Ended => {}
                    RefusalReason::Version | RefusalReason::Offset => {
                        tracing::warn!(agent = %self.id, message = refusal.message, "the runner refused");
                        ending = Some(Ending::RunnerGone);
                    }
                },
                FromRunner::Welcome(_) | FromRunner::StderrTail { .. } => {}
            }
        }
        if let Some(offset) = offset {
            self.alive().await?;
            if self.cuts_off(&batch) {
                batch.add(driver.interrupt());
            }
            let text = batch.has_text();
            let useless = batch.start_failure();
            self.commit_batch(driver, batch, Some(offset)).await?;
            // Counted from the read: how long the commit took must not make the next one wait longer.
            self.read_at = text.then(|| read_at + TEXT_INTERVAL);
            if let Some(message) = useless {
                return Err(Ending::Useless(message));
            }
        }
        ending.map_or(Ok(()), Err)
    }

    /// Answers at once the asks that need no person.
    fn judge(&self, driver: &mut Driver, batch: &mut Batch) {
        for n in batch.judged..batch.output.signals.len() {
            let Signal::Ask { key, body, .. } = &batch.output.signals[n] else { continue };
            let known = self
                .shared
                .store
                .with(|state| Some((state.agent(self.id).ok()?.clone(), state.rules.clone())));
            let Some((agent, rules)) = known else { continue };
            // The disk is looked at with the state let go.
            let real = RealPaths::default();
            let verdict = policy::judge(&agent, rules.values(), body, &|path| real.resolve(path));
            if let Verdict::Settle(answer, by) = verdict {
                let key = key.clone();
                let output = driver.answer(&key, &answer);
                batch.add(output);
                batch.settled.push(AutoAnswer { key, answer, by });
            }
        }
        batch.judged = batch.output.signals.len();
    }

    /// Commits what the agent said, and begins the next turn if that ended one.
    async fn commit_batch(
        &mut self,
        driver: Driver,
        batch: Batch,
        offset: Option<u64>,
    ) -> Result<(), Ending> {
        let Batch { output, settled, .. } = batch;
        let Output { signals, frames, calls, .. } = output;
        let (id, generation) = (self.id, self.generation);
        let decide: Decide = Arc::new(move |state: &State, at: Timestamp| {
            // What it says after it was closed is lost on purpose, but its driver has moved on: what became of its tools
            // is told now or never.
            let Some(agent) = current(state, id, generation) else {
                return Ok(ends_of_tools(state, id, &signals, at));
            };
            let mut writer = Writer::new(agent, at);
            for signal in &signals {
                writer.signal(signal.clone(), &settled, &mut Uuid::now_v7);
            }
            Ok(of(id, writer.finish()))
        });
        let committed = self.commit_patiently(decide, driver, frames, calls, offset).await?;
        let free =
            committed.is_some_and(|committed| committed.events.iter().any(|event| frees(&event.event)));
        if free {
            self.confirm(true).await;
            self.look_after().await?;
            return self.deliver().await;
        }
        self.confirm(false).await;
        Ok(())
    }

    /// Begins a turn with what waits, if the agent is free.
    async fn deliver(&mut self) -> Result<(), Ending> {
        loop {
            let ready = self.shared.store.with(|state| {
                let agent = current(state, self.id, self.generation)?;
                let prompts = decide::deliverable(agent)?;
                let text = prompt_text(state, &prompts);
                Some((prompts, text))
            });
            let Some((prompts, text)) = ready else { return self.steer().await };
            let attachments: Vec<_> = prompts.iter().flat_map(|prompt| prompt.attachments.clone()).collect();
            let mut driver = self.driver.clone();
            let Output { signals, frames, calls, .. } = driver.prompt(&text, &attachments);
            let turn = TurnId::new(Uuid::now_v7());
            let (id, generation) = (self.id, self.generation);
            let decide: Decide = Arc::new(move |state: &State, at: Timestamp| {
                let agent = current(state, id, generation).ok_or_else(changed)?;
                // A waiting prompt may have been edited since it was looked at.
                if decide::deliverable(agent).as_ref() != Some(&prompts) {
                    return Err(changed());
                }
                let mut writer = Writer::new(agent, at);
                writer.start_turn(turn, &prompts);
                for signal in &signals {
                    writer.signal(signal.clone(), &[], &mut Uuid::now_v7);
                }
                Ok(of(id, writer.finish()))
            });
            if self.commit_patiently(decide, driver, frames, calls, None).await?.is_some() {
                self.alive_at = Instant::now();
                return Ok(());
            }
        }
    }

    /// Tells the process to stop a turn that is to. That it is was committed before, with the whole team's.
    async fn interrupt(&mut self) -> Result<(), Ending> {
        let turn = self.shared.store.with(|state| {
            let turn = current(state, self.id, self.generation)?.turn.as_ref()?;
            turn.interrupted.then_some(turn.id)
        });
        if turn.is_none() || turn == self.stopped {
            return Ok(());
        }
        self.stopped = turn;
        let mut driver = self.driver.clone();
        let Output { signals, frames, calls, .. } = driver.interrupt();
        self.commit_patiently(self.plain(signals), driver, frames, calls, None).await?;
        Ok(())
    }

    async fn answer(&mut self, ask: AskId, answer: Answer) -> Result<Result<(), HubError>, Ending> {
        let known = self.shared.store.with(|state| {
            let agent = current(state, self.id, self.generation)?;
            agent.asks.iter().find(|open| open.id == ask).map(|open| (agent.clone(), open.clone()))
        });
        let Some((agent, open)) = known else {
            let refusal = self.shared.store.with(|state| decide::not_open(state.agents.get(&self.id), ask));
            return Ok(Err(refusal.into()));
        };
        // Whatever the rule needs to know of the disk is looked up here, not while the decision is committed.
        let real = RealPaths::default();
        let id = RuleId::new(Uuid::now_v7());
        if let Err(refusal) =
            decide::granted(&agent, &open, &answer, id, Timestamp::default(), &|path| real.resolve(path))
        {
            return Ok(Err(refusal.into()));
        }
        let key = open.key;
        let mut driver = self.driver.clone();
        let Output { signals, frames, calls, follow_up } = driver.answer(&key, &answer);
        let stops = answer == Answer::Stop;
        if stops {
            self.stopped = agent.turn.as_ref().map(|turn| turn.id);
        }
        let (id, generation) = (self.id, self.generation);
        let decide: Decide = Arc::new(move |state: &State, at: Timestamp| {
            let agent =
                current(state, id, generation).ok_or_else(|| decide::not_open(state.agents.get(&id), ask))?;
            let mut events =
                decide::answer(agent, ask, &answer, at, &mut Uuid::now_v7, &|path| real.resolve(path))?;
            let mut after = agent.clone();
            for event in &events {
                if let Event::Agent { change, .. } = event {
                    after.apply(change, at);
                }
            }
            let mut writer = Writer::new(&after, at);
            if stops {
                decide::interrupt(&after).into_iter().for_each(|change| writer.push(change));
            }
            for signal in &signals {
                writer.signal(signal.clone(), &[], &mut Uuid::now_v7);
            }
            // The same words for several calls that are denied together are said once.
            let said = |text: &str| {
                agent
                    .queue
                    .back()
                    .is_some_and(|last| last.origin == PromptOrigin::Person && last.text == text)
            };
            if let Some(text) = follow_up.as_deref().filter(|text| !said(text)) {
                writer.push(AgentEvent::PromptQueued { prompt: said_by_person(text, at) });
            }
            events.extend(of(id, writer.finish()));
            Ok(events)
        });
        self.alive_at = Instant::now();
        self.commit_once(decide, driver, frames, calls).await
    }

    async fn choose(&mut self, option: &str, value: &str) -> Result<Result<(), HubError>, Ending> {
        let mut driver = self.driver.clone();
        let Output { signals, frames, calls, .. } = match driver.choose(option, value) {
            Ok(output) => output,
            Err(reason) => return Ok(Err(Refusal::Invalid { reason }.into())),
        };
        self.commit_once(self.plain(signals), driver, frames, calls).await
    }

    /// The host did what the agent asked of it.
    async fn complete(&mut self, call: &CallId, result: CallResult) -> Result<(), Ending> {
        let mut driver = self.driver.clone();
        let Output { signals, frames, calls, .. } = driver.complete(call, result);
        self.alive().await?;
        self.commit_patiently(self.plain(signals), driver, frames, calls, None).await?;
        Ok(())
    }

    /// A decision that only writes signals down.
    fn plain(&self, signals: Vec<Signal>) -> Decide {
        let (id, generation) = (self.id, self.generation);
        Arc::new(move |state: &State, at: Timestamp| {
            let Some(agent) = current(state, id, generation) else { return Ok(vec![]) };
            let mut writer = Writer::new(agent, at);
            for signal in &signals {
                writer.signal(signal.clone(), &[], &mut Uuid::now_v7);
            }
            Ok(of(id, writer.finish()))
        })
    }

    /// Commits, and waits for as long as the store cannot keep it. None if it was refused.
    async fn commit_patiently(
        &mut self,
        decide: Decide,
        driver: Driver,
        frames: Vec<Vec<u8>>,
        calls: Vec<(CallId, HostCall)>,
        offset: Option<u64>,
    ) -> Result<Option<Committed>, Ending> {
        let link = self.link_change(&driver, &frames, offset);
        loop {
            match self.shared.store.commit(change(&decide, link.clone())).await {
                Ok(committed) => {
                    self.committed(driver, link, calls).await;
                    return Ok(Some(committed));
                }
                Err(CommitError::Refused(_)) => return Ok(None),
                Err(CommitError::Stopped) => return Err(Ending::StoreClosed),
                Err(CommitError::Unavailable { reason }) => {
                    tracing::warn!(agent = %self.id, reason, "waiting for the store");
                    self.wait_out().await?;
                }
            }
        }
    }

    /// Commits, or tells why not; a person is not kept waiting.
    async fn commit_once(
        &mut self,
        decide: Decide,
        driver: Driver,
        frames: Vec<Vec<u8>>,
        calls: Vec<(CallId, HostCall)>,
    ) -> Result<Result<(), HubError>, Ending> {
        let link = self.link_change(&driver, &frames, None);
        let promised = Change { to_disk: true, ..change(&decide, link.clone()) };
        match self.shared.store.commit(promised).await {
            Ok(_) => {
                self.committed(driver, link, calls).await;
                Ok(Ok(()))
            }
            Err(CommitError::Stopped) => Err(Ending::StoreClosed),
            Err(error) => Ok(Err(error.into())),
        }
    }

    /// While the store cannot keep anything: answers people at once, and ends if told so.
    async fn wait_out(&mut self) -> Result<(), Ending> {
        let until = Instant::now() + RETRY_INTERVAL;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                order = self.orders.recv() => match order {
                    Some(Order::Answer(order)) => self.reply(order.reply, Ok(Err(HubError::unavailable())))?,
                    Some(Order::Choose(order)) => self.reply(order.reply, Ok(Err(HubError::unavailable())))?,
                    Some(Order::Stop) => return Err(Ending::Stopped),
                    Some(Order::Detach) | None => return Err(Ending::Detached),
                    Some(later) => self.deferred.push_back(later),
                },
            }
        }
    }

    fn link_change(&self, driver: &Driver, frames: &[Vec<u8>], offset: Option<u64>) -> LinkChange {
        let changed = *driver != self.driver;
        LinkChange {
            agent: self.id,
            generation: self.generation,
            driver_state: if changed { serde_json::to_vec(driver).ok() } else { None },
            next_offset: offset,
            outbox: (self.last_input + 1..).zip(frames.iter().cloned()).collect(),
            confirmed_input: self.acknowledged,
            forget: false,
        }
    }

    /// What is true once a change is committed: the driver's copy is the driver, its frames go out, its calls are made.
    async fn committed(&mut self, driver: Driver, link: LinkChange, calls: Vec<(CallId, HostCall)>) {
        self.driver = driver;
        self.acknowledged = None;
        if let Some(offset) = link.next_offset {
            self.next_offset = offset;
        }
        for (number, frame) in link.outbox {
            self.last_input = number;
            let frame: Arc<[u8]> = frame.into();
            self.unacknowledged.push_back((number, Arc::clone(&frame)));
            self.send_input(number, &frame).await;
        }
        self.run_calls(calls);
    }

    async fn send_input(&self, number: u64, frame: &[u8]) {
        // A runner that is gone shows when it is read from; the frame stays in the outbox.
        if let Err(error) = self.sender.input(number, frame).await {
            tracing::debug!(agent = %self.id, %error, "input was not sent");
        }
    }

    async fn resend(&mut self) -> Result<(), Ending> {
        self.resend_at = None;
        for (number, frame) in &self.unacknowledged {
            self.send_input(*number, frame).await;
        }
        Ok(())
    }

    fn acknowledge(&mut self, number: u64) {
        while self.unacknowledged.front().is_some_and(|(first, _)| *first <= number) {
            self.unacknowledged.pop_front();
        }
        if self.unacknowledged.is_empty() {
            self.unacknowledged = VecDeque::new();
            self.resend_at = None;
        }
        self.acknowledged = Some(number);
    }

    /// Tells the runner what it may drop, if that is worth a message.
    async fn confirm(&mut self, now: bool) {
        let worth = if now { 1 } else { CONFIRM_EVERY };
        if self.next_offset - self.confirmed_offset < worth {
            return;
        }
        self.confirmed_offset = self.next_offset;
        if let Err(error) = self.sender.confirm(self.next_offset).await {
            tracing::debug!(agent = %self.id, %error, "the runner was not told what it may drop");
        }
    }

    /// Does what the agent asks of its host, each call by itself so that none delays another.
    fn run_calls(&self, calls: Vec<(CallId, HostCall)>) {
        for (id, call) in calls {
            let (results, roots, terminals) =
                (self.result_sender.clone(), self.roots.clone(), self.terminals.clone());
            tokio::spawn(async move {
                let result = host_call(roots, terminals, call).await;
                // The process may have ended meanwhile; nobody waits for the result then.
                drop(results.send((id, result)));
            });
        }
    }
}

/// What one batch of frames caused so far.
#[derive(Default)]
struct Batch {
    output: Output,
    settled: Vec<AutoAnswer>,
    /// How many signals were looked at for asks.
    judged: usize,
}

impl Batch {
    fn add(&mut self, output: Output) {
        self.output.append(output);
    }

    fn has_text(&self) -> bool {
        self.output
            .signals
            .iter()
            .any(|signal| matches!(signal, Signal::Text { .. } | Signal::Thinking { .. }))
    }

    fn start_failure(&self) -> Option<String> {
        self.output.signals.iter().find_map(|signal| match signal {
            Signal::StartFailed { message } => Some(message.clone()),
            _ => None,
        })
    }
}

/// The agent, if this is still its process and is wanted.
fn current(state: &State, id: AgentId, generation: u32) -> Option<&Agent> {
    state.agents.get(&id).filter(|agent| agent.generation == generation && agent.wants_process())
}

/// What became of the tools of the agent's last turn, from all that its process said. It may be closed, or reopened
/// already: its next process waits for the end of this one, so the turn is still the last.
fn ends_of_tools(state: &State, id: AgentId, signals: &[Signal], at: Timestamp) -> Vec<Event> {
    let Some(agent) = state.agents.get(&id) else { return vec![] };
    let is_known = |signal: &&Signal| matches!(signal, Signal::Tool { call, .. } if agent.cursor.tools.contains_key(&call.id));
    let mut writer = Writer::new(agent, at);
    for signal in signals.iter().filter(is_known) {
        writer.signal(signal.clone(), &[], &mut Uuid::now_v7);
    }
    of(id, writer.finish())
}

fn changed() -> Refusal {
    Refusal::Invalid { reason: "it changed meanwhile".to_owned() }
}

fn of(id: AgentId, changes: Vec<AgentEvent>) -> Vec<Event> {
    changes.into_iter().map(|change| Event::of(id, change)).collect()
}

/// A prompt of words that a person gave with an answer.
fn said_by_person(text: &str, at: Timestamp) -> Prompt {
    let id = PromptId::new(Uuid::now_v7());
    Prompt { id, origin: PromptOrigin::Person, text: text.to_owned(), attachments: vec![], steers: false, at }
}

/// Whether the next turn may begin after this.
fn frees(event: &Event) -> bool {
    let Event::Agent { change, .. } = event else { return false };
    matches!(
        change,
        AgentEvent::TurnEnded { .. }
            | AgentEvent::Ready { .. }
            | AgentEvent::PromptJoined { .. }
            | AgentEvent::PromptReturned { .. }
    )
}

fn change(decide: &Decide, link: LinkChange) -> Change {
    let decide = Arc::clone(decide);
    Change { decide: Box::new(move |state, at| whole(state, at, &*decide)), link: Some(link), to_disk: false }
}

/// The text of a turn: a person's prompt as it is; agents' messages marked with who wrote them.
fn prompt_text(state: &State, prompts: &[Prompt]) -> String {
    let part = |prompt: &Prompt| match prompt.origin {
        PromptOrigin::Person => prompt.text.clone(),
        PromptOrigin::Consort => format!("[From Consort, not from a person]\n{}", prompt.text),
        PromptOrigin::Agent { agent } => {
            let name = state.agents.get(&agent).map_or("unknown", |agent| agent.name.as_str());
            format!("[Message from agent `{name}`, not from a person]\n{}", prompt.text)
        }
    };
    prompts.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

async fn host_call(roots: Vec<PathBuf>, terminals: Terminals, call: HostCall) -> CallResult {
    let blocking = match call {
        HostCall::ReadFile { path, line, limit } => {
            tokio::task::spawn_blocking(move || host::read_file(&roots, path.as_ref(), line, limit))
        }
        HostCall::WriteFile { path, text } => {
            tokio::task::spawn_blocking(move || host::write_file(&roots, path.as_ref(), &text))
        }
        terminal => return terminals.call(terminal).await,
    };
    blocking.await.unwrap_or_else(|error| CallResult::Failed { message: error.to_string() })
}

/// Waits for a moment, or for ever.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Reads the next batch, not before its time. Cancel-safe.
async fn read(
    receiver: &mut Receiver,
    not_before: Option<Instant>,
    messages: &mut Vec<FromRunner>,
) -> Result<(), consort_runner::client::Error> {
    if let Some(at) = not_before {
        tokio::time::sleep_until(at).await;
    }
    receiver.next_batch(messages).await.map(drop)
}
