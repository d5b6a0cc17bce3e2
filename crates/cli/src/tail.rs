//! A transcript as it is printed while it grows.
//!
//! Both tails remember only where they are: the first item they have not seen, and the items that are still open. After
//! a lost connection they read the transcript from there on, so nothing is printed twice and nothing is left out.

use std::collections::BTreeMap;

use consort_model::event::AgentEvent;
use consort_model::{Agent, AgentId, Item, ItemBody, PromptId, ToolCallId, TurnId};

use crate::exit::Stop;
use crate::link::Link;
use crate::output::{Cleaner, Output, Style, one_line};
use crate::render::{self, Detail};

/// What a tail for people shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Show {
    /// The prompts.
    pub prompts: bool,
    /// What the agent thinks.
    pub thinking: bool,
    /// Tool calls, plans, approvals and notices.
    pub work: bool,
    /// How much of them.
    pub detail: Detail,
    /// Only the turn that this prompt began.
    pub only: Option<PromptId>,
}

/// An item that is not over.
enum Open {
    /// A text that grows; `printed` bytes of it are out.
    Text { printed: u64, cleaner: Cleaner, prefix: &'static str, style: Option<Style> },
    /// A tool call or an ask: printed when it is over.
    Work { title: String, turn: Option<TurnId>, within: Option<ToolCallId> },
}

/// What was printed last, to set paragraphs apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    Paragraph,
    Line,
}

/// Prints for people: text as it comes, everything else when it is over.
pub struct HumanTail {
    agent: AgentId,
    next: u64,
    open: BTreeMap<u64, Open>,
    show: Show,
    turn: Option<TurnId>,
    last: Option<Printed>,
    in_line: bool,
    output: Output,
}

impl HumanTail {
    /// Begins with the item `from`, on standard output.
    pub fn new(agent: AgentId, from: u64, show: Show) -> Self {
        Self::on(Output::human(), agent, from, show)
    }

    fn on(output: Output, agent: AgentId, from: u64, show: Show) -> Self {
        Self {
            agent,
            next: from,
            open: BTreeMap::new(),
            show,
            turn: None,
            last: None,
            in_line: false,
            output,
        }
    }

    /// Whether the cursor stands in the middle of a line.
    pub fn in_line(&self) -> bool {
        self.in_line
    }

    /// What the agent is doing, in a few words.
    pub fn doing(&self) -> Option<&str> {
        self.open.values().rev().find_map(|open| match open {
            Open::Work { title, .. } => Some(title.as_str()),
            Open::Text { .. } => None,
        })
    }

    /// Reads what is there. `agent` is the agent as the replica has it.
    pub fn catch_up(&mut self, link: &mut Link, agent: Option<&Agent>) -> Result<(), Stop> {
        let from = self.open.keys().next().copied().unwrap_or(self.next).min(self.next);
        link.items(self.agent, from, |item| self.item(item).map(|()| true))?;
        self.close_over(agent)?;
        self.output.flush()
    }

    /// Follows one event of the agent; `agent` is the agent after it. Reads the transcript where the event does not
    /// continue what is known.
    pub fn apply(&mut self, change: &AgentEvent, agent: Option<&Agent>, link: &mut Link) -> Result<(), Stop> {
        match change {
            AgentEvent::ItemAdded { item } if item.index.0 <= self.next => self.item(item)?,
            AgentEvent::ItemAdded { .. } => return self.catch_up(link, agent),
            AgentEvent::ItemChanged { index, done, body } => self.changed(index.0, *done, body)?,
            AgentEvent::TextAppended { index, offset, text } => {
                if self.appended(index.0, *offset, text)? == Continues::No {
                    return self.catch_up(link, agent);
                }
            }
            AgentEvent::TextDone { index } => {
                if let Some(Open::Text { .. }) = self.open.get(&index.0) {
                    self.open.remove(&index.0);
                    self.end_line()?;
                }
            }
            AgentEvent::TurnEnded { .. } | AgentEvent::Failed { .. } | AgentEvent::Closed => {
                self.close_over(agent)?
            }
            _ => return Ok(()),
        }
        self.output.flush()
    }

    /// Ends the line that is being written, so that something else can be said.
    pub fn pause(&mut self) -> Result<(), Stop> {
        self.end_line()?;
        self.output.flush()
    }

    /// One item as it stands, known or not.
    pub fn item(&mut self, item: &Item) -> Result<(), Stop> {
        let index = item.index.0;
        let known = self.open.contains_key(&index);
        if index < self.next && !known {
            return Ok(());
        }
        self.next = self.next.max(index + 1);
        if let (Some(only), ItemBody::User { prompt, .. }) = (self.show.only, &item.body)
            && only == *prompt
        {
            self.turn = item.turn;
        }
        let wanted = self.show.only.is_none() || (self.turn.is_some() && item.turn == self.turn);
        if !wanted || !self.shows(&item.body) {
            return Ok(());
        }
        match &item.body {
            ItemBody::Text { text } | ItemBody::Thinking { text } => {
                if !known {
                    self.begin(Printed::Paragraph)?;
                    let thinking = matches!(item.body, ItemBody::Thinking { .. });
                    self.open.insert(index, Open::text(thinking, item.within.as_ref()));
                }
                self.grow(index, 0, text)?;
                if item.done {
                    self.open.remove(&index);
                    self.end_line()?;
                }
            }
            ItemBody::Tool(call) if !item.done => self.keep_open(item, render::tool_title(call)),
            ItemBody::Ask { title, .. } if !item.done => {
                self.keep_open(item, format!("waits for a person: {}", one_line(title)));
            }
            _ => {
                self.open.remove(&index);
                self.print(item)?;
            }
        }
        Ok(())
    }

    /// One item as it stands, for a reader that will not wait for its end.
    pub fn whole_item(&mut self, item: &Item) -> Result<(), Stop> {
        match &item.body {
            ItemBody::Tool(_) | ItemBody::Ask { .. } => self.print(item),
            _ => self.item(item),
        }
    }

    fn shows(&self, body: &ItemBody) -> bool {
        match body {
            ItemBody::User { .. } => self.show.prompts,
            ItemBody::Text { .. } | ItemBody::Image(_) => true,
            ItemBody::Thinking { .. } => self.show.thinking,
            // Open work is remembered even where it is not shown: the progress line names it.
            ItemBody::Tool(_) | ItemBody::Ask { .. } => true,
            ItemBody::Plan { .. } | ItemBody::Notice { .. } | ItemBody::Unknown { .. } => self.show.work,
        }
    }

    fn print(&mut self, item: &Item) -> Result<(), Stop> {
        if matches!(item.body, ItemBody::Tool(_) | ItemBody::Ask { .. }) && !self.show.work {
            return Ok(());
        }
        let paragraph = matches!(item.body, ItemBody::User { .. });
        self.begin(if paragraph { Printed::Paragraph } else { Printed::Line })?;
        let text = render::item(item, self.output.paint, self.show.detail);
        self.output.write(&text)
    }

    fn changed(&mut self, index: u64, done: bool, body: &ItemBody) -> Result<(), Stop> {
        let Some(Open::Work { turn, within, .. }) = self.open.get(&index) else { return Ok(()) };
        let item = Item {
            index: consort_model::ItemIndex(index),
            turn: *turn,
            at: consort_model::Timestamp::default(),
            done,
            within: within.clone(),
            body: body.clone(),
        };
        self.item(&item)
    }

    fn appended(&mut self, index: u64, offset: u64, text: &str) -> Result<Continues, Stop> {
        match self.open.get(&index) {
            Some(Open::Text { printed, .. }) if offset > *printed => Ok(Continues::No),
            Some(Open::Text { .. }) => self.grow(index, offset, text).map(|()| Continues::Yes),
            _ if index >= self.next => Ok(Continues::No),
            _ => Ok(Continues::Yes),
        }
    }

    /// Prints what is new of a text that has `text` at `offset`.
    fn grow(&mut self, index: u64, offset: u64, text: &str) -> Result<(), Stop> {
        let Some(Open::Text { printed, cleaner, prefix, style }) = self.open.get_mut(&index) else {
            return Ok(());
        };
        let known = usize::try_from(printed.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(new) = text.get(known..).filter(|new| !new.is_empty()) else { return Ok(()) };
        *printed += new.len() as u64;
        let mut cleaned = String::with_capacity(new.len());
        cleaner.push(new, &mut cleaned);
        let (prefix, style) = (*prefix, *style);
        for line in cleaned.split_inclusive('\n') {
            let words = line.strip_suffix('\n').unwrap_or(line);
            let before = if self.in_line { "" } else { prefix };
            let shown = format!("{before}{words}");
            let shown = match style {
                Some(style) => self.output.paint.paint(style, &shown).into_owned(),
                None => shown,
            };
            self.output.write(&shown)?;
            self.in_line = !line.ends_with('\n');
            if !self.in_line {
                self.output.write("\n")?;
            }
        }
        Ok(())
    }

    fn keep_open(&mut self, item: &Item, title: String) {
        let within = item.within.clone();
        self.open.insert(item.index.0, Open::Work { title, turn: item.turn, within });
    }

    /// Prints what its turn has left behind unfinished.
    fn close_over(&mut self, agent: Option<&Agent>) -> Result<(), Stop> {
        let Some(agent) = agent else { return Ok(()) };
        let current = agent.turn.as_ref().map(|turn| turn.id);
        let over: Vec<(u64, String)> = self
            .open
            .iter()
            .filter(|(index, _)| **index < agent.cursor.items)
            .filter_map(|(index, open)| match open {
                Open::Work { title, turn, .. } if turn.is_some() && *turn != current => {
                    Some((*index, title.clone()))
                }
                _ => None,
            })
            .collect();
        for (index, title) in over {
            self.open.remove(&index);
            if self.show.work {
                self.begin(Printed::Line)?;
                let text = format!("- {title} (cut off)");
                let text = self.output.paint.paint(Style::Dim, &text).into_owned();
                self.output.line(&text)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, what: Printed) -> Result<(), Stop> {
        self.end_line()?;
        let apart = self.last.is_some_and(|last| last == Printed::Paragraph || what == Printed::Paragraph);
        if apart {
            self.output.write("\n")?;
        }
        self.last = Some(what);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.in_line) {
            self.output.write("\n")?;
        }
        Ok(())
    }
}

impl Open {
    fn text(thinking: bool, within: Option<&ToolCallId>) -> Self {
        let prefix = match (thinking, within.is_some()) {
            (false, false) => "",
            (false, true) => "  │ ",
            (true, false) => "~ ",
            (true, true) => "  │ ~ ",
        };
        let style = thinking.then_some(Style::Dim);
        Self::Text { printed: 0, cleaner: Cleaner::default(), prefix, style }
    }
}

#[derive(PartialEq, Eq)]
enum Continues {
    Yes,
    No,
}

/// Prints one JSON object per item, in order, each once and when nothing more will be added to it.
pub struct JsonTail {
    agent: AgentId,
    next: u64,
    output: Output,
}

impl JsonTail {
    /// Begins with the item `from`.
    pub fn new(agent: AgentId, from: u64) -> Self {
        Self { agent, next: from, output: Output::json() }
    }

    /// Prints what is final. `agent` is the agent as the replica has it.
    pub fn catch_up(&mut self, link: &mut Link, agent: Option<&Agent>) -> Result<(), Stop> {
        let (next, output) = (&mut self.next, &mut self.output);
        link.items(self.agent, *next, |item| {
            if !is_final(item, agent) {
                return Ok(false);
            }
            output.json_line(item)?;
            *next = item.index.0 + 1;
            Ok(true)
        })?;
        self.output.flush()
    }

    /// Follows one event of the agent; `agent` is the agent after it.
    pub fn apply(&mut self, change: &AgentEvent, agent: Option<&Agent>, link: &mut Link) -> Result<(), Stop> {
        let look = match change {
            AgentEvent::ItemAdded { item } => item.done && item.index.0 <= self.next,
            AgentEvent::ItemChanged { index, done, .. } => *done && index.0 == self.next,
            AgentEvent::TextDone { index } => index.0 == self.next,
            AgentEvent::TurnStarted { .. }
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::Failed { .. }
            | AgentEvent::Closed => true,
            _ => false,
        };
        if look && agent.is_some_and(|agent| self.next < agent.cursor.items) {
            return self.catch_up(link, agent);
        }
        Ok(())
    }

    /// Prints something else.
    pub fn line(&mut self, value: &impl serde::Serialize) -> Result<(), Stop> {
        self.output.json_line(value)?;
        self.output.flush()
    }
}

/// Whether nothing more will be added to an item: it is done, or the turn it belongs to is over.
fn is_final(item: &Item, agent: Option<&Agent>) -> bool {
    let over = |agent: &Agent| {
        item.index.0 < agent.cursor.items
            && item.turn.is_some()
            && item.turn != agent.turn.as_ref().map(|turn| turn.id)
    };
    item.done || agent.is_some_and(over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Paint;
    use consort_model::{
        ItemIndex, PromptOrigin, Timestamp, ToolCall, ToolKind, ToolStatus, Turn, TurnOutcome,
    };
    use std::sync::{Arc, Mutex};
    use uuid::Uuid;

    const ALL: Show = Show { prompts: true, thinking: true, work: true, detail: Detail::Brief, only: None };

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A tail that must never need the daemon, and the agent it follows.
    struct Scene {
        tail: HumanTail,
        screen: Screen,
        agent: Agent,
        link: Link,
    }

    impl Scene {
        fn new(show: Show) -> Self {
            let screen = Screen::default();
            let output = Output::to(Box::new(screen.clone()), Paint::plain());
            let id = AgentId::new(Uuid::nil());
            let agent: Agent = serde_json::from_value(serde_json::json!({
                "id": id, "name": "a", "profile": "p", "driver": "acp", "cwd": "/", "created_by": null,
                "relation": "primary", "created_at": 0, "lifecycle": { "state": "ready" }, "generation": 1,
                "permissions": "default", "turn": null, "last_outcome": null, "queue": [], "asks": [],
                "session": null, "options": [], "commands": [], "plan": [], "usage": {}, "title": null,
                "cursor": { "items": 0 },
            }))
            .unwrap();
            Self { tail: HumanTail::on(output, id, 0, show), screen, agent, link: Link::new().unwrap() }
        }

        fn happens(&mut self, change: AgentEvent) -> &mut Self {
            self.agent.apply(&change, Timestamp(0));
            self.tail.apply(&change, Some(&self.agent), &mut self.link).unwrap();
            self
        }

        fn shown(&self) -> String {
            String::from_utf8(self.screen.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn turn(number: u128) -> TurnId {
        TurnId::new(Uuid::from_u128(number))
    }

    fn item(index: u64, of: u128, done: bool, body: ItemBody) -> Item {
        let turn = Some(turn(of));
        Item { index: ItemIndex(index), turn, at: Timestamp(0), done, within: None, body }
    }

    fn added(index: u64, of: u128, done: bool, body: ItemBody) -> AgentEvent {
        AgentEvent::ItemAdded { item: item(index, of, done, body) }
    }

    fn text(text: &str) -> ItemBody {
        ItemBody::Text { text: text.into() }
    }

    fn tool(status: ToolStatus) -> ItemBody {
        ItemBody::Tool(ToolCall { status, ..ToolCall::new(ToolCallId::new("c"), ToolKind::Read, "a.rs") })
    }

    fn appended(index: u64, offset: u64, text: &str) -> AgentEvent {
        AgentEvent::TextAppended { index: ItemIndex(index), offset, text: text.into() }
    }

    #[test]
    fn text_that_comes_again_is_printed_once() {
        let mut scene = Scene::new(ALL);
        scene.happens(added(0, 1, false, text("ab")));
        // The transcript was read after a lost connection; events from before that come late.
        scene.tail.item(&item(0, 1, false, text("abcdef"))).unwrap();
        scene.happens(appended(0, 2, "cd")).happens(appended(0, 4, "efgh"));
        scene.happens(added(0, 1, false, text("ab")));
        scene.happens(AgentEvent::TextDone { index: ItemIndex(0) });
        scene.tail.item(&item(0, 1, true, text("abcdefgh"))).unwrap();
        scene.tail.pause().unwrap();
        assert_eq!(scene.shown(), "abcdefgh\n");
    }

    #[test]
    fn a_tool_call_is_printed_when_it_is_over() {
        let mut scene = Scene::new(ALL);
        scene.happens(added(0, 1, false, tool(ToolStatus::Running)));
        assert_eq!((scene.shown().as_str(), scene.tail.doing()), ("", Some("read: a.rs")));
        let over = tool(ToolStatus::Completed);
        scene.happens(AgentEvent::ItemChanged { index: ItemIndex(0), done: true, body: over.clone() });
        scene.happens(AgentEvent::ItemChanged { index: ItemIndex(0), done: true, body: over });
        assert_eq!(scene.shown(), "✓ read: a.rs\n");
    }

    #[test]
    fn what_its_turn_leaves_behind_is_told() {
        let mut scene = Scene::new(ALL);
        scene.agent.turn = Some(Turn {
            id: turn(1),
            started_at: Timestamp(0),
            interrupted: false,
            stalled: false,
            yielded: false,
        });
        scene.happens(added(0, 1, false, tool(ToolStatus::Running)));
        scene.happens(AgentEvent::TurnEnded { outcome: TurnOutcome::Interrupted });
        assert_eq!(scene.shown(), "- read: a.rs (cut off)\n");
    }

    #[test]
    fn only_the_turn_of_the_prompt_is_shown() {
        let prompt = PromptId::new(Uuid::from_u128(7));
        let mut scene = Scene::new(Show { only: Some(prompt), prompts: false, work: false, ..ALL });
        let user =
            ItemBody::User { prompt, origin: PromptOrigin::Person, text: "do".into(), attachments: vec![] };
        scene.happens(added(0, 1, true, text("earlier")));
        scene.happens(added(1, 2, true, user));
        scene.happens(added(2, 2, true, tool(ToolStatus::Completed)));
        scene.happens(added(3, 2, true, text("mine")));
        scene.happens(added(4, 3, true, text("later")));
        assert_eq!(scene.shown(), "mine\n");
    }

    #[test]
    fn an_item_is_final_when_it_is_done_or_its_turn_is_over() {
        let mut scene = Scene::new(ALL);
        let open = item(0, 1, false, tool(ToolStatus::Running));
        scene.agent.cursor.items = 1;
        scene.agent.turn = Some(Turn {
            id: turn(1),
            started_at: Timestamp(0),
            interrupted: false,
            stalled: false,
            yielded: false,
        });
        assert!(!is_final(&open, Some(&scene.agent)));
        scene.agent.turn = None;
        assert!(is_final(&open, Some(&scene.agent)));
        // An item that the replica has not heard of may belong to a turn that it has not heard of either.
        assert!(!is_final(&item(1, 2, false, text("x")), Some(&scene.agent)));
        assert!(is_final(&item(1, 2, true, text("x")), Some(&scene.agent)));
    }
}
