//! Who is there: the caller itself, the other agents it knows of, and the profiles new ones can be made from.

use consort_hub::{HubError, teamwork};
use consort_model::relation::TaskResult;
use consort_model::{
    Agent, AgentId, Availability, DriverKind, ItemBody, Lifecycle, PlanEntry, Relation, State, Timestamp,
    TurnOutcome, visibility,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, Effect, Nothing, Outcome, Reply, TeamTool};

/// How far back the last thing that an agent said is looked for, and how much of it is told, in characters.
const RECENT_ITEMS: u32 = 50;
const LAST_TEXT: usize = 4000;

/// The tools of this group.
pub fn tools() -> [TeamTool; 4] {
    [
        TeamTool::new(
            "whoami",
            Effect::Reads,
            "Tells who you are in the team: your name and id, your working directory, profile and permission mode, whether \
             you are somebody's sub-agent or companion, and who created you. Use it when you need your own name or id, or \
             before you work with other agents for the first time. Takes no arguments and changes nothing.",
            whoami,
        ),
        TeamTool::new(
            "list_agents",
            Effect::Reads,
            "Lists the other agents that you can see and write to: name, id, relation to you, status (queued, starting, \
             idle, working, needs approval, needs an answer, stalled, failed, closed), what each is doing and since when. Use it to find out whom to \
             ask or message, or how your own sub-agents are getting on; use get_agent for one in detail. An agent that \
             needs approval waits for the person, so do not wait for it.",
            list_agents,
        ),
        TeamTool::new(
            "get_agent",
            Effect::Reads,
            "Tells about one agent in detail: status, what it is doing, its plan, how its last turn ended, what it asks the \
             person, the last thing it said, and its result if it was a sub-agent. Use it to see how far an agent is before \
             you write to it, and after it is done to read what it found.",
            get_agent,
        ),
        TeamTool::new(
            "list_profiles",
            Effect::Reads,
            "Lists the profiles that a new agent can be made from: name, program, model, and whether it can be used on this \
             machine. Use it before create_agent or spawn_subagent when you want another kind of agent than yourself. \
             Takes no arguments.",
            list_profiles,
        ),
    ]
}

/// An agent, as other agents see it.
#[derive(Serialize)]
pub struct Seen {
    id: AgentId,
    name: String,
    /// How it stands to the one who asks.
    relation: &'static str,
    /// Such as `working`, `needs approval` or `queued`.
    status: &'static str,
    /// What it is there for.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    profile: String,
    cwd: String,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// When its turn began.
    #[serde(skip_serializing_if = "Option::is_none")]
    working_since: Option<Timestamp>,
    /// How many prompts and messages it has not taken up yet.
    waiting_messages: usize,
}

impl Seen {
    /// What `asker` sees of an agent.
    pub fn by(asker: AgentId, agent: &Agent) -> Self {
        Self {
            id: agent.id,
            name: agent.name.clone(),
            relation: relation(asker, agent),
            status: teamwork::status_words(agent),
            label: agent.brief.label.clone(),
            profile: agent.profile.to_string(),
            cwd: agent.cwd.clone(),
            created_at: agent.created_at,
            note: agent.note.clone(),
            working_since: agent.turn.as_ref().map(|turn| turn.started_at),
            waiting_messages: agent.queue.len(),
        }
    }

    /// The same in one line.
    pub fn line(&self) -> String {
        let Self { name, id, relation, status, .. } = self;
        let words = self.note.as_ref().or(self.label.as_ref());
        let words = words.map_or_else(String::new, |words| format!(": {words}"));
        format!("{name} ({relation}, {status}){words} [{id}]")
    }
}

/// How an agent stands to the one who asks.
fn relation(asker: AgentId, agent: &Agent) -> &'static str {
    match &agent.relation {
        _ if agent.id == asker => "you",
        Relation::SubAgent { parent, .. } if *parent == asker => "your sub-agent",
        Relation::Companion { owner } if *owner == asker => "your companion",
        _ if agent.created_by == Some(asker) => "created by you",
        Relation::SubAgent { .. } => "sub-agent of another",
        Relation::Companion { .. } => "companion of another",
        Relation::Primary => "independent",
    }
}

async fn whoami(call: Call, _: Nothing) -> Outcome {
    #[derive(Serialize)]
    struct Me {
        #[serde(flatten)]
        seen: Seen,
        permissions: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_by: Option<String>,
        others: usize,
    }
    let (me, others) = call.hub.with(|state| {
        let me = state.agent(call.caller)?;
        let named =
            |id: Option<AgentId>| id.and_then(|id| state.agents.get(&id)).map(|agent| agent.name.clone());
        let others = visible(state, call.caller, false).count();
        let me = Me {
            seen: Seen::by(me.id, me),
            permissions: me.permissions.word(),
            parent: named(me.relation.parent()),
            owner: named(me.relation.owner()),
            created_by: named(me.created_by),
            others,
        };
        Ok::<_, consort_model::Refusal>((me, others))
    })?;
    let Seen { name, id, cwd, profile, .. } = &me.seen;
    let mut text = format!(
        "You are `{name}` ({id}), an agent of the profile `{profile}` in {cwd}, with the permission mode {}.",
        me.permissions
    );
    if let Some(parent) = &me.parent {
        text.push_str(&format!(
            " You are a sub-agent of `{parent}`: give your result with yield_to_parent when done."
        ));
    }
    if let Some(owner) = &me.owner {
        text.push_str(&format!(
            " You are a companion of `{owner}`, the only agent you can see and write to."
        ));
    }
    text.push_str(&format!(" You can see {others} other agent{}.", if others == 1 { "" } else { "s" }));
    Ok(Reply::new(text, me))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListAgents {
    /// Whether closed agents are listed too. Left out: only those that are open.
    #[serde(default)]
    include_closed: bool,
}

async fn list_agents(call: Call, arguments: ListAgents) -> Outcome {
    #[derive(Serialize)]
    struct List {
        agents: Vec<Seen>,
    }
    let agents: Vec<Seen> = call.hub.with(|state| {
        let seen = visible(state, call.caller, arguments.include_closed);
        seen.map(|agent| Seen::by(call.caller, agent)).collect()
    });
    let text = match agents.as_slice() {
        [] => "There is no other agent that you can see.".to_owned(),
        agents => agents.iter().map(Seen::line).collect::<Vec<_>>().join("\n"),
    };
    Ok(Reply::new(text, List { agents }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetAgent {
    /// The agent's name or id, as list_agents shows it.
    agent: String,
}

async fn get_agent(call: Call, arguments: GetAgent) -> Outcome {
    #[derive(Serialize)]
    struct Details {
        #[serde(flatten)]
        seen: Seen,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_outcome: Option<TurnOutcome>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        asks_the_person: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        plan: Vec<PlanEntry>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<TaskResult>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_text: Option<String>,
    }
    let agent = call.find(&arguments.agent)?;
    let last_text = last_text(&call, agent.id).await?;
    let seen = Seen::by(call.caller, &agent);
    let mut text = seen.line();
    let mut add = |what: &str, words: &str| text.push_str(&format!("\n{what}: {words}"));
    let failure = match &agent.lifecycle {
        Lifecycle::Failed(failure) => Some(failure.message.clone()),
        _ => None,
    };
    if let Some(failure) = &failure {
        add("Failed", failure);
    }
    if let Some(TurnOutcome::Failed { message } | TurnOutcome::Stopped { reason: message }) =
        &agent.last_outcome
    {
        add("Its last turn ended early", message);
    }
    for ask in &agent.asks {
        add("Waits for the person", &ask.title);
    }
    let result = match &agent.relation {
        Relation::SubAgent { result, .. } => result.clone(),
        _ => None,
    };
    match &result {
        Some(TaskResult::Yielded { text, .. }) => add("Result", text),
        Some(TaskResult::Stopped { reason }) => add("Stopped", reason),
        Some(TaskResult::Failed { reason }) => add("Failed", reason),
        Some(TaskResult::Closed) => add("Result", "none, it was closed before"),
        None => {}
    }
    if let Some(said) = &last_text {
        add("It last said", said);
    }
    let details = Details {
        seen,
        title: agent.title,
        last_outcome: agent.last_outcome,
        failure,
        asks_the_person: agent.asks.into_iter().map(|ask| ask.title).collect(),
        plan: agent.plan,
        result,
        last_text,
    };
    Ok(Reply::new(text, details))
}

/// The last thing that an agent said, if that is not long ago, and not all of it if it was long.
async fn last_text(call: &Call, agent: AgentId) -> Result<Option<String>, HubError> {
    let items = call.hub.items(agent, None, None, RECENT_ITEMS).await?;
    let said = items.into_iter().rev().find_map(|item| match item.body {
        ItemBody::Text { text } if !text.trim().is_empty() && item.within.is_none() => Some(text),
        _ => None,
    });
    Ok(said.map(|text| match text.char_indices().nth(LAST_TEXT) {
        Some((end, _)) => format!("{}… (cut)", &text[..end]),
        None => text,
    }))
}

async fn list_profiles(call: Call, _: Nothing) -> Outcome {
    #[derive(Serialize)]
    struct Profile {
        id: String,
        name: String,
        driver: DriverKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        permissions: &'static str,
        usable: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        default: bool,
    }
    #[derive(Serialize)]
    struct List {
        profiles: Vec<Profile>,
    }
    let profiles = call.hub.profiles().await?.into_iter().map(|profile| {
        let reason = match profile.availability {
            Availability::Unavailable { reason } => Some(reason),
            _ => None,
        };
        Profile {
            id: profile.id.to_string(),
            name: profile.name,
            driver: profile.driver,
            model: profile.default_model,
            permissions: profile.default_permissions.word(),
            usable: reason.is_none(),
            reason,
            default: profile.is_default,
        }
    });
    let profiles: Vec<Profile> = profiles.collect();
    let line = |profile: &Profile| {
        let model = profile.model.as_ref().map_or_else(String::new, |model| format!(", model {model}"));
        let default = if profile.default { ", the default" } else { "" };
        let trouble =
            profile.reason.as_ref().map_or_else(String::new, |reason| format!(": cannot be used: {reason}"));
        format!("{} ({}{model}{default}){trouble}", profile.id, profile.driver)
    };
    let text = profiles.iter().map(line).collect::<Vec<_>>().join("\n");
    Ok(Reply::new(text, List { profiles }))
}

/// The others that an agent knows of.
fn visible(state: &State, asker: AgentId, closed: bool) -> impl Iterator<Item = &Agent> {
    visibility::known_to(state, asker).filter(move |agent| closed || !agent.is_closed())
}
