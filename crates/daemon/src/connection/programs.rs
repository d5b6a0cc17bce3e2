//! Calls for which programs are run, which takes seconds: they are answered beside the others, when their programs have
//! told, so that nobody's approval waits for them.

use std::sync::Arc;

use consort_hub::Hub;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{answer_line, error_body, profile_check, value};
use crate::protocol::{Call, ErrorBody, SessionView, codes};
use crate::server::Daemon;

/// The most calls of one client that are answered beside the others; the next ones hold it up.
const MAX_BESIDE: usize = 16;

/// What a client waits for; given up when it leaves.
#[derive(Default)]
pub(super) struct Beside(JoinSet<()>);

impl Beside {
    /// Whether a call is to be answered later.
    pub fn takes(&mut self, call: &Call) -> bool {
        while self.0.try_join_next().is_some() {}
        matches!(call, Call::ListSessions { .. } | Call::CheckProfiles { .. }) && self.0.len() < MAX_BESIDE
    }

    /// Answers a call when its programs have told.
    pub fn answer(
        &mut self,
        daemon: Arc<Daemon>,
        writer: Arc<Mutex<OwnedWriteHalf>>,
        id: Option<&RawValue>,
        call: Call,
    ) {
        let id = id.map(ToOwned::to_owned);
        self.0.spawn(async move {
            let line = answer_line(id.as_deref(), &answer(&daemon.hub, call).await);
            // A client that left is not told.
            drop(writer.lock().await.write_all(&line).await);
        });
    }
}

/// Runs the programs that a call is about.
pub(super) async fn answer(hub: &Hub, call: Call) -> Result<Value, ErrorBody> {
    match call {
        Call::ListSessions { profile, cwd } => {
            let (profile, found) = hub.sessions(profile.as_deref(), &cwd).await.map_err(error_body)?;
            value(&hub.with(|state| SessionView::list(state, &profile, found)))
        }
        Call::CheckProfiles { profile } => {
            hub.profiles().await.map_err(error_body)?;
            if let Some(problem) = hub.config_problem() {
                return Err(ErrorBody::new(codes::CONFIG, problem));
            }
            let checked = hub.check_profiles(profile.as_deref()).await.map_err(error_body)?;
            value(&checked.into_iter().map(profile_check).collect::<Vec<_>>())
        }
        _ => Err(ErrorBody::new(codes::INVALID_REQUEST, "no program is run for this call")),
    }
}
