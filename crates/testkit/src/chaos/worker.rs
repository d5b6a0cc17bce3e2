//! A worker: a client that does random things to its own agents, over connections that keep breaking.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort_daemon::client::ClientError;
use consort_daemon::protocol::{Call, NewAgent, NewPrompt, codes};
use consort_model::{Agent, AgentId, Answer, GrantScope, Lifecycle, PromptId};
use serde_json::Value;
use uuid::Uuid;

use super::ledger::{Expected, Fate, Ledger, SentPrompt};
use super::random::Random;
use crate::harness::processes::{self, Role};
use crate::harness::{Client, Home, Wire};

/// Between two actions of one worker, at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

/// More than this many waiting prompts only make the end long.
const MAX_QUEUED: usize = 2;

/// The profile of sub-agents, which do no more than yield.
pub const SUB_AGENTS: &str = "part";

pub struct Worker<'a> {
    home: &'a Home,
    stop: &'a AtomicBool,
    random: Random,
    ledgers: Vec<Ledger>,
    client: Option<Client>,
    /// The prompts that it made, to tell them apart.
    tags: u32,
}

/// What became of a call.
enum Outcome {
    Done,
    Refused(String),
    /// It may have been done or not.
    Broken,
}

impl<'a> Worker<'a> {
    pub fn new(home: &'a Home, stop: &'a AtomicBool, random: Random, numbers: &[usize]) -> Self {
        let ledger = |number: &usize| {
            let id = AgentId::new(Uuid::now_v7());
            Ledger::new(id, Fate::of(*number), format!("agent-{number}"))
        };
        Self { home, stop, random, ledgers: numbers.iter().map(ledger).collect(), client: None, tags: 0 }
    }

    /// Works until told to stop; what was acknowledged.
    pub fn work(mut self) -> Vec<Ledger> {
        self.create_all();
        while !self.stop.load(Ordering::Relaxed) {
            let which = self.random.below(self.ledgers.len());
            self.act(which);
            self.random.pause(LONGEST_PAUSE);
        }
        // What was never acknowledged stays unsure, but what it left unnamed must not: it is named again.
        for which in 0..self.ledgers.len() {
            self.rename(which, true);
        }
        self.ledgers
    }

    fn create_all(&mut self) {
        for which in 0..self.ledgers.len() {
            let new = NewAgent {
                id: self.ledgers[which].agent,
                profile: Some("scripted".to_owned()),
                name: Some(self.ledgers[which].names[0].clone()),
                cwd: self.home.work(),
                companion_of: None,
                permissions: None,
                worktree: None,
                prompt: None,
            };
            match self.call_until_answered(&Call::CreateAgent(new)) {
                Outcome::Done => {}
                _ => self.find(which, "it was not created".to_owned()),
            }
        }
    }

    fn act(&mut self, which: usize) {
        let id = self.ledgers[which].agent;
        let Some(agent) = self.look(id) else { return };
        if !agent.asks.is_empty() && self.random.chance(60) {
            let ask = self.random.pick(&agent.asks).clone();
            return self.answer(which, &ask);
        }
        let fate = self.ledgers[which].fate;
        match (fate, self.random.below(100)) {
            (Fate::Interrupted, 0..15) if agent.turn.is_some() => self.interrupt(which),
            (Fate::Crashing, 0..4) => self.kill_process(&agent, which, false),
            (Fate::Crashing, 4..7) => self.kill_process(&agent, which, true),
            (Fate::Crashing | Fate::Closing, 10..50)
                if matches!(agent.lifecycle, Lifecycle::Failed(_) | Lifecycle::Closed { .. }) =>
            {
                self.call_and_check(which, &Call::Reopen { agent: id.to_string() });
            }
            (Fate::Closing, 0..8) if !agent.is_closed() => {
                self.ledgers[which].closes += 1;
                self.call_and_check(which, &Call::Close { agent: id.to_string() });
            }
            (_, 97..) => self.rename(which, false),
            _ if agent.queue.len() < MAX_QUEUED => self.send(which),
            _ => {}
        }
    }

    /// The agent as the replica shows it; none while there is no connection.
    fn look(&mut self, id: AgentId) -> Option<Agent> {
        let client = self.connected()?;
        let (agent, broken) =
            client.look(|followed| (followed.state.agents.get(&id).cloned(), followed.broken.clone()));
        if let Some(reason) = broken {
            self.client = None;
            // A daemon that was killed ends the stream; anything else is a fault in what it sent.
            if reason.contains("event") || reason.contains("snapshot") {
                self.find(0, format!("following failed: {reason}"));
            }
        }
        agent
    }

    fn connected(&mut self) -> Option<&Client> {
        if self.client.is_none() {
            match self.home.try_client() {
                Ok(client) => self.client = Some(client),
                Err(_) => self.random.pause(Duration::from_millis(20)),
            }
        }
        self.client.as_ref()
    }

    fn call(&mut self, call: &Call) -> Outcome {
        let Some(client) = self.connected() else { return Outcome::Broken };
        match client.try_call::<Value>(call) {
            Ok(_) => Outcome::Done,
            Err(ClientError::Answer(error)) if error.code == codes::REFUSED => {
                Outcome::Refused(error.message)
            }
            Err(ClientError::Answer(error)) => {
                self.find(0, format!("{call:?} was answered with {error:?}"));
                Outcome::Refused(error.message)
            }
            Err(_) => {
                self.client = None;
                Outcome::Broken
            }
        }
    }

    fn call_until_answered(&mut self, call: &Call) -> Outcome {
        loop {
            match self.call(call) {
                Outcome::Broken => {}
                outcome => return outcome,
            }
        }
    }

    /// A call that may be refused, because things change all the time, and that may break.
    fn call_and_check(&mut self, _which: usize, call: &Call) {
        match self.call(call) {
            Outcome::Done | Outcome::Refused(_) | Outcome::Broken => {}
        }
    }

    fn interrupt(&mut self, which: usize) {
        self.ledgers[which].interrupts += 1;
        self.call_and_check(which, &Call::Interrupt { agent: self.ledgers[which].agent.to_string() });
    }

    fn rename(&mut self, which: usize, surely: bool) {
        self.tags += 1;
        let name = format!("{}-{}", &self.ledgers[which].agent.to_string()[24..], self.tags);
        let call = Call::Rename { agent: self.ledgers[which].agent.to_string(), name: name.clone() };
        self.ledgers[which].names.push(name.clone());
        let outcome = if surely { self.call_until_answered(&call) } else { self.call(&call) };
        match outcome {
            Outcome::Done => self.ledgers[which].names = vec![name],
            Outcome::Refused(message) => self.find(which, format!("a new name was refused: {message}")),
            Outcome::Broken => {}
        }
    }

    fn send(&mut self, which: usize) {
        self.tags += 1;
        let tag = format!("{}t{}", &self.ledgers[which].agent.to_string()[32..], self.tags);
        let (text, expected) = steps(&mut self.random, self.ledgers[which].fate, &tag);
        let id = PromptId::new(Uuid::now_v7());
        let prompt = NewPrompt { id, text: text.clone(), attachments: vec![] };
        let call = Call::Send { agent: self.ledgers[which].agent.to_string(), prompt };
        self.ledgers[which].prompts.push(SentPrompt { id, tag, text, expected, acknowledged: false });
        if self.random.chance(5) {
            // A client that leaves in the middle of its call.
            if let Ok(mut wire) = Wire::greeted(&self.home.paths().socket()) {
                wire.request(&call).ok();
            }
            return;
        }
        loop {
            match self.call(&call) {
                Outcome::Done => {
                    if let Some(sent) = self.ledgers[which].prompts.last_mut() {
                        sent.acknowledged = true;
                    }
                    // Sent again by a client that did not see its answer.
                    if self.random.chance(10) {
                        self.call_and_check(which, &call);
                    }
                    return;
                }
                Outcome::Refused(_) => return,
                Outcome::Broken if self.random.chance(70) => {}
                Outcome::Broken => return,
            }
        }
    }

    fn answer(&mut self, which: usize, ask: &consort_model::Ask) {
        let answer = match self.random.below(10) {
            0..6 => Answer::allow(GrantScope::Once),
            _ => Answer::Deny { message: None },
        };
        self.ledgers[which].answers.entry(ask.id).or_default().tried.push(answer.clone());
        let call = Call::Answer { ask: ask.id.to_string(), answer: answer.clone() };
        match self.call(&call) {
            Outcome::Done => {
                let given = self.ledgers[which].answers.entry(ask.id).or_default();
                if let Some(before) = given.acknowledged.replace(answer) {
                    self.find(which, format!("{:?} was answered twice, first with {before:?}", ask.id));
                }
            }
            Outcome::Refused(_) | Outcome::Broken => {}
        }
    }

    /// Kills what the agent runs, or the runner that holds it.
    fn kill_process(&mut self, agent: &Agent, which: usize, runner: bool) {
        let found = if runner {
            let id = agent.id.uuid().simple().to_string();
            let folder = format!("{}-{}", &id[id.len() - 12..], agent.generation);
            let is_its = |process: &processes::Process| {
                process.role() == Role::Runner && process.command.ends_with(&folder)
            };
            self.home.processes().into_iter().find(is_its)
        } else {
            let found = processes::with_mark(&format!("CONSORT_AGENT_ID={}", agent.id));
            found.into_iter().find(|process| process.command.contains(" agent"))
        };
        if let Some(process) = found {
            self.ledgers[which].process_kills += 1;
            processes::kill(process.pid);
        }
    }

    fn find(&mut self, which: usize, finding: String) {
        self.ledgers[which].findings.push(finding);
    }
}

/// What a prompt says, and what its turn says if it is whole.
fn steps(random: &mut Random, fate: Fate, tag: &str) -> (String, Expected) {
    let end = format!("[[say  end-{tag};]]");
    let (steps, expected) = match random.below(if fate == Fate::Peaceful { 9 } else { 11 }) {
        0 | 1 => {
            let count = 5 + random.below(60);
            let rate = 50 + random.below(400);
            (format!("[[stream n={count} rate={rate}]]"), Expected::Words(count))
        }
        2 => (format!("[[ask execute cmd-{tag}]]"), Expected::Replies(1)),
        3 => ("[[ask-many 3]]".to_owned(), Expected::Replies(3)),
        4 => (format!("[[tool read delay={} notes]] [[plan a|b]]", random.below(100)), Expected::Nothing),
        5 => {
            let command = format!("[[terminal sh -c \"sleep 0.{}; echo out-{tag}\"]]", random.below(4));
            (command, Expected::Text(format!("exit 0\nout-{tag}")))
        }
        6 => (format!("[[fs-write {tag}.txt x]]"), Expected::Text("fs_write: written".to_owned())),
        7 => (format!("[[wait {}]]", random.below(200)), Expected::Nothing),
        8 => {
            let spawn =
                format!("[[mcp spawn_subagent {{\"task\": \"{tag}\", \"profile\": \"{SUB_AGENTS}\"}}]]");
            let wait = random.pick(&["", r#"[[mcp wait_for_agents {"all": true, "seconds": 2}]]"#]);
            (format!("{} {wait}", spawn.repeat(1 + random.below(2))), Expected::Nothing)
        }
        _ => match fate {
            Fate::Crashing => {
                let last =
                    random.pick(&["[[crash 3]]", "[[spawn-orphan]] [[crash]]", "[[kill-self]]", "[[torn]]"]);
                (format!("[[stream n=10 rate=500]] {last}"), Expected::Open)
            }
            Fate::Interrupted => ("[[hang]]".to_owned(), Expected::Open),
            Fate::Closing => ("[[spawn-orphan]]".to_owned(), Expected::Nothing),
            Fate::Peaceful => (String::new(), Expected::Nothing),
        },
    };
    (format!("{steps} {end}"), expected)
}

/// Answers all that is asked and interrupts what would hang for ever.
pub fn settle(client: &Client) {
    let agents: Vec<Agent> = client.look(|followed| followed.state.agents.values().cloned().collect());
    for agent in agents {
        for ask in &agent.asks {
            let call = Call::Answer { ask: ask.id.to_string(), answer: Answer::allow(GrantScope::Once) };
            // It may be over by now.
            client.try_call::<Value>(&call).ok();
        }
        let hangs = agent.turn.as_ref().is_some_and(|turn| !turn.interrupted) && agent.asks.is_empty();
        if hangs && last_prompt(client, agent.id).contains("[[hang]]") {
            client.try_call::<Value>(&Call::Interrupt { agent: agent.id.to_string() }).ok();
        }
    }
}

fn last_prompt(client: &Client, agent: AgentId) -> String {
    let prompt = |item: consort_model::Item| match item.body {
        consort_model::ItemBody::User { text, .. } => Some(text),
        _ => None,
    };
    client.items(agent).into_iter().rev().find_map(prompt).unwrap_or_default()
}
