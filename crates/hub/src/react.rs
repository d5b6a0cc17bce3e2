//! What events ask for, whoever caused them: prompts are delivered, processes are started.
//!
//! A task may queue a prompt for another agent (a sub-agent that failed wakes its parent), so this follows the feed rather
//! than the command that was given. Everything here may be done twice without harm.

use std::sync::{Arc, Weak};

use consort_model::event::AgentEvent;
use consort_model::relation::TaskResult;
use consort_model::{Actor, AgentId, Event};

use crate::feed::{Delivery, Subscription};
use crate::hub::Hub;

/// What an event asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reaction {
    Start {
        generation: u32,
    },
    Deliver,
    /// It was stopped at a limit: its turn and its sub-agents' end.
    Stop,
}

/// Follows the feed for as long as the hub is there.
pub async fn follow(hub: Weak<Hub>, mut feed: Subscription) {
    loop {
        let delivery = feed.next().await;
        let Some(hub) = hub.upgrade() else { return };
        match delivery {
            Delivery::Events(events) => {
                if events.iter().any(|event| ends_waits(&event.stamped.event)) {
                    hub.teamwork.look_again();
                }
                let asked = events.iter().filter_map(|event| reaction(&event.stamped.event));
                asked.for_each(|(agent, reaction)| react(&hub, agent, reaction));
            }
            Delivery::Lagged => {
                catch_up(&hub);
                hub.teamwork.look_again();
            }
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
        AgentEvent::PromptQueued { .. } | AgentEvent::PromptSteered { .. } => Reaction::Deliver,
        AgentEvent::TaskSettled { result: TaskResult::Stopped { .. } } => Reaction::Stop,
        _ => return None,
    };
    Some((*agent, reaction))
}

/// Whether something that agents wait for may be there now.
fn ends_waits(event: &Event) -> bool {
    let Event::Agent { change, .. } = event else { return false };
    matches!(
        change,
        AgentEvent::TaskSettled { .. }
            | AgentEvent::Answered { .. }
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::Asked { .. }
            | AgentEvent::Settled { .. }
            | AgentEvent::WaitEnded { .. }
            | AgentEvent::Ready { .. }
            | AgentEvent::Rested
            | AgentEvent::Failed { .. }
            | AgentEvent::Closed
    )
}

fn react(hub: &Arc<Hub>, agent: AgentId, reaction: Reaction) {
    match reaction {
        Reaction::Start { generation } => hub.start_task(agent, generation),
        Reaction::Deliver => hub.deliver(agent),
        Reaction::Stop => {
            let hub = Arc::clone(hub);
            tokio::spawn(async move {
                if let Err(error) = hub.interrupt(Actor::Person, agent).await {
                    tracing::debug!(%agent, %error, "what was stopped at a limit needs no interrupt");
                }
            });
        }
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
