//! Agents, items and asks for tests, with as little said as possible.

use consort_model::{Agent, AgentId, Item, ItemBody, ItemIndex, Relation, State, Timestamp};
use serde_json::json;
use uuid::Uuid;

/// The id of agent `n`.
pub fn agent_id(n: u128) -> AgentId {
    AgentId::new(Uuid::from_u128(n))
}

/// An idle agent.
pub fn agent(n: u128) -> Agent {
    // Read from JSON, so that a field that may be missing in stored agents may be missing here too.
    let record = json!({
        "id": agent_id(n),
        "name": format!("agent-{n}"),
        "profile": "scripted",
        "driver": "acp",
        "cwd": "/w",
        "created_by": null,
        "relation": "primary",
        "created_at": 0,
        "lifecycle": { "state": "ready" },
        "generation": 1,
        "permissions": "default",
        "turn": null,
        "last_outcome": null,
        "queue": [],
        "asks": [],
        "session": null,
        "options": [],
        "commands": [],
        "plan": [],
        "usage": {},
        "title": null,
        "cursor": { "items": 0 },
    });
    serde_json::from_value(record).unwrap()
}

/// A companion of agent `owner`.
pub fn companion(n: u128, owner: u128) -> Agent {
    Agent {
        relation: Relation::Companion { owner: agent_id(owner) },
        created_by: Some(agent_id(owner)),
        ..agent(n)
    }
}

/// A sub-agent of agent `parent`.
pub fn sub_agent(n: u128, parent: u128) -> Agent {
    let relation = Relation::SubAgent { parent: agent_id(parent), tool_call: None, result: None };
    Agent { relation, created_by: Some(agent_id(parent)), ..agent(n) }
}

/// A state with these agents.
pub fn state_of(agents: Vec<Agent>) -> State {
    State { agents: agents.into_iter().map(|agent| (agent.id, agent)).collect(), ..State::default() }
}

/// An item that is done.
pub fn item(index: u64, body: ItemBody) -> Item {
    Item { index: ItemIndex(index), turn: None, at: Timestamp(0), done: true, within: None, body }
}

/// Something said.
pub fn said(index: u64, text: &str) -> Item {
    item(index, ItemBody::Text { text: text.to_owned() })
}
