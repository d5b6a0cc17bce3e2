//! A blocking client of the daemon, for programs that do one thing at a time.
//!
//! Starts the daemon where none runs. Uses no async runtime, so that a short command stays short.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::home::{Home, HomeError};
use crate::protocol::{
    Call, ErrorBody, FromDaemon, Notification, PROTOCOL_VERSION, Request, Snapshot, Welcome,
};

/// How long a daemon may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Why a call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No daemon runs, and none was to be started.
    #[error("no daemon runs for {home}; `consort daemon start` starts one")]
    NoDaemon {
        /// Its folder.
        home: PathBuf,
    },
    /// The folder is unusable.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The daemon did not start.
    #[error("the daemon did not start: {reason}")]
    Start {
        /// Why.
        reason: String,
    },
    /// The daemon ended without a word while it started, as one that is killed does.
    #[error("the daemon ended while it started; try again, or see its log in {logs}")]
    EndedAtStart {
        /// The folder of its logs.
        logs: PathBuf,
    },
    /// The daemon is of another version.
    #[error(
        "the running daemon speaks protocol {theirs}, this program {PROTOCOL_VERSION}; `consort daemon stop \
         --keep-agents` ends it and leaves the agents running"
    )]
    Version {
        /// The daemon's.
        theirs: u32,
    },
    /// The connection broke.
    #[error("the connection to the daemon broke: {source}")]
    Connection {
        /// How.
        #[from]
        source: io::Error,
    },
    /// The daemon refused or could not.
    #[error("{}", .0.message)]
    Answer(ErrorBody),
    /// The daemon said something that this program does not understand.
    #[error("the daemon sent something unexpected: {reason}")]
    Unexpected {
        /// What.
        reason: String,
    },
}

/// A connection to the daemon that has said hello.
pub struct Client {
    reader: BufReader<UnixStream>,
    next_id: u64,
    notifications: std::collections::VecDeque<Notification>,
    welcome: Welcome,
}

impl Client {
    /// Connects to the running daemon.
    pub fn connect(home: &Home) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(home.socket()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NoDaemon { home: home.root().to_owned() }
            }
            _ => ClientError::Connection { source: error },
        })?;
        let welcome = Welcome { protocol: 0, version: String::new(), pid: 0 };
        let mut client =
            Self { reader: BufReader::new(stream), next_id: 1, notifications: Default::default(), welcome };
        let client_name = format!("consort {}", env!("CARGO_PKG_VERSION"));
        client.welcome = client.call(&Call::Hello { protocol: PROTOCOL_VERSION, client: client_name })?;
        if client.welcome.protocol != PROTOCOL_VERSION {
            return Err(ClientError::Version { theirs: client.welcome.protocol });
        }
        Ok(client)
    }

    /// Connects to the daemon, and starts it first where none runs. `program` is the `consort` binary.
    pub fn connect_or_start(home: &Home, program: &Path) -> Result<Self, ClientError> {
        match Self::connect(home) {
            Err(ClientError::NoDaemon { .. }) => start_daemon(home, program),
            other => other,
        }
    }

    /// Who answers.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Asks, and waits for the answer.
    pub fn call<R: DeserializeOwned>(&mut self, call: &Call) -> Result<R, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = Request { jsonrpc: "2.0".to_owned(), id: Value::from(id), call: call.clone() };
        let mut line = serde_json::to_vec(&request).map_err(unexpected)?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line)?;
        loop {
            match self.receive()? {
                FromDaemon::Result { id: answered, result } if answered == id => {
                    return serde_json::from_value(result).map_err(unexpected);
                }
                FromDaemon::Error { id: answered, error } if answered == id => {
                    return Err(ClientError::Answer(error));
                }
                FromDaemon::Notification(notification) => self.notifications.push_back(notification),
                FromDaemon::Error { id: Value::Null, error } => return Err(ClientError::Answer(error)),
                _ => {}
            }
        }
    }

    /// Subscribes: the snapshot now, events by [`Self::next_notification`].
    pub fn subscribe(&mut self) -> Result<Snapshot, ClientError> {
        self.call(&Call::Subscribe {})
    }

    /// Waits for the next notification.
    pub fn next_notification(&mut self) -> Result<Notification, ClientError> {
        if let Some(notification) = self.notifications.pop_front() {
            return Ok(notification);
        }
        loop {
            if let FromDaemon::Notification(notification) = self.receive()? {
                return Ok(notification);
            }
        }
    }

    fn receive(&mut self) -> Result<FromDaemon, ClientError> {
        let mut line = Vec::new();
        if self.reader.read_until(b'\n', &mut line)? == 0 {
            return Err(ClientError::Connection { source: io::ErrorKind::UnexpectedEof.into() });
        }
        serde_json::from_slice(&line).map_err(unexpected)
    }
}

fn unexpected(error: serde_json::Error) -> ClientError {
    ClientError::Unexpected { reason: error.to_string() }
}

/// Starts `consort daemon run` in a session of its own and connects once it listens. Two programs may do this at once:
/// one daemon wins, and both connect to it.
fn start_daemon(home: &Home, program: &Path) -> Result<Client, ClientError> {
    home.make()?;
    let start = |reason: String| ClientError::Start { reason };
    let mut child = detached(Command::new(program).args(["daemon", "run", "--detached"]))
        .env("CONSORT_HOME", home.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| start(format!("{} cannot be run: {error}", program.display())))?;
    let mut first = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut first)?;
    }
    if first.is_empty() {
        let mut reason = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            io::Read::read_to_string(&mut stderr, &mut reason)?;
        }
        child.wait()?;
        let reason = reason.trim().trim_start_matches("consort: ").to_owned();
        return Err(if reason.is_empty() {
            ClientError::EndedAtStart { logs: home.logs() }
        } else {
            start(reason)
        });
    }
    // "ready" means that it listens; "running" that another one won and may need a moment more.
    let deadline = Instant::now() + START_LIMIT;
    loop {
        match Client::connect(home) {
            Err(ClientError::NoDaemon { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// A command that survives the terminal it was started from.
fn detached(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command.process_group(0)
}
