//! What agents ask of the hub through their tools, beyond what people ask of it too.
//!
//! Who asks is settled by [`Hub::holder`]; nothing here takes an agent's word for it.

use consort_model::{Actor, AgentId, TeamTools, decide};

use crate::error::HubError;
use crate::hub::Hub;

impl Hub {
    /// The agent whose token this is, unless it is closed.
    pub fn holder(&self, token: &str) -> Option<AgentId> {
        let agent = self.shared.team.holder(token)?;
        self.with(|state| state.agents.get(&agent).is_some_and(|agent| !agent.is_closed())).then_some(agent)
    }

    /// Takes note that an agent's process came for its tools.
    pub async fn connect_tools(&self, agent: AgentId) -> Result<(), HubError> {
        let known = |agent: &consort_model::Agent| agent.team_tools == TeamTools::Connected;
        if self.with(|state| state.agents.get(&agent).is_none_or(known)) {
            return Ok(());
        }
        self.run(move |state, _| decide::connect_tools(state, agent)).await.map(drop)
    }

    /// Notes what an agent says that it is doing.
    pub async fn set_note(&self, agent: AgentId, note: String) -> Result<(), HubError> {
        self.run(move |state, _| decide::set_note(state, agent, &note)).await.map(drop)
    }

    /// Stops the turn of an agent for another one, which must have created it.
    pub async fn interrupt_for(&self, actor: Actor, id: AgentId) -> Result<(), HubError> {
        self.interrupt(actor, id).await
    }
}
