//! Commands that concern the team, who gives them, and why one is refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::agent::Prompt;
use crate::ids::{AgentId, ProfileId};
use crate::policy::PermissionMode;
use crate::profile::DriverKind;
use crate::relation::Relation;
use crate::team::Brief;
use crate::worktree::Worktree;

/// Who gives a command. It follows from the connection or token, never from an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Actor {
    /// A person, through any client.
    Person,
    /// An agent, through its token.
    Agent(AgentId),
}

impl Actor {
    /// The agent, if it is one.
    pub fn agent(self) -> Option<AgentId> {
        match self {
            Self::Person => None,
            Self::Agent(id) => Some(id),
        }
    }
}

/// A new agent, as asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreateAgent {
    /// Made by the asker, so that asking again is harmless.
    pub id: AgentId,
    /// The wished name; none: one is made from the profile's.
    #[serde(default)]
    pub name: Option<String>,
    /// Which profile.
    pub profile: ProfileId,
    /// The profile's driver.
    pub driver: DriverKind,
    /// Where it works.
    pub cwd: String,
    /// How it stands to its creator.
    #[serde(flatten)]
    pub relation: Relation,
    /// What its approvals follow.
    pub permissions: PermissionMode,
    /// The git worktree that was made for it.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    /// The session of its program's that it takes up.
    #[serde(default)]
    pub session: Option<String>,
    /// The first prompt.
    #[serde(default)]
    pub prompt: Option<Prompt>,
    /// What it is given beyond its profile.
    #[serde(default)]
    pub brief: Brief,
}

/// Why a command is refused. The text is for the one who asked and says what to do.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "refusal", rename_all = "snake_case")]
pub enum Refusal {
    /// There is no such agent.
    #[error("there is no agent `{wanted}`; `consort agents` lists them")]
    NoSuchAgent {
        /// What was asked for.
        wanted: String,
    },
    /// More than one agent fits.
    #[error("`{wanted}` fits more than one agent ({matches}); give more of the id")]
    AmbiguousAgent {
        /// What was asked for.
        wanted: String,
        /// What fits, for people.
        matches: String,
    },
    /// There is no such profile.
    #[error("there is no profile `{wanted}`; `consort profiles list` shows them")]
    NoSuchProfile {
        /// What was asked for.
        wanted: String,
    },
    /// The agent's profile was removed.
    #[error(
        "profile removed: this chat can no longer send messages; `consort rebind AGENT PROFILE` gives it another profile \
         of the same driver in place of `{profile}`"
    )]
    ProfileRemoved {
        /// The removed profile.
        profile: ProfileId,
    },
    /// There is no such open approval or question.
    #[error(
        "`{wanted}` is not open: {}; `consort inbox` lists what is open",
        settled.as_deref().unwrap_or("it was answered, cancelled, or never asked")
    )]
    NotOpen {
        /// What was asked for.
        wanted: String,
        /// Who settled it and how, if that was lately.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settled: Option<String>,
    },
    /// The answer does not fit what was asked.
    #[error("that answer does not fit: {reason}")]
    WrongAnswer {
        /// Why.
        reason: String,
    },
    /// The agent is closed.
    #[error("agent `{name}` is closed; `consort reopen {name}` takes it up again")]
    Closed {
        /// Its name.
        name: String,
    },
    /// The agent failed too often.
    #[error("agent `{name}` crashed repeatedly and is parked; `consort reopen {name}` starts it again")]
    Parked {
        /// Its name.
        name: String,
    },
    /// The agent is not in a state for this.
    #[error("agent `{name}` is {status}, so it cannot be {action}")]
    WrongStatus {
        /// Its name.
        name: String,
        /// What it is.
        status: String,
        /// What was asked.
        action: String,
    },
    /// A limit is reached.
    #[error("{limit} is the limit on {what}; close one first, or raise the limit in config.toml")]
    LimitReached {
        /// The limit.
        limit: u32,
        /// Of what.
        what: String,
    },
    /// So much was said that more would be a loop.
    #[error(
        "{limit} messages went between you and `{name}` in the last {minutes} minutes; if nothing is left to decide, end \
         your turn without another message, else put all you still need into one message later"
    )]
    TooManyMessages {
        /// The limit.
        limit: u32,
        /// The other agent.
        name: String,
        /// How long is looked back.
        minutes: u32,
    },
    /// A budget is used up.
    #[error(
        "{budget} is used up; go on without more sub-agents, or ask the person to raise it in config.toml"
    )]
    BudgetSpent {
        /// Which one.
        budget: String,
    },
    /// Companions have no companions or sub-agents of their own.
    #[error("a companion cannot have companions; ask its owner to create one")]
    CompanionOfCompanion,
    /// The asker may not do this.
    #[error("not allowed: {reason}")]
    NotAllowed {
        /// Why, and what to do instead.
        reason: String,
    },
    /// Two branches changed the same.
    #[error(
        "`{branch}` and `{base}` changed the same files ({}); nothing was changed: bring them together in {worktree} (`git \
         rebase {base}` or `git merge {base}`), commit, and finish it again",
        files.join(", ")
    )]
    Conflicts {
        /// The worktree's folder.
        worktree: String,
        /// Its branch.
        branch: String,
        /// The branch that it goes back to.
        base: String,
        /// The files.
        files: Vec<String>,
    },
    /// An id that is taken by something else.
    #[error("the id {id} is already used by another agent")]
    IdTaken {
        /// The id.
        id: AgentId,
    },
    /// Something about the request itself is wrong.
    #[error("{reason}")]
    Invalid {
        /// What, and what to do.
        reason: String,
    },
}
