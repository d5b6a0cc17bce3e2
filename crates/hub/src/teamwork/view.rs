//! Agents as other agents see them.

use consort_model::relation::TaskResult;
use consort_model::{
    Agent, AgentId, AskBody, LetterState, Refusal, Relation, State, Status, Timestamp, decide,
};
use serde::Serialize;

use crate::HubError;
use crate::hub::Hub;

/// How much of the last result a list shows, in characters.
const RESULT_PREVIEW: usize = 300;

/// How one agent stands to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is the one that asks.
    You,
    /// The one that asks works for it.
    Parent,
    /// It works for the one that asks.
    SubAgent,
    /// The one that asks is its companion.
    Owner,
    /// It is a companion of the one that asks.
    Companion,
    /// Anything else.
    Peer,
}

/// An agent as another one sees it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemberView {
    /// Who it is.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// What it is there for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its profile.
    pub profile: String,
    /// How it stands to the one that asks.
    pub relation: Standing,
    /// The name of the agent that it works for or belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_to: Option<String>,
    /// What it is doing, such as `working` or `needs approval`.
    pub status: String,
    /// What it waits for, where it does: the title of its first open question or approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Since when: its turn, or else its creation.
    pub since: Timestamp,
    /// Where it works.
    pub cwd: String,
    /// How many messages and prompts wait for it.
    pub queued: u32,
    /// How its task ended, the beginning of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_result: Option<String>,
}

impl MemberView {
    pub(crate) fn new(state: &State, viewer: AgentId, agent: &Agent) -> Self {
        let name = |id: AgentId| state.agents.get(&id).map(|agent| agent.name.clone());
        Self {
            id: agent.id,
            name: agent.name.clone(),
            label: agent.brief.label.clone(),
            profile: agent.profile.to_string(),
            relation: standing(state, viewer, agent),
            bound_to: agent.relation.bound_to().and_then(name),
            status: status_words(agent).to_owned(),
            waits_for: agent.asks.first().map(|ask| ask.title.clone()),
            since: agent.turn.as_ref().map_or(agent.created_at, |turn| turn.started_at),
            cwd: agent.cwd.clone(),
            queued: agent.queue.len() as u32,
            last_result: agent.relation.result().map(preview),
        }
    }
}

/// What an agent is doing, in words that tell what kind of answer it waits for.
pub(crate) fn status_words(agent: &Agent) -> &'static str {
    match (agent.status(), agent.asks.first().map(|ask| &ask.body)) {
        (Status::NeedsInput, Some(AskBody::Approval { .. })) => "needs approval",
        (Status::NeedsInput, _) => "needs an answer",
        (status, _) => status.words(),
    }
}

fn standing(state: &State, viewer: AgentId, agent: &Agent) -> Standing {
    let asks = state.agents.get(&viewer).map(|viewer| &viewer.relation);
    match (&agent.relation, asks) {
        _ if agent.id == viewer => Standing::You,
        (Relation::SubAgent { parent, .. }, _) if *parent == viewer => Standing::SubAgent,
        (Relation::Companion { owner }, _) if *owner == viewer => Standing::Companion,
        (_, Some(relation)) if relation.parent() == Some(agent.id) => Standing::Parent,
        (_, Some(relation)) if relation.owner() == Some(agent.id) => Standing::Owner,
        _ => Standing::Peer,
    }
}

fn preview(result: &TaskResult) -> String {
    let (word, text) = match result {
        TaskResult::Yielded { text, .. } => ("done", text.as_str()),
        TaskResult::Failed { reason } => ("failed", reason.as_str()),
        TaskResult::Stopped { reason } => ("stopped", reason.as_str()),
        TaskResult::Closed => return "closed before it gave a result".to_owned(),
    };
    let cut: String = text.chars().take(RESULT_PREVIEW).collect();
    let more = if cut.len() < text.len() { "..." } else { "" };
    format!("{word}: {cut}{more}")
}

impl Hub {
    /// The agents that another one sees, itself among them; closed ones only if asked for.
    pub fn members(&self, viewer: AgentId, closed: bool) -> Result<Vec<MemberView>, HubError> {
        Ok(self.with(|state| {
            let seen = decide::visible(state, viewer)?;
            let listed = seen.into_iter().filter(|agent| closed || !agent.is_closed());
            Ok::<_, Refusal>(listed.map(|agent| MemberView::new(state, viewer, agent)).collect())
        })?)
    }

    /// One agent as another one sees it, by id, unique part of the id, or name.
    pub fn member(&self, viewer: AgentId, wanted: &str) -> Result<MemberView, HubError> {
        Ok(self.with(|state| {
            let agent = decide::find_visible(state, viewer, wanted)?;
            Ok::<_, Refusal>(MemberView::new(state, viewer, agent))
        })?)
    }

    /// The agent that another one means.
    pub fn find_member(&self, viewer: AgentId, wanted: &str) -> Result<AgentId, HubError> {
        Ok(self.with(|state| decide::find_visible(state, viewer, wanted).map(|agent| agent.id))?)
    }

    /// How far a message is; none if it is too long ago.
    pub fn message_state(&self, to: AgentId, message: consort_model::PromptId) -> Option<LetterState> {
        self.with(|state| {
            let letters = &state.agents.get(&to)?.letters;
            letters.iter().find(|letter| letter.prompt == message).map(|letter| letter.state)
        })
    }
}
