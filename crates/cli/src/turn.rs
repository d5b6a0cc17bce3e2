//! Waiting for the turn that one prompt begins: `run` and `send --wait`.
//!
//! Owns when the turn is over and with which outcome, over any number of lost connections; what to do about approvals
//! that come up; and Ctrl-C. What is printed is the [`View`]'s.

use std::collections::HashSet;
use std::io::Write;
use std::time::{Duration, Instant};

use consort_daemon::protocol::{Call, Done, InboxEntry};
use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, AskId, Event, Failure, ItemBody, Lifecycle, PromptId, Stamped, State, Status, TurnId,
    TurnOutcome,
};

use crate::exit::{Exit, Stop};
use crate::follow::{Update, Watch};
use crate::link::{Link, is_not_open};
use crate::output::{Paint, note, one_line, short};
use crate::progress::Progress;
use crate::tail::{HumanTail, JsonTail};
use crate::terminal::{Dialogue, Step};

/// How long an agent that was told to stop may take before this program no longer waits for it.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How the wait ended.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// The turn is over.
    Outcome(TurnOutcome),
    /// The agent failed before the turn began.
    Failed(Failure),
    /// The prompt was taken back, or the agent closed before its turn.
    Dropped,
    /// A person is needed for this and none can be asked.
    NeedsPerson {
        /// What is asked.
        title: String,
    },
    /// The time is over.
    TimedOut,
    /// Ctrl-C: this program should go.
    Abandoned,
    /// SIGTERM.
    Terminated,
}

impl End {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Outcome(outcome) => Exit::of_outcome(outcome),
            Self::Failed(_) => Exit::TurnFailed,
            Self::Dropped => Exit::Interrupted,
            Self::NeedsPerson { .. } => Exit::NeedsPerson,
            Self::TimedOut => Exit::TimedOut,
            Self::Abandoned => Exit::Abandoned,
            Self::Terminated => Exit::Terminated,
        }
    }

    /// The word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Outcome(TurnOutcome::Completed) => "completed",
            Self::Outcome(TurnOutcome::Interrupted) => "interrupted",
            Self::Outcome(TurnOutcome::Stopped { .. }) => "stopped",
            Self::Outcome(TurnOutcome::Failed { .. }) | Self::Failed(_) => "failed",
            Self::Dropped => "dropped",
            Self::NeedsPerson { .. } => "needs_person",
            Self::TimedOut => "timed_out",
            Self::Abandoned => "abandoned",
            Self::Terminated => "terminated",
        }
    }

    /// Why, where there is something to say.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Outcome(TurnOutcome::Failed { message }) => Some(message.clone()),
            Self::Outcome(TurnOutcome::Stopped { reason }) => Some(reason.clone()),
            Self::Failed(failure) => Some(failure.message.clone()),
            Self::NeedsPerson { title } => Some(title.clone()),
            _ => None,
        }
    }
}

/// Which prompt is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The agent.
    pub agent: AgentId,
    /// The prompt.
    pub prompt: PromptId,
    /// How many items the transcript had before the prompt.
    pub from: u64,
}

/// Where the prompt is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Waiting,
    Running,
}

/// Follows one prompt through events and snapshots.
#[derive(Debug)]
pub struct Tracker {
    goal: Goal,
    stage: Stage,
}

impl Tracker {
    /// Begins before the prompt's turn.
    pub fn new(goal: Goal) -> Self {
        Self { goal, stage: Stage::Waiting }
    }

    /// Takes in an event of the agent.
    pub fn apply(&mut self, change: &AgentEvent) -> Option<End> {
        match (self.stage, change) {
            (Stage::Waiting, AgentEvent::TurnStarted { prompts, .. })
                if prompts.contains(&self.goal.prompt) =>
            {
                self.stage = Stage::Running;
                None
            }
            (Stage::Waiting, AgentEvent::PromptJoined { prompt }) if *prompt == self.goal.prompt => {
                self.stage = Stage::Running;
                None
            }
            (Stage::Running, AgentEvent::TurnEnded { outcome }) => Some(End::Outcome(outcome.clone())),
            (Stage::Waiting, AgentEvent::PromptDropped { prompt }) if *prompt == self.goal.prompt => {
                Some(End::Dropped)
            }
            (_, AgentEvent::Failed { failure }) => Some(End::Failed(failure.clone())),
            (_, AgentEvent::Closed) => Some(End::Dropped),
            _ => None,
        }
    }

    /// Takes in a whole state. `turn_of_prompt` looks into the transcript for the turn that the prompt began.
    pub fn resync(
        &mut self,
        agent: Option<&Agent>,
        turn_of_prompt: impl FnOnce() -> Result<Option<TurnId>, Stop>,
    ) -> Result<Option<End>, Stop> {
        let Some(agent) = agent else { return Ok(Some(End::Dropped)) };
        if agent.queue.iter().any(|prompt| prompt.id == self.goal.prompt) {
            self.stage = Stage::Waiting;
            return Ok(match &agent.lifecycle {
                Lifecycle::Failed(failure) => Some(End::Failed(failure.clone())),
                Lifecycle::Closed { .. } => Some(End::Dropped),
                Lifecycle::Queued | Lifecycle::Starting | Lifecycle::Ready | Lifecycle::Resting => None,
            });
        }
        // It was taken before this state: its turn is the current one, or over.
        Ok(match turn_of_prompt()? {
            Some(turn) if agent.turn.as_ref().is_some_and(|current| current.id == turn) => {
                self.stage = Stage::Running;
                None
            }
            Some(_) => Some(End::Outcome(agent.last_outcome.clone().unwrap_or(TurnOutcome::Interrupted))),
            None => Some(End::Dropped),
        })
    }
}

/// What is printed while waiting.
pub enum View {
    /// For people.
    Human(HumanTail),
    /// One JSON object per item.
    Json(JsonTail),
    /// Nothing.
    Silent,
}

/// Who can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Person {
    /// A person at this terminal.
    Here,
    /// A person in the inbox: say so and wait.
    Inbox,
    /// Nobody.
    Nobody,
}

/// A wait for one turn.
pub struct Wait<'a> {
    /// For commands.
    pub link: &'a mut Link,
    /// Which prompt.
    pub goal: Goal,
    /// The agent's name.
    pub name: String,
    /// What is printed.
    pub view: View,
    /// Who can be asked.
    pub person: Person,
    /// Whether Ctrl-C interrupts the agent before it ends this program.
    pub interrupts: bool,
    /// When the time is over.
    pub deadline: Option<Instant>,
}

/// What a wait found.
pub struct Waited {
    /// How it ended.
    pub end: End,
    /// The agent as it was last seen.
    pub agent: Option<Agent>,
    /// Why the agent failed, if that is why it ended.
    pub failure: Option<Failure>,
    /// The view, for what is left to print.
    pub view: View,
}

/// Waiting, with what it must remember.
struct Waiting<'a> {
    wait: Wait<'a>,
    watch: Watch,
    tracker: Tracker,
    progress: Progress,
    dialogue: Option<Dialogue>,
    told: HashSet<AskId>,
    /// Set once the agent was told to stop: what that means for the end, and when to stop waiting for it.
    stopping: Option<(Option<End>, Instant)>,
}

impl Wait<'_> {
    /// Waits until the turn is over.
    pub fn wait(self) -> Result<Waited, Stop> {
        let watch = Watch::new(self.link.home());
        watch.catch_signals()?;
        let tracker = Tracker::new(self.goal);
        let mut waiting = Waiting {
            wait: self,
            watch,
            tracker,
            progress: Progress::new(),
            dialogue: None,
            told: HashSet::new(),
            stopping: None,
        };
        let end = waiting.run()?;
        waiting.progress.clear();
        if let View::Human(tail) = &mut waiting.wait.view {
            tail.pause()?;
        }
        let Goal { agent, .. } = waiting.wait.goal;
        // A turn that ended with its agent's process is told before the process's end is.
        let failure = match &end {
            End::Failed(failure) => Some(failure.clone()),
            End::Outcome(TurnOutcome::Failed { .. }) => waiting.wait.link.agent(&agent.to_string())?.failure,
            _ => None,
        };
        let agent = waiting.watch.agent(agent).cloned();
        Ok(Waited { end, agent, failure, view: waiting.wait.view })
    }
}

impl Waiting<'_> {
    fn run(&mut self) -> Result<End, Stop> {
        loop {
            let deadline = self.next_deadline();
            let update = self.watch.next(deadline)?;
            let ended = match update {
                Update::Resync => self.resync()?,
                Update::Event(stamped) => self.event(&stamped)?,
                Update::Interrupt => self.interrupt()?,
                Update::Terminate => Some(End::Terminated),
                Update::Line(line) => self.line(line.as_deref())?,
                Update::Timeout => self.timeout()?,
            };
            if let Some(end) = ended {
                // An end that was brought about from here says why.
                let why = self.stopping.take().and_then(|(why, _)| why);
                return Ok(match (why, end) {
                    (Some(why), End::Outcome(TurnOutcome::Interrupted) | End::Dropped) => why,
                    (_, end) => end,
                });
            }
        }
    }

    /// When to wake without news: for the progress line, the time limit, or an agent that does not stop.
    fn next_deadline(&mut self) -> Option<Instant> {
        let draws =
            self.dialogue.is_none() && !matches!(&self.wait.view, View::Human(tail) if tail.in_line());
        let progress = if draws {
            let text = self.progress_text();
            self.progress.set(&text);
            self.progress.tick()
        } else {
            None
        };
        let limit = match &self.stopping {
            Some((_, until)) => Some(*until),
            None => self.wait.deadline,
        };
        [progress, limit].into_iter().flatten().min()
    }

    fn progress_text(&self) -> String {
        let name = one_line(&self.wait.name);
        let Some(agent) = self.watch.agent(self.wait.goal.agent) else {
            return format!("{name}: connecting");
        };
        let doing = match &self.wait.view {
            View::Human(tail) => tail.doing(),
            _ => None,
        };
        match (agent.status(), doing) {
            (Status::Working, Some(doing)) => format!("{name}: {doing}"),
            (Status::Working, None) if self.tracker.stage == Stage::Waiting => {
                format!("{name}: busy, prompt waits")
            }
            (status, _) => format!("{name}: {}", status.words()),
        }
    }

    fn resync(&mut self) -> Result<Option<End>, Stop> {
        self.quiet()?;
        let agent = self.watch.agent(self.wait.goal.agent);
        match &mut self.wait.view {
            View::Human(tail) => tail.catch_up(self.wait.link, agent)?,
            View::Json(tail) => tail.catch_up(self.wait.link, agent)?,
            View::Silent => {}
        }
        let goal = self.wait.goal;
        let link = &mut *self.wait.link;
        let end = self.tracker.resync(agent, || turn_of(link, goal))?;
        if end.is_some() { Ok(end) } else { self.look_for_asks() }
    }

    fn event(&mut self, stamped: &Stamped) -> Result<Option<End>, Stop> {
        let Event::Agent { agent, change } = &stamped.event else { return Ok(None) };
        if *agent == self.wait.goal.agent {
            if prints(change) {
                self.quiet()?;
            }
            let replica = self.watch.agent(*agent);
            match &mut self.wait.view {
                View::Human(tail) => tail.apply(change, replica, self.wait.link)?,
                View::Json(tail) => tail.apply(change, replica, self.wait.link)?,
                View::Silent => {}
            }
            if let Some(end) = self.tracker.apply(change) {
                return Ok(Some(end));
            }
        }
        match change {
            AgentEvent::Asked { .. } => self.look_for_asks(),
            AgentEvent::Settled { ask, .. } => {
                if self.dialogue.as_ref().is_some_and(|dialogue| dialogue.ask == *ask) {
                    self.dialogue = None;
                    say("\n(answered elsewhere)\n");
                }
                self.look_for_asks()
            }
            _ => Ok(None),
        }
    }

    /// Takes the progress line away before something is printed.
    fn quiet(&mut self) -> Result<(), Stop> {
        self.progress.clear();
        Ok(())
    }

    /// Deals with what the agent, or one that works for it, asks. What the replica shows may be settled by a rule in the
    /// very next event, so the daemon is asked what is really open.
    fn look_for_asks(&mut self) -> Result<Option<End>, Stop> {
        if self.dialogue.is_some() || self.stopping.is_some() {
            return Ok(None);
        }
        let goal = self.wait.goal.agent;
        let state = self.watch.state();
        let any = state.inbox().iter().any(|(agent, _)| belongs_to(state, agent.id, goal));
        if !any {
            return Ok(None);
        }
        let open: Vec<InboxEntry> = self
            .wait
            .link
            .inbox()?
            .into_iter()
            .filter(|entry| belongs_to(state, entry.agent, goal))
            .collect();
        match self.wait.person {
            Person::Here => {
                let Some(entry) = open.first() else { return Ok(None) };
                self.progress.clear();
                if let View::Human(tail) = &mut self.wait.view {
                    tail.pause()?;
                }
                let paint =
                    if anstream::AutoStream::choice(&std::io::stderr()) == anstream::ColorChoice::Never {
                        Paint::plain()
                    } else {
                        Paint::for_stdout()
                    };
                let (dialogue, text) = Dialogue::begin(entry, paint);
                say(&text);
                self.dialogue = Some(dialogue);
                self.watch.want_line();
            }
            Person::Inbox => {
                for entry in open {
                    if self.told.insert(entry.id) {
                        self.progress.clear();
                        let (name, id) = (&entry.agent_name, short(entry.id));
                        let how = if entry.kind == "question" {
                            format!("consort answer {id} …")
                        } else {
                            format!("consort approve {id}` or `consort deny {id}")
                        };
                        note(&format!("{name} needs input: {}; `{how}`", one_line(&entry.title)));
                    }
                }
            }
            Person::Nobody => {
                let Some(entry) = open.first() else { return Ok(None) };
                self.stop(Some(End::NeedsPerson { title: one_line(&entry.title) }))?;
            }
        }
        Ok(None)
    }

    fn line(&mut self, line: Option<&str>) -> Result<Option<End>, Stop> {
        let Some(dialogue) = &mut self.dialogue else { return Ok(None) };
        match dialogue.line(line) {
            Step::Ask(text) => {
                say(&text);
                self.watch.want_line();
                Ok(None)
            }
            Step::Answer(answer) => {
                let ask = dialogue.ask.to_string();
                self.dialogue = None;
                match self.wait.link.answer(&ask, answer) {
                    Ok(()) => {}
                    Err(stop) if stop.cause.as_deref().is_some_and(is_not_open) => {
                        say("(answered elsewhere)\n")
                    }
                    Err(stop) if stop.exit == Exit::Refused => {
                        say(&format!("{}\n", stop.message.unwrap_or_default()));
                    }
                    Err(stop) => return Err(stop),
                }
                self.look_for_asks()
            }
        }
    }

    fn interrupt(&mut self) -> Result<Option<End>, Stop> {
        if !self.wait.interrupts {
            return Ok(Some(End::Abandoned));
        }
        if self.stopping.is_some() {
            self.stopping = None;
            return Ok(Some(End::Outcome(TurnOutcome::Interrupted)));
        }
        self.progress.clear();
        if let View::Human(tail) = &mut self.wait.view {
            tail.pause()?;
        }
        note("stopping the agent; Ctrl-C again does not wait for it");
        self.stop(None)?;
        Ok(None)
    }

    fn timeout(&mut self) -> Result<Option<End>, Stop> {
        let now = Instant::now();
        match &self.stopping {
            Some((why, until)) if now >= *until => {
                Ok(Some(why.clone().unwrap_or(End::Outcome(TurnOutcome::Interrupted))))
            }
            Some(_) => Ok(None),
            None if self.wait.deadline.is_some_and(|deadline| now >= deadline) => {
                self.stop(Some(End::TimedOut))?;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Tells the agent to stop, and waits for that a little.
    fn stop(&mut self, why: Option<End>) -> Result<(), Stop> {
        self.dialogue = None;
        let waits = self.tracker.stage == Stage::Waiting;
        let call = Call::Interrupt { agent: self.wait.goal.agent.to_string() };
        let limit = match self.wait.link.call::<Done>(&call) {
            Ok(_) if !waits => STOP_LIMIT,
            // A turn that has not begun cannot be stopped; nothing is to be waited for.
            Ok(_) => Duration::ZERO,
            Err(error) => match Stop::from(error) {
                stop if stop.exit == Exit::Refused => Duration::ZERO,
                stop => return Err(stop),
            },
        };
        self.stopping = Some((why, Instant::now() + limit));
        Ok(())
    }
}

/// Whether a change may make the view print something.
fn prints(change: &AgentEvent) -> bool {
    change.is_transcript()
        || matches!(change, AgentEvent::TurnEnded { .. } | AgentEvent::Failed { .. } | AgentEvent::Closed)
}

/// Whether `agent` is `above` or works for it.
fn belongs_to(state: &State, mut agent: AgentId, above: AgentId) -> bool {
    for _ in 0..16 {
        if agent == above {
            return true;
        }
        match state.agents.get(&agent).and_then(|agent| agent.relation.bound_to()) {
            Some(next) => agent = next,
            None => return false,
        }
    }
    false
}

/// The turn that the prompt began, as the transcript has it.
fn turn_of(link: &mut Link, goal: Goal) -> Result<Option<TurnId>, Stop> {
    let mut found = None;
    link.items(goal.agent, goal.from, |item| {
        if let ItemBody::User { prompt, .. } = &item.body
            && *prompt == goal.prompt
        {
            found = item.turn;
            return Ok(false);
        }
        Ok(true)
    })?;
    Ok(found)
}

/// All that the agent said in the turn of the prompt, its own sub-agents' words left out.
pub fn text_of(link: &mut Link, goal: Goal) -> Result<String, Stop> {
    let mut turn = None;
    let mut texts: Vec<String> = Vec::new();
    link.items(goal.agent, goal.from, |item| {
        match &item.body {
            ItemBody::User { prompt, .. } if *prompt == goal.prompt => turn = item.turn,
            ItemBody::Text { text } if turn.is_some() && item.turn == turn && item.within.is_none() => {
                texts.push(text.trim_end().to_owned());
            }
            _ => {}
        }
        Ok(turn.is_none() || item.turn.is_none() || item.turn == turn)
    })?;
    Ok(texts.join("\n\n"))
}

/// Says something to the person at the terminal, without a line end. Text is clean.
fn say(text: &str) {
    let mut stderr = std::io::stderr();
    // A person who cannot be told cannot be helped.
    drop(stderr.write_all(text.as_bytes()));
    drop(stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn goal() -> Goal {
        Goal { agent: AgentId::new(Uuid::nil()), prompt: PromptId::new(Uuid::from_u128(7)), from: 0 }
    }

    fn turn(number: u128) -> TurnId {
        TurnId::new(Uuid::from_u128(number))
    }

    fn agent(queued: bool, current: Option<u128>) -> Agent {
        let queue = if queued {
            serde_json::json!([{ "id": goal().prompt, "origin": { "from": "person" }, "text": "x", "at": 0 }])
        } else {
            serde_json::json!([])
        };
        let turn = current.map(|number| serde_json::json!({ "id": turn(number), "started_at": 0 }));
        serde_json::from_value(serde_json::json!({
            "id": goal().agent, "name": "a", "profile": "p", "driver": "acp", "cwd": "/", "created_by": null,
            "relation": "primary", "created_at": 0, "lifecycle": { "state": "ready" }, "generation": 1,
            "permissions": "default", "turn": turn, "last_outcome": { "outcome": "completed" }, "queue": queue,
            "asks": [], "session": null, "options": [], "commands": [], "plan": [], "usage": {}, "title": null,
            "cursor": { "items": 0 },
        }))
        .unwrap()
    }

    fn started(turn_number: u128, prompt: PromptId) -> AgentEvent {
        AgentEvent::TurnStarted { turn: turn(turn_number), prompts: vec![prompt] }
    }

    fn ended() -> AgentEvent {
        AgentEvent::TurnEnded { outcome: TurnOutcome::Completed }
    }

    #[test]
    fn the_end_of_an_earlier_turn_is_not_the_end() {
        let mut tracker = Tracker::new(goal());
        assert_eq!(tracker.apply(&started(1, PromptId::new(Uuid::nil()))), None);
        assert_eq!(tracker.apply(&ended()), None);
        assert_eq!(tracker.apply(&started(2, goal().prompt)), None);
        assert_eq!(tracker.apply(&ended()), Some(End::Outcome(TurnOutcome::Completed)));
    }

    #[test]
    fn a_new_state_tells_whether_the_turn_waits_runs_or_is_over() {
        let resync = |agent: Option<&Agent>, of: Option<u128>| {
            let mut tracker = Tracker::new(goal());
            let end = tracker.resync(agent, || Ok(of.map(turn))).unwrap();
            (end, tracker.stage)
        };
        // The transcript may be newer than the state: what the state says about the queue counts.
        assert_eq!(resync(Some(&agent(true, None)), Some(1)), (None, Stage::Waiting));
        assert_eq!(resync(Some(&agent(false, Some(1))), Some(1)), (None, Stage::Running));
        let over = Some(End::Outcome(TurnOutcome::Completed));
        assert_eq!(resync(Some(&agent(false, None)), Some(1)).0, over);
        assert_eq!(resync(Some(&agent(false, Some(2))), Some(1)).0, over);
        assert_eq!(resync(Some(&agent(false, None)), None).0, Some(End::Dropped));
        assert_eq!(resync(None, None).0, Some(End::Dropped));
    }

    #[test]
    fn an_agent_that_is_closed_or_fails_ends_the_wait() {
        assert_eq!(Tracker::new(goal()).apply(&AgentEvent::Closed), Some(End::Dropped));
        let failure = Failure {
            message: "gone".into(),
            exit_code: Some(1),
            signal: None,
            stderr_tail: String::new(),
            at: consort_model::Timestamp(0),
            parked: false,
        };
        let end = Tracker::new(goal()).apply(&AgentEvent::Failed { failure: failure.clone() });
        assert_eq!(end.as_ref().map(End::exit), Some(Exit::TurnFailed));
        assert_eq!(end, Some(End::Failed(failure)));
    }
}
