//! What agents ask of the hub through their tools, beyond what people ask of it too.
//!
//! Who asks is settled by [`Hub::holder`]; nothing here takes an agent's word for it.

use consort_model::policy::{self, Verdict};
use consort_model::{
    Actor, AgentId, Answer, AskBody, Rule, TeamTools, ToolCall, ToolCallId, ToolKind, decide,
};

use crate::error::HubError;
use crate::hub::Hub;
use crate::real_path::RealPaths;
use crate::team::SERVER_NAME;

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

    /// Why a rule that a person set keeps an agent from a tool of Consort's own, if one does. Agents do not ask before they
    /// use these, so the rules are looked at here.
    pub fn rule_against(&self, agent: AgentId, tool: &str) -> Option<String> {
        let (agent, rules) = self.with(|state| {
            let rules: Vec<Rule> = state.rules.values().cloned().collect();
            let agent = if rules.is_empty() { None } else { state.agents.get(&agent).cloned() };
            Some((agent?, rules))
        })?;
        let tool = ToolCall::new(ToolCallId::new(tool), ToolKind::Other, format!("{SERVER_NAME}: {tool}"));
        let real = RealPaths::default();
        let body = AskBody::Approval { tool, options: vec![] };
        match policy::judge(&agent, &rules, &body, &|path| real.resolve(path)) {
            Verdict::Settle(Answer::Deny { message }, _) => Some(message.unwrap_or_default()),
            _ => None,
        }
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
