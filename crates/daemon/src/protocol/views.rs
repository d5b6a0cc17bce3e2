//! Agents, open requests and messages as lists show them: the stable shapes of `--json`.

use consort_model::{
    Agent, AgentId, Ask, AskBody, AskId, DriverKind, Failure, LetterState, Lifecycle, PermissionMode,
    PromptId, SessionOption, State, Status, TaskResult, TeamTools, Timestamp, TurnOutcome, Usage, Worktree,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An agent as lists show it: the stable shape of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// Who it is.
    pub id: AgentId,
    /// What people call it.
    pub name: String,
    /// Its profile.
    pub profile: String,
    /// Whether that profile was removed: its transcript can be read, and it takes no prompts until it is rebound.
    pub profile_removed: bool,
    /// Whether its profile was edited since its process was started, so that only a restart brings the change.
    pub restart_to_apply: bool,
    /// Its driver.
    pub driver: DriverKind,
    /// What it is doing.
    pub status: Status,
    /// Where it works.
    pub cwd: String,
    /// The git worktree that it works in.
    pub worktree: Option<Worktree>,
    /// The agent that created it; null: a person did.
    pub created_by: Option<AgentId>,
    /// Whether it is a companion of the one that owns it.
    pub companion: bool,
    /// The agent that it belongs to as a companion.
    pub owner: Option<AgentId>,
    /// The agent that it works for as a sub-agent.
    pub parent: Option<AgentId>,
    /// What it is there for.
    #[serde(default)]
    pub label: Option<String>,
    /// How its task as a sub-agent ended; null: it is not over, or there is none.
    #[serde(default)]
    pub result: Option<TaskResult>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its turn began.
    pub working_since: Option<Timestamp>,
    /// How its last turn ended.
    pub last_outcome: Option<TurnOutcome>,
    /// How many prompts wait.
    pub queued: u32,
    /// How many approvals and questions are open.
    pub open_asks: u32,
    /// What its approvals follow.
    pub permissions: PermissionMode,
    /// The agent's own name for its session.
    pub session: Option<String>,
    /// What can be chosen for its session.
    pub options: Vec<SessionOption>,
    /// What it used.
    pub usage: Usage,
    /// Its title.
    pub title: Option<String>,
    /// What it says that it is doing, in its own words.
    pub note: Option<String>,
    /// Whether it uses the tools by which agents reach each other.
    pub team_tools: TeamTools,
    /// How many items its transcript has.
    pub items: u64,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}

impl AgentView {
    /// How an agent is shown.
    pub fn new(state: &State, agent: &Agent) -> Self {
        Self {
            id: agent.id,
            name: agent.name.clone(),
            profile: agent.profile.to_string(),
            profile_removed: !state.has_profile(&agent.profile),
            restart_to_apply: state.restart_to_apply(agent),
            driver: agent.driver,
            status: agent.status(),
            cwd: agent.cwd.clone(),
            worktree: state.worktree_of(agent).cloned(),
            created_by: agent.created_by,
            companion: agent.relation.owner().is_some(),
            owner: agent.relation.owner(),
            parent: agent.relation.parent(),
            label: agent.brief.label.clone(),
            result: agent.relation.result().cloned(),
            created_at: agent.created_at,
            working_since: agent.turn.as_ref().map(|turn| turn.started_at),
            last_outcome: agent.last_outcome.clone(),
            queued: agent.queue.len() as u32,
            open_asks: agent.asks.len() as u32,
            permissions: agent.permissions,
            session: agent.session.as_ref().map(|session| session.id.clone()),
            options: agent.options.clone(),
            usage: agent.usage,
            title: agent.title.clone(),
            note: agent.note.clone(),
            team_tools: agent.team_tools,
            items: agent.cursor.items,
            failure: match &agent.lifecycle {
                Lifecycle::Failed(failure) => Some(failure.clone()),
                _ => None,
            },
        }
    }
}

/// An open approval or question, as the inbox shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InboxEntry {
    /// What `consort approve` and `consort deny` take.
    pub id: AskId,
    /// Who asks.
    pub agent: AgentId,
    /// Its name.
    pub agent_name: String,
    /// The names of the agents above it, nearest first.
    pub chain: Vec<String>,
    /// `approval` or `question`.
    pub kind: String,
    /// What is asked, in one line.
    pub title: String,
    /// When.
    pub at: Timestamp,
    /// What is asked, whole: the command or diff, the options.
    pub body: AskBody,
}

impl InboxEntry {
    /// The entry for an ask of `agent`.
    pub fn new(state: &State, agent: &Agent, ask: &Ask) -> Self {
        let mut chain = Vec::new();
        let mut above = agent.relation.bound_to();
        while let Some(next) = above.and_then(|id| state.agents.get(&id)).filter(|_| chain.len() < 16) {
            chain.push(next.name.clone());
            above = next.relation.bound_to();
        }
        Self {
            id: ask.id,
            agent: agent.id,
            agent_name: agent.name.clone(),
            chain,
            kind: ask.body.kind().to_owned(),
            title: ask.title.clone(),
            at: ask.at,
            body: ask.body.clone(),
        }
    }
}

/// A message from one agent to another, as lists show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageView {
    /// Which message.
    pub id: PromptId,
    /// Who wrote it.
    pub from: AgentId,
    /// That one's name.
    pub from_name: String,
    /// Who gets it.
    pub to: AgentId,
    /// That one's name.
    pub to_name: String,
    /// How far it is.
    pub state: LetterState,
    /// When it was sent.
    pub at: Timestamp,
    /// How its text begins; all of it is in the recipient's transcript.
    pub preview: String,
}

impl MessageView {
    /// The last messages that an agent wrote or got, or all, oldest first.
    pub fn list(state: &State, of: Option<AgentId>) -> Vec<Self> {
        let name = |id: AgentId| state.agents.get(&id).map_or_else(String::new, |agent| agent.name.clone());
        let mut messages: Vec<Self> = state
            .agents
            .values()
            .flat_map(|to| to.letters.iter().map(move |letter| (to, letter)))
            .filter(|(to, letter)| of.is_none_or(|of| of == to.id || of == letter.from))
            .map(|(to, letter)| Self {
                id: letter.prompt,
                from: letter.from,
                from_name: name(letter.from),
                to: to.id,
                to_name: to.name.clone(),
                state: letter.state,
                at: letter.at,
                preview: letter.preview.clone(),
            })
            .collect();
        messages.sort_by_key(|message| (message.at, message.id));
        messages
    }
}
