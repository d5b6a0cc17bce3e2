//! Agents without processes and items for them, written through the store.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, DriverKind, Event, Item, ItemBody, ItemIndex, Lifecycle, Limits, PermissionMode,
    ProfileId, Relation, Stamped, State, Timestamp, Usage,
};
use consort_store::{Change, Store};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// Opens a store whose listener is told the size of each commit.
pub fn open(folder: &Path, committed: impl Fn(usize) + Send + 'static) -> anyhow::Result<Store> {
    let listener = move |events: &[Arc<Stamped>], _: &State| committed(events.len());
    Ok(Store::open(folder, vec![], Limits::default(), Box::new(listener))?.store)
}

/// A runtime like the daemon's.
pub fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("no runtime")
}

/// A closed agent, for which no process is started.
pub fn agent(name: &str) -> Agent {
    Agent {
        id: AgentId::new(Uuid::now_v7()),
        name: name.to_owned(),
        profile: ProfileId::new("scripted"),
        driver: DriverKind::Acp,
        cwd: "/".to_owned(),
        created_by: None,
        relation: Relation::Primary,
        brief: Default::default(),
        task: Default::default(),
        created_at: Timestamp(1),
        lifecycle: Lifecycle::Closed { at: Timestamp(2) },
        generation: 1,
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

/// Creates an agent.
pub async fn create(store: &Store, name: &str) -> anyhow::Result<AgentId> {
    let agent = agent(name);
    let id = agent.id;
    let created = Event::of(id, AgentEvent::Created { record: Box::new(agent) });
    store.commit(Change::new(move |_, _| Ok(vec![created]))).await?;
    Ok(id)
}

/// An item as long as a short paragraph.
pub fn item(index: u64) -> Item {
    let text = format!("{index}: {}", "what an agent says in a paragraph. ".repeat(8));
    Item {
        index: ItemIndex(index),
        turn: None,
        at: Timestamp(1_700_000_000_000),
        done: true,
        within: None,
        body: ItemBody::Text { text },
    }
}

pub fn added(agent: AgentId, item: Item) -> Event {
    Event::of(agent, AgentEvent::ItemAdded { item })
}
