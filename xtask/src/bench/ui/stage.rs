//! Our UI in a terminal, on a lab's daemon.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use consort_daemon::client::Client;
use consort_daemon::protocol::{AgentView, Call, NewAgent, NewProfile, Notification};
use consort_model::event::AgentEvent;
use consort_model::{AgentId, Event, ProfileSummary, Stamped};
use consort_testkit::terminal::Terminal;
use uuid::Uuid;

use super::{COLUMNS, LIMIT, MARKDOWN, ROWS};
use crate::bench::Bench;
use crate::bench::lab::Lab;

/// Items that one prompt makes while a conversation is written.
const ITEMS_OF_A_PROMPT: usize = 500;

/// A lab with scripted agents and a screen to open on it.
pub struct Stage {
    pub lab: Lab,
    pub client: Client,
    pub daemon: u32,
    consort: PathBuf,
}

impl Stage {
    pub fn new(bench: &Bench) -> anyhow::Result<Self> {
        let mut lab = Lab::new(bench)?;
        let daemon = lab.start()?;
        let mut client = Client::connect(&lab.home)?;
        let script = lab.work().join("steps");
        let item = |n: usize| {
            format!(
                "[[say Step {n}: {}]] [[tool execute output=\"line one\\nline two\\nline three\\n\" make part-{n}]]",
                MARKDOWN.replace('\n', "\\n")
            )
        };
        let items = (0..ITEMS_OF_A_PROMPT / 2).map(item).collect::<Vec<_>>().join(" ");
        std::fs::write(&script, format!("talk: {items}\n"))?;
        let command = bench.programs.testkit.to_str().context("the scripted agent's path is not text")?;
        let args = ["agent", "--script", script.to_str().context("the lab's path is not text")?];
        let _: ProfileSummary = client.call(&Call::AddProfile(NewProfile::acp(
            "scripted",
            command,
            args.map(str::to_owned).to_vec(),
        )))?;
        Ok(Self { lab, client, daemon, consort: bench.programs.consort.clone() })
    }

    /// An agent of this name whose conversation has at least so many items and ends with the words [`last_words`].
    pub fn talk(&mut self, name: &str, items: usize) -> anyhow::Result<AgentId> {
        let id = AgentId::new(Uuid::now_v7());
        let mut watcher = Client::connect(&self.lab.home)?;
        watcher.subscribe()?;
        let _: AgentView = self.client.call(&Call::CreateAgent(NewAgent {
            id,
            profile: Some("scripted".to_owned()),
            name: Some(name.to_owned()),
            cwd: self.lab.work().to_owned(),
            companion_of: None,
            permissions: None,
            worktree: None,
            prompt: None,
        }))?;
        wait(&mut watcher, id, |event| matches!(event, AgentEvent::Ready { .. }))?;
        for _ in 0..items.div_ceil(ITEMS_OF_A_PROMPT) {
            self.play(&mut watcher, id, "[[script talk]]")?;
        }
        self.play(&mut watcher, id, &format!("[[say {}]]", last_words(name)))?;
        Ok(id)
    }

    fn play(&mut self, watcher: &mut Client, agent: AgentId, prompt: &str) -> anyhow::Result<()> {
        Lab::send(&mut self.client, agent, prompt)?;
        wait(watcher, agent, |event| matches!(event, AgentEvent::TurnEnded { .. }))
    }

    /// The command that opens the screen.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.consort);
        command.env("CONSORT_HOME", self.lab.home.root()).current_dir(self.lab.work());
        command
    }

    /// Starts the screen.
    pub fn start(&self) -> anyhow::Result<(Terminal, Instant)> {
        let mut command = self.command();
        let started = Instant::now();
        Ok((Terminal::open(&mut command, COLUMNS, ROWS)?, started))
    }

    /// The screen, opened, with the end of the latest agent's conversation on it.
    pub fn open(&self, name: &str) -> anyhow::Result<Terminal> {
        let (mut terminal, _) = self.start()?;
        terminal.wait_for(&last_words(name), LIMIT)?;
        Ok(terminal)
    }
}

/// What the conversation of an agent ends with.
pub fn last_words(name: &str) -> String {
    format!("This is all that {name} said.")
}

/// Leaves the screen as a person does.
pub fn leave(mut terminal: Terminal) -> anyhow::Result<()> {
    terminal.write("\x11")?;
    let status = terminal.wait_for_end(LIMIT)?;
    if !status.success() {
        bail!("the screen ended badly ({status})");
    }
    Ok(())
}

/// Waits for an event of an agent.
pub fn wait(client: &mut Client, wanted: AgentId, is_it: impl Fn(&AgentEvent) -> bool) -> anyhow::Result<()> {
    loop {
        match client.next_notification()? {
            Notification::Event(Stamped { event: Event::Agent { agent, change }, .. }) if agent == wanted => {
                if let AgentEvent::Failed { failure } = &change {
                    bail!("the agent failed: {}", failure.message);
                }
                if is_it(&change) {
                    return Ok(());
                }
            }
            Notification::Event(_) => {}
            Notification::Snapshot(_) => bail!("the client that waits did not keep up"),
        }
    }
}
