//! Making a worktree for an agent: all of it, or nothing.

use std::path::{Path, PathBuf};

use consort_git::command::shell;
use consort_git::{GitError, Repository, worktree};
use consort_model::event::AgentEvent;
use consort_model::transcript::Writer;
use consort_model::worktree::{MAX_PER_AGENT, name_from, valid_name};
use consort_model::{Actor, AgentId, CreateAgent, Event, NoticeLevel, Refusal, State, Timestamp, Worktree};

use super::copy::copy;
use super::plan::Plan;
use super::project::Project;
use crate::error::HubError;
use crate::hub::{Hub, created};

/// How many names are tried for a worktree that has none given.
const TRIED_NAMES: u32 = 1000;

/// A worktree, as somebody wishes for one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewWorktree {
    /// Its name; none: one is made of the agent's.
    pub name: Option<String>,
    /// The branch that it begins at; none: the one that is checked out.
    pub base: Option<String>,
}

/// A worktree that was made and is not yet in anybody's record.
struct Made {
    plan: Plan,
    /// The folder in it that corresponds to the one it was made from.
    folder: PathBuf,
    /// What was done, for the transcript.
    notice: String,
}

impl Hub {
    /// Creates an agent that works in a worktree of its own. What is refused leaves neither of them behind.
    pub(crate) async fn create_in_worktree(
        &self,
        actor: Actor,
        mut request: CreateAgent,
        wish: &NewWorktree,
    ) -> Result<(), HubError> {
        let id = request.id;
        let events = self.with(|state| created(state, actor, &request, Timestamp::default()))?;
        // One that is there already is not made again. Its worktree is named as it is going to be.
        let Some(Event::Agent { change: AgentEvent::Created { record }, .. }) = events.first() else {
            return Ok(());
        };
        let name = record.name.clone();
        let made = self.make_worktree(id, Path::new(&request.cwd), wish, &name).await?;
        request.cwd = made.folder.to_string_lossy().into_owned();
        request.worktree = Some(made.plan.worktree.clone());
        let notice = made.notice.clone();
        let decide = move |state: &State, at| {
            let mut events = created(state, actor, &request, at)?;
            if let Some(Event::Agent { change: AgentEvent::Created { record }, .. }) = events.first() {
                let mut writer = Writer::new(record, at);
                writer.notice(NoticeLevel::Info, notice);
                let notes = writer.finish().into_iter().map(|change| Event::of(id, change));
                events.extend(notes.collect::<Vec<_>>());
            }
            Ok(events)
        };
        let outcome = self.run(decide).await;
        self.settle(&made.plan, outcome.map(drop)).await
    }

    /// Makes a worktree for an agent that is there already.
    pub async fn add_worktree(&self, id: AgentId, wish: &NewWorktree) -> Result<Worktree, HubError> {
        let agent = self.with(|state| state.agent(id).cloned())?;
        if agent.is_closed() {
            return Err(Refusal::Closed { name: agent.name }.into());
        }
        let check = |count: usize| match count < MAX_PER_AGENT {
            true => Ok(()),
            false => {
                let what = "worktrees of one agent".to_owned();
                Err(Refusal::LimitReached { limit: MAX_PER_AGENT as u32, what })
            }
        };
        check(agent.worktrees.len())?;
        let made = self.make_worktree(id, Path::new(&agent.cwd), wish, &agent.name).await?;
        let (worktree, notice) = (made.plan.worktree.clone(), made.notice.clone());
        let decide = move |state: &State, at| {
            let agent = state.agent(id)?;
            check(agent.worktrees.len())?;
            let mut writer = Writer::new(agent, at);
            writer.push(AgentEvent::WorktreeAdded { worktree });
            writer.notice(NoticeLevel::Info, notice);
            Ok(writer.finish().into_iter().map(|change| Event::of(id, change)).collect())
        };
        let added = self.run(decide).await;
        self.settle(&made.plan, added.map(drop)).await?;
        Ok(made.plan.worktree)
    }

    /// Takes a worktree back that did not get into the record it was made for.
    async fn settle(&self, plan: &Plan, outcome: Result<(), HubError>) -> Result<(), HubError> {
        let kept = self.with(|state| is_kept(state, plan));
        self.worktrees().is_made(&plan.worktree.path);
        match kept {
            true => self.worktrees().plans.forget(plan),
            false => self.take_back(plan).await.map_err(|left| both(outcome.as_ref().err(), &left))?,
        }
        outcome
    }

    async fn take_back(&self, plan: &Plan) -> Result<(), GitError> {
        let Worktree { path, branch, base_commit, .. } = &plan.worktree;
        worktree::undo(&plan.common, Path::new(path), branch, base_commit).await?;
        self.worktrees().plans.forget(plan);
        Ok(())
    }

    async fn make_worktree(
        &self,
        agent: AgentId,
        from: &Path,
        wish: &NewWorktree,
        agent_name: &str,
    ) -> Result<Made, HubError> {
        let name = wish.name.as_deref().map(valid_name).transpose()?;
        let repository = Repository::open(from).await?;
        let (base, commit) = repository.base(wish.base.as_deref()).await?;
        let project = Project::read(&repository.root)?;
        let shared = self.worktrees();
        let plan = {
            let _one_at_a_time = shared.changing.lock().await;
            let folder = made_folder(&project.folder(&repository, &shared.folder))?;
            let name = match name {
                Some(name) => name,
                None => {
                    free_name(&repository, &folder, &project.branch_prefix, &name_from(agent_name)).await?
                }
            };
            let path = folder.join(&name);
            let worktree = Worktree {
                branch: format!("{}{name}", project.branch_prefix),
                path: text(&path)?,
                name,
                base,
                base_commit: commit,
                repository: text(&repository.root)?,
            };
            if !worktree::is_free(&repository, &path, &worktree.branch).await? {
                let (name, branch) = (&worktree.name, &worktree.branch);
                let reason = format!(
                    "the name `{name}` is taken: there is a branch `{branch}` or a folder {} already; choose another one",
                    path.display()
                );
                return Err(Refusal::Invalid { reason }.into());
            }
            let plan = Plan { agent, worktree, common: repository.common.clone() };
            shared.plans.keep(&plan).map_err(|error| {
                HubError::Unavailable(format!("the plan of a worktree cannot be written: {error}"))
            })?;
            shared.is_being_made(&plan.worktree.path);
            let added =
                worktree::add(&repository, &path, &plan.worktree.branch, &plan.worktree.base_commit).await;
            if let Err(error) = added {
                shared.is_made(&plan.worktree.path);
                if path.symlink_metadata().is_err() {
                    shared.plans.forget(&plan);
                }
                return Err(error.into());
            }
            plan
        };
        match prepare(&repository, &project, &plan.worktree).await {
            Ok((folder, notice)) => Ok(Made { plan, folder, notice }),
            Err(refusal) => {
                let taken_back = self.take_back(&plan).await;
                shared.is_made(&plan.worktree.path);
                let refusal = refusal.into();
                Err(match taken_back {
                    Ok(()) => refusal,
                    Err(left) => both(Some(&refusal), &left),
                })
            }
        }
    }
}

/// Whether an agent's record has the worktree of a plan.
pub fn is_kept(state: &State, plan: &Plan) -> bool {
    let agent = state.agents.get(&plan.agent);
    agent.is_some_and(|agent| agent.worktrees.iter().any(|it| it.path == plan.worktree.path))
}

/// Copies what git does not have, runs the setup, and finds the folder to work in.
async fn prepare(
    repository: &Repository,
    project: &Project,
    worktree: &Worktree,
) -> Result<(PathBuf, String), Refusal> {
    let invalid = |reason: String| Refusal::Invalid { reason };
    let path = PathBuf::from(&worktree.path);
    let (from, to, names) = (repository.root.clone(), path.clone(), project.copy.clone());
    let copied = tokio::task::spawn_blocking(move || copy(&from, &to, &names)).await;
    let copied = copied.map_err(|error| invalid(error.to_string()))?.map_err(invalid)?;
    if let Some(setup) = &project.setup {
        let environment = [
            ("CONSORT_WORKTREE", worktree.path.clone()),
            ("CONSORT_BRANCH", worktree.branch.clone()),
            ("CONSORT_REPOSITORY", worktree.repository.clone()),
        ];
        let ended = shell(setup, &path, &environment, project.setup_limit()).await;
        let ended = ended.map_err(|error| invalid(format!("the project's setup cannot be run: {error}")))?;
        match ended {
            Some(output) if output.code == Some(0) => {}
            Some(output) => {
                let reason = format!("the project's setup (`{setup}`) failed: {}", output.reason());
                return Err(invalid(reason));
            }
            None => {
                let limit = project.setup_limit().as_secs();
                let reason =
                    format!("the project's setup (`{setup}`) took longer than {limit} seconds and was ended");
                return Err(invalid(reason));
            }
        }
    }
    // Joining nothing would leave a slash behind.
    let inside = Some(&repository.prefix).filter(|prefix| !prefix.as_os_str().is_empty());
    let folder = inside.map_or_else(|| path.clone(), |prefix| path.join(prefix));
    if !folder.is_dir() {
        let reason = format!(
            "`{}` is not in the branch `{}`, so no agent can start there; commit it first, or start from {}",
            repository.prefix.display(),
            worktree.base,
            repository.root.display()
        );
        return Err(invalid(reason));
    }
    let mut notice = format!(
        "Works in the worktree {} on the branch {}, which begins at {} ({}).",
        worktree.path,
        worktree.branch,
        worktree.base,
        worktree.base_commit.chars().take(10).collect::<String>()
    );
    if !copied.is_empty() {
        notice.push_str(&format!(" Copied: {}.", copied.join(", ")));
    }
    if let Some(setup) = &project.setup {
        notice.push_str(&format!(" Setup: {setup}"));
    }
    Ok((folder, notice))
}

/// The folder of a repository's worktrees, by its real name.
fn made_folder(folder: &Path) -> Result<PathBuf, Refusal> {
    std::fs::create_dir_all(folder).and_then(|()| folder.canonicalize()).map_err(|error| Refusal::Invalid {
        reason: format!("the folder {} for worktrees cannot be made: {error}", folder.display()),
    })
}

/// The first of `name`, `name-2`, `name-3`, ... that is free.
async fn free_name(
    repository: &Repository,
    folder: &Path,
    prefix: &str,
    name: &str,
) -> Result<String, HubError> {
    for n in 1..=TRIED_NAMES {
        let name = if n == 1 { name.to_owned() } else { format!("{name}-{n}") };
        if worktree::is_free(repository, &folder.join(&name), &format!("{prefix}{name}")).await? {
            return Ok(name);
        }
    }
    let reason = format!("no name is free for a worktree like `{name}`; give one with --worktree=NAME");
    Err(Refusal::Invalid { reason }.into())
}

fn text(path: &Path) -> Result<String, Refusal> {
    path.to_str().map(str::to_owned).ok_or_else(|| Refusal::Invalid {
        reason: format!("{} is not UTF-8; worktrees need paths that are", path.display()),
    })
}

/// The refusal that led to taking something back, and why that did not work.
fn both(first: Option<&HubError>, left: &GitError) -> HubError {
    let first = first.map_or_else(|| "the agent was not created".to_owned(), ToString::to_string);
    let reason =
        format!("{first}; and what was made could not be taken back: {left}; see `consort worktrees list`");
    Refusal::Invalid { reason }.into()
}
