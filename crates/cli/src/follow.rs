//! A live replica of the daemon's state, with everything else that a waiting command must notice.
//!
//! One thread reads the daemon's notifications and connects again when the daemon was killed; others wait for signals
//! and for lines typed on the terminal. All of them end in one bounded channel, so that a waiting command has one place
//! to wait at, and one that does not keep up slows down the reading instead of growing.
//!
//! Invariant: after every [`Update`] the replica is what the daemon's state was at some event; a lost connection shows
//! as [`Update::Resync`], never as a gap.

use std::io::{BufRead, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use consort_daemon::client::Client;
use consort_daemon::home::Home;
use consort_daemon::protocol::{Notification, Snapshot};
use consort_model::{Agent, AgentId, Stamped, State};

use crate::exit::{Exit, Stop};
use crate::link::{connect, may_help_again};

/// How many happenings may wait to be looked at.
const WAITING: usize = 256;

/// How often in a row a connection may break before anything useful came.
const ATTEMPTS: u32 = 40;

/// How long a daemon that was killed may take until another client has started it again.
const GONE_FOR_GOOD: Duration = Duration::from_secs(1);

/// What a waiting command sees.
pub enum Update {
    /// The replica is new: at the beginning, after a break, or because this program was too slow.
    Resync,
    /// An event, already applied to the replica.
    Event(Box<Stamped>),
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP.
    Terminate,
    /// A line that was asked for; none: standard input is closed.
    Line(Option<String>),
    /// The time given to [`Watch::next`] is over.
    Timeout,
}

enum Happening {
    Snapshot(Box<Snapshot>),
    Event(Box<Stamped>),
    Lost(Stop),
    Interrupt,
    Terminate,
    Line(Option<String>),
}

/// The replica and where its changes come from.
pub struct Watch {
    state: State,
    happenings: Receiver<Happening>,
    sender: SyncSender<Happening>,
    lines: Option<Sender<()>>,
    line_wanted: bool,
}

impl Watch {
    /// Subscribes. The first update is a [`Update::Resync`].
    pub fn new(home: &Home) -> Self {
        let (sender, happenings) = sync_channel(WAITING);
        let (home, to) = (home.clone(), sender.clone());
        std::thread::spawn(move || read_notifications(&home, &to));
        Self { state: State::default(), happenings, sender, lines: None, line_wanted: false }
    }

    /// Makes Ctrl-C and SIGTERM updates instead of the end of this program.
    pub fn catch_signals(&self) -> Result<(), Stop> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(|error| Stop::failed(format!("cannot wait for signals: {error}")))?;
        let sender = self.sender.clone();
        std::thread::spawn(move || runtime.block_on(read_signals(&sender)));
        Ok(())
    }

    /// Asks for one line of standard input; it comes as [`Update::Line`]. What was typed before is thrown away, so that
    /// nobody answers what they have not seen.
    pub fn want_line(&mut self) {
        let stdin = std::io::stdin();
        if stdin.is_terminal() && !self.line_wanted {
            // A terminal that cannot be flushed can still be asked.
            rustix::termios::tcflush(&stdin, rustix::termios::QueueSelector::IFlush).unwrap_or_default();
        }
        let sender = self.sender.clone();
        let lines = self.lines.get_or_insert_with(|| {
            let (ask, asked) = channel::<()>();
            std::thread::spawn(move || read_lines(&asked, &sender));
            ask
        });
        if !self.line_wanted {
            // If the thread is gone, standard input is closed and that was told.
            self.line_wanted = lines.send(()).is_ok();
        }
    }

    /// The replica.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// One agent of the replica.
    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.state.agents.get(&id)
    }

    /// Waits for the next update, at most until `deadline`.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Update, Stop> {
        loop {
            let happening = match deadline {
                None => self.happenings.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => {
                    self.happenings.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                }
            };
            match happening {
                Ok(Happening::Snapshot(snapshot)) => {
                    self.state = snapshot.state;
                    return Ok(Update::Resync);
                }
                Ok(Happening::Event(stamped)) => {
                    if stamped.seq > self.state.seq {
                        self.state.apply(&stamped);
                        return Ok(Update::Event(stamped));
                    }
                }
                Ok(Happening::Lost(stop)) => return Err(stop),
                Ok(Happening::Interrupt) => return Ok(Update::Interrupt),
                Ok(Happening::Terminate) => return Ok(Update::Terminate),
                Ok(Happening::Line(line)) => {
                    self.line_wanted = false;
                    return Ok(Update::Line(line));
                }
                Err(RecvTimeoutError::Timeout) => return Ok(Update::Timeout),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Stop::failed("the connection to the daemon was lost"));
                }
            }
        }
    }
}

/// Reads notifications for as long as somebody looks at them, over as many connections as it takes.
fn read_notifications(home: &Home, to: &SyncSender<Happening>) {
    let mut failures = 0;
    let mut connected_before = false;
    loop {
        let lost = match subscription(home, connected_before) {
            Ok((mut client, snapshot)) => {
                connected_before = true;
                if to.send(Happening::Snapshot(Box::new(snapshot))).is_err() {
                    return;
                }
                loop {
                    let happening = match client.next_notification() {
                        Ok(Notification::Event(stamped)) => Happening::Event(Box::new(stamped)),
                        Ok(Notification::Snapshot(snapshot)) => Happening::Snapshot(Box::new(snapshot)),
                        Err(error) => break Stop::from(error),
                    };
                    failures = 0;
                    if to.send(happening).is_err() {
                        return;
                    }
                }
            }
            Err(stop) => stop,
        };
        let again = lost.cause.as_deref().is_some_and(may_help_again);
        failures += 1;
        if !again || failures > ATTEMPTS {
            // Nobody may be listening any more, and then there is nobody to tell.
            drop(to.send(Happening::Lost(lost)));
            return;
        }
        std::thread::sleep(Duration::from_millis(10 * u64::from(failures.min(20))));
    }
}

fn subscription(home: &Home, connected_before: bool) -> Result<(Client, Snapshot), Stop> {
    if connected_before && was_stopped(home) {
        let message = "the daemon was stopped; the next command starts it again";
        return Err(Stop::new(Exit::NoDaemon, message));
    }
    let mut client = connect(home)?;
    let snapshot = client.subscribe()?;
    Ok((client, snapshot))
}

/// Whether the daemon was ended on purpose: it then took its socket away, while one that was killed leaves it. Starting
/// it again would undo what a person just did.
fn was_stopped(home: &Home) -> bool {
    let deadline = Instant::now() + GONE_FOR_GOOD;
    while !home.socket().exists() {
        if Instant::now() >= deadline {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

async fn read_signals(to: &SyncSender<Happening>) {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (|| {
        Ok::<_, std::io::Error>((
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ))
    })();
    // Without handlers the signals end the program, which is what they are for.
    let Ok((mut interrupt, mut terminate, mut hangup)) = signals else { return };
    loop {
        let happening = tokio::select! {
            _ = interrupt.recv() => Happening::Interrupt,
            _ = terminate.recv() => Happening::Terminate,
            _ = hangup.recv() => Happening::Terminate,
        };
        if to.send(happening).is_err() {
            return;
        }
    }
}

fn read_lines(asked: &Receiver<()>, to: &SyncSender<Happening>) {
    let stdin = std::io::stdin();
    while asked.recv().is_ok() {
        let mut line = String::new();
        let line = match stdin.lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
        };
        if to.send(Happening::Line(line)).is_err() {
            return;
        }
    }
}
