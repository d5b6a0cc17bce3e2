//! Calls that wait: bounded, with a sign of life now and then, and over when the agent's program hangs up.
//!
//! Programs give up on a tool that says nothing for a while (some after a minute), and the word that keeps them waiting
//! is a progress notification. So a tool waits a bounded time, tells progress meanwhile, and then says how the wait can be
//! gone on with. Timers run only while a call waits.

use std::future::Future;
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How often a waiting call tells that it still waits.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// The longest wait of one call. Within what every program allows even without progress; a wait can be continued.
pub const MAX_WAIT: Duration = Duration::from_secs(45);

/// What a call needs to wait.
#[derive(Clone)]
pub struct Waiting {
    pub peer: Peer<RoleServer>,
    pub token: Option<ProgressToken>,
    pub hung_up: CancellationToken,
}

/// How a wait ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waited<T> {
    /// What was waited for came.
    For(T),
    /// It did not come in time.
    InVain,
    /// The agent's program does not listen any more.
    HungUp,
}

impl Waiting {
    /// Waits for `what` at most `limit` (and never longer than [`MAX_WAIT`]); `telling` says what is waited for.
    pub async fn wait<T>(
        &self,
        limit: Duration,
        telling: impl Fn() -> String,
        what: impl Future<Output = T>,
    ) -> Waited<T> {
        let limit = limit.min(MAX_WAIT);
        let began = Instant::now();
        let mut ticks = tokio::time::interval_at(began + PROGRESS_EVERY, PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(what);
        loop {
            tokio::select! {
                biased;
                value = &mut what => return Waited::For(value),
                () = self.hung_up.cancelled() => return Waited::HungUp,
                () = tokio::time::sleep_until(began + limit) => return Waited::InVain,
                _ = ticks.tick() => self.tell(began.elapsed(), limit, telling()).await,
            }
        }
    }

    async fn tell(&self, waited: Duration, limit: Duration, message: String) {
        let Some(token) = self.token.clone() else { return };
        let progress = ProgressNotificationParam::new(token, waited.as_secs_f64().floor())
            .with_total(limit.as_secs_f64())
            .with_message(message);
        if let Err(error) = self.peer.notify_progress(progress).await {
            tracing::debug!(%error, "progress could not be told");
        }
    }
}
