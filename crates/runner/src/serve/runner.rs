//! The event loop: the one owner of the runner's state.
//!
//! Waits for the next event, handles it without blocking, then lets [`Runner::advance`] take whatever step of the child's
//! life has become due. Between the words of a child that streams it sleeps for a moment. Timers exist only for what is
//! under way (a start, a stop, a full disk, an absent daemon).
//!
//! Invariants: a child is started at most once; an exit record follows when no process of its tree is left; the runner
//! ends itself only when the daemon has confirmed that record, or when nobody came for it.

mod ending;

use std::future::{Future, pending};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use self::ending::{Phase, START_LIMIT};
use super::child::{Child, Read};
use super::connection::Connection;
use super::handshake::{Greeted, greet};
use super::inbox::Incoming;
use super::log;
use crate::journal::{InputSource, Journal};
use crate::process;
use crate::protocol::{Exit, FromRunner, PROTOCOL_VERSION, Refusal, RefusalReason, Stop, ToRunner, Welcome};
use crate::spec::{Spec, StopLimits};

/// How often a full disk is tried again.
const DISK_RETRY: Duration = Duration::from_secs(2);

/// When a peer is accepted again after it could not be.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Peers that may be waiting to say hello.
const MAX_STRANGERS: usize = 16;

/// A child that writes little by little is listened to again after this many nanoseconds: what it wrote meanwhile is
/// journaled and sent at once, so that a hundred streaming children do not wake a hundred runners for every word. A
/// little longer than a frame on the screen, so that a daemon that shows text once a frame need not wait as well.
const PAUSE: i64 = 20_000_000;

/// By so many nanoseconds the kernel may wake a runner late, together with others, instead of each by an interrupt of its
/// own: a hundred of them then cost a third less.
const SLACK: Option<NonZeroU64> = NonZeroU64::new(2_000_000);

/// A child that writes this much at a time is in a hurry,
const HURRY_BYTES: usize = 16 << 10;
/// and for this long is listened to without pauses.
const HURRY: Duration = Duration::from_millis(100);

/// After it was spoken to, or was silent for [`SILENCE`], it is listened to so often without pauses: the beginning of an
/// answer comes at once.
const QUICK_READS: u32 = 16;
const SILENCE: Duration = Duration::from_millis(100);

const SCRATCH: usize = 32 << 10;
const READS_PER_TURN: usize = 8;

/// How a runner ended.
pub enum Outcome {
    /// Nobody needs its files any more.
    Done,
    /// The journal still holds what no daemon has confirmed.
    Left,
}

struct Signals {
    child: SignalStream,
    terminate: SignalStream,
    /// Held so that a terminal that goes away, or a Ctrl-C in it, does not end the runner.
    _ignored: [SignalStream; 2],
}

pub struct Runner {
    dir: PathBuf,
    journal: Journal,
    signals: Signals,
    connection: Option<Connection>,
    child: Option<Child>,
    phase: Phase,
    stop_limits: StopLimits,
    orphan_after: Duration,
    idle_after: Duration,
    /// Since when no daemon is connected; means nothing while one is.
    alone_since: Instant,
    /// Whether the runner ends with its child instead of waiting for a daemon to confirm it.
    leaving: bool,
    confirmed: u64,
    /// When to try a journal write again that failed.
    disk_retry: Option<Instant>,
    /// Whether the child gets a moment to write some more.
    pausing: bool,
    /// Until when it gets none.
    hurry_until: Instant,
    /// How often it still gets none.
    quick_reads: u32,
    heard_at: Instant,
    scratch: Vec<u8>,
}

enum Event {
    Stranger(io::Result<(UnixStream, OwnedSemaphorePermit)>),
    Greeted(Greeted),
    Daemon,
    Stdout,
    Stderr,
    Stdin,
    ChildSignal,
    Terminate,
    Deadline,
}

impl Runner {
    pub fn new(dir: PathBuf, journal: Journal) -> io::Result<Self> {
        let signals = Signals {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            _ignored: [signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?],
        };
        let now = Instant::now();
        Ok(Self {
            dir,
            journal,
            signals,
            connection: None,
            child: None,
            phase: Phase::Unstarted { until: now + START_LIMIT },
            stop_limits: StopLimits::default(),
            orphan_after: Duration::MAX,
            idle_after: Duration::MAX,
            alone_since: now,
            leaving: false,
            confirmed: 0,
            disk_retry: None,
            pausing: false,
            hurry_until: now,
            quick_reads: QUICK_READS,
            heard_at: now,
            scratch: vec![0; SCRATCH],
        })
    }

    /// Serves until the child is done with.
    pub async fn run(mut self, listener: UnixListener) -> Outcome {
        let (greeted_sender, mut greeted) = mpsc::channel(1);
        let strangers = Arc::new(Semaphore::new(MAX_STRANGERS));
        loop {
            if let Some(outcome) = self.advance() {
                return outcome;
            }
            if self.pause(&listener) {
                // The runtime has not looked at anything meanwhile.
                tokio::task::yield_now().await;
            }
            match self.next_event(&listener, &mut greeted, &strangers).await {
                Event::Stranger(Ok((stream, room))) => {
                    let greeted = greeted_sender.clone();
                    drop(tokio::spawn(async move {
                        greet(stream, greeted).await;
                        drop(room);
                    }));
                }
                Event::Stranger(Err(error)) => {
                    log(format_args!("a connection could not be accepted: {error}"));
                    // The cause (no file descriptors, no memory) does not go away by asking at once.
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
                Event::Greeted(greeted) => self.welcome(greeted),
                Event::Daemon => self.exchange(),
                Event::Stdout => self.read_stdout(),
                Event::Stderr => {
                    if let Some(child) = &mut self.child {
                        child.read_stderr(&mut self.scratch);
                    }
                }
                Event::Stdin => {
                    if let Some(child) = &mut self.child {
                        child.write_stdin(&mut self.scratch);
                    }
                }
                Event::ChildSignal => self.reap(),
                Event::Terminate => {
                    self.leaving = true;
                    self.stop(Stop::default());
                }
                Event::Deadline => {}
            }
        }
    }

    async fn next_event(
        &mut self,
        listener: &UnixListener,
        greeted: &mut mpsc::Receiver<Greeted>,
        strangers: &Arc<Semaphore>,
    ) -> Event {
        let deadline = self.deadline();
        let reads_stdout = self.may_read_stdout();
        let Self { journal, signals, connection, child, .. } = self;
        let child = child.as_ref();
        let stdin = child.filter(|child| child.has_waiting_input()).and_then(|child| child.stdin.as_ref());
        let stdout = child.filter(|_| reads_stdout).and_then(|child| child.stdout.as_ref());
        let stderr = child.and_then(|child| child.stderr.as_ref());
        // An error of a wait is met again, and handled, by the read or write that follows it.
        tokio::select! {
            stranger = accept(listener, strangers) => Event::Stranger(stranger),
            Some(greeted) = greeted.recv() => Event::Greeted(greeted),
            _ = when(connection.as_ref().map(|connection| connection.ready(journal.end()))) => Event::Daemon,
            _ = when(stdout.map(|stdout| stdout.readable())) => Event::Stdout,
            _ = when(stderr.map(|stderr| stderr.readable())) => Event::Stderr,
            _ = when(stdin.map(|stdin| stdin.writable())) => Event::Stdin,
            _ = signals.child.recv() => Event::ChildSignal,
            _ = signals.terminate.recv() => Event::Terminate,
            () = when(deadline.map(sleep_until)) => Event::Deadline,
        }
    }

    /// Whether there is room for more of the child's output.
    fn may_read_stdout(&self) -> bool {
        !self.journal.has_unwritten() && !self.journal.is_full()
    }

    fn read_stdout(&mut self) {
        let mut total = 0;
        for _ in 0..READS_PER_TURN {
            if !self.may_read_stdout() {
                return;
            }
            let Some(child) = &mut self.child else { return };
            let read = child.read_stdout(&mut self.journal, &mut self.scratch);
            self.store_and_send();
            let Read::Some(count) = read else { break };
            total += count;
            if count < SCRATCH {
                // That was all there is.
                break;
            }
        }
        self.journal.release_buffers();
        let now = Instant::now();
        if total >= HURRY_BYTES {
            self.hurry_until = now + HURRY;
        }
        if now - self.heard_at >= SILENCE {
            self.quick_reads = QUICK_READS;
        }
        self.heard_at = now;
        self.pausing = total > 0 && now >= self.hurry_until && self.quick_reads == 0;
        self.quick_reads = self.quick_reads.saturating_sub(1);
    }

    /// Sleeps for a moment, or until the daemon, a stranger or a signal has something to say, if that is due.
    ///
    /// Not on the runtime's timer: the runtime would be woken by every word of the child, if only to ignore it.
    fn pause(&mut self, listener: &UnixListener) -> bool {
        let is_behind = self.connection.as_ref().is_some_and(|daemon| !daemon.is_up_to_date(&self.journal));
        let child_is_behind = self.child.as_ref().is_some_and(Child::has_waiting_input);
        if !std::mem::take(&mut self.pausing) || is_behind || child_is_behind {
            return false;
        }
        let heard = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
        let mut heard: Vec<_> = self
            .connection
            .as_ref()
            .map(|daemon| heard(daemon.as_fd()))
            .into_iter()
            .chain([heard(listener.as_fd())])
            .collect();
        match poll(&mut heard, Some(&Timespec { tv_sec: 0, tv_nsec: PAUSE })) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => log(format_args!("the child was given no time to write more: {error}")),
        }
        true
    }

    /// Writes what was appended to the journal and passes it on to the daemon.
    fn store_and_send(&mut self) {
        let up_to_date =
            self.connection.as_ref().is_some_and(|connection| connection.is_up_to_date(&self.journal));
        match self.journal.flush() {
            Ok(batch) => {
                self.disk_retry = None;
                if up_to_date
                    && let Some(connection) = &mut self.connection
                    && connection.send_batch(batch).is_err()
                {
                    self.hang_up();
                }
                self.send();
            }
            Err(error) => {
                if self.disk_retry.is_none() {
                    log(format_args!("the journal could not be written, the child has to wait: {error}"));
                }
                self.disk_retry = Some(Instant::now() + DISK_RETRY);
            }
        }
    }

    fn send(&mut self) {
        if let Some(connection) = &mut self.connection
            && let Err(error) = connection.send(&mut self.journal)
        {
            if error.kind() != io::ErrorKind::BrokenPipe {
                log(format_args!("the daemon could not be sent what is for it: {error}"));
            }
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        self.connection = None;
        self.alone_since = Instant::now();
    }

    fn reply(&mut self, message: FromRunner) {
        if let Some(connection) = &mut self.connection {
            connection.reply(&message);
        }
    }

    fn refuse(&mut self, reason: RefusalReason, message: String) {
        self.reply(FromRunner::Refused(Refusal { reason, message }));
    }

    /// Takes a new daemon in place of the one before.
    fn welcome(&mut self, greeted: Greeted) {
        let Greeted { stream, hello } = greeted;
        let next_offset = self.journal.next_offset();
        let position = match self.journal.locate(hello.from) {
            Ok(position) => position,
            Err(error) => return log(format_args!("the journal could not be read: {error}")),
        };
        let mut connection = Connection::new(stream, position);
        if hello.from > next_offset {
            let message = format!("record {} was asked for, but the next one is {next_offset}", hello.from);
            connection.reply(&FromRunner::Refused(Refusal { reason: RefusalReason::Offset, message }));
            // Whether it still hears the reason is the peer's business.
            return drop(connection.send(&mut self.journal));
        }
        let exit = match self.phase {
            Phase::Ended { exit_offset } if exit_offset < next_offset => {
                self.child.as_ref().map(|child| child.exit)
            }
            _ => None,
        };
        connection.reply(&FromRunner::Welcome(Welcome {
            version: PROTOCOL_VERSION,
            runner_pid: rustix::process::getpid().as_raw_pid(),
            started: self.child.is_some(),
            child_pid: self.child.as_ref().map(|child| child.pid.as_raw_pid()),
            first_offset: self.journal.first_offset(),
            next_offset,
            last_input: self.journal.last_input(),
            exit: exit.map(|exit| exit.unwrap_or(Exit::Unknown)),
        }));
        self.connection = Some(connection);
        self.send();
    }

    /// Hears the daemon out and sends what it can take.
    fn exchange(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        match connection.receive(&mut self.scratch, &self.dir) {
            Ok(Some(incoming)) => incoming.into_iter().for_each(|incoming| self.handle(incoming)),
            Ok(None) => return self.hang_up(),
            Err(error) => {
                log(format_args!("the connection to the daemon ended: {error}"));
                return self.hang_up();
            }
        }
        self.send();
    }

    fn handle(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Message(ToRunner::Start(spec)) => self.start(&spec),
            Incoming::Message(ToRunner::Input { number, bytes }) => {
                self.input(number, Ok(InputSource::Bytes(&bytes)))
            }
            Incoming::LargeInput(spool) => {
                let source = spool.file.as_ref().map(|file| InputSource::File(file, spool.length));
                self.input(spool.number, source);
            }
            Incoming::Message(ToRunner::Confirm { offset }) => {
                self.confirmed = self.confirmed.max(offset.min(self.journal.next_offset()));
                self.journal.confirm(self.confirmed);
                if self.disk_retry.is_some() {
                    self.store_and_send();
                }
            }
            Incoming::Message(ToRunner::Stop(stop)) => self.stop(stop),
            Incoming::Message(ToRunner::StderrTail) => {
                let text = self.child.as_mut().map(|child| {
                    child.read_stderr(&mut self.scratch);
                    child.stderr_tail()
                });
                self.reply(FromRunner::StderrTail { text: text.unwrap_or_default() });
            }
            // Said once already, when the connection began.
            Incoming::Message(ToRunner::Hello(_)) => {}
        }
    }

    fn start(&mut self, spec: &Spec) {
        if let Some(child) = &self.child {
            let child_pid = child.pid.as_raw_pid();
            return self.reply(FromRunner::Started { child_pid });
        }
        let started = process::start(spec)
            .map_err(|error| error.to_string())
            .and_then(|started| Child::new(started, spec).map_err(|error| error.to_string()));
        match started {
            Ok(child) => {
                // Only now, because a child is born with its parent's.
                if let Err(error) = set_current_timer_slack(SLACK) {
                    log(format_args!("the runner wakes up more often than it has to: {error}"));
                }
                let child_pid = child.pid.as_raw_pid();
                self.child = Some(child);
                self.phase = Phase::Running;
                self.journal.set_limit(spec.journal_bytes);
                self.stop_limits = spec.stop_limits;
                self.orphan_after = Duration::from_millis(spec.orphan_after_ms);
                self.idle_after = Duration::from_millis(spec.idle_after_ms);
                self.reply(FromRunner::Started { child_pid });
            }
            Err(message) => {
                self.reply(FromRunner::StartFailed { message });
                self.phase = Phase::StartFailed;
            }
        }
    }

    fn input(&mut self, number: u64, source: Result<InputSource<'_>, &io::Error>) {
        let last = self.journal.last_input();
        let Some(child) = &mut self.child else {
            return self.refuse(
                RefusalReason::NotStarted,
                format!("input {number} came before the child was started"),
            );
        };
        if number <= last {
            return self.reply(FromRunner::InputAck { number });
        }
        if !matches!(self.phase, Phase::Running) || child.exit.is_some() {
            return self.refuse(RefusalReason::Ended, format!("input {number} came after the child's end"));
        }
        if number != last + 1 {
            let message = format!("input {number} came where {} was expected", last + 1);
            return self.refuse(RefusalReason::InputGap, message);
        }
        if child.is_input_full() {
            let message =
                format!("input {number} was not taken: the child does not read what it was given before");
            return self.refuse(RefusalReason::InputFull, message);
        }
        let stored = match source {
            Ok(source) => self.journal.store_input(source).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match stored {
            Ok(stored) => {
                child.give_input(stored, &mut self.scratch);
                // What it says to that is not kept waiting, so that question and answer go back and forth quickly.
                self.pausing = false;
                self.quick_reads = QUICK_READS;
                self.reply(FromRunner::InputAck { number });
            }
            Err(error) => {
                let message =
                    format!("input {number} was not taken, it could not be written to disk: {error}");
                self.refuse(RefusalReason::InputFull, message);
            }
        }
    }
}

/// Accepts a peer once there is room for it among those that have not said hello.
async fn accept(
    listener: &UnixListener,
    strangers: &Arc<Semaphore>,
) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
    let room = Arc::clone(strangers).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, room))
}

/// Waits for the future if there is one, else for ever.
async fn when<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
