//! What the hub and the tasks of its agents share.

use std::path::PathBuf;
use std::sync::Arc;

use consort_drivers::McpServer;
use consort_model::{AgentId, Event, Refusal, State, Timestamp, decide};
use consort_store::{Change, CommitError, Committed, Store};

use crate::profiles::Profiles;
use crate::results;
use crate::team::{TOKEN_SETTING, Team};
use crate::worktree::Worktrees;

/// Marks every process that belongs to one process of an agent, so that it is found again whatever became of its parents.
pub const PROCESS_MARK: &str = "CONSORT_PROCESS";

/// Tells an agent's processes which agent they belong to.
pub const AGENT_MARK: &str = "CONSORT_AGENT_ID";

/// A decision that can be made again if the store could not keep it the first time.
pub type Decide = Arc<dyn Fn(&State, Timestamp) -> Result<Vec<Event>, Refusal> + Send + Sync>;

/// A decision with all that follows from it. Every change of the hub goes through this.
pub fn whole(
    state: &State,
    at: Timestamp,
    decide: impl FnOnce(&State, Timestamp) -> Result<Vec<Event>, Refusal>,
) -> Result<Vec<Event>, Refusal> {
    Ok(decide::consequences(state, decide(state, at)?, at))
}

/// What the hub and its agents' tasks share.
pub struct Shared {
    pub store: Store,
    pub profiles: Profiles,
    /// The `consort` program, which is also the runner.
    pub program: PathBuf,
    /// One folder per runner.
    pub runners: PathBuf,
    /// Where long results are.
    pub results: PathBuf,
    /// What is kept for worktrees.
    pub worktrees: Worktrees,
    /// What agents' processes inherit before their profile changes it.
    pub environment: Vec<(String, String)>,
    /// How agents reach their tools.
    pub team: Team,
}

impl Shared {
    /// Commits a decision.
    pub async fn commit(
        &self,
        decide: impl FnOnce(&State, Timestamp) -> Result<Vec<Event>, Refusal> + Send + 'static,
    ) -> Result<Committed, CommitError> {
        self.store.commit(Change::new(move |state, at| whole(state, at, decide))).await
    }

    /// What a new process of an agent is given to reach its tools. The token is kept before it is told.
    pub async fn admit(&self, agent: AgentId) -> Result<Vec<McpServer>, CommitError> {
        let Some((token, server)) = self.team.admit(agent, &self.program) else { return Ok(vec![]) };
        let key = format!("{TOKEN_SETTING}{agent}");
        self.store.set_setting(&key, Some(token.reveal().to_owned())).await?;
        Ok(vec![server])
    }

    /// Ends the tokens of agents that were closed.
    pub async fn dismiss(&self, closed: Vec<AgentId>) {
        for agent in closed.into_iter().filter(|agent| self.team.dismiss(*agent)) {
            // A token that stays in the database is of no use: its agent is closed, and gets another when it is reopened.
            if let Err(error) = self.store.set_setting(&format!("{TOKEN_SETTING}{agent}"), None).await {
                tracing::warn!(%error, %agent, "the token of a closed agent was not removed");
            }
        }
    }

    /// Keeps a result of an agent, a long one in a file.
    pub async fn keep_result(&self, agent: AgentId, text: String) -> std::io::Result<results::Kept> {
        let folder = self.results.clone();
        let kept = tokio::task::spawn_blocking(move || results::keep(&folder, agent, text)).await;
        kept.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// The folder of the runner of an agent's process.
    pub fn runner_dir(&self, agent: AgentId, generation: u32) -> PathBuf {
        let id = agent.uuid().simple().to_string();
        self.runners.join(format!("{}-{generation}", &id[id.len() - 12..]))
    }

    /// The value of [`PROCESS_MARK`] for an agent's process.
    pub fn process_mark(agent: AgentId, generation: u32) -> String {
        format!("{agent}.{generation}")
    }
}
