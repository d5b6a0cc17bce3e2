//! Agents from their beginning to their end: creating them, stopping and closing one's own, and saying what one is doing.

use std::path::{Path, PathBuf};

use consort_hub::{NewAgent, NewWorktree};
use consort_model::{Actor, AgentId, Brief, Prompt, PromptId, PromptOrigin, Relation, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::who::Seen;
use crate::tool::{Audience, Call, Effect, Outcome, Refused, Reply, TeamTool};

/// The tools of this group.
pub fn tools() -> [TeamTool; 4] {
    [
        TeamTool::new(
            "create_agent",
            Effect::Adds,
            "Creates a new agent that lives on by itself. Only use this if the user explicitly asked for another agent, or for a \
             companion; for a piece of your own work use spawn_subagent instead. With companion: true the new agent is bound \
             to you: shown beside you, seen by you alone, and closed with you. Returns its name and id at once while it is \
             still starting; write to it with send_message and close it with close_agent when the user wants that.",
            create_agent,
        )
        .only_for(Audience::Creators),
        TeamTool::new(
            "interrupt_agent",
            Effect::Ends,
            "Stops the turn that an agent which you created is in, and the turns of its sub-agents. It stays open and can be \
             written to. Use it when its work is no longer needed or goes the wrong way. An agent that is not working is \
             left as it is.",
            interrupt_agent,
        ),
        TeamTool::new(
            "close_agent",
            Effect::Ends,
            "Closes an agent which you created, with its companions and sub-agents, and ends their processes. Use it when \
             their work is done and the user does not need them. Only a person can reopen a closed agent; its conversation \
             stays readable.",
            close_agent,
        ),
        TeamTool::new(
            "set_status",
            Effect::Adds,
            "Says in a few words what you are doing, for the person and the other agents who look at the list of agents. Use it \
             when you begin a new part of a long task. An empty text takes the words away.",
            set_status,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateAgent {
    /// Which profile it runs by; list_profiles shows them. Left out: the same as yours.
    #[serde(default)]
    profile: Option<String>,
    /// A short name for it. Left out: one is made from the profile's.
    #[serde(default)]
    name: Option<String>,
    /// What it should do first. Say everything it needs: it does not see your conversation. Left out: it waits for a message.
    #[serde(default)]
    prompt: Option<String>,
    /// Whether it is your companion. Only if the user asked for a companion.
    #[serde(default)]
    companion: bool,
    /// The folder it works in, inside of yours. Left out: the same as yours.
    #[serde(default)]
    cwd: Option<String>,
    /// Whether it works in a git worktree and branch of its own, which begin at the branch that is checked out in its folder.
    /// Use it when it will change files while others do. finish_worktree brings its work home.
    #[serde(default)]
    worktree: bool,
}

#[derive(Serialize)]
struct Created {
    agent: Seen,
}

async fn create_agent(call: Call, arguments: CreateAgent) -> Outcome {
    let me = call.me()?;
    let cwd = match arguments.cwd {
        Some(cwd) => inside(Path::new(&me.cwd), &cwd)?,
        None => PathBuf::from(&me.cwd),
    };
    let prompt = arguments.prompt.filter(|text| !text.trim().is_empty()).map(|text| Prompt {
        id: PromptId::new(Uuid::now_v7()),
        origin: PromptOrigin::Agent { agent: call.caller },
        text,
        attachments: vec![],
        steers: false,
        at: Timestamp::default(),
    });
    let new = NewAgent {
        id: AgentId::new(Uuid::now_v7()),
        profile: Some(arguments.profile.unwrap_or_else(|| me.profile.to_string())),
        name: arguments.name,
        cwd,
        relation: if arguments.companion {
            Relation::Companion { owner: call.caller }
        } else {
            Relation::Primary
        },
        permissions: None,
        worktree: arguments.worktree.then(NewWorktree::default),
        prompt,
        brief: Brief::default(),
    };
    let id = call.hub.create(Actor::Agent(call.caller), new).await?;
    let agent = call.hub.with(|state| state.agent(id).map(|agent| Seen::by(call.caller, agent)))?;
    Ok(Reply::new(format!("Created {}", agent.line()), Created { agent }))
}

/// A folder inside of another one, by its real name: links and `..` do not lead out of it.
fn inside(folder: &Path, wanted: &str) -> Result<PathBuf, Refused> {
    let wrong =
        || Refused(format!("`{wanted}` is no folder inside of {}; name one that is", folder.display()));
    let real = folder.join(wanted).canonicalize().map_err(|_| wrong())?;
    let own = folder.canonicalize().map_err(|_| wrong())?;
    if real.is_dir() && real.starts_with(own) { Ok(real) } else { Err(wrong()) }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneAgent {
    /// The agent's name or id, as list_agents shows it.
    agent: String,
}

#[derive(Serialize)]
struct Told {
    agent: AgentId,
    name: String,
}

async fn interrupt_agent(call: Call, arguments: OneAgent) -> Outcome {
    let agent = call.find(&arguments.agent)?;
    call.hub.interrupt_for(Actor::Agent(call.caller), agent.id).await?;
    let text = format!("`{}` was told to stop; get_agent shows when it has.", agent.name);
    Ok(Reply::new(text, Told { agent: agent.id, name: agent.name }))
}

async fn close_agent(call: Call, arguments: OneAgent) -> Outcome {
    let agent = call.find(&arguments.agent)?;
    call.hub.close(Actor::Agent(call.caller), agent.id).await?;
    let text = format!("`{}` is closed, with everything that was bound to it.", agent.name);
    Ok(Reply::new(text, Told { agent: agent.id, name: agent.name }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetStatus {
    /// What you are doing, in a few words, such as `running the tests`. At most 200 characters are kept.
    text: String,
}

async fn set_status(call: Call, arguments: SetStatus) -> Outcome {
    #[derive(Serialize)]
    struct Noted {
        note: Option<String>,
    }
    call.hub.set_note(call.caller, arguments.text).await?;
    let note = call.me()?.note;
    let text = match &note {
        Some(note) => format!("Everyone sees: {note}"),
        None => "Nothing is shown any more.".to_owned(),
    };
    Ok(Reply::new(text, Noted { note }))
}
