//! What a tool is: a name, a description for models, a schema, and one function.
//!
//! A new tool is an `async fn(Call, Arguments) -> Outcome` and a line with [`TeamTool::new`] in its group (see
//! [`crate::tools`]). Arguments are parsed before the function is called, and a [`Refused`] becomes a tool error that the
//! model reads, never an error of the protocol. A function that was begun is finished even if the agent's program hangs
//! up, so that nothing is left half done; one that waits uses [`Waiting::wait`], which ends with the connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use consort_hub::{Hub, HubError};
use consort_model::{Agent, AgentId, Refusal, State, ToolCallId, decide, visibility};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, transform};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::wait::Waiting;

/// One use of a tool: who asks, and what the tool may use.
pub struct Call {
    /// Everything there is to ask.
    pub hub: Arc<Hub>,
    /// Who asks. It follows from the token.
    pub caller: AgentId,
    /// The agent's own name for this call, where its program tells.
    pub tool_call: Option<ToolCallId>,
    /// For calls that wait.
    pub waiting: Waiting,
}

/// How a tool ends.
pub type Outcome = Result<Reply, Refused>;

/// What a tool gives back: words for the model, and the same as data.
#[derive(Debug)]
pub struct Reply {
    text: String,
    data: Value,
}

impl Reply {
    /// `data` must become an object.
    pub fn new(text: impl Into<String>, data: impl Serialize) -> Self {
        // These types always serialise.
        Self { text: text.into(), data: serde_json::to_value(data).unwrap_or_default() }
    }
}

/// Why a tool did not do what it was asked: one sentence that says what to do.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    /// A refusal in these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

/// The same refusals as people get, with advice that an agent can follow.
impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::NoSuchAgent { wanted } => {
                format!("there is no agent `{wanted}` that you can see; list_agents shows those you can")
            }
            Refusal::AmbiguousAgent { wanted, .. } => {
                format!("`{wanted}` fits more than one agent; use the id that list_agents shows")
            }
            Refusal::NoSuchProfile { wanted } => {
                format!("there is no profile `{wanted}`; list_profiles shows those there are")
            }
            Refusal::Closed { name } => format!("agent `{name}` is closed; only a person can reopen it"),
            Refusal::Parked { name } => {
                format!(
                    "agent `{name}` crashed repeatedly and is parked until a person reopens it; go on without it"
                )
            }
            Refusal::ProfileRemoved { profile } => format!(
                "the profile `{profile}` of that agent was removed, so it takes no messages until a person gives it another"
            ),
            Refusal::LimitReached { limit, what } => format!(
                "{limit} is the limit on {what}; close one that you do not need, or wait until one is done"
            ),
            other => other.to_string(),
        })
    }
}

impl From<HubError> for Refused {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Refused(refusal) => refusal.into(),
            other => Self(other.to_string()),
        }
    }
}

/// The arguments of a tool that takes none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Who is offered a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// Every agent.
    Everyone,
    /// Sub-agents whose task is not over.
    SubAgents,
    /// Agents that may create others.
    Creators,
    /// Agents that may have sub-agents.
    Parents,
}

impl Audience {
    /// Whether this agent is among them.
    pub fn includes(self, state: &State, agent: &Agent) -> bool {
        match self {
            Self::Everyone => true,
            Self::SubAgents => agent.relation.parent().is_some(),
            Self::Creators => decide::may_create(agent).is_ok(),
            Self::Parents => decide::may_spawn(state, agent).is_ok(),
        }
    }
}

/// What a tool changes, as a hint to programs that ask before they call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It only looks.
    Reads,
    /// It adds something.
    Adds,
    /// It ends or stops something.
    Ends,
}

type Run = dyn Fn(Call, JsonObject) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync;

/// A tool and its function.
#[derive(Clone)]
pub struct TeamTool {
    /// What models are told of it.
    pub tool: Tool,
    /// Who is offered it.
    pub audience: Audience,
    run: Arc<Run>,
}

impl TeamTool {
    /// A tool for everyone.
    pub fn new<A, F, R>(name: &'static str, effect: Effect, description: &'static str, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(Call, A) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let hints = ToolAnnotations::new()
            .read_only(effect == Effect::Reads)
            .destructive(effect == Effect::Ends)
            .open_world(false);
        let run = move |call, arguments| -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
            match parse(arguments) {
                Ok(arguments) => Box::pin(run(call, arguments)),
                Err(refused) => Box::pin(std::future::ready(Err(refused))),
            }
        };
        Self {
            tool: Tool::new(name, description, schema::<A>()).with_annotations(hints),
            audience: Audience::Everyone,
            run: Arc::new(run),
        }
    }

    /// The same tool for fewer agents.
    #[must_use]
    pub fn only_for(mut self, audience: Audience) -> Self {
        self.audience = audience;
        self
    }

    /// Uses the tool. What was begun is finished even if nobody waits for it any more.
    pub async fn call(&self, call: Call, arguments: JsonObject) -> CallToolResult {
        let outcome = match call.hub.rule_against(call.caller, &self.tool.name) {
            Some(reason) => Err(Refused(reason)),
            None => tokio::spawn((self.run)(call, arguments)).await.unwrap_or_else(|error| {
                tracing::error!(%error, tool = %self.tool.name, "a tool ended badly");
                Err(Refused::new("this could not be done: an error inside Consort; try something else"))
            }),
        };
        match outcome {
            Ok(Reply { text, data }) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(data);
                result
            }
            Err(refused) => CallToolResult::error(vec![ContentBlock::text(refused.to_string())]),
        }
    }
}

fn parse<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Refused> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Refused(format!("the arguments do not fit: {error}; look at the tool's schema")))
}

/// The schema of a tool's arguments, in the plain form that every program and model understands: without references,
/// and with an optional argument as one that may be left out rather than as one that may be null.
fn schema<A: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.transforms.push(Box::new(transform::RecursiveTransform(|schema: &mut schemars::Schema| {
            schema.remove("title");
            if schema.get("default") == Some(&Value::Null) {
                schema.remove("default");
            }
            let Some(Value::Array(kinds)) = schema.get_mut("type") else { return };
            kinds.retain(|kind| kind != "null");
            if let [kind] = kinds.as_slice() {
                let kind = kind.clone();
                schema.insert("type".to_owned(), kind);
            }
        })));
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    // Models are told by the tool's description what it is about.
    schema.remove("description");
    schema.ensure_object().entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    std::mem::take(schema.ensure_object())
}

impl Call {
    /// The caller's own record. It was there when the call began.
    pub fn me(&self) -> Result<Agent, Refused> {
        Ok(self.hub.with(|state| state.agent(self.caller).cloned())?)
    }

    /// The agent that is meant by a name or id, if the caller knows of it.
    pub fn find(&self, wanted: &str) -> Result<Agent, Refused> {
        self.hub.with(|state| find(state, self.caller, wanted).cloned())
    }
}

/// The agent that is meant, if `asker` knows of it. An agent that it does not know of is not there for it.
pub fn find<'a>(state: &'a State, asker: AgentId, wanted: &str) -> Result<&'a Agent, Refused> {
    let unknown = || Refused::from(Refusal::NoSuchAgent { wanted: wanted.to_owned() });
    let asker = state.agent(asker)?;
    // Names are unique among open agents, so an agent that is known may share one only with closed ones.
    let known = |agent: &&Agent| visibility::knows(asker, agent);
    match state.find(wanted) {
        Ok(agent) => Some(agent).filter(known).ok_or_else(unknown),
        Err(Refusal::AmbiguousAgent { wanted, matches }) => {
            Err(Refusal::AmbiguousAgent { wanted, matches }.into())
        }
        Err(_) => Err(unknown()),
    }
}
