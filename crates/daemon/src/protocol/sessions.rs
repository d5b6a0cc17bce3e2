//! Sessions as clients see them.

use consort_model::{Agent, KeptSession, Profile, ProfileId, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session that the program of a profile keeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// The session.
    #[serde(flatten)]
    pub session: KeptSession,
    /// The profile whose program keeps it.
    pub profile: ProfileId,
    /// The name of the agent that has it, closed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl SessionView {
    /// The sessions of a profile, each with the agent that has it; an open one before closed ones.
    pub fn list(state: &State, profile: &Profile, found: Vec<KeptSession>) -> Vec<Self> {
        let agent_of = |id: &str| {
            let has = |agent: &&Agent| {
                let own = agent.session.as_ref().is_some_and(|session| session.id == id);
                own && agent.driver == profile.driver
            };
            let having = state.agents.values().filter(has);
            having.min_by_key(|agent| agent.is_closed()).map(|agent| agent.name.clone())
        };
        let view = |session: KeptSession| {
            let agent = agent_of(&session.id);
            Self { session, profile: profile.id.clone(), agent }
        };
        found.into_iter().map(view).collect()
    }
}
