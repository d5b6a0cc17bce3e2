//! Two texts compared: by lines, and lines that replace each other by words.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices, capture_diff_slices_deadline};

use super::{Kind, Row};
use crate::text::clean;

/// Lines around a change that are shown.
const CONTEXT: usize = 3;

/// After this the comparison may be coarser: no text may stop the screen.
const PATIENCE: Duration = Duration::from_millis(100);

/// Pairs of lines that are tried with each other in one replaced stretch.
const MAX_PAIRS: usize = 400;

/// Words of a line that is compared by words.
const MAX_WORDS: usize = 1_000;

/// The rows that make one text the other.
pub fn rows(old: &str, new: &str) -> Vec<Row> {
    let (old, new) = (clean::sanitize(old), clean::sanitize(new));
    let old: Vec<&str> = split(&old);
    let new: Vec<&str> = split(&new);
    let deadline = Some(Instant::now() + PATIENCE);
    let operations = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let last = operations.len().saturating_sub(1);
    let mut rows = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        match *operation {
            DiffOp::Equal { old_index, new_index, len } => {
                let head = if index == 0 { 0 } else { CONTEXT };
                let tail = if index == last { 0 } else { CONTEXT };
                // A fold takes a line itself, so folding one line gains nothing.
                let folded = len.saturating_sub(head + tail);
                let fold = if folded > 1 { head..head + folded } else { len..len };
                for at in 0..len {
                    if fold.contains(&at) {
                        if at == fold.start {
                            rows.push(Row::Fold { count: Some(folded), place: String::new() });
                        }
                    } else {
                        rows.push(row(Kind::Same, Some(new_index + at + 1), old[old_index + at]));
                    }
                }
            }
            DiffOp::Delete { old_index, old_len, .. } => {
                rows.extend(numbered(Kind::Removed, &old, old_index, old_len));
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                rows.extend(numbered(Kind::Added, &new, new_index, new_len));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                let mut removed: Vec<Row> = numbered(Kind::Removed, &old, old_index, old_len).collect();
                let mut added: Vec<Row> = numbered(Kind::Added, &new, new_index, new_len).collect();
                mark_words(&mut removed, &mut added);
                rows.extend(removed);
                rows.extend(added);
            }
        }
    }
    rows
}

fn split(text: &str) -> Vec<&str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n').filter(|_| !text.is_empty()).collect()
}

fn numbered<'t>(kind: Kind, lines: &'t [&str], start: usize, count: usize) -> impl Iterator<Item = Row> + 't {
    (start..start + count).map(move |index| row(kind, Some(index + 1), lines[index]))
}

/// A line as a row.
pub fn row(kind: Kind, number: Option<usize>, text: &str) -> Row {
    Row::Line { kind, number, text: text.to_owned(), changed: Vec::new() }
}

/// Finds for removed lines the added ones that they became, and marks what differs between them.
pub fn mark_words(removed: &mut [Row], added: &mut [Row]) {
    let all_pairs = removed.len() * added.len() <= MAX_PAIRS;
    let mut from = 0;
    for (index, old) in removed.iter_mut().enumerate() {
        let candidates = if all_pairs { from..added.len() } else { index..(index + 1).min(added.len()) };
        for candidate in candidates {
            if mark_pair(old, &mut added[candidate]) {
                from = candidate + 1;
                break;
            }
        }
    }
}

/// Marks what differs between two lines; false if they have too little in common.
fn mark_pair(old: &mut Row, new: &mut Row) -> bool {
    let (
        Row::Line { text: old, changed: old_changed, .. },
        Row::Line { text: new, changed: new_changed, .. },
    ) = (old, new)
    else {
        return false;
    };
    let (old_words, new_words) = (words(old), words(new));
    if old_words.len() > MAX_WORDS || new_words.len() > MAX_WORDS {
        return false;
    }
    let operations = capture_diff_slices(Algorithm::Myers, &old_words, &new_words);
    let letters = |words: &[&str]| -> usize { words.iter().map(|word| word.trim().len()).sum() };
    let same: usize = operations
        .iter()
        .filter_map(|operation| match operation {
            DiffOp::Equal { old_index, len, .. } => Some(letters(&old_words[*old_index..old_index + len])),
            _ => None,
        })
        .sum();
    if same * 5 < letters(&old_words).max(letters(&new_words)) * 2 {
        return false;
    }
    for operation in &operations {
        if !matches!(operation, DiffOp::Equal { .. }) {
            push_range(old_changed, &old_words, operation.old_range());
            push_range(new_changed, &new_words, operation.new_range());
        }
    }
    true
}

/// Adds the bytes of some words, joined with the range before if only a space is between them.
fn push_range(ranges: &mut Vec<Range<usize>>, words: &[&str], range: Range<usize>) {
    let start: usize = words[..range.start].iter().map(|word| word.len()).sum();
    let end = start + words[range].iter().map(|word| word.len()).sum::<usize>();
    if start == end {
        return;
    }
    match ranges.last_mut() {
        Some(last) if start - last.end <= 1 => last.end = end,
        _ => ranges.push(start..end),
    }
}

/// The text as words, runs of spaces, and single signs.
fn words(text: &str) -> Vec<&str> {
    let class = |letter: char| match letter {
        ' ' => 0,
        _ if letter.is_alphanumeric() || letter == '_' => 1,
        _ => 2,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let now = class(letter);
        // A mark stays with its letter.
        let joins = before == Some(now) && now != 2 || at > 0 && crate::text::width::is_mark(letter);
        if at > 0 && !joins {
            words.push(&text[start..at]);
            start = at;
        }
        before = Some(now);
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}
