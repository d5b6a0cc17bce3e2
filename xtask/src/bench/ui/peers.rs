//! Other programs in terminals: tmux with a shell, and the UIs that coding agents bring along.
//!
//! Each runs in a home of its own. The agents are the ones that `cargo xtask clis` installs, and claudechic in front of one,
//! against the scripted model.
//!
//! Invariant: when a [`Running`] is gone, so is everything that its program started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use consort_testkit::clis::Cli;
use consort_testkit::harness::processes;
use consort_testkit::model;
use consort_testkit::terminal::{Terminal, TerminalError};
use serde_json::json;
use tempfile::TempDir;

use super::{COLUMNS, LIMIT, ROWS, claudechic, hear_for};
use crate::bench::processes::with_descendants;
use crate::bench::supervise;
use crate::bench::table::Line;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    Tmux,
    Agent(Cli),
    /// A UI for Claude Code that is not its own.
    Claudechic,
}

/// The UIs of agents that can be measured here.
pub const AGENTS: [Peer; 4] =
    [Peer::Agent(Cli::Codex), Peer::Agent(Cli::Claude), Peer::Agent(Cli::OpenCode), Peer::Claudechic];

/// These, and what a terminal program can be.
pub const ALL: [Peer; 5] = [Peer::Tmux, AGENTS[0], AGENTS[1], AGENTS[2], AGENTS[3]];

/// A turn of the mouse's wheel in the middle of the screen.
const WHEEL_DOWN: &str = "\x1b[<65;100;20M";

/// The variable that everything started here has in its environment.
const MARK: &str = "CONSORT_BENCH_PEER";

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tmux => "tmux",
            Self::Agent(cli) => cli.name(),
            Self::Claudechic => "claudechic",
        }
    }

    /// Why it cannot be measured here, if so.
    fn missing(self) -> Option<String> {
        match self {
            Self::Tmux => {
                let version = Command::new("tmux").arg("-V").stdin(Stdio::null()).output();
                version.is_err().then(|| "tmux is not installed".to_owned())
            }
            Self::Agent(cli) => cli.program().err().map(|missing| missing.to_string()),
            // It is set up as Claude Code is.
            Self::Claudechic => match Cli::Claude.program() {
                Ok(_) => claudechic::program().err().map(str::to_owned),
                Err(missing) => Some(missing.to_string()),
            },
        }
    }

    /// Whether it is there and takes a prompt.
    fn is_ready(self, screen: &str) -> bool {
        match self {
            // The prompt of a shell.
            Self::Tmux => screen.lines().any(|line| line.trim_end().ends_with(['#', '$'])),
            Self::Agent(Cli::Codex) => screen.contains("Ask Codex to do anything"),
            Self::Agent(Cli::OpenCode) => screen.contains("Ask anything"),
            Self::Agent(_) => {
                screen.lines().any(|line| line.trim_start_matches(['│', ' ']).starts_with(['>', '❯']))
            }
            // In its footer, which is drawn with its prompt.
            Self::Claudechic => screen.contains("Auto-edit"),
        }
    }
}

/// A home for each of these, with the scripted model; a line for each that a row has to do without.
pub fn places(row: &str, peers: &[Peer], model: &model::Server) -> anyhow::Result<(Vec<Place>, Vec<Line>)> {
    let (mut places, mut lines) = (Vec::new(), Vec::new());
    for peer in peers {
        match peer.missing() {
            Some(why) => lines.push(Line::skipped(format!("{row}, {}", peer.name()), &why)),
            None => places.push(Place::new(*peer, &model.url())?),
        }
    }
    Ok((places, lines))
}

/// A home for a peer, in which it can be started again and again.
pub struct Place {
    pub peer: Peer,
    folder: TempDir,
    url: String,
}

impl Place {
    /// For a peer that talks with the model at `url`, if it does.
    fn new(peer: Peer, url: &str) -> anyhow::Result<Self> {
        let folder = supervise::folder()?;
        let place = Self { peer, folder, url: url.to_owned() };
        std::fs::create_dir(place.work())?;
        let home = place.home();
        std::fs::create_dir(&home)?;
        match peer {
            Peer::Tmux => std::fs::write(home.join(".tmux.conf"), "set -g escape-time 0\n")?,
            Peer::Agent(Cli::Claude) => settle_claude(&home, &place.work())?,
            Peer::Claudechic => {
                settle_claude(&home, &place.work())?;
                std::fs::write(home.join(".claude/.claudechic.yaml"), "analytics:\n  enabled: false\n")?;
            }
            Peer::Agent(_) => {}
        }
        Ok(place)
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("h")
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    /// The command that starts it.
    pub fn command(&self) -> anyhow::Result<Command> {
        let mut command = match self.peer {
            Peer::Tmux => {
                let mut command = Command::new("tmux");
                command.args(["-u", "new-session"]);
                command.env("TMUX_TMPDIR", self.folder.path()).env("SHELL", "/bin/bash").env_remove("TMUX");
                command
            }
            Peer::Claudechic => {
                let mut command = Command::new(claudechic::program().map_err(anyhow::Error::msg)?);
                command.envs(Cli::Claude.profile(&self.url, &self.home())?.environment);
                command
            }
            Peer::Agent(cli) => {
                let profile = cli.profile(&self.url, &self.home())?;
                let mut command = Command::new(&profile.command);
                match cli {
                    Cli::OpenCode => {}
                    Cli::Codex => {
                        let trust = format!("projects.{:?}.trust_level=\"trusted\"", self.work());
                        command.args(&profile.args).arg("-c").arg(trust);
                    }
                    _ => {
                        command.args(&profile.args);
                    }
                }
                command.envs(profile.environment);
                command
            }
        };
        command.env("HOME", self.home()).env(MARK, self.folder.path()).current_dir(self.work());
        Ok(command)
    }

    /// Starts it and waits until it takes a prompt.
    pub fn start(&self) -> anyhow::Result<Running<'_>> {
        let mut running = self.open(&mut self.command()?)?;
        let what = format!("{}'s prompt", self.peer.name());
        running.terminal.wait_until(&what, LIMIT, |screen| self.peer.is_ready(screen))?;
        Ok(running)
    }

    /// Starts it with a conversation that it has and waits until some words of that are there.
    pub fn resume(&self, session: &str, words: &str, limit: Duration) -> anyhow::Result<Running<'_>> {
        let option = match self.peer {
            Peer::Agent(Cli::Codex) => "resume",
            Peer::Agent(Cli::Claude) => "--resume",
            _ => "--session",
        };
        let mut running = self.open(self.command()?.args([option, session]))?;
        running.terminal.wait_for(words, limit)?;
        Ok(running)
    }

    fn open(&self, command: &mut Command) -> anyhow::Result<Running<'_>> {
        let started = Instant::now();
        Ok(Running { place: self, terminal: Terminal::open(command, COLUMNS, ROWS)?, started })
    }
}

/// Claude Code as one finds it after its first questions were answered.
fn settle_claude(home: &Path, work: &Path) -> anyhow::Result<()> {
    let folder = home.join(".claude");
    std::fs::create_dir_all(&folder)?;
    let state = json!({
        "numStartups": 5, "hasCompletedOnboarding": true, "theme": "dark", "lastOnboardingVersion": "99.0.0",
        "customApiKeyResponses": {"approved": ["scripted"], "rejected": []},
        "projects": {work.display().to_string(): {
            "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": []}},
    });
    std::fs::write(folder.join(".claude.json"), state.to_string())?;
    std::fs::write(folder.join("settings.json"), r#"{"theme": "dark", "spinnerTipsEnabled": false}"#)?;
    Ok(())
}

/// A peer that takes a prompt.
pub struct Running<'a> {
    place: &'a Place,
    pub terminal: Terminal,
    pub started: Instant,
}

impl Running<'_> {
    /// Its processes.
    pub fn processes(&self) -> anyhow::Result<Vec<u32>> {
        let mark = format!("{MARK}={}", self.place.folder.path().display());
        let marked = processes::with_mark(&mark).into_iter().map(|process| process.pid.cast_unsigned());
        let roots: Vec<u32> = marked.chain([self.terminal.pid()]).collect();
        with_descendants(&roots)
    }

    /// Prompts it. What is typed at once is taken for pasted by some, so the return key comes alone.
    pub fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        self.terminal.write(text)?;
        self.terminal.wait_for(text, LIMIT)?;
        hear_for(&mut self.terminal, Duration::from_millis(600))?;
        Ok(self.terminal.write("\r")?)
    }

    /// Waits for the last words of an answer that is streamed for as long as this.
    pub fn wait_for_end_of_answer(&mut self, words: &str, lasts: Duration) -> anyhow::Result<()> {
        if self.place.peer != Peer::Claudechic {
            self.terminal.wait_for(words, LIMIT)?;
            return Ok(());
        }
        // It follows a long answer for a while only. A person would scroll down at the end, so that is done.
        let until = Instant::now() + lasts + LIMIT;
        let mut patience = lasts + Duration::from_secs(3);
        loop {
            match self.terminal.wait_for(words, patience) {
                Ok(_) => return Ok(()),
                Err(TerminalError::Late { .. }) if Instant::now() < until => {
                    self.terminal.write(WHEEL_DOWN)?;
                    patience = Duration::from_millis(500);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let ended =
            self.processes().map(|pids| pids.into_iter().for_each(|pid| processes::kill(pid.cast_signed())));
        if let Err(error) = ended.context("what a peer started cannot be ended") {
            eprintln!("xtask: {error:#}");
        }
    }
}
