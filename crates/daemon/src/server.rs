//! The daemon process: one per home, from its start to its end.
//!
//! Owns the lock that makes it the only one, the socket, the logs and the signals. What clients say is [`crate::connection`]'s.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_hub::peer::{self, Peer};
use consort_hub::{Hub, Settings};
use consort_mcp::Endpoint;
use rustix::fs::FlockOperation;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::connection;
use crate::home::Home;
use crate::logs;

/// Printed once the daemon listens.
pub const READY: &str = "ready";

/// Printed where another daemon runs already.
pub const RUNNING: &str = "running";

/// How long a daemon that is ending or starting may hold the lock without answering.
const LOCK_LIMIT: Duration = Duration::from_secs(15);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// After a failed accept (too many open files), the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Variables that a daemon does not hand on to agents: they are about the terminal or agent that happened to start it.
const NOT_INHERITED: [&str; 3] = ["CONSORT_AGENT_ID", "CONSORT_PROCESS", "OLDPWD"];

/// What all connections share.
pub struct Daemon {
    pub home: Home,
    pub hub: Arc<Hub>,
    pub started: Instant,
    pub clients: AtomicU32,
    /// Told when the hub is shut down and the client that asked for it has its answer.
    pub ended: Notify,
}

/// Runs the daemon of `home` until it is told to end. A detached one leaves its terminal and says when it listens.
pub fn run(home: Home, detached: bool) -> anyhow::Result<ExitCode> {
    home.make()?;
    if peer::is_below_a_runner(&home.runners()) {
        bail!(
            "an agent cannot start the daemon it belongs to, which would end with the agent; ask the person to run \
             `consort daemon start`"
        );
    }
    let Some(_lock) = Lock::take(&home)? else {
        if detached {
            announce(RUNNING)?;
            return Ok(ExitCode::SUCCESS);
        }
        bail!("a daemon already runs for {}; `consort daemon status` tells more", home.root().display());
    };
    if detached {
        // Fails only for a process that leads a group; such a one was detached by its starter.
        rustix::process::setsid().map(drop).or_else(|error| match error {
            rustix::io::Errno::PERM => Ok(()),
            other => Err(other),
        })?;
    }
    let _logs = logs::start(&home.logs())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the daemon's runtime could not be started")?;
    runtime.block_on(serve(home, detached))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(home: Home, detached: bool) -> anyhow::Result<()> {
    let settings = Settings {
        data: home.root().to_owned(),
        config: home.config(),
        runners: home.runners(),
        program: std::env::current_exe().context("the daemon's own program cannot be found")?,
        environment: inherited_environment(&home),
    };
    let mut endpoint = None;
    let hub = Hub::open(settings, |before| {
        endpoint = team_tools(before);
        endpoint.as_ref().map(Endpoint::port)
    })
    .await?;
    if let Some(endpoint) = endpoint {
        endpoint.serve(Arc::clone(&hub)).context("the team tools cannot be served")?;
    }
    let listener = listen(&home.socket())?;
    tracing::info!(pid = std::process::id(), version = env!("CARGO_PKG_VERSION"), "listening");
    if detached {
        announce(READY)?;
        leave_terminal()?;
    }
    let daemon = Arc::new(Daemon {
        home,
        hub,
        started: Instant::now(),
        clients: AtomicU32::new(0),
        ended: Notify::new(),
    });
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => welcome(&daemon, stream),
                Err(error) => {
                    tracing::error!(%error, "a client could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = daemon.ended.notified() => break,
            // Ended from outside, as by an upgrade: the agents stay for the next daemon.
            _ = terminate.recv() => break daemon.hub.shut_down(true, true).await?,
            _ = interrupt.recv() => break daemon.hub.shut_down(true, true).await?,
            _ = hang_up.recv() => tracing::info!("the terminal is gone; going on"),
        }
    }
    tracing::info!("ended");
    // Whoever connects from now on starts another daemon, which waits for this one's lock.
    match std::fs::remove_file(daemon.home.socket()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Takes the port of the team tools. Agents can do without them, and people without agents that have them.
fn team_tools(before: Option<u16>) -> Option<Endpoint> {
    Endpoint::bind(before)
        .inspect_err(|error| tracing::error!(%error, "agents have no team tools: no port could be had"))
        .ok()
}

fn welcome(daemon: &Arc<Daemon>, stream: UnixStream) {
    let own = rustix::process::geteuid().as_raw();
    let peer = match stream.peer_cred() {
        // Held at once: a number alone may mean another process by the time it is looked at.
        Ok(peer) if peer.uid() == own => Peer::hold(peer.pid()),
        Ok(peer) => return tracing::warn!(uid = peer.uid(), "another user was turned away"),
        Err(error) => return tracing::warn!(%error, "a client that cannot be told was turned away"),
    };
    let daemon = Arc::clone(daemon);
    tokio::spawn(async move {
        daemon.clients.fetch_add(1, Ordering::Relaxed);
        connection::serve(&daemon, stream, peer).await;
        daemon.clients.fetch_sub(1, Ordering::Relaxed);
    });
}

/// Listens at `path`, open to this user alone. The lock is held, so a socket that is there is stale.
fn listen(path: &Path) -> anyhow::Result<UnixListener> {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("the stale socket {} cannot be removed", path.display()));
    }
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// What agents inherit: the daemon's own environment, as far as it is text, and the home so that `consort` inside an
/// agent finds this daemon.
fn inherited_environment(home: &Home) -> Vec<(String, String)> {
    let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((key.into_string().ok()?, value.into_string().ok()?))
    };
    let mut environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(text)
        .filter(|(key, _)| !NOT_INHERITED.contains(&key.as_str()) && key != "CONSORT_HOME")
        .collect();
    environment.push(("CONSORT_HOME".to_owned(), home.root().to_string_lossy().into_owned()));
    environment
}

fn announce(word: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{word}")?;
    stdout.flush()
}

/// Lets go of the pipes to the starter, which waits for their end.
fn leave_terminal() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Held by the one daemon of a home. The kernel lets it go with the process, however that ends.
struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; none if a daemon runs. One that is just ending is waited for.
    fn take(home: &Home) -> anyhow::Result<Option<Self>> {
        let path = home.lock();
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("{} cannot be opened", path.display()))?;
        let deadline = Instant::now() + LOCK_LIMIT;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
                }
            }
            let answers = std::os::unix::net::UnixStream::connect(home.socket()).is_ok();
            if answers || Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Some(Self { _file: file }))
    }
}
