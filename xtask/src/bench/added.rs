//! What Consort adds to a real CLI: from its ready to the agent's idle, and to the first delta.
//!
//! The CLI runs against the scripted model, behind `xtask tee`, which tells when the CLI itself read the prompt and wrote
//! its first delta; what lies before and after is Consort's. The same CLI driven bare, over pipes and behind the same
//! `tee`, takes turns with it, prompt by prompt.
//!
//! Milliseconds are measured with a model that answers at once. The ratio is what a person would notice, so its model
//! takes as long to its first word as a quick real one; the ratio with none is told beside it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
use super::supervise;
use super::table::{Goal, Line};
use crate::record::Process;
use crate::tee::{self, Way, monotonic_nanoseconds};

/// Answered at once.
const PROMPT: &str = "[[say Hi.]]";
/// Answered as by a quick model.
const PATIENT_PROMPT: &str = "[[soon]]";
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
    let scratch = supervise::folder()?;
    let work = scratch.path().join("w");
    std::fs::create_dir(&work)?;
    let mut bare =
        Bare::start(&behind_tee(&cli.profile(&model.url(), &scratch.path().join("bare"))?)?, &work)?;
    let profile = behind_tee(&cli.profile(&model.url(), &scratch.path().join("consort"))?)?;
    let mut through = Through::start(bench, &profile, &work)?;

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
    let mut turns = |prompt, count| Turns::take(cli, &mut through, agent, &mut bare, prompt, count);
    let at_once = turns(PROMPT, bench.repetitions(60))?;
    let patient = turns(PATIENT_PROMPT, bench.repetitions(40))?;
    let idle = Sample::new(idle);
    let milliseconds = |sample: &Sample| format!("{} ms", figure(sample.median()));
    let line = |name: &str, sample: &Sample, figure, unit, goal| {
        Line::new(format!("added, {cli}: {name}"), milliseconds(sample), figure, unit, goal)
    };
    let spread = |sample: &Sample| format!("middle half: {}", sample.spread());
    Ok([
        line("ready to idle", &idle, idle.median(), " ms", Goal::AtMost(30.0)).noting(spread(&idle)),
        line("first delta", &at_once.added, at_once.added.median(), " ms", Goal::AtMost(10.0))
            .noting(spread(&at_once.added))
            .noting(format!(
                "client to CLI {} ms ({}), CLI to client {} ms ({})",
                figure(at_once.to_cli.median()),
                at_once.to_cli.spread(),
                figure(at_once.to_client.median()),
                at_once.to_client.spread()
            )),
        line("prompt to first delta", &patient.whole, patient.ratio(), "x", Goal::AtMost(1.05))
            .against(format!("{} bare", milliseconds(&patient.alone)))
            .noting("the model takes 200 ms to its first word")
            .noting(format!("middle half: {}, bare {}", patient.whole.spread(), patient.alone.spread()))
            .noting(format!(
                "with a model that takes none: {} of {} bare, {}x",
                milliseconds(&at_once.whole),
                milliseconds(&at_once.alone),
                figure(at_once.ratio())
            )),
    ])
}

/// The times of one prompt given again and again, under Consort and bare in turns.
struct Turns {
    to_cli: Sample,
    to_client: Sample,
    /// Both of these.
    added: Sample,
    whole: Sample,
    alone: Sample,
}

impl Turns {
    fn take(
        cli: Cli,
        through: &mut Through,
        agent: AgentId,
        bare: &mut Bare,
        prompt: &str,
        count: usize,
    ) -> anyhow::Result<Self> {
        let (mut to_cli, mut to_client, mut added) = (Vec::new(), Vec::new(), Vec::new());
        let (mut whole, mut alone) = (Vec::new(), Vec::new());
        for n in 0..count + 3 {
            let times = through.first_delta(cli, agent, prompt)?;
            let bare = bare.first_delta(cli, prompt)?;
            // The first ones load what the CLI needs for a turn.
            if n >= 3 {
                to_cli.push(times.to_cli);
                to_client.push(times.to_client);
                added.push(times.to_cli + times.to_client);
                whole.push(times.whole);
                alone.push(bare);
            }
        }
        Ok(Self {
            to_cli: Sample::new(to_cli),
            to_client: Sample::new(to_client),
            added: Sample::new(added),
            whole: Sample::new(whole),
            alone: Sample::new(alone),
        })
    }

    fn ratio(&self) -> f64 {
        self.whole.median() / self.alone.median()
    }
}

/// The profile with its program behind `xtask tee`.
fn behind_tee(profile: &Profile) -> anyhow::Result<Teed> {
    let folder = supervise::folder()?;
    let (log, program) = (folder.path().join("log"), folder.path().join("program"));
    // The driver's own arguments come first, so they must be the program's.
    let script = format!(
        "#!/bin/sh\nexec '{}' tee '{}' '{}' \"$@\"\n",
        std::env::current_exe()?.display(),
        log.display(),
        profile.command.display()
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
    Ok(Teed { profile: Profile { command: program, ..profile.clone() }, log, _folder: folder })
}

struct Teed {
    profile: Profile,
    log: PathBuf,
    _folder: tempfile::TempDir,
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
    fn start(bench: &Bench, teed: &Teed, work: &Path) -> anyhow::Result<Self> {
        let profile = &teed.profile;
        let mut lab = Lab::new(bench)?;
        lab.start()?;
        let mut client = Client::connect(&lab.home)?;
        let environment = profile.environment.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _: ProfileSummary = client.call(&Call::AddProfile(NewProfile {
            name: "real".to_owned(),
            driver: profile.driver.parse().map_err(anyhow::Error::msg)?,
            command: Some(profile.command.display().to_string()),
            args: profile.args.clone(),
            environment,
            default_model: None,
            default_permissions: PermissionMode::default(),
            sandbox_mode: None,
            approval_policy: None,
        }))?;
        let mut watcher = Client::connect(&lab.home)?;
        watcher.subscribe()?;
        Ok(Self { lab, client, watcher, log: teed.log.clone(), work: work.to_owned() })
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
            worktree: None,
            prompt: None,
        }))?;
        let heard = self.wait(id, |event| matches!(event, AgentEvent::Ready { .. }))?;
        self.passed(started, Way::Out, |line| is_ready(cli, line))?;
        // Claude answers twice: that it is there, and that it is connected with the team's tools.
        let lines = tee::read(&self.log)?;
        let answers = lines.iter().filter(|line| line.way == Way::Out && is_ready(cli, &line.line));
        let ready = answers.map(|line| line.at).filter(|at| (started..heard).contains(at)).max();
        Ok((id, since(ready.context("the CLI was not ready before its agent was")?, heard)))
    }

    fn close(&mut self, agent: AgentId) -> anyhow::Result<()> {
        let _: serde_json::Value = self.client.call(&Call::Close { agent: agent.to_string() })?;
        self.wait(agent, |event| matches!(event, AgentEvent::Closed))?;
        Ok(())
    }

    /// Prompts and waits for the end of the turn.
    fn first_delta(&mut self, cli: Cli, agent: AgentId, prompt: &str) -> anyhow::Result<Times> {
        let sent = monotonic_nanoseconds();
        Lab::send(&mut self.client, agent, prompt)?;
        let heard = self.wait(agent, |event| match event {
            AgentEvent::TextAppended { text, .. } => !text.is_empty(),
            AgentEvent::ItemAdded { item } => {
                matches!(&item.body, ItemBody::Text { text } if !text.is_empty())
            }
            _ => false,
        })?;
        self.wait(agent, |event| matches!(event, AgentEvent::TurnEnded { .. }))?;
        let taken = self.passed(sent, Way::In, |line| line.contains(prompt))?;
        let said = self.passed(sent, Way::Out, |line| is_delta(cli, line))?;
        Ok(Times { to_cli: since(sent, taken), to_client: since(said, heard), whole: since(sent, heard) })
    }

    /// When the first such line passed after a time. It is written down after it was passed on, so it may be on its way.
    fn passed(&self, after: u64, way: Way, is_it: impl Fn(&str) -> bool) -> anyhow::Result<u64> {
        for _ in 0..100 {
            let lines = tee::read(&self.log)?;
            let found = lines.iter().find(|line| line.at >= after && line.way == way && is_it(&line.line));
            if let Some(line) = found {
                return Ok(line.at);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("the CLI did not write what was expected")
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
    fn start(teed: &Teed, work: &Path) -> anyhow::Result<Self> {
        let profile = &teed.profile;
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
    fn first_delta(&mut self, cli: Cli, prompt: &str) -> anyhow::Result<f64> {
        let output = self.driver.prompt(prompt, &[]);
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
