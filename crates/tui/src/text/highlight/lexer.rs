//! The lexer that all languages share; what differs between them is in their [`Language`].
//!
//! Invariant: the pieces of a line are the line, in order, and cut between letters; whatever the code.

use super::Token;
use super::languages::{Family, Language, Quote};
use super::markup;

/// What is open at the end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum State {
    /// Nothing.
    #[default]
    Code,
    /// A comment, this many deep.
    Comment(u32),
    /// A string, by its place among the language's quotes.
    Quoted(usize),
    /// A raw string of Rust that ends with this many `#`.
    Raw(usize),
    /// A tag of a markup language.
    Tag,
}

/// Takes a line apart: `each` is called with the end of each piece and what it is.
pub fn line(language: &'static Language, state: &mut State, text: &str, each: &mut dyn FnMut(usize, Token)) {
    match language.family {
        Family::Code => Lexer { language, text, at: 0, each }.run(state),
        Family::Markup => markup::line(state, text, each),
        Family::Diff => each(text.len(), diff_line(text)),
    }
}

fn diff_line(text: &str) -> Token {
    match text.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'@', b'@', ..] => Token::Place,
        [b'+', ..] => Token::Added,
        [b'-', ..] => Token::Removed,
        [b' ', ..] | [] => Token::Plain,
        _ => Token::Comment,
    }
}

struct Lexer<'a> {
    language: &'static Language,
    text: &'a str,
    at: usize,
    each: &'a mut dyn FnMut(usize, Token),
}

impl<'a> Lexer<'a> {
    fn run(mut self, state: &mut State) {
        let mut first = true;
        while self.at < self.text.len() {
            *state = match *state {
                State::Comment(depth) => self.comment(depth),
                State::Quoted(quote) => self.quoted(quote),
                State::Raw(hashes) => self.raw(hashes),
                State::Code | State::Tag => self.code(first),
            };
            first = false;
        }
        // A string that may not go on over lines ends with its line.
        if let State::Quoted(quote) = *state
            && self.language.quotes.get(quote).is_none_or(|quote| !quote.multiline)
        {
            *state = State::Code;
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn emit(&mut self, length: usize, token: Token) {
        self.at += length;
        (self.each)(self.at, token);
    }

    fn comment(&mut self, depth: u32) -> State {
        let Some((open, close)) = self.language.block_comment else { return State::Code };
        let rest = self.rest();
        let mut depth = depth;
        let mut at = 0;
        while depth > 0 {
            let close_at = rest[at..].find(close);
            let open_at = if self.language.nested { rest[at..].find(open) } else { None };
            match (open_at, close_at) {
                (Some(open_at), close_at) if close_at.is_none_or(|close_at| open_at < close_at) => {
                    depth += 1;
                    at += open_at + open.len();
                }
                (_, Some(close_at)) => {
                    depth -= 1;
                    at += close_at + close.len();
                }
                (_, None) => {
                    at = rest.len();
                    break;
                }
            }
        }
        self.emit(at, Token::Comment);
        if depth > 0 { State::Comment(depth) } else { State::Code }
    }

    fn quoted(&mut self, index: usize) -> State {
        let Some(quote) = self.language.quotes.get(index) else { return State::Code };
        let (length, closed) = quote_end(self.rest(), quote);
        self.emit(length, Token::String);
        if closed { State::Code } else { State::Quoted(index) }
    }

    fn raw(&mut self, hashes: usize) -> State {
        let rest = self.rest();
        let close = format!("\"{}", "#".repeat(hashes));
        match rest.find(&close) {
            Some(end) => {
                self.emit(end + close.len(), Token::String);
                State::Code
            }
            None => {
                self.emit(rest.len(), Token::String);
                State::Raw(hashes)
            }
        }
    }

    /// One piece of code; `first` if it begins the line.
    fn code(&mut self, first: bool) -> State {
        let rest = self.rest();
        let Some(letter) = rest.chars().next() else { return State::Code };
        let language = self.language;

        if letter == ' ' {
            let spaces = rest.find(|letter| letter != ' ').unwrap_or(rest.len());
            self.emit(spaces, Token::Plain);
            return State::Code;
        }
        if self.starts_comment(rest) {
            self.emit(rest.len(), Token::Comment);
            return State::Code;
        }
        if let Some((open, _)) = language.block_comment
            && rest.starts_with(open)
        {
            self.emit(open.len(), Token::Comment);
            return State::Comment(1);
        }
        if first && let Some(length) = self.line_start(rest) {
            self.emit(length, Token::Attribute);
            return State::Code;
        }
        if language.rust
            && let Some(state) = self.rust(rest)
        {
            return state;
        }
        if let Some(index) = language.quotes.iter().position(|quote| rest.starts_with(quote.open)) {
            return self.open_quote(index);
        }
        if letter.is_ascii_digit() {
            let length = number(rest);
            self.emit(length, Token::Constant);
            return State::Code;
        }
        if letter == '$' && language.variables {
            self.emit(variable(rest), Token::Attribute);
            return State::Code;
        }
        if letter == '@' && language.decorators {
            let length = 1 + word(&rest[1..], language);
            self.emit(length, if length > 1 { Token::Attribute } else { Token::Punctuation });
            return State::Code;
        }
        match word(rest, language) {
            0 => self.emit(
                letter.len_utf8(),
                if letter.is_alphanumeric() { Token::Plain } else { Token::Punctuation },
            ),
            length => {
                let token = self.name(&rest[..length], &rest[length..]);
                self.emit(length, token);
            }
        }
        State::Code
    }

    fn starts_comment(&self, rest: &str) -> bool {
        self.language.line_comments.iter().any(|mark| {
            rest.starts_with(mark)
                // In a shell and in YAML `a#b` is a word.
                && (*mark != "#" || self.at == 0 || self.text.as_bytes().get(self.at - 1).is_some_and(|byte| {
                    !byte.is_ascii_alphanumeric() && !matches!(byte, b'$' | b'{' | b'\\')
                }))
        })
    }

    /// What has a meaning at the beginning of a line only: preprocessor lines, sections.
    fn line_start(&self, rest: &str) -> Option<usize> {
        if self.language.preprocessor && rest.starts_with('#') {
            let name = rest[1..].trim_start_matches(' ');
            return Some(rest.len() - name.len() + word(name, self.language));
        }
        (self.language.sections && rest.starts_with('['))
            .then(|| rest.rfind(']').map_or(rest.len(), |end| end + 1))
    }

    /// Rust's raw strings, lifetimes and attributes.
    fn rust(&mut self, rest: &str) -> Option<State> {
        if let Some(raw) = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r')) {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            if raw[hashes..].starts_with('"') {
                self.emit(rest.len() - raw.len() + hashes + 1, Token::String);
                return Some(State::Raw(hashes));
            }
        }
        if let Some(inner) = rest.strip_prefix('\'') {
            let mut letters = inner.char_indices();
            let first = letters.next().map(|(_, letter)| letter);
            let closed = letters.next().is_some_and(|(_, letter)| letter == '\'');
            if first.is_some_and(|letter| letter.is_alphabetic() || letter == '_') && !closed {
                let length = 1 + word(inner, self.language);
                self.emit(length, Token::Attribute);
                return Some(State::Code);
            }
        }
        if rest.starts_with("#[") || rest.starts_with("#![") {
            let length = rest.find(']').map_or(rest.len(), |end| end + 1);
            self.emit(length, Token::Attribute);
            return Some(State::Code);
        }
        None
    }

    fn open_quote(&mut self, index: usize) -> State {
        let quote = &self.language.quotes[index];
        let rest = self.rest();
        let (length, closed) = quote_end(&rest[quote.open.len()..], quote);
        let length = quote.open.len() + length;
        let is_key = self.language.keys.is_some_and(|mark| rest[length..].trim_start().starts_with(mark));
        self.emit(length, if is_key { Token::Attribute } else { Token::String });
        if closed { State::Code } else { State::Quoted(index) }
    }

    fn name(&self, name: &str, after: &str) -> Token {
        let language = self.language;
        let has = |words: &[&str]| {
            if language.any_case {
                words.iter().any(|word| word.eq_ignore_ascii_case(name))
            } else {
                words.contains(&name)
            }
        };
        if language
            .keys
            .is_some_and(|mark| after.trim_start_matches(' ').starts_with(mark) && !after.starts_with("::"))
        {
            return Token::Attribute;
        }
        if has(language.keywords) {
            Token::Keyword
        } else if has(language.constants) {
            Token::Constant
        } else if has(language.types) {
            Token::Type
        } else if after.starts_with('(')
            || language.rust && after.starts_with("!") && !after.starts_with("!=")
        {
            Token::Function
        } else if language.capital_types && name.starts_with(char::is_uppercase) {
            let shouts = name.len() > 1 && !name.contains(char::is_lowercase);
            if shouts { Token::Constant } else { Token::Type }
        } else {
            Token::Plain
        }
    }
}

/// How far a string goes after its opening, and whether it is closed there.
fn quote_end(text: &str, quote: &Quote) -> (usize, bool) {
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        if text[at..].starts_with(quote.close) {
            return (at + quote.close.len(), true);
        }
        at += letter.len_utf8();
        if letter == '\\' && quote.escapes {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    (at, false)
}

fn word(text: &str, language: &Language) -> usize {
    let belongs =
        |letter: char| letter.is_alphanumeric() || letter == '_' || language.dashes && letter == '-';
    if text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-') {
        return 0;
    }
    text.find(|letter| !belongs(letter)).unwrap_or(text.len())
}

fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let goes_on = byte.is_ascii_alphanumeric()
            || *byte == b'_'
            || *byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
            || matches!(byte, b'+' | b'-')
                && matches!(bytes[at - 1], b'e' | b'E')
                && !text.starts_with("0x")
                && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !goes_on {
            break;
        }
        at += 1;
    }
    at
}

fn variable(text: &str) -> usize {
    let after = &text[1..];
    match after.chars().next() {
        Some('{') => after.find('}').map_or(text.len(), |end| end + 2),
        Some(letter) if letter.is_alphanumeric() || letter == '_' => {
            1 + after.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(after.len())
        }
        Some(letter) if "?@#*!-$".contains(letter) => 2,
        _ => 1,
    }
}
