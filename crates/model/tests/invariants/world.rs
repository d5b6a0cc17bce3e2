//! The team that the random steps act on: each step is one command, decided, applied and written down.

use std::collections::{BTreeMap, BTreeSet};

use consort_model::decide;
use consort_model::event::AgentEvent;
use consort_model::item::{ToolCall, ToolStatus};
use consort_model::relation::TaskResult;
use consort_model::team::result_receipt;
use consort_model::transcript::Writer;
use consort_model::{
    Actor, Agent, AgentId, Answer, AskBody, AskId, Availability, Awaited, CreateAgent, DriverKind, Event,
    Failure, GrantScope, Lifecycle, PermissionMode, Profile, ProfileId, Prompt, PromptId, PromptOrigin,
    Question, Refusal, Relation, RevisionKey, SessionInfo, Signal, Stamped, State, Timestamp, ToolCallId,
    ToolKind, TurnId, TurnOutcome, Wait, WaitId,
};
use uuid::Uuid;

/// The number of an agent that never is there.
pub const NOBODY: u8 = 60;

/// No more agents than this, so that the steps meet each other.
const MOST_AGENTS: usize = 12;

/// Whom an agent is created for, by number.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Primary,
    Companion(u8),
    SubAgent(u8),
}

/// What a person answers.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    Once,
    Session,
    Always,
    Text,
    Stop,
}

/// One thing that somebody does. Agents are named by number; `by` none is a person.
#[derive(Clone, Debug)]
pub enum Step {
    Create {
        kind: Kind,
        by: Option<u8>,
        name: Option<u8>,
        prompted: bool,
    },
    Send {
        to: u8,
        from: Option<u8>,
    },
    SendAgain {
        to: u8,
    },
    EditQueued {
        of: u8,
        drop: bool,
    },
    /// What brings the agent nearest to working: its session opens, it is sent a prompt, or a turn begins.
    Work(u8),
    EndTurn(u8),
    Ask {
        of: u8,
        question: bool,
    },
    Answer {
        of: u8,
        reply: Reply,
    },
    Interrupt(u8),
    Close {
        of: u8,
        by: Option<u8>,
    },
    Reopen(u8),
    Fail(u8),
    Rest(u8),
    SettleTask(u8),
    /// An agent waits in a call for another.
    Wait {
        of: u8,
        on: u8,
    },
    /// A call breaks off.
    EndWait(u8),
    /// A call is answered, and the answer is seen or not.
    HandOut {
        of: u8,
        seen: bool,
    },
    /// A running turn is given what is to join it, or says what became of it.
    Steer {
        of: u8,
        joins: Option<bool>,
    },
    DaemonRestarts,
    Rename {
        of: u8,
        name: u8,
    },
}

impl Step {
    /// The same step with the numbers drawn turned into those of agents that are there, but for the highest number,
    /// which stays nobody's.
    pub fn among(self, count: usize) -> Self {
        let pick = |n: u8| if n == NOBODY { n } else { n % count.clamp(1, MOST_AGENTS) as u8 };
        let kind_of = |kind| match kind {
            Kind::Primary => kind,
            Kind::Companion(n) => Kind::Companion(pick(n)),
            Kind::SubAgent(n) => Kind::SubAgent(pick(n)),
        };
        match self {
            Self::Create { kind, by, name, prompted } => {
                Self::Create { kind: kind_of(kind), by: by.map(pick), name, prompted }
            }
            Self::Send { to, from } => Self::Send { to: pick(to), from: from.map(pick) },
            Self::SendAgain { to } => Self::SendAgain { to: pick(to) },
            Self::EditQueued { of, drop } => Self::EditQueued { of: pick(of), drop },
            Self::Work(n) => Self::Work(pick(n)),
            Self::EndTurn(n) => Self::EndTurn(pick(n)),
            Self::Ask { of, question } => Self::Ask { of: pick(of), question },
            Self::Answer { of, reply } => Self::Answer { of: pick(of), reply },
            Self::Interrupt(n) => Self::Interrupt(pick(n)),
            Self::Close { of, by } => Self::Close { of: pick(of), by: by.map(pick) },
            Self::Reopen(n) => Self::Reopen(pick(n)),
            Self::Fail(n) => Self::Fail(pick(n)),
            Self::Rest(n) => Self::Rest(pick(n)),
            Self::SettleTask(n) => Self::SettleTask(pick(n)),
            Self::Wait { of, on } => Self::Wait { of: pick(of), on: pick(on) },
            Self::EndWait(n) => Self::EndWait(pick(n)),
            Self::HandOut { of, seen } => Self::HandOut { of: pick(of), seen },
            Self::Steer { of, joins } => Self::Steer { of: pick(of), joins },
            Self::DaemonRestarts => Self::DaemonRestarts,
            Self::Rename { of, name } => Self::Rename { of: pick(of), name },
        }
    }
}

/// How often what matters happened.
#[derive(Default, Debug)]
pub struct Seen {
    pub cascades: u32,
    pub lone_companions: u32,
    pub deep_interrupts: u32,
    pub starting_interrupts: u32,
    pub refused: u32,
    pub limits: u32,
    pub woken: u32,
    pub answered: u32,
    pub queued: u32,
    pub handed_out: u32,
    pub uncertain: u32,
    pub joined: u32,
    pub returned: u32,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.cascades += other.cascades;
        self.lone_companions += other.lone_companions;
        self.deep_interrupts += other.deep_interrupts;
        self.starting_interrupts += other.starting_interrupts;
        self.refused += other.refused;
        self.limits += other.limits;
        self.woken += other.woken;
        self.answered += other.answered;
        self.queued += other.queued;
        self.handed_out += other.handed_out;
        self.uncertain += other.uncertain;
        self.joined += other.joined;
        self.returned += other.returned;
    }
}

pub struct World {
    pub first: State,
    pub state: State,
    pub log: Vec<Stamped>,
    pub settled: BTreeSet<AskId>,
    /// How often each sub-agent's result reached its parent.
    pub reached: BTreeMap<AgentId, u32>,
    pub seen: Seen,
    made: u128,
}

impl World {
    pub fn new() -> Self {
        let profile = Profile::new(ProfileId::new("p"), "p", DriverKind::Acp).summary(
            &RevisionKey::default(),
            Availability::Unknown,
            true,
        );
        let mut first = State { profiles: vec![profile], ..State::default() };
        first.limits.subagent_depth = 2;
        first.limits.subagents_per_parent = 2;
        first.limits.subagents_total = 4;
        first.limits.queued_prompts = 3;
        Self {
            state: first.clone(),
            first,
            log: vec![],
            settled: BTreeSet::new(),
            reached: BTreeMap::new(),
            seen: Seen::default(),
            made: 1000,
        }
    }

    /// The agent with this number, whether there is one or not.
    pub fn id(n: u8) -> AgentId {
        AgentId::new(Uuid::from_u128(u128::from(n) + 1))
    }

    pub fn actor(by: Option<u8>) -> Actor {
        by.map_or(Actor::Person, |n| Actor::Agent(Self::id(n)))
    }

    fn fresh(&mut self) -> Uuid {
        self.made += 1;
        Uuid::from_u128(self.made)
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.made as i64 * 60_000)
    }

    fn prompt(&mut self, from: Option<u8>) -> Prompt {
        let origin = from.map_or(PromptOrigin::Person, |n| PromptOrigin::Agent { agent: Self::id(n) });
        let id = PromptId::new(self.fresh());
        Prompt {
            id,
            origin,
            text: "do it".into(),
            attachments: vec![],
            steers: self.made.is_multiple_of(2),
            at: self.now(),
        }
    }

    /// Decides one step and applies what comes of it.
    pub fn run(&mut self, step: &Step) -> Result<Vec<Event>, Refusal> {
        let events = self.decide(step)?;
        let events = decide::consequences(&self.state, events, self.now());
        for event in &events {
            let stamped = Stamped { seq: self.state.seq + 1, at: self.now(), event: event.clone() };
            self.state.apply(&stamped);
            self.log.push(stamped);
        }
        Ok(events)
    }

    fn decide(&mut self, step: &Step) -> Result<Vec<Event>, Refusal> {
        let fresh = self.fresh();
        let at = self.now();
        match *step {
            Step::Create { kind, by, name, prompted } => {
                let request = self.request(kind, name, prompted);
                decide::create(&self.state, Self::actor(by), &request, at)
            }
            Step::Send { to, from } => {
                let prompt = self.prompt(from);
                decide::send(&self.state, Self::id(to), &prompt)
            }
            Step::SendAgain { to } => {
                let agent = self.state.agent(Self::id(to))?;
                let known = agent.queue.front().map(|prompt| prompt.id).or(agent.taken.back().copied());
                let prompt = self.prompt(None);
                decide::send(&self.state, Self::id(to), &Prompt { id: known.unwrap_or(prompt.id), ..prompt })
            }
            Step::EditQueued { of, drop } => {
                let agent = self.state.agent(Self::id(of))?;
                let prompt = agent.queue.back().map_or(PromptId::new(fresh), |prompt| prompt.id);
                decide::edit_queued(&self.state, agent.id, prompt, (!drop).then_some("something else"))
            }
            Step::Work(n) => {
                let agent = self.state.agent(Self::id(n))?;
                if agent.lifecycle == Lifecycle::Starting {
                    return self.signal(n, |_| true, Signal::Ready(session()));
                }
                match decide::deliverable(agent) {
                    Some(prompts) => {
                        Ok(of(agent, decide::start_turn(agent, TurnId::new(fresh), &prompts, at)))
                    }
                    None => self.decide(&Step::Send { to: n, from: None }),
                }
            }
            Step::EndTurn(n) => {
                self.signal(n, |agent| agent.turn.is_some(), Signal::TurnEnded(TurnOutcome::Completed))
            }
            Step::Ask { of, question } => {
                if self.state.agent(Self::id(of))?.turn.is_none() {
                    return self.decide(&Step::Work(of));
                }
                let body = if question { a_question() } else { an_approval() };
                let ask = Signal::Ask { key: fresh.to_string(), title: "may I".into(), body };
                self.signal(of, |agent| agent.turn.is_some(), ask)
            }
            Step::Answer { of, reply } => {
                let agent = self.state.agent(Self::id(of))?;
                if agent.asks.is_empty() && matches!(reply, Reply::Once) {
                    return self.decide(&Step::Ask { of, question: false });
                }
                let ask = agent.asks.first().map_or(AskId::new(fresh), |ask| ask.id);
                decide::answer(agent, ask, &reply.answer(), at, &mut || fresh, &|_| None)
            }
            Step::Interrupt(n) => {
                let target = self.state.agent(Self::id(n))?.id;
                decide::interrupt_team(&self.state, Actor::Person, target, PromptId::new(fresh), at)
            }
            Step::Close { of, by } => decide::close(&self.state, Self::actor(by), Self::id(of), at),
            Step::Reopen(n) => decide::reopen(&self.state, Self::id(n)),
            Step::Fail(n) => {
                let agent = self.state.agent(Self::id(n))?;
                let failed = decide::fail(agent, &[], failure(at), &self.state.limits, at, &mut || fresh);
                Ok(of(agent, failed))
            }
            Step::Rest(n) => {
                let agent = self.state.agent(Self::id(n))?;
                Ok(of(agent, decide::rest(agent, at)))
            }
            Step::SettleTask(n) => {
                let result = TaskResult::Yielded { text: "42".into(), file: None };
                decide::settle_task(&self.state, Self::id(n), result)
            }
            Step::Wait { of, on } => {
                let agent = self.state.agent(Self::id(of))?;
                if agent.turn.is_none() {
                    // A call belongs to a turn.
                    return self.decide(&Step::Work(of));
                }
                let mine = |child: &&Agent| child.relation.parent() == Some(agent.id);
                let child =
                    self.state.agents.values().filter(mine).find(|child| decide::has_open_task(child));
                let agent = child.map_or(Self::id(on), |child| child.id);
                let wait = Wait { id: WaitId::new(fresh), on: vec![Awaited::Agent { agent }] };
                decide::begin_wait(&self.state, Self::id(of), wait)
            }
            Step::EndWait(n) => {
                let wait = self.state.agent(Self::id(n))?.waits.first().map(|wait| wait.id);
                Ok(wait.map_or(vec![], |wait| decide::end_wait(&self.state, Self::id(n), wait)))
            }
            Step::Steer { of: n, joins } => {
                let at = self.now();
                let agent = self.state.agent(Self::id(n))?;
                let mut writer = Writer::new(agent, at);
                let given = agent.offered.first().map(ToString::to_string);
                match (joins, given) {
                    (Some(true), Some(key)) => {
                        writer.signal(Signal::Joined { key }, &[], &mut || Uuid::nil());
                    }
                    (Some(false), Some(key)) => {
                        writer.signal(Signal::NotJoined { key }, &[], &mut || Uuid::nil());
                    }
                    _ => {
                        let next = decide::steerable(agent).cloned();
                        next.iter().for_each(|prompt| writer.offer(prompt));
                    }
                }
                Ok(of(agent, writer.finish()))
            }
            Step::HandOut { of: n, seen } => {
                let agent = self.state.agent(Self::id(n))?;
                let Some(wait) = agent.waits.first() else {
                    return self.decide(&Step::Wait { of: n, on: 0 });
                };
                let awaited = self.state.agent(wait.on[0].agent())?;
                if decide::has_open_task(awaited) && seen {
                    let result = TaskResult::Yielded { text: "42".into(), file: None };
                    return decide::settle_task(&self.state, awaited.id, result);
                }
                let mut events = decide::hand_out(&self.state, agent.id, wait.id)?;
                if seen {
                    let receipts = wait.on.iter().map(|awaited| result_receipt(awaited.agent()));
                    let output = receipts.collect::<Vec<_>>().join(" ");
                    let call = ToolCall { status: ToolStatus::Completed, output, ..a_call() };
                    let mut writer = Writer::new(agent, at);
                    writer.signal(Signal::Tool { call, within: None }, &[], &mut || fresh);
                    events.extend(of(agent, writer.finish()));
                }
                Ok(events)
            }
            Step::DaemonRestarts => Ok(decide::reopen_calls(&self.state)),
            Step::Rename { of, name } => decide::rename(&self.state, Self::id(of), &name_of(name)),
        }
    }

    fn request(&mut self, kind: Kind, name: Option<u8>, prompted: bool) -> CreateAgent {
        // Once there are enough, the last one is asked for again.
        let number = self.state.agents.len().min(MOST_AGENTS - 1) as u8;
        let relation = match kind {
            Kind::Primary => Relation::Primary,
            Kind::Companion(n) => Relation::Companion { owner: Self::id(n) },
            Kind::SubAgent(n) => Relation::SubAgent { parent: Self::id(n), tool_call: None, result: None },
        };
        CreateAgent {
            id: Self::id(number),
            name: name.map(name_of),
            profile: ProfileId::new("p"),
            // Every other one can be steered.
            driver: if number.is_multiple_of(2) { DriverKind::Codex } else { DriverKind::Acp },
            cwd: "/somewhere".into(),
            relation,
            permissions: PermissionMode::Default,
            worktree: None,
            session: None,
            prompt: prompted.then(|| self.prompt(None)),
            brief: Default::default(),
        }
    }

    /// Lets an agent say something, if it is in a state to.
    fn signal(&mut self, n: u8, can: fn(&Agent) -> bool, signal: Signal) -> Result<Vec<Event>, Refusal> {
        let at = self.now();
        let fresh = self.fresh();
        let agent = self.state.agent(Self::id(n))?;
        if !can(agent) {
            return Ok(vec![]);
        }
        let mut writer = Writer::new(agent, at);
        writer.signal(signal, &[], &mut || fresh);
        Ok(of(agent, writer.finish()))
    }
}

impl Reply {
    fn answer(self) -> Answer {
        match self {
            Self::Once => Answer::allow(GrantScope::Once),
            Self::Session => Answer::allow(GrantScope::Session),
            Self::Always => Answer::allow(GrantScope::Always),
            Self::Text => Answer::Reply { value: "blue".into() },
            Self::Stop => Answer::Stop,
        }
    }
}

fn of(agent: &Agent, changes: Vec<AgentEvent>) -> Vec<Event> {
    changes.into_iter().map(|change| Event::of(agent.id, change)).collect()
}

fn name_of(n: u8) -> String {
    ["bee", "ant", "bee-2"][usize::from(n)].to_owned()
}

fn session() -> SessionInfo {
    SessionInfo { id: "s".into(), ..SessionInfo::default() }
}

fn failure(at: Timestamp) -> Failure {
    Failure {
        message: "it broke".into(),
        exit_code: None,
        signal: Some(9),
        stderr_tail: String::new(),
        at,
        parked: false,
    }
}

fn a_question() -> AskBody {
    AskBody::Question(Question { text: "which".into(), schema: serde_json::Value::Null, url: None })
}

fn an_approval() -> AskBody {
    AskBody::Approval { tool: a_call(), options: vec![] }
}

fn a_call() -> ToolCall {
    ToolCall::new(ToolCallId::new("t"), ToolKind::Execute, "ls")
}
