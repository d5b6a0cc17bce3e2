//! The replica: snapshots and events, pages of transcripts, and answers to what was asked.

use consort_daemon::protocol::{
    Answered, Call, ErrorBody, Notification, ProfileCheck, Sent, Snapshot, TranscriptPage,
};
use consort_model::command::Refusal;
use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, AskId, DiffText, Event, ItemIndex, ProfileId, Relation, Stamped, State, TurnOutcome,
};
use serde::de::DeserializeOwned;

use super::prompt::{Delivery, Draft};
use super::{App, Effect, Topic};
use crate::memory::Notices;
use crate::overlay::Overlay;
use crate::text::clean;
use crate::transcript::{PAGE, Wanted};

/// How the daemon can be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Connection {
    /// The first snapshot has not come.
    Connecting,
    /// The replica is up to date.
    Up,
    /// The daemon is gone.
    Lost {
        /// How it went.
        why: String,
        /// Whether a new one is being started.
        starting: bool,
    },
}

/// What an answer is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The greeting.
    Hello,
    /// The first snapshot.
    Snapshot,
    /// A page of an agent's transcript.
    Page(AgentId, Wanted),
    /// A page that is searched, of the search with this number.
    Hunted(u64),
    /// Nothing is to be said if it went well.
    Quiet,
    /// A command that changed something; sent again if the connection broke.
    Command,
    /// A command that may not be sent twice.
    Once,
    /// The answer to an ask.
    Answer(AskId),
    /// The answers to several asks.
    Answers,
    /// A new agent, to be shown.
    Created(AgentId),
    /// A prompt; what to put back if it was refused.
    Sent(AgentId, Draft),
    /// A prompt for the turn that runs; what to put back if it was refused.
    Steered(AgentId, Draft),
    /// What an agent changed.
    Diff(AgentId),
    /// What was found out about profiles.
    Checked,
    /// A profile, a rule or a limit that was saved; its form closes.
    Saved,
    /// A new agent that a form describes; the form closes once it is made.
    Described(AgentId),
    /// The new value of a limit; what was typed, to be corrected.
    Limit(&'static str, String),
    /// Other keys; they are in the settings' file.
    Keys,
    /// The sessions that the program of a profile keeps.
    Sessions(ProfileId),
    /// The worktrees.
    Worktrees,
    /// A worktree's branch that was brought home.
    WorktreeFinished,
    /// A worktree that was removed.
    WorktreeRemoved,
}

impl Reply {
    /// Whether what was asked is sent again on a new connection.
    pub fn is_worth_repeating(&self) -> bool {
        matches!(
            self,
            Self::Command
                | Self::Answer(_)
                | Self::Answers
                | Self::Created(_)
                | Self::Sent(..)
                | Self::Steered(..)
        )
    }
}

impl App {
    /// There is a connection: ask for everything in one go.
    pub fn connected(&mut self) {
        let mut shown: Vec<AgentId> = match self.connection {
            Connection::Connecting => self.memory.desk.workspace().panes.iter().copied().flatten().collect(),
            _ => self.arranged().agents().collect(),
        };
        shown.sort_unstable();
        self.watched = shown.clone();
        self.call(Call::Watch { transcripts: shown.clone() }, Reply::Quiet);
        self.call(Call::Subscribe {}, Reply::Snapshot);
        for agent in shown {
            self.transcripts.entry(agent).or_default();
            self.load_page(agent);
        }
    }

    /// The connection is gone.
    pub fn disconnected(&mut self, why: &str) {
        if let Connection::Lost { .. } = self.connection {
            return;
        }
        self.transcripts.values_mut().for_each(|transcript| transcript.disconnected());
        self.connection = Connection::Lost { why: why.to_owned(), starting: false };
        self.hunt = None;
        self.sessions_lost();
        self.redraw();
    }

    /// Something came that nobody asked for.
    pub fn notification(&mut self, notification: Notification) {
        match notification {
            Notification::Event(stamped) => self.event(&stamped),
            Notification::Snapshot(snapshot) => self.snapshot(snapshot.state),
        }
    }

    fn snapshot(&mut self, state: State) {
        let first = self.connection == Connection::Connecting;
        // What happened between this and the last event is not told: the ends of transcripts are loaded anew.
        if !first {
            self.transcripts.values_mut().for_each(|transcript| transcript.disconnected());
        }
        self.state = state;
        self.connection = Connection::Up;
        if first {
            self.recall_unread();
        }
        // Somebody has just opened the screen and waits for it.
        self.damage.urgent |= first;
        if self.arranged().focused().is_none() {
            let open = crate::tree::order(&self.state, &self.memory.desk);
            let is_here = |id: &&AgentId| {
                self.state.agents.get(id).is_some_and(|agent| std::path::Path::new(&agent.cwd) == self.cwd)
            };
            if let Some(agent) = open.iter().rev().find(is_here).or(open.last()).copied() {
                // What was typed meanwhile was meant for whoever is shown.
                let typed = self.blank.text().to_owned();
                self.memory.desk.show(&self.state, agent, false);
                if first && !typed.is_empty() && self.composer().is_empty() {
                    self.blank.take();
                    self.composer_mut().replace(typed);
                }
            }
        }
        self.follow_row();
        self.asks_changed();
        self.screen_changed();
        if std::mem::take(&mut self.send_when_up) {
            self.send(Delivery::Waits);
        }
    }

    /// Marks what was new when the screen was left, and whoever ended a turn since then.
    fn recall_unread(&mut self) {
        let left_at = self.memory.left_at;
        let ended_since = |agent: &&Agent| agent.ended_at.is_some_and(|at| left_at > 0 && at.0 > left_at);
        let ended: Vec<AgentId> = self.state.agents.values().filter(ended_since).map(|it| it.id).collect();
        self.unread
            .extend(self.memory.unread.iter().chain(&ended).filter(|id| self.state.agents.contains_key(id)));
    }

    fn event(&mut self, stamped: &Stamped) {
        if stamped.seq <= self.state.seq {
            return;
        }
        if let Event::Agent { agent, change } = &stamped.event
            && change.is_transcript()
        {
            self.state.apply(stamped);
            let changed = self.transcripts.get_mut(agent).is_some_and(|transcript| transcript.apply(change));
            self.damage.panes |= changed;
            if changed {
                self.load_page(*agent);
            }
            return;
        }
        let before = self.arranged();
        let notice = self.noticed(stamped);
        self.state.apply(stamped);
        match &stamped.event {
            Event::Agent { agent, change } => self.agent_changed(*agent, change),
            _ => self.redraw(),
        }
        if let Some(text) = notice {
            self.effect(Effect::Notify(text));
        }
        if self.arranged() != before {
            self.screen_changed();
        }
    }

    fn agent_changed(&mut self, agent: AgentId, change: &AgentEvent) {
        self.damage.sidebar = true;
        self.damage.panes = true;
        self.damage.status = true;
        self.queue_changed(agent);
        if let AgentEvent::Ready { .. } = change {
            self.is_over(Topic::Parked(agent));
        }
        match change {
            AgentEvent::UsageChanged { .. } => {}
            AgentEvent::TurnEnded { .. } | AgentEvent::Failed { .. } => {
                let shown = self.arranged().agents().any(|shown| shown == agent);
                if !shown || !self.terminal_focused {
                    self.unread.insert(agent);
                }
                self.asks_changed();
                if self.focused() == Some(agent)
                    && let Some(agent) = self.state.agents.get(&agent)
                {
                    let cwd = agent.cwd.clone().into();
                    self.effect(Effect::Branch(cwd));
                }
                self.redraw();
            }
            AgentEvent::Closed => {
                self.asks_changed();
                self.leave_closed(agent);
                self.redraw();
            }
            AgentEvent::Asked { .. } | AgentEvent::Settled { .. } => {
                self.asks_changed();
                self.redraw();
            }
            AgentEvent::Created { .. } if self.wanted == Some(agent) => {
                self.wanted = None;
                self.show(agent, false);
            }
            _ => self.redraw(),
        }
    }

    /// What a person who looks elsewhere should hear of this event: that an agent needs them, or is done.
    fn noticed(&self, stamped: &Stamped) -> Option<String> {
        let Event::Agent { agent: id, change } = &stamped.event else { return None };
        let agent = self.state.agents.get(id).filter(|_| self.memory.notices != Notices::Off)?;
        if self.terminal_focused && self.arranged().agents().any(|shown| shown == *id) {
            return None;
        }
        let name = clean::one_line(&agent.name);
        match change {
            AgentEvent::Asked { ask } => Some(format!("{name} needs you: {}", clean::one_line(&ask.title))),
            // A sub-agent's end is its parent's business, and a prompt that waits goes on by itself.
            AgentEvent::TurnEnded { outcome }
                if agent.relation == Relation::Primary
                    && agent.queue.is_empty()
                    && !self.terminal_focused =>
            {
                match outcome {
                    TurnOutcome::Completed => Some(format!("{name} is done")),
                    TurnOutcome::Interrupted => None,
                    TurnOutcome::Stopped { reason } | TurnOutcome::Failed { message: reason } => {
                        Some(format!("{name} stopped: {}", clean::one_line(reason)))
                    }
                }
            }
            AgentEvent::Failed { failure } => {
                Some(format!("{name} failed: {}", clean::one_line(&failure.message)))
            }
            _ => None,
        }
    }

    /// Asks for the pages that are wanted.
    pub fn load_pages(&mut self) {
        for agent in self.watched.clone() {
            self.load_page(agent);
        }
    }

    pub(super) fn load_page(&mut self, agent: AgentId) {
        let wanted = self.transcripts.get_mut(&agent).and_then(|transcript| transcript.wants());
        if let Some(wanted) = wanted {
            self.ask_page(agent, wanted);
        }
    }

    pub(super) fn ask_page(&mut self, agent: AgentId, wanted: Wanted) {
        let (before, from) = match wanted {
            Wanted::Last => (None, None),
            Wanted::Before(index) => (Some(ItemIndex(index)), None),
            Wanted::From(index) => (None, Some(ItemIndex(index))),
        };
        let call = Call::Transcript { agent: agent.to_string(), before, from, limit: PAGE };
        self.call(call, Reply::Page(agent, wanted));
    }

    /// An answer came.
    pub fn answered(&mut self, reply: Reply, answer: Result<String, ErrorBody>) {
        match (reply, answer) {
            (Reply::Snapshot, Ok(text)) => match read::<Snapshot>(&text) {
                Ok(snapshot) => self.snapshot(snapshot.state),
                Err(problem) => self.complain(problem),
            },
            (Reply::Page(agent, wanted), Ok(text)) => {
                let Some(transcript) = self.transcripts.get_mut(&agent) else { return };
                match read::<TranscriptPage>(&text) {
                    Ok(page) => transcript.page(wanted, page.items, page.total),
                    Err(problem) => {
                        transcript.page_failed();
                        return self.complain(problem);
                    }
                }
                self.damage.panes = true;
                // It was asked for because a person went there.
                self.damage.urgent = true;
                self.load_page(agent);
            }
            (Reply::Page(agent, _), Err(error)) => {
                if let Some(transcript) = self.transcripts.get_mut(&agent) {
                    transcript.page_failed();
                }
                // An agent that was remembered and is no more is nothing to complain about.
                if self.state.agents.contains_key(&agent) {
                    self.complain(error.message);
                }
            }
            (Reply::Created(agent), Ok(_)) => {
                if self.state.agents.contains_key(&agent) {
                    self.show(agent, false);
                } else {
                    self.wanted = Some(agent);
                }
            }
            (Reply::Steered(agent, _), Ok(text)) => {
                if let Ok(sent) = read::<Sent>(&text) {
                    self.steered(agent, sent.joins);
                }
            }
            (Reply::Sent(agent, draft) | Reply::Steered(agent, draft), Err(error)) => {
                self.prompt_refused(agent, error);
                self.put_back(agent, draft);
            }
            (Reply::Answer(_), Err(error)) => self.complain(not_counted(error)),
            (Reply::Answers, Ok(text)) => match read::<Vec<Answered>>(&text) {
                Ok(told) => self.answers_told(&told),
                Err(problem) => self.complain(problem),
            },
            (Reply::Hunted(hunt), answer) => {
                let page =
                    answer.map_err(|error| error.message).and_then(|text| read::<TranscriptPage>(&text));
                self.hunted(hunt, page);
            }
            (Reply::Diff(agent), answer) => {
                let diff = answer.map_err(|error| error.message).and_then(|text| read::<DiffText>(&text));
                self.changes(agent, diff);
            }
            (Reply::Checked, Ok(text)) => {
                if let Ok(checks) = read::<Vec<ProfileCheck>>(&text) {
                    for overlay in &mut self.overlays {
                        if let Overlay::Settings(settings) = overlay {
                            settings.checked(checks.clone());
                        }
                    }
                    self.redraw();
                }
            }
            (Reply::Saved, Ok(_)) => {
                self.overlays.retain(|overlay| !matches!(overlay, Overlay::Form(_)));
                self.say("saved");
                self.redraw();
            }
            (Reply::Saved, Err(error)) => self.form_refused(error.message),
            (Reply::Described(agent), Ok(_)) => {
                self.overlays.retain(|overlay| !matches!(overlay, Overlay::Form(_)));
                self.answered(Reply::Created(agent), Ok(String::new()));
            }
            (Reply::Described(_), Err(error)) => {
                self.wanted = None;
                self.form_refused(error.message);
            }
            (Reply::Limit(..), Ok(_)) => self.say("saved"),
            (Reply::Keys, Ok(_)) => self.effect(Effect::ReadKeys),
            (Reply::Limit(name, typed), Err(error)) => self.limit_refused(name, &typed, error.message),
            (Reply::Sessions(profile), answer) => {
                let told = answer.map_err(|error| error.message).and_then(|text| read(&text));
                self.sessions_told(&profile, told);
            }
            (Reply::Worktrees, answer) => {
                let worktrees = answer.map_err(|error| error.message).and_then(|text| read(&text));
                self.worktrees_told(worktrees);
            }
            (Reply::WorktreeFinished, Ok(text)) => match read(&text) {
                Ok(finished) => self.worktree_finished(&finished),
                Err(problem) => self.complain(problem),
            },
            (Reply::WorktreeRemoved, Ok(text)) => match read(&text) {
                Ok(removed) => self.worktree_removed(&removed),
                Err(problem) => self.complain(problem),
            },
            (Reply::Hello, Err(error)) => {
                self.connection = Connection::Lost { why: error.message, starting: false };
                self.redraw();
            }
            (_, Err(error)) => self.complain(error.message),
            (_, Ok(_)) => {}
        }
    }
}

/// Why an answer does not count, without the id that the daemon names the request by.
fn not_counted(error: ErrorBody) -> String {
    match serde_json::from_value(error.data) {
        Ok(Refusal::NotOpen { settled, .. }) => {
            let why = settled.unwrap_or_else(|| "it was answered or cancelled".to_owned());
            format!("that request is not open any more: {why}")
        }
        _ => error.message,
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("the daemon sent something unexpected: {error}"))
}
