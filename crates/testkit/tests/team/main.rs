//! Teams through a real daemon and the tools that agents are given: real CLIs against the scripted model, and scripted
//! agents where the daemon is killed in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clis;
mod kills;

use consort_model::relation::TaskResult;
use consort_model::{Agent, AgentId, ItemBody};
use consort_testkit::harness::Client;

/// The sub-agents of an agent that are there by now.
fn children(client: &Client, parent: AgentId) -> Vec<Agent> {
    client.look(|followed| {
        let agents = followed.state.agents.values();
        agents.filter(|agent| agent.relation.parent() == Some(parent)).cloned().collect()
    })
}

/// Waits until an agent has so many sub-agents with results.
fn wait_results(client: &Client, parent: AgentId, count: usize) -> Vec<(AgentId, TaskResult)> {
    client.wait_until("its sub-agents are done", |state| {
        let mine = state.agents.values().filter(|agent| agent.relation.parent() == Some(parent));
        let done: Vec<_> =
            mine.filter_map(|agent| Some((agent.id, agent.relation.result()?.clone()))).collect();
        (done.len() == count).then_some(done)
    })
}

/// How often a word stands in what an agent was told: by prompts and by answers to its calls.
fn times_told(client: &Client, agent: AgentId, word: &str) -> usize {
    let told = |body: &ItemBody| match body {
        ItemBody::User { text, .. } => text.matches(word).count(),
        ItemBody::Tool(call) => call.output.matches(word).count(),
        _ => 0,
    };
    client.items(agent).iter().map(|item| told(&item.body)).sum()
}
