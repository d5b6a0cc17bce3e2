//! HTML, XML and their like: tags, attributes, entities and comments.

use super::Token;
use super::lexer::State;

/// Takes a line apart, as [`super::lexer::line`] does.
pub fn line(state: &mut State, text: &str, each: &mut dyn FnMut(usize, Token)) {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (length, token, next) = match *state {
            State::Comment(_) => match rest.find("-->") {
                Some(end) => (end + 3, Token::Comment, State::Code),
                None => (rest.len(), Token::Comment, *state),
            },
            State::Quoted(quote) => match rest.find(quote_mark(quote)) {
                Some(end) => (end + 1, Token::String, State::Tag),
                None => (rest.len(), Token::String, *state),
            },
            State::Tag => in_tag(rest),
            State::Code | State::Raw(_) => in_text(rest),
        };
        *state = next;
        at += length;
        each(at, token);
    }
}

fn quote_mark(quote: usize) -> char {
    if quote == 0 { '"' } else { '\'' }
}

fn in_text(rest: &str) -> (usize, Token, State) {
    if rest.starts_with("<!--") {
        return (4, Token::Comment, State::Comment(1));
    }
    if let Some(tag) = rest.strip_prefix('<')
        && tag.starts_with(|letter: char| letter.is_alphabetic() || matches!(letter, '/' | '!' | '?'))
    {
        let marks = tag.len() - tag.trim_start_matches(['/', '!', '?']).len();
        let name = tag[marks..].find(|letter: char| !is_name(letter)).unwrap_or(tag.len() - marks);
        return (1 + marks + name, Token::Keyword, State::Tag);
    }
    if rest.starts_with('&')
        && let Some(end) = rest.find(';')
        && rest[1..end].chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '#')
    {
        return (end + 1, Token::Constant, State::Code);
    }
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let length = rest[first..].find(['<', '&']).map_or(rest.len(), |end| end + first);
    (length, Token::Plain, State::Code)
}

fn in_tag(rest: &str) -> (usize, Token, State) {
    let Some(letter) = rest.chars().next() else { return (0, Token::Plain, State::Tag) };
    match letter {
        '>' => (1, Token::Keyword, State::Code),
        '/' | '?' if rest[1..].starts_with('>') => (2, Token::Keyword, State::Code),
        '"' => (1, Token::String, State::Quoted(0)),
        '\'' => (1, Token::String, State::Quoted(1)),
        _ if is_name(letter) => {
            let length = rest.find(|letter: char| !is_name(letter)).unwrap_or(rest.len());
            (length, Token::Attribute, State::Tag)
        }
        ' ' => (1, Token::Plain, State::Tag),
        _ => (letter.len_utf8(), Token::Punctuation, State::Tag),
    }
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_' | ':' | '.')
}
