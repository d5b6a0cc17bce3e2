//! Work that one agent gives to others: sub-agents, their results, waiting, and questions.
//!
//! The waits are bounded and can be continued. A call whose program hangs up is dropped, and what it waited for comes as a
//! message (see `consort_hub::teamwork`), so nothing is lost whoever gives up first.

use std::path::PathBuf;
use std::time::Duration;

use consort_hub::teamwork::{self, Answered, Outcome as Ended, Spawn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::who::Seen;
use crate::tool::{Audience, Call, Effect, Outcome, Refused, Reply, TeamTool};
use crate::wait::{MAX_WAIT, Waited};

/// How long a call waits unless it says otherwise. Less than the longest wait, so that it ends with an answer.
const USUAL_WAIT: Duration = Duration::from_secs(40);

/// The tools of this group.
pub fn tools() -> [TeamTool; 4] {
    [
        TeamTool::new(
            "spawn_subagent",
            Effect::Adds,
            "Spawns a sub-agent for one piece of your work: it runs beside you with its own conversation, sees nothing of \
             yours, and gives one result back. Use it for work that can be described completely and done apart, and spawn \
             several at once for parts that do not depend on each other. With wait: true the call returns the result (or, \
             if that takes long, says how to go on waiting). Without it the call returns at once: go on with your own work, \
             then use wait_for_agents; if you end your turn instead, the result wakes you as a message. Edits and commands of \
             a sub-agent are approved by the person, not by you.",
            spawn_subagent,
        )
        .only_for(Audience::Parents),
        TeamTool::new(
            "wait_for_agents",
            Effect::Reads,
            "Waits until agents are done, and returns the results of your sub-agents. Waits at most 40 seconds; if some are \
             not done by then, you get what is there and call it again to go on. An agent that needs approval waits for the \
             person: do something else meanwhile, or end your turn; the result comes as a message then. Do not use it to \
             wait for an agent that you only wrote to; its answer comes as a message.",
            wait_for_agents,
        ),
        TeamTool::new(
            "yield_to_parent",
            Effect::Ends,
            "Gives the result of your task to the agent that spawned you, and ends your turn. Call it once, when the task is \
             done or cannot be done, with everything your parent needs: it has not seen your conversation. Say what you found \
             or changed, where, and what is open. Nothing that you say after it is read.",
            yield_to_parent,
        )
        .only_for(Audience::SubAgents),
        TeamTool::new(
            "ask_agent",
            Effect::Adds,
            "Asks another agent something and waits for its answer: the message begins a turn of that agent, and what it says \
             at the end of the turn is the answer. Use it when you cannot go on without knowing; use send_message for \
             everything else. A working agent answers after its turn. If the answer does not come within 40 seconds, it \
             comes to you as a message later: go on with something else or end your turn.",
            ask_agent,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpawnSubagent {
    /// What the sub-agent is to do and what to give back. Say everything it needs: it sees nothing of your conversation.
    task: String,
    /// A few words for what it does, such as `find the leak`; people and other agents see them.
    #[serde(default)]
    label: Option<String>,
    /// Files whose text is given with the task, by paths inside your working directory. At most 1 MiB together.
    #[serde(default)]
    files: Vec<PathBuf>,
    /// Which profile it runs by; list_profiles shows them. Left out: the same as yours.
    #[serde(default)]
    profile: Option<String>,
    /// Which model it uses, by its program's own name. Left out: the profile's.
    #[serde(default)]
    model: Option<String>,
    /// The only tools it may use: kinds (read, search, edit, delete, move, execute, fetch, think, other) or names of its
    /// program's own. Left out: all.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// The folder it works in, inside of yours. Left out: the same as yours.
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// Whether it works in a git worktree and branch of its own, so that its changes do not meet yours. Use it for edits that
    /// take long or may go wrong; finish_worktree brings them home. Needs a git repository.
    #[serde(default)]
    worktree: bool,
    /// Whether to wait for the result here.
    #[serde(default)]
    wait: bool,
}

async fn spawn_subagent(call: Call, arguments: SpawnSubagent) -> Outcome {
    #[derive(Serialize)]
    struct Spawned {
        agent: Seen,
    }
    let SpawnSubagent { task, label, files, profile, model, tools, cwd, worktree, wait } = arguments;
    let spawn =
        Spawn { task, files, profile, model, tools, label, cwd, worktree, tool_call: call.tool_call.clone() };
    let id = call.hub.spawn(call.caller, spawn).await?;
    if wait {
        return waited(&call, vec![id], true, USUAL_WAIT).await;
    }
    let agent = call.hub.with(|state| state.agent(id).map(|agent| Seen::by(call.caller, agent)))?;
    let text = format!(
        "Spawned {}. Go on with your own work; wait_for_agents returns its result, or a message brings it.",
        agent.line()
    );
    Ok(Reply::new(text, Spawned { agent }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitForAgents {
    /// Names or ids of the agents. Left out: all your sub-agents that are not done.
    #[serde(default)]
    agents: Vec<String>,
    /// Whether to wait until all of them are done. Left out or false: until the next one is.
    #[serde(default)]
    all: bool,
    /// How many seconds to wait at most, 1 to 40. Left out: 40.
    #[serde(default)]
    seconds: Option<u64>,
}

async fn wait_for_agents(call: Call, arguments: WaitForAgents) -> Outcome {
    let mut agents = Vec::new();
    for wanted in &arguments.agents {
        agents.push(call.find(wanted)?.id);
    }
    waited(&call, agents, arguments.all, limit(arguments.seconds)).await
}

fn limit(seconds: Option<u64>) -> Duration {
    seconds.map_or(USUAL_WAIT, |seconds| Duration::from_secs(seconds.max(1)).min(USUAL_WAIT))
}

/// Waits for agents and words what came of it.
async fn waited(call: &Call, agents: Vec<consort_model::AgentId>, all: bool, limit: Duration) -> Outcome {
    let on = std::sync::Mutex::new(String::from("waiting"));
    let wait = call.hub.wait_for_agents(call.caller, agents, all, limit, |now| {
        if let Ok(mut on) = on.lock() {
            *on = now.unfinished.iter().map(state_line).collect::<Vec<_>>().join("; ");
        }
    });
    let telling = || on.lock().map(|on| on.clone()).unwrap_or_default();
    let waited = match call.waiting.wait(MAX_WAIT, telling, wait).await {
        Waited::For(waited) => waited?,
        Waited::InVain | Waited::HungUp => {
            return Err(Refused::new("the wait was given up; what it was for comes as a message"));
        }
    };
    let mut parts: Vec<String> = waited.finished.iter().map(result_part).collect();
    if !waited.unfinished.is_empty() {
        let states = waited.unfinished.iter().map(state_line).collect::<Vec<_>>().join("; ");
        parts.push(format!(
            "Not done yet: {states}. Call wait_for_agents again to go on waiting, or end your turn; results then come as \
             messages."
        ));
    }
    Ok(Reply::new(parts.join("\n\n"), waited))
}

fn state_line(ended: &Ended) -> String {
    match &ended.waits_for {
        Some(what) => format!("`{}` {} ({what})", ended.name, ended.status),
        None => format!("`{}` {}", ended.name, ended.status),
    }
}

fn result_part(ended: &Ended) -> String {
    let Ended { name, status, result, receipt, .. } = ended;
    let receipt = receipt.as_ref().map_or_else(String::new, |receipt| format!(" [{receipt}]"));
    match result {
        Some(result) => format!("`{name}` {status}{receipt}:\n{result}"),
        None => format!("`{name}` {status}{receipt}."),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct YieldToParent {
    /// The whole result.
    result: String,
}

async fn yield_to_parent(call: Call, arguments: YieldToParent) -> Outcome {
    #[derive(Serialize)]
    struct Yielded {
        delivered: bool,
    }
    call.hub.yield_to_parent(call.caller, arguments.result).await?;
    let text = "Your parent has your result. Your turn ends here: say nothing more.";
    Ok(Reply::new(text, Yielded { delivered: true }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskAgent {
    /// The agent's name or id, as list_agents shows it.
    agent: String,
    /// The question, with everything the other agent needs to answer it.
    question: String,
    /// How many seconds to wait at most, 1 to 40. Left out: 40.
    #[serde(default)]
    seconds: Option<u64>,
}

async fn ask_agent(call: Call, arguments: AskAgent) -> Outcome {
    let agent = call.find(&arguments.agent)?;
    let asked = call.hub.ask_agent(call.caller, agent.id, arguments.question, limit(arguments.seconds));
    let telling = || {
        let status =
            call.hub.with(|state| state.agent(agent.id).map(teamwork::status_words).unwrap_or("gone"));
        format!("waiting for the answer of `{}`, which is {status}", agent.name)
    };
    let answered = match call.waiting.wait(MAX_WAIT, telling, asked).await {
        Waited::For(answered) => answered?,
        Waited::InVain | Waited::HungUp => {
            return Err(Refused::new("the wait was given up; the answer comes as a message"));
        }
    };
    let text = match &answered {
        Answered::Answer { name, text, receipt, .. } => {
            format!("[Answer of agent `{name}`, not of a person] [{receipt}]\n{text}")
        }
        Answered::Later { name, status } => format!(
            "`{name}` has not answered yet (it is {status}). Its answer comes to you as a message: go on with something else, \
             or end your turn."
        ),
    };
    Ok(Reply::new(text, answered))
}
