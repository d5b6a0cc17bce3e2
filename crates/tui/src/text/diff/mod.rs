//! Changes to files, line by line: numbers, signs, and which words of a line changed.
//!
//! Three ways in: [`render`] for a tool call's change, [`texts`] for two texts, [`patch`] for a unified diff as git and
//! agents write it. All become the same [`Row`]s, and rows become lines in one place, here. What is not a diff after all is
//! shown as the text that it is.
//!
//! Long stretches without a change are folded; long lines are wrapped below themselves.

mod compare;
mod parse;

use std::ops::Range;

use consort_model::item::Diff;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::wrap::{self, Prefix};
use super::{clean, width};

/// Rows of one diff that are drawn; nobody reads more of it in a terminal.
const MAX_ROWS: usize = 5_000;

/// How many lines a change adds and removes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
}

/// What a line of a diff is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Same,
    Added,
    Removed,
}

/// A row of a diff, before it is laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Row {
    /// A file's name and what happens to it.
    File { path: String, note: &'static str, counts: Counts },
    /// A line of the file, clean.
    Line { kind: Kind, number: Option<usize>, text: String, changed: Vec<Range<usize>> },
    /// Lines that are left out; unknown how many in a patch.
    Fold { count: Option<usize>, place: String },
    /// Anything else.
    Text(String),
}

/// A tool call's change with its file's name above it.
pub fn render(diff: &Diff, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (old, note) = match &diff.old_text {
        Some(old) => (old.as_str(), ""),
        None => ("", "new"),
    };
    let mut rows = compare::rows(old, &diff.new_text);
    let path = clean::one_line(&diff.path).into_owned();
    rows.insert(0, Row::File { path, note, counts: count(&rows) });
    lines(&rows, columns, theme)
}

/// What makes one text the other.
pub fn texts(old: &str, new: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    lines(&compare::rows(old, new), columns, theme)
}

/// A unified diff of any number of files.
pub fn patch(patch: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    lines(&parse::rows(patch), columns, theme)
}

/// Whether a text is a unified diff, as far as its first lines tell.
pub fn is_patch(text: &str) -> bool {
    text.lines().take(20).any(|line| {
        line.starts_with("diff --git ")
            || line.starts_with("*** Begin Patch")
            || parse::is_numbered_hunk(line)
    })
}

/// How many lines a change adds and removes.
pub fn counts(old: &str, new: &str) -> Counts {
    count(&compare::rows(old, new))
}

/// How many lines a patch adds and removes.
pub fn patch_counts(patch: &str) -> Counts {
    count(&parse::rows(patch))
}

fn count(rows: &[Row]) -> Counts {
    let mut counts = Counts::default();
    for row in rows {
        match row {
            Row::Line { kind: Kind::Added, .. } => counts.added += 1,
            Row::Line { kind: Kind::Removed, .. } => counts.removed += 1,
            _ => {}
        }
    }
    counts
}

fn lines(rows: &[Row], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let shown = &rows[..rows.len().min(MAX_ROWS)];
    let digits = shown
        .iter()
        .filter_map(|row| if let Row::Line { number, .. } = row { *number } else { None })
        .max()
        .map_or(0, |number| number.to_string().len());
    let mut lines = Vec::with_capacity(shown.len() + 1);
    for row in shown {
        row_lines(row, digits, columns, theme, &mut lines);
    }
    if rows.len() > shown.len() {
        let text = format!("⋯ {} more lines", rows.len() - shown.len());
        lines.extend(wrap::words(&[Span::styled(text, theme.dim)], columns, &Prefix::none()));
    }
    lines
}

fn row_lines(row: &Row, digits: usize, columns: usize, theme: &Theme, lines: &mut Vec<Line<'static>>) {
    match row {
        Row::File { path, note, counts } => {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.push(file_line(path, note, *counts, columns, theme));
        }
        Row::Line { kind, number, text, changed } => {
            let (sign, style, word) = match kind {
                Kind::Same => (' ', theme.text, theme.text),
                Kind::Added => ('+', theme.diff_added, theme.diff_added_word),
                Kind::Removed => ('-', theme.diff_removed, theme.diff_removed_word),
            };
            let prefix = gutter(*number, digits, sign, style, columns, theme);
            lines.extend(wrap::hard(&spans(text, changed, style, word), columns, &prefix));
        }
        Row::Fold { count, place } => {
            let mut text = String::from("⋯");
            if let Some(count) = count {
                text.push_str(&format!(" {count} {}", if *count == 1 { "line" } else { "lines" }));
            }
            if !place.is_empty() {
                text.push(' ');
                text.push_str(place);
            }
            let indent = if digits + 3 < columns / 2 { digits.saturating_sub(1) } else { 0 };
            let line = format!("{:indent$}{}", "", width::cut(&text, columns.saturating_sub(indent)));
            lines.push(Line::from(Span::styled(line, theme.diff_place)));
        }
        Row::Text(text) => {
            lines.extend(wrap::hard(&[Span::styled(text.clone(), theme.dim)], columns, &Prefix::none()));
        }
    }
}

fn file_line(path: &str, note: &str, counts: Counts, columns: usize, theme: &Theme) -> Line<'static> {
    let mut parts = Vec::new();
    if !note.is_empty() {
        parts.push(Span::styled(format!(" {note}"), theme.dim));
    }
    if counts.added > 0 {
        parts.push(Span::styled(format!(" +{}", counts.added), theme.diff_added));
    }
    if counts.removed > 0 {
        parts.push(Span::styled(format!(" -{}", counts.removed), theme.diff_removed));
    }
    let mut room = columns.saturating_sub(width::of_spans(&parts));
    if room <= columns / 2 {
        parts.clear();
        room = columns;
    }
    parts.insert(0, Span::styled(width::cut_start(path, room).into_owned(), theme.title));
    Line::from(parts)
}

/// Number and sign; in a narrow pane the sign alone.
fn gutter(
    number: Option<usize>,
    digits: usize,
    sign: char,
    style: Style,
    columns: usize,
    theme: &Theme,
) -> Prefix {
    let mut first = Vec::new();
    if digits > 0 && digits + 3 < columns / 2 {
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        first.push(Span::styled(format!("{number:>digits$} "), theme.line_number));
    }
    first.push(Span::styled(format!("{sign} "), style));
    Prefix::hanging(first)
}

fn spans<'t>(text: &'t str, changed: &[Range<usize>], style: Style, word: Style) -> Vec<Span<'t>> {
    let mut spans = Vec::with_capacity(changed.len() * 2 + 1);
    let mut at = 0;
    for range in changed {
        if range.start > at {
            spans.push(Span::styled(&text[at..range.start], style));
        }
        spans.push(Span::styled(&text[range.clone()], style.patch(word)));
        at = range.end;
    }
    if at < text.len() {
        spans.push(Span::styled(&text[at..], style));
    }
    spans
}

#[cfg(test)]
mod tests;
