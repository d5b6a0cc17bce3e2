//! Teams: how long a spawn takes beyond starting the program bare, and that a hundred sub-agents of ten parents give every
//! result exactly once.
//!
//! The agents are scripted and use the tools that any agent is given. A spawn counts from the prompt that has the parent
//! call, which is earlier than the call, until the sub-agent's session is open, which is later than its first frame; bare,
//! from the start of the program until it has answered the same two requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_daemon::client::Client;
use consort_daemon::protocol::{Call, Done, NewProfile, Notification, Snapshot, TranscriptPage};
use consort_model::event::AgentEvent;
use consort_model::team::result_receipt;
use consort_model::{AgentId, Event, ItemBody, ItemIndex, ProfileSummary, Stamped, State};

use super::Bench;
use super::bare::BareAgent;
use super::lab::Lab;
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};

const PARENTS: usize = 10;
const EACH: usize = 10;

/// How much longer a spawn may take than the bare program, in milliseconds.
const SPAWN_GOAL: f64 = 60.0;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lab = Lab::new(bench)?;
    lab.start()?;
    let mut client = Client::connect(&lab.home)?;
    lab.add_profile(&mut client)?;
    add_worker(&mut client, bench)?;
    let lines = vec![spawn(bench, &lab, &mut client)?, hundred(&lab, &mut client)?];
    lab.stop()?;
    Ok(lines)
}

/// A profile whose agents say something to whatever they are asked.
fn add_worker(client: &mut Client, bench: &Bench) -> anyhow::Result<()> {
    let command = bench.programs.testkit.to_str().context("the scripted agent's path is not text")?;
    let _: ProfileSummary = client.call(&Call::AddProfile(NewProfile::acp(
        "worker",
        command,
        ["agent", "--on-prompt", "[[say part done]]"].map(str::to_owned).into(),
    )))?;
    Ok(())
}

const SPAWN: &str = r#"[[mcp spawn_subagent {"task": "do a part", "profile": "worker"}]]"#;
const WAIT: &str = r#"[[mcp wait_for_agents {"all": true}]]"#;

fn spawn(bench: &Bench, lab: &Lab, client: &mut Client) -> anyhow::Result<Line> {
    let (mut through, mut bare) = (Vec::new(), Vec::new());
    let parent = lab.add_agents(client, 1)?[0];
    for n in 0..bench.repetitions(40) + 3 {
        let took = spawn_once(lab, client, parent)?;
        let alone = start_bare(bench)?;
        // The first ones load the program.
        if n >= 3 {
            through.push(took);
            bare.push(alone);
        }
    }
    let _: Done = client.call(&Call::Close { agent: parent.to_string() })?;
    let (through, bare) = (Sample::of_durations(&through), Sample::of_durations(&bare));
    Ok(Line {
        name: "team: spawn".to_owned(),
        measured: format!("{} ms", figure(through.median())),
        reference: format!("{} ms bare", figure(bare.median())),
        figure: through.median() - bare.median(),
        unit: " ms",
        goal: Goal::AtMost(SPAWN_GOAL),
        notes: vec![format!("middle half: {}, bare {}", through.spread(), bare.spread())],
    })
}

/// Lets a parent spawn, and waits until the sub-agent is there and gone again.
fn spawn_once(lab: &Lab, client: &mut Client, parent: AgentId) -> anyhow::Result<Duration> {
    let mut watcher = Client::connect(&lab.home)?;
    watcher.subscribe()?;
    let began = Instant::now();
    Lab::send(client, parent, SPAWN)?;
    let mut child = None;
    loop {
        let Notification::Event(Stamped { event: Event::Agent { agent, change }, .. }) =
            watcher.next_notification()?
        else {
            continue;
        };
        match change {
            AgentEvent::Created { record } if record.relation.parent() == Some(parent) => child = Some(agent),
            AgentEvent::Ready { .. } if Some(agent) == child => break,
            AgentEvent::Failed { failure } => bail!("{agent} failed: {}", failure.message),
            _ => {}
        }
    }
    let took = began.elapsed();
    let child = child.context("no sub-agent was spawned")?;
    let _: Done = client.call(&Call::Close { agent: child.to_string() })?;
    Ok(took)
}

/// Starts the program as it is and opens a session.
fn start_bare(bench: &Bench) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let agent = BareAgent::start(bench, &["--on-prompt", "[[say part done]]"])?;
    let took = began.elapsed();
    agent.end()?;
    Ok(took)
}

fn hundred(lab: &Lab, client: &mut Client) -> anyhow::Result<Line> {
    let parents = lab.add_agents(client, PARENTS)?;
    let mut watcher = Client::connect(&lab.home)?;
    let Snapshot { mut state } = watcher.subscribe()?;
    let steps = format!("{} {}", SPAWN.repeat(EACH), WAIT.repeat(4));
    let began = Instant::now();
    for parent in &parents {
        Lab::send(client, *parent, &steps)?;
    }
    while !is_done(&state, &parents) {
        match watcher.next_notification()? {
            Notification::Snapshot(Snapshot { state: newer }) => state = newer,
            Notification::Event(stamped) => state.apply(&stamped),
        }
    }
    let took = began.elapsed();
    let mut wrong = BTreeMap::new();
    let mut count = 0;
    for agent in state.agents.values() {
        let Some(parent) = agent.relation.parent().filter(|parent| parents.contains(parent)) else {
            continue;
        };
        count += 1;
        let times = times_told(client, parent, agent.id, &agent.name)?;
        if times != 1 {
            wrong.insert(agent.name.clone(), times);
        }
    }
    let missing = PARENTS * EACH - count;
    for parent in &parents {
        let _: Done = client.call(&Call::Close { agent: parent.to_string() })?;
    }
    let failed = wrong.len() + missing;
    let measured = format!("{failed} not delivered exactly once");
    let line = Line::new("team: 100 sub-agents", measured, failed as f64, "", Goal::AtMost(0.0));
    Ok(line.noting(format!("{count} results in {} s; {wrong:?}", figure(took.as_secs_f64()))))
}

/// Whether all sub-agents have results and no parent has anything left to do.
fn is_done(state: &State, parents: &[AgentId]) -> bool {
    let idle = |id: &AgentId| {
        let agent = state.agents.get(id);
        agent.is_some_and(|agent| {
            agent.turn.is_none() && agent.queue.is_empty() && agent.last_outcome.is_some()
        })
    };
    let children: BTreeSet<AgentId> = state
        .agents
        .values()
        .filter(|agent| agent.relation.parent().is_some_and(|parent| parents.contains(&parent)))
        .filter(|agent| agent.relation.result().is_some())
        .map(|agent| agent.id)
        .collect();
    children.len() == parents.len() * EACH && parents.iter().all(idle)
}

/// How often a parent was told of a result: by messages, and by the answers to its calls, which may show it again.
fn times_told(client: &mut Client, parent: AgentId, child: AgentId, name: &str) -> anyhow::Result<usize> {
    let (message, receipt) = (format!("Sub-agent `{name}` is done"), result_receipt(child));
    let (mut told, mut handed, mut from) = (0, false, 0);
    loop {
        let call = Call::Transcript {
            agent: parent.to_string(),
            before: None,
            from: Some(ItemIndex(from)),
            limit: 1000,
        };
        let page: TranscriptPage = client.call(&call)?;
        if page.items.is_empty() {
            return Ok(told + usize::from(handed));
        }
        from += page.items.len() as u64;
        for item in page.items {
            match item.body {
                ItemBody::User { text, .. } => told += text.matches(&message).count(),
                ItemBody::Tool(tool) => handed |= tool.output.contains(&receipt),
                _ => {}
            }
        }
    }
}
