//! From what an agent says to what happens: signals become events.
//!
//! Owns where items begin and end: which text belongs to one item, which update to which tool call, and what the end of
//! a turn closes. Pure and without memory of its own; all it must remember is the agent's [`Cursor`].

use uuid::Uuid;

use crate::agent::{Agent, Cursor, Prompt, TurnOutcome};
use crate::ask::{Answer, Ask, AskBody, SettledBy, Settlement};
use crate::event::AgentEvent;
use crate::ids::{AskId, ItemIndex, Timestamp, ToolCallId, TurnId};
use crate::item::{Item, ItemBody, NoticeLevel};
use crate::session::Usage;
use crate::signal::Signal;

/// An ask that was settled without a person, by its driver's key.
#[derive(Clone, PartialEq, Debug)]
pub struct AutoAnswer {
    /// The driver's name for the ask.
    pub key: String,
    /// The answer that the driver was given.
    pub answer: Answer,
    /// Why nobody was asked.
    pub by: SettledBy,
}

/// Writes events for one agent, following its cursor as it goes.
pub struct Writer {
    usage: Usage,
    cursor: Cursor,
    turn: Option<TurnId>,
    /// Whether the agent gave its task's result in this turn: its end is then as it should be.
    yielded: bool,
    asks: Vec<Ask>,
    /// Prompts that the running turn was given and has not taken in.
    offered: Vec<Prompt>,
    at: Timestamp,
    events: Vec<AgentEvent>,
}

impl Writer {
    /// Begins where the agent's transcript stands.
    pub fn new(agent: &Agent, at: Timestamp) -> Self {
        Self {
            usage: agent.usage,
            cursor: agent.cursor.clone(),
            turn: agent.turn.as_ref().map(|turn| turn.id),
            yielded: agent.turn.as_ref().is_some_and(|turn| turn.yielded),
            asks: agent.asks.clone(),
            offered: agent.offered.iter().filter_map(|id| agent.queued(*id).cloned()).collect(),
            at,
            events: Vec::new(),
        }
    }

    /// The events, in order.
    pub fn finish(self) -> Vec<AgentEvent> {
        self.events
    }

    /// Adds an event that is not part of the transcript.
    pub fn push(&mut self, event: AgentEvent) {
        self.cursor.apply(&event);
        self.events.push(event);
    }

    /// Begins a turn with these prompts, which stand in the transcript from now on.
    pub fn start_turn(&mut self, turn: TurnId, prompts: &[Prompt]) {
        self.end_text();
        let prompts_taken = prompts.iter().map(|prompt| prompt.id).collect();
        self.push(AgentEvent::TurnStarted { turn, prompts: prompts_taken });
        self.turn = Some(turn);
        for prompt in prompts {
            self.add(prompt_body(prompt), true, None);
        }
    }

    /// Gives a waiting prompt to the running turn.
    pub fn offer(&mut self, prompt: &Prompt) {
        self.push(AgentEvent::PromptOffered { prompt: prompt.id });
        self.offered.push(prompt.clone());
    }

    /// The prompt that was offered under this name, offered no more.
    fn take_offered(&mut self, key: &str) -> Option<Prompt> {
        let index = self.offered.iter().position(|prompt| prompt.id.to_string() == key)?;
        Some(self.offered.remove(index))
    }

    /// Takes in what the agent said. `fresh` makes ids; `settled` tells which asks were answered at once.
    pub fn signal(&mut self, signal: Signal, settled: &[AutoAnswer], fresh: &mut dyn FnMut() -> Uuid) {
        match signal {
            Signal::Ready(session) => self.push(AgentEvent::Ready { session }),
            Signal::SessionLost => self.push(AgentEvent::SessionLost),
            Signal::StartFailed { .. } => {}
            Signal::Text { text, within } => self.write(text, false, within),
            Signal::Thinking { text, within } => self.write(text, true, within),
            Signal::Image { image, within } => {
                self.end_text();
                self.add(ItemBody::Image(image), true, within);
            }
            Signal::MessageEnd => self.end_text(),
            Signal::Tool { call, within } => {
                self.end_text();
                let done = call.status.is_over();
                match self.cursor.tools.get(&call.id).copied() {
                    Some(index) => self.change(index, ItemBody::Tool(call), done),
                    None => self.add(ItemBody::Tool(call), done, within),
                }
            }
            Signal::Plan(entries) => {
                self.push(AgentEvent::PlanChanged { plan: entries.clone() });
                match self.cursor.plan {
                    Some(index) => self.change(index, ItemBody::Plan { entries }, true),
                    None => {
                        self.end_text();
                        self.add(ItemBody::Plan { entries }, true, None);
                    }
                }
            }
            Signal::Usage(newer) => {
                self.usage.update(&newer);
                self.push(AgentEvent::UsageChanged { usage: self.usage });
            }
            Signal::Options(options) => self.push(AgentEvent::OptionsChanged { options }),
            Signal::Commands(commands) => self.push(AgentEvent::CommandsChanged { commands }),
            Signal::Title(title) => self.push(AgentEvent::TitleChanged { title }),
            Signal::Ask { key, title, body } => {
                let auto = settled.iter().find(|auto| auto.key == key).cloned();
                let ask = self.ask(AskId::new(fresh()), key, title, body);
                if let Some(auto) = auto {
                    self.settle(&ask, Some(auto.answer), auto.by);
                }
            }
            Signal::AskWithdrawn { key } => {
                if let Some(ask) = self.asks.iter().find(|ask| ask.key == key).cloned() {
                    self.settle(&ask, None, SettledBy::Cancelled);
                }
            }
            Signal::Joined { key } => {
                if let Some(prompt) = self.take_offered(&key) {
                    self.end_text();
                    self.push(AgentEvent::PromptJoined { prompt: prompt.id });
                    self.add(prompt_body(&prompt), true, None);
                }
            }
            Signal::NotJoined { key } => {
                if let Some(prompt) = self.take_offered(&key) {
                    self.push(AgentEvent::PromptReturned { prompt: prompt.id });
                }
            }
            Signal::TurnStarted => {
                if self.turn.is_none() {
                    self.start_turn(TurnId::new(fresh()), &[]);
                }
            }
            Signal::TurnEnded(outcome) => {
                self.end_text();
                self.settle_all(SettledBy::Cancelled);
                let cut_off = self.yielded && outcome == TurnOutcome::Interrupted;
                let outcome = if cut_off { TurnOutcome::Completed } else { outcome };
                self.push(AgentEvent::TurnEnded { outcome });
                self.turn = None;
                self.yielded = false;
            }
            Signal::Permissions(permissions) => self.push(AgentEvent::PermissionsChanged { permissions }),
            Signal::Notice { level, text } => self.notice(level, text),
            Signal::Unknown { label, raw } => {
                self.end_text();
                self.add(ItemBody::Unknown { label, raw }, true, None);
            }
        }
    }

    /// Adds a notice.
    pub fn notice(&mut self, level: NoticeLevel, text: String) {
        self.end_text();
        self.add(ItemBody::Notice { level, text }, true, None);
    }

    /// Settles an open ask and completes its record.
    pub fn settle(&mut self, ask: &Ask, answer: Option<Answer>, by: SettledBy) {
        self.asks.retain(|open| open.id != ask.id);
        let settlement = Settlement { answer, by, at: self.at };
        self.push(AgentEvent::Settled { ask: ask.id, settlement: settlement.clone() });
        let body = ask_body(ask, Some(settlement));
        self.change(ask.item, body, true);
    }

    /// Settles whatever is still open.
    pub fn settle_all(&mut self, by: SettledBy) {
        for ask in std::mem::take(&mut self.asks) {
            self.settle(&ask, None, by);
        }
    }

    /// Ends what the end of a process ends: the text being written, open asks, the turn.
    pub fn end_process(&mut self, outcome: TurnOutcome) {
        self.end_text();
        self.settle_all(SettledBy::AgentEnded);
        if self.turn.take().is_some() {
            self.push(AgentEvent::TurnEnded { outcome });
        }
    }

    /// Ends the text that is being written, if any.
    pub fn end_text(&mut self) {
        if let Some(writing) = &self.cursor.writing {
            let index = writing.index;
            self.push(AgentEvent::TextDone { index });
        }
    }

    fn ask(&mut self, id: AskId, key: String, title: String, body: AskBody) -> Ask {
        self.end_text();
        let ask = Ask { id, key, item: ItemIndex(self.cursor.items), at: self.at, title, body };
        self.asks.push(ask.clone());
        self.add(ask_body(&ask, None), false, None);
        self.push(AgentEvent::Asked { ask: ask.clone() });
        ask
    }

    fn write(&mut self, text: String, thinking: bool, within: Option<ToolCallId>) {
        if text.is_empty() {
            return;
        }
        let continues = self
            .cursor
            .writing
            .as_ref()
            .filter(|writing| writing.thinking == thinking && writing.within == within)
            .map(|writing| (writing.index, writing.len));
        let Some((index, offset)) = continues else {
            self.end_text();
            let body = if thinking { ItemBody::Thinking { text } } else { ItemBody::Text { text } };
            return self.add(body, false, within);
        };
        if let Some(AgentEvent::TextAppended { index: last, text: grown, .. }) = self.events.last_mut()
            && *last == index
        {
            grown.push_str(&text);
            if let Some(writing) = &mut self.cursor.writing {
                writing.len += text.len() as u64;
            }
            return;
        }
        self.push(AgentEvent::TextAppended { index, offset, text });
    }

    fn add(&mut self, body: ItemBody, done: bool, within: Option<ToolCallId>) {
        let index = ItemIndex(self.cursor.items);
        let item = Item { index, turn: self.turn, at: self.at, done, within, body };
        self.push(AgentEvent::ItemAdded { item });
    }

    fn change(&mut self, index: ItemIndex, body: ItemBody, done: bool) {
        self.push(AgentEvent::ItemChanged { index, done, body });
    }
}

fn prompt_body(prompt: &Prompt) -> ItemBody {
    ItemBody::User {
        prompt: prompt.id,
        origin: prompt.origin,
        text: prompt.text.clone(),
        attachments: prompt.attachments.clone(),
    }
}

fn ask_body(ask: &Ask, settlement: Option<Settlement>) -> ItemBody {
    ItemBody::Ask { ask: ask.id, title: ask.title.clone(), body: ask.body.clone(), settlement }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::GrantScope;
    use crate::decide::testing::{agent, prompt, tool, uuid};
    use crate::item::{ToolKind, ToolStatus};

    fn text(text: &str) -> Signal {
        Signal::Text { text: text.into(), within: None }
    }

    /// Runs signals in batches of `size` and returns the items as a reader of the transcript would see them.
    fn items(signals: &[Signal], size: usize) -> Vec<Item> {
        let mut agent = agent(1);
        let mut items: Vec<Item> = Vec::new();
        let mut next = 100;
        for batch in signals.chunks(size) {
            let mut writer = Writer::new(&agent, Timestamp(5));
            for signal in batch {
                let mut fresh = || {
                    next += 1;
                    uuid(next)
                };
                writer.signal(signal.clone(), &[], &mut fresh);
            }
            for event in writer.finish() {
                agent.apply(&event, Timestamp(5));
                match event {
                    AgentEvent::ItemAdded { item } => {
                        assert_eq!(item.index.0 as usize, items.len());
                        items.push(item);
                    }
                    AgentEvent::ItemChanged { index, done, body } => {
                        let item = &mut items[index.0 as usize];
                        item.done = done;
                        item.body = body;
                    }
                    AgentEvent::TextAppended { index, offset, text } => {
                        match &mut items[index.0 as usize].body {
                            ItemBody::Text { text: whole } | ItemBody::Thinking { text: whole } => {
                                assert_eq!(whole.len() as u64, offset);
                                whole.push_str(&text);
                            }
                            other => panic!("text appended to {other:?}"),
                        }
                    }
                    AgentEvent::TextDone { index } => items[index.0 as usize].done = true,
                    _ => {}
                }
            }
        }
        items
    }

    fn conversation() -> Vec<Signal> {
        let mut call = tool(ToolKind::Execute, "ls");
        let mut ended = call.clone();
        call.status = ToolStatus::Running;
        ended.status = ToolStatus::Completed;
        ended.output = "a".into();
        vec![
            Signal::Thinking { text: "h".into(), within: None },
            Signal::Thinking { text: "m".into(), within: None },
            text("Hel"),
            text("lo"),
            Signal::Tool { call: call.clone(), within: None },
            text("a"),
            Signal::MessageEnd,
            text("b"),
            Signal::Tool { call: ended, within: None },
            Signal::Ask {
                key: "7".into(),
                title: "ls".into(),
                body: AskBody::Approval { tool: call, options: vec![] },
            },
            Signal::TurnEnded(TurnOutcome::Completed),
        ]
    }

    #[test]
    fn deltas_join_into_items_and_updates_find_theirs() {
        let items = items(&conversation(), 100);
        let texts: Vec<String> = items
            .iter()
            .map(|item| match &item.body {
                ItemBody::Text { text } => format!("text {text}"),
                ItemBody::Thinking { text } => format!("thinking {text}"),
                ItemBody::Tool(call) => format!("tool {} {:?}", call.title, call.status),
                ItemBody::Ask { settlement, .. } => format!("ask {:?}", settlement.as_ref().map(|s| s.by)),
                other => format!("{other:?}"),
            })
            .collect();
        let expected =
            ["thinking hm", "text Hello", "tool ls Completed", "text a", "text b", "ask Some(Cancelled)"];
        assert_eq!(texts, expected);
        assert!(items.iter().all(|item| item.done));
    }

    #[test]
    fn how_signals_are_batched_does_not_matter() {
        let whole = items(&conversation(), 100);
        for size in 1..10 {
            let batched = items(&conversation(), size);
            assert_eq!(batched.len(), whole.len());
            for (a, b) in whole.iter().zip(&batched) {
                assert!(a.body == b.body || matches!(a.body, ItemBody::Ask { .. }), "{a:?} {b:?} at {size}");
            }
        }
    }

    #[test]
    fn an_ask_that_a_rule_settles_is_recorded_and_never_open() {
        let subject = agent(1);
        let mut writer = Writer::new(&subject, Timestamp(5));
        let auto =
            AutoAnswer { key: "k".into(), answer: Answer::allow(GrantScope::Once), by: SettledBy::Mode };
        let body = AskBody::Approval { tool: tool(ToolKind::Read, "a"), options: vec![] };
        let ask = Signal::Ask { key: "k".into(), title: "a".into(), body };
        writer.signal(ask, &[auto], &mut || uuid(50));
        let mut after = subject.clone();
        for event in writer.finish() {
            after.apply(&event, Timestamp(5));
        }
        assert!(after.asks.is_empty());
        assert_eq!(after.cursor.items, 1);
    }

    #[test]
    fn a_tool_that_outlives_its_turn_stays_one_item() {
        let mut call = tool(ToolKind::Execute, "make serve");
        call.status = ToolStatus::Running;
        let mut ended = call.clone();
        ended.status = ToolStatus::Completed;
        let over = || Signal::TurnEnded(TurnOutcome::Completed);
        let signals = [
            Signal::TurnStarted,
            Signal::Tool { call, within: None },
            over(),
            Signal::TurnStarted,
            text("Meanwhile."),
            Signal::Tool { call: ended.clone(), within: None },
            over(),
            Signal::TurnStarted,
            Signal::Tool { call: ended, within: None },
        ];
        for size in 1..signals.len() {
            let items = items(&signals, size);
            let shown: Vec<(bool, bool)> =
                items.iter().map(|item| (matches!(item.body, ItemBody::Tool(_)), item.done)).collect();
            // One that is called anew after its end is another one.
            assert_eq!(shown, [(true, true), (false, true), (true, true)], "in batches of {size}");
        }
    }

    #[test]
    fn a_prompt_that_joins_a_turn_stands_where_it_was_taken_in() {
        let mut subject = agent(1);
        let prompts = [prompt(60, "also the tests"), prompt(61, "and the docs")];
        subject.queue.extend(prompts.clone());
        let mut apply = |act: &mut dyn FnMut(&mut Writer)| {
            let mut writer = Writer::new(&subject, Timestamp(5));
            act(&mut writer);
            let events = writer.finish();
            events.iter().for_each(|event| subject.apply(event, Timestamp(5)));
            events
        };
        apply(&mut |writer| {
            writer.signal(Signal::TurnStarted, &[], &mut || uuid(50));
            prompts.iter().for_each(|prompt| writer.offer(prompt));
        });
        let key = |n: usize| prompts[n].id.to_string();
        let joined = apply(&mut |writer| {
            writer.signal(text("a"), &[], &mut || uuid(51));
            writer.signal(Signal::Joined { key: key(0) }, &[], &mut || uuid(52));
            // Said twice, and of a prompt that nobody gave.
            writer.signal(Signal::Joined { key: key(0) }, &[], &mut || uuid(53));
            writer.signal(Signal::NotJoined { key: "x".into() }, &[], &mut || uuid(54));
            writer.signal(text("b"), &[], &mut || uuid(55));
        });
        let bodies: Vec<String> = joined
            .iter()
            .filter_map(|event| match event {
                AgentEvent::ItemAdded { item } => Some(match &item.body {
                    ItemBody::User { text, .. } | ItemBody::Text { text } => text.clone(),
                    other => format!("{other:?}"),
                }),
                _ => None,
            })
            .collect();
        assert_eq!(bodies, ["a", "also the tests", "b"]);
        apply(&mut |writer| writer.signal(Signal::NotJoined { key: key(1) }, &[], &mut || uuid(56)));
        assert_eq!((subject.queue.len(), subject.offered.len(), subject.queue[0].steers), (1, 0, false));
        assert!(subject.taken.contains(&prompts[0].id));
    }

    #[test]
    fn a_turn_that_the_agent_begins_is_a_turn() {
        let mut agent = agent(1);
        let mut apply = |signals: Vec<Signal>| {
            let mut writer = Writer::new(&agent, Timestamp(5));
            signals.into_iter().for_each(|signal| writer.signal(signal, &[], &mut || uuid(50)));
            writer.finish().iter().for_each(|event| agent.apply(event, Timestamp(5)));
            (agent.turn.as_ref().map(|turn| turn.id), agent.session.is_some(), agent.permissions)
        };
        let turn = Some(TurnId::new(uuid(50)));
        assert_eq!(apply(vec![Signal::TurnStarted, Signal::TurnStarted]).0, turn);
        assert_eq!(apply(vec![Signal::TurnEnded(TurnOutcome::Completed)]).0, None);
        let session = crate::session::SessionInfo::default();
        assert!(apply(vec![Signal::Ready(session)]).1);
        assert!(!apply(vec![Signal::SessionLost]).1);
        let plan = crate::policy::PermissionMode::Plan;
        assert_eq!(apply(vec![Signal::Permissions(plan)]).2, plan);
    }
}
