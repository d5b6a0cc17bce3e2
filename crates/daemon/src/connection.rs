//! One client: its requests one after the other, and its events beside them, as well as the answers for which programs
//! must be run.
//!
//! Whatever a client sends, it affects nobody else: a malformed request gets an error, a message past the limit ends the
//! connection, and a client that does not read gets a new snapshot instead of a growing queue.

mod programs;

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use consort_hub::feed::{Delivery, Published, Subscription};
use consort_hub::peer::{Peer, Speaker};
use consort_hub::{HubError, NewAgent, NewWorktree as Wish, ProfileChanges, Version};
use consort_model::{
    Actor, AgentId, Availability, Brief, EnvironmentChange, Event, Login, Profile, ProfileId, ProfileSummary,
    Program, Prompt, PromptOrigin, Refusal, Relation, Rule, RuleOrigin, RuleScope, Status, Timestamp, decide,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use self::programs::Beside;
use crate::powers;
use crate::protocol::{
    AgentView, Answered, Call, DaemonStatus, Done, ErrorBody, ImportSource, ImportedProfiles, InboxEntry,
    MAX_MESSAGE, MessageView, NewProfile, NewPrompt, NewRuleScope, NewWorktree, PROTOCOL_VERSION,
    ProfileCheck, ProfileEdit, QueuedPrompt, RuleView, Sent, Snapshot, TranscriptPage, Welcome,
    WorktreeFinished, WorktreeRemoved, WorktreeView, codes,
};
use crate::server::Daemon;

/// The most items of one page.
const MAX_PAGE: u32 = 1000;

/// A request as it is first read: the call is understood in a second step, so that its errors can name the request.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
}

/// Serves a client until it leaves.
pub async fn serve(daemon: &Arc<Daemon>, stream: UnixStream, peer: Peer) {
    let (read, write) = stream.into_split();
    let mut client = Client {
        daemon: Arc::clone(daemon),
        writer: Arc::new(Mutex::new(write)),
        peer,
        speaker: None,
        greeted: false,
        watched: Watched::default(),
        events: None,
        beside: Beside::default(),
        stops_daemon: false,
    };
    let mut reader = BufReader::with_capacity(1024, read);
    loop {
        match next_line(&mut reader).await {
            Ok(Some(line)) => {
                let Some(answer) = client.handle(&line).await else { continue };
                if client.write(&answer).await.is_err() {
                    break;
                }
                if client.stops_daemon {
                    daemon.ended.notify_one();
                    break;
                }
            }
            Ok(None) => break,
            Err(message) => {
                let error = ErrorBody::new(codes::INVALID_REQUEST, message);
                // It is being turned away; whether it still reads why is its own business.
                drop(client.write(&error_line(None, &error)).await);
                break;
            }
        }
    }
    if let Some(events) = client.events {
        events.abort();
    }
}

/// The next line without its end; none at the end of the stream.
async fn next_line(reader: &mut BufReader<OwnedReadHalf>) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let limit = MAX_MESSAGE as u64 + 1;
    match reader.take(limit).read_until(b'\n', &mut line).await {
        Ok(0) | Err(_) => Ok(None),
        Ok(_) if line.last() == Some(&b'\n') => {
            line.pop();
            Ok(Some(line))
        }
        Ok(_) if line.len() > MAX_MESSAGE => Err(format!("a message may have {MAX_MESSAGE} bytes at most")),
        // Cut off in the middle: the client is gone.
        Ok(_) => Ok(None),
    }
}

struct Client {
    daemon: Arc<Daemon>,
    writer: Arc<Mutex<OwnedWriteHalf>>,
    peer: Peer,
    /// Who that is, once it was asked.
    speaker: Option<Speaker>,
    greeted: bool,
    watched: Watched,
    events: Option<JoinHandle<()>>,
    beside: Beside,
    stops_daemon: bool,
}

impl Client {
    /// Answers one line; none: the answer comes later.
    async fn handle(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let envelope: Envelope<'_> = match serde_json::from_slice(line) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => {
                let error = ErrorBody::new(codes::INVALID_REQUEST, format!("not a request: {error}"));
                return Some(error_line(None, &error));
            }
            Err(error) => {
                let error = ErrorBody::new(codes::PARSE_ERROR, format!("not JSON: {error}"));
                return Some(error_line(None, &error));
            }
        };
        let id = envelope.id;
        let call: Call = match serde_json::from_slice(line) {
            Ok(call) => call,
            Err(error) => return Some(error_line(id, &call_error(envelope.method.as_deref(), &error))),
        };
        if !self.greeted && !matches!(call, Call::Hello { .. }) {
            return Some(error_line(id, &ErrorBody::new(codes::NO_HELLO, "say `hello` first")));
        }
        if powers::is_a_persons(&call) {
            let speaker = self.speaker.get_or_insert_with(|| self.daemon.hub.speaker(&self.peer));
            if let Err(refusal) = powers::check(speaker) {
                tracing::warn!(method = envelope.method, ?speaker, "a call that is a person's was refused");
                return Some(error_line(id, &refusal.into()));
            }
        }
        if self.beside.takes(&call) {
            self.beside.answer(Arc::clone(&self.daemon), Arc::clone(&self.writer), id, call);
            return None;
        }
        Some(answer_line(id, &self.call(call).await))
    }

    async fn call(&mut self, call: Call) -> Result<Value, ErrorBody> {
        let daemon = Arc::clone(&self.daemon);
        let hub = &daemon.hub;
        match call {
            Call::Hello { protocol, client } => self.hello(protocol, &client),
            Call::Subscribe {} => {
                let snapshot = self.subscribe();
                value(&snapshot)
            }
            Call::Watch { transcripts } => {
                self.watched.set(transcripts);
                value(&Done {})
            }
            Call::ListAgents { closed } => value(&hub.with(|state| {
                let agents = state.agents.values().filter(|agent| closed || !agent.is_closed());
                agents.map(|agent| AgentView::new(state, agent)).collect::<Vec<_>>()
            })),
            Call::GetAgent { agent } => self.view(self.find(&agent)?),
            Call::CreateAgent(new) => {
                let id = hub.create(Actor::Person, self.new_agent(new)?).await.map_err(error_body)?;
                self.view(id)
            }
            call @ (Call::ListSessions { .. } | Call::CheckProfiles { .. }) => {
                programs::answer(hub, call).await
            }
            Call::ResumeSession { session, agent } => {
                let id = hub.resume(self.new_agent(agent)?, session).await.map_err(error_body)?;
                self.view(id)
            }
            Call::Send { agent, prompt: new } => self.send(&agent, prompt(new)).await,
            Call::Steer { agent, prompt: new } => {
                self.send(&agent, Prompt { steers: true, ..prompt(new) }).await
            }
            Call::Queue { agent } => {
                let id = self.find(&agent)?;
                value(&hub.with(|state| state.agents.get(&id).map(QueuedPrompt::list).unwrap_or_default()))
            }
            Call::EditPrompt { agent, prompt, text } => {
                done(hub.edit_prompt(self.find(&agent)?, prompt, text).await)
            }
            Call::Interrupt { agent } => done(hub.interrupt(Actor::Person, self.find(&agent)?).await),
            Call::Close { agent } => done(hub.close(Actor::Person, self.find(&agent)?).await),
            Call::Fork { agent, id, name, prompt: new } => {
                hub.fork(self.find(&agent)?, id, name, new.map(prompt)).await.map_err(error_body)?;
                self.view(id)
            }
            Call::Reopen { agent } => {
                let id = self.find(&agent)?;
                hub.reopen(id).await.map_err(error_body)?;
                self.view(id)
            }
            Call::Restart { agent } => {
                let id = self.find(&agent)?;
                hub.restart(id).await.map_err(error_body)?;
                self.view(id)
            }
            Call::Rebind { agent, profile } => {
                let id = self.find(&agent)?;
                hub.rebind(id, &profile).await.map_err(error_body)?;
                self.view(id)
            }
            Call::Rename { agent, name } => done(hub.rename(self.find(&agent)?, name).await),
            Call::SetPermissions { agent, permissions } => {
                done(hub.set_permissions(self.find(&agent)?, permissions).await)
            }
            Call::Choose { agent, option, value } => {
                done(hub.choose(self.find(&agent)?, option, value).await)
            }
            Call::Changes { agent } => value(&hub.changes(self.find(&agent)?).await.map_err(error_body)?),
            Call::Diff { agent, paths } => {
                value(&hub.diff(self.find(&agent)?, &paths).await.map_err(error_body)?)
            }
            Call::ListWorktrees {} => {
                let seen = hub.list_worktrees().await;
                value(&seen.into_iter().map(WorktreeView::from).collect::<Vec<_>>())
            }
            Call::FinishWorktree { worktree, by, keep } => {
                let finished = hub.finish_worktree(Actor::Person, &worktree, by, keep).await;
                value(&WorktreeFinished::from(finished.map_err(error_body)?))
            }
            Call::RemoveWorktree { worktree, force } => {
                let removed = hub.remove_worktree(&worktree, force).await.map_err(error_body)?;
                value(&WorktreeRemoved::from(removed))
            }
            Call::Transcript { agent, before, from, limit } => {
                let id = self.find(&agent)?;
                let items =
                    hub.items(id, before, from, limit.clamp(1, MAX_PAGE)).await.map_err(error_body)?;
                let total = hub.with(|state| state.agents.get(&id).map_or(0, |agent| agent.cursor.items));
                value(&TranscriptPage { items, total })
            }
            Call::Inbox {} => value(&hub.with(|state| {
                let open = state.inbox();
                open.into_iter().map(|(agent, ask)| InboxEntry::new(state, agent, ask)).collect::<Vec<_>>()
            })),
            Call::Answer { ask, answer } => done(hub.answer(Actor::Person, &ask, answer).await.map(drop)),
            Call::ListMessages { agent } => {
                let of = agent.map(|agent| self.find(&agent)).transpose()?;
                value(&hub.with(|state| MessageView::list(state, of)))
            }
            Call::AnswerMany { answers } => {
                if answers.len() > MAX_PAGE as usize {
                    return Err(invalid(format!("at most {MAX_PAGE} requests are answered at once")));
                }
                let answers = answers.into_iter().map(|it| (it.ask, it.answer)).collect();
                let outcomes = hub.answer_many(Actor::Person, answers).await.into_iter();
                let told = outcomes.map(|(ask, outcome)| {
                    let error = outcome.err().map(error_body);
                    Answered { ask, answered: error.is_none(), error }
                });
                value(&told.collect::<Vec<_>>())
            }
            Call::ListRules {} => {
                value(&hub.with(|state| state.rules.values().map(RuleView::from).collect::<Vec<_>>()))
            }
            Call::AddRule(new) => {
                let scope = match new.scope {
                    NewRuleScope::Agent { agent } => RuleScope::Agent { agent: self.find(&agent)? },
                    NewRuleScope::Profile { profile } => {
                        RuleScope::Profile { profile: hub.profile_id(&profile).await.map_err(error_body)? }
                    }
                    NewRuleScope::Project { folder } => {
                        RuleScope::Project { folder: folder.to_string_lossy().into_owned() }
                    }
                    NewRuleScope::All => RuleScope::All,
                };
                let rule = Rule {
                    id: new.id,
                    effect: new.effect,
                    scope,
                    tool: new.tool,
                    subject: new.subject,
                    at: Timestamp::default(),
                    origin: RuleOrigin::Added,
                };
                let rule = hub.add_rule(Actor::Person, rule).await.map_err(error_body)?;
                value(&RuleView::from(&rule))
            }
            Call::RemoveRule { rule } => done(hub.remove_rule(rule).await),
            Call::ListProfiles {} => value(&hub.profiles().await.map_err(error_body)?),
            Call::ImportProfiles { from: ImportSource::CcInsights, text } => {
                let (imported, notes) = hub.import_cc_insights(&text).await.map_err(error_body)?;
                value(&ImportedProfiles {
                    added: imported.added.iter().map(ToString::to_string).collect(),
                    present: imported.present.iter().map(ToString::to_string).collect(),
                    default: imported.default.as_ref().map(ToString::to_string),
                    notes,
                })
            }
            Call::AddProfile(new) => value(&hub.add_profile(profile(new)?).await.map_err(error_body)?),
            Call::EditProfile { profile, changes } => {
                let changes = profile_changes(changes).map_err(invalid)?;
                value(&hub.edit_profile(&profile, changes).await.map_err(error_body)?)
            }
            Call::DuplicateProfile { profile, name } => {
                value(&hub.duplicate_profile(&profile, name).await.map_err(error_body)?)
            }
            Call::RemoveProfile { profile, force } => done(hub.remove_profile(&profile, force).await),
            Call::SetDefaultProfile { profile } => done(hub.set_default_profile(&profile).await),
            Call::SetLimits { limits } => value(&hub.set_limits(&limits).await.map_err(error_body)?),
            Call::SetKeys { action, keys } => done(hub.set_keys(&action, keys.as_deref()).await),
            Call::Status {} => value(&self.status()),
            Call::Stop { force, keep_agents } => {
                hub.shut_down(keep_agents, force).await.map_err(error_body)?;
                self.stops_daemon = true;
                value(&Done {})
            }
        }
    }

    fn hello(&mut self, protocol: u32, client: &str) -> Result<Value, ErrorBody> {
        if protocol != PROTOCOL_VERSION {
            let message = format!(
                "this daemon speaks protocol {PROTOCOL_VERSION}, the client {protocol}; use the same version"
            );
            return Err(ErrorBody::new(codes::NO_HELLO, message));
        }
        tracing::debug!(client, "a client connected");
        self.greeted = true;
        value(&Welcome {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
        })
    }

    /// Takes a snapshot and lets every later event follow it. Subscribing again begins anew.
    fn subscribe(&mut self) -> Snapshot {
        if let Some(earlier) = self.events.take() {
            earlier.abort();
        }
        // The subscription comes first, so that no event falls between it and the snapshot.
        let subscription = self.daemon.hub.subscribe();
        let snapshot = snapshot(&self.daemon);
        let watched = self.watched.clone();
        let (daemon, writer) = (Arc::clone(&self.daemon), Arc::clone(&self.writer));
        let events = send_events(daemon, writer, watched, subscription, snapshot.state.seq);
        self.events = Some(tokio::spawn(events));
        snapshot
    }

    fn status(&self) -> DaemonStatus {
        let count = |wanted: &[Status]| {
            self.daemon.hub.with(|state| {
                state.agents.values().filter(|agent| wanted.contains(&agent.status())).count() as u32
            })
        };
        DaemonStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: self.daemon.home.root().to_owned(),
            agents: self
                .daemon
                .hub
                .with(|state| state.agents.values().filter(|agent| !agent.is_closed()).count() as u32),
            working: count(&[Status::Working, Status::Stalled]),
            needs_input: count(&[Status::NeedsInput]),
            clients: self.daemon.clients.load(Ordering::Relaxed),
            uptime_seconds: self.daemon.started.elapsed().as_secs(),
            trouble: self.daemon.hub.config_problem(),
        }
    }

    fn find(&self, wanted: &str) -> Result<AgentId, ErrorBody> {
        Ok(self.daemon.hub.with(|state| state.find(wanted).map(|agent| agent.id))?)
    }

    fn new_agent(&self, new: crate::protocol::NewAgent) -> Result<NewAgent, ErrorBody> {
        let relation = match &new.companion_of {
            Some(owner) => Relation::Companion { owner: self.find(owner)? },
            None => Relation::Primary,
        };
        Ok(NewAgent {
            id: new.id,
            profile: new.profile,
            name: new.name,
            cwd: new.cwd,
            relation,
            permissions: new.permissions,
            worktree: new.worktree.map(|NewWorktree { name, base }| Wish { name, base }),
            prompt: new.prompt.map(prompt),
            brief: Brief::default(),
        })
    }

    async fn send(&self, agent: &str, prompt: Prompt) -> Result<Value, ErrorBody> {
        let (agent, hub) = (self.find(agent)?, &self.daemon.hub);
        let id = prompt.id;
        let waiting_behind = hub.send(agent, prompt).await.map_err(error_body)?;
        let joins = hub.with(|state| state.agents.get(&agent).is_some_and(|agent| decide::joins(agent, id)));
        value(&Sent { agent, prompt: id, waiting_behind, joins })
    }

    fn view(&self, id: AgentId) -> Result<Value, ErrorBody> {
        value(&self.daemon.hub.with(|state| state.agent(id).map(|agent| AgentView::new(state, agent)))?)
    }

    async fn write(&self, line: &[u8]) -> std::io::Result<()> {
        self.writer.lock().await.write_all(line).await
    }
}

/// Whose transcripts a client wants to hear of; everyone's, unless it said otherwise.
#[derive(Clone, Default)]
struct Watched(Arc<std::sync::Mutex<Option<HashSet<AgentId>>>>);

impl Watched {
    fn set(&self, agents: Vec<AgentId>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(agents.into_iter().collect());
    }

    fn wants(&self, event: &Event) -> bool {
        let Event::Agent { agent, change } = event else { return true };
        if !change.is_transcript() {
            return true;
        }
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.as_ref().is_none_or(|watched| watched.contains(agent))
    }
}

/// Sends every event after `seq`, and a new snapshot where the client did not keep up.
async fn send_events(
    daemon: Arc<Daemon>,
    writer: Arc<Mutex<OwnedWriteHalf>>,
    watched: Watched,
    mut subscription: Subscription,
    mut seq: u64,
) {
    let mut lines = Vec::new();
    loop {
        match subscription.next().await {
            Delivery::Events(events) => {
                let is_new = |event: &&Arc<Published>| event.stamped.seq > seq;
                for event in events.iter().filter(is_new).filter(|event| watched.wants(&event.stamped.event))
                {
                    lines.extend_from_slice(br#"{"jsonrpc":"2.0","method":"event","params":"#);
                    lines.extend_from_slice(event.json().as_bytes());
                    lines.extend_from_slice(b"}\n");
                }
                if let Some(last) = events.last() {
                    seq = seq.max(last.stamped.seq);
                }
            }
            Delivery::Lagged => {
                let snapshot = snapshot(&daemon);
                seq = snapshot.state.seq;
                let notification =
                    serde_json::json!({"jsonrpc": "2.0", "method": "snapshot", "params": snapshot});
                lines.extend_from_slice(notification.to_string().as_bytes());
                lines.push(b'\n');
            }
        }
        if lines.is_empty() {
            continue;
        }
        if writer.lock().await.write_all(&lines).await.is_err() {
            return;
        }
        lines.clear();
        lines.shrink_to(64 << 10);
    }
}

fn snapshot(daemon: &Daemon) -> Snapshot {
    Snapshot { state: daemon.hub.with(Clone::clone) }
}

fn prompt(new: NewPrompt) -> Prompt {
    Prompt {
        id: new.id,
        origin: PromptOrigin::Person,
        text: new.text,
        attachments: new.attachments,
        steers: false,
        at: Timestamp::default(),
    }
}

fn profile(new: NewProfile) -> Result<Profile, ErrorBody> {
    Ok(Profile {
        command: new.command,
        args: new.args,
        environment: environment(new.environment).map_err(invalid)?,
        default_model: new.default_model,
        default_permissions: new.default_permissions,
        sandbox_mode: new.sandbox_mode,
        approval_policy: new.approval_policy,
        // The hub makes the id from the name.
        ..Profile::new(ProfileId::new(""), new.name, new.driver)
    })
}

fn profile_check((profile, version, login): (ProfileSummary, Version, Option<Login>)) -> ProfileCheck {
    let (version, version_problem) = match version {
        Version::NotAsked => (None, None),
        Version::Said(version) => (Some(version), None),
        Version::Unknown(why) => (None, Some(why)),
    };
    let program = match &profile.availability {
        Availability::Available { path } => Program::of(profile.driver, path),
        _ => None,
    };
    ProfileCheck {
        support: program.zip(version.as_deref()).and_then(|(program, said)| program.support(said)),
        tested_version: program.map(|program| program.tested_version().to_owned()),
        profile,
        version,
        version_problem,
        login,
    }
}

fn profile_changes(edit: ProfileEdit) -> Result<ProfileChanges, String> {
    let or_open = |text: String| (!text.is_empty()).then_some(text);
    Ok(ProfileChanges {
        name: edit.name,
        command: edit.command.map(or_open),
        args: edit.args,
        environment: environment(edit.environment)?,
        unmentioned: edit.environment_dropped,
        default_model: edit.default_model.map(or_open),
        default_permissions: edit.default_permissions,
        sandbox_mode: edit.sandbox_mode.map(|word| word_or_open(&word)).transpose()?,
        approval_policy: edit.approval_policy.map(|word| word_or_open(&word)).transpose()?,
    })
}

fn word_or_open<T: std::str::FromStr<Err = String>>(word: &str) -> Result<Option<T>, String> {
    if word.is_empty() { Ok(None) } else { word.parse().map(Some) }
}

fn environment(lines: Vec<String>) -> Result<Vec<EnvironmentChange>, String> {
    lines.into_iter().map(EnvironmentChange::try_from).collect()
}

fn invalid(reason: String) -> ErrorBody {
    Refusal::Invalid { reason }.into()
}

fn done(outcome: Result<(), HubError>) -> Result<Value, ErrorBody> {
    outcome.map_err(error_body)?;
    value(&Done {})
}

fn value(answer: &impl Serialize) -> Result<Value, ErrorBody> {
    serde_json::to_value(answer).map_err(|error| ErrorBody::new(codes::UNAVAILABLE, error.to_string()))
}

fn error_body(error: HubError) -> ErrorBody {
    let message = error.to_string();
    match error {
        HubError::Refused(refusal) => refusal.into(),
        HubError::Unavailable(_) => ErrorBody::new(codes::UNAVAILABLE, message),
        HubError::Config(_) => ErrorBody::new(codes::CONFIG, message),
        HubError::WouldStopWork { working } => ErrorBody {
            code: codes::WOULD_STOP_WORK,
            message,
            data: serde_json::json!({ "working": working }),
        },
    }
}

/// Tells an unknown method from params that do not fit it.
fn call_error(method: Option<&str>, error: &serde_json::Error) -> ErrorBody {
    let Some(method) = method else {
        return ErrorBody::new(codes::INVALID_REQUEST, "not a request: it has no `method`");
    };
    let message = error.to_string();
    if message.starts_with("unknown variant") {
        return ErrorBody::new(codes::NO_SUCH_METHOD, format!("there is no method `{method}`"));
    }
    ErrorBody::new(codes::INVALID_PARAMS, format!("the params of `{method}` do not fit: {message}"))
}

fn answer_line(id: Option<&RawValue>, answer: &Result<Value, ErrorBody>) -> Vec<u8> {
    match answer {
        Ok(result) => line(id, "result", result),
        Err(error) => error_line(id, error),
    }
}

fn error_line(id: Option<&RawValue>, error: &ErrorBody) -> Vec<u8> {
    line(id, "error", error)
}

fn line(id: Option<&RawValue>, key: &str, body: &impl Serialize) -> Vec<u8> {
    let id = id.map_or("null", RawValue::get);
    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":"#).into_bytes();
    // These types always serialise; a null body would still be a valid answer.
    line.extend(serde_json::to_vec(body).unwrap_or_else(|_| b"null".to_vec()));
    line.extend_from_slice(b"}\n");
    line
}
