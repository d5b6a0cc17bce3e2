//! The hub itself: commands in, tasks told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consort_model::event::AgentEvent;
use consort_model::policy::{self, Subject};
use consort_model::{
    Actor, Agent, AgentId, Answer, AskId, Availability, Brief, CreateAgent, Event, Item, ItemIndex, Limits,
    Login, PermissionMode, Profile, ProfileId, ProfileSummary, Prompt, PromptId, Refusal, Relation, Rule,
    RuleId, RuleScope, State, Status, decide,
};
use consort_runner::client;
use consort_store::config::migrate::Imported;
use consort_store::{Committed, Database, OpenError, Opened, Page};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::error::HubError;
use crate::feed::{Feed, Subscription};
use crate::profiles::{ProfileChanges, Profiles, Version};
use crate::real_path::RealPaths;
use crate::shared::Shared;
use crate::task::{AnswerOrder, ChooseOrder, Order, Task};
use crate::team::{PORT_SETTING, TOKEN_SETTING, Team};
use crate::teamwork::Teamwork;
use crate::worktree::{NewWorktree, Worktrees};

/// What a hub needs to know of the world.
pub struct Settings {
    /// The folder of the database.
    pub data: PathBuf,
    /// The file with profiles and limits.
    pub config: PathBuf,
    /// One folder per runner.
    pub runners: PathBuf,
    /// The `consort` program, which is also the runner.
    pub program: PathBuf,
    /// What agents' processes inherit before their profile changes it.
    pub environment: Vec<(String, String)>,
}

/// A new agent, as a client asks for it.
pub struct NewAgent {
    pub id: AgentId,
    pub profile: Option<String>,
    pub name: Option<String>,
    pub cwd: PathBuf,
    pub relation: Relation,
    pub permissions: Option<PermissionMode>,
    /// A git worktree of its own to work in, made from the one that `cwd` is in.
    pub worktree: Option<NewWorktree>,
    pub prompt: Option<Prompt>,
    pub brief: Brief,
}

/// Knows all agents and routes everything.
pub struct Hub {
    pub(crate) shared: Arc<Shared>,
    feed: Arc<Feed>,
    tasks: Mutex<HashMap<AgentId, RunningTask>>,
    pub(crate) teamwork: Teamwork,
}

/// The task of an agent's newest process.
struct RunningTask {
    generation: u32,
    orders: mpsc::UnboundedSender<Order>,
    handle: JoinHandle<()>,
}

impl Hub {
    /// Opens the store and goes on with every agent where the last hub left it.
    ///
    /// `listen` is told the port at which agents reached their tools the last time, and says the one at which they do
    /// from now on; none: they have no tools. It is asked before any agent is started.
    pub async fn open(
        settings: Settings,
        listen: impl FnOnce(Option<u16>) -> Option<u16>,
    ) -> Result<Arc<Self>, OpenError> {
        let feed = Arc::new(Feed::default());
        let database = Database::open(&settings.data)?;
        let before = database.settings(PORT_SETTING)?.first().and_then(|(_, port)| port.parse().ok());
        let port = listen(before);
        let team = Team::new(port, database.settings(TOKEN_SETTING)?);
        let profiles =
            Profiles::open(&settings.config, settings.environment.clone(), database.revision_key());
        let publish = Arc::clone(&feed);
        let listener = Box::new(move |events: &[_], _: &State| publish.publish(events));
        let Opened { store, links } = database.start(profiles.summaries(), profiles.limits(), listener)?;
        let shared = Arc::new(Shared {
            store,
            profiles,
            program: settings.program,
            runners: settings.runners,
            results: settings.data.join("results"),
            worktrees: Worktrees::new(settings.data.join("worktrees")),
            environment: settings.environment,
            team,
        });
        if let Some(port) = port.filter(|port| Some(*port) != before)
            && let Err(error) = shared.store.set_setting(PORT_SETTING, Some(port.to_string())).await
        {
            tracing::warn!(%error, port, "the port of the team tools could not be kept");
        }
        // Before anything is heard of the agents: what their transcripts show from now on tells what they have seen.
        if let Err(error) = shared.commit(|state, _| Ok(decide::reopen_calls(state))).await {
            tracing::error!(%error, "calls of the last daemon stay open");
        }
        let hub = Arc::new(Self { shared, feed, tasks: Mutex::default(), teamwork: Teamwork::default() });
        hub.clear_leftover_worktrees().await;
        let mut processes: BTreeSet<(AgentId, u32)> =
            links.iter().map(|link| (link.agent, link.generation)).collect();
        hub.shared.store.with(|state| {
            let wanted = state.agents.values().filter(|agent| agent.wants_process());
            processes.extend(wanted.map(|agent| (agent.id, agent.generation)));
        });
        let known: BTreeSet<PathBuf> =
            processes.iter().map(|(id, generation)| hub.shared.runner_dir(*id, *generation)).collect();
        // Found before anything new is started, so that no new runner is taken for an orphan.
        let orphans = orphans(&hub.shared.runners, &known);
        crate::react::start(&hub);
        for (id, generation) in processes {
            hub.start_task(id, generation);
        }
        let waking = Arc::clone(&hub);
        tokio::spawn(async move {
            clear_away(orphans).await;
            if let Err(error) = waking.wake_all().await {
                tracing::warn!(%error, "agents with waiting prompts were not started");
            }
        });
        Ok(hub)
    }

    /// Looks at the newest state. Be short.
    pub fn with<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.shared.store.with(look)
    }

    /// Events from now on.
    pub fn subscribe(&self) -> Subscription {
        self.feed.subscribe()
    }

    /// What is kept for worktrees.
    pub(crate) fn worktrees(&self) -> &Worktrees {
        &self.shared.worktrees
    }

    /// Where the folders of the runners are.
    pub(crate) fn runners(&self) -> &Path {
        &self.shared.runners
    }

    /// What is wrong with `config.toml`, if anything.
    pub fn config_problem(&self) -> Option<String> {
        self.shared.profiles.problem()
    }

    /// Creates an agent and starts its process.
    pub async fn create(&self, actor: Actor, new: NewAgent) -> Result<AgentId, HubError> {
        self.create_with(actor, new, None).await
    }

    /// Creates an agent that goes on with a session of its program's.
    pub async fn resume(&self, new: NewAgent, session: String) -> Result<AgentId, HubError> {
        self.create_with(Actor::Person, new, Some(session)).await
    }

    async fn create_with(
        &self,
        actor: Actor,
        new: NewAgent,
        session: Option<String>,
    ) -> Result<AgentId, HubError> {
        self.refresh_profiles().await?;
        let profile = self.shared.profiles.find(new.profile.as_deref()).ok_or_else(|| match &new.profile {
            Some(wanted) => Refusal::NoSuchProfile { wanted: wanted.clone() },
            None => Refusal::Invalid {
                reason: "no profile can be used on this machine; `consort profiles list` says why, and `consort profiles \
                         add` makes another"
                    .to_owned(),
            },
        })?;
        self.check_usable(&profile)?;
        check_cwd(&new.cwd)?;
        let request = CreateAgent {
            id: new.id,
            name: new.name,
            profile: profile.id.clone(),
            driver: profile.driver,
            cwd: new.cwd.to_string_lossy().into_owned(),
            relation: new.relation,
            permissions: new.permissions.unwrap_or(profile.default_permissions),
            worktree: None,
            session,
            prompt: new.prompt,
            brief: new.brief,
        };
        let id = request.id;
        match &new.worktree {
            Some(wish) => self.create_in_worktree(actor, request, wish).await?,
            None => drop(self.run(move |state, at| created(state, actor, &request, at)).await?),
        }
        Ok(id)
    }

    /// Accepts a prompt. Returns how many stand before it, or none if its turn has begun.
    pub async fn send(&self, id: AgentId, prompt: Prompt) -> Result<Option<u32>, HubError> {
        self.refresh_profiles().await?;
        let prompt_id = prompt.id;
        self.run(move |state, at| decide::send(state, id, &Prompt { at, ..prompt.clone() })).await?;
        Ok(self.with(|state| {
            let queue = &state.agents.get(&id)?.queue;
            queue.iter().position(|waiting| waiting.id == prompt_id).map(|place| place as u32)
        }))
    }

    /// Changes or drops a prompt that still waits.
    pub async fn edit_prompt(
        &self,
        id: AgentId,
        prompt: PromptId,
        text: Option<String>,
    ) -> Result<(), HubError> {
        self.run(move |state, _| decide::edit_queued(state, id, prompt, text.as_deref())).await.map(drop)
    }

    /// Stops the turn of an agent and those of its sub-agents.
    pub async fn interrupt(&self, actor: Actor, id: AgentId) -> Result<(), HubError> {
        let message = PromptId::new(Uuid::now_v7());
        self.run(move |state, at| decide::interrupt_team(state, actor, id, message, at)).await?;
        // Whoever was spawned before that is told; later ones were refused.
        for target in self.with(|state| decide::interrupt_targets(state, id)) {
            self.order(target, Order::Interrupt);
        }
        Ok(())
    }

    /// Closes an agent with all that is bound to it, and waits until their processes are gone.
    pub async fn close(&self, actor: Actor, id: AgentId) -> Result<(), HubError> {
        self.run(move |state, at| decide::close(state, actor, id, at)).await?;
        Ok(())
    }

    /// Creates an agent whose conversation branches off from another's.
    pub async fn fork(
        &self,
        source: AgentId,
        id: AgentId,
        name: Option<String>,
        prompt: Option<Prompt>,
    ) -> Result<(), HubError> {
        self.refresh_profiles().await?;
        let decide = move |state: &State, at| decide::fork(state, source, id, name, prompt, at);
        self.run(decide).await.map(drop)
    }

    /// Starts a closed or failed agent again.
    pub async fn reopen(&self, id: AgentId) -> Result<(), HubError> {
        self.refresh_profiles().await?;
        let cwd = self.with(|state| state.agent(id).map(|agent| PathBuf::from(&agent.cwd)))?;
        check_cwd(&cwd)?;
        self.run(move |state, _| decide::reopen(state, id)).await?;
        Ok(())
    }

    /// Ends an agent's process and starts another that takes up the session; its sub-agents are interrupted.
    pub async fn restart(&self, id: AgentId) -> Result<(), HubError> {
        self.refresh_profiles().await?;
        let (agent, below) = self.with(|state| {
            let mine = |agent: &&Agent| agent.relation.parent() == Some(id) && !agent.is_closed();
            let below: Vec<AgentId> = state.agents.values().filter(mine).map(|agent| agent.id).collect();
            state.agent(id).map(|agent| (agent.clone(), below))
        })?;
        // Better a process with old settings than none.
        if let Some(profile) = self.shared.profiles.get(&agent.profile) {
            self.check_usable(&profile)?;
        }
        check_cwd(Path::new(&agent.cwd))?;
        self.run(move |state, at| decide::restart(state, id, at)).await?;
        for child in below {
            self.interrupt(Actor::Agent(id), child).await?;
        }
        Ok(())
    }

    /// Lets an agent run by another profile of the same driver.
    pub async fn rebind(&self, id: AgentId, wanted: &str) -> Result<(), HubError> {
        self.refresh_profiles().await?;
        let profile = self.profile_id(wanted).await?;
        if let Some(profile) = self.shared.profiles.get(&profile) {
            self.check_usable(&profile)?;
        }
        self.run(move |state, at| decide::rebind(state, id, &profile, at)).await.map(drop)
    }

    /// Gives an agent another name.
    pub async fn rename(&self, id: AgentId, name: String) -> Result<(), HubError> {
        self.run(move |state, _| decide::rename(state, id, &name)).await.map(drop)
    }

    /// Changes what an agent's approvals follow.
    pub async fn set_permissions(&self, id: AgentId, permissions: PermissionMode) -> Result<(), HubError> {
        let decide = move |state: &State, _| {
            let agent = state.agent(id)?;
            let change = AgentEvent::PermissionsChanged { permissions };
            Ok(if agent.permissions == permissions { vec![] } else { vec![Event::of(id, change)] })
        };
        self.run(decide).await?;
        self.order(id, Order::Permissions(permissions));
        Ok(())
    }

    /// Chooses a value for one of the session's options.
    pub async fn choose(&self, id: AgentId, option: String, value: String) -> Result<(), HubError> {
        let (reply, answer) = oneshot::channel();
        self.order(id, Order::Choose(Box::new(ChooseOrder { option, value, reply })));
        match answer.await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.not_running(id, "changed")),
        }
    }

    /// Answers an approval or question.
    pub async fn answer(&self, actor: Actor, wanted: &str, answer: Answer) -> Result<AskId, HubError> {
        let (id, ask) = self.with(|state| {
            let (agent, ask) = decide::find_ask(state, wanted)?;
            decide::check_answer(actor, agent.driver, &ask.body, &answer)?;
            Ok::<_, Refusal>((agent.id, ask.id))
        })?;
        let stops = answer == Answer::Stop;
        let (reply, answered) = oneshot::channel();
        self.order(id, Order::Answer(Box::new(AnswerOrder { ask, answer, reply })));
        match answered.await {
            Ok(Ok(())) if stops => {
                // Its own turn is told to stop already; so are those of its sub-agents now.
                self.interrupt(actor, id).await?;
                Ok(ask)
            }
            Ok(outcome) => outcome.map(|()| ask),
            // Its process ended meanwhile, and the ask with it.
            Err(_) => Err(self.with(|state| decide::not_open(state.agents.get(&id), ask)).into()),
        }
    }

    /// Answers several approvals and questions, each by its whole id, so that nothing is answered but what was seen. In
    /// order; what became of each is told, and one that is not open any more keeps no other from its answer.
    pub async fn answer_many(
        &self,
        actor: Actor,
        answers: Vec<(AskId, Answer)>,
    ) -> Vec<(AskId, Result<(), HubError>)> {
        let mut outcomes = Vec::with_capacity(answers.len());
        for (ask, answer) in answers {
            outcomes.push((ask, self.answer(actor, &ask.to_string(), answer).await.map(drop)));
        }
        outcomes
    }

    /// A page of a transcript: the items before one, or from one on.
    pub async fn items(
        &self,
        id: AgentId,
        before: Option<ItemIndex>,
        from: Option<ItemIndex>,
        limit: u32,
    ) -> Result<Vec<Item>, HubError> {
        let limit = limit as usize;
        let page = match (from, before) {
            (Some(index), _) => Page::From { index, limit },
            (None, Some(index)) => Page::Before { index, limit },
            (None, None) => Page::Last { limit },
        };
        Ok(self.shared.store.items(id, page).await?)
    }

    /// Adds a rule; the time of it is the hub's.
    pub async fn add_rule(&self, actor: Actor, mut rule: Rule) -> Result<Rule, HubError> {
        if let RuleScope::Project { folder } = &rule.scope {
            check_cwd(Path::new(folder))?;
        }
        rule.subject.check().map_err(|reason| Refusal::Invalid { reason })?;
        if let Subject::Files { patterns } = &mut rule.subject {
            // A relative one is taken from the folder of each agent, whose real name is looked up with it.
            let real = RealPaths::default();
            let kept = |pattern: &String| match pattern.starts_with('/') {
                true => policy::kept_globs("/", pattern, &|path| real.resolve(path)),
                false => vec![pattern.clone()],
            };
            *patterns = patterns.iter().flat_map(kept).collect();
        }
        let id = rule.id;
        self.run(move |state: &State, at| decide::add_rule(state, actor, &rule, at)).await?;
        let added = self.with(|state| state.rules.get(&id).cloned());
        added.ok_or_else(|| {
            Refusal::Invalid { reason: "the rule was removed again meanwhile".to_owned() }.into()
        })
    }

    /// Removes a rule.
    pub async fn remove_rule(&self, rule: RuleId) -> Result<(), HubError> {
        self.run(move |state: &State, _| decide::remove_rule(state, rule)).await.map(drop)
    }

    /// All profiles, looked at anew.
    pub async fn profiles(&self) -> Result<Vec<ProfileSummary>, HubError> {
        self.shared.profiles.refresh();
        self.publish_profiles().await?;
        Ok(self.with(|state| state.profiles.clone()))
    }

    /// Adds a profile.
    pub async fn add_profile(&self, profile: Profile) -> Result<ProfileSummary, HubError> {
        let id = self.shared.profiles.add(profile)?;
        self.publish_profiles().await?;
        self.profile(&id)
    }

    /// Changes a profile. Agents that run by it go on as they were started until they are restarted.
    pub async fn edit_profile(
        &self,
        wanted: &str,
        changes: ProfileChanges,
    ) -> Result<ProfileSummary, HubError> {
        let id = self.profile_id(wanted).await?;
        self.shared.profiles.change(&id, changes)?;
        self.publish_profiles().await?;
        self.profile(&id)
    }

    /// Adds a profile that is like another but for its name.
    pub async fn duplicate_profile(&self, wanted: &str, name: String) -> Result<ProfileSummary, HubError> {
        let id = self.profile_id(wanted).await?;
        let id = self.shared.profiles.duplicate(&id, name)?;
        self.publish_profiles().await?;
        self.profile(&id)
    }

    /// Adds the profiles in the text of CC-Insights' `config.json`.
    pub async fn import_cc_insights(&self, text: &str) -> Result<(Imported, Vec<String>), HubError> {
        let outcome = self.shared.profiles.import_cc_insights(text)?;
        self.publish_profiles().await?;
        Ok(outcome)
    }

    /// Looks anew whether profiles can be used, one or all, asks their programs for their versions, all at
    /// once, and sees whether they are logged in.
    pub async fn check_profiles(
        &self,
        wanted: Option<&str>,
    ) -> Result<Vec<(ProfileSummary, Version, Option<Login>)>, HubError> {
        let mut profiles = self.profiles().await?;
        if let Some(wanted) = wanted {
            let id = self.profile_id(wanted).await?;
            profiles.retain(|profile| profile.id == id);
        }
        let ask = async |profile: ProfileSummary| {
            let version = self.shared.profiles.version(&profile).await;
            let login = self.shared.profiles.login(&profile);
            (profile, version, login)
        };
        let mut checked = join_all(profiles.iter().cloned().map(ask)).await;
        let place = |id: &ProfileId| profiles.iter().position(|profile| profile.id == *id);
        checked.sort_by_key(|(profile, ..)| place(&profile.id));
        Ok(checked)
    }

    fn profile(&self, id: &ProfileId) -> Result<ProfileSummary, HubError> {
        let profile = self.with(|state| state.profile(id).cloned());
        profile.ok_or_else(|| Refusal::NoSuchProfile { wanted: id.to_string() }.into())
    }

    /// Removes a profile and ends the processes of its agents; their transcripts stay.
    pub async fn remove_profile(&self, wanted: &str, force: bool) -> Result<(), HubError> {
        let id = self.profile_id(wanted).await?;
        let users: Vec<(AgentId, String)> = self.with(|state| {
            let users = state.agents.values().filter(|agent| agent.profile == id && !agent.is_closed());
            users.map(|agent| (agent.id, agent.name.clone())).collect()
        });
        if !users.is_empty() && !force {
            let names = users.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
            let reason =
                format!("agents run by this profile ({names}); --force ends their sessions and removes it");
            return Err(Refusal::Invalid { reason }.into());
        }
        self.shared.profiles.remove(&id)?;
        self.publish_profiles().await?;
        for (agent, _) in users {
            self.rest(agent).await?;
        }
        Ok(())
    }

    /// Makes a profile the default one.
    pub async fn set_default_profile(&self, wanted: &str) -> Result<(), HubError> {
        let id = self.profile_id(wanted).await?;
        self.shared.profiles.set_default(&id)?;
        self.publish_profiles().await
    }

    /// Sets limits by their names; what is queued is started if there is room for it now.
    pub async fn set_limits(&self, changes: &BTreeMap<String, u64>) -> Result<Limits, HubError> {
        self.shared.profiles.set_limits(changes)?;
        self.publish_profiles().await?;
        Ok(self.with(|state| state.limits))
    }

    /// Sets the keys of an action of the screen, in `config.toml`; none: as they are without it.
    pub async fn set_keys(&self, action: &str, keys: Option<&[String]>) -> Result<(), HubError> {
        self.shared.profiles.set_keys(action, keys)?;
        // Whatever else was changed in the file by now has been read with it.
        self.publish_profiles().await
    }

    /// Ends the hub: leaves every process to the next daemon, or ends them all first.
    pub async fn shut_down(&self, keep_agents: bool, force: bool) -> Result<(), HubError> {
        let busy = |status: Status| matches!(status, Status::Working | Status::NeedsInput | Status::Stalled);
        let (working, all): (u32, Vec<AgentId>) = self.with(|state| {
            let agents = state.agents.values().filter(|agent| agent.wants_process());
            let working = agents.clone().filter(|agent| busy(agent.status())).count() as u32;
            (working, agents.map(|agent| agent.id).collect())
        });
        if !keep_agents {
            if working > 0 && !force {
                return Err(HubError::WouldStopWork { working });
            }
            let resting = all.into_iter().map(|id| self.rest(id));
            for rested in join_all(resting).await {
                rested?;
            }
        }
        let tasks: Vec<RunningTask> = lock(&self.tasks).drain().map(|(_, task)| task).collect();
        for task in &tasks {
            drop(task.orders.send(Order::Detach));
        }
        for task in tasks {
            join(task.handle).await;
        }
        let store = self.shared.store.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || store.close()).await {
            tracing::error!(%error, "the store was not closed in order");
        }
        Ok(())
    }

    /// Starts the agents that rest although prompts wait for them.
    async fn wake_all(&self) -> Result<(), HubError> {
        let decide = |state: &State, _| {
            let woken =
                state.agents.values().filter_map(|agent| Some((agent.id, decide::wake(state, agent)?)));
            Ok(woken.map(|(id, change)| Event::of(id, change)).collect())
        };
        self.run(decide).await.map(drop)
    }

    /// Ends an agent's process until the next prompt.
    async fn rest(&self, id: AgentId) -> Result<(), HubError> {
        let decide = move |state: &State, at| {
            let agent = state.agent(id)?;
            Ok(decide::rest(agent, at).into_iter().map(|change| Event::of(id, change)).collect())
        };
        self.run(decide).await.map(drop)
    }

    /// Commits a decision and does what its events ask for: processes are started and ended.
    pub(crate) async fn run(
        &self,
        decide: impl FnOnce(&State, consort_model::Timestamp) -> Result<Vec<Event>, Refusal> + Send + 'static,
    ) -> Result<Committed, HubError> {
        let committed = self.shared.commit(decide).await?;
        let mut ended = Vec::new();
        let mut closed = Vec::new();
        for stamped in &committed.events {
            let Event::Agent { agent, change } = &stamped.event else { continue };
            if matches!(change, AgentEvent::Closed) {
                closed.push(*agent);
            }
            match change {
                AgentEvent::Created { record } if record.wants_process() => {
                    self.start_task(*agent, record.generation);
                }
                AgentEvent::Starting { generation, .. } => self.start_task(*agent, *generation),
                AgentEvent::Closed | AgentEvent::Rested => ended.extend(self.take_task(*agent)),
                _ => {}
            }
        }
        for task in &ended {
            // A task whose orders are closed is at its end already.
            drop(task.orders.send(Order::Stop));
        }
        for task in ended {
            join(task.handle).await;
        }
        self.shared.dismiss(closed).await;
        Ok(committed)
    }

    /// Starts the task of a process, once the task of the agent's process before it is over.
    pub(crate) fn start_task(&self, id: AgentId, generation: u32) {
        let (orders, received) = mpsc::unbounded_channel();
        let task = Task::new(Arc::clone(&self.shared), id, generation, received);
        let mut tasks = lock(&self.tasks);
        if tasks.get(&id).is_some_and(|running| running.generation >= generation) {
            return;
        }
        let before = tasks.remove(&id);
        let handle = tokio::spawn(async move {
            if let Some(before) = before {
                drop(before.orders.send(Order::Stop));
                join(before.handle).await;
            }
            task.run().await;
        });
        tasks.insert(id, RunningTask { generation, orders, handle });
    }

    fn take_task(&self, id: AgentId) -> Option<RunningTask> {
        lock(&self.tasks).remove(&id)
    }

    /// Lets an agent's task look at its queue.
    pub(crate) fn deliver(&self, id: AgentId) {
        self.order(id, Order::Deliver);
    }

    /// Tells an agent's task. Where there is none, there is nobody to do it: the order is dropped, with its reply.
    pub(crate) fn order(&self, id: AgentId, order: Order) {
        if let Some(task) = lock(&self.tasks).get(&id) {
            // A task whose orders are closed is at its end; what the order is about is over with it.
            drop(task.orders.send(order));
        }
    }

    fn not_running(&self, id: AgentId, action: &str) -> HubError {
        let refusal = self.with(|state| match state.agent(id) {
            Ok(agent) => Refusal::WrongStatus {
                name: agent.name.clone(),
                status: agent.status().words().to_owned(),
                action: action.to_owned(),
            },
            Err(refusal) => refusal,
        });
        refusal.into()
    }

    /// The id of a profile that a person names.
    pub async fn profile_id(&self, wanted: &str) -> Result<ProfileId, HubError> {
        self.refresh_profiles().await?;
        let profile = self.shared.profiles.find(Some(wanted));
        Ok(profile.ok_or_else(|| Refusal::NoSuchProfile { wanted: wanted.to_owned() })?.id)
    }

    /// Refuses a profile whose program cannot be run here.
    fn check_usable(&self, profile: &Profile) -> Result<(), Refusal> {
        match self.shared.profiles.availability(profile) {
            Availability::Unavailable { reason } => {
                let reason = format!("the profile `{}` cannot be used: {reason}", profile.name);
                Err(Refusal::Invalid { reason })
            }
            _ => Ok(()),
        }
    }

    /// Takes up what a person changed in `config.toml`.
    pub(crate) async fn refresh_profiles(&self) -> Result<(), HubError> {
        if self.shared.profiles.refresh() { self.publish_profiles().await } else { Ok(()) }
    }

    async fn publish_profiles(&self) -> Result<(), HubError> {
        let profiles = self.shared.profiles.summaries();
        let limits = self.shared.profiles.limits();
        let decide = move |state: &State, _| {
            let mut events = Vec::new();
            if state.profiles != profiles {
                events.push(Event::ProfilesChanged { profiles });
            }
            if state.limits != limits {
                events.push(Event::LimitsChanged { limits });
            }
            Ok(events)
        };
        self.run(decide).await.map(drop)
    }
}

/// Decides on a new agent: what an agent asks for is held to more than what a person does.
pub(crate) fn created(
    state: &State,
    actor: Actor,
    request: &CreateAgent,
    at: consort_model::Timestamp,
) -> Result<Vec<Event>, Refusal> {
    match actor {
        Actor::Person => decide::create(state, actor, request, at),
        Actor::Agent(asker) => decide::create_for(state, asker, request, at),
    }
}

pub(crate) fn check_cwd(cwd: &Path) -> Result<(), Refusal> {
    if cwd.is_absolute() && cwd.is_dir() {
        return Ok(());
    }
    let reason = format!("{} is not a folder; give an existing one with --cwd", cwd.display());
    Err(Refusal::Invalid { reason })
}

/// The folders of runners that no agent knows: their agents were done with them when the daemon was killed.
fn orphans(runners: &Path, known: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let of_known = |dir: &Path| {
        let dir = dir.as_os_str().as_encoded_bytes();
        // `abc-1` and its terminals `abc-1t1`, but not `abc-12`.
        known.iter().any(|known| {
            let rest = dir.strip_prefix(known.as_os_str().as_encoded_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"t"))
        })
    };
    let Ok(entries) = std::fs::read_dir(runners) else { return vec![] };
    entries.flatten().map(|entry| entry.path()).filter(|dir| !of_known(dir)).collect()
}

/// Ends runners and removes their folders.
async fn clear_away(dirs: Vec<PathBuf>) {
    for dir in dirs {
        tracing::info!(dir = %dir.display(), "clearing away a runner that no agent knows");
        if let Ok((_, sender, mut receiver)) = client::connect(&dir, 0).await {
            crate::task::stop_runner(&sender, &mut receiver, None).await;
        }
        if let Err(error) = std::fs::remove_dir_all(&dir) {
            tracing::debug!(%error, dir = %dir.display(), "the folder of a runner stays");
        }
    }
}

async fn join(handle: JoinHandle<()>) {
    if let Err(error) = handle.await {
        tracing::error!(%error, "the task of an agent ended badly");
    }
}

/// Runs all at once and collects their outcomes.
pub(crate) async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut outcomes = Vec::new();
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(outcome) => {
                outcomes.push(outcome);
                false
            }
            std::task::Poll::Pending => true,
        });
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    outcomes
}

/// Locks even after a panic elsewhere: every critical section here leaves its data whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
