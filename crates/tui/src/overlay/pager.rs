//! A text to read: the help, what an agent changed, an item of a conversation.

use consort_model::{AgentId, DiffText};
use ratatui::text::Line;

use super::Whole;

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Text {
    /// Every key.
    Help,
    /// What an agent changed, or why that cannot be told; none: it is being asked for.
    Changes(AgentId, Option<Result<DiffText, String>>),
    /// What is known about an agent.
    About(AgentId),
    /// What was found on this machine, and what to press.
    Welcome,
    /// An item of a conversation with all that it holds.
    Item(Box<Whole>),
}

/// A text to read.
pub struct Pager {
    /// What is shown.
    pub text: Text,
    /// The first line on the screen.
    pub top: usize,
    /// The lines as they were laid out, with the width.
    pub lines: Option<(u16, Vec<Line<'static>>)>,
    /// Lines with which files begin.
    pub marks: Vec<usize>,
    /// How many lines are on the screen.
    pub height: usize,
}

impl Pager {
    /// At its begin.
    pub fn new(text: Text) -> Self {
        Self { text, top: 0, lines: None, marks: Vec::new(), height: 0 }
    }

    /// Moves by so many lines.
    pub fn step(&mut self, by: isize) {
        if let Text::Item(whole) = &mut self.text {
            return whole.step(by, self.height);
        }
        let count = self.lines.as_ref().map_or(0, |(_, lines)| lines.len());
        let last = count.saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    /// To the next file, around the end.
    pub fn next_mark(&mut self) {
        let next = self.marks.iter().find(|mark| **mark > self.top).or(self.marks.first());
        if let Some(mark) = next.copied() {
            self.top = mark;
            self.step(0);
        }
    }
}
