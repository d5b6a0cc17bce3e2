//! The daemon's side: starting runners and talking to them.
//!
//! A daemon holds hundreds of these connections, so an idle one holds no buffer. What records mean, when to confirm
//! them and when to try again is the daemon's.
//!
//! Invariant: a call that is cancelled halfway (in a `select!`) corrupts nothing. A half-sent frame is completed by the
//! next call of the [`Sender`]; a [`Receiver`] keeps what it has read.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::protocol::{
    FromRunner, Hello, PROTOCOL_VERSION, ProtocolError, Refusal, Stop, ToRunner, Welcome, first_frame,
    frame_head, put_input,
};
use crate::serve::READY_LINE;
use crate::spec::Spec;
use crate::{log_path, socket_path};

/// The longest path a Unix socket can have.
const MAX_SOCKET_PATH: usize = 107;

/// How long a runner may take to be ready, or to answer the hello.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The environment a runner itself gets, as far as it is set. The child gets its own, through the spec.
const RUNNER_ENVIRONMENT: [&str; 3] = ["PATH", "HOME", "CONSORT_HOME"];

/// The first read of a batch; a busy stream's buffer grows from here to [`MAX_BATCH`].
const FIRST_READ: usize = 8 << 10;

/// A batch ends when this much has been read.
const MAX_BATCH: usize = 256 << 10;

/// Why a runner could not be started or spoken to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no runner serves {dir}")]
    Gone { dir: PathBuf },
    #[error(
        "the path {path} is {length} bytes long but a socket's may have {MAX_SOCKET_PATH} at most; \
         set CONSORT_HOME to a shorter path"
    )]
    PathTooLong { path: PathBuf, length: usize },
    #[error("the runner {program} could not be started: {source}")]
    Spawn { program: PathBuf, source: io::Error },
    #[error("the runner of {dir} did not become ready: {reason}")]
    NotReady { dir: PathBuf, reason: String },
    #[error("the runner refused the connection: {}", .0.message)]
    Refused(Refusal),
    #[error("the runner of {dir} did not answer within {} seconds", ANSWER_LIMIT.as_secs())]
    Silent { dir: PathBuf },
    #[error("the connection to the runner ended")]
    Closed,
    #[error("the runner sent something unexpected: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("the connection to the runner failed: {0}")]
    Io(#[from] io::Error),
}

/// Starts a runner for `dir`, which is created, and returns when it listens. It outlives this process.
///
/// Runs `runner_program ARGS_PREFIX... runner --dir DIR`. What an earlier runner left in `dir` is removed, so salvage it
/// ([`crate::journal::read_from`]) before. The child is not started yet: that is [`Sender::start`].
pub async fn spawn(runner_program: &Path, args_prefix: &[OsString], dir: &Path) -> Result<(), Error> {
    checked_socket_path(dir)?;
    let failed = |source| Error::Spawn { program: runner_program.to_owned(), source };
    let log = create_directory(dir)
        .and_then(|()| File::options().append(true).create(true).mode(0o600).open(log_path(dir)));
    let mut command = Command::new(runner_program);
    command.args(args_prefix).arg("runner").arg("--dir").arg(dir);
    command.env_clear();
    command.envs(RUNNER_ENVIRONMENT.iter().filter_map(|key| Some((key, std::env::var_os(key)?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.map_err(failed)?);
    let mut runner = command.spawn().map_err(failed)?;
    let ready = timeout(ANSWER_LIMIT, wait_until_ready(&mut runner)).await;
    let is_ready = matches!(ready, Ok(Ok(true)));
    if !is_ready && let Err(error) = runner.start_kill() {
        tracing::debug!(%error, "a runner that was not ready had ended already");
    }
    // Reaps it whenever it ends; dropping the task's handle leaves the task running.
    drop(tokio::spawn(async move { runner.wait().await }));
    if is_ready {
        return Ok(());
    }
    let reason = match ready {
        Err(_) => format!("nothing was heard of it within {} seconds", ANSWER_LIMIT.as_secs()),
        Ok(Err(error)) => error.to_string(),
        Ok(Ok(_)) => last_line(&log_path(dir)).unwrap_or_else(|| "it ended at once".into()),
    };
    Err(Error::NotReady { dir: dir.to_owned(), reason })
}

fn create_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700))
}

async fn wait_until_ready(runner: &mut Child) -> io::Result<bool> {
    let Some(mut stdout) = runner.stdout.take() else { return Ok(false) };
    let mut line = Vec::with_capacity(READY_LINE.len());
    while line.len() < READY_LINE.len() && stdout.read_buf(&mut line).await? > 0 {}
    Ok(line == READY_LINE.as_bytes())
}

fn last_line(log: &Path) -> Option<String> {
    let text = std::fs::read_to_string(log).ok()?;
    text.lines().next_back().map(str::to_owned)
}

fn checked_socket_path(dir: &Path) -> Result<PathBuf, Error> {
    let path = socket_path(dir);
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH { Err(Error::PathTooLong { path, length }) } else { Ok(path) }
}

/// Connects to the runner of `dir` and asks for the records from offset `from` on.
///
/// [`Error::Gone`] means that no runner is there, for good: what it left can be salvaged.
pub async fn connect(dir: &Path, from: u64) -> Result<(Welcome, Sender, Receiver), Error> {
    let path = checked_socket_path(dir)?;
    let mut last_chance = false;
    loop {
        let Ok(answer) = timeout(ANSWER_LIMIT, greet(&path, from)).await else {
            return Err(Error::Silent { dir: dir.to_owned() });
        };
        let error = match answer {
            Ok(connected) => return Ok(connected),
            Err(Error::Io(error)) => error.kind(),
            // It hung up without a word: it is ending, and the second try finds nobody.
            Err(Error::Closed) if !last_chance => ErrorKind::ConnectionReset,
            Err(error) => return Err(error),
        };
        match error {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => {
                return Err(Error::Gone { dir: dir.to_owned() });
            }
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe if !last_chance => last_chance = true,
            error => return Err(io::Error::from(error).into()),
        }
    }
}

async fn greet(path: &Path, from: u64) -> Result<(Welcome, Sender, Receiver), Error> {
    let stream = Arc::new(UnixStream::connect(path).await?);
    let sender = Sender { stream: Arc::clone(&stream), unsent: Arc::default() };
    let mut receiver = Receiver { stream, received: Vec::new(), start: 0, ended: false };
    sender.send(&ToRunner::Hello(Hello { version: PROTOCOL_VERSION, from })).await?;
    loop {
        match receiver.take_frame()? {
            Some(FromRunner::Welcome(welcome)) => return Ok((welcome, sender, receiver)),
            Some(FromRunner::Refused(refusal)) => return Err(Error::Refused(refusal)),
            // The welcome is the first thing a runner of this version says.
            Some(_) => return Err(io::Error::from(ErrorKind::InvalidData).into()),
            None => receiver.wait_and_read().await?,
        }
    }
}

/// Speaks to a runner. Clones speak over the same connection; a frame is never mixed with another.
#[derive(Clone)]
pub struct Sender {
    stream: Arc<UnixStream>,
    /// What a cancelled call left to be sent; empty, and without memory, while nobody sends.
    unsent: Arc<Mutex<Vec<u8>>>,
}

impl Sender {
    /// Starts the child; answered by `Started` or `StartFailed`. Harmless if it was started before.
    pub async fn start(&self, spec: Spec) -> Result<(), Error> {
        self.send(&ToRunner::Start(Box::new(spec))).await
    }

    /// Gives the child input `number`; answered by `InputAck`, or by `Refused` with the reason.
    pub async fn input(&self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut frame = Vec::new();
        put_input(&mut frame, number, bytes)?;
        self.send_frame(frame).await
    }

    /// Says that all records before `offset` are done with.
    pub async fn confirm(&self, offset: u64) -> Result<(), Error> {
        self.send(&ToRunner::Confirm { offset }).await
    }

    /// Ends the child and everything it started; an exit record follows. A runner without a child ends.
    pub async fn stop(&self, stop: Stop) -> Result<(), Error> {
        self.send(&ToRunner::Stop(stop)).await
    }

    /// Asks for the end of the child's stderr; answered by `StderrTail`.
    pub async fn stderr_tail(&self) -> Result<(), Error> {
        self.send(&ToRunner::StderrTail).await
    }

    async fn send(&self, message: &ToRunner) -> Result<(), Error> {
        let mut frame = Vec::new();
        message.encode(&mut frame)?;
        self.send_frame(frame).await
    }

    async fn send_frame(&self, mut frame: Vec<u8>) -> Result<(), Error> {
        let mut unsent = self.unsent.lock().await;
        if unsent.is_empty() {
            *unsent = frame;
        } else {
            unsent.append(&mut frame);
        }
        let mut out = Unsent { bytes: &mut unsent, sent: 0 };
        while out.sent < out.bytes.len() {
            match self.stream.try_write(&out.bytes[out.sent..]) {
                Ok(count) => out.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.stream.writable().await?,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(Error::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Removes what was sent when the sending ends, however it ends.
struct Unsent<'a> {
    bytes: &'a mut Vec<u8>,
    sent: usize,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if self.sent == self.bytes.len() {
            *self.bytes = Vec::new();
        } else {
            self.bytes.drain(..self.sent);
        }
    }
}

/// Hears a runner.
pub struct Receiver {
    stream: Arc<UnixStream>,
    /// Bytes that were read; those before `start` are decoded. Without memory while nothing is half read.
    received: Vec<u8>,
    start: usize,
    /// Whether the runner has hung up.
    ended: bool,
}

impl Receiver {
    /// Waits for at least one message, then appends everything that can be read without waiting and returns how much
    /// that was. [`Error::Closed`] comes when all messages were given out and the runner has hung up. Cancel-safe.
    pub async fn next_batch(&mut self, out: &mut Vec<FromRunner>) -> Result<usize, Error> {
        let before = out.len();
        loop {
            while let Some(message) = self.take_frame()? {
                out.push(message);
            }
            if out.len() > before {
                return Ok(out.len() - before);
            }
            self.wait_and_read().await?;
        }
    }

    /// Waits for bytes and reads all there are, up to the size of a batch.
    async fn wait_and_read(&mut self) -> Result<(), Error> {
        if self.ended {
            return Err(Error::Closed);
        }
        self.stream.readable().await?;
        self.received.drain(..self.start);
        self.start = 0;
        let limit = self.received.len() + MAX_BATCH;
        let mut room = FIRST_READ;
        loop {
            self.received.reserve(room);
            match self.stream.try_read_buf(&mut self.received) {
                Ok(0) => self.ended = true,
                Ok(_) if self.received.len() >= limit => {}
                Ok(count) => {
                    if count >= room {
                        room = (room * 4).min(MAX_BATCH);
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The runner hung up on something we said; what it said before was read above.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.ended = true,
                Err(error) => return Err(error.into()),
            }
            return Ok(());
        }
    }

    /// The next whole message among the bytes that were read.
    fn take_frame(&mut self) -> Result<Option<FromRunner>, Error> {
        let rest = &self.received[self.start..];
        if let Some((head, payload)) = first_frame(rest)? {
            let message = FromRunner::decode(head.kind, payload)?;
            self.start += head.total();
            return Ok(Some(message));
        }
        if rest.is_empty() {
            self.received = Vec::new();
            self.start = 0;
        } else if let Some(head) = frame_head(rest)? {
            let missing = head.total() - rest.len();
            if missing > MAX_BATCH {
                // Saves a long frame from being copied each time the buffer grows.
                self.received.reserve(missing);
            }
        }
        Ok(None)
    }
}
