//! The store through its public face, with real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod commit;
mod pages;
mod reload;

use std::path::Path;
use std::sync::{Arc, Mutex};

use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, DriverKind, Event, Item, ItemBody, ItemIndex, Lifecycle, Limits, PermissionMode,
    ProfileId, Relation, Stamped, State, Timestamp, Usage,
};
use uuid::Uuid;

use crate::{Change, CommitError, Committed, Link, Opened, Store};

/// A store in a folder of its own that remembers what its listener was told.
pub struct Fixture {
    pub store: Store,
    pub links: Vec<Link>,
    pub told: Arc<Mutex<Vec<Arc<Stamped>>>>,
}

impl Fixture {
    pub fn open(dir: &Path) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener_told = Arc::clone(&told);
        let listener = move |events: &[Arc<Stamped>], state: &State| {
            assert_eq!(state.seq, events.last().unwrap().seq, "the state is the one the events led to");
            listener_told.lock().unwrap().extend(events.iter().cloned());
        };
        let opened = Store::open(dir, vec![], Limits::default(), Box::new(listener));
        let Opened { store, links } = opened.unwrap();
        Self { store, links, told }
    }

    pub fn told(&self) -> Vec<Arc<Stamped>> {
        self.told.lock().unwrap().clone()
    }

    pub fn state(&self) -> State {
        self.store.with(State::clone)
    }

    pub async fn commit(&self, events: Vec<Event>) -> Result<Committed, CommitError> {
        self.store.commit(Change::new(move |_, _| Ok(events))).await
    }
}

pub fn agent_id(n: u128) -> AgentId {
    AgentId::new(Uuid::from_u128(n))
}

pub fn agent(n: u128) -> Agent {
    Agent {
        id: agent_id(n),
        name: format!("agent-{n}"),
        profile: ProfileId::new("p"),
        driver: DriverKind::Acp,
        cwd: "/work".into(),
        created_by: None,
        relation: Relation::Primary,
        brief: Default::default(),
        task: Default::default(),
        created_at: Timestamp(1),
        lifecycle: Lifecycle::Starting,
        generation: 0,
        profile_revision: None,
        crashes: vec![],
        permissions: PermissionMode::Default,
        turn: None,
        last_outcome: None,
        ended_at: None,
        queue: Default::default(),
        taken: Default::default(),
        offered: vec![],
        shown: Default::default(),
        letters: Default::default(),
        inquiries: vec![],
        waits: vec![],
        asks: vec![],
        settled: Default::default(),
        session: None,
        fork: None,
        worktrees: vec![],
        options: vec![],
        commands: vec![],
        plan: vec![],
        usage: Usage::default(),
        title: None,
        note: None,
        team_tools: Default::default(),
        cursor: Default::default(),
    }
}

pub fn created(n: u128) -> Event {
    Event::of(agent_id(n), AgentEvent::Created { record: Box::new(agent(n)) })
}

pub fn renamed(n: u128, name: &str) -> Event {
    Event::of(agent_id(n), AgentEvent::Renamed { name: name.into() })
}

pub fn text_item(n: u128, index: u64, text: &str, done: bool) -> Event {
    let body = ItemBody::Text { text: text.into() };
    let item = Item { index: ItemIndex(index), turn: None, at: Timestamp(7), done, within: None, body };
    Event::of(agent_id(n), AgentEvent::ItemAdded { item })
}

pub fn appended(n: u128, index: u64, offset: u64, text: &str) -> Event {
    Event::of(agent_id(n), AgentEvent::TextAppended { index: ItemIndex(index), offset, text: text.into() })
}

pub fn text_done(n: u128, index: u64) -> Event {
    Event::of(agent_id(n), AgentEvent::TextDone { index: ItemIndex(index) })
}

pub fn text_of(item: &Item) -> &str {
    match &item.body {
        ItemBody::Text { text } | ItemBody::Thinking { text } => text,
        other => panic!("{other:?} is no text"),
    }
}
