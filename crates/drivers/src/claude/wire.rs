//! Lines of JSON: reading what a line is about without building its tree, and writing frames.
//!
//! Owns the shape of a line; what its parts mean is decided elsewhere. Lines are borrowed from, because most of them
//! are pieces of text that are looked at once.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How much of a bad frame is shown in a notice.
const EXCERPT_CHARS: usize = 200;

/// How long a sentence from the agent may get within one of ours.
const SENTENCE_CHARS: usize = 600;

/// One line from the agent: the fields that tell where it belongs.
#[derive(Deserialize)]
pub struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub subtype: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub request_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isReplay")]
    pub replay: Option<&'a RawValue>,
}

/// A string that is borrowed unless it holds escapes.
#[derive(Deserialize, Debug)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A control request of ours.
pub fn request(id: &str, request: &Value) -> Vec<u8> {
    line(&json!({"type": "control_request", "request_id": id, "request": request}))
}

/// The answer to a control request of the agent.
pub fn reply(id: &str, response: &Value) -> Vec<u8> {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    line(&json!({"type": "control_response", "response": response}))
}

/// The refusal of a control request of the agent.
pub fn refuse(id: &str, error: &str) -> Vec<u8> {
    let response = json!({"subtype": "error", "request_id": id, "error": error});
    line(&json!({"type": "control_response", "response": response}))
}

/// One line with its end. `serde_json` escapes line ends in strings, so there is no other one within. Writing plain
/// data cannot fail; were it to, an empty line is what the agent passes over, while a broken one would end it.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
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

/// What can be seen of a line of which only the beginning is there: a request that is too long must still be answered,
/// and a turn must still end. Looks at whole top-level fields only.
#[derive(Debug, PartialEq, Default)]
pub struct Peek<'a> {
    pub kind: Option<&'a str>,
    pub subtype: Option<&'a str>,
    pub request_id: Option<&'a str>,
    pub is_error: bool,
}

/// Looks at the beginning of a line.
pub fn peek(head: &[u8]) -> Peek<'_> {
    let mut found = Peek::default();
    // A cut may fall within a character; what stands before it is enough.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let Some(mut rest) = text.trim_start().strip_prefix('{') else { return found };
    while let Some((key, after)) = take_value(rest.trim_start_matches([',', ' ', '\t'])) {
        let Some(after) = after.trim_start().strip_prefix(':') else { break };
        let Some((value, after)) = take_value(after.trim_start()) else { break };
        let plain = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        match key {
            "\"type\"" => found.kind = plain,
            "\"subtype\"" => found.subtype = plain,
            "\"request_id\"" => found.request_id = plain,
            "\"is_error\"" => found.is_error = value == "true",
            _ => {}
        }
        rest = after.trim_start();
    }
    found
}

/// One whole value at the beginning of `text`, and what follows it.
fn take_value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    // A number at the very end may be the first half of one.
    (end < text.len()).then(|| (value.get(), &text[end..]))
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
    }

    #[test]
    fn the_beginning_of_a_cut_line_tells_what_it_was() {
        let head = br#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","input":"aaaa"#;
        let expected = Peek { kind: Some("control_request"), request_id: Some("r1"), ..Peek::default() };
        assert_eq!(peek(head), expected);
        let head = br#"{"type":"result","subtype":"success","is_error":true,"result":"aaa"#;
        let expected =
            Peek { kind: Some("result"), subtype: Some("success"), is_error: true, ..Peek::default() };
        assert_eq!(peek(head), expected);
        assert_eq!(peek(b"log line"), Peek::default());
    }
}
