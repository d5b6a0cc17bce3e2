//! A Markdown text that grows.
//!
//! Only whole lines decide that a block has ended: half a line can still turn out to be something else (`2` becomes
//! `2. next`, `-|-` becomes `-|- no table`). So the lines that are complete settle blocks, and what is not settled is laid
//! out anew each time, together with the line that is being written. Two things keep that part small: a line that begins
//! with a letter after an empty one ends what was before, and code that is being written settles line by line
//! ([`Fence`]).

use std::collections::HashSet;

use ratatui::text::Line;

use super::fence::Fence;
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
    /// How much of the complete lines was looked through for blocks to settle, and whether what follows ends them.
    searched: (usize, bool),
    /// The code that is being written, if that is what comes after the settled blocks.
    fence: Option<Fence>,
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
            searched: (0, false),
            fence: None,
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
        self.partial.push_str(text);
        if text.contains(clean::is_line_break) || self.partial.len() > text.len() {
            let complete = clean::complete_lines(&self.partial);
            clean::push(&self.partial[..complete], &mut self.whole);
            self.partial.drain(..complete);
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

#[cfg(test)]
impl Stream {
    /// The lines by the parser alone, all of the text at once: what every other way must come to.
    pub fn lines_at_once(source: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let text = clean::sanitize(source);
        let mut laid = Laid::new(columns, theme);
        laid.lay("", &text, &parse(&text, &Definitions::default()), usize::MAX);
        laid.lines
    }
}

impl Laid {
    fn update(&mut self, whole: &str, partial: &str) {
        self.lines.truncate(self.settled_lines);
        if self.continue_fence(whole, partial) {
            return;
        }
        self.settle(whole, partial);
        if self.continue_fence(whole, partial) {
            return;
        }

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
    fn settle(&mut self, whole: &str, partial: &str) {
        let ends_all = partial.starts_with(char::is_alphabetic) && ends_with_empty_line(whole);
        if self.searched == (whole.len(), ends_all) {
            return;
        }
        self.searched = (whole.len(), ends_all);
        let text = &whole[self.settled..];
        let parsed = parse(text, &self.definitions);
        if parsed.gives_any(&self.wanted) && self.settled > 0 {
            *self = Self::new(self.columns, &self.theme);
            return self.settle(whole, partial);
        }
        let Some(last) = parsed.blocks.last() else { return };
        let (ended, cut) = if ends_all && last.kind != Kind::Open {
            (parsed.blocks.len(), text.len())
        } else {
            (parsed.blocks.len() - 1, last.start)
        };
        if ended == 0 {
            return;
        }
        self.lay(&whole[..self.settled], text, &parsed, ended);
        self.settled_lines = self.lines.len();
        parsed.define(cut, &mut self.definitions);
        self.wanted.extend(parsed.wanted);
        self.settled += cut;
    }

    /// Lays out code that is being written; false if there is none at the end of the text.
    fn continue_fence(&mut self, whole: &str, partial: &str) -> bool {
        if self.fence.is_none() {
            let text = &whole[self.settled..];
            let blank: usize =
                text.split_inclusive('\n').take_while(|line| is_blank(line)).map(str::len).sum();
            let Some((fence, length)) = Fence::open(&text[blank..]) else { return false };
            self.separate();
            self.settled += blank + length;
            self.fence = Some(fence);
        }
        let Some(fence) = &mut self.fence else { return false };
        while let Some(end) = whole[self.settled..].find('\n') {
            let line = &whole[self.settled..self.settled + end];
            self.settled += end + 1;
            if fence.closes(line) {
                if !fence.has_lines() {
                    fence.line("", self.columns, &self.theme, &mut self.lines);
                }
                self.fence = None;
                self.settled_lines = self.lines.len();
                self.last = Some(Kind::Open);
                return false;
            }
            fence.line(line, self.columns, &self.theme, &mut self.lines);
        }
        self.settled_lines = self.lines.len();
        let line = partial.strip_suffix('\n').unwrap_or(partial);
        let line = if fence.closes(line) { "" } else { line };
        // An empty block is an empty line, so that its place is seen.
        if !line.is_empty() || !fence.has_lines() {
            fence.clone().line(line, self.columns, &self.theme, &mut self.lines);
        }
        true
    }

    /// Puts an empty line after what is settled.
    fn separate(&mut self) {
        if self.last.is_some() {
            self.lines.push(Line::default());
        }
        self.settled_lines = self.lines.len();
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

/// Whether a line is blank to Markdown, to which only some spaces are spaces.
fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t', '\r', '\n']).is_empty()
}

fn ends_with_empty_line(text: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.rsplit('\n').next().is_none_or(is_blank)
}
