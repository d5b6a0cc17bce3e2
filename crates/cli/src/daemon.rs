//! `consort daemon`: starting, stopping and being the daemon.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use consort_daemon::client::{Client, ClientError};
use consort_daemon::protocol::{Call, DaemonStatus, Done, ErrorBody, codes};

use crate::args::Daemon;
use crate::exit::Stop;
use crate::link::{connect, home};
use crate::output::{Output, exact, one_line, print_json, print_line};
use consort_daemon::form::yes_or_no;

/// How long a daemon may take to end the agents' processes and itself.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// `consort daemon`.
pub fn daemon(command: &Daemon) -> Result<ExitCode, Stop> {
    match command {
        Daemon::Start => start()?,
        Daemon::Stop { force, keep_agents } => stop(*force, *keep_agents)?,
        Daemon::Status(args) => status(args.json)?,
        Daemon::Run { detached } => return run(*detached),
    }
    Ok(ExitCode::SUCCESS)
}

fn start() -> Result<(), Stop> {
    let client = connect(&home()?)?;
    print_line(&client.welcome().pid.to_string())
}

fn status(json: bool) -> Result<(), Stop> {
    let status: DaemonStatus = Client::connect(&home()?)?.call(&Call::Status {})?;
    if json {
        return print_json(&status);
    }
    let mut output = Output::human();
    output.line(&format!("pid      {}", status.pid))?;
    output.line(&format!("version  {}", one_line(&status.version)))?;
    output.line(&format!("home     {}", exact(&status.home.to_string_lossy())))?;
    output.line(&format!(
        "up       {}",
        crate::output::age(i64::try_from(status.uptime_seconds).unwrap_or(0) * 1000)
    ))?;
    output.line(&format!(
        "agents   {} open, {} working, {} in need of a person",
        status.agents, status.working, status.needs_input
    ))?;
    output.line(&format!("clients  {}", status.clients))?;
    if let Some(trouble) = &status.trouble {
        output.line(&format!("trouble  {}", one_line(trouble)))?;
    }
    output.flush()
}

fn stop(force: bool, keep_agents: bool) -> Result<(), Stop> {
    let mut client = Client::connect(&home()?)?;
    let gone = Gone::of(client.welcome().pid);
    match client.call::<Done>(&Call::Stop { force, keep_agents }) {
        Ok(_) => {}
        Err(ClientError::Answer(body)) if body.code == codes::WOULD_STOP_WORK => {
            let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
            if !terminal {
                let how = "--force stops them too, --keep-agents leaves them running for the next daemon";
                return Err(Stop::failed(format!("{}; {how}", working(&body))));
            }
            if !confirmed(&format!("{}; stop them and the daemon? [y/N] ", working(&body)))? {
                return Err(Stop::failed("the daemon goes on"));
            }
            let _: Done = client.call(&Call::Stop { force: true, keep_agents })?;
        }
        // It may end before its acknowledgement is out.
        Err(ClientError::Connection { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    gone.wait(client)
}

/// How many agents are working, as the daemon counts them.
fn working(body: &ErrorBody) -> String {
    let count = body.data.as_u64().or_else(|| body.data.get("working").and_then(serde_json::Value::as_u64));
    match count {
        Some(1) => "1 agent is working".to_owned(),
        Some(count) => format!("{count} agents are working"),
        None => "agents are working".to_owned(),
    }
}

/// Ends a daemon with its agents, whatever they do, and waits until it is gone.
pub fn end(mut client: Client) -> Result<(), Stop> {
    let gone = Gone::of(client.welcome().pid);
    match client.call::<Done>(&Call::Stop { force: true, keep_agents: false }) {
        // It may end before its acknowledgement is out.
        Ok(_) | Err(ClientError::Connection { .. }) => gone.wait(client),
        Err(error) => Err(error.into()),
    }
}

fn confirmed(question: &str) -> Result<bool, Stop> {
    let mut stderr = std::io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(yes_or_no(&line) == Some(true))
}

/// The end of a process, taken hold of while it lives.
struct Gone {
    #[cfg(target_os = "linux")]
    process: Option<rustix::fd::OwnedFd>,
}

impl Gone {
    #[cfg(target_os = "linux")]
    fn of(pid: u32) -> Self {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Self { process: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_pid: u32) -> Self {
        Self {}
    }

    /// Waits until it is gone, or at least no longer answers.
    fn wait(self, mut client: Client) -> Result<(), Stop> {
        #[cfg(target_os = "linux")]
        if let Some(process) = &self.process {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let limit = Timespec { tv_sec: STOP_LIMIT.as_secs() as i64, tv_nsec: 0 };
            let mut waited = [PollFd::new(process, PollFlags::IN)];
            return match poll(&mut waited, Some(&limit)) {
                Ok(0) => Err(Stop::failed(format!(
                    "the daemon did not end within {} seconds; its log tells more",
                    STOP_LIMIT.as_secs()
                ))),
                Ok(_) => Ok(()),
                Err(error) => Err(Stop::failed(format!("cannot wait for the daemon: {error}"))),
            };
        }
        while client.next_notification().is_ok() {}
        Ok(())
    }
}

/// Is the daemon.
/// `consort daemon run`: is the daemon until it is told to end.
pub fn run(detached: bool) -> Result<ExitCode, Stop> {
    consort_daemon::server::run(home()?, detached).map_err(|error| Stop::failed(format!("{error:#}")))
}
