//! Prompts that join the turn that runs.
//!
//! Owns when the driver is given one. It stays in the queue until the agent's words say that it was taken in
//! ([`Signal::Joined`](consort_model::Signal)), or that it was not, and then it is delivered as any other.

use std::sync::Arc;

use consort_drivers::Output;
use consort_model::{State, Timestamp, decide};
use uuid::Uuid;

use super::{Ending, Process, changed, current, of, prompt_text};
use crate::shared::Decide;
use consort_model::transcript::Writer;

impl Process {
    /// Gives the running turn all that is to join it, one after the other.
    pub(super) async fn steer(&mut self) -> Result<(), Ending> {
        loop {
            let next = self.shared.store.with(|state| {
                let prompt = decide::steerable(current(state, self.id, self.generation)?)?.clone();
                let text = prompt_text(state, std::slice::from_ref(&prompt));
                Some((prompt, text))
            });
            let Some((prompt, text)) = next else { return Ok(()) };
            let mut driver = self.driver.clone();
            let Output { signals, frames, calls, .. } =
                driver.steer(&prompt.id.to_string(), &text, &prompt.attachments);
            let (id, generation) = (self.id, self.generation);
            let decide: Decide = Arc::new(move |state: &State, at: Timestamp| {
                let agent = current(state, id, generation).ok_or_else(changed)?;
                // It may have been edited, or the turn told to stop, since it was looked at.
                if decide::steerable(agent) != Some(&prompt) {
                    return Err(changed());
                }
                let mut writer = Writer::new(agent, at);
                writer.offer(&prompt);
                for signal in &signals {
                    writer.signal(signal.clone(), &[], &mut Uuid::now_v7);
                }
                Ok(of(id, writer.finish()))
            });
            // Refused: it changed meanwhile, so there is something else to look at.
            self.commit_patiently(decide, driver, frames, calls, None).await?;
        }
    }
}
