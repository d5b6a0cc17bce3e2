//! Messages from one agent to others. A message is a prompt with an agent as its author: it wakes an idle agent, and a
//! working one gets it when its turn is over, marked as coming from an agent.

use consort_model::{AgentId, Prompt, PromptId, PromptOrigin, Timestamp, visibility};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::tool::{Call, Effect, Nothing, Outcome, Refused, Reply, TeamTool};

/// The longest message, in bytes. What is longer belongs in a file.
const MAX_MESSAGE: usize = 64 << 10;

/// The tools of this group.
pub fn tools() -> [TeamTool; 3] {
    [
        TeamTool::new(
            "send_message",
            Effect::Adds,
            "Sends a message to one agent. An idle agent is woken and answers in its own time; a working one gets the message \
             when its turn is over. Returns at once with whether it was delivered or waits; an answer, if any, comes to you \
             as a message later, so end your turn instead of waiting. Use it to hand over work or tell what you found; use \
             ask_agent if you need the answer now. Do not send thanks or other messages that need no answer.",
            send_message,
        ),
        TeamTool::new(
            "broadcast_message",
            Effect::Adds,
            "Sends one message to every open agent that you can see, and wakes those that are idle. Use it rarely, for what \
             truly concerns all of them, such as a change to a file that everyone works on. Returns for each agent whether \
             the message was delivered, waits or was refused.",
            broadcast_message,
        ),
        TeamTool::new(
            "check_messages",
            Effect::Reads,
            "Shows the messages that wait for you while you work. Use it in a long turn when you expect news from another \
             agent. You need not call it at the end of a turn: messages that wait then are given to you by themselves. Takes \
             no arguments.",
            check_messages,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendMessage {
    /// The agent's name or id, as list_agents shows it.
    to: String,
    /// What you want to say. Say everything the other agent needs: it does not see your conversation. Put long texts into a
    /// file and name its path.
    text: String,
}

/// What became of a message.
#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Posted {
    /// A turn begins with it.
    Delivered,
    /// It waits for the end of a turn, behind others.
    Queued { before_it: u32 },
    /// It was not taken.
    Refused { reason: String },
}

#[derive(Serialize)]
struct Receipt {
    agent: AgentId,
    name: String,
    #[serde(flatten)]
    posted: Posted,
}

impl Receipt {
    fn line(&self) -> String {
        let name = &self.name;
        match &self.posted {
            Posted::Delivered => format!("Delivered to `{name}`."),
            Posted::Queued { before_it: 0 } => {
                format!("Queued for `{name}`: it gets it when its turn is over.")
            }
            Posted::Queued { before_it } => format!("Queued for `{name}` behind {before_it} others."),
            Posted::Refused { reason } => format!("Refused for `{name}`: {reason}."),
        }
    }
}

async fn send_message(call: Call, arguments: SendMessage) -> Outcome {
    let agent = call.find(&arguments.to)?;
    if agent.id == call.caller {
        return Err(Refused::new("that is yourself; list_agents shows the others"));
    }
    check(&arguments.text)?;
    let receipt = post(&call, agent.id, agent.name, &arguments.text).await;
    if let Posted::Refused { reason } = receipt.posted {
        return Err(Refused(reason));
    }
    Ok(Reply::new(receipt.line(), receipt))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BroadcastMessage {
    /// What you want to say to all of them.
    text: String,
}

async fn broadcast_message(call: Call, arguments: BroadcastMessage) -> Outcome {
    #[derive(Serialize)]
    struct Receipts {
        receipts: Vec<Receipt>,
    }
    check(&arguments.text)?;
    let others: Vec<(AgentId, String)> = call.hub.with(|state| {
        let open = visibility::known_to(state, call.caller).filter(|agent| !agent.is_closed());
        open.map(|agent| (agent.id, agent.name.clone())).collect()
    });
    if others.is_empty() {
        return Err(Refused::new("there is no other agent that you can see, so nobody was written to"));
    }
    let mut receipts = Vec::new();
    for (agent, name) in others {
        receipts.push(post(&call, agent, name, &arguments.text).await);
    }
    let text = receipts.iter().map(Receipt::line).collect::<Vec<_>>().join("\n");
    Ok(Reply::new(text, Receipts { receipts }))
}

fn check(text: &str) -> Result<(), Refused> {
    if text.len() > MAX_MESSAGE {
        return Err(Refused(format!(
            "the message has {} bytes and {MAX_MESSAGE} is the limit; write it to a file and send its path",
            text.len()
        )));
    }
    Ok(())
}

/// Sends a message. Why it is refused becomes part of the receipt, so that others still get theirs.
async fn post(call: &Call, agent: AgentId, name: String, text: &str) -> Receipt {
    let prompt = Prompt {
        id: PromptId::new(Uuid::now_v7()),
        origin: PromptOrigin::Agent { agent: call.caller },
        text: text.to_owned(),
        attachments: vec![],
        at: Timestamp::default(),
    };
    let posted = match call.hub.send(agent, prompt).await {
        Ok(None) => Posted::Delivered,
        Ok(Some(place)) => Posted::Queued { before_it: place },
        Err(error) => Posted::Refused { reason: Refused::from(error).0 },
    };
    Receipt { agent, name, posted }
}

async fn check_messages(call: Call, _: Nothing) -> Outcome {
    #[derive(Serialize)]
    struct Message {
        from: String,
        at: Timestamp,
        text: String,
    }
    #[derive(Serialize)]
    struct Messages {
        messages: Vec<Message>,
    }
    let messages: Vec<Message> = call.hub.with(|state| {
        let waiting = state.agents.get(&call.caller).into_iter().flat_map(|agent| &agent.queue);
        let from_agents = waiting.filter_map(|prompt| match prompt.origin {
            PromptOrigin::Agent { agent } => {
                let from =
                    state.agents.get(&agent).map_or_else(|| agent.to_string(), |agent| agent.name.clone());
                Some(Message { from, at: prompt.at, text: prompt.text.clone() })
            }
            PromptOrigin::Person => None,
        });
        from_agents.collect()
    });
    let text = match messages.as_slice() {
        [] => "No messages wait for you.".to_owned(),
        messages => {
            let part = |message: &Message| {
                format!("[From agent `{}`, not from a person]\n{}", message.from, message.text)
            };
            messages.iter().map(part).collect::<Vec<_>>().join("\n\n")
        }
    };
    Ok(Reply::new(text, Messages { messages }))
}
