//! A block of code between fences, line by line.
//!
//! The parser would read all of it again for each piece that comes; but nothing within a fence has a meaning until the
//! line that closes it, so its lines can be drawn as they come.

use ratatui::text::{Line, Span};

use crate::text::clean;
use crate::text::highlight::Highlighter;
use crate::text::theme::Theme;
use crate::text::wrap::{self, Prefix};

/// How far code is indented.
const INDENT: &str = "  ";

/// What stands before the second and further lines of a long line.
const GOES_ON: &str = "↪ ";

/// An open fence at the top level of a text.
#[derive(Clone, Debug)]
pub struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    highlighter: Highlighter,
    has_lines: bool,
}

impl Fence {
    /// The fence with which the text begins, if its line is complete, and the length of that line.
    pub fn open(text: &str) -> Option<(Self, usize)> {
        let end = text.find('\n')?;
        let (indent, rest) = unindent(&text[..end]);
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = rest.trim_start_matches(mark);
        let length = rest.len() - info.len();
        // Backticks later in the line make it a piece of code within text.
        if indent > 3 || length < 3 || mark == '`' && info.contains('`') {
            return None;
        }
        Some((
            Self { mark, length, indent, highlighter: Highlighter::named(language(info)), has_lines: false },
            end + 1,
        ))
    }

    /// Whether a line closes it.
    pub fn closes(&self, line: &str) -> bool {
        let (indent, rest) = unindent(line);
        let after = rest.trim_start_matches(self.mark);
        indent <= 3 && rest.len() - after.len() >= self.length && after.trim_matches(' ').is_empty()
    }

    /// Whether any line of code came yet.
    pub fn has_lines(&self) -> bool {
        self.has_lines
    }

    /// Adds the lines of the next line of code.
    pub fn line(&mut self, line: &str, columns: usize, theme: &Theme, lines: &mut Vec<Line<'static>>) {
        self.has_lines = true;
        let (indent, _) = unindent(line);
        // A mark that stood on one of the spaces needs something else to stand on.
        let line = clean::sanitize(&line[indent.min(self.indent)..]);
        code_line(&mut self.highlighter, &line, columns, theme, Prefix::none(), lines);
    }
}

fn unindent(line: &str) -> (usize, &str) {
    let rest = line.trim_start_matches(' ');
    (line.len() - rest.len(), rest)
}

/// The language in what is written behind a fence.
pub fn language(info: &str) -> &str {
    info.trim().split([' ', ',', '{', ':']).next().unwrap_or_default()
}

/// Adds the lines of one line of code to what stands before it.
pub fn code_line(
    highlighter: &mut Highlighter,
    line: &str,
    columns: usize,
    theme: &Theme,
    mut prefix: Prefix,
    lines: &mut Vec<Line<'static>>,
) {
    prefix.first.push(Span::raw(INDENT));
    prefix.rest.push(Span::styled(GOES_ON, theme.marker));
    lines.extend(wrap::hard(&highlighter.line(line, theme), columns, &prefix));
}
