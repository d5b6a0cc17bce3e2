//! What all drivers share about lines of JSON: reading parts of one without building its tree, writing one, and showing
//! what an agent sent without trusting it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// How much of a bad frame is shown in a notice.
const EXCERPT_CHARS: usize = 200;

/// How long a sentence from the agent may get within one of ours.
const SENTENCE_CHARS: usize = 600;

/// A string that is borrowed unless it holds escapes.
#[derive(Deserialize, Debug)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Tells a field that is null from one that is absent: a null result is an answer.
pub fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// An id as it stood in the JSON.
pub fn raw_id(id: &str) -> Box<RawValue> {
    RawValue::from_string(id.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// One line with its end. `serde_json` escapes line ends in strings, so there is no other one within. Writing plain
/// data cannot fail; were it to, an empty line is what every peer passes over, while a broken one might end it.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The first value of a text that may be cut off, and what follows it.
pub fn take_value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    // A number at the very end may be the first half of one.
    (end < text.len()).then(|| (value.get(), &text[end..]))
}

/// The beginning of a bad frame, fit to be shown: short, valid, without control characters.
pub fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(EXCERPT_CHARS * 4)];
    let text = clean(&String::from_utf8_lossy(head));
    cut(&text, EXCERPT_CHARS, head.len() < bytes.len())
}

/// What an agent says as part of one of our sentences: one line of bounded length.
pub fn one_line(text: &str) -> String {
    let head: String = text.chars().take(SENTENCE_CHARS * 2).collect();
    let words: Vec<&str> = head.split_whitespace().collect();
    cut(&clean(&words.join(" ")), SENTENCE_CHARS, head.len() < text.len())
}

/// The first line of a text, as a title.
pub fn title_of(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    cut(&clean(first), EXCERPT_CHARS, false)
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn cut(text: &str, chars: usize, more: bool) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if more => format!("{text}…"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_printable() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let text = excerpt(&bytes);
        assert!(text.chars().count() <= EXCERPT_CHARS + 1);
        assert!(!text.chars().any(char::is_control));
        assert_eq!(excerpt(b"a\nb"), "a b");
    }
}
