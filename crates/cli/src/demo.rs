//! `consort demo`: a team at work on a scratch repository, on a machine without any agent and without a key.
//!
//! Owns the stage: a folder of its own with a home and a small git repository in it, a profile for every part, and the
//! script of the play (`demo/script.txt`). Everything else is real: the daemon, the runners, the team tools, the edits, the
//! approvals and the diff at the end. With a terminal the person plays along on the screen; `--headless` answers every
//! request and tells what happens.
//!
//! Invariant: whatever happens, the daemon of the demo is stopped and its folder is gone at the end.

use std::collections::HashSet;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use consort_daemon::client::Client;
use consort_daemon::home::Home;
use consort_daemon::protocol::{AgentView, Call, Done, NewAgent, NewProfile, NewPrompt};
use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, Answer, Ask, Event, GrantScope, ProfileSummary, PromptId, Relation, State,
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::exit::{Exit, Stop};
use crate::follow::{Update, Watch};
use crate::link::program;
use crate::output::{Output, Paint, Style, one_line};
use crate::render;

const SCRIPT: &str = include_str!("demo/script.txt");
const TASK: &str = "Greet people by their name, with tests and a word in the README. [[script lead]]";

/// The parts of the play: a profile each, which plays its part at the first prompt. The lead's is in [`TASK`].
const PARTS: [(&str, Option<&str>); 4] =
    [("lead", None), ("tests", Some("tests")), ("docs", Some("docs")), ("reviewer", Some("reviewer"))];

/// What is in the repository when the curtain rises.
const FILES: [(&str, &str); 2] = [
    (
        "greet.py",
        "def greet():\n    return \"Hello!\"\n\n\nif __name__ == \"__main__\":\n    print(greet())\n",
    ),
    ("README.md", "# Greet\n\nPrints a greeting:\n\n    python3 greet.py\n"),
];

/// A play that takes longer than this does not come to an end.
const LIMIT: Duration = Duration::from_secs(120);

/// `consort demo`.
pub fn demo(headless: bool) -> Result<(), Stop> {
    if !headless && !std::io::stdout().is_terminal() {
        return Err(Stop::new(
            Exit::Usage,
            "the demo plays on a terminal; `consort demo --headless` tells what happens without one",
        ));
    }
    let stage = Stage::build()?;
    let played = if headless { stage.play_alone() } else { stage.play_on_screen() };
    let cleaned = stage.strike();
    played.and(cleaned)
}

/// `consort scripted-agent`: the agent that plays the parts.
pub fn scripted_agent(options: Vec<String>) -> Result<ExitCode, Stop> {
    // Past the line buffer of `Stdout`: the agent hands over whole frames, each is to be one write.
    let stdout = std::io::stdout().as_fd().try_clone_to_owned()?;
    let code = consort_testkit::scripted::main(options, std::io::stdin(), File::from(stdout));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The demo's own folder, with a daemon of its own.
struct Stage {
    folder: TempDir,
    home: Home,
    repository: PathBuf,
    program: PathBuf,
}

impl Stage {
    fn build() -> Result<Self, Stop> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| Stop::failed(format!("{what}: {error}"))
        };
        let folder = tempfile::Builder::new()
            .prefix("consort-demo-")
            .tempdir()
            .map_err(failed("the demo has no folder"))?;
        let home = Home::at(&folder.path().join("home")).map_err(|error| Stop::failed(error.to_string()))?;
        let repository = folder.path().join("greet");
        std::fs::create_dir(&repository).map_err(failed("the demo's repository cannot be made"))?;
        for (name, text) in FILES {
            std::fs::write(repository.join(name), text)
                .map_err(failed("the demo's files cannot be written"))?;
        }
        std::fs::write(folder.path().join("script.txt"), SCRIPT)
            .map_err(failed("the demo's script cannot be written"))?;
        git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
        git(&repository, &["add", "."])?;
        git(&repository, &["commit", "--quiet", "--message", "A greeting"])?;
        Ok(Self { folder, home, repository, program: program()? })
    }

    /// Starts the daemon, brings the parts on stage and gives the lead its task.
    fn raise_the_curtain(&self) -> Result<AgentId, Stop> {
        let mut client = Client::connect_or_start(&self.home, &self.program)?;
        let script = self.folder.path().join("script.txt").display().to_string();
        for (name, part) in PARTS {
            let mut args = vec!["scripted-agent".to_owned(), "--script".to_owned(), script.clone()];
            args.extend(["--chunk".to_owned(), "6".to_owned()]);
            if let Some(part) = part {
                args.extend(["--on-prompt".to_owned(), format!("[[script {part}]]")]);
            }
            let _: ProfileSummary = client.call(&Call::AddProfile(NewProfile::acp(
                name,
                &self.program.display().to_string(),
                args,
            )))?;
        }
        let id = AgentId::new(Uuid::now_v7());
        let prompt =
            NewPrompt { id: PromptId::new(Uuid::now_v7()), text: TASK.to_owned(), attachments: vec![] };
        let _: AgentView = client.call(&Call::CreateAgent(NewAgent {
            id,
            profile: Some("lead".to_owned()),
            name: Some("lead".to_owned()),
            cwd: self.repository.clone(),
            companion_of: None,
            permissions: None,
            worktree: None,
            prompt: Some(prompt),
        }))?;
        Ok(id)
    }

    fn play_on_screen(&self) -> Result<(), Stop> {
        self.raise_the_curtain()?;
        let greeting = Some(consort_tui::Greeting::Demo);
        consort_tui::open(self.home.clone(), self.program.clone(), self.repository.clone(), greeting)
            .map_err(|error| Stop::failed(error.to_string()))
    }

    /// Plays without a person: tells what happens and allows what is asked.
    fn play_alone(&self) -> Result<(), Stop> {
        let lead = self.raise_the_curtain()?;
        let mut watch = Watch::new(&self.home);
        watch.catch_signals()?;
        let mut client = Client::connect(&self.home)?;
        let mut output = Output::human();
        let deadline = Instant::now() + LIMIT;
        let mut answered = HashSet::new();
        output.line(&format!("{} begins", Paint::for_stdout().paint(Style::Bold, "lead")))?;
        loop {
            match watch.next(Some(deadline))? {
                Update::Interrupt => return Err(Stop::quiet(Exit::Abandoned)),
                Update::Terminate => return Err(Stop::quiet(Exit::Terminated)),
                Update::Timeout => return Err(Stop::new(Exit::TimedOut, "the demo did not come to its end")),
                Update::Resync | Update::Line(_) => {}
                Update::Event(stamped) => {
                    if let Event::Agent { agent, change } = &stamped.event
                        && let Some(line) = told(watch.state(), *agent, change)
                    {
                        output.line(&line)?;
                        output.flush()?;
                    }
                }
            }
            for (agent, ask) in open_asks(watch.state()) {
                // Until the answer comes back as an event, it is still open here.
                if answered.insert(ask.id) {
                    output.line(&asked(agent, ask))?;
                    output.flush()?;
                    allow(&mut client, ask)?;
                }
            }
            if watch.agent(lead).is_some_and(is_done) {
                break;
            }
        }
        output.line("")?;
        output.write(&self.diff()?)?;
        output.flush()
    }

    /// What the team changed, new files too.
    fn diff(&self) -> Result<String, Stop> {
        git(&self.repository, &["add", "--all"])?;
        git(&self.repository, &["diff", "--cached", "--stat", "--patch"])
    }

    /// Stops the daemon with all agents; the folder goes with the stage.
    fn strike(self) -> Result<(), Stop> {
        if let Ok(client) = Client::connect(&self.home) {
            crate::daemon::end(client)?;
        }
        let path = self.folder.path().display().to_string();
        self.folder
            .close()
            .map_err(|error| Stop::failed(format!("the demo's folder {path} is left over: {error}")))
    }
}

/// Whether the lead has done its task.
fn is_done(lead: &Agent) -> bool {
    !lead.taken.is_empty() && lead.turn.is_none() && lead.queue.is_empty()
}

fn open_asks(state: &State) -> Vec<(&Agent, &Ask)> {
    state.agents.values().flat_map(|agent| agent.asks.iter().map(move |ask| (agent, ask))).collect()
}

fn allow(client: &mut Client, ask: &Ask) -> Result<(), Stop> {
    let call = Call::Answer { ask: ask.id.to_string(), answer: Answer::allow(GrantScope::Once) };
    let _: Done = client.call(&call)?;
    Ok(())
}

/// What an event means to somebody who watches.
fn told(state: &State, agent: AgentId, change: &AgentEvent) -> Option<String> {
    let paint = Paint::for_stdout();
    let agent = state.agents.get(&agent)?;
    let words = match change {
        AgentEvent::Created { .. } => match agent.relation {
            Relation::Primary => "begins".to_owned(),
            Relation::Companion { .. } => "joins as a companion".to_owned(),
            Relation::SubAgent { .. } => "joins as a sub-agent".to_owned(),
        },
        AgentEvent::TaskSettled { .. } => "gives its result to its parent".to_owned(),
        AgentEvent::TurnEnded { .. } => "ends its turn".to_owned(),
        AgentEvent::Failed { failure } => format!("fails: {}", one_line(&failure.message)),
        _ => return None,
    };
    Some(format!("{} {words}", paint.paint(Style::Bold, &agent.name)))
}

/// What is asked, in full, and what the demo answers.
fn asked(agent: &Agent, ask: &Ask) -> String {
    let paint = Paint::for_stdout();
    let name = paint.paint(Style::Bold, &agent.name).into_owned();
    let body = render::ask_body(&ask.body, &one_line(&ask.title), paint);
    format!("{name} asks:\n{body}\n{}", paint.paint(Style::Green, "  allowed once"))
}

/// Runs git in the demo's repository, with nothing of the person's own configuration.
fn git(repository: &Path, arguments: &[&str]) -> Result<String, Stop> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(["-c", "user.name=Consort", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("GIT_DIR")
        .output()
        .map_err(|error| Stop::failed(format!("the demo needs git, which cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Stop::failed(format!("git {} failed: {}", arguments.join(" "), one_line(&said))))
}
