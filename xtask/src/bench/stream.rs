//! 100 agents that stream to one subscribed client: that nothing is lost, how late it comes, what it costs.
//!
//! Each delta says when its child wrote it and which one it is. The client shares the processors with 200 other
//! processes, so it looks for no more than that in what it reads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use consort_daemon::client::Client;
use consort_daemon::protocol::Call;
use consort_model::AgentId;
use rustix::time::{ClockId, clock_gettime};

use super::Bench;
use super::bare::{self, BareAgent};
use super::lab::{Lab, RawConnection, request};
use super::processes::{Activity, Family, Machine, own_thread_milliseconds, ticks};
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};

const AGENTS: usize = 100;
const RATE: u32 = 200;
const SECONDS: u32 = 20;

/// How long the same agents are read without Consort, to know what the machine can do just now.
const BARE_SECONDS: u32 = 5;

/// A client that hears nothing for so long gives up.
const SILENCE: Duration = Duration::from_secs(10);

/// The kernel's clock ticks per second, as programs see them.
const TICKS_PER_SECOND: f64 = 100.0;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let seconds = if bench.quick { SECONDS / 4 } else { SECONDS };
    let deltas = RATE * seconds;
    let mut lab = Lab::new(bench)?;
    let daemon = lab.start()?;
    let mut client = Client::connect(&lab.home)?;
    lab.add_profile(&mut client)?;
    let agents = lab.add_agents(&mut client, AGENTS)?;
    let family = Family::of(lab.home.root())?;
    let mut subscriber = RawConnection::greet(&lab.home)?;
    subscriber.ask(&request(&Call::Subscribe {})?)?;
    let stream = subscriber.into_stream();
    stream.set_read_timeout(Some(SILENCE))?;
    let reader_agents = agents.clone();

    let before = (ticks(daemon), Activity::of(&family.runners), Activity::of(&family.children));
    let machine = Machine::now();
    let started = Instant::now();
    let reader = std::thread::spawn(move || listen(stream, &reader_agents, deltas));
    let prompt = format!("[[stream n={deltas} rate={RATE} stamp]]");
    for agent in &agents {
        Lab::send(&mut client, *agent, &prompt)?;
    }
    let heard = reader.join().map_err(|_| anyhow!("the client panicked"))??;
    let took = started.elapsed().as_secs_f64();
    let daemon_share = (ticks(daemon) - before.0) as f64 / TICKS_PER_SECOND / took;
    let runners = Activity::of(&family.runners).since(&before.1).milliseconds / 1e3 / took;
    let children = Activity::of(&family.children).since(&before.2).milliseconds / 1e3 / took;
    let machine = Machine::now().since(machine);
    let cores = |ticks: u64| ticks as f64 / TICKS_PER_SECOND / took;
    let client = heard.own_milliseconds / 1e3 / took;
    let others = (cores(machine.busy) - daemon_share - runners - children - client).max(0.0);
    lab.stop()?;
    let bare = Sample::new(stream_bare(bench)?);

    let expected = f64::from(deltas) * AGENTS as f64;
    let latency = Sample::new(heard.latencies);
    let mut complete = Line::new(
        "stream-100, lost or out of order",
        format!("{} of {expected} deltas", latency.len()),
        expected - latency.len() as f64,
        "",
        Goal::AtMost(0.0),
    )
    .noting(format!(
        "{AGENTS} agents, {RATE} deltas a second each for {seconds} s, taken in within {} s; {} messages to the client",
        figure(took),
        heard.messages
    ));
    complete.notes.extend(heard.complaint);
    Ok(vec![
        complete,
        Line::new(
            "stream-100, p99 write to read",
            format!("p50 {} ms", figure(latency.median())),
            latency.percentile(99.0),
            " ms",
            Goal::AtMost(50.0),
        )
        .noting(format!("through Consort: {}", tail(&latency)))
        .noting(format!("the same agents bare: {}", tail(&bare))),
        Line::new(
            "stream-100, daemon",
            format!("{} s of {} s", figure(daemon_share * took), figure(took)),
            daemon_share,
            " cores",
            Goal::AtMost(0.5),
        )
        .noting(format!(
            "besides: runners {} cores, scripted children {}, this client {}",
            figure(runners),
            figure(children),
            figure(client)
        ))
        .noting(format!(
            "the machine meanwhile: other work {} cores, idle {}, taken by its host {}",
            figure(others),
            figure(cores(machine.idle)),
            figure(cores(machine.stolen))
        )),
    ])
}

fn tail(latency: &Sample) -> String {
    let at = |percent| figure(latency.percentile(percent));
    let longest = figure(latency.max());
    format!("p50 {}, p90 {}, p99 {}, p99.9 {}, longest {longest} ms", at(50.0), at(90.0), at(99.0), at(99.9))
}

/// From the agents' writes to the read from their pipes, in milliseconds, with no Consort between.
fn stream_bare(bench: &Bench) -> anyhow::Result<Vec<f64>> {
    let mut agents: Vec<_> =
        (0..AGENTS).map(|_| BareAgent::start(bench, &[])).collect::<anyhow::Result<_>>()?;
    let deltas = RATE * BARE_SECONDS;
    for agent in &mut agents {
        agent.prompt(&format!("[[stream n={deltas} rate={RATE} stamp]]"))?;
    }
    let latencies = RefCell::new(Vec::new());
    let take = |_, line: &[u8]| {
        let now = monotonic_nanoseconds();
        let text = find(line, TEXT).map_or(&[][..], |at| &line[at + TEXT.len()..]);
        latencies.borrow_mut().extend(stamps(text).map(|(at, _)| now.saturating_sub(at) as f64 / 1e6));
    };
    bare::listen(&mut agents, take, || latencies.borrow().len() >= AGENTS * deltas as usize)?;
    agents.into_iter().try_for_each(BareAgent::end)?;
    Ok(latencies.into_inner())
}

/// What the client heard.
#[derive(Default)]
struct Heard {
    /// From the child's write to this client's read, in milliseconds, of every delta that came in its place.
    latencies: Vec<f64>,
    messages: u64,
    /// What was wrong first, if anything.
    complaint: Option<String>,
    own_milliseconds: f64,
}

/// Reads until every agent's last delta came, or nothing comes any more.
fn listen(mut stream: UnixStream, agents: &[AgentId], deltas: u32) -> anyhow::Result<Heard> {
    let before = own_thread_milliseconds();
    let mut heard =
        Heard { latencies: Vec::with_capacity(agents.len() * deltas as usize), ..Heard::default() };
    let mut next: HashMap<Vec<u8>, u32> =
        agents.iter().map(|agent| (agent.to_string().into_bytes(), 0)).collect();
    let mut unfinished = agents.len();
    let mut buffer = vec![0; 1 << 20];
    let mut filled = 0;
    while unfinished > 0 {
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => bail!("the daemon ended the connection"),
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                heard.complaint = Some(format!("{unfinished} agents did not come to their end"));
                break;
            }
            Err(error) => return Err(error).context("the events cannot be read"),
        }
        let now = monotonic_nanoseconds();
        let mut rest = &buffer[..filled];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            heard.messages += 1;
            let Some((agent, text)) = agent_and_text(line) else {
                if find(line, br#""method":"snapshot""#).is_some() {
                    heard
                        .complaint
                        .get_or_insert("the client did not keep up and was given a snapshot".into());
                }
                continue;
            };
            let Some(expected) = next.get_mut(agent) else { continue };
            for (at, index) in stamps(text) {
                if index == *expected {
                    heard.latencies.push(now.saturating_sub(at) as f64 / 1e6);
                } else {
                    heard.complaint.get_or_insert(format!("delta {index} came where {expected} was due"));
                }
                *expected = index + 1;
                if *expected == deltas {
                    unfinished -= 1;
                }
            }
        }
        let left = rest.len();
        buffer.copy_within(filled - left..filled, 0);
        filled = left;
    }
    heard.own_milliseconds = own_thread_milliseconds() - before;
    Ok(heard)
}

const TEXT: &[u8] = br#""text":""#;

/// The agent of an event, and its text if it has one, still escaped as JSON.
fn agent_and_text(line: &[u8]) -> Option<(&[u8], &[u8])> {
    const AGENT: &[u8] = br#""agent":""#;
    let agent = &line[find(line, AGENT)? + AGENT.len()..];
    let agent_end = agent.iter().position(|byte| *byte == b'"')?;
    let (agent, rest) = agent.split_at(agent_end);
    let text = &rest[find(rest, TEXT)? + TEXT.len()..];
    Some((agent, &text[..text.iter().position(|byte| *byte == b'"')?]))
}

fn find(line: &[u8], wanted: &[u8]) -> Option<usize> {
    line.windows(wanted.len()).position(|window| window == wanted)
}

/// The stamps in a text of the scripted agent; nothing in any other text.
fn stamps(text: &[u8]) -> impl Iterator<Item = (u64, u32)> {
    text.split(|byte| *byte == b' ').filter_map(|stamp| {
        let (at, index) = std::str::from_utf8(stamp).ok()?.split_once(':')?;
        Some((at.parse().ok()?, index.parse().ok()?))
    })
}

/// The clock that the scripted agent stamps with.
fn monotonic_nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_is_found_in_its_message() {
        let line = br#"{"jsonrpc":"2.0","method":"event","params":{"seq":7,"at":1,"event":"agent","agent":"a-b","change":"text_appended","index":1,"offset":0,"text":"12:0 15:1 "}}"#;
        let (agent, text) = agent_and_text(line).unwrap();
        assert_eq!(agent, b"a-b");
        assert_eq!(stamps(text).collect::<Vec<_>>(), [(12, 0), (15, 1)]);
    }

    #[test]
    fn a_prompt_or_a_kind_of_item_is_no_delta() {
        let line = br#"{"agent":"a","item":{"kind":"user","text":"[[stream n=4 rate=2 stamp]]"}}"#;
        assert_eq!(stamps(agent_and_text(line).unwrap().1).count(), 0);
        assert_eq!(agent_and_text(br#"{"agent":"a","kind":"text"}"#), None);
    }
}
