//! JSON-RPC on lines: reading an envelope without building its tree, and writing frames.
//!
//! Owns the shape of a message; what its parts mean is decided elsewhere. Envelopes borrow from the line, because most
//! lines are pieces of text that are looked at once.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::lines::{Text, excerpt, line, one_line, present, raw_id, take_value, title_of};

/// JSON-RPC and ACP error codes that Consort sends or looks for.
pub mod code {
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    pub const AUTH_REQUIRED: i64 = -32000;
    pub const NOT_FOUND: i64 = -32002;
    pub const CANCELLED: i64 = -32800;
}

/// One JSON-RPC message.
#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

/// The parameters of `session/update`, as far as pieces of text need them.
#[derive(Deserialize)]
pub struct UpdateParams<'a> {
    #[serde(borrow, rename = "sessionId")]
    pub session: Text<'a>,
    #[serde(borrow)]
    pub update: UpdateHead<'a>,
}

/// The fields of an update that pieces of text have; all others are passed over.
#[derive(Deserialize)]
pub struct UpdateHead<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "messageId")]
    pub message: Option<Text<'a>>,
}

/// A content block that is text.
#[derive(Deserialize)]
pub struct TextBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub text: Option<Text<'a>>,
}

/// Only the session that a message is about.
#[derive(Deserialize)]
pub struct SessionParams<'a> {
    #[serde(borrow, rename = "sessionId", default)]
    pub session: Option<Text<'a>>,
}

/// The error of a response, tolerant of what is missing.
#[derive(Deserialize, Default, Debug)]
pub struct RpcError {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Value,
}

impl RpcError {
    /// Reads an error; one that cannot be read is shown as it came.
    pub fn read(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Self {
            code: code::INTERNAL,
            message: excerpt(raw.get().as_bytes()),
            data: Value::Null,
        })
    }

    /// What the agent says is wrong, in one line.
    pub fn sentence(&self) -> String {
        let details = match &self.data {
            Value::String(text) => Some(text.as_str()),
            Value::Object(fields) => {
                ["details", "message", "reason"].iter().find_map(|key| fields.get(*key)?.as_str())
            }
            _ => None,
        };
        let mut text =
            if self.message.trim().is_empty() { "no message" } else { self.message.trim() }.to_owned();
        if let Some(details) = details.map(str::trim)
            && !details.is_empty()
            && !text.contains(details)
        {
            text.push_str(": ");
            text.push_str(details);
        }
        format!("{} (code {})", one_line(&text).trim_end_matches('.'), self.code)
    }
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Reply<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReplyError<'a>>,
}

#[derive(Serialize)]
struct ReplyError<'a> {
    code: i64,
    message: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    data: Value,
}

/// A request from Consort.
pub fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Request { jsonrpc: "2.0", id: Some(id), method, params })
}

/// A notification from Consort.
pub fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Request { jsonrpc: "2.0", id: None, method, params })
}

/// The answer to a request of the agent. `id` is the request's id as it stood in the JSON.
pub fn reply(id: &str, result: impl Serialize) -> Vec<u8> {
    let id = raw_id(id);
    line(&Reply { jsonrpc: "2.0", id: &id, result: Some(result), error: None })
}

/// The refusal of a request of the agent.
pub fn refuse(id: &str, code: i64, message: &str, data: Value) -> Vec<u8> {
    let id = raw_id(id);
    line(&Reply::<()> {
        jsonrpc: "2.0",
        id: &id,
        result: None,
        error: Some(ReplyError { code, message, data }),
    })
}

/// The id and kind of a message of which only the beginning is there: a request that is too long must still be
/// answered, or the agent waits for ever. Looks at top-level fields only.
pub fn peek(head: &[u8]) -> Option<Peek<'_>> {
    // A cut may fall within a character; what stands before it is enough.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
    };
    let mut rest = text.trim_start().strip_prefix('{')?;
    let mut found = Peek { id: None, method: None };
    while let Some((key, after)) = take_value(rest.trim_start_matches([',', ' ', '\t'])) {
        let Some(after) = after.trim_start().strip_prefix(':') else { break };
        let Some((value, after)) = take_value(after.trim_start()) else { break };
        match key {
            "\"id\"" => found.id = Some(value),
            "\"method\"" => found.method = Some(value.trim_matches('"')),
            _ => {}
        }
        rest = after.trim_start();
    }
    Some(found)
}

/// What [`peek`] saw.
#[derive(Debug, PartialEq)]
pub struct Peek<'a> {
    pub id: Option<&'a str>,
    pub method: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_tells_null_from_absent() {
        let envelope: Envelope<'_> = serde_json::from_str(r#"{"id":1,"result":null}"#).unwrap();
        assert_eq!(envelope.result.unwrap().get(), "null");
        assert!(envelope.error.is_none());
    }

    #[test]
    fn a_reply_keeps_the_id_as_it_was() {
        assert_eq!(reply("\"a\"", 1), b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":1}\n");
        assert_eq!(reply("7", 1), b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}\n");
    }

    #[test]
    fn the_id_of_a_cut_message_is_found() {
        let head = br#"{"jsonrpc":"2.0","id":12,"method":"fs/write_text_file","params":{"content":"aaaaaa"#;
        assert_eq!(peek(head), Some(Peek { id: Some("12"), method: Some("fs/write_text_file") }));
        assert_eq!(peek(br#"{"id":1"#), Some(Peek { id: None, method: None }));
        assert_eq!(peek(b"log line"), None);
    }
}
