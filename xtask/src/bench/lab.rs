//! A daemon on a home of its own, for one row, and a connection that costs its client nearly nothing.
//!
//! Invariant: when a [`Lab`] is gone, so are its daemon, the runners and their children.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_daemon::client::Client;
use consort_daemon::home::Home;
use consort_daemon::protocol::{
    AgentView, Call, Done, NewAgent, NewProfile, NewPrompt, Notification, PROTOCOL_VERSION, Sent,
};
use consort_model::event::AgentEvent;
use consort_model::{AgentId, Event, ProfileSummary, PromptId, Stamped};
use consort_testkit::harness::processes::wait_until_gone;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use uuid::Uuid;

use super::Bench;
use super::processes::Family;
use super::supervise;

/// Agents that are being started at the same time: more would only wait for a processor, some for too long.
const STARTING_AT_ONCE: usize = 8;

/// How long the processes of a home may take to end.
const END_LIMIT: Duration = Duration::from_secs(30);

pub struct Lab {
    consort: PathBuf,
    testkit: PathBuf,
    pub home: Home,
    folder: TempDir,
    daemon: Option<Child>,
}

impl Lab {
    /// A home that is not made yet, at a path short enough for sockets.
    pub fn new(bench: &Bench) -> anyhow::Result<Self> {
        let folder = supervise::folder()?;
        let home = Home::at(&folder.path().join("h"))?;
        let Bench { programs, .. } = bench;
        Ok(Self {
            consort: programs.consort.clone(),
            testkit: programs.testkit.clone(),
            home,
            folder,
            daemon: None,
        })
    }

    /// Starts the daemon and waits until it listens.
    pub fn start(&mut self) -> anyhow::Result<u32> {
        let mut command = Command::new(&self.consort);
        command.args(["daemon", "run", "--detached"]).env("CONSORT_HOME", self.home.root());
        let daemon = self.daemon.insert(spawn_until_ready(&mut command)?);
        Ok(daemon.id())
    }

    /// The folder that agents work in.
    pub fn work(&self) -> &Path {
        self.folder.path()
    }

    /// Ends whichever daemon runs, also one that something else started, and all agents' processes.
    pub fn stop_any(&mut self) -> anyhow::Result<()> {
        let mut client = Client::connect(&self.home)?;
        let pid = client.welcome().pid.cast_signed();
        let _: Done = client.call(&Call::Stop { force: true, keep_agents: false })?;
        if !wait_until_gone(pid, END_LIMIT) {
            bail!("the daemon {pid} does not end");
        }
        if let Some(mut daemon) = self.daemon.take() {
            daemon.wait()?;
        }
        Ok(())
    }

    /// Ends the daemon and all agents' processes.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let _: Done = Client::connect(&self.home)?.call(&Call::Stop { force: true, keep_agents: false })?;
        daemon.wait()?;
        self.daemon = None;
        Ok(())
    }

    /// Makes the profile of the scripted agent.
    pub fn add_profile(&self, client: &mut Client) -> anyhow::Result<()> {
        let command = self.testkit.to_str().context("the scripted agent's path is not text")?;
        let _: ProfileSummary =
            client.call(&Call::AddProfile(NewProfile::acp("scripted", command, vec!["agent".to_owned()])))?;
        Ok(())
    }

    /// Creates agents and waits until all are ready for a prompt.
    pub fn add_agents(&self, client: &mut Client, count: usize) -> anyhow::Result<Vec<AgentId>> {
        let mut watcher = Client::connect(&self.home)?;
        watcher.subscribe()?;
        let mut agents = Vec::new();
        let mut starting = BTreeSet::new();
        while agents.len() < count || !starting.is_empty() {
            while agents.len() < count && starting.len() < STARTING_AT_ONCE {
                let id = AgentId::new(Uuid::now_v7());
                let _: AgentView = client.call(&Call::CreateAgent(NewAgent {
                    id,
                    profile: Some("scripted".to_owned()),
                    name: None,
                    cwd: self.folder.path().to_owned(),
                    companion_of: None,
                    permissions: None,
                    worktree: None,
                    prompt: None,
                }))?;
                agents.push(id);
                starting.insert(id);
            }
            match watcher.next_notification()? {
                Notification::Snapshot(_) => bail!("the client that waits for the agents did not keep up"),
                Notification::Event(Stamped { event: Event::Agent { agent, change }, .. }) => match change {
                    AgentEvent::Ready { .. } => drop(starting.remove(&agent)),
                    AgentEvent::Failed { failure } => {
                        bail!("the agent {agent} did not start: {}", failure.message)
                    }
                    _ => {}
                },
                Notification::Event(_) => {}
            }
        }
        Ok(agents)
    }

    /// Prompts an agent.
    pub fn send(client: &mut Client, agent: AgentId, text: &str) -> anyhow::Result<()> {
        let prompt =
            NewPrompt { id: PromptId::new(Uuid::now_v7()), text: text.to_owned(), attachments: vec![] };
        let _: Sent = client.call(&Call::Send { agent: agent.to_string(), prompt })?;
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("xtask: the daemon did not stop in order: {error:#}");
        }
        // One that a screen started.
        if Client::connect(&self.home).is_ok()
            && let Err(error) = self.stop_any()
        {
            eprintln!("xtask: a daemon did not stop in order: {error:#}");
        }
        if let Some(mut daemon) = self.daemon.take()
            && let Err(error) = daemon.kill().and_then(|()| daemon.wait())
        {
            eprintln!("xtask: the daemon cannot be ended: {error}");
        }
        if let Err(error) = end_family(self.home.root()) {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// Ends what is left of a home's processes. A runner that is told to end takes its children with it.
fn end_family(home: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + END_LIMIT;
    let mut told = false;
    loop {
        let Family { runners, .. } = Family::of(home)?;
        if runners.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the runners {runners:?} do not end");
        }
        if !told {
            eprintln!("xtask: ending {} runners that were left", runners.len());
            for pid in runners.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                if let Err(error) = kill_process(pid, Signal::TERM)
                    && error != Errno::SRCH
                {
                    bail!("the runner {pid:?} cannot be ended: {error}");
                }
            }
            told = true;
        }
        // The runners are not our children, so nothing tells when they are gone.
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a program that says `ready` when it listens, and waits for that.
pub fn spawn_until_ready(command: &mut Command) -> anyhow::Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{program} cannot be run"))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::with_capacity(64, stdout).read_line(&mut line)?;
    }
    if line != "ready\n" {
        let status = child.wait()?;
        bail!("{program} did not become ready but ended ({status})");
    }
    Ok(child)
}

/// A connection to the daemon, or to the reference, that reads answers without understanding them.
pub struct RawConnection {
    stream: UnixStream,
    read: Vec<u8>,
}

impl RawConnection {
    pub fn connect(socket: &Path) -> anyhow::Result<Self> {
        Ok(Self { stream: UnixStream::connect(socket)?, read: Vec::new() })
    }

    /// Connects to a daemon and says hello.
    pub fn greet(home: &Home) -> anyhow::Result<Self> {
        let mut connection = Self::connect(&home.socket())?;
        connection
            .ask(&request(&Call::Hello { protocol: PROTOCOL_VERSION, client: "xtask bench".to_owned() })?)?;
        Ok(connection)
    }

    /// Sends a line and waits for one; an error if the answer is one.
    pub fn ask(&mut self, line: &[u8]) -> anyhow::Result<&[u8]> {
        self.stream.write_all(line)?;
        self.read.clear();
        let mut buffer = [0; 16 << 10];
        while self.read.last() != Some(&b'\n') {
            match self.stream.read(&mut buffer)? {
                0 => bail!("the connection ended without an answer"),
                count => self.read.extend_from_slice(&buffer[..count]),
            }
        }
        if self.read.starts_with(br#"{"jsonrpc":"2.0","id":1,"error""#) {
            bail!("an error was answered: {}", String::from_utf8_lossy(&self.read));
        }
        Ok(&self.read)
    }

    /// The stream itself, for what follows by itself.
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }
}

/// A request as it is sent.
pub fn request(call: &Call) -> anyhow::Result<Vec<u8>> {
    let mut value = serde_json::to_value(call)?;
    value["jsonrpc"] = "2.0".into();
    value["id"] = 1.into();
    let mut line = serde_json::to_vec(&value)?;
    line.push(b'\n');
    Ok(line)
}
