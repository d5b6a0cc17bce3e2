//! A Markdown text that grows.
//!
//! Only whole lines decide that a block has ended: half a line can still turn out to be something else (`2` becomes
//! `2. next`, `-|-` becomes `-|- no table`). So the lines that are complete settle blocks, and what is not settled is laid
//! out anew each time, together with the line that is being written.

use std::collections::HashSet;

use ratatui::text::Line;

use super::layout;
use super::parse::{Definitions, Kind, Parsed, parse};
use crate::text::clean;
use crate::text::theme::Theme;

/// A text to which more is added, and its lines.
#[derive(Clone, Default, Debug)]
pub struct Stream {
    /// The complete lines, clean.
    whole: String,
    /// The line that is being written, as it came.
    partial: String,
    /// The layout that was asked for last.
    laid: Option<Laid>,
}

#[derive(Clone, Debug)]
struct Laid {
    columns: usize,
    theme: Theme,
    /// The lines; those of settled blocks first.
    lines: Vec<Line<'static>>,
    settled_lines: usize,
    /// Where in the complete lines the first block begins that is not settled.
    settled: usize,
    /// What the last settled block is.
    last: Option<Kind>,
    /// The addresses that settled text gives, and the labels for which it has none.
    definitions: Definitions,
    wanted: HashSet<String>,
    /// How much of the complete lines was looked through for blocks to settle.
    searched: usize,
    /// Whether the lines show all that was added.
    current: bool,
}

impl Laid {
    fn new(columns: usize, theme: &Theme) -> Self {
        Self {
            columns,
            theme: *theme,
            lines: Vec::new(),
            settled_lines: 0,
            settled: 0,
            last: None,
            definitions: Definitions::default(),
            wanted: HashSet::new(),
            searched: 0,
            current: false,
        }
    }
}

impl Stream {
    /// Adds text to the end.
    pub fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match text.rfind('\n') {
            Some(end) if self.partial.is_empty() => {
                clean::push(&text[..=end], &mut self.whole);
                self.partial.push_str(&text[end + 1..]);
            }
            Some(end) => {
                self.partial.push_str(&text[..=end]);
                clean::push(&self.partial, &mut self.whole);
                self.partial.clear();
                self.partial.push_str(&text[end + 1..]);
            }
            None => self.partial.push_str(text),
        }
        if let Some(laid) = &mut self.laid {
            laid.current = false;
        }
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.partial.is_empty()
    }

    /// The lines for a width; cheap when nothing changed since they were asked for last.
    pub fn lines(&mut self, columns: usize, theme: &Theme) -> &[Line<'static>] {
        let laid = match self.laid.take() {
            Some(laid) if laid.columns == columns && laid.theme == *theme => laid,
            _ => Laid::new(columns, theme),
        };
        let laid = self.laid.insert(laid);
        if !laid.current {
            laid.update(&self.whole, &clean::sanitize(&self.partial));
            laid.current = true;
        }
        &laid.lines
    }

    /// The lines for a width, without keeping anything.
    pub fn into_lines(mut self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        self.lines(columns, theme);
        self.laid.map(|laid| laid.lines).unwrap_or_default()
    }
}

impl Laid {
    fn update(&mut self, whole: &str, partial: &str) {
        self.lines.truncate(self.settled_lines);
        self.settle(whole);

        let mut text = String::with_capacity(whole.len() - self.settled + partial.len());
        text.push_str(&whole[self.settled..]);
        text.push_str(partial);
        let parsed = parse(&text, &self.definitions);
        if parsed.gives_any(&self.wanted) {
            // A line that may still change gives an address to a link far above: nothing of this layout can be kept.
            *self = Self::new(self.columns, &self.theme);
            let text = format!("{whole}{partial}");
            self.lay("", &text, &parse(&text, &self.definitions), usize::MAX);
            self.last = None;
            return;
        }
        let last = self.last;
        self.lay(&whole[..self.settled], &text, &parsed, usize::MAX);
        self.last = last;
    }

    /// Lays out the blocks that have ended, once and for all.
    fn settle(&mut self, whole: &str) {
        if self.searched == whole.len() {
            return;
        }
        self.searched = whole.len();
        let text = &whole[self.settled..];
        let parsed = parse(text, &self.definitions);
        if parsed.gives_any(&self.wanted) && self.settled > 0 {
            *self = Self::new(self.columns, &self.theme);
            return self.settle(whole);
        }
        let Some(ended) = parsed.blocks.len().checked_sub(1).filter(|ended| *ended > 0) else { return };
        self.lay(&whole[..self.settled], text, &parsed, ended);
        self.settled_lines = self.lines.len();
        let cut = parsed.blocks[ended].start;
        parsed.define(cut, &mut self.definitions);
        self.wanted.extend(parsed.wanted);
        self.settled += cut;
    }

    /// Adds the lines of the first blocks of a text that stands after `before`.
    fn lay(&mut self, before: &str, text: &str, parsed: &Parsed<'_>, count: usize) {
        for block in parsed.blocks.iter().take(count) {
            let lines = layout::block(&block.events, &self.definitions, self.columns, &self.theme);
            if lines.is_empty() {
                continue;
            }
            // A list right below the text that announces it stays with it.
            let above = if block.start == 0 { before } else { &text[..block.start] };
            let announced = self.last == Some(Kind::Paragraph)
                && block.kind == Kind::List
                && !ends_with_empty_line(above);
            if self.last.is_some() && !announced {
                self.lines.push(Line::default());
            }
            self.lines.extend(lines);
            self.last = Some(block.kind);
        }
    }
}

fn ends_with_empty_line(text: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.rsplit('\n').next().is_none_or(|line| line.trim().is_empty())
}
