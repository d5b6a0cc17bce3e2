//! Styled text broken into lines of a width.
//!
//! Two ways: [`words`] for prose, which breaks at white space and drops the white space at which it broke; [`hard`] for
//! code and output, which breaks anywhere and drops nothing. Both take prefixes for the first and the following lines,
//! so that lists, quotes and line numbers hang as they should.
//!
//! Invariants: no cluster is split, no line is wider than asked, and wrapping a wrapped line again gives that line. The
//! text must be clean ([`clean`](super::clean)) and without line breaks.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::width;

/// What stands before the lines of a wrapped text.
#[derive(Clone, Default, Debug)]
pub struct Prefix {
    /// Before the first line.
    pub first: Vec<Span<'static>>,
    /// Before every other one.
    pub rest: Vec<Span<'static>>,
}

impl Prefix {
    /// Nothing before any line.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same before every line.
    pub fn same(spans: Vec<Span<'static>>) -> Self {
        Self { first: spans.clone(), rest: spans }
    }

    /// Something before the first line, and as many spaces before the others.
    pub fn hanging(first: Vec<Span<'static>>) -> Self {
        let columns = width::of_spans(&first);
        Self { first, rest: vec![Span::raw(" ".repeat(columns))] }
    }
}

/// Wraps prose at white space; words that are longer than a line are broken anywhere.
pub fn words(spans: &[Span<'_>], columns: usize, prefix: &Prefix) -> Vec<Line<'static>> {
    let mut lines = Lines::new(columns, prefix);
    for span in spans {
        let mut rest = span.content.as_ref();
        while !rest.is_empty() {
            let spaces = rest.find(|letter| letter != ' ').unwrap_or(rest.len());
            if spaces > 0 {
                lines.space(&rest[..spaces], span.style);
            }
            let word;
            (word, rest) = rest[spaces..].split_at(rest[spaces..].find(' ').unwrap_or(rest.len() - spaces));
            if word.is_ascii() {
                lines.word(word, span.style);
            } else {
                breakable(word, |part| lines.word(part, span.style));
            }
        }
    }
    lines.finish()
}

/// Wraps anywhere, and keeps every space.
pub fn hard(spans: &[Span<'_>], columns: usize, prefix: &Prefix) -> Vec<Line<'static>> {
    let mut lines = Lines::new(columns, prefix);
    for span in spans {
        lines.fill(&span.content, span.style);
    }
    lines.finish()
}

/// Styles changed within a text: `style` patches what it covers between two places, counted in bytes of all spans.
pub fn restyle(spans: Vec<Span<'static>>, range: std::ops::Range<usize>, style: Style) -> Vec<Span<'static>> {
    let mut out = Vec::with_capacity(spans.len() + 2);
    let mut start = 0;
    for span in spans {
        let end = start + span.content.len();
        let from = range.start.clamp(start, end) - start;
        let to = range.end.clamp(start, end) - start;
        start = end;
        if from >= to {
            out.push(span);
            continue;
        }
        let text = span.content;
        for (part, style) in [
            (&text[..from], span.style),
            (&text[from..to], span.style.patch(style)),
            (&text[to..], span.style),
        ] {
            if !part.is_empty() {
                out.push(Span::styled(part.to_owned(), style));
            }
        }
    }
    out
}

/// Calls `each` for the parts of a word between which a line may break.
fn breakable<'t>(word: &'t str, mut each: impl FnMut(&'t str)) {
    let mut start = 0;
    let mut previous = "";
    for (at, cluster) in word.grapheme_indices(true) {
        if at > 0 && may_break(previous, cluster) {
            each(&word[start..at]);
            start = at;
        }
        previous = cluster;
    }
    each(&word[start..]);
}

/// Whether a line may break between two clusters that no space divides: scripts of wide letters have no spaces, so
/// there it may, though not before what closes or after what opens.
fn may_break(before: &str, after: &str) -> bool {
    (width::of_cluster(before) > 1 || width::of_cluster(after) > 1)
        && !after.starts_with(closes)
        && !before.starts_with(opens)
}

fn closes(letter: char) -> bool {
    matches!(
        letter,
        ')' | ']'
            | '}'
            | ','
            | '.'
            | ':'
            | ';'
            | '!'
            | '?'
            | '"'
            | '\''
            | '»'
            | '…'
            | '”'
            | '’'
            | '、'
            | '。'
            | '」'
            | '』'
            | '】'
            | '〉'
            | '》'
            | '〕'
            | '）'
            | '］'
            | '｝'
            | '，'
            | '．'
            | '：'
            | '；'
            | '！'
            | '？'
            | 'ー'
            | '々'
            | '・'
    )
}

fn opens(letter: char) -> bool {
    matches!(
        letter,
        '(' | '['
            | '{'
            | '"'
            | '\''
            | '«'
            | '“'
            | '‘'
            | '「'
            | '『'
            | '【'
            | '〈'
            | '《'
            | '〔'
            | '（'
            | '［'
            | '｛'
    )
}

/// Lines in the making.
///
/// A word may stretch over several spans (`**bo**ld`), so it is held back until what follows shows where it ends.
struct Lines<'t> {
    columns: usize,
    prefix: &'t Prefix,
    done: Vec<Line<'static>>,
    /// The line that is being filled.
    line: Vec<Span<'static>>,
    used: usize,
    /// Whether the line has more than its prefix.
    has_text: bool,
    /// White space that is drawn if something follows on the same line.
    spaces: Vec<(&'t str, Style)>,
    spaces_columns: usize,
    /// The word that may still go on.
    word: Vec<(&'t str, Style)>,
    word_columns: usize,
}

impl<'t> Lines<'t> {
    fn new(columns: usize, prefix: &'t Prefix) -> Self {
        let mut lines = Self {
            columns: columns.max(1),
            prefix,
            done: Vec::new(),
            line: Vec::new(),
            used: 0,
            has_text: false,
            spaces: Vec::new(),
            spaces_columns: 0,
            word: Vec::new(),
            word_columns: 0,
        };
        lines.begin(&prefix.first);
        lines
    }

    /// Begins a line. A prefix that would leave too little for text is cut.
    fn begin(&mut self, prefix: &[Span<'static>]) {
        self.used = 0;
        self.has_text = false;
        let room = self.columns - self.columns.div_ceil(4);
        for span in prefix {
            let (kept, cut) = width::split(&span.content, room - self.used);
            self.used += width::of(kept);
            if cut.is_empty() {
                self.line.push(span.clone());
            } else {
                self.line.push(Span::styled(kept.to_owned(), span.style));
                break;
            }
        }
    }

    fn break_line(&mut self) {
        self.done.push(Line::from(std::mem::take(&mut self.line)));
        let prefix = self.prefix;
        self.begin(&prefix.rest);
    }

    fn room(&self) -> usize {
        self.columns - self.used
    }

    fn space(&mut self, token: &'t str, style: Style) {
        self.end_word();
        self.spaces.push((token, style));
        self.spaces_columns += token.len();
    }

    fn word(&mut self, token: &'t str, style: Style) {
        if let (Some((before, _)), Some(after)) = (self.word.last(), token.graphemes(true).next())
            && before.graphemes(true).next_back().is_some_and(|before| may_break(before, after))
        {
            self.end_word();
        }
        if !token.is_empty() {
            self.word_columns += width::of(token);
            self.word.push((token, style));
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.spaces_columns + self.word_columns > self.room() {
            if self.has_text {
                self.spaces.clear();
                self.break_line();
            } else if self.spaces_columns + self.room() / 2 > self.room() || !self.room_after_spaces() {
                // An indent that leaves no room for the text helps nobody.
                self.spaces.clear();
            }
        }
        for index in 0..self.spaces.len() {
            let (text, style) = self.spaces[index];
            self.fill(text, style);
        }
        for index in 0..self.word.len() {
            let (text, style) = self.word[index];
            self.fill(text, style);
        }
        self.spaces.clear();
        self.spaces_columns = 0;
        self.word.clear();
        self.word_columns = 0;
    }

    /// Whether the word can begin on the line after the spaces.
    fn room_after_spaces(&self) -> bool {
        let first = self.word.first().and_then(|(text, _)| width::clusters(text).next());
        self.spaces_columns + first.map_or(0, |(_, columns)| columns) <= self.room()
    }

    /// Adds text, breaking lines wherever they are full.
    fn fill(&mut self, text: &str, style: Style) {
        let mut rest = text;
        while !rest.is_empty() {
            let (now, later) = width::split(rest, self.room());
            if !now.is_empty() {
                self.put(now, style);
                rest = later;
            } else if self.has_text {
                self.break_line();
            } else {
                // Not even one cluster fits into an empty line.
                let cluster = rest.graphemes(true).next().unwrap_or(rest);
                self.put("\u{fffd}", style);
                rest = &rest[cluster.len()..];
            }
        }
    }

    fn put(&mut self, text: &str, style: Style) {
        self.used += width::of(text);
        match self.line.last_mut() {
            Some(span) if self.has_text && span.style == style => span.content.to_mut().push_str(text),
            _ => self.line.push(Span::styled(text.to_owned(), style)),
        }
        self.has_text = true;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_word();
        self.done.push(Line::from(self.line));
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::style::Stylize;

    use super::super::clean::sanitize;
    use super::super::testing::{plain, wild_text};
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        words(&[Span::raw(text)], columns, &Prefix::none()).iter().map(Line::to_string).collect()
    }

    #[test]
    fn prose_breaks_at_spaces_and_drops_them_there() {
        assert_eq!(wrapped("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrapped("the   quick", 9), ["the", "quick"]);
        assert_eq!(wrapped("  indented text", 10), ["  indented", "text"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_word_longer_than_the_line_begins_a_line_and_is_broken() {
        assert_eq!(wrapped("ab cdefghij k", 5), ["ab", "cdefg", "hij k"]);
    }

    #[test]
    fn wide_letters_break_without_spaces_but_keep_their_punctuation() {
        assert_eq!(wrapped("日本語、文", 6), ["日本", "語、文"]);
        assert_eq!(wrapped("日本語「文」", 8), ["日本語", "「文」"]);
        assert_eq!(wrapped("aé 日本", 4), ["aé", "日本"]);
    }

    #[test]
    fn a_word_in_several_styles_stays_together() {
        let spans = [Span::raw("one "), "tw".bold(), Span::raw("o three")];
        let lines = words(&spans, 6, &Prefix::none());
        assert_eq!(plain(&lines), "one\ntwo\nthree\n");
        assert_eq!(lines[1].spans, ["tw".bold(), Span::raw("o")]);
    }

    #[test]
    fn prefixes_hang_and_give_way_to_text() {
        let prefix = Prefix::hanging(vec!["• ".dim()]);
        assert_eq!(plain(&words(&[Span::raw("one two three")], 8, &prefix)), "• one\n  two\n  three\n");
        let prefix = Prefix::same(vec![Span::raw("│ ".repeat(10))]);
        assert_eq!(plain(&words(&[Span::raw("text")], 8, &prefix)), "│ │ │ te\n│ │ │ xt\n");
    }

    #[test]
    fn hard_wrapping_keeps_every_space() {
        let lines = hard(&[Span::raw("  let x  =  1;")], 5, &Prefix::none());
        assert_eq!(plain(&lines), "  let\n x  =\n  1;\n");
    }

    #[test]
    fn a_style_can_be_laid_over_a_part() {
        let spans = restyle(vec![Span::raw("one "), "two".bold()], 2..6, Style::new().red());
        assert_eq!(spans, [Span::raw("on"), "e ".red(), "tw".bold().red(), "o".bold()]);
    }

    fn wild_spans() -> impl Strategy<Value = Vec<Span<'static>>> {
        prop::collection::vec((wild_text(), any::<bool>()), 0..5).prop_map(|texts| {
            let clean = |text: String| sanitize(&text).replace('\n', " ");
            texts
                .into_iter()
                .map(|(text, bold)| if bold { clean(text).bold() } else { Span::raw(clean(text)) })
                .collect()
        })
    }

    fn letters(text: impl Iterator<Item = String>) -> String {
        text.flat_map(|text| text.chars().filter(|letter| *letter != ' ').collect::<Vec<_>>()).collect()
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(spans in wild_spans(), columns in 1usize..30, indent in "[•> ]{0,12}") {
            let prefix = Prefix::hanging(vec![Span::raw(indent)]);
            for lines in [words(&spans, columns, &prefix), hard(&spans, columns, &prefix)] {
                prop_assert!(!lines.is_empty());
                for line in lines {
                    prop_assert!(width::of_line(&line) <= columns, "{:?}", line);
                }
            }
        }

        #[test]
        fn no_text_is_lost(spans in wild_spans(), columns in 4usize..30) {
            let source = letters(spans.iter().map(|span| span.content.to_string()));
            let lines = words(&spans, columns, &Prefix::none());
            prop_assert_eq!(letters(lines.iter().map(Line::to_string)), source);
            let whole: String = spans.iter().map(|span| span.content.as_ref()).collect();
            let lines = hard(&spans, columns, &Prefix::none());
            prop_assert_eq!(lines.iter().map(Line::to_string).collect::<String>(), whole);
        }

        #[test]
        fn wrapping_again_changes_nothing(spans in wild_spans(), columns in 1usize..30) {
            for wrap in [words, hard] {
                let once = wrap(&spans, columns, &Prefix::none());
                let twice: Vec<_> =
                    once.iter().flat_map(|line| wrap(&line.spans, columns, &Prefix::none())).collect();
                prop_assert_eq!(&plain(&twice), &plain(&once));
            }
        }
    }
}
