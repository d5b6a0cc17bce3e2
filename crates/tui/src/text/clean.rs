//! Text of others made harmless: nothing that an agent, a tool or a file says can do more to the terminal than be read.
//!
//! Owns which characters may reach the screen. It works line by line, and what it does to a line depends on that line
//! alone, so streamed text can be cleaned as its lines get complete.
//!
//! Invariants of [`sanitize`]: what comes out has no control character but `\n`; every cluster in it takes at least one
//! column, and one about which terminals agree; cleaning it again changes nothing.
//!
//! What happens to what:
//!
//! | in | out |
//! | --- | --- |
//! | escape sequences (colours, cursor, titles, links) | nothing |
//! | an escape sequence that is cut off, other control characters | visible, as `^[` or `\u{85}` |
//! | `\r\n`, a lone `\r`, the line and paragraph separators | a line break |
//! | tabs | spaces to the next column that four divides |
//! | marks that change the direction, zero-width and other invisible characters | nothing |
//! | emoji joined from several, with skin tones or selectors; keycaps | the first one of them, plain |
//! | halfwidth marks of kana, about which terminals disagree | wide ones |
//! | flags | the two letters of the country |
//! | a combining mark without a letter | on a dotted circle |
//! | more than six marks on a letter | six |

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use super::width;

/// Columns from one tab stop to the next, as Markdown has them.
const TAB: usize = 4;

/// Marks on one letter that are kept: no language needs more, and a pile of them paints over other lines.
const MAX_MARKS: usize = 6;

/// The text as it may be shown; the text itself where nothing is to be done.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    push(text, &mut clean);
    Cow::Owned(clean)
}

/// Adds the clean form of `text`, which begins a line, to `clean`.
pub fn push(text: &str, clean: &mut String) {
    let mut visible = String::new();
    let mut after_return = false;
    for piece in text.split_inclusive(is_line_break) {
        let line = piece.strip_suffix(is_line_break).unwrap_or(piece);
        if !(after_return && piece == "\n") {
            if is_clean(line) {
                clean.push_str(line);
            } else {
                visible.clear();
                unescape(line, &mut visible);
                settle(&visible, clean);
            }
            if line.len() < piece.len() {
                clean.push('\n');
            }
        }
        after_return = piece.ends_with('\r');
    }
}

/// How much of a text is complete lines, whatever may follow it: a return at its end may be half of a break.
pub fn complete_lines(text: &str) -> usize {
    let known = text.strip_suffix('\r').unwrap_or(text);
    match known.char_indices().rfind(|(_, letter)| is_line_break(*letter)) {
        Some((at, letter)) => at + letter.len_utf8(),
        None => 0,
    }
}

/// What ends a line: `\n`, a return alone or before `\n`, and the separators of Unicode.
pub fn is_line_break(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// The clean text on one line, its white space made single spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let text = sanitize(text);
    let tidy = !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains("  ")
        && !text.chars().any(|letter| letter != ' ' && letter.is_whitespace());
    if tidy { text } else { Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" ")) }
}

/// The clean text on one line, with a space for each line break and all others as they were.
pub fn one_line_keeping_spaces(text: &str) -> Cow<'_, str> {
    let text = sanitize(text);
    if text.contains('\n') { Cow::Owned(text.replace('\n', " ")) } else { text }
}

/// The text with nothing left out and everything unusual spelled out: for what a person decides about.
pub fn exact(text: &str) -> String {
    let mut exact = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => exact.push('\n'),
            '\t' => exact.push_str("    "),
            _ if letter.is_control() => push_control(letter, &mut exact),
            _ if is_invisible(letter) || is_broken(letter) || is_line_break(letter) => {
                exact.extend(letter.escape_unicode());
            }
            _ => exact.push(letter),
        }
    }
    sanitize(&exact).into_owned()
}

/// What a program printed, as it would stand on a terminal: a carriage return begins its line anew, a backspace takes a
/// letter back. Progress bars so leave one line instead of hundreds.
pub fn output(text: &str) -> Cow<'_, str> {
    if !text.contains(['\r', '\x08']) {
        return sanitize(text);
    }
    let mut settled = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, ending) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        // Progress ends with a return as often as it begins with one: the last part that says something stands.
        let last = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
        let start = settled.len();
        for letter in last.chars() {
            match letter {
                '\x08' if settled.len() > start => {
                    settled.pop();
                }
                '\x08' => {}
                _ => settled.push(letter),
            }
        }
        settled.push_str(ending);
    }
    Cow::Owned(sanitize(&settled).into_owned())
}

/// Whether the text can be shown as it is. Says no to some that could, never yes to one that cannot.
fn is_clean(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) || text.chars().all(is_plain)
}

/// Letters and signs that stand for themselves in one or two columns, whatever stands beside them.
fn is_plain(letter: char) -> bool {
    matches!(letter,
        ' '..='~' | '\n'
        | '\u{a0}'..='\u{ac}' | '\u{ae}'..='\u{2ff}'
        | '\u{370}'..='\u{377}' | '\u{37a}'..='\u{37f}' | '\u{384}'..='\u{482}' | '\u{48a}'..='\u{52f}'
        | '\u{1e00}'..='\u{1eff}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
        | '\u{2070}'..='\u{209c}' | '\u{20a0}'..='\u{20bf}' | '\u{2100}'..='\u{2bff}'
        | '\u{3000}'..='\u{3029}' | '\u{3030}'..='\u{3096}' | '\u{309b}'..='\u{312f}'
        | '\u{3190}'..='\u{a48c}' | '\u{ac00}'..='\u{d7a3}' | '\u{ff01}'..='\u{ff9d}'
        | '\u{1f300}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6c5}'
        | '\u{1f900}'..='\u{1f9ff}')
}

/// Takes escape sequences out of a line and spells other control characters out.
fn unescape(line: &str, visible: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(|letter: char| letter.is_control() && letter != '\t') {
        visible.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(letter) = rest.chars().next() else { break };
        let after = &rest[letter.len_utf8()..];
        rest = match letter {
            '\x1b' => match escape_end(after) {
                Some(end) => &after[end..],
                None => {
                    push_control(letter, visible);
                    after
                }
            },
            '\u{9b}' => match sequence_end(after) {
                Some(end) => &after[end..],
                None => {
                    push_control(letter, visible);
                    after
                }
            },
            _ => {
                push_control(letter, visible);
                after
            }
        };
    }
    visible.push_str(rest);
}

/// Where the sequence ends that begins after ESC; none if the line ends before it does.
fn escape_end(after: &str) -> Option<usize> {
    let bytes = after.as_bytes();
    match *bytes.first()? {
        b'[' => sequence_end(&after[1..]).map(|end| end + 1),
        // A title, link or other string: until BEL or ESC \.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let end = after.find(['\x07', '\x1b', '\u{9c}'])?;
            match &bytes[end..] {
                [0x07, ..] => Some(end + 1),
                [0x1b, b'\\', ..] | [0xc2, 0x9c, ..] => Some(end + 2),
                _ => None,
            }
        }
        0x20..=0x2f => {
            let end = bytes.iter().position(|byte| !matches!(byte, 0x20..=0x2f))?;
            matches!(bytes.get(end), Some(0x30..=0x7e)).then_some(end + 1)
        }
        0x30..=0x7e => Some(1),
        _ => None,
    }
}

/// Where the parameters and the final letter of a control sequence end.
fn sequence_end(after: &str) -> Option<usize> {
    let end = after.bytes().position(|byte| !matches!(byte, 0x20..=0x3f))?;
    matches!(after.as_bytes().get(end), Some(0x40..=0x7e)).then_some(end + 1)
}

fn push_control(letter: char, visible: &mut String) {
    match letter {
        '\0'..='\x1f' => {
            visible.push('^');
            visible.push(char::from(letter as u8 + 0x40));
        }
        '\x7f' => visible.push_str("^?"),
        _ => visible.extend(letter.escape_unicode()),
    }
}

/// Adds a line without control characters, its clusters made such that terminals agree about them.
fn settle(line: &str, clean: &mut String) {
    let start = clean.len();
    for cluster in line.graphemes(true) {
        if cluster == "\t" {
            let column = width::of(&clean[start..]);
            clean.extend(std::iter::repeat_n(' ', TAB - column % TAB));
        } else {
            settle_cluster(cluster, clean);
        }
    }
}

fn settle_cluster(cluster: &str, clean: &mut String) {
    let start = clean.len();
    let mut marks = 0;
    let joins = cluster.chars().next().is_some_and(is_pictograph);
    for letter in cluster.chars() {
        match letter {
            '\u{200d}' if joins && clean.len() > start => break,
            '\u{1f1e6}'..='\u{1f1ff}' => clean.push(country_letter(letter)),
            '\u{1f3fb}'..='\u{1f3ff}' if clean.len() == start => clean.push('■'),
            '\u{1f3fb}'..='\u{1f3ff}' | '\u{20e3}' => {}
            // Terminals give these halfwidth marks a cell of their own, though they join the letter before them.
            '\u{ff9e}' => clean.push('\u{309b}'),
            '\u{ff9f}' => clean.push('\u{309c}'),
            // Hangul's fillers are blank halves of a syllable: without them the other half would change its width.
            '\u{115f}' | '\u{1160}' => {
                clean.truncate(start);
                clean.push(char::REPLACEMENT_CHARACTER);
                return;
            }
            _ if is_invisible(letter) => {}
            _ if is_broken(letter) => clean.push(char::REPLACEMENT_CHARACTER),
            _ => {
                let mark = width::is_mark(letter);
                if mark && clean.len() == start {
                    clean.push('◌');
                    // Halves of a Hangul syllable join with nothing but their other half, nor do those that follow them.
                    if !joins_with_circle(letter) {
                        clean.truncate(start);
                        clean.push(char::REPLACEMENT_CHARACTER);
                        return;
                    }
                }
                marks += usize::from(mark);
                if !mark || marks <= MAX_MARKS {
                    clean.push(letter);
                }
            }
        }
    }
}

fn joins_with_circle(mark: char) -> bool {
    let mut buffer = String::from('◌');
    buffer.push(mark);
    buffer.graphemes(true).count() == 1
}

fn country_letter(indicator: char) -> char {
    u8::try_from(u32::from(indicator) - 0x1f1e6).map_or('?', |index| char::from(b'A' + index))
}

fn is_pictograph(letter: char) -> bool {
    matches!(letter, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{2bff}' | '\u{3030}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Characters that nobody sees: they carry text past a reader, or turn the order of the letters around.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Code points that are no characters at all.
fn is_broken(letter: char) -> bool {
    u32::from(letter) & 0xfffe == 0xfffe || matches!(letter, '\u{fdd0}'..='\u{fdef}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::wild_text;
    use super::*;

    #[test]
    fn clean_text_is_not_copied() {
        for text in ["", "plain\ntext", "Grüße, 日本語 — ok…", "┌─┐ ✓ 🚀", "Привет"]
        {
            assert!(matches!(sanitize(text), Cow::Borrowed(_)), "{text:?}");
        }
    }

    #[test]
    fn each_kind_of_unclean_text_becomes_harmless() {
        for (text, clean) in [
            ("a\x1b[31mred\x1b[0m b", "ared b"),
            ("\u{9b}31mred", "red"),
            ("\x1b]0;title\x07x\x1b]8;;http://evil\x1b\\y", "xy"),
            ("\x1b(Bx\x1b=y\x1b7", "xy"),
            ("cut \x1b[31", "cut ^[[31"),
            ("cut \x1b]0;title\nnext", "cut ^[]0;title\nnext"),
            ("end\x1b", "end^["),
            ("bell\x07 \x08 \x00\x7f\u{85}", "bell^G ^H ^@^?\\u{85}"),
            ("a\r\nb\rc\u{2028}d", "a\nb\nc\nd"),
            ("a\tb\t\tc\n\td", "a   b       c\n    d"),
            ("日\tx", "日  x"),
            ("a\u{202e}b\u{2066}c\u{200e}", "abc"),
            ("in\u{200b}vis\u{2060}ible\u{feff}\u{ad}", "invisible"),
            ("x\u{e0041}\u{e0042}\u{fe01}", "x"),
            ("👩‍👩‍👧 👍🏽 ❤️ 1️⃣", "👩 👍 ❤ 1"),
            ("🇩🇪 🇪", "DE E"),
            ("\u{301}x", "◌\u{301}x"),
            ("\u{1161}\u{1161}x", "\u{fffd}x"),
            (
                "z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}",
                "z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}",
            ),
            ("\u{fffe}\u{115f}\u{3164}", "\u{fffd}\u{fffd}"),
            ("क्\u{200d}ष می\u{200c}خواهم", "क्ष میخواهم"),
        ] {
            assert_eq!(sanitize(text), clean, "{text:?}");
        }
    }

    #[test]
    fn one_line_has_no_breaks_and_no_wide_gaps() {
        assert!(matches!(one_line("as it was"), Cow::Borrowed(_)));
        assert_eq!(one_line(" a\n\n  b\tc "), "a b c");
    }

    #[test]
    fn what_a_person_decides_about_hides_nothing() {
        assert_eq!(exact("rm \x1b[8m-rf /\x1b[0m"), "rm ^[[8m-rf /^[[0m");
        assert_eq!(exact("a\u{202e}b\u{200b}c\r\n"), "a\\u{202e}b\\u{200b}c^M\n");
    }

    #[test]
    fn output_stands_as_on_a_terminal() {
        assert_eq!(output("10%\r50%\r100%\ndone\r\n"), "100%\ndone\n");
        assert_eq!(output("10%\r50%\r"), "50%");
        assert_eq!(output("\x1b[2K\rab\x08c\x08\x08\x08\x08d"), "d");
        assert_eq!(output("\x1b[1mbold\x1b[0m\n"), "bold\n");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in wild_text()) {
            for clean in [sanitize(&text), output(&text), Cow::Owned(exact(&text))] {
                for cluster in clean.graphemes(true).filter(|cluster| *cluster != "\n") {
                    prop_assert!(!cluster.contains(char::is_control), "{:?}", cluster);
                    prop_assert!(!cluster.chars().any(is_invisible), "{:?}", cluster);
                    prop_assert!(width::of_cluster(cluster) > 0, "{:?}", cluster);
                }
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing(text in wild_text()) {
            let once = sanitize(&text).into_owned();
            prop_assert_eq!(sanitize(&once), once.as_str());
        }

        #[test]
        fn lines_are_cleaned_each_for_itself(first in wild_text(), second in wild_text()) {
            let whole = format!("{first}\n{second}");
            let parts = format!("{}{}", sanitize(&format!("{first}\n")), sanitize(&second));
            prop_assert_eq!(sanitize(&whole), parts);
        }
    }

    #[test]
    fn plain_letters_take_columns_whatever_stands_beside_them() {
        for letter in ('\0'..=char::MAX).filter(|letter| is_plain(*letter) && *letter != '\n') {
            let text = format!("a{letter}{letter}b");
            let columns: Vec<usize> = text.graphemes(true).map(width::of_cluster).collect();
            assert!(matches!(columns[..], [1, 1 | 2, 1 | 2, 1]), "{letter:?} {columns:?}");
        }
    }
}
