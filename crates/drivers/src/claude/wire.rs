//! Lines of JSON: reading what a line is about without building its tree, and writing frames.
//!
//! Owns the shape of a line; what its parts mean is decided elsewhere. Lines are borrowed from, because most of them
//! are pieces of text that are looked at once.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use crate::lines::{Text, excerpt, line, one_line, take_value, title_of};

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
    #[serde(borrow, default)]
    pub uuid: Option<Text<'a>>,
    #[serde(borrow, default, rename = "isReplay")]
    pub replay: Option<&'a RawValue>,
}

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

#[cfg(test)]
mod tests {
    use super::*;

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
