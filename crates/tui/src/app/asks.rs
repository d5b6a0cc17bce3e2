//! Answering approvals and questions, in a pane and in the inbox alike.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use consort_daemon::protocol::{Answered, AskAnswer, Call};
use consort_model::{
    Agent, AgentId, Answer, Ask, AskBody, AskId, GrantScope, RuleId, Timestamp, ToolCall, ToolKind, decide,
};
use serde_json::Value;

use super::{App, Focus, Reply};
use crate::keys::Action;
use crate::overlay::{Choice, Command, Field, Form, Inbox, Overlay, Picker, Purpose};

/// How long an ask that came under the keyboard by itself must have been on the screen before a key answers it.
const ARMED_AFTER: Duration = Duration::from_millis(600);

/// Answers that the daemon takes in one call.
const ANSWERED_AT_ONCE: usize = 1000;

/// The ask that has or would have the keyboard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AskFocus {
    /// Which one.
    pub current: Option<AskId>,
    /// Those that are answered together.
    pub marked: BTreeSet<AskId>,
    /// The first line of it on the screen.
    pub top: usize,
    /// The lines it has, when it was last drawn.
    pub count: usize,
    /// The lines of it on the screen, when it was last drawn.
    pub height: usize,
    /// When it takes keys, if it came by itself.
    armed_at: Option<Instant>,
}

impl AskFocus {
    /// When it takes keys.
    pub fn armed_at(&self) -> Option<Instant> {
        self.armed_at
    }

    /// Whether it takes keys.
    pub fn is_armed(&self) -> bool {
        self.armed_at.is_none()
    }

    /// Time passed; whether it takes keys from now on.
    pub fn arm(&mut self, now: Instant) -> bool {
        let due = self.armed_at.is_some_and(|at| at <= now);
        if due {
            self.armed_at = None;
        }
        due
    }

    /// Whether what is asked was on the screen, at least its beginning: who asks, and for what.
    pub fn is_seen(&self) -> bool {
        self.count > 0 && self.height >= self.count.min(2)
    }

    /// Nothing of it is on the screen, until it is drawn.
    pub fn hide(&mut self) {
        self.height = 0;
    }

    /// Goes to an ask because a person wants it.
    pub fn go(&mut self, ask: Option<AskId>) {
        if self.current != ask {
            self.change(ask);
        }
        self.armed_at = None;
    }

    /// Another one, of which nothing was drawn yet.
    fn change(&mut self, ask: Option<AskId>) {
        self.current = ask;
        (self.top, self.count, self.height) = (0, 0, 0);
    }

    /// What is open changed: stays where it is, or goes to the nearest and waits a moment.
    fn settle(&mut self, open: &[AskId], now: Instant, has_keyboard: bool) {
        self.marked.retain(|marked| open.contains(marked));
        if self.current.is_some_and(|current| open.contains(&current)) {
            return;
        }
        self.change(open.first().copied());
        self.armed_at = (has_keyboard && self.current.is_some()).then_some(now + ARMED_AFTER);
    }

    /// Scrolls within what is asked.
    pub fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.count.saturating_sub(self.height));
    }
}

impl App {
    /// The open asks that the keyboard can go through: of the agent in the pane, or of all in the inbox.
    pub fn asks_in_reach(&self) -> Vec<(&Agent, &Ask)> {
        if self.inbox().is_some() {
            return self.state.inbox();
        }
        let agent = self.focused_agent();
        agent.into_iter().flat_map(|agent| agent.asks.iter().map(move |ask| (agent, ask))).collect()
    }

    /// The inbox, if it is open.
    pub fn inbox(&self) -> Option<&Inbox> {
        self.overlays.iter().find_map(|overlay| match overlay {
            Overlay::Inbox(inbox) => Some(inbox),
            _ => None,
        })
    }

    /// The ask that has the keyboard, wherever that is.
    pub fn ask_focus(&self) -> &AskFocus {
        self.inbox().map_or(&self.ask, |inbox| &inbox.ask)
    }

    /// The same, to change it.
    pub fn ask_focus_mut(&mut self) -> &mut AskFocus {
        let inbox = self.overlays.iter_mut().find_map(|overlay| match overlay {
            Overlay::Inbox(inbox) => Some(inbox),
            _ => None,
        });
        match inbox {
            Some(inbox) => &mut inbox.ask,
            None => &mut self.ask,
        }
    }

    /// An open ask with its agent.
    pub fn find_ask(&self, id: AskId) -> Option<(&Agent, &Ask)> {
        self.state
            .agents
            .values()
            .find_map(|agent| agent.asks.iter().find(|ask| ask.id == id).map(|ask| (agent, ask)))
    }

    /// Those that are answered together, in the order of the inbox.
    pub fn marked_asks(&self, focus: &AskFocus) -> Vec<(&Agent, &Ask)> {
        if focus.marked.is_empty() {
            return Vec::new();
        }
        self.state.inbox().into_iter().filter(|(_, ask)| focus.marked.contains(&ask.id)).collect()
    }

    /// The ask that has the keyboard.
    pub fn current_ask(&self) -> Option<(&Agent, &Ask)> {
        self.find_ask(self.ask_focus().current?)
    }

    /// What is open changed, or who is shown did.
    pub fn asks_changed(&mut self) {
        let now = self.now;
        let of_pane: Vec<AskId> = self
            .focused_agent()
            .map(|agent| agent.asks.iter().map(|ask| ask.id).collect())
            .unwrap_or_default();
        let has_keyboard = self.focus == Focus::Ask;
        self.ask.settle(&of_pane, now, has_keyboard);
        if of_pane.is_empty() && has_keyboard {
            self.focus = Focus::Composer;
        }
        let all: Vec<AskId> = self.state.inbox().iter().map(|(_, ask)| ask.id).collect();
        for overlay in &mut self.overlays {
            if let Overlay::Inbox(inbox) = overlay {
                inbox.ask.settle(&all, now, true);
            }
        }
    }

    /// Opens the inbox.
    pub fn open_inbox(&mut self) {
        let mut inbox = Inbox::default();
        // What is open in the pane is what one wants to see first.
        let first = self.ask.current.or_else(|| self.state.inbox().first().map(|(_, ask)| ask.id));
        inbox.ask.go(first);
        self.overlays.push(Overlay::Inbox(inbox));
        self.redraw();
    }

    /// Goes to the next agent that needs a person, after the one that has the keyboard.
    pub fn next_needy(&mut self) {
        self.overlays.clear();
        let mut waiting: Vec<AgentId> = Vec::new();
        for (agent, _) in self.state.inbox() {
            if !waiting.contains(&agent.id) {
                waiting.push(agent.id);
            }
        }
        let failed = self.state.agents.values().filter(|agent| {
            agent.status() == consort_model::Status::Failed && self.unread.contains(&agent.id)
        });
        waiting.extend(failed.map(|agent| agent.id));
        let here = self.focused().and_then(|agent| waiting.iter().position(|waiting| *waiting == agent));
        let next = match here {
            // The first key goes to what is asked here, the next one on.
            Some(at) if self.focus == Focus::Ask && waiting.len() > 1 => {
                waiting.get((at + 1) % waiting.len())
            }
            Some(at) => waiting.get(at),
            None => waiting.first(),
        };
        let Some(agent) = next.copied() else { return self.say("nobody needs you") };
        self.show(agent, false);
        self.asks_changed();
        self.focus_ask();
    }

    /// Gives what is asked in the pane the keyboard.
    pub fn focus_ask(&mut self) {
        let first = self.focused_agent().and_then(|agent| agent.asks.first()).map(|ask| ask.id);
        if let Some(ask) = self.ask.current.or(first) {
            self.ask.go(Some(ask));
            self.focus = Focus::Ask;
        }
        self.redraw();
    }

    /// What a key does while an ask has the keyboard.
    pub(super) fn act_on_ask(&mut self, action: Action) {
        match action {
            Action::NextAsk | Action::PreviousAsk => self.step_ask(action == Action::PreviousAsk),
            Action::MarkAsk => {
                let focus = self.ask_focus_mut();
                if let Some(ask) = focus.current
                    && !focus.marked.remove(&ask)
                {
                    focus.marked.insert(ask);
                }
                self.step_ask(false);
            }
            Action::MarkAll => {
                let Some((agent, _)) = self.current_ask() else { return };
                let all: Vec<AskId> = agent.asks.iter().map(|ask| ask.id).collect();
                self.ask_focus_mut().marked.extend(all);
            }
            Action::AskPageDown => self.ask_focus_mut().scroll(8),
            Action::AskPageUp => self.ask_focus_mut().scroll(-8),
            Action::ShowAsker => {
                let Some(agent) = self.current_ask().map(|(agent, _)| agent.id) else { return };
                let ask = self.ask_focus().current;
                self.overlays.clear();
                self.show(agent, false);
                self.ask.go(ask);
                self.focus_ask();
            }
            Action::LeaveAsk => {
                if self.inbox().is_some() {
                    self.overlays.retain(|overlay| !matches!(overlay, Overlay::Inbox(_)));
                } else {
                    self.focus = Focus::Composer;
                }
            }
            answer => self.answer_by(answer),
        }
        self.redraw();
    }

    fn step_ask(&mut self, back: bool) {
        let open: Vec<AskId> = self.asks_in_reach().iter().map(|(_, ask)| ask.id).collect();
        let at = open.iter().position(|ask| Some(*ask) == self.ask_focus().current).unwrap_or(0);
        let count = open.len().max(1);
        let next = open.get((at + if back { count - 1 } else { 1 }) % count).copied();
        self.ask_focus_mut().go(next);
    }

    /// The asks that an answer is for: the marked ones, or the one that has the keyboard.
    fn answered_together(&self) -> Vec<AskId> {
        let focus = self.ask_focus();
        if focus.marked.is_empty() {
            focus.current.into_iter().collect()
        } else {
            self.marked_asks(focus).into_iter().map(|(_, ask)| ask.id).collect()
        }
    }

    fn answer_by(&mut self, action: Action) {
        // An ask that slid under the finger is read first.
        if !self.ask_focus().is_armed() {
            return;
        }
        if !self.ask_focus().is_seen() {
            let (inbox, alone) = (self.keys.label(Action::Inbox), self.keys.label(Action::ShowAlone));
            return self.complain(format!(
                "there is no room to show what is asked: {inbox} shows it in the inbox, {alone} the agent alone"
            ));
        }
        let asks = self.answered_together();
        let Some((agent, ask)) = self.current_ask() else { return };
        let is_approval = matches!(ask.body, AskBody::Approval { .. });
        match action {
            Action::Deny => return self.answer(&asks, &Answer::Deny { message: None }),
            Action::StopTurn => return self.answer(&asks, &Answer::Stop),
            Action::DenyWith => {
                let field = Field::new("Deny, and do this instead", "", Purpose::DenyWith(asks));
                self.overlays.push(Overlay::Field(field));
                return;
            }
            Action::AnswerAsk => return self.open_answer(),
            _ if !is_approval => return self.open_answer(),
            _ => {}
        }
        let scope = match action {
            Action::AllowOnce => GrantScope::Once,
            Action::AllowSession => GrantScope::Session,
            Action::AllowAlways => GrantScope::Always,
            Action::AllowProject => GrantScope::Project,
            Action::AllowPattern => {
                let suggestion = match &ask.body {
                    AskBody::Approval { tool, .. } => suggested_pattern(tool, &agent.cwd),
                    AskBody::Question(_) => String::new(),
                };
                return self.ask_pattern(asks, GrantScope::Session, &suggestion, None);
            }
            _ => return,
        };
        self.answer(&asks, &Answer::allow(scope));
    }

    /// Asks for the pattern of what is allowed; `why` says what is wrong with the one that was typed.
    pub(super) fn ask_pattern(
        &mut self,
        asks: Vec<AskId>,
        scope: GrantScope,
        typed: &str,
        why: Option<String>,
    ) {
        let title = "Allow what fits this pattern for this session";
        let hint = "`*` stands for any words of a command, or any part of a path";
        let field = Field::new(title, typed, Purpose::Pattern(asks, scope)).hint(hint);
        self.overlays.push(Overlay::Field(Field { problem: why, ..field }));
        self.redraw();
    }

    /// Why an answer would be refused, as far as it can be known here: the daemon looks at real paths as well.
    pub(super) fn why_not(&self, asks: &[AskId], answer: &Answer) -> Option<String> {
        let refused = |id: &AskId| {
            let (agent, ask) = self.find_ask(*id)?;
            let rule = RuleId::new(uuid::Uuid::nil());
            decide::granted(agent, ask, answer, rule, Timestamp::default(), &|path| Some(path.to_owned()))
                .err()
        };
        asks.iter().find_map(refused).map(|refusal| refusal.to_string())
    }

    /// Sends an answer.
    pub fn answer(&mut self, asks: &[AskId], answer: &Answer) {
        if let [ask] = asks {
            let call = Call::Answer { ask: ask.to_string(), answer: answer.clone() };
            self.call(call, Reply::Answer(*ask));
        } else {
            for some in asks.chunks(ANSWERED_AT_ONCE) {
                let answers =
                    some.iter().map(|ask| AskAnswer { ask: *ask, answer: answer.clone() }).collect();
                self.call(Call::AnswerMany { answers }, Reply::Answers);
            }
        }
        // The next one is there because this one was answered: it may be answered at once.
        let open: Vec<AskId> =
            self.asks_in_reach().iter().map(|(_, ask)| ask.id).filter(|open| !asks.contains(open)).collect();
        let focus = self.ask_focus_mut();
        focus.marked.clear();
        focus.go(open.first().copied());
        if open.is_empty() && self.inbox().is_none() && self.focus == Focus::Ask {
            self.focus = Focus::Composer;
        }
        self.redraw();
    }

    /// What became of answers that were given together: those that do not count are told.
    pub(super) fn answers_told(&mut self, told: &[Answered]) {
        let refused: Vec<&Answered> = told.iter().filter(|answered| !answered.answered).collect();
        if let Some(first) = refused.first() {
            let why = first.error.as_ref().map_or("", |error| error.message.as_str());
            self.complain(format!("{} of {} answers do not count: {why}", refused.len(), told.len()));
        }
    }

    /// Opens what a question needs: a field, a form, or the answers that the agent offers.
    fn open_answer(&mut self) {
        let Some((_, ask)) = self.current_ask() else { return };
        let id = ask.id;
        let overlay = match &ask.body {
            AskBody::Approval { options, .. } if options.is_empty() => {
                return self.answer(&[id], &Answer::allow(GrantScope::Once));
            }
            AskBody::Approval { options, .. } => {
                let choices = options
                    .iter()
                    .map(|option| {
                        let name = crate::text::clean::one_line(&option.name).into_owned();
                        let note = if option.kind.allows() { "allows" } else { "denies" };
                        Choice::new(name, Command::AnswerOption(id, option.id.clone())).note(note)
                    })
                    .collect();
                Overlay::Picker(Picker::new("The agent's own answers", choices))
            }
            AskBody::Question(question) => match Form::for_question(id, question) {
                Some(form) => Overlay::Form(form),
                None => {
                    let title = crate::text::clean::one_line(&question.text).into_owned();
                    Overlay::Field(Field::new(title, "", Purpose::Reply(id)))
                }
            },
        };
        self.overlays.push(overlay);
        self.redraw();
    }

    /// Answers a question in plain text.
    pub(super) fn reply(&mut self, ask: AskId, text: String) {
        self.answer(&[ask], &Answer::Reply { value: Value::from(text) });
    }
}

/// A pattern that covers a call and others like it.
fn suggested_pattern(tool: &ToolCall, cwd: &str) -> String {
    match tool.tool {
        ToolKind::Execute => {
            let command = tool.input.get("command").and_then(Value::as_str).unwrap_or(&tool.title);
            let mut words = command.split_whitespace();
            match (words.next(), words.next()) {
                (Some(program), Some(second)) if !second.starts_with('-') && words.next().is_some() => {
                    format!("{program} {second} *")
                }
                (Some(program), Some(_)) => format!("{program} *"),
                (Some(program), None) => program.to_owned(),
                _ => String::new(),
            }
        }
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Search => {
            let diff = tool.diffs.first().map(|diff| diff.path.as_str());
            let place = tool.locations.first().map(|place| place.split(':').next().unwrap_or(place));
            let path = diff.or(place).unwrap_or_default();
            let path = path.strip_prefix(cwd).map_or(path, |inside| inside.trim_start_matches('/'));
            match path.rsplit_once('/') {
                Some((folder, _)) => format!("{folder}/**"),
                None if path.is_empty() => "**".to_owned(),
                None => path.to_owned(),
            }
        }
        _ => tool.title.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::ToolCallId;

    #[test]
    fn suggested_patterns_cover_what_is_asked_and_little_more() {
        let tool = |kind: ToolKind, title: &str, place: Option<&str>| ToolCall {
            locations: place.iter().map(|place| (*place).to_owned()).collect(),
            ..ToolCall::new(ToolCallId::new("c"), kind, title)
        };
        let cases = [
            (tool(ToolKind::Execute, "git push origin main", None), "git push *"),
            (tool(ToolKind::Execute, "ls -la", None), "ls *"),
            (tool(ToolKind::Execute, "make", None), "make"),
            (tool(ToolKind::Edit, "edit", Some("/w/src/a.rs:3")), "src/**"),
            (tool(ToolKind::Edit, "edit", Some("/w/a.rs")), "a.rs"),
        ];
        for (tool, wanted) in cases {
            assert_eq!(suggested_pattern(&tool, "/w"), wanted, "{}", tool.title);
        }
    }
}
