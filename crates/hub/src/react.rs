//! What events ask for, whoever caused them: prompts are delivered, processes are started.
//!
//! A task may queue a prompt for another agent (a sub-agent that failed wakes its parent), so this follows the feed rather
//! than the command that was given. Everything here may be done twice without harm.

use std::sync::{Arc, Weak};

use consort_model::event::AgentEvent;
use consort_model::{AgentId, Event};

use crate::feed::{Delivery, Subscription};
use crate::hub::Hub;

/// What an event asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reaction {
    Start { generation: u32 },
    Deliver,
}

/// Follows the feed for as long as the hub is there.
pub async fn follow(hub: Weak<Hub>, mut feed: Subscription) {
    loop {
        let delivery = feed.next().await;
        let Some(hub) = hub.upgrade() else { return };
        match delivery {
            Delivery::Events(events) => {
                let asked = events.iter().filter_map(|event| reaction(&event.stamped.event));
                asked.for_each(|(agent, reaction)| react(&hub, agent, reaction));
            }
            Delivery::Lagged => catch_up(&hub),
        }
    }
}

fn reaction(event: &Event) -> Option<(AgentId, Reaction)> {
    let Event::Agent { agent, change } = event else { return None };
    let reaction = match change {
        AgentEvent::Created { record } if record.wants_process() => {
            Reaction::Start { generation: record.generation }
        }
        AgentEvent::Starting { generation, .. } => Reaction::Start { generation: *generation },
        AgentEvent::PromptQueued { .. } => Reaction::Deliver,
        _ => return None,
    };
    Some((*agent, reaction))
}

fn react(hub: &Hub, agent: AgentId, reaction: Reaction) {
    match reaction {
        Reaction::Start { generation } => hub.start_task(agent, generation),
        Reaction::Deliver => hub.deliver(agent),
    }
}

/// The feed went too fast: what is to be done follows from the state as well.
fn catch_up(hub: &Hub) {
    let wanted: Vec<(AgentId, u32)> = hub.with(|state| {
        let agents = state.agents.values().filter(|agent| agent.wants_process());
        agents.map(|agent| (agent.id, agent.generation)).collect()
    });
    for (agent, generation) in wanted {
        hub.start_task(agent, generation);
        hub.deliver(agent);
    }
}

/// Starts following.
pub fn start(hub: &Arc<Hub>) {
    tokio::spawn(follow(Arc::downgrade(hub), hub.subscribe()));
}
