//! One conversation between a driver and a real CLI, over pipes.
//!
//! Invariant: the CLI and what it started are gone when the conversation is over, also when it failed.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_drivers::{CallResult, Driver, Frame, HostCall, Launch, Output};
use consort_model::{Answer, AskBody, DriverKind, GrantScope, Question, Signal};
use consort_testkit::clis::Profile;
use rustix::process::{Pid, Signal as ProcessSignal, kill_process_group};
use serde_json::{Value, json};

use super::{Line, Scenario, Step};

/// How long a CLI may be silent.
const LIMIT: Duration = Duration::from_secs(60);
/// What still comes after the end of the last turn belongs to it.
const AFTERMATH: Duration = Duration::from_millis(500);

/// Plays a scenario to its end; its lines.
pub fn play(
    scenario: &Scenario,
    profile: &Profile,
    launch: Launch,
    work: &Path,
) -> anyhow::Result<Vec<Line>> {
    let kind: DriverKind = profile.driver.parse().map_err(anyhow::Error::msg)?;
    let driver = Driver::new(kind, launch.clone()).context("there is no such driver")?;
    let mut process = Process::start(profile, &driver, work)?;
    let mut player = Player {
        driver,
        lines: vec![Line::Launch { driver: kind, launch }],
        todo: VecDeque::from([Line::Do { step: Step::Start }]),
        prompts: scenario.prompts.iter().copied().collect(),
        interrupt_at: scenario.interrupt_at,
        said: String::new(),
        finished: None,
    };
    loop {
        while let Some(input) = player.todo.pop_front() {
            let output = player.give(input);
            for frame in &output.frames {
                process.stdin.write_all(frame).context("the CLI does not listen")?;
            }
        }
        let limit = match player.finished {
            Some(at) => (at + AFTERMATH).saturating_duration_since(Instant::now()),
            None => LIMIT,
        };
        match process.lines.recv_timeout(limit) {
            Ok(frame) => player.todo.push_back(Line::In { frame }),
            Err(RecvTimeoutError::Timeout) if player.finished.is_some() => return Ok(player.lines),
            Err(RecvTimeoutError::Timeout) => {
                bail!("it is silent; the last it did: {:?}", player.lines.last())
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("it ended; the last it did: {:?}", player.lines.last())
            }
        }
    }
}

/// A CLI with everything that it started, killed when this is dropped.
pub struct Process {
    child: Child,
    pub stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    /// The CLI of a profile, as its driver wants it.
    pub fn start(profile: &Profile, driver: &Driver, work: &Path) -> anyhow::Result<Self> {
        let line = driver.command_line();
        let mut command = Command::new(&profile.command);
        command.args(&line.before).args(&profile.args).args(&line.after);
        command.envs(line.environment).envs(profile.environment.iter().cloned());
        command.current_dir(work).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.process_group(0);
        let mut child = command.spawn().context("it cannot be started")?;
        let stdin = child.stdin.take().context("no pipe")?;
        let stdout = BufReader::new(child.stdout.take().context("no pipe")?);
        let (sender, lines) = channel();
        // Ends with the CLI's output, or when nobody listens any more.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, stdin, lines })
    }

    /// The next line that it writes.
    pub fn line(&self) -> anyhow::Result<String> {
        self.lines.recv_timeout(LIMIT).context("the CLI is silent or has ended")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.child.id().cast_signed());
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, ProcessSignal::KILL)
        {
            eprintln!("xtask: a CLI cannot be killed: {error}");
        }
        if let Err(error) = self.child.wait() {
            eprintln!("xtask: a CLI cannot be waited for: {error}");
        }
    }
}

struct Player {
    driver: Driver,
    lines: Vec<Line>,
    todo: VecDeque<Line>,
    prompts: VecDeque<&'static str>,
    interrupt_at: Option<&'static str>,
    said: String,
    /// When there was nothing more to say.
    finished: Option<Instant>,
}

impl Player {
    fn give(&mut self, input: Line) -> Output {
        let output = match &input {
            Line::In { frame } => self.driver.receive(Frame::Line(frame.as_bytes())),
            Line::Do { step } => act(&mut self.driver, step),
            Line::Launch { .. } | Line::Out { .. } => Output::default(),
        };
        self.lines.push(input);
        for frame in &output.frames {
            let frame = String::from_utf8_lossy(frame).trim_end_matches('\n').to_owned();
            self.lines.push(Line::Out { frame });
        }
        self.react(&output);
        output
    }

    /// What the person and the host do next.
    fn react(&mut self, output: &Output) {
        let mut steps = Vec::new();
        for (call, wanted) in &output.calls {
            steps.push(Step::Complete { call: call.clone(), result: host(wanted) });
        }
        let mut idle = false;
        for signal in &output.signals {
            match signal {
                // It may be told again, with more about the session.
                Signal::Ready(_) => idle |= !self.lines.iter().any(is_prompt),
                Signal::TurnEnded(_) => idle = true,
                Signal::Ask { key, body, .. } => {
                    steps.push(Step::Answer { key: key.clone(), answer: answer(body) });
                }
                Signal::Text { text, .. } => {
                    self.said.push_str(text);
                    if self.interrupt_at.is_some_and(|at| self.said.contains(at)) {
                        self.interrupt_at = None;
                        steps.push(Step::Interrupt);
                    }
                }
                _ => {}
            }
        }
        if idle {
            match self.prompts.pop_front() {
                Some(text) => steps.push(Step::Prompt { text: text.to_owned() }),
                None => self.finished = Some(Instant::now()),
            }
        }
        self.todo.extend(steps.into_iter().map(|step| Line::Do { step }));
    }
}

fn is_prompt(line: &Line) -> bool {
    matches!(line, Line::Do { step: Step::Prompt { .. } })
}

/// Does with a driver what a step says.
pub fn act(driver: &mut Driver, step: &Step) -> Output {
    match step {
        Step::Start => driver.start(),
        Step::Prompt { text } => driver.prompt(text, &[]),
        Step::Interrupt => driver.interrupt(),
        Step::Answer { key, answer } => driver.answer(key, answer),
        Step::Complete { call, result } => driver.complete(call, result.clone()),
    }
}

/// The person allows everything, and takes the first of all choices.
fn answer(body: &AskBody) -> Answer {
    match body {
        AskBody::Approval { .. } => Answer::allow(GrantScope::Once),
        AskBody::Question(question) => Answer::Reply { value: reply(question) },
    }
}

fn reply(question: &Question) -> Value {
    let Some(fields) = question.schema["properties"].as_object() else { return json!("Red") };
    let first = |field: &Value| {
        let choices = if field["items"].is_object() { &field["items"] } else { field };
        let constant = |key: &str| choices[key][0]["const"].clone();
        let found = [choices["enum"][0].clone(), constant("oneOf"), constant("anyOf"), json!("Red")];
        let chosen = found.into_iter().find(|value| !value.is_null()).unwrap_or_default();
        if field["type"] == "array" { json!([chosen]) } else { chosen }
    };
    let required = question.schema["required"].as_array();
    let wanted =
        |key: &String| required.is_none_or(|keys| keys.is_empty() || keys.iter().any(|name| name == key));
    fields.iter().filter(|(key, _)| wanted(key)).map(|(key, field)| (key.clone(), first(field))).collect()
}

/// What the hub would do, as far as the scenarios need it.
fn host(call: &HostCall) -> CallResult {
    let failed = |error: std::io::Error| CallResult::Failed { message: error.to_string() };
    match call {
        HostCall::ReadFile { path, .. } => match std::fs::read_to_string(path) {
            Ok(text) => CallResult::Text { text },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                CallResult::NotFound { message: format!("there is no `{path}`") }
            }
            Err(error) => failed(error),
        },
        HostCall::WriteFile { path, text } => match std::fs::write(path, text) {
            Ok(()) => CallResult::Done,
            Err(error) => failed(error),
        },
        _ => CallResult::Failed { message: "recordings have no terminals".to_owned() },
    }
}
