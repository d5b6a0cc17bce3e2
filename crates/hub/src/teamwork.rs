//! What agents do with each other: spawn, yield, wait, ask, write, look around.
//!
//! The functions behind the team's tools. Who asks is an argument that follows from a token, never from what the agent
//! says. Decisions are `model`'s; this module reads files, waits, and words what comes back.
//!
//! Invariant: a call that waits is on record while it does. When it breaks off, whoever dropped it, the record is ended and
//! what it waited for comes as a message; so nothing depends on a call being answered.

mod waits;

use std::path::{Path, PathBuf};

use consort_drivers::CallResult;
use consort_model::{
    Actor, Agent, AgentId, AskBody, Attachment, Brief, LetterState, Prompt, PromptId, PromptOrigin, Refusal,
    Relation, Status, Timestamp, ToolCallId, decide,
};
use tokio::sync::watch;
use uuid::Uuid;

pub use waits::{AN_AGENT, Answered, Outcome, Waited};

use crate::HubError;
use crate::host;
use crate::hub::{Hub, NewAgent};
use crate::results::Kept;
use crate::worktree::NewWorktree;

/// The most that the files given with a task may weigh together, in bytes.
const MAX_CONTEXT: usize = 1 << 20;

/// Lets calls that wait look again whenever something happened that they may wait for.
pub(crate) struct Teamwork {
    changed: watch::Sender<()>,
}

impl Default for Teamwork {
    fn default() -> Self {
        Self { changed: watch::Sender::new(()) }
    }
}

impl Teamwork {
    pub(crate) fn look_again(&self) {
        self.changed.send_replace(());
    }
}

/// A sub-agent, as its parent asks for it.
#[derive(Clone, Debug, Default)]
pub struct Spawn {
    /// What it is to do.
    pub task: String,
    /// Files whose text it is given with the task; relative ones are the parent's.
    pub files: Vec<PathBuf>,
    /// Id or name of its profile; none: the parent's.
    pub profile: Option<String>,
    /// Its model; none: the profile's.
    pub model: Option<String>,
    /// The only tools that it may use; none: all.
    pub tools: Option<Vec<String>>,
    /// What it is there for, in a few words.
    pub label: Option<String>,
    /// Where it works; none: where the parent does.
    pub cwd: Option<PathBuf>,
    /// Whether it works in a git worktree of its own, made from where it would work.
    pub worktree: bool,
    /// The parent's tool call.
    pub tool_call: Option<ToolCallId>,
}

/// A message that was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentMessage {
    /// The message.
    pub id: PromptId,
    /// Who gets it.
    pub to: AgentId,
    /// Its name.
    pub name: String,
    /// How far it is.
    pub state: LetterState,
}

/// A message as its recipient reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedMessage {
    /// The message.
    pub id: PromptId,
    /// The name of the agent that sent it.
    pub from: String,
    /// Its text.
    pub text: String,
    /// When it was sent.
    pub at: Timestamp,
}

impl Hub {
    /// Spawns a sub-agent of `parent`; past the limits it is queued. Refused before anything is made.
    pub async fn spawn(&self, parent: AgentId, spawn: Spawn) -> Result<AgentId, HubError> {
        let above = self.with(|state| state.agent(parent).cloned())?;
        if spawn.task.trim().is_empty() {
            return Err(invalid("the task is empty; say what the sub-agent is to do and what to give back"));
        }
        let cwd = match &spawn.cwd {
            Some(cwd) => inside(&above, cwd)?,
            None => PathBuf::from(&above.cwd),
        };
        let attachments = context(&above, &spawn.files).await?;
        let prompt = Prompt {
            id: PromptId::new(Uuid::now_v7()),
            origin: PromptOrigin::Agent { agent: parent },
            text: task_text(&spawn.task, &above),
            attachments,
            steers: false,
            at: Timestamp::default(),
        };
        let id = AgentId::new(Uuid::now_v7());
        let label = spawn.label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        let profile = spawn.profile.unwrap_or_else(|| above.profile.to_string());
        let new = NewAgent {
            id,
            profile: Some(profile),
            name: label.as_deref().map(name_of),
            cwd,
            relation: Relation::SubAgent { parent, tool_call: spawn.tool_call, result: None },
            permissions: None,
            worktree: spawn.worktree.then(NewWorktree::default),
            prompt: Some(prompt),
            brief: Brief { label, model: spawn.model, tools: spawn.tools },
        };
        self.create(Actor::Agent(parent), new).await
    }

    /// Takes a sub-agent's result. Its turn ends when its transcript shows that the call is over.
    pub async fn yield_to_parent(&self, child: AgentId, result: String) -> Result<(), HubError> {
        // Refused before a file is written.
        self.with(|state| decide::yield_to_parent(state, child, "", None).map(drop))?;
        let Kept { text, file } = self.shared.keep_result(child, result).await.map_err(|error| {
            HubError::Unavailable(format!("the result cannot be kept: {error}; shorten it and yield again"))
        })?;
        let kept_in = file.as_ref().map(|file| file.display().to_string());
        let settled = self.run(move |state, _| decide::yield_to_parent(state, child, &text, kept_in)).await;
        settled.map(drop)
    }

    /// Sends a message from one agent to another.
    pub async fn send_message(
        &self,
        from: AgentId,
        to: AgentId,
        text: String,
    ) -> Result<SentMessage, HubError> {
        self.refresh_profiles().await?;
        let message = message(from, text);
        let id = message.id;
        self.run(move |state, at| decide::send_message(state, to, &Prompt { at, ..message }, at)).await?;
        Ok(self.sent(to, id))
    }

    /// Sends a message to every agent that the sender sees and that is open; who it could not be sent to, and why.
    pub async fn broadcast(
        &self,
        from: AgentId,
        text: String,
    ) -> Result<(Vec<SentMessage>, Vec<(String, String)>), HubError> {
        let to: Vec<(AgentId, String)> = self.with(|state| {
            let others = decide::visible(state, from)?;
            let open = others.into_iter().filter(|agent| agent.id != from && !agent.is_closed());
            Ok::<_, Refusal>(open.map(|agent| (agent.id, agent.name.clone())).collect())
        })?;
        let (mut sent, mut refused) = (Vec::new(), Vec::new());
        for (id, name) in to {
            match self.send_message(from, id, text.clone()).await {
                Ok(message) => sent.push(message),
                Err(HubError::Refused(refusal)) => refused.push((name, refusal.to_string())),
                Err(error) => return Err(error),
            }
        }
        Ok((sent, refused))
    }

    fn sent(&self, to: AgentId, id: PromptId) -> SentMessage {
        self.with(|state| {
            let recipient = state.agents.get(&to);
            let letters = recipient.into_iter().flat_map(|agent| agent.letters.iter());
            let letter = letters.rev().find(|letter| letter.prompt == id);
            SentMessage {
                id,
                to,
                name: recipient.map(|agent| agent.name.clone()).unwrap_or_default(),
                state: letter.map_or(LetterState::Queued, |letter| letter.state),
            }
        })
    }

    /// The messages that wait for an agent. They count as read once its transcript shows them.
    pub async fn check_messages(&self, agent: AgentId) -> Result<Vec<ReceivedMessage>, HubError> {
        let (sender, shown) = tokio::sync::oneshot::channel();
        self.run(move |state, _| {
            let (prompts, events) = decide::show_messages(state, agent)?;
            let name = |id: AgentId| state.agents.get(&id).map_or_else(|| id.to_string(), |a| a.name.clone());
            let messages = prompts.into_iter().map(|prompt| ReceivedMessage {
                id: prompt.id,
                from: match prompt.origin {
                    PromptOrigin::Agent { agent } => name(agent),
                    PromptOrigin::Person | PromptOrigin::Consort => String::new(),
                },
                text: prompt.text,
                at: prompt.at,
            });
            // The call waits for the commit, so it is still there.
            drop(sender.send(messages.collect::<Vec<_>>()));
            Ok(events)
        })
        .await?;
        Ok(shown.await.unwrap_or_default())
    }
}

/// What an agent is doing, in words that tell what kind of answer it waits for.
pub fn status_words(agent: &Agent) -> &'static str {
    match (agent.status(), agent.asks.first().map(|ask| &ask.body)) {
        (Status::NeedsInput, Some(AskBody::Approval { .. })) => "needs approval",
        (Status::NeedsInput, _) => "needs an answer",
        (status, _) => status.words(),
    }
}

/// The task as the sub-agent reads it.
fn task_text(task: &str, parent: &Agent) -> String {
    format!(
        "{}\n\n---\nYou are a sub-agent: agent `{}` gave you this task, and it does not see what you say here. Do the \
         task and nothing else. When it is done, call the tool yield_to_parent once with the whole result; that ends \
         your turn. If you have no such tool, your last message is taken as the result.",
        task.trim_end(),
        parent.name
    )
}

fn message(from: AgentId, text: String) -> Prompt {
    Prompt {
        id: PromptId::new(Uuid::now_v7()),
        origin: PromptOrigin::Agent { agent: from },
        text,
        attachments: vec![],
        steers: true,
        at: Timestamp::default(),
    }
}

/// A name from a label: its words, as far as they make one.
fn name_of(label: &str) -> String {
    let cleaned: String = label.chars().filter(|letter| !letter.is_control()).take(40).collect();
    cleaned.split_whitespace().collect::<Vec<_>>().join("-")
}

fn invalid(reason: impl Into<String>) -> HubError {
    Refusal::Invalid { reason: reason.into() }.into()
}

/// A folder that an agent may let others work in: its own, one below it, or a worktree that was made for it.
fn inside(agent: &Agent, wanted: &Path) -> Result<PathBuf, HubError> {
    let wanted = Path::new(&agent.cwd).join(wanted);
    let real = wanted.canonicalize();
    let real = real.map_err(|error| invalid(format!("{} cannot be used: {error}", wanted.display())))?;
    let roots =
        std::iter::once(agent.cwd.as_str()).chain(agent.worktrees.iter().map(|tree| tree.path.as_str()));
    let allowed =
        roots.filter_map(|root| Path::new(root).canonicalize().ok()).any(|root| real.starts_with(root));
    if allowed && real.is_dir() {
        return Ok(real);
    }
    let reason = format!(
        "{} is not a folder inside your own working directory {}; a sub-agent works there or below it",
        wanted.display(),
        agent.cwd
    );
    Err(invalid(reason))
}

/// The texts of the files that go with a task. Only files that the parent could read by itself.
async fn context(parent: &Agent, files: &[PathBuf]) -> Result<Vec<Attachment>, HubError> {
    let mut attachments = Vec::new();
    let mut weight = 0;
    for file in files {
        let path = Path::new(&parent.cwd).join(file);
        let (roots, wanted) = (vec![PathBuf::from(&parent.cwd)], path.clone());
        let read = tokio::task::spawn_blocking(move || host::read_file(&roots, &wanted, None, None)).await;
        let text = match read {
            Ok(CallResult::Text { text }) => text,
            Ok(CallResult::Failed { message }) => return Err(invalid(message)),
            other => return Err(invalid(format!("{} cannot be read: {other:?}", path.display()))),
        };
        weight += text.len();
        if weight > MAX_CONTEXT {
            let reason = "the files weigh more than 1 MiB together; name them in the task instead, and the sub-agent reads \
                          what it needs";
            return Err(invalid(reason));
        }
        attachments.push(Attachment::File { path: path.display().to_string(), text });
    }
    Ok(attachments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_makes_a_name() {
        assert_eq!(name_of("look  around\n the house"), "look-around-the-house");
        assert!(name_of(&"x".repeat(100)).len() <= 40);
    }
}
