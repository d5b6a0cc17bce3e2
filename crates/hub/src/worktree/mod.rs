//! Worktrees of agents: made with them, listed, finished, removed, and looked at.
//!
//! Owns the order of things, so that what is refused leaves nothing behind ([`make`]), what a killed daemon left
//! ([`plan`]), and who may do what. Git itself is `consort-git`'s, the record is the agent's, a project's wishes stand
//! in [`project`].
//!
//! Invariant: work is removed only by a word that says so, and never because git could not tell.

mod copy;
mod make;
mod plan;
mod project;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use consort_git::changes::{self, Since};
use consort_git::finish::{self, Outcome};
use consort_git::worktree::{self, Standing, Work};
use consort_git::{GitError, Repository};
use consort_model::event::AgentEvent;
use consort_model::transcript::Writer;
use consort_model::{
    Actor, Agent, AgentId, Changes, DiffText, Event, Integration, NoticeLevel, Refusal, State, Status,
    Worktree,
};

pub use make::NewWorktree;
use plan::{Plan, Plans};

use crate::error::HubError;
use crate::hub::Hub;

/// How long a start may be held up by what an earlier daemon left.
const CLEARING_LIMIT: Duration = Duration::from_secs(5);

/// How many worktrees are looked at at the same time.
const AT_ONCE: usize = 8;

/// What the hub keeps for worktrees besides the agents' records.
#[derive(Debug)]
pub struct Worktrees {
    /// Where worktrees are unless the project says otherwise.
    folder: PathBuf,
    plans: Plans,
    /// Held while a repository is changed, so that two changes do not meet halfway.
    changing: tokio::sync::Mutex<()>,
    being_made: Mutex<BTreeSet<String>>,
}

impl Worktrees {
    /// For the worktrees below a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            plans: Plans::new(&folder),
            folder,
            changing: Default::default(),
            being_made: Mutex::default(),
        }
    }

    fn is_being_made(&self, path: &str) {
        self.being_made.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    }

    fn is_made(&self, path: &str) {
        self.being_made.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }

    /// What was planned by a daemon that is no more.
    fn left_over(&self) -> Vec<Plan> {
        let plans = self.plans.all();
        let being_made = self.being_made.lock().unwrap_or_else(PoisonError::into_inner);
        plans.into_iter().filter(|plan| !being_made.contains(&plan.worktree.path)).collect()
    }
}

/// A worktree, as lists show it.
#[derive(Clone, Debug)]
pub struct SeenWorktree {
    pub worktree: Worktree,
    /// The agent that has it; none: it was left over by a daemon that was killed while it made it.
    pub agent: Option<(AgentId, String, Status)>,
    /// How it stands, or why that is not known.
    pub standing: Result<Standing, String>,
}

/// What came of finishing a worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedWorktree {
    pub worktree: Worktree,
    /// How many commits its base got.
    pub commits: u64,
    /// Where its base stands now.
    pub commit: String,
    /// Whether the worktree, its branch and the agents in it are still there.
    pub kept: bool,
}

/// What came of removing one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedWorktree {
    pub worktree: Worktree,
    /// Where its branch stood; none: it was gone.
    pub commit: Option<String>,
    /// Whether its branch is still there, since it is checked out elsewhere.
    pub branch_kept: bool,
}

impl From<GitError> for HubError {
    fn from(error: GitError) -> Self {
        Refusal::Invalid { reason: error.to_string() }.into()
    }
}

impl Hub {
    /// Clears away what a killed daemon left, where nothing is in it; what cannot be cleared is listed.
    pub(crate) async fn clear_leftover_worktrees(&self) {
        let plans = self.worktrees().plans.all();
        if plans.is_empty() {
            return;
        }
        let clearing = async {
            for plan in plans {
                match self.clear_leftover(&plan).await {
                    Ok(true) => self.worktrees().plans.forget(&plan),
                    Ok(false) => {
                        tracing::warn!(path = plan.worktree.path, "a worktree without an agent holds work")
                    }
                    Err(error) => {
                        tracing::warn!(%error, path = plan.worktree.path, "a worktree without an agent stays");
                    }
                }
            }
        };
        if tokio::time::timeout(CLEARING_LIMIT, clearing).await.is_err() {
            tracing::warn!("worktrees without an agent stay, since looking at them takes too long");
        }
    }

    /// Whether nothing of a plan is left that nobody knows of.
    async fn clear_leftover(&self, plan: &Plan) -> Result<bool, GitError> {
        if self.with(|state| make::is_kept(state, plan)) {
            return Ok(true);
        }
        let Worktree { path, branch, base_commit, .. } = &plan.worktree;
        if !plan.common.is_dir() {
            return Ok(!Path::new(path).exists());
        }
        if !worktree::work(&plan.common, Path::new(path), branch).await?.is_empty() {
            return Ok(false);
        }
        worktree::undo(&plan.common, Path::new(path), branch, base_commit).await?;
        tracing::info!(path, "a worktree was cleared away whose agent was never created");
        Ok(true)
    }

    /// The worktrees of an agent and of those that it created.
    pub async fn list_worktrees_of(&self, id: AgentId) -> Vec<SeenWorktree> {
        look_at(self.recorded(|agent| agent.id == id || agent.created_by == Some(id))).await
    }

    /// The worktrees in the records of some agents.
    fn recorded(&self, wanted: impl Fn(&Agent) -> bool) -> Vec<Had> {
        self.with(|state| {
            let of = |agent: &Agent| {
                let who = (agent.id, agent.name.clone(), agent.status());
                agent.worktrees.iter().map(move |it| (it.clone(), Some(who.clone()))).collect::<Vec<_>>()
            };
            state.agents.values().filter(|agent| wanted(agent)).flat_map(of).collect()
        })
    }

    /// All worktrees that agents have, and those that were left over.
    pub async fn list_worktrees(&self) -> Vec<SeenWorktree> {
        let recorded = self.recorded(|_| true);
        let known: BTreeSet<String> = recorded.iter().map(|(it, _)| it.path.clone()).collect();
        let left = self.worktrees().left_over().into_iter().map(|plan| (plan.worktree, None));
        look_at(recorded.into_iter().chain(left.filter(|(it, _)| !known.contains(&it.path))).collect()).await
    }

    /// Brings a worktree's branch home to its base; then, unless it is to be kept, closes the agents that work in it and
    /// removes it. An agent may do this for itself and for those it created, and its own worktree stays.
    pub async fn finish_worktree(
        &self,
        actor: Actor,
        wanted: &str,
        integration: Integration,
        keep: bool,
    ) -> Result<FinishedWorktree, HubError> {
        let (owner, worktree) = self.find_worktree(actor, wanted)?;
        let asker = actor.agent();
        let inside = self.agents_inside(&worktree, asker);
        self.check_quiet(&inside, "finished")?;
        let keep = keep || self.with(|state| asker.is_some_and(|id| works_inside(state, id, &worktree)));
        let path = PathBuf::from(&worktree.path);
        let common = common(&worktree).await?;
        let _one_at_a_time = self.worktrees().changing.lock().await;
        let outcome = finish::finish(&common, &path, &worktree.branch, &worktree.base, integration).await?;
        let (commits, commit) = match outcome {
            Outcome::Done { commits, commit } => (commits, commit),
            Outcome::Conflicts { files } => {
                let Worktree { path, branch, base, .. } = worktree;
                return Err(Refusal::Conflicts { worktree: path, branch, base, files }.into());
            }
        };
        let word = if commits == 1 { "commit" } else { "commits" };
        let brought = format!("{commits} {word} of {} went to {}", worktree.branch, worktree.base);
        if keep {
            self.note(owner, format!("{brought}; the worktree stays."), None).await?;
        } else {
            self.close_all(actor, &inside).await?;
            worktree::remove(&common, &path, &worktree.branch, false).await?;
            let note = format!("{brought}; the worktree {} was removed.", worktree.path);
            self.note(owner, note, Some(worktree.path.clone())).await?;
        }
        Ok(FinishedWorktree { worktree, commits, commit, kept: keep })
    }

    /// Closes the agents that work in a worktree and removes it with its branch. Without `force` it is refused if there
    /// is work in it, or an agent at work.
    pub async fn remove_worktree(&self, wanted: &str, force: bool) -> Result<RemovedWorktree, HubError> {
        let left = self.worktrees().left_over().into_iter().find(|plan| {
            let Worktree { name, path, branch, .. } = &plan.worktree;
            [name, path, branch].into_iter().any(|it| it == wanted)
                && !self.with(|state| make::is_kept(state, plan))
        });
        let (owner, worktree, common) = match &left {
            Some(plan) => (None, plan.worktree.clone(), plan.common.clone()),
            None => {
                let (owner, worktree) = self.find_worktree(Actor::Person, wanted)?;
                let common = common(&worktree).await?;
                (Some(owner), worktree, common)
            }
        };
        let path = PathBuf::from(&worktree.path);
        let inside = self.agents_inside(&worktree, None);
        let _one_at_a_time = self.worktrees().changing.lock().await;
        if !force {
            self.check_quiet(&inside, "removed")?;
            refuse_work(&path, &worktree::work(&common, &path, &worktree.branch).await?)?;
        }
        self.close_all(Actor::Person, &inside).await?;
        let removed = worktree::remove(&common, &path, &worktree.branch, force).await?;
        if let Some(plan) = &left {
            self.worktrees().plans.forget(plan);
        }
        if let Some(owner) = owner {
            let was = removed
                .commit
                .as_deref()
                .map(|commit| format!(", which was at {commit}"))
                .unwrap_or_default();
            let branch = &worktree.branch;
            let note = match removed.branch_kept {
                true => format!("The worktree {} was removed; its branch {branch} stays.", worktree.path),
                false => format!("The worktree {} was removed with its branch {branch}{was}.", worktree.path),
            };
            self.note(owner, note, Some(worktree.path.clone())).await?;
        }
        Ok(RemovedWorktree { worktree, commit: removed.commit, branch_kept: removed.branch_kept })
    }

    /// What an agent changed: since its branch began, or since the last commit of its folder.
    pub async fn changes(&self, id: AgentId) -> Result<Changes, HubError> {
        let (folder, since) = self.with(|state| place(state, id))?;
        Ok(changes::changes(&folder, &since).await?)
    }

    /// The same with the diff, of all files or of these.
    pub async fn diff(&self, id: AgentId, paths: &[String]) -> Result<DiffText, HubError> {
        let (folder, since) = self.with(|state| place(state, id))?;
        Ok(changes::diff(&folder, &since, paths).await?)
    }

    /// The worktree that is meant, and the agent that has it, if the asker may touch it.
    fn find_worktree(&self, actor: Actor, wanted: &str) -> Result<(AgentId, Worktree), Refusal> {
        self.with(|state| {
            let (owner, worktree) = state.find_worktree(wanted)?;
            let may = match actor.agent() {
                None => true,
                Some(asker) => owner.id == asker || owner.created_by == Some(asker),
            };
            if may {
                return Ok((owner.id, worktree.clone()));
            }
            Err(Refusal::NotAllowed {
                reason: "an agent finishes its own worktrees and those of agents that it created only"
                    .to_owned(),
            })
        })
    }

    /// The open agents that work in a worktree, but for the one that asks.
    fn agents_inside(&self, worktree: &Worktree, asker: Option<AgentId>) -> Vec<AgentId> {
        self.with(|state| {
            let open = state.agents.values().filter(|agent| !agent.is_closed() && Some(agent.id) != asker);
            open.filter(|agent| worktree.holds(&agent.cwd)).map(|agent| agent.id).collect()
        })
    }

    /// Refuses while an agent is in a turn.
    fn check_quiet(&self, agents: &[AgentId], action: &str) -> Result<(), Refusal> {
        let busy = self.with(|state| {
            let agents = agents.iter().filter_map(|id| state.agents.get(id));
            let busy = agents.filter(|agent| agent.turn.is_some() || !agent.queue.is_empty());
            busy.map(|agent| agent.name.clone()).collect::<Vec<_>>().join(", ")
        });
        if busy.is_empty() {
            return Ok(());
        }
        let reason =
            format!("the worktree cannot be {action} while {busy} is at work in it; wait, or interrupt it");
        Err(Refusal::Invalid { reason })
    }

    async fn close_all(&self, actor: Actor, agents: &[AgentId]) -> Result<(), HubError> {
        for agent in agents {
            self.close(actor, *agent).await?;
        }
        Ok(())
    }

    /// Writes into an agent's transcript, and takes a worktree that is gone out of its record.
    async fn note(&self, id: AgentId, text: String, gone: Option<String>) -> Result<(), HubError> {
        let decide = move |state: &State, at| {
            let mut writer = Writer::new(state.agent(id)?, at);
            if let Some(path) = gone {
                writer.push(AgentEvent::WorktreeRemoved { path });
            }
            writer.notice(NoticeLevel::Info, text);
            Ok(writer.finish().into_iter().map(|change| Event::of(id, change)).collect())
        };
        self.run(decide).await.map(drop)
    }
}

/// A worktree with the agent that has it.
type Had = (Worktree, Option<(AgentId, String, Status)>);

/// Looks how worktrees stand, some at a time.
async fn look_at(all: Vec<Had>) -> Vec<SeenWorktree> {
    let mut seen = Vec::with_capacity(all.len());
    for some in all.chunks(AT_ONCE) {
        let looks = some.iter().map(|(worktree, agent)| async move {
            let standing = standing(worktree).await.map_err(|error| error.to_string());
            SeenWorktree { worktree: worktree.clone(), agent: agent.clone(), standing }
        });
        seen.extend(crate::hub::join_all(looks).await);
    }
    seen.sort_by(|one, other| one.worktree.path.cmp(&other.worktree.path));
    seen
}

fn works_inside(state: &State, agent: AgentId, worktree: &Worktree) -> bool {
    state.agents.get(&agent).is_some_and(|agent| worktree.holds(&agent.cwd))
}

fn refuse_work(path: &Path, work: &[Work]) -> Result<(), Refusal> {
    if work.is_empty() {
        return Ok(());
    }
    let work = work.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let path = path.display();
    let reason = format!(
        "the worktree {path} is kept, since there is work in it: {work}; commit and finish it, or remove it with --force"
    );
    Err(Refusal::Invalid { reason })
}

/// Where git keeps what the worktrees of a repository share.
async fn common(worktree: &Worktree) -> Result<PathBuf, GitError> {
    match Repository::open(Path::new(&worktree.path)).await {
        Ok(repository) => Ok(repository.common),
        // Its folder is gone or broken; the repository may still be there.
        Err(error) => match Repository::open(Path::new(&worktree.repository)).await {
            Ok(repository) => Ok(repository.common),
            Err(_) => Err(error),
        },
    }
}

async fn standing(worktree: &Worktree) -> Result<Standing, GitError> {
    let common = common(worktree).await?;
    worktree::standing(&common, Path::new(&worktree.path), &worktree.branch, &worktree.base).await
}

/// Where an agent's changes are, and since when they count.
fn place(state: &State, id: AgentId) -> Result<(PathBuf, Since), Refusal> {
    let agent = state.agent(id)?;
    let since = |it: &Worktree| Since::Branch { name: it.base.clone(), commit: it.base_commit.clone() };
    Ok(match (state.worktree_of(agent), agent.worktrees.last()) {
        (Some(worktree), _) => (PathBuf::from(&agent.cwd), since(worktree)),
        (None, Some(own)) => (PathBuf::from(&own.path), since(own)),
        (None, None) => (PathBuf::from(&agent.cwd), Since::LastCommit),
    })
}
