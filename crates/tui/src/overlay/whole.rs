//! A text of any length to read: where its lines begin is found once, and only those on the screen are laid out.
//!
//! Invariant: what a step or a drawing costs depends on the screen, not on the text. A line that is very long is kept in
//! pieces for that.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::text::clean;
use crate::text::wrap::{self, Prefix};

/// Bytes of a piece at most.
const PIECE: usize = 4096;

/// Lines that are shown before one that is gone to.
const BEFORE: usize = 3;

/// Steps from which on an end is meant.
const TO_THE_END: usize = isize::MAX as usize / 4;

/// A text of any length to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// What it is about.
    pub title: String,
    /// What was searched for, in lower case.
    pub searched: String,
    text: String,
    /// Where its lines begin, or the pieces of those that are very long.
    starts: Vec<usize>,
    columns: usize,
    /// The first line on the screen, and which row of it.
    top: (usize, usize),
}

impl Whole {
    /// At its begin, or where what was searched for is first.
    pub fn new(title: impl Into<String>, text: &str, searched: &str) -> Self {
        let text = clean::output(text).trim_end_matches('\n').to_owned();
        let mut starts = vec![0];
        let mut begin = 0;
        for line in text.split_inclusive('\n') {
            let end = begin + line.len();
            while end - begin > PIECE {
                begin = text.floor_char_boundary(begin + PIECE);
                starts.push(begin);
            }
            begin = end;
            starts.push(begin);
        }
        // After the last line nothing begins.
        starts.truncate(starts.len().saturating_sub(1).max(1));
        let mut whole = Self {
            title: title.into(),
            searched: searched.to_owned(),
            text,
            starts,
            columns: 1,
            top: (0, 0),
        };
        let fits = |at: &usize| whole.piece(*at).to_lowercase().contains(searched);
        let found = (0..whole.starts.len()).find(fits).filter(|_| !searched.is_empty());
        whole.top.0 = found.unwrap_or(0).saturating_sub(BEFORE);
        whole
    }

    fn piece(&self, at: usize) -> &str {
        let start = self.starts.get(at).copied().unwrap_or(self.text.len());
        let end = self.starts.get(at + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_end_matches('\n')
    }

    fn laid_out(&self, at: usize, style: Style) -> Vec<Line<'static>> {
        wrap::hard(&[Span::styled(self.piece(at).to_owned(), style)], self.columns, &Prefix::none())
    }

    fn rows(&self, at: usize) -> usize {
        let piece = self.piece(at);
        if piece.is_ascii() && piece.len() <= self.columns {
            return 1;
        }
        self.laid_out(at, Style::default()).len().max(1)
    }

    /// Where a screen of this height begins that ends with the text.
    fn last_top(&self, height: usize) -> (usize, usize) {
        let mut left = height;
        for at in (0..self.starts.len()).rev() {
            let rows = self.rows(at);
            if rows >= left {
                return (at, rows - left);
            }
            left -= rows;
        }
        (0, 0)
    }

    /// Moves by so many rows of a screen of this height.
    pub fn step(&mut self, by: isize, height: usize) {
        let (mut at, mut row) = self.top;
        let mut left = by.unsigned_abs();
        let last = self.last_top(height);
        if left >= TO_THE_END {
            (at, row) = if by < 0 { (0, 0) } else { last };
        } else if by < 0 {
            while left > row && at > 0 {
                left -= row + 1;
                at -= 1;
                row = self.rows(at) - 1;
            }
            row = row.saturating_sub(left);
        } else {
            while left > 0 && (at, row) < last {
                let rest = self.rows(at).saturating_sub(row);
                if left < rest {
                    row += left;
                    break;
                }
                left -= rest;
                (at, row) = (at + 1, 0);
            }
        }
        self.top = (at, row).min(last);
    }

    /// The rows on a screen of this size, and how many lines follow them.
    pub fn view(&mut self, columns: usize, height: usize, style: Style) -> (Vec<Line<'static>>, usize) {
        if self.columns != columns.max(1) {
            self.columns = columns.max(1);
            self.top.1 = self.top.1.min(self.rows(self.top.0) - 1);
        }
        self.step(0, height);
        let (mut at, mut skip) = self.top;
        let mut lines = Vec::with_capacity(height);
        while lines.len() < height && at < self.starts.len() {
            let rows = self.laid_out(at, style).into_iter().skip(std::mem::take(&mut skip));
            lines.extend(rows.take(height - lines.len()));
            at += 1;
        }
        (lines, self.starts.len() - at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(whole: &mut Whole, columns: usize, height: usize) -> Vec<String> {
        let (lines, _) = whole.view(columns, height, Style::default());
        lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn every_row_of_a_text_is_reached_in_both_directions() {
        let mut whole = Whole::new("t", "one\n\ntwo is longer\n漢字漢字\nend\n", "");
        let rows = ["one", "", "two is", " longe", "r", "漢字漢", "字", "end"];
        assert_eq!(seen(&mut whole, 6, 20), rows);
        for top in 0..=5 {
            assert_eq!(seen(&mut whole, 6, 3), rows[top..top + 3]);
            whole.step(1, 3);
        }
        assert_eq!(seen(&mut whole, 6, 3), rows[5..], "that is the end");
        for top in (0..5).rev() {
            whole.step(-1, 3);
            assert_eq!(seen(&mut whole, 6, 3), rows[top..top + 3]);
        }
        whole.step(4, 3);
        assert_eq!(seen(&mut whole, 6, 3), rows[4..7]);
        whole.step(-3, 3);
        assert_eq!(seen(&mut whole, 6, 3), rows[1..4]);
    }

    #[test]
    fn a_text_of_a_hundred_thousand_lines_and_one_of_a_single_long_one_are_read_at_both_ends() {
        let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let mut whole = Whole::new("t", &text, "line 77777");
        assert!(seen(&mut whole, 40, 10).contains(&"line 77777".to_owned()));
        whole.step(isize::MAX / 2, 10);
        assert_eq!(seen(&mut whole, 40, 1), ["line 99990"]);
        whole.step(isize::MAX / 2, 2);
        assert_eq!(whole.view(40, 2, Style::default()).1, 0);
        whole.step(isize::MIN, 2);
        assert_eq!(seen(&mut whole, 40, 2), ["line 0", "line 1"]);
        let mut whole = Whole::new("t", &"é".repeat(1_000_000), "");
        whole.step(isize::MAX / 2, 2);
        assert!(seen(&mut whole, 40, 2).iter().all(|row| row.starts_with('é')));
        assert_eq!(seen(&mut Whole::new("t", "", ""), 40, 2), [""]);
    }
}
