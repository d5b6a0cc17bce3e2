//! How many columns text takes, counted as the screen's buffer counts: cluster by cluster.
//!
//! A terminal knows nothing of strings, it puts clusters into cells. Counting whole strings gives other numbers in some
//! scripts (Arabic lam-alef is one glyph in print and two cells on a terminal), and one cell of difference moves
//! everything to the right of it. So there is one way to count, here, and it is the one by which the buffer is filled.
//!
//! Terminals disagree about some clusters: families and professions joined from several emoji, skin tones, flags,
//! keycaps, signs made colourful by a selector. [`clean`](super::clean) replaces those by their simplest form, about
//! which there is no disagreement; this module only counts. What is left is drawn as follows:
//!
//! | text | columns |
//! | --- | --- |
//! | East Asian wide and fullwidth, emoji | 2 |
//! | ambiguous width (`…`, `─`, `±`, Greek in a CJK font) | 1 |
//! | letters with combining marks | as the letter alone |
//! | Hangul from single letters | as the syllable, 2 |
//! | Indic clusters | as the sum of their spacing letters |
//! | right-to-left scripts | cell by cell in the order of the text, as terminals store it; what is drawn right to left is up to the terminal, and the columns stay |

use std::borrow::Cow;

use ratatui::buffer::CellWidth;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

/// The clusters of a text with their columns, without those that take none.
pub fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).map(|cluster| (cluster, of_cluster(cluster))).filter(|(_, columns)| *columns > 0)
}

/// The columns of one cluster.
pub fn of_cluster(cluster: &str) -> usize {
    match cluster.as_bytes() {
        [byte] => usize::from(!byte.is_ascii_control()),
        _ if cluster.contains(char::is_control) => 0,
        _ => cluster.cell_width().into(),
    }
}

/// The columns of a text.
pub fn of(text: &str) -> usize {
    if is_printable_ascii(text) { text.len() } else { clusters(text).map(|(_, columns)| columns).sum() }
}

/// The columns of several spans one after another.
pub fn of_spans(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| of(&span.content)).sum()
}

/// The columns of a line.
pub fn of_line(line: &Line<'_>) -> usize {
    of_spans(&line.spans)
}

/// Whether a character takes no column of its own.
pub fn is_mark(letter: char) -> bool {
    !letter.is_ascii() && of_cluster(letter.encode_utf8(&mut [0; 4])) == 0
}

/// Whether every byte is a letter of one column.
pub(super) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The text in two: as much as fits into so many columns, and the rest. Reads no more of it than it takes.
pub fn split(text: &str, columns: usize) -> (&str, &str) {
    let bytes = text.as_bytes();
    let head = columns.min(bytes.len());
    // A mark after the last letter would belong to it.
    if bytes.get(head).is_none_or(u8::is_ascii)
        && bytes[..head].iter().all(|byte| matches!(byte, b' '..=b'~'))
    {
        return text.split_at(head);
    }
    let mut taken = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        taken += of_cluster(cluster);
        if taken > columns {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// The text cut to so many columns, with `…` where something is missing.
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if of(text) <= columns {
        return Cow::Borrowed(text);
    }
    match columns.checked_sub(1) {
        Some(kept) => Cow::Owned(format!("{}…", split(text, kept).0.trim_end())),
        None => Cow::Borrowed(""),
    }
}

/// The text cut to so many columns at its beginning, which keeps the end of a path readable.
pub fn cut_start(text: &str, columns: usize) -> Cow<'_, str> {
    let whole = of(text);
    if whole <= columns {
        return Cow::Borrowed(text);
    }
    let Some(kept) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    let mut left = whole;
    for (at, cluster) in text.grapheme_indices(true) {
        if left <= kept {
            return Cow::Owned(format!("…{}", &text[at..]));
        }
        left -= of_cluster(cluster);
    }
    Cow::Borrowed("…")
}

/// The text cut or filled with spaces to exactly so many columns.
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    let text = cut(text, columns);
    match columns - of(&text) {
        0 => text,
        missing => Cow::Owned(format!("{text}{:missing$}", "")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::super::testing::wild_text;
    use super::*;

    #[test]
    fn clusters_take_the_columns_that_terminals_give_them() {
        for (text, columns) in [
            ("", 0),
            ("plain", 5),
            ("日本語", 6),
            ("ｗｉｄｅ", 8),
            ("한국", 4),
            ("\u{1112}\u{1161}\u{11ab}", 2),
            ("e\u{301}", 1),
            ("é", 1),
            ("🚀", 2),
            ("…─│±", 4),
            ("שלום", 4),
            ("مرحبا", 5),
            ("لا", 2),
            ("नमस्ते", 4),
            ("\u{200b}", 0),
        ] {
            assert_eq!(of(text), columns, "{text:?}");
        }
    }

    #[test]
    fn a_cut_says_that_something_is_missing() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("ab cdef", 4), "ab…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut_start("src/text/width.rs", 9), "…width.rs");
        assert_eq!(cut_start("日本語", 4), "…語");
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(fit("a", 3), "a  ");
    }

    proptest! {
        #[test]
        fn the_buffer_counts_the_same(text in wild_text()) {
            let text = super::super::clean::sanitize(&text).replace('\n', " ");
            let columns = of(&text);
            let mut buffer = Buffer::empty(Rect::new(0, 0, u16::try_from(columns).unwrap() + 8, 1));
            let (end, _) = buffer.set_line(0, 0, &Line::from(text.as_str()), u16::MAX);
            prop_assert_eq!(usize::from(end), columns);
        }

        #[test]
        fn a_split_fits_and_loses_nothing(text in wild_text(), columns in 0usize..20) {
            let (head, rest) = split(&text, columns);
            prop_assert!(of(head) <= columns);
            prop_assert_eq!(format!("{head}{rest}"), text);
        }

        #[test]
        fn what_is_cut_or_filled_fits(text in wild_text(), columns in 0usize..20) {
            let text = super::super::clean::sanitize(&text);
            prop_assert!(of(&cut(&text, columns)) <= columns);
            prop_assert!(of(&cut_start(&text, columns)) <= columns);
            prop_assert_eq!(of(&fit(&text, columns)), columns);
        }
    }
}
