//! A text with a cursor: what the composer and every field of a form are made of.
//!
//! Moves by what is seen as one character. Holds no width: rows are made when it is drawn, by [`Editor::rows`].

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::text::width;

/// How many changes can be undone.
const MAX_UNDO: usize = 200;

/// What the texts before them may weigh together.
const MAX_UNDO_BYTES: usize = 4 << 20;

/// A text with a cursor.
#[derive(Clone, Default, Debug)]
pub struct Editor {
    text: String,
    /// A byte between two clusters.
    cursor: usize,
    killed: String,
    undo: Vec<(String, usize)>,
    typing: bool,
}

/// A text, or what is around its cursor, as rows of a width.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// Each row's bytes within the text.
    pub rows: Vec<Range<usize>>,
    /// The row that the cursor is in.
    pub row: usize,
    /// The cursor's column within it.
    pub column: usize,
}

impl Rows {
    /// The first of so many rows, such that the one with the cursor is in sight.
    pub fn top(&self, height: usize) -> usize {
        (self.row + 1).saturating_sub(height)
    }
}

impl Editor {
    /// With this text, and the cursor at its end.
    pub fn with(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text, ..Self::default() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Where the cursor is, in bytes.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Another text, which can be undone.
    pub fn replace(&mut self, text: impl Into<String>) {
        self.remember(false);
        self.text = text.into();
        self.cursor = self.text.len();
    }

    /// Takes the text out.
    pub fn take(&mut self) -> String {
        self.remember(false);
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Types something.
    pub fn insert(&mut self, text: &str) {
        self.remember(text.chars().count() == 1 && !text.contains(char::is_whitespace));
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A mark may have joined the cluster before it or after it.
        self.cursor = self.boundary(self.cursor);
    }

    /// Puts something in the place of some bytes and the cursor after it.
    pub fn splice(&mut self, range: Range<usize>, text: &str) {
        if self.text.get(range.clone()).is_none() {
            return;
        }
        self.remember(false);
        self.text.replace_range(range.clone(), text);
        self.cursor = range.start + text.len();
    }

    fn remember(&mut self, typing: bool) {
        if typing && self.typing {
            return;
        }
        self.typing = typing;
        self.undo.push((self.text.clone(), self.cursor));
        let mut bytes: usize = self.undo.iter().map(|(text, _)| text.len()).sum();
        while self.undo.len() > MAX_UNDO || (bytes > MAX_UNDO_BYTES && self.undo.len() > 1) {
            bytes -= self.undo.remove(0).0.len();
        }
    }

    /// Takes the last change back.
    pub fn undo(&mut self) {
        if let Some((text, cursor)) = self.undo.pop() {
            self.text = text;
            self.cursor = cursor;
            self.typing = false;
        }
    }

    /// The nearest place between two clusters, from here on.
    fn boundary(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        match cursor.is_boundary(&self.text, 0) {
            Ok(true) => at,
            _ => cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len()),
        }
    }

    fn before(&self) -> usize {
        let head = self.text.get(..self.cursor).unwrap_or_default();
        head.grapheme_indices(true).next_back().map_or(0, |(start, _)| start)
    }

    fn after(&self) -> usize {
        let tail = self.text.get(self.cursor..).unwrap_or_default();
        self.cursor + tail.graphemes(true).next().map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let head = self.text.get(..self.cursor).unwrap_or_default();
        let word = head.trim_end();
        word.rfind(char::is_whitespace)
            .map_or(0, |at| at + word[at..].chars().next().map_or(1, char::len_utf8))
    }

    fn word_after(&self) -> usize {
        let tail = self.text.get(self.cursor..).unwrap_or_default();
        let spaces = tail.len() - tail.trim_start().len();
        let word = tail[spaces..].find(char::is_whitespace).unwrap_or(tail.len() - spaces);
        self.cursor + spaces + word
    }

    fn line_start(&self) -> usize {
        self.text.get(..self.cursor).unwrap_or_default().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let tail = self.text.get(self.cursor..).unwrap_or_default();
        self.cursor + tail.find('\n').unwrap_or(tail.len())
    }

    fn go(&mut self, to: usize) {
        self.cursor = to;
        self.typing = false;
    }

    /// A character to the left.
    pub fn left(&mut self) {
        self.go(self.before());
    }

    /// A character to the right.
    pub fn right(&mut self) {
        self.go(self.after());
    }

    /// A word to the left.
    pub fn word_left(&mut self) {
        self.go(self.word_before());
    }

    /// A word to the right.
    pub fn word_right(&mut self) {
        self.go(self.word_after());
    }

    /// To the begin of the line.
    pub fn start_of_line(&mut self) {
        self.go(self.line_start());
    }

    /// To the end of the line.
    pub fn end_of_line(&mut self) {
        self.go(self.line_end());
    }

    /// To the very end.
    pub fn end(&mut self) {
        self.go(self.text.len());
    }

    fn cut(&mut self, range: Range<usize>, keep: bool) {
        if range.is_empty() {
            return;
        }
        self.remember(false);
        let cut: String = self.text.drain(range.clone()).collect();
        self.cursor = range.start;
        if keep {
            self.killed = cut;
        }
    }

    /// Deletes the character before.
    pub fn delete_back(&mut self) {
        self.cut(self.before()..self.cursor, false);
    }

    /// Deletes the character after.
    pub fn delete_forward(&mut self) {
        self.cut(self.cursor..self.after(), false);
    }

    /// Deletes the word before.
    pub fn delete_word(&mut self) {
        self.cut(self.word_before()..self.cursor, true);
    }

    /// Deletes to the begin of the line.
    pub fn kill_to_start(&mut self) {
        self.cut(self.line_start()..self.cursor, true);
    }

    /// Deletes to the end of the line, or the line's end.
    pub fn kill_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.cursor { self.after() } else { end };
        self.cut(self.cursor..end, true);
    }

    /// Puts back what was deleted last.
    pub fn yank(&mut self) {
        let killed = self.killed.clone();
        if !killed.is_empty() {
            self.insert(&killed);
            self.typing = false;
        }
    }

    /// The text as rows of so many columns.
    pub fn rows(&self, columns: usize) -> Rows {
        self.near(columns, usize::MAX)
    }

    /// The rows around the cursor: at least so many before it and after it, if there are. Costs what they hold rather
    /// than what the whole text does, so that typing into a long text is as quick as into a short one.
    pub fn near(&self, columns: usize, count: usize) -> Rows {
        let (mut start, mut end) = (self.line_start(), self.line_end());
        let mut rows = VecDeque::from(self.rows_of_line(start..end, columns));
        let own = rows.len();
        while start > 0 && rows.len() < own.saturating_add(count) {
            let line_end = start - 1;
            start = self.text.get(..line_end).unwrap_or_default().rfind('\n').map_or(0, |at| at + 1);
            for row in self.rows_of_line(start..line_end, columns).into_iter().rev() {
                rows.push_front(row);
            }
        }
        let before = rows.len();
        while end < self.text.len() && rows.len() < before.saturating_add(count) {
            let line_start = end + 1;
            let tail = self.text.get(line_start..).unwrap_or_default();
            end = line_start + tail.find('\n').unwrap_or(tail.len());
            rows.extend(self.rows_of_line(line_start..end, columns));
        }
        let rows = Vec::from(rows);
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let column = rows
            .get(row)
            .map_or(0, |row| width::of(self.text.get(row.start..self.cursor).unwrap_or_default()));
        Rows { rows, row, column }
    }

    fn rows_of_line(&self, line: Range<usize>, columns: usize) -> Vec<Range<usize>> {
        let columns = columns.max(1);
        let mut rows = Vec::new();
        let Range { start, end } = line;
        let mut row = start;
        let mut taken = 0;
        let mut space = None;
        for (at, cluster) in self.text.get(start..end).unwrap_or_default().grapheme_indices(true) {
            let wide = width::of_cluster(cluster).max(usize::from(cluster == "\t"));
            while taken > 0 && taken + wide > columns {
                // After the last space if there is one, so that words stay whole.
                let cut = space.filter(|cut| *cut > row).unwrap_or(start + at);
                rows.push(row..cut);
                row = cut;
                taken = width::of(self.text.get(cut..start + at).unwrap_or_default());
                space = None;
            }
            taken += wide;
            if cluster == " " {
                space = Some(start + at + 1);
            }
        }
        rows.push(row..end);
        rows
    }

    /// A row up; false if there is none.
    pub fn up(&mut self, columns: usize) -> bool {
        let rows = self.near(columns, 1);
        rows.row.checked_sub(1).is_some_and(|row| self.go_to(&rows, row))
    }

    /// A row down; false if there is none.
    pub fn down(&mut self, columns: usize) -> bool {
        let rows = self.near(columns, 1);
        rows.row + 1 < rows.rows.len() && self.go_to(&rows, rows.row + 1)
    }

    /// To this row and column of what a view of so many rows shows, or as near as the text goes.
    pub fn place(&mut self, columns: usize, height: usize, row: usize, column: usize) {
        let rows = Rows { column, ..self.near(columns, height) };
        let last = rows.rows.len().saturating_sub(1);
        self.go_to(&rows, rows.top(height).saturating_add(row).min(last));
    }

    fn go_to(&mut self, rows: &Rows, row: usize) -> bool {
        let Some(range) = rows.rows.get(row) else { return false };
        let (head, _) = width::split(self.text.get(range.clone()).unwrap_or_default(), rows.column);
        let to = range.start + head.len();
        self.go(to);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn characters_are_what_is_seen_as_one() {
        let mut editor = Editor::with("ae\u{301}漢");
        editor.left();
        editor.left();
        editor.delete_forward();
        assert_eq!(editor.text(), "a漢");
        editor.undo();
        assert_eq!(editor.text(), "ae\u{301}漢");
    }

    #[test]
    fn words_are_deleted_whole_and_can_be_put_back() {
        let mut editor = Editor::with("one two  three");
        editor.delete_word();
        assert_eq!(editor.text(), "one two  ");
        editor.delete_word();
        assert_eq!(editor.text(), "one ");
        editor.yank();
        assert_eq!(editor.text(), "one two  ");
    }

    #[test]
    fn long_lines_become_rows_at_spaces() {
        let editor = Editor::with("one two three\nfour");
        let rows = editor.rows(8);
        let texts: Vec<&str> = rows.rows.iter().map(|row| &editor.text()[row.clone()]).collect();
        assert_eq!(texts, ["one two ", "three", "four"]);
        assert_eq!((rows.row, rows.column), (2, 4));
    }

    #[test]
    fn a_place_is_the_nearest_character() {
        let mut editor = Editor::with("a漢b\nlong");
        for ((row, column), cursor) in
            [((0, 0), 0), ((0, 1), 1), ((0, 3), 4), ((0, 9), 5), ((1, 2), 8), ((7, 0), 6)]
        {
            editor.place(10, 10, row, column);
            assert_eq!(editor.cursor(), cursor, "{row} {column}");
        }
    }

    proptest! {
        #[test]
        fn rows_hold_the_whole_text_and_none_is_too_wide(text in "[a-z 漢\n]{0,60}", columns in 2usize..12) {
            let editor = Editor::with(text.clone());
            let rows = editor.rows(columns);
            let joined: String = rows.rows.iter().map(|row| &text[row.clone()]).collect();
            prop_assert_eq!(joined, text.replace('\n', ""));
            for row in &rows.rows {
                prop_assert!(width::of(text[row.clone()].trim_end()) <= columns);
            }
        }

        #[test]
        fn the_rows_around_the_cursor_are_those_of_the_whole_text(text in "[a-z 漢\n]{0,80}", at in 0usize..80, columns in 2usize..9, count in 0usize..5) {
            let mut editor = Editor::with(text);
            for _ in 0..at {
                editor.left();
            }
            let (all, near) = (editor.rows(columns), editor.near(columns, count));
            prop_assert_eq!(near.column, all.column);
            prop_assert!(near.row >= count.min(all.row));
            prop_assert!(near.rows.len() - near.row > count.min(all.rows.len() - all.row - 1));
            let first = all.row - near.row;
            prop_assert_eq!(&all.rows[first..first + near.rows.len()], &near.rows[..]);
        }

        #[test]
        fn no_edit_leaves_the_cursor_within_a_character(text in "\\PC{0,20}", edits in proptest::collection::vec(0u8..9, 0..30)) {
            let mut editor = Editor::with(text);
            for edit in edits {
                match edit {
                    0 => editor.left(),
                    1 => editor.right(),
                    2 => editor.delete_back(),
                    3 => editor.delete_forward(),
                    4 => editor.insert("e\u{301}"),
                    5 => editor.word_left(),
                    6 => editor.delete_word(),
                    7 => { editor.up(3); }
                    _ => editor.undo(),
                }
                prop_assert!(editor.text().is_char_boundary(editor.cursor()));
            }
        }
    }
}
