//! A client with a replica: calls go over one connection, events come over another and are waited for.

use std::cell::RefCell;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use consort_daemon::client::{Client as Calls, ClientError};
use consort_daemon::protocol::{
    AgentView, Call, Done, ErrorBody, FromDaemon, InboxEntry, NewAgent, NewPrompt, Notification, Sent,
    Snapshot, TranscriptPage,
};
use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, Answer, Ask, Event, GrantScope, Item, ItemBody, ItemIndex, NoticeLevel, PromptId,
    Stamped, State, Status,
};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{LIMIT, Wire};

/// A client of a home's daemon.
pub struct Client {
    calls: RefCell<Calls>,
    shared: Arc<Shared>,
    events: UnixStream,
    watcher: Option<JoinHandle<()>>,
    home: consort_daemon::home::Home,
    cwd: std::path::PathBuf,
}

struct Shared {
    followed: Mutex<Followed>,
    changed: Condvar,
}

/// What a client has learnt by following.
#[derive(Default)]
pub struct Followed {
    /// The replica.
    pub state: State,
    /// Every event since it subscribed, text aside.
    pub events: Vec<Stamped>,
    /// How often it was given a new snapshot because it did not keep up.
    pub snapshots: u32,
    /// Why it follows no more.
    pub broken: Option<String>,
}

impl Client {
    pub(super) fn connect(home: &consort_daemon::home::Home, cwd: &std::path::Path) -> Self {
        Self::try_connect(home, cwd).expect("the daemon can be reached")
    }

    /// Connects twice, once for calls and once to follow.
    pub(super) fn try_connect(
        home: &consort_daemon::home::Home,
        cwd: &std::path::Path,
    ) -> Result<Self, ClientError> {
        let calls = Calls::connect(home)?;
        let mut wire = Wire::greeted(&home.socket())?;
        let answer = wire.call(&Call::Subscribe {})?;
        let Snapshot { state } =
            serde_json::from_value(answer["result"].clone()).map_err(std::io::Error::other)?;
        let events = wire.stream().try_clone()?;
        events.set_read_timeout(None)?;
        let followed = Followed { state, ..Followed::default() };
        let shared = Arc::new(Shared { followed: Mutex::new(followed), changed: Condvar::new() });
        let watched = Arc::clone(&shared);
        let watcher = std::thread::spawn(move || watched.follow(wire));
        Ok(Self {
            calls: RefCell::new(calls),
            shared,
            events,
            watcher: Some(watcher),
            home: home.clone(),
            cwd: cwd.to_owned(),
        })
    }

    /// Asks and expects success.
    pub fn call<R: DeserializeOwned>(&self, call: &Call) -> R {
        self.try_call(call).unwrap_or_else(|error| panic!("{call:?}: {error}"))
    }

    /// Asks.
    pub fn try_call<R: DeserializeOwned>(&self, call: &Call) -> Result<R, ClientError> {
        self.calls.borrow_mut().call(call)
    }

    /// Asks and expects an answer that says no.
    pub fn refused(&self, call: &Call) -> ErrorBody {
        match self.try_call::<serde_json::Value>(call) {
            Err(ClientError::Answer(error)) => error,
            other => panic!("{call:?} should have been refused, but: {other:?}"),
        }
    }

    /// The daemon's process.
    pub fn daemon_pid(&self) -> i32 {
        self.calls.borrow().welcome().pid as i32
    }

    /// Looks at what was learnt so far.
    pub fn look<T>(&self, look: impl FnOnce(&Followed) -> T) -> T {
        look(&self.shared.lock())
    }

    /// Waits until `look` finds something in the replica. Fails the test when it takes too long or the daemon goes away.
    pub fn wait_until<T>(&self, what: &str, mut look: impl FnMut(&State) -> Option<T>) -> T {
        self.wait_followed(what, |followed| look(&followed.state))
    }

    /// Waits until `look` finds something among all that was learnt.
    pub fn wait_followed<T>(&self, what: &str, look: impl FnMut(&Followed) -> Option<T>) -> T {
        self.shared.wait(LIMIT, look).unwrap_or_else(|seen| panic!("waiting until {what}: {seen}"))
    }

    /// A new agent of a profile, without a prompt.
    pub fn new_agent(&self, profile: &str) -> AgentId {
        self.create(profile, |_| {}).id
    }

    /// A new agent with its first prompt.
    pub fn new_agent_with(&self, profile: &str, prompt: &str) -> (AgentId, PromptId) {
        let prompt = new_prompt(prompt);
        let id = prompt.id;
        (self.create(profile, |new| new.prompt = Some(prompt)).id, id)
    }

    /// A new agent, changed as the test wants it.
    pub fn create(&self, profile: &str, change: impl FnOnce(&mut NewAgent)) -> AgentView {
        let mut new = self.new_agent_request(profile);
        change(&mut new);
        self.call(&Call::CreateAgent(new))
    }

    /// What asks for an agent of a profile.
    pub fn new_agent_request(&self, profile: &str) -> NewAgent {
        NewAgent {
            id: AgentId::new(Uuid::now_v7()),
            profile: Some(profile.to_owned()),
            name: None,
            cwd: self.cwd.clone(),
            companion_of: None,
            permissions: None,
            worktree: None,
            prompt: None,
        }
    }

    /// Sends a prompt.
    pub fn send(&self, agent: AgentId, text: &str) -> PromptId {
        let sent: Sent = self.call(&send_call(agent, new_prompt(text)));
        sent.prompt
    }

    /// Sends a prompt and waits until its turn is over.
    pub fn run(&self, agent: AgentId, text: &str) -> Agent {
        let prompt = self.send(agent, text);
        self.wait_turn(agent, prompt)
    }

    /// Waits until the turn of a prompt is over, however it ended; the agent then.
    pub fn wait_turn(&self, agent: AgentId, prompt: PromptId) -> Agent {
        self.wait_agent(agent, "its turn is over", |agent| turn_is_over(agent, prompt))
    }

    /// Waits for a status.
    pub fn wait_status(&self, agent: AgentId, status: Status) -> Agent {
        self.wait_agent(agent, &format!("it is {}", status.words()), |agent| agent.status() == status)
    }

    /// Waits until an agent is as wanted.
    pub fn wait_agent(&self, id: AgentId, what: &str, mut is: impl FnMut(&Agent) -> bool) -> Agent {
        self.wait_until(what, |state| state.agents.get(&id).filter(|agent| is(agent)).cloned())
    }

    /// Waits for an agent's next open ask.
    pub fn wait_ask(&self, agent: AgentId) -> Ask {
        self.wait_until("it asks", |state| state.agents.get(&agent)?.asks.first().cloned())
    }

    /// Waits until this text stands in one of the agent's items, and returns the item's whole text as of then.
    pub fn wait_text(&self, agent: AgentId, wanted: &str) -> String {
        let mut looked_at = None;
        self.wait_until(&format!("it says {wanted:?}"), |state| {
            // The replica holds no text; a change in where the transcript stands says when to look.
            let cursor = state.agents.get(&agent)?.cursor.clone();
            if looked_at.as_ref() == Some(&cursor) {
                return None;
            }
            looked_at = Some(cursor);
            self.items(agent).iter().filter_map(text_of).find(|text| text.contains(wanted))
        })
    }

    /// Answers an ask.
    pub fn answer(&self, ask: &Ask, answer: Answer) -> Done {
        self.call(&Call::Answer { ask: ask.id.to_string(), answer })
    }

    /// Allows what is asked, once.
    pub fn allow(&self, ask: &Ask) -> Done {
        self.answer(ask, Answer::allow(GrantScope::Once))
    }

    /// Stops an agent's turn.
    pub fn interrupt(&self, agent: AgentId) -> Done {
        self.call(&Call::Interrupt { agent: agent.to_string() })
    }

    /// Closes an agent.
    pub fn close(&self, agent: AgentId) -> Done {
        self.call(&Call::Close { agent: agent.to_string() })
    }

    /// Starts an agent again.
    pub fn reopen(&self, agent: AgentId) -> AgentView {
        self.call(&Call::Reopen { agent: agent.to_string() })
    }

    /// One agent as lists show it.
    pub fn view(&self, agent: AgentId) -> AgentView {
        self.call(&Call::GetAgent { agent: agent.to_string() })
    }

    /// All open asks.
    pub fn inbox(&self) -> Vec<InboxEntry> {
        self.call(&Call::Inbox {})
    }

    /// A snapshot taken now.
    pub fn snapshot(&self) -> State {
        let mut wire = Wire::greeted(&self.home.socket()).expect("the daemon can be reached");
        let answer = wire.call(&Call::Subscribe {}).expect("a snapshot comes");
        let Snapshot { state } = serde_json::from_value(answer["result"].clone()).expect("a snapshot comes");
        state
    }

    /// An agent's whole transcript.
    pub fn items(&self, agent: AgentId) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let from = Some(ItemIndex(items.len() as u64));
            let call = Call::Transcript { agent: agent.to_string(), before: None, from, limit: 1000 };
            let page: TranscriptPage = self.call(&call);
            if page.items.is_empty() {
                return items;
            }
            items.extend(page.items);
        }
    }

    /// All that an agent said, in order.
    pub fn said(&self, agent: AgentId) -> String {
        let items = self.items(agent);
        let texts = items.iter().filter_map(|item| match &item.body {
            ItemBody::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The notices in an agent's transcript.
    pub fn notices(&self, agent: AgentId) -> Vec<(NoticeLevel, String)> {
        let notice = |item: Item| match item.body {
            ItemBody::Notice { level, text } => Some((level, text)),
            _ => None,
        };
        self.items(agent).into_iter().filter_map(notice).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The daemon may have closed it already.
        self.events.shutdown(Shutdown::Both).ok();
        if let Some(watcher) = self.watcher.take()
            && watcher.join().is_err()
            && !std::thread::panicking()
        {
            panic!("following the daemon failed");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, mut wire: Wire) {
        let reason = loop {
            let line = match wire.read_line() {
                Ok(line) => line,
                Err(error) => break error.to_string(),
            };
            let notification = match serde_json::from_slice(&line) {
                Ok(FromDaemon::Notification(notification)) => notification,
                other => break format!("the daemon sent {other:?}"),
            };
            let mut followed = self.lock();
            if let Err(wrong) = followed.take_in(notification) {
                break wrong;
            }
            drop(followed);
            self.changed.notify_all();
        };
        self.lock().broken = Some(reason);
        self.changed.notify_all();
    }

    fn wait<T>(&self, limit: Duration, mut look: impl FnMut(&Followed) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + limit;
        let mut followed = self.lock();
        loop {
            if let Some(found) = look(&followed) {
                return Ok(found);
            }
            if let Some(reason) = &followed.broken {
                return Err(format!("following ended ({reason}); {}", followed.seen()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("not within {} seconds; {}", limit.as_secs(), followed.seen()));
            }
            followed = self.changed.wait_timeout(followed, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Followed {
    fn take_in(&mut self, notification: Notification) -> Result<(), String> {
        match notification {
            Notification::Snapshot(Snapshot { state }) => {
                if state.seq < self.state.seq {
                    return Err(format!(
                        "a snapshot as of {} came after event {}",
                        state.seq, self.state.seq
                    ));
                }
                self.state = state;
                self.snapshots += 1;
            }
            Notification::Event(stamped) => {
                if stamped.seq <= self.state.seq {
                    return Err(format!("event {} came after event {}", stamped.seq, self.state.seq));
                }
                self.check_text(&stamped)?;
                self.state.apply(&stamped);
                let text =
                    matches!(stamped.event, Event::Agent { change: AgentEvent::TextAppended { .. }, .. });
                if !text {
                    self.events.push(stamped);
                }
            }
        }
        Ok(())
    }

    /// Text continues where the replica stands, or a part of it was lost or came twice.
    fn check_text(&self, stamped: &Stamped) -> Result<(), String> {
        let Event::Agent { agent, change: AgentEvent::TextAppended { index, offset, .. } } = &stamped.event
        else {
            return Ok(());
        };
        let writing = self.state.agents.get(agent).and_then(|agent| agent.cursor.writing.as_ref());
        match writing {
            Some(writing) if writing.index == *index && writing.len == *offset => Ok(()),
            other => Err(format!("event {stamped:?} does not continue {other:?}")),
        }
    }

    /// What the replica shows, for the message of a test that failed.
    fn seen(&self) -> String {
        let agents = self.state.agents.values().map(|agent| {
            format!(
                "  {} {}: {:?}, turn {:?}, {} queued, {} asks, {} items",
                agent.name,
                agent.id,
                agent.lifecycle,
                agent.turn,
                agent.queue.len(),
                agent.asks.len(),
                agent.cursor.items
            )
        });
        format!("as of event {}:\n{}", self.state.seq, agents.collect::<Vec<_>>().join("\n"))
    }
}

/// Whether the turn of a prompt began and is over.
pub fn turn_is_over(agent: &Agent, prompt: PromptId) -> bool {
    agent.taken.contains(&prompt) && agent.turn.is_none()
}

pub(crate) fn new_prompt(text: &str) -> NewPrompt {
    NewPrompt { id: PromptId::new(Uuid::now_v7()), text: text.to_owned(), attachments: vec![] }
}

pub(crate) fn send_call(agent: AgentId, prompt: NewPrompt) -> Call {
    Call::Send { agent: agent.to_string(), prompt }
}

fn text_of(item: &Item) -> Option<String> {
    match &item.body {
        ItemBody::Text { text } | ItemBody::Thinking { text } | ItemBody::Notice { text, .. } => {
            Some(text.clone())
        }
        _ => None,
    }
}
