//! What Consort adds to a real CLI: from its ready to the agent's idle, and to the first delta.
//!
//! The CLI runs against the scripted model. Under Consort it runs behind `xtask tee`, which tells when the CLI itself
//! read the prompt and wrote its first delta; what lies before and after is Consort's. The same CLI driven bare, over
//! pipes, takes turns with it, prompt by prompt.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use consort_daemon::client::Client;
use consort_daemon::protocol::{AgentView, Call, NewAgent, NewProfile, Notification};
use consort_drivers::{Driver, Frame, Launch, Output};
use consort_model::event::AgentEvent;
use consort_model::{AgentId, DriverKind, Event, ItemBody, PermissionMode, ProfileSummary, Signal, Stamped};
use consort_testkit::clis::{Cli, Profile};
use consort_testkit::model;
use uuid::Uuid;

use super::Bench;
use super::lab::Lab;
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};
use crate::record::Process;
use crate::tee::{self, Way, monotonic_nanoseconds};

const PROMPT: &str = "[[say Hi.]]";
const CLIS: [Cli; 2] = [Cli::Claude, Cli::Codex];

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    crate::clis::ensure()?;
    let model = model::Server::start()?;
    let mut lines = Vec::new();
    for cli in CLIS {
        lines.extend(of_cli(bench, cli, &model).with_context(|| format!("{cli} was not measured"))?);
    }
    Ok(lines)
}

fn of_cli(bench: &Bench, cli: Cli, model: &model::Server) -> anyhow::Result<[Line; 3]> {
    let scratch = tempfile::Builder::new().prefix("cb").tempdir_in("/tmp")?;
    let work = scratch.path().join("w");
    std::fs::create_dir(&work)?;
    let mut bare = Bare::start(&cli.profile(&model.url(), &scratch.path().join("bare"))?, &work)?;
    let profile = cli.profile(&model.url(), &scratch.path().join("consort"))?;
    let mut through = Through::start(bench, &profile, scratch.path(), &work)?;

    let mut idle = Vec::new();
    let mut agent = None;
    for _ in 0..bench.repetitions(10).max(3) {
        let (id, took) = through.open(cli)?;
        idle.push(took);
        if let Some(before) = agent.replace(id) {
            through.close(before)?;
        }
    }
    let agent = agent.context("no agent was opened")?;
    let (mut to_cli, mut to_client) = (Vec::new(), Vec::new());
    let (mut added, mut whole, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..bench.repetitions(60) + 3 {
        let times = through.first_delta(cli, agent)?;
        let bare = bare.first_delta(cli)?;
        // The first ones load what the CLI needs for a turn.
        if n >= 3 {
            to_cli.push(times.to_cli);
            to_client.push(times.to_client);
            added.push(times.to_cli + times.to_client);
            whole.push(times.whole);
            alone.push(bare);
        }
    }
    let (idle, added) = (Sample::new(idle), Sample::new(added));
    let (to_cli, to_client) = (Sample::new(to_cli), Sample::new(to_client));
    let (whole, alone) = (Sample::new(whole), Sample::new(alone));
    let milliseconds = |sample: &Sample| format!("{} ms", figure(sample.median()));
    let line = |name: &str, measured, figure, unit, goal, notes| Line {
        name: format!("added, {cli}: {name}"),
        measured,
        reference: String::new(),
        figure,
        unit,
        goal,
        notes,
    };
    let spread = |sample: &Sample| format!("middle half: {}", sample.spread());
    Ok([
        line(
            "ready to idle",
            milliseconds(&idle),
            idle.median(),
            " ms",
            Goal::AtMost(30.0),
            vec![spread(&idle)],
        ),
        line(
            "first delta",
            milliseconds(&added),
            added.median(),
            " ms",
            Goal::AtMost(10.0),
            vec![
                spread(&added),
                format!(
                    "client to CLI {} ms ({}), CLI to client {} ms ({})",
                    figure(to_cli.median()),
                    to_cli.spread(),
                    figure(to_client.median()),
                    to_client.spread()
                ),
            ],
        ),
        Line {
            reference: format!("{} bare", milliseconds(&alone)),
            ..line(
                "prompt to first delta",
                milliseconds(&whole),
                whole.median() / alone.median(),
                "x",
                Goal::AtMost(1.05),
                vec![format!("middle half: {}, bare {}", whole.spread(), alone.spread())],
            )
        },
    ])
}

/// What a CLI writes when it is ready for a prompt.
fn is_ready(cli: Cli, line: &str) -> bool {
    match cli {
        Cli::Claude => line.contains(r#""type":"control_response""#),
        _ => line.contains(r#""result":{"thread":"#),
    }
}

/// What a CLI writes when it begins to say something.
fn is_delta(cli: Cli, line: &str) -> bool {
    match cli {
        Cli::Claude => line.contains(r#""type":"text_delta""#),
        _ => line.contains(r#""method":"item/agentMessage/delta""#),
    }
}

fn since(start: u64, end: u64) -> f64 {
    end.saturating_sub(start) as f64 / 1e6
}

/// Milliseconds from a prompt to its first delta.
struct Times {
    /// Until the CLI has the prompt; Consort's.
    to_cli: f64,
    /// From the CLI's delta to the client's; Consort's.
    to_client: f64,
    whole: f64,
}

/// A CLI under Consort.
struct Through {
    lab: Lab,
    client: Client,
    watcher: Client,
    log: PathBuf,
    work: PathBuf,
}

impl Through {
    fn start(bench: &Bench, profile: &Profile, scratch: &Path, work: &Path) -> anyhow::Result<Self> {
        let (log, program) = (scratch.join("log"), scratch.join("program"));
        // The driver's own arguments come first, so they must be the program's.
        let script = format!(
            "#!/bin/sh\nexec '{}' tee '{}' '{}' \"$@\"\n",
            std::env::current_exe()?.display(),
            log.display(),
            profile.command.display()
        );
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
        let mut lab = Lab::new(bench)?;
        lab.start()?;
        let mut client = Client::connect(&lab.home)?;
        let environment = profile.environment.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _: ProfileSummary = client.call(&Call::AddProfile(NewProfile {
            name: "real".to_owned(),
            driver: profile.driver.parse().map_err(anyhow::Error::msg)?,
            command: Some(program.display().to_string()),
            args: profile.args.clone(),
            environment,
            default_model: None,
            default_permissions: PermissionMode::default(),
            sandbox_mode: None,
            approval_policy: None,
        }))?;
        let mut watcher = Client::connect(&lab.home)?;
        watcher.subscribe()?;
        Ok(Self { lab, client, watcher, log, work: work.to_owned() })
    }

    /// Waits for an event of an agent; when it came.
    fn wait(&mut self, wanted: AgentId, is_it: impl Fn(&AgentEvent) -> bool) -> anyhow::Result<u64> {
        loop {
            match self.watcher.next_notification()? {
                Notification::Event(Stamped { event: Event::Agent { agent, change }, .. })
                    if agent == wanted =>
                {
                    let at = monotonic_nanoseconds();
                    if let AgentEvent::Failed { failure } = &change {
                        bail!("the agent failed: {}", failure.message);
                    }
                    if is_it(&change) {
                        return Ok(at);
                    }
                }
                Notification::Event(_) => {}
                Notification::Snapshot(_) => bail!("the client did not keep up"),
            }
        }
    }

    /// Opens an agent; the milliseconds from the CLI's ready to the client's knowing of it.
    fn open(&mut self, cli: Cli) -> anyhow::Result<(AgentId, f64)> {
        let id = AgentId::new(Uuid::now_v7());
        let started = monotonic_nanoseconds();
        let _: AgentView = self.client.call(&Call::CreateAgent(NewAgent {
            id,
            profile: Some("real".to_owned()),
            name: None,
            cwd: self.work.clone(),
            companion_of: None,
            permissions: None,
            prompt: None,
        }))?;
        let heard = self.wait(id, |event| matches!(event, AgentEvent::Ready { .. }))?;
        let ready = self.passed(started, Way::Out, |line| is_ready(cli, line))?;
        Ok((id, since(ready, heard)))
    }

    fn close(&mut self, agent: AgentId) -> anyhow::Result<()> {
        let _: serde_json::Value = self.client.call(&Call::Close { agent: agent.to_string() })?;
        self.wait(agent, |event| matches!(event, AgentEvent::Closed))?;
        Ok(())
    }

    /// Prompts and waits for the end of the turn.
    fn first_delta(&mut self, cli: Cli, agent: AgentId) -> anyhow::Result<Times> {
        let sent = monotonic_nanoseconds();
        Lab::send(&mut self.client, agent, PROMPT)?;
        let heard = self.wait(agent, |event| match event {
            AgentEvent::TextAppended { text, .. } => !text.is_empty(),
            AgentEvent::ItemAdded { item } => {
                matches!(&item.body, ItemBody::Text { text } if !text.is_empty())
            }
            _ => false,
        })?;
        self.wait(agent, |event| matches!(event, AgentEvent::TurnEnded { .. }))?;
        let taken = self.passed(sent, Way::In, |line| line.contains(PROMPT))?;
        let said = self.passed(sent, Way::Out, |line| is_delta(cli, line))?;
        Ok(Times { to_cli: since(sent, taken), to_client: since(said, heard), whole: since(sent, heard) })
    }

    /// When the first such line passed after a time.
    fn passed(&self, after: u64, way: Way, is_it: impl Fn(&str) -> bool) -> anyhow::Result<u64> {
        let lines = tee::read(&self.log)?;
        let found = lines.iter().find(|line| line.at >= after && line.way == way && is_it(&line.line));
        found.map(|line| line.at).context("the CLI did not write what was expected")
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        if let Err(error) = self.lab.stop() {
            eprintln!("xtask: the daemon did not stop in order: {error:#}");
        }
    }
}

/// A CLI over pipes, with the same frames.
struct Bare {
    process: Process,
    driver: Driver,
}

impl Bare {
    fn start(profile: &Profile, work: &Path) -> anyhow::Result<Self> {
        let kind: DriverKind = profile.driver.parse().map_err(anyhow::Error::msg)?;
        let launch = Launch { cwd: work.display().to_string(), ..Launch::default() };
        let driver = Driver::new(kind, launch).context("there is no such driver")?;
        let process = Process::start(profile, &driver, work)?;
        let mut bare = Self { process, driver };
        let output = bare.driver.start();
        bare.write(&output)?;
        bare.until(|signal| matches!(signal, Signal::Ready(_)))?;
        Ok(bare)
    }

    fn write(&mut self, output: &Output) -> anyhow::Result<()> {
        for frame in &output.frames {
            self.process.stdin.write_all(frame)?;
        }
        Ok(())
    }

    fn hear(&mut self, line: &str) -> anyhow::Result<Output> {
        let output = self.driver.receive(Frame::Line(line.as_bytes()));
        self.write(&output)?;
        Ok(output)
    }

    fn until(&mut self, is_it: impl Fn(&Signal) -> bool) -> anyhow::Result<()> {
        loop {
            let line = self.process.line()?;
            if self.hear(&line)?.signals.iter().any(&is_it) {
                return Ok(());
            }
        }
    }

    /// Prompts; the milliseconds to the first delta.
    fn first_delta(&mut self, cli: Cli) -> anyhow::Result<f64> {
        let output = self.driver.prompt(PROMPT, &[]);
        let sent = monotonic_nanoseconds();
        self.write(&output)?;
        loop {
            let line = self.process.line()?;
            let at = monotonic_nanoseconds();
            self.hear(&line)?;
            if is_delta(cli, &line) {
                self.until(|signal| matches!(signal, Signal::TurnEnded(_)))?;
                return Ok(since(sent, at));
            }
        }
    }
}
