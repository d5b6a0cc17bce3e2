//! Turns that stall: nothing is heard of them for long, and their processes do nothing.

use std::sync::Arc;
use std::time::Duration;

use consort_model::event::AgentEvent;
use consort_model::{Agent, State};
use tokio::time::Instant;

use super::{Ending, Process, current, of};
use crate::life;
use crate::shared::Decide;

impl Process {
    /// A sign of life came: a stalled turn goes on.
    pub(super) async fn alive(&mut self) -> Result<(), Ending> {
        self.alive_at = Instant::now();
        let stalled = |agent: &Agent| agent.turn.as_ref().is_some_and(|turn| turn.stalled);
        if self.shared.store.with(|state| current(state, self.id, self.generation).is_some_and(stalled)) {
            self.set_stalled(false).await?;
        }
        Ok(())
    }

    /// When a silent turn is to be looked at; none while nothing is expected of the agent.
    pub(super) fn stall_deadline(&self) -> Option<Instant> {
        let after = self.shared.store.with(|state| {
            let agent = current(state, self.id, self.generation)?;
            let waiting = agent.asks.is_empty() && agent.turn.as_ref().is_some_and(|turn| !turn.stalled);
            waiting.then_some(state.limits.stalled_after_ms)
        })?;
        Some(self.alive_at + Duration::from_millis(after))
    }

    /// Silent for long: stalled, unless its processes were busy meanwhile.
    pub(super) async fn check_stall(&mut self) -> Result<(), Ending> {
        let used = match self.child {
            Some(child) => {
                tokio::task::spawn_blocking(move || life::processor_time(child)).await.unwrap_or(0)
            }
            None => 0,
        };
        // A process that only waits still wakes up now and then; a tick more or less is no work.
        let busy = used > self.processor_time + 1;
        self.processor_time = used;
        self.alive_at = Instant::now();
        if busy { Ok(()) } else { self.set_stalled(true).await }
    }

    async fn set_stalled(&mut self, stalled: bool) -> Result<(), Ending> {
        let (id, generation) = (self.id, self.generation);
        let decide: Decide = Arc::new(move |state: &State, _| {
            let turn = current(state, id, generation).and_then(|agent| agent.turn.as_ref());
            let differs = turn.is_some_and(|turn| turn.stalled != stalled);
            Ok(if differs { of(id, vec![AgentEvent::TurnStalled { stalled }]) } else { vec![] })
        });
        self.commit_patiently(decide, self.driver.clone(), vec![], vec![], None).await?;
        Ok(())
    }
}
