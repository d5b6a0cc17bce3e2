//! Commands that agents run through their host, each held by a runner of its own so that it outlives the daemon.
//!
//! A command's output stays in its runner's journal until it is released, so that a new daemon can still tell it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consort_drivers::{CallResult, HostCall, host::TerminalExit};
use consort_runner::client::{self, Receiver, Sender};
use consort_runner::protocol::{Exit, FromRunner, RecordBody, Stop};
use consort_runner::spec::{Framing, Spec, Stdin, StopLimits};
use tokio::sync::watch;

use crate::reach::reach_or_spawn;
use crate::shared::{AGENT_MARK, PROCESS_MARK};

/// Kept of a command's output where the agent names no limit.
const DEFAULT_LIMIT: usize = 1 << 20;

/// The most that is kept of a command's output, whatever the agent asks for.
const MAX_LIMIT: usize = 16 << 20;

/// How long the end of a released command is waited for.
const RELEASE_LIMIT: Duration = Duration::from_secs(10);

/// The terminals of one agent's process.
#[derive(Clone)]
pub struct Terminals {
    runner_program: PathBuf,
    /// Folder names of its runners begin with this.
    prefix: PathBuf,
    /// The agent's own environment.
    environment: Arc<Vec<(String, String)>>,
    cwd: PathBuf,
    open: Arc<Mutex<HashMap<String, Arc<Terminal>>>>,
    /// Whether all were released for good. Held while a command is started, so that none is started behind the back of
    /// a release.
    released: Arc<tokio::sync::RwLock<bool>>,
}

struct Terminal {
    dir: PathBuf,
    sender: Sender,
    kept: Arc<Mutex<Kept>>,
    progress: watch::Receiver<Progress>,
}

/// How far the reading of a command's output is.
#[derive(Clone, Copy, Default)]
struct Progress {
    next_offset: u64,
    ended: bool,
}

#[derive(Default)]
struct Kept {
    limit: usize,
    output: Vec<u8>,
    truncated: bool,
    exit: Option<TerminalExit>,
    next_offset: u64,
}

impl Terminals {
    pub fn new(
        runner_program: PathBuf,
        runner_dir: &Path,
        environment: Vec<(String, String)>,
        cwd: PathBuf,
    ) -> Self {
        let mut prefix = runner_dir.as_os_str().to_owned();
        prefix.push("t");
        Self {
            runner_program,
            prefix: prefix.into(),
            environment: Arc::new(environment),
            cwd,
            open: Arc::default(),
            released: Arc::default(),
        }
    }

    /// Does one of the terminal calls; others fail.
    pub async fn call(&self, call: HostCall) -> CallResult {
        match call {
            HostCall::TerminalCreate { terminal, command, args, env, cwd, output_limit } => {
                let mut spec = Spec::new(command, cwd.map_or_else(|| self.cwd.clone(), PathBuf::from));
                spec.args = args;
                spec.env = self.environment.iter().cloned().collect();
                // Whose command it is, is not the agent's to say.
                let changed = env.into_iter().filter(|(key, _)| key != AGENT_MARK && key != PROCESS_MARK);
                let changed: Vec<(String, String)> = changed.collect();
                spec.env.retain(|(key, _)| !changed.iter().any(|(own, _)| own == key));
                spec.env.extend(changed);
                spec.framing = Framing::Raw;
                spec.stdin = Stdin::Null;
                spec.merge_stderr = true;
                let limit = output_limit.map_or(DEFAULT_LIMIT, |limit| (limit as usize).min(MAX_LIMIT));
                self.create(&terminal, spec, limit).await
            }
            HostCall::TerminalOutput { terminal } => match self.find(&terminal).await {
                Ok(terminal) => terminal.output(),
                Err(failed) => failed,
            },
            HostCall::TerminalWait { terminal } => match self.find(&terminal).await {
                Ok(terminal) => terminal.wait().await,
                Err(failed) => failed,
            },
            HostCall::TerminalKill { terminal } => match self.find(&terminal).await {
                Ok(terminal) => terminal.kill().await,
                Err(failed) => failed,
            },
            HostCall::TerminalRelease { terminal } => match self.find(&terminal).await {
                Ok(found) => {
                    self.lock().remove(&terminal);
                    found.release().await;
                    CallResult::Done
                }
                Err(failed) => failed,
            },
            HostCall::ReadFile { .. } | HostCall::WriteFile { .. } => {
                CallResult::Failed { message: "this is not a call of a terminal".to_owned() }
            }
        }
    }

    /// Ends every command of this process, those that an earlier daemon started too.
    pub async fn release_all(&self) {
        let mut released = self.released.write().await;
        *released = true;
        self.lock().clear();
        for dir in self.dirs() {
            match Terminal::attach(dir.clone(), DEFAULT_LIMIT).await {
                Ok(terminal) => terminal.release().await,
                // Killed, or never quite started: only its folder is left, and nobody else clears that away.
                Err(client::Error::Gone { .. }) => {
                    if let Err(error) = tokio::fs::remove_dir_all(&dir).await {
                        tracing::debug!(%error, dir = %dir.display(), "the folder of a command stays");
                    }
                }
                Err(error) => tracing::warn!(%error, dir = %dir.display(), "a command cannot be ended"),
            }
        }
    }

    async fn create(&self, name: &str, spec: Spec, limit: usize) -> CallResult {
        let released = self.released.read().await;
        if *released {
            return CallResult::Failed { message: "the agent's process has ended".to_owned() };
        }
        match start(&self.runner_program, self.dir(name), spec, limit).await {
            Ok(terminal) => {
                self.lock().insert(name.to_owned(), Arc::new(terminal));
                CallResult::Done
            }
            Err(message) => CallResult::Failed { message },
        }
    }

    async fn find(&self, name: &str) -> Result<Arc<Terminal>, CallResult> {
        if let Some(terminal) = self.lock().get(name) {
            return Ok(Arc::clone(terminal));
        }
        let terminal = Terminal::attach(self.dir(name), DEFAULT_LIMIT)
            .await
            .map_err(|_| CallResult::Failed { message: format!("there is no terminal `{name}`") })?;
        Ok(Arc::clone(self.lock().entry(name.to_owned()).or_insert_with(|| Arc::new(terminal))))
    }

    /// `term-7` of `run/abc-1` has its runner in `run/abc-1t7`.
    fn dir(&self, name: &str) -> PathBuf {
        let mut dir = self.prefix.as_os_str().to_owned();
        dir.push(name.chars().filter(char::is_ascii_digit).collect::<String>());
        dir.into()
    }

    fn dirs(&self) -> Vec<PathBuf> {
        let (Some(folder), Some(prefix)) = (self.prefix.parent(), self.prefix.file_name()) else {
            return vec![];
        };
        let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
        let ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes());
        entries.flatten().filter(|entry| ours(&entry.file_name())).map(|entry| entry.path()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Terminal>>> {
        lock(&self.open)
    }
}

/// Starts a command. Asked again after a crash, it takes up the one that runs, or goes on where the start was cut short.
async fn start(program: &Path, dir: PathBuf, spec: Spec, limit: usize) -> Result<Terminal, String> {
    let reached = reach_or_spawn(program, &dir).await;
    let (welcome, sender, mut receiver) = reached.map_err(|error| error.to_string())?;
    if welcome.started {
        let terminal = Terminal::read(dir, sender, receiver, vec![], limit);
        terminal.reached(|progress| progress.next_offset >= welcome.next_offset).await;
        return Ok(terminal);
    }
    sender.start(spec).await.map_err(|error| error.to_string())?;
    let mut early = Vec::new();
    loop {
        receiver.next_batch(&mut early).await.map_err(|error| error.to_string())?;
        for message in &early {
            match message {
                FromRunner::Started { .. } => return Ok(Terminal::read(dir, sender, receiver, early, limit)),
                FromRunner::StartFailed { message } => return Err(message.clone()),
                _ => {}
            }
        }
    }
}

impl Terminal {
    /// Takes up a command whose runner is there.
    async fn attach(dir: PathBuf, limit: usize) -> Result<Self, client::Error> {
        let (welcome, sender, receiver) = client::connect(&dir, 0).await?;
        let terminal = Self::read(dir, sender, receiver, vec![], limit);
        // Its runner tells all of its output again. Until that is read, there would seem to be less than there is.
        terminal.reached(|progress| progress.next_offset >= welcome.next_offset).await;
        Ok(terminal)
    }

    /// Reads its output in the background until it ends.
    fn read(
        dir: PathBuf,
        sender: Sender,
        mut receiver: Receiver,
        early: Vec<FromRunner>,
        limit: usize,
    ) -> Self {
        let (announce, progress) = watch::channel(Progress::default());
        let kept = Arc::new(Mutex::new(Kept { limit, ..Kept::default() }));
        let reader = Arc::clone(&kept);
        let mut messages = early;
        tokio::spawn(async move {
            loop {
                let (over, next_offset) = {
                    let mut kept = lock(&reader);
                    (kept.take_in(messages.drain(..)), kept.next_offset)
                };
                announce.send_replace(Progress { next_offset, ended: over });
                if over || receiver.next_batch(&mut messages).await.is_err() {
                    // A runner that is gone without an exit was killed, and its command with it.
                    lock(&reader)
                        .exit
                        .get_or_insert(TerminalExit { code: None, signal: Some("SIGKILL".into()) });
                    announce.send_replace(Progress { next_offset, ended: true });
                    return;
                }
            }
        });
        Self { dir, sender, kept, progress }
    }

    /// Waits until the reading is as far as wanted, or at its end.
    async fn reached(&self, wanted: impl Fn(&Progress) -> bool) {
        let mut progress = self.progress.clone();
        // An error means that the reader is gone, which it is only after the end.
        drop(progress.wait_for(|progress| progress.ended || wanted(progress)).await);
    }

    fn output(&self) -> CallResult {
        let kept = lock(&self.kept);
        let text = String::from_utf8_lossy(&kept.output).into_owned();
        CallResult::Output { text, truncated: kept.truncated, exit: kept.exit.clone() }
    }

    async fn wait(&self) -> CallResult {
        self.reached(|_| false).await;
        let unknown = TerminalExit { code: None, signal: None };
        CallResult::Exited(lock(&self.kept).exit.clone().unwrap_or(unknown))
    }

    async fn kill(&self) -> CallResult {
        let stop = Stop { protocol_stop: None, limits: Some(StopLimits::at_once()) };
        match self.sender.stop(stop).await {
            Ok(()) | Err(client::Error::Closed) => {
                self.wait().await;
                CallResult::Done
            }
            Err(error) => CallResult::Failed { message: error.to_string() },
        }
    }

    /// Ends the command and lets its runner go.
    async fn release(&self) {
        let let_go = async {
            self.kill().await;
            let next_offset = lock(&self.kept).next_offset;
            if let Err(error) = self.sender.confirm(next_offset).await {
                tracing::debug!(%error, dir = %self.dir.display(), "the runner of a command was gone already");
            }
        };
        if tokio::time::timeout(RELEASE_LIMIT, let_go).await.is_err() {
            tracing::warn!(dir = %self.dir.display(), "a command did not end in time");
        }
    }
}

impl Kept {
    /// Takes in what the runner said; whether the command ended.
    fn take_in(&mut self, messages: impl IntoIterator<Item = FromRunner>) -> bool {
        let mut over = false;
        for message in messages {
            let FromRunner::Record(record) = message else { continue };
            self.next_offset = record.offset + 1;
            match record.body {
                RecordBody::Output { bytes, .. } => self.append(&bytes),
                RecordBody::Exit(exit) => {
                    self.exit = Some(match exit {
                        Exit::Code(code) => TerminalExit { code: Some(code), signal: None },
                        Exit::Signal(signal) => TerminalExit { code: None, signal: Some(signal.to_string()) },
                        Exit::Unknown => TerminalExit { code: None, signal: None },
                    });
                    over = true;
                }
                RecordBody::Input { .. } => {}
            }
        }
        over
    }

    /// Keeps the end of the output, cut at a character.
    fn append(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        if self.output.len() > self.limit {
            let mut cut = self.output.len() - self.limit;
            while cut < self.output.len() && self.output[cut] & 0xC0 == 0x80 {
                cut += 1;
            }
            self.output.drain(..cut);
            self.truncated = true;
        }
    }
}

/// Locks even after a panic elsewhere: every critical section here leaves its data whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
