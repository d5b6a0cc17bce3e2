//! The state of the whole team and the one way it changes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Lifecycle, PromptOrigin, TeamTools, Turn, Writing};
use crate::ask::{Ask, SettledAsk};
use crate::command::Refusal;
use crate::event::{AgentEvent, Event, Stamped};
use crate::ids::{AgentId, ProfileId, PromptId, RuleId, Timestamp, ToolCallId};
use crate::item::ItemBody;
use crate::limits::Limits;
use crate::policy::Rule;
use crate::profile::ProfileSummary;
use crate::relation::{Relation, TaskResult};
use crate::team::{Inquiry, Letter, LetterState, REMEMBERED_LETTERS, Report};

/// How many taken prompts an agent remembers, to recognise one that is sent again.
const REMEMBERED_PROMPTS: usize = 64;

/// Everything but the transcripts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// The number of the last event applied.
    pub seq: u64,
    /// All agents, closed ones too.
    pub agents: BTreeMap<AgentId, Agent>,
    /// All rules.
    pub rules: BTreeMap<RuleId, Rule>,
    /// All profiles, without their secrets.
    pub profiles: Vec<ProfileSummary>,
    /// The limits in force.
    pub limits: Limits,
}

impl State {
    /// Takes in one event. Events arrive in order and were decided before; an event about an agent that is not there
    /// changes nothing.
    pub fn apply(&mut self, stamped: &Stamped) {
        self.seq = stamped.seq;
        match &stamped.event {
            Event::Agent { agent, change: AgentEvent::Created { record } } => {
                self.agents.insert(*agent, (**record).clone());
            }
            Event::Agent { agent, change } => {
                if let Some(agent) = self.agents.get_mut(agent) {
                    agent.apply(change, stamped.at);
                }
            }
            Event::RuleAdded { rule } => {
                self.rules.insert(rule.id, rule.clone());
            }
            Event::RuleRemoved { rule } => {
                self.rules.remove(rule);
            }
            Event::ProfilesChanged { profiles } => self.profiles.clone_from(profiles),
            Event::LimitsChanged { limits } => self.limits = *limits,
        }
    }

    /// The agent with this id.
    pub fn agent(&self, id: AgentId) -> Result<&Agent, Refusal> {
        self.agents.get(&id).ok_or_else(|| Refusal::NoSuchAgent { wanted: id.to_string() })
    }

    /// The agent that a person means: by id, by name, or by a unique prefix or suffix of the id.
    ///
    /// An open agent wins over closed ones, since names are unique among open agents only.
    pub fn find(&self, wanted: &str) -> Result<&Agent, Refusal> {
        if let Ok(id) = wanted.parse::<AgentId>() {
            return self.agent(id);
        }
        let by_name: Vec<&Agent> = self.agents.values().filter(|agent| agent.name == wanted).collect();
        if let Some(agent) = one_or_open(&by_name) {
            return Ok(agent);
        }
        let short = wanted.to_ascii_lowercase();
        let by_id: Vec<&Agent> = self
            .agents
            .values()
            .filter(|agent| {
                let id = agent.id.to_string();
                short.len() >= 4 && (id.starts_with(&short) || id.ends_with(&short))
            })
            .collect();
        if let Some(agent) = one_or_open(&by_id) {
            return Ok(agent);
        }
        let candidates = if by_name.is_empty() { by_id } else { by_name };
        if candidates.is_empty() {
            return Err(Refusal::NoSuchAgent { wanted: wanted.to_owned() });
        }
        let matches = candidates.iter().map(|agent| agent.id.to_string()).collect::<Vec<_>>().join(", ");
        Err(Refusal::AmbiguousAgent { wanted: wanted.to_owned(), matches })
    }

    /// The profile with this id.
    pub fn profile(&self, id: &ProfileId) -> Option<&ProfileSummary> {
        self.profiles.iter().find(|profile| profile.id == *id)
    }

    /// Whether there is such a profile.
    pub fn has_profile(&self, id: &ProfileId) -> bool {
        self.profile(id).is_some()
    }

    /// Whether the agent's process was started with an older version of its profile, so that only a restart brings
    /// what was edited since.
    pub fn restart_to_apply(&self, agent: &Agent) -> bool {
        let (Some(started_with), Some(profile)) = (&agent.profile_revision, self.profile(&agent.profile))
        else {
            return false;
        };
        agent.wants_process() && *started_with != profile.revision
    }

    /// All open approvals and questions of all agents, oldest first.
    pub fn inbox(&self) -> Vec<(&Agent, &Ask)> {
        let mut open: Vec<_> =
            self.agents.values().flat_map(|agent| agent.asks.iter().map(move |ask| (agent, ask))).collect();
        open.sort_by_key(|(_, ask)| (ask.at, ask.id));
        open
    }
}

/// The only one, or the only one that is not closed.
fn one_or_open<'a>(agents: &[&'a Agent]) -> Option<&'a Agent> {
    if let [agent] = agents {
        return Some(agent);
    }
    let mut open = agents.iter().filter(|agent| !agent.is_closed());
    let first = open.next()?;
    open.next().is_none().then_some(*first)
}

/// How many settled asks of an agent are remembered for those who answer too late.
const REMEMBERED_ASKS: usize = 32;

impl Agent {
    /// Takes in one event of this agent. Also run by a client that holds one agent without the rest.
    pub fn apply(&mut self, change: &AgentEvent, at: Timestamp) {
        self.follow(change, at);
        if !change.is_transcript() && self.relation.parent().is_some() {
            let works = self.relation.result().is_none() && self.turn.is_some() && self.asks.is_empty();
            self.task.keep_time(works, at);
        }
    }

    fn follow(&mut self, change: &AgentEvent, at: Timestamp) {
        match change {
            AgentEvent::Created { record } => self.clone_from(record),
            AgentEvent::Renamed { name } => self.name.clone_from(name),
            AgentEvent::Rebound { profile, driver } => {
                self.profile = profile.clone();
                self.driver = *driver;
            }
            AgentEvent::Starting { generation, profile_revision } => {
                self.generation = *generation;
                self.profile_revision.clone_from(profile_revision);
                self.team_tools = TeamTools::Unknown;
                self.lifecycle = Lifecycle::Starting;
                self.offered.clear();
                self.cursor.apply(change);
            }
            AgentEvent::Ready { session } => {
                self.lifecycle = Lifecycle::Ready;
                self.session = Some(session.clone());
            }
            AgentEvent::SessionLost => self.session = None,
            AgentEvent::Rested => {
                self.lifecycle = Lifecycle::Resting;
                self.turn = None;
                self.offered.clear();
                self.waits.clear();
            }
            AgentEvent::Failed { failure } => {
                self.crashes.retain(|crash| at.0 - crash.0 < Limits::CRASH_WINDOW_MS);
                self.crashes.push(at);
                self.lifecycle = Lifecycle::Failed(failure.clone());
                self.ended_at = Some(at);
                self.turn = None;
                self.offered.clear();
                self.waits.clear();
            }
            AgentEvent::Closed => {
                self.lifecycle = Lifecycle::Closed { at };
                self.turn = None;
                self.offered.clear();
                self.crashes.clear();
                self.waits.clear();
                self.options.clear();
                self.commands.clear();
            }
            AgentEvent::PromptQueued { prompt } => {
                if let PromptOrigin::Agent { agent } = prompt.origin {
                    self.letters.push_back(Letter::new(prompt.id, agent, at, &prompt.text));
                    if self.letters.len() > REMEMBERED_LETTERS {
                        self.letters.pop_front();
                    }
                }
                self.queue.push_back(prompt.clone());
            }
            AgentEvent::PromptEdited { prompt, text } => {
                if let Some(waiting) = self.queue.iter_mut().find(|waiting| waiting.id == *prompt) {
                    waiting.text.clone_from(text);
                }
            }
            AgentEvent::PromptDropped { prompt } => {
                self.take(*prompt);
                self.mark_letters(|letter| letter.prompt == *prompt, LetterState::Dropped);
            }
            AgentEvent::PromptSteered { prompt } => {
                if let Some(waiting) = self.queue.iter_mut().find(|waiting| waiting.id == *prompt) {
                    waiting.steers = true;
                }
            }
            AgentEvent::PromptOffered { prompt } => self.offered.push(*prompt),
            AgentEvent::PromptJoined { prompt } => {
                self.take(*prompt);
                self.mark_letters(|letter| letter.prompt == *prompt, LetterState::Delivered);
                let turn = self.turn.as_ref().map(|turn| turn.id);
                if let Some(inquiry) = self.inquiry(*prompt) {
                    inquiry.turn = turn;
                }
            }
            AgentEvent::PromptReturned { prompt } => {
                self.offered.retain(|offered| offered != prompt);
                if let Some(waiting) = self.queue.iter_mut().find(|waiting| waiting.id == *prompt) {
                    waiting.steers = false;
                }
            }
            AgentEvent::TurnStarted { turn, prompts } => {
                for prompt in prompts {
                    self.take(*prompt);
                }
                self.mark_letters(|letter| prompts.contains(&letter.prompt), LetterState::Delivered);
                for inquiry in self.inquiries.iter_mut().filter(|inquiry| prompts.contains(&inquiry.prompt)) {
                    inquiry.turn = Some(*turn);
                }
                self.turn = Some(Turn {
                    id: *turn,
                    started_at: at,
                    interrupted: false,
                    stalled: false,
                    yielded: false,
                });
                self.cursor.apply(change);
            }
            AgentEvent::TurnInterrupted => {
                if let Some(turn) = &mut self.turn {
                    turn.interrupted = true;
                }
            }
            AgentEvent::TurnStalled { stalled } => {
                if let Some(turn) = &mut self.turn {
                    turn.stalled = *stalled;
                }
            }
            AgentEvent::TurnEnded { outcome } => {
                self.turn = None;
                self.waits.clear();
                self.mark_letters(|letter| letter.state == LetterState::Delivered, LetterState::Read);
                self.last_outcome = Some(outcome.clone());
                self.ended_at = Some(at);
                if self.team_tools == TeamTools::Unknown {
                    self.team_tools = TeamTools::Missing;
                }
            }
            AgentEvent::Asked { ask } => self.asks.push(ask.clone()),
            AgentEvent::Settled { ask, settlement } => {
                self.asks.retain(|open| open.id != *ask);
                self.settled.push_back(SettledAsk { id: *ask, how: settlement.words().to_owned() });
                if self.settled.len() > REMEMBERED_ASKS {
                    self.settled.pop_front();
                }
            }
            AgentEvent::PlanChanged { plan } => self.plan.clone_from(plan),
            AgentEvent::UsageChanged { usage } => self.usage = *usage,
            AgentEvent::OptionsChanged { options } => self.options.clone_from(options),
            AgentEvent::CommandsChanged { commands } => self.commands.clone_from(commands),
            AgentEvent::TitleChanged { title } => self.title = Some(title.clone()),
            AgentEvent::NoteChanged { note } => self.note.clone_from(note),
            AgentEvent::TeamToolsConnected => self.team_tools = TeamTools::Connected,
            AgentEvent::PermissionsChanged { permissions } => self.permissions = *permissions,
            AgentEvent::WorktreeAdded { worktree } => self.worktrees.push(worktree.clone()),
            AgentEvent::WorktreeRemoved { path } => {
                self.worktrees.retain(|worktree| worktree.path != *path);
            }
            AgentEvent::TaskSettled { result } => {
                if let Relation::SubAgent { result: slot, .. } = &mut self.relation {
                    *slot = Some(result.clone());
                }
                if let (TaskResult::Yielded { .. }, Some(turn)) = (result, &mut self.turn) {
                    turn.yielded = true;
                }
            }
            AgentEvent::TaskReminded => self.task.reminded = true,
            AgentEvent::TaskReported { report } => self.task.report = *report,
            AgentEvent::WaitBegan { wait } => self.waits.push(wait.clone()),
            AgentEvent::WaitEnded { wait } => self.waits.retain(|open| open.id != *wait),
            AgentEvent::Inquired { prompt, by } => self.inquiries.push(Inquiry {
                prompt: *prompt,
                by: *by,
                turn: None,
                answer: None,
                report: Report::Due,
            }),
            AgentEvent::Answered { prompt, text } => {
                if let Some(inquiry) = self.inquiry(*prompt) {
                    inquiry.answer = Some(text.clone());
                }
            }
            AgentEvent::AnswerReported { prompt, report: Report::Made } => {
                self.inquiries.retain(|inquiry| inquiry.prompt != *prompt);
            }
            AgentEvent::AnswerReported { prompt, report } => {
                if let Some(inquiry) = self.inquiry(*prompt) {
                    inquiry.report = *report;
                }
            }
            AgentEvent::MessagesShown { prompts, certain } => {
                self.shown.extend(prompts.iter().map(|prompt| (*prompt, *certain)));
            }
            AgentEvent::MessagesHidden { prompts } => {
                self.shown.retain(|shown, _| !prompts.contains(shown));
            }
            AgentEvent::MessagesRead { prompts } => {
                for prompt in prompts {
                    self.take(*prompt);
                }
                self.mark_letters(|letter| prompts.contains(&letter.prompt), LetterState::Read);
            }
            AgentEvent::ItemAdded { .. }
            | AgentEvent::ItemChanged { .. }
            | AgentEvent::TextAppended { .. }
            | AgentEvent::TextDone { .. } => self.cursor.apply(change),
        }
    }

    fn inquiry(&mut self, prompt: PromptId) -> Option<&mut Inquiry> {
        self.inquiries.iter_mut().find(|inquiry| inquiry.prompt == prompt)
    }

    fn mark_letters(&mut self, of: impl Fn(&Letter) -> bool, state: LetterState) {
        self.letters.iter_mut().filter(|letter| of(letter)).for_each(|letter| letter.state = state);
    }

    /// Takes a prompt out of the queue and remembers it.
    fn take(&mut self, prompt: PromptId) {
        self.shown.remove(&prompt);
        self.offered.retain(|offered| *offered != prompt);
        self.queue.retain(|waiting| waiting.id != prompt);
        self.taken.push_back(prompt);
        if self.taken.len() > REMEMBERED_PROMPTS {
            self.taken.pop_front();
        }
    }
}

impl crate::agent::Cursor {
    /// Follows one event of the transcript; others leave it alone.
    pub fn apply(&mut self, change: &AgentEvent) {
        match change {
            AgentEvent::ItemAdded { item } => {
                self.items = item.index.0 + 1;
                match &item.body {
                    ItemBody::Text { text } | ItemBody::Thinking { text } if !item.done => {
                        self.writing = Some(Writing {
                            index: item.index,
                            thinking: matches!(item.body, ItemBody::Thinking { .. }),
                            len: text.len() as u64,
                            within: item.within.clone(),
                        });
                    }
                    ItemBody::Tool(call) => {
                        self.tools.insert(call.id.clone(), item.index);
                        self.follow_tool(&call.id, item.done);
                    }
                    ItemBody::Plan { .. } => self.plan = Some(item.index),
                    _ => {}
                }
            }
            AgentEvent::TextAppended { text, .. } => {
                if let Some(writing) = &mut self.writing {
                    writing.len += text.len() as u64;
                }
            }
            AgentEvent::TextDone { .. } => self.writing = None,
            AgentEvent::ItemChanged { done, body: ItemBody::Tool(call), .. } => {
                self.follow_tool(&call.id, *done);
            }
            AgentEvent::TurnStarted { .. } => {
                let running = &self.running;
                self.tools.retain(|id, _| running.contains(id));
                self.plan = None;
            }
            // Nothing of its last process goes on.
            AgentEvent::Starting { .. } => self.running.clear(),
            _ => {}
        }
    }

    fn follow_tool(&mut self, id: &ToolCallId, done: bool) {
        if done {
            self.running.remove(id);
        } else if !self.running.contains(id) {
            self.running.insert(id.clone());
        }
    }
}

#[cfg(test)]
mod tests;
