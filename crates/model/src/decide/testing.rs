//! Small makers for the tests of this crate.

use uuid::Uuid;

use super::{close, consequences, create, deliverable, fail, rest, send, start_turn};
use crate::agent::{Agent, Failure, Lifecycle, Prompt, PromptOrigin, TurnOutcome};
use crate::ask::{Ask, AskBody};
use crate::command::{Actor, CreateAgent, Refusal};
use crate::event::{AgentEvent, Event, Stamped};
use crate::ids::{AgentId, ProfileId, PromptId, Timestamp, ToolCallId, TurnId};
use crate::item::{ToolCall, ToolKind};
use crate::policy::PermissionMode;
use crate::profile::{Availability, DriverKind, Profile, ProfileSummary, RevisionKey};
use crate::relation::Relation;
use crate::session::SessionInfo;
use crate::signal::Signal;
use crate::state::State;
use crate::transcript::Writer;

pub fn uuid(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

pub fn tool(kind: ToolKind, title: &str) -> ToolCall {
    ToolCall::new(ToolCallId::new("t1"), kind, title)
}

pub fn request(n: u128, relation: Relation) -> CreateAgent {
    CreateAgent {
        id: AgentId::new(uuid(n)),
        name: None,
        profile: ProfileId::new("p"),
        driver: DriverKind::Acp,
        cwd: "/work".into(),
        relation,
        permissions: PermissionMode::Default,
        worktree: None,
        session: None,
        prompt: None,
        brief: Default::default(),
    }
}

pub fn state() -> State {
    State { profiles: vec![profile("p", DriverKind::Acp, "agent")], ..State::default() }
}

/// What is seen of a profile that runs a command.
pub fn profile(id: &str, driver: DriverKind, command: &str) -> ProfileSummary {
    let mut profile = Profile::new(ProfileId::new(id), id, driver);
    profile.command = Some(command.to_owned());
    profile.summary(&RevisionKey::default(), Availability::Unknown, id == "p")
}

pub fn apply(state: &mut State, events: Vec<Event>) {
    for event in events {
        state.apply(&Stamped { seq: state.seq + 1, at: Timestamp(state.seq as i64), event });
    }
}

pub fn agent(n: u128) -> Agent {
    let mut state = state();
    let events = create(&state, Actor::Person, &request(n, Relation::Primary), Timestamp(0)).unwrap();
    apply(&mut state, events);
    let mut agent = state.agents.into_values().next().unwrap();
    agent.lifecycle = Lifecycle::Ready;
    agent
}

pub fn id(n: u128) -> AgentId {
    AgentId::new(uuid(n))
}

pub fn companion_of(owner: AgentId) -> Relation {
    Relation::Companion { owner }
}

pub fn sub_agent_of(parent: AgentId) -> Relation {
    Relation::SubAgent { parent, tool_call: None, result: None }
}

pub fn prompt(n: u128, text: &str) -> Prompt {
    let origin = PromptOrigin::Person;
    Prompt {
        id: PromptId::new(uuid(n)),
        origin,
        text: text.into(),
        attachments: vec![],
        steers: false,
        at: Timestamp(0),
    }
}

pub fn message(n: u128, from: AgentId) -> Prompt {
    Prompt { origin: PromptOrigin::Agent { agent: from }, ..prompt(n, "a message") }
}

pub fn failure(message: &str) -> Failure {
    Failure {
        message: message.into(),
        exit_code: Some(1),
        signal: None,
        stderr_tail: String::new(),
        at: Timestamp(0),
        parked: false,
    }
}

/// A state with what the tests do to it, one line each.
pub struct Team {
    pub state: State,
}

impl Team {
    pub fn new() -> Self {
        Self { state: state() }
    }

    /// Room for three levels of sub-agents.
    pub fn deep() -> Self {
        let mut team = Self::new();
        team.state.limits.subagent_depth = 3;
        team
    }

    /// Applies events with all that follows from them.
    pub fn apply(&mut self, events: Vec<Event>) {
        let events = consequences(&self.state, events, Timestamp(self.state.seq as i64));
        apply(&mut self.state, events);
    }

    /// The events of a decision with all that follows from them, not applied.
    pub fn whole(&self, events: Vec<Event>) -> Vec<Event> {
        consequences(&self.state, events, Timestamp(self.state.seq as i64))
    }

    pub fn create(&mut self, actor: Actor, request: &CreateAgent) -> Result<AgentId, Refusal> {
        let events = create(&self.state, actor, request, Timestamp(0))?;
        self.apply(events);
        Ok(request.id)
    }

    pub fn primary(&mut self, n: u128) -> AgentId {
        self.create(Actor::Person, &request(n, Relation::Primary)).unwrap()
    }

    pub fn companion(&mut self, n: u128, owner: AgentId) -> AgentId {
        self.create(Actor::Agent(owner), &request(n, companion_of(owner))).unwrap()
    }

    pub fn sub_agent(&mut self, n: u128, parent: AgentId) -> AgentId {
        self.create(Actor::Agent(parent), &request(n, sub_agent_of(parent))).unwrap()
    }

    pub fn named(&mut self, n: u128, name: &str) -> AgentId {
        let request = CreateAgent { name: Some(name.into()), ..request(n, Relation::Primary) };
        self.create(Actor::Person, &request).unwrap()
    }

    pub fn agent(&self, id: AgentId) -> &Agent {
        &self.state.agents[&id]
    }

    pub fn change(&mut self, id: AgentId, changes: Vec<AgentEvent>) {
        self.apply(changes.into_iter().map(|change| Event::of(id, change)).collect());
    }

    pub fn ready(&mut self, id: AgentId) {
        self.change(id, vec![AgentEvent::Ready { session: SessionInfo::default() }]);
    }

    pub fn send(&mut self, id: AgentId, prompt: &Prompt) -> Result<(), Refusal> {
        let events = send(&self.state, id, prompt)?;
        self.apply(events);
        Ok(())
    }

    /// Brings an agent into a turn.
    pub fn working(&mut self, id: AgentId) {
        self.ready(id);
        self.send(id, &prompt(id.uuid().as_u128() + 1000, "work")).unwrap();
        self.begin_turn(id);
    }

    /// Begins a turn with what waits.
    pub fn begin_turn(&mut self, id: AgentId) {
        let prompts = deliverable(self.agent(id)).unwrap();
        let turn = TurnId::new(uuid(id.uuid().as_u128() + 2000 + u128::from(self.state.seq)));
        self.change(id, start_turn(self.agent(id), turn, &prompts, Timestamp(0)));
    }

    /// Lets an agent ask; the ask gets the id `n`.
    pub fn ask(&mut self, id: AgentId, n: u128, body: AskBody) -> Ask {
        let mut writer = Writer::new(self.agent(id), Timestamp(n as i64));
        let signal = Signal::Ask { key: format!("key {n}"), title: format!("ask {n}"), body };
        writer.signal(signal, &[], &mut || uuid(n));
        self.change(id, writer.finish());
        self.agent(id).asks.last().unwrap().clone()
    }

    pub fn end_turn(&mut self, id: AgentId) {
        self.end_turn_with(id, TurnOutcome::Completed);
    }

    pub fn end_turn_with(&mut self, id: AgentId, outcome: TurnOutcome) {
        let mut writer = Writer::new(self.agent(id), Timestamp(0));
        writer.signal(Signal::TurnEnded(outcome), &[], &mut || uuid(0));
        self.change(id, writer.finish());
    }

    pub fn close(&mut self, id: AgentId) {
        let events = close(&self.state, Actor::Person, id, Timestamp(9)).unwrap();
        self.apply(events);
    }

    pub fn rest(&mut self, id: AgentId) {
        self.change(id, rest(self.agent(id), Timestamp(0)));
    }

    /// Lets an agent's process crash at a time.
    pub fn fail(&mut self, id: AgentId, at: i64) {
        let at = Timestamp(at);
        let changes = fail(self.agent(id), &[], failure("it broke"), &self.state.limits, at, &mut || uuid(0));
        let events = changes.into_iter().map(|change| Event::of(id, change)).collect();
        for event in consequences(&self.state, events, at) {
            self.state.apply(&Stamped { seq: self.state.seq + 1, at, event });
        }
    }
}
