//! Drivers alone: frames per second and instructions per frame of a long session with Claude Code and with Codex.
//!
//! A long session is the recorded turns again and again in one session; replies name the requests they belong to, as
//! they would. Frames per second are compared with only reading the same frames as JSON; instructions are counted by
//! callgrind in a process of their own, once with the session and once without it.

use std::collections::HashMap;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use consort_drivers::{Driver, Frame, Output};
use consort_model::Signal;
use serde_json::Value;

use super::Bench;
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};
use crate::record::{self, Step};

const FRAMES: usize = 20_000;
/// Fewer: every instruction costs fifty there.
const COUNTED_FRAMES: usize = 4_000;
const CLIS: [&str; 2] = ["claude", "codex"];
const SCENARIOS: [&str; 4] = ["plain", "shell", "edit", "interrupt"];

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for cli in CLIS {
        lines.push(throughput(bench, cli)?);
        lines.extend(instructions(cli)?);
    }
    Ok(lines)
}

fn throughput(bench: &Bench, cli: &str) -> anyhow::Result<Line> {
    let session = Session::long(cli, FRAMES)?;
    let (mut measured, mut reference) = (Vec::new(), Vec::new());
    for n in 0..=bench.repetitions(15) {
        let started = Instant::now();
        session.replay();
        let driven = started.elapsed();
        let started = Instant::now();
        session.parse()?;
        let parsed = started.elapsed();
        if n > 0 {
            measured.push(session.frames() as f64 / driven.as_secs_f64());
            reference.push(session.frames() as f64 / parsed.as_secs_f64());
        }
    }
    let (measured, reference) = (Sample::new(measured), Sample::new(reference));
    Ok(Line {
        name: format!("driver-throughput, {cli}"),
        measured: format!("{} frames/s", figure(measured.median())),
        reference: format!("{} frames/s", figure(reference.median())),
        figure: measured.median() / reference.median(),
        unit: "x",
        goal: Goal::AtLeast(0.4),
        notes: vec![
            format!("middle half: {}, reference {}", measured.spread(), reference.spread()),
            format!(
                "{} frames, {} bytes each on average",
                session.frames(),
                session.bytes() / session.frames()
            ),
        ],
    })
}

/// None, with the reason on standard error, where there is no valgrind.
fn instructions(cli: &str) -> anyhow::Result<Option<Line>> {
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !valgrind.is_ok_and(|status| status.success()) {
        eprintln!("driver-instructions, {cli}: skipped, valgrind is not installed");
        return Ok(None);
    }
    let (with, without) = (counted(cli, "replay")?, counted(cli, "prepare")?);
    let frames = Session::long(cli, COUNTED_FRAMES)?.frames() as f64;
    let count = with.saturating_sub(without) as f64 / frames;
    let name = format!("driver-instructions, {cli}");
    Ok(Some(Line::new(name, format!("{frames} frames"), count, " per frame", Goal::AtMost(40_000.0))))
}

/// The instructions of a whole process.
fn counted(cli: &str, what: &str) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["driver-replay", cli, what])
        .output()
        .context("valgrind cannot be run")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("callgrind failed: {said}");
    }
    let collected =
        said.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    collected
        .and_then(|count| count.parse().ok())
        .with_context(|| format!("callgrind tells no count: {said}"))
}

/// `xtask driver-replay CLI replay|prepare`: what callgrind counts.
pub fn replay_command(args: &[String]) -> anyhow::Result<()> {
    let [cli, what] = args else { bail!("xtask driver-replay CLI replay|prepare") };
    let session = Session::long(cli, COUNTED_FRAMES)?;
    if what == "replay" {
        session.replay();
    }
    Ok(())
}

/// Something that a driver is given.
enum Input {
    Frame(Vec<u8>),
    Step(Step),
}

/// A driver as it was made, and all that it is given.
struct Session {
    driver: Driver,
    inputs: Vec<Input>,
}

impl Session {
    /// The handshake once, then the turns of all recordings again and again.
    fn long(cli: &str, frames: usize) -> anyhow::Result<Self> {
        let recordings = SCENARIOS
            .iter()
            .map(|scenario| record::read(&format!("{cli}-{scenario}")))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let first = recordings.first().context("nothing is recorded")?;
        let Some(record::Line::Launch { driver, launch }) = first.first() else {
            bail!("a recording begins with its launch")
        };
        let driver = Driver::new(*driver, launch.clone()).context("there is no such driver")?;
        let mut maker = Maker::new(driver.clone());
        let session = maker.session_of(first)?;
        maker.play(handshake(first), "", "")?;
        while maker.frames < frames {
            for recording in &recordings {
                let own = maker.session_of(recording)?;
                maker.play(&recording[handshake(recording).len()..], &own, &session)?;
            }
        }
        if maker.complaints > 0 {
            bail!("{cli}: {} frames of the long session were not understood", maker.complaints);
        }
        Ok(Self { driver, inputs: maker.inputs })
    }

    fn frames(&self) -> usize {
        self.lines().count()
    }

    fn bytes(&self) -> usize {
        self.lines().map(<[u8]>::len).sum()
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.inputs.iter().filter_map(|input| match input {
            Input::Frame(line) => Some(line.as_slice()),
            Input::Step(_) => None,
        })
    }

    fn replay(&self) {
        let mut driver = self.driver.clone();
        for input in &self.inputs {
            black_box(give(&mut driver, input));
        }
    }

    fn parse(&self) -> anyhow::Result<()> {
        for line in self.lines() {
            black_box(serde_json::from_slice::<Value>(line)?);
        }
        Ok(())
    }
}

fn give(driver: &mut Driver, input: &Input) -> Output {
    match input {
        Input::Frame(line) => driver.receive(Frame::Line(line)),
        Input::Step(step) => record::act(driver, step),
    }
}

/// The part of a recording before its first prompt.
fn handshake(lines: &[record::Line]) -> &[record::Line] {
    let is_prompt = |line: &record::Line| matches!(line, record::Line::Do { step: Step::Prompt { .. } });
    lines.split_at(lines.iter().position(is_prompt).unwrap_or(lines.len())).0
}

/// Makes a long session by playing it.
struct Maker {
    fresh: Driver,
    driver: Driver,
    inputs: Vec<Input>,
    frames: usize,
    /// Warnings and unknown things: a session that is not understood measures nothing.
    complaints: usize,
}

impl Maker {
    fn new(driver: Driver) -> Self {
        Self { fresh: driver.clone(), driver, inputs: Vec::new(), frames: 0, complaints: 0 }
    }

    /// The id of a recording's session.
    fn session_of(&self, lines: &[record::Line]) -> anyhow::Result<String> {
        let mut driver = self.fresh.clone();
        let mut session = None;
        for line in lines {
            let output = match line {
                record::Line::In { frame } => driver.receive(Frame::Line(frame.as_bytes())),
                record::Line::Do { step } => record::act(&mut driver, step),
                _ => continue,
            };
            for signal in output.signals {
                if let Signal::Ready(info) = signal
                    && !info.id.is_empty()
                {
                    session = Some(info.id);
                }
            }
        }
        session.context("a recording has no session")
    }

    /// Plays a part of a recording, with the session's id in the place of its own.
    fn play(&mut self, lines: &[record::Line], own: &str, session: &str) -> anyhow::Result<()> {
        let mut ids = HashMap::new();
        let mut wrote = Vec::new().into_iter();
        for line in lines {
            let input = match line {
                record::Line::Launch { .. } => continue,
                // What the driver writes now in the place of what it wrote then.
                record::Line::Out { frame } => {
                    let now: Option<Vec<u8>> = wrote.next();
                    let then = id_of(&serde_json::from_str(frame)?);
                    let now = now.map(|frame| serde_json::from_slice(&frame)).transpose()?;
                    if let (Some(then), Some(now)) = (then, now.as_ref().and_then(id_of)) {
                        ids.insert(then.to_string(), now);
                    }
                    continue;
                }
                record::Line::Do { step } => Input::Step(step.clone()),
                record::Line::In { frame } => {
                    let frame = if own.is_empty() { frame.clone() } else { frame.replace(own, session) };
                    let mut message: Value = serde_json::from_str(&frame)?;
                    if let Some(id) = reply_id(&mut message) {
                        // An answer to the recording's handshake is of no use here.
                        let Some(now) = ids.get(&id.to_string()) else { continue };
                        *id = now.clone();
                        Input::Frame(serde_json::to_vec(&message)?)
                    } else {
                        Input::Frame(frame.into_bytes())
                    }
                }
            };
            let output = give(&mut self.driver, &input);
            let odd = |signal: &&Signal| match signal {
                Signal::Notice { level, .. } => *level != consort_model::NoticeLevel::Info,
                Signal::Unknown { .. } => true,
                _ => false,
            };
            self.complaints += output.signals.iter().filter(odd).count();
            wrote = output.frames.into_iter();
            self.frames += usize::from(matches!(input, Input::Frame(_)));
            self.inputs.push(input);
        }
        Ok(())
    }
}

/// The id of a request.
fn id_of(message: &Value) -> Option<Value> {
    let id = if message["type"] == "control_request" { &message["request_id"] } else { &message["id"] };
    (!id.is_null()).then(|| id.clone())
}

/// The id of the request that this is the reply to.
fn reply_id(message: &mut Value) -> Option<&mut Value> {
    if message["type"] == "control_response" {
        return message.get_mut("response")?.get_mut("request_id");
    }
    if message.get("method").is_some() || message.get("type").is_some() {
        return None;
    }
    message.get_mut("id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_session_is_understood() {
        for cli in CLIS {
            assert!(Session::long(cli, 1_000).unwrap().frames() >= 1_000, "{cli}");
        }
    }
}
