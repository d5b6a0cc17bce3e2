//! The beginning of a task: a new process, or one that an earlier daemon left running.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use consort_drivers::{CommandLine, Driver, Launch};
use consort_model::transcript::Writer;
use consort_model::{Agent, Failure, Lifecycle, NoticeLevel, Profile, State, Timestamp};
use consort_runner::client::{self, Receiver, Sender};
use consort_runner::protocol::Welcome;
use consort_runner::spec::Spec;
use consort_store::{Change, CommitError, Link, LinkChange};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Ending, Process, Task, current, of};
use crate::assemble::Assembler;
use crate::reach::reach_or_spawn;
use crate::shared::{AGENT_MARK, PROCESS_MARK, Shared, whole};
use crate::terminals::Terminals;

/// Why no process could be started, for the agent's failure.
struct NotStarted(String);

impl From<client::Error> for NotStarted {
    fn from(error: client::Error) -> Self {
        Self(error.to_string())
    }
}

impl Task {
    /// Starts or finds the process and serves it to its end.
    pub async fn run(mut self) {
        let link = match self.shared.store.link(self.id).await {
            Ok(link) => link.filter(|link| link.generation == self.generation),
            Err(error) => {
                tracing::error!(agent = %self.id, %error, "cannot read how to reach the agent's process");
                None
            }
        };
        let wanted = self.shared.store.with(|state| current(state, self.id, self.generation).cloned());
        let Some(agent) = wanted else { return self.clear_away(link).await };
        let started = match link {
            Some(link) => self.find_again(&agent, link).await,
            None => self.start(&agent).await,
        };
        match started {
            Ok(mut process) => {
                let ending = process.serve().await;
                process.end(ending).await;
            }
            Err(NotStarted(message)) => self.fail(message).await,
        }
    }

    /// Starts a new process for the agent.
    async fn start(&mut self, agent: &Agent) -> Result<Process, NotStarted> {
        let profile = self.profile(agent)?;
        let own =
            agent.session.as_ref().filter(|session| session.resumable).map(|session| session.id.clone());
        let other = agent.fork.as_ref().filter(|_| own.is_none()).map(|fork| fork.session.clone());
        let launch = Launch {
            cwd: agent.cwd.clone(),
            roots: vec![],
            fork: other.is_some(),
            resume: own.or(other),
            model: agent.brief.model.clone().or_else(|| profile.default_model.clone()),
            tools: agent.brief.tools.clone(),
            permissions: agent.permissions,
            sandbox_mode: profile.sandbox_mode,
            approval_policy: profile.approval_policy,
            used: agent.usage,
            mcp_servers: self.shared.admit(agent.id).await.map_err(|error| NotStarted(error.to_string()))?,
        };
        let mut driver = Driver::new(agent.driver, launch).ok_or_else(|| {
            NotStarted(format!(
                "this version of Consort cannot run agents with the driver `{}` yet",
                agent.driver
            ))
        })?;
        let spec = self.spec(agent, &profile, &driver)?;
        let output = driver.start();
        let outbox: VecDeque<(u64, Arc<[u8]>)> =
            (1u64..).zip(output.frames.into_iter().map(Arc::from)).collect();
        self.remember(&driver, &outbox).await?;
        let (_, sender, receiver) = reach_or_spawn(&self.shared.program, &self.dir).await?;
        sender.start(spec.clone()).await?;
        Ok(self.process(agent, driver, spec, sender, receiver, outbox, 0).await)
    }

    /// Writes down how the process is to be reached, before there is one.
    async fn remember(&self, driver: &Driver, outbox: &VecDeque<(u64, Arc<[u8]>)>) -> Result<(), NotStarted> {
        let driver_state = serde_json::to_vec(driver).map_err(|error| NotStarted(error.to_string()))?;
        let link = LinkChange {
            agent: self.id,
            generation: self.generation,
            driver_state: Some(driver_state),
            next_offset: Some(0),
            outbox: outbox.iter().map(|(number, frame)| (*number, frame.to_vec())).collect(),
            confirmed_input: None,
            forget: false,
        };
        let (id, generation) = (self.id, self.generation);
        let decide = move |state: &State, at| {
            let forgetful = |agent: &&Agent| agent.session.as_ref().is_some_and(|session| !session.resumable);
            let Some(agent) = current(state, id, generation).filter(forgetful) else { return Ok(vec![]) };
            let mut writer = Writer::new(agent, at);
            let text = "The agent cannot take up its earlier session, so this is a new one.";
            writer.notice(NoticeLevel::Warning, text.to_owned());
            Ok(of(id, writer.finish()))
        };
        let change = Change::new(move |state, at| whole(state, at, decide)).with_link(link);
        self.shared.store.commit(change).await.map(drop).map_err(|error| match error {
            CommitError::Refused(refusal) => NotStarted(refusal.to_string()),
            other => NotStarted(other.to_string()),
        })
    }

    /// Goes on with a process that an earlier daemon started.
    async fn find_again(&mut self, agent: &Agent, link: Link) -> Result<Process, NotStarted> {
        let Some(driver): Option<Driver> =
            link.driver_state.as_deref().and_then(|state| serde_json::from_slice(state).ok())
        else {
            return Err(NotStarted("what was kept of its session cannot be read; reopen it".to_owned()));
        };
        match client::connect(&self.dir, link.next_offset).await {
            Ok((welcome, sender, receiver)) => {
                let profile = self.profile(agent);
                let spec = match &profile {
                    Ok(profile) => self.spec(agent, profile, &driver)?,
                    Err(_) => Spec::new("", &agent.cwd),
                };
                if !welcome.started {
                    profile?;
                    sender.start(spec.clone()).await?;
                }
                let Welcome { last_input, child_pid, .. } = welcome;
                let outbox = link
                    .outbox
                    .into_iter()
                    .filter(|(number, _)| *number > last_input)
                    .map(|(number, frame)| (number, Arc::from(frame)))
                    .collect();
                let mut process =
                    self.process(agent, driver, spec, sender, receiver, outbox, link.next_offset).await;
                process.last_input = link.last_input;
                process.child = child_pid;
                process.acknowledged = Some(last_input);
                Ok(process)
            }
            Err(client::Error::Gone { .. }) => self.after_runner(agent, driver, link).await,
            Err(error) => Err(error.into()),
        }
    }

    /// The runner is gone. What the process said before is taken in; then it has failed, unless it never started.
    async fn after_runner(
        &mut self,
        agent: &Agent,
        driver: Driver,
        link: Link,
    ) -> Result<Process, NotStarted> {
        let left = super::end::salvaged(&self.dir, link.next_offset).await;
        let never_started =
            link.next_offset == 0 && left.is_empty() && agent.lifecycle == Lifecycle::Starting;
        if never_started {
            self.forget().await;
            return self.start(agent).await;
        }
        let message = "its process was gone when the daemon came back; reopen it to go on".to_owned();
        self.salvage(driver, left, message.clone()).await;
        Err(NotStarted(message))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a process, put together in one place")]
    async fn process(
        &mut self,
        agent: &Agent,
        driver: Driver,
        spec: Spec,
        sender: Sender,
        receiver: Receiver,
        outbox: VecDeque<(u64, Arc<[u8]>)>,
        next_offset: u64,
    ) -> Process {
        let (result_sender, results) = mpsc::unbounded_channel();
        let (_, no_orders) = mpsc::unbounded_channel();
        let cwd = PathBuf::from(&agent.cwd);
        let process = Process {
            terminals: Terminals::new(self.shared.program.clone(), &self.dir, spec.env, cwd.clone()),
            shared: Arc::clone(&self.shared),
            id: self.id,
            generation: self.generation,
            dir: self.dir.clone(),
            orders: std::mem::replace(&mut self.orders, no_orders),
            deferred: VecDeque::new(),
            sender,
            receiver,
            driver,
            roots: vec![cwd],
            child: None,
            assembler: Assembler::default(),
            next_offset,
            confirmed_offset: next_offset,
            exit_offset: None,
            last_input: outbox.back().map_or(0, |(number, _)| *number),
            unacknowledged: outbox,
            acknowledged: None,
            resend_at: None,
            read_at: None,
            results,
            result_sender,
            stopped: None,
            cut_off: None,
            alive_at: Instant::now(),
            processor_time: 0,
        };
        for (number, frame) in &process.unacknowledged {
            process.send_input(*number, frame).await;
        }
        process
    }

    fn profile(&self, agent: &Agent) -> Result<Profile, NotStarted> {
        self.shared.profiles.get(&agent.profile).ok_or_else(|| {
            NotStarted(format!(
                "the profile `{}` was removed; rebind the agent to another one",
                agent.profile
            ))
        })
    }

    /// What the runner is to start: the profile's program with exactly the profile's environment.
    fn spec(&self, agent: &Agent, profile: &Profile, driver: &Driver) -> Result<Spec, NotStarted> {
        let program = profile.program().ok_or_else(|| {
            NotStarted(format!("the profile `{}` names no command; set one in config.toml", profile.name))
        })?;
        let mut spec = Spec::new(program, &agent.cwd);
        let CommandLine { before, after, environment } = driver.command_line();
        spec.args = [before, profile.args.clone(), after].concat();
        spec.env = profile.apply_environment(self.shared.environment.iter().cloned().chain(environment));
        spec.env.push((AGENT_MARK.to_owned(), self.id.to_string()));
        spec.env.push((PROCESS_MARK.to_owned(), Shared::process_mark(self.id, self.generation)));
        Ok(spec)
    }

    /// The failure of a process that could not be started or found.
    pub(super) fn failure(message: String) -> Failure {
        Failure {
            message,
            exit_code: None,
            signal: None,
            stderr_tail: String::new(),
            at: Timestamp::default(),
            parked: false,
        }
    }

    /// An agent that wants no process: ends what is left of it.
    async fn clear_away(self, link: Option<Link>) {
        let Some(link) = link else { return };
        let from = link.next_offset;
        let driver = link.driver_state.as_deref().and_then(|state| serde_json::from_slice(state).ok());
        let reached = client::connect(&self.dir, from).await;
        super::end::clear_away(&self.shared, self.id, self.generation, &self.dir, driver, reached.ok()).await;
    }
}

impl From<NotStarted> for Ending {
    fn from(NotStarted(message): NotStarted) -> Self {
        Self::StartFailed(message)
    }
}
