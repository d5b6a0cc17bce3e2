//! Messages from one agent to others. A message is a prompt with an agent as its author: it wakes an idle agent, and a
//! working one gets it at its next safe point, marked as coming from an agent. Who may write to whom and how often is decided
//! behind `consort_hub::teamwork`.

use consort_hub::teamwork::{AN_AGENT, SentMessage};
use consort_model::team::message_receipt;
use consort_model::{AgentId, LetterState, PromptId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, Effect, Nothing, Outcome, Refused, Reply, TeamTool};

/// The tools of this group.
pub fn tools() -> [TeamTool; 3] {
    [
        TeamTool::new(
            "send_message",
            Effect::Adds,
            "Sends a message to one agent. An idle agent is woken and answers in its own time; a working one gets the message \
             at its next safe point. Returns at once with whether it was delivered or waits; an answer, if any, comes to you \
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
            "Shows the messages that wait for you while you work; they do not come again afterwards. Use it in a long turn when you expect news from another \
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
struct Posted {
    id: PromptId,
    agent: AgentId,
    name: String,
    state: LetterState,
}

impl From<SentMessage> for Posted {
    fn from(SentMessage { id, to, name, state }: SentMessage) -> Self {
        Self { id, agent: to, name, state }
    }
}

impl Posted {
    fn line(&self) -> String {
        match self.state {
            LetterState::Queued => format!("Queued for `{}`: it gets it when it is free.", self.name),
            _ => format!("Delivered to `{}`.", self.name),
        }
    }
}

async fn send_message(call: Call, arguments: SendMessage) -> Outcome {
    let agent = call.find(&arguments.to)?;
    let posted = Posted::from(call.hub.send_message(call.caller, agent.id, arguments.text).await?);
    Ok(Reply::new(posted.line(), posted))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BroadcastMessage {
    /// What you want to say to all of them.
    text: String,
}

async fn broadcast_message(call: Call, arguments: BroadcastMessage) -> Outcome {
    #[derive(Serialize)]
    struct NotPosted {
        name: String,
        reason: String,
    }
    #[derive(Serialize)]
    struct All {
        posted: Vec<Posted>,
        refused: Vec<NotPosted>,
    }
    let (sent, refused) = call.hub.broadcast(call.caller, arguments.text).await?;
    if sent.is_empty() && refused.is_empty() {
        return Err(Refused::new("there is no other agent that you can see, so nobody was written to"));
    }
    let posted: Vec<Posted> = sent.into_iter().map(Posted::from).collect();
    let refused: Vec<NotPosted> =
        refused.into_iter().map(|(name, reason)| NotPosted { name, reason }).collect();
    let refusals = refused.iter().map(|not| format!("Refused for `{}`: {}.", not.name, not.reason));
    let text = posted.iter().map(Posted::line).chain(refusals).collect::<Vec<_>>().join("\n");
    Ok(Reply::new(text, All { posted, refused }))
}

async fn check_messages(call: Call, _: Nothing) -> Outcome {
    #[derive(Serialize)]
    struct Message {
        from: String,
        written_by: &'static str,
        at: Timestamp,
        text: String,
        receipt: String,
    }
    #[derive(Serialize)]
    struct Messages {
        messages: Vec<Message>,
    }
    let shown = call.hub.check_messages(call.caller).await?;
    let messages: Vec<Message> = shown
        .into_iter()
        .map(|shown| Message {
            from: shown.from,
            written_by: AN_AGENT,
            at: shown.at,
            text: shown.text,
            receipt: message_receipt(shown.id),
        })
        .collect();
    let text = match messages.as_slice() {
        [] => "No messages wait for you.".to_owned(),
        messages => {
            let part = |message: &Message| {
                let Message { from, text, receipt, .. } = message;
                format!("[From agent `{from}`, not from a person] [{receipt}]\n{text}")
            };
            messages.iter().map(part).collect::<Vec<_>>().join("\n\n")
        }
    };
    Ok(Reply::new(text, Messages { messages }))
}
