//! What reaches the terminal: standard output with or without colours, and text made harmless.
//!
//! Invariant: text that an agent wrote passes [`clean`], [`exact`] or a [`Cleaner`] before it is written for people.
//! JSON needs none of it, since JSON escapes control characters itself.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;

use crate::exit::Stop;

/// How a word looks on a terminal that can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Heavier.
    Bold,
    /// Fainter.
    Dim,
    /// For failures and removed lines.
    Red,
    /// For success and added lines.
    Green,
    /// For what needs a person.
    Yellow,
    /// For what a person wrote.
    Cyan,
}

/// Whether and how to colour; honours `NO_COLOR` and what is not a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint {
    coloured: bool,
}

impl Paint {
    /// As standard output allows.
    pub fn for_stdout() -> Self {
        Self { coloured: anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never }
    }

    /// No colours.
    pub fn plain() -> Self {
        Self { coloured: false }
    }

    /// The text in a style. Expects text that is clean.
    pub fn paint<'a>(self, style: Style, text: &'a str) -> Cow<'a, str> {
        if !self.coloured || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match style {
            Style::Bold => 1,
            Style::Dim => 2,
            Style::Red => 31,
            Style::Green => 32,
            Style::Yellow => 33,
            Style::Cyan => 36,
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }
}

/// Standard output, buffered; nothing is lost because every command ends through [`Output::flush`].
pub struct Output {
    stream: BufWriter<Box<dyn Write>>,
    /// The colours.
    pub paint: Paint,
}

impl Output {
    /// Standard output for people.
    pub fn human() -> Self {
        Self::to(Box::new(io::stdout()), Paint::for_stdout())
    }

    /// Standard output for programs.
    pub fn json() -> Self {
        Self::to(Box::new(io::stdout()), Paint::plain())
    }

    /// Any other writer.
    pub fn to(writer: Box<dyn Write>, paint: Paint) -> Self {
        Self { stream: BufWriter::new(writer), paint }
    }

    /// Writes text that is clean.
    pub fn write(&mut self, text: &str) -> Result<(), Stop> {
        Ok(self.stream.write_all(text.as_bytes())?)
    }

    /// Writes text that is clean, and ends the line.
    pub fn line(&mut self, text: &str) -> Result<(), Stop> {
        self.write(text)?;
        self.write("\n")
    }

    /// Writes one JSON value on a line of its own.
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<(), Stop> {
        serde_json::to_writer(&mut self.stream, value)?;
        self.write("\n")
    }

    /// Hands everything to the reader.
    pub fn flush(&mut self) -> Result<(), Stop> {
        Ok(self.stream.flush()?)
    }
}

/// Prints one JSON value and is done.
pub fn print_json(value: &impl Serialize) -> Result<(), Stop> {
    let mut output = Output::json();
    output.json_line(value)?;
    output.flush()
}

/// Prints one clean line and is done.
pub fn print_line(text: &str) -> Result<(), Stop> {
    let mut output = Output::human();
    output.line(text)?;
    output.flush()
}

/// Says something on standard error. What cannot be said there can be said nowhere, so failing is ignored.
pub fn note(text: &str) {
    drop(writeln!(io::stderr(), "consort: {}", exact(text)));
}

/// How wide standard output is; none if it is no terminal.
pub fn width() -> Option<usize> {
    let stdout = io::stdout();
    stdout.is_terminal().then(|| columns(&stdout)).flatten()
}

/// The columns of a terminal.
pub fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(terminal).ok().map(|size| size.ws_col.into()).filter(|columns| *columns > 0)
}

/// Makes a stream of text harmless, piece by piece: colour and cursor sequences go, other control characters become
/// visible. A sequence may be cut anywhere between two pieces.
#[derive(Default)]
pub struct Cleaner {
    state: Escape,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// After `ESC [`, with how many characters it has.
    Sequence(u8),
    /// After a carriage return, which vanishes before a line feed.
    Return,
}

/// Longest `ESC [` sequence that is taken for one.
const MAX_SEQUENCE: u8 = 32;

impl Cleaner {
    /// Adds the clean form of `text` to `clean`.
    pub fn push(&mut self, text: &str, clean: &mut String) {
        for letter in text.chars() {
            match std::mem::take(&mut self.state) {
                Escape::Begun if letter == '[' => {
                    self.state = Escape::Sequence(0);
                    continue;
                }
                Escape::Begun => clean.push_str("^["),
                Escape::Sequence(length) if ('\x20'..='\x3f').contains(&letter) && length < MAX_SEQUENCE => {
                    self.state = Escape::Sequence(length + 1);
                    continue;
                }
                Escape::Sequence(_) if ('\x40'..='\x7e').contains(&letter) => continue,
                Escape::Return if letter != '\n' => clean.push_str("^M"),
                Escape::Sequence(_) | Escape::Return | Escape::None => {}
            }
            match letter {
                '\x1b' => self.state = Escape::Begun,
                '\r' => self.state = Escape::Return,
                _ => push_visible(letter, clean),
            }
        }
    }
}

/// The clean form of a whole text.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    Cleaner::default().push(text, &mut clean);
    clean
}

/// The text with every control character visible and nothing left out: for what a person decides about.
pub fn exact(text: &str) -> String {
    let mut exact = String::with_capacity(text.len());
    for letter in text.chars() {
        push_visible(letter, &mut exact);
    }
    exact
}

/// The clean text on one line.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn push_visible(letter: char, clean: &mut String) {
    match letter {
        '\n' | '\t' => clean.push(letter),
        '\0'..='\x1f' => {
            clean.push('^');
            clean.push(char::from(letter as u8 + 0x40));
        }
        '\x7f' => clean.push_str("^?"),
        // C1 controls, and the marks that change the direction of what follows: both can make a text look like another.
        '\u{80}'..='\u{9f}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{2028}'
        | '\u{2029}' => clean.extend(letter.escape_unicode()),
        _ => clean.push(letter),
    }
}

/// How many columns a text takes, roughly.
pub fn text_width(text: &str) -> usize {
    text.chars().map(letter_width).sum()
}

fn letter_width(letter: char) -> usize {
    match letter as u32 {
        0x300..=0x36f | 0x200b..=0x200d | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfeff => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// The text cut to so many columns, with `…` where something is missing.
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text_width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut taken = 0;
    for letter in text.chars() {
        taken += letter_width(letter);
        if taken + 1 > columns {
            break;
        }
        kept.push(letter);
    }
    if columns > 0 {
        kept.push('…');
    }
    Cow::Owned(kept)
}

/// The text followed by spaces up to so many columns.
pub fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text_width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// How long ago something was, in two or three letters.
pub fn age(milliseconds: i64) -> String {
    let seconds = (milliseconds / 1000).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// Milliseconds since the Unix epoch.
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The end of an id: the part that differs most between ids made at the same time.
pub fn short(id: impl std::fmt::Display) -> String {
    let id = id.to_string();
    id.get(id.len().saturating_sub(8)..).unwrap_or(&id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_a_terminal_raw() {
        let every: String = (0..0x100).filter_map(char::from_u32).collect();
        for text in [clean(&every), exact(&every)] {
            assert!(
                !text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t'),
                "{text:?}"
            );
        }
        assert_eq!(clean("a\x1b[31mred\x1b[0m b\x07\x08"), "ared b^G^H");
        assert_eq!(clean("title \x1b]0;evil\x07 end"), "title ^[]0;evil^G end");
        assert_eq!(clean("a\r\nb\rc"), "a\nb^Mc");
        assert_eq!(clean("tab\tline\n"), "tab\tline\n");
    }

    #[test]
    fn what_a_person_decides_about_hides_nothing() {
        assert_eq!(exact("rm \x1b[8m-rf /\x1b[0m"), "rm ^[[8m-rf /^[[0m");
        assert_eq!(exact("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn a_sequence_cut_between_two_pieces_is_removed_all_the_same() {
        let whole = "x\x1b[1;31my\x1b[0mz\r\n";
        for at in 0..=whole.len() {
            let (first, second) = whole.split_at(at);
            let mut cleaner = Cleaner::default();
            let mut text = String::new();
            cleaner.push(first, &mut text);
            cleaner.push(second, &mut text);
            assert_eq!(text, "xyz\n", "cut at {at}");
        }
    }

    #[test]
    fn an_endless_sequence_does_not_swallow_the_text() {
        let text = format!("\x1b[{}visible", "1".repeat(100));
        assert!(clean(&text).ends_with("visible"));
    }

    #[test]
    fn wide_and_combining_characters_count_by_their_columns() {
        assert_eq!(text_width("日本"), 4);
        assert_eq!(text_width("e\u{301}"), 1);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 0), "");
        assert_eq!(pad("日", 4), "日  ");
    }

    #[test]
    fn ages_are_short() {
        let ages = [0, 59_000, 60_000, 3_600_000, 86_400_000, -5].map(age);
        assert_eq!(ages, ["0s", "59s", "1m", "1h", "1d", "0s"]);
    }
}
