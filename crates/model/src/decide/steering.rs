//! Steering: what a running turn is given beside the prompt that began it.
//!
//! Owns which waiting prompts a turn may be given. A prompt that is given stays in the queue until the agent says that
//! it took it in, so nothing is lost where the turn ends before that: it then waits for its own turn.

use crate::agent::{Agent, Lifecycle, Prompt, Turn};
use crate::event::{AgentEvent, Event};
use crate::ids::PromptId;

/// The next prompt that the running turn is to be given.
pub fn steerable(agent: &Agent) -> Option<&Prompt> {
    // What it was shown in the answer to a call it has seen, or will be told once that call turns out not to have arrived.
    let free = |prompt: &&Prompt| {
        prompt.steers && !agent.offered.contains(&prompt.id) && !agent.shown.contains_key(&prompt.id)
    };
    if takes_more(agent) { agent.queue.iter().find(free) } else { None }
}

/// Whether a prompt was given to the running turn, or is about to be.
pub fn joins(agent: &Agent, prompt: PromptId) -> bool {
    agent.offered.contains(&prompt)
        || takes_more(agent) && agent.queued(prompt).is_some_and(|prompt| prompt.steers)
}

/// What follows where a prompt that was accepted is sent again: one that waits for a turn of its own can be made to join
/// the running one.
pub(super) fn change_mind(agent: &Agent, prompt: &Prompt) -> Vec<Event> {
    let waits = agent.queued(prompt.id).is_some_and(|waiting| !waiting.steers);
    let joins = waits && prompt.steers && takes_more(agent) && !agent.offered.contains(&prompt.id);
    joins.then(|| Event::of(agent.id, AgentEvent::PromptSteered { prompt: prompt.id })).into_iter().collect()
}

/// Whether the running turn, if there is one, takes more: one that is being stopped does not.
fn takes_more(agent: &Agent) -> bool {
    let goes_on = |turn: &Turn| !turn.interrupted && !turn.yielded;
    agent.driver.can_steer()
        && agent.lifecycle == Lifecycle::Ready
        && agent.turn.as_ref().is_some_and(goes_on)
}
