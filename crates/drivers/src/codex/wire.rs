//! The app server's messages on lines: JSON-RPC without the `jsonrpc` member, both ways.
//!
//! Owns the shape of a message and how leniently it is read; what its parts mean is decided elsewhere. Envelopes and
//! deltas borrow from the line, because most lines are pieces of text that are looked at once.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::lines::{Text, excerpt, line, one_line, present, raw_id, take_value, title_of};

/// JSON-RPC error codes that Consort sends.
pub mod code {
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
}

/// One message.
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
    /// When a notification was sent, in milliseconds since 1970: the only clock there is.
    #[serde(default, rename = "emittedAtMs", deserialize_with = "lenient")]
    pub emitted_at: Option<u64>,
}

/// A piece of a text, a thought or an output.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub thread_id: Text<'a>,
    #[serde(borrow)]
    pub item_id: Text<'a>,
    #[serde(borrow)]
    pub delta: Text<'a>,
}

/// Reads a field that counts as not said where it has another form than the one that is known.
pub fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads parameters or a result of which no field is needed; what cannot be read counts as not said.
pub fn read<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

/// The error of a response, tolerant of what is missing.
#[derive(Deserialize, Default, Debug)]
pub struct RpcError {
    #[serde(default, deserialize_with = "lenient")]
    pub code: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub message: String,
}

impl RpcError {
    /// Reads an error; one that cannot be read is shown as it came.
    pub fn read(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get())
            .unwrap_or_else(|_| Self { code: code::INTERNAL, message: excerpt(raw.get().as_bytes()) })
    }

    /// What is wrong, in one line without its full stop.
    pub fn sentence(&self) -> String {
        match one_line(&self.message).trim_end_matches('.') {
            "" => format!("no message (code {})", self.code),
            message => message.to_owned(),
        }
    }
}

#[derive(Serialize)]
struct Request<'a, P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
struct Reply<'a, R> {
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
}

/// A request from Consort.
pub fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Request { id: Some(id), method, params: Some(params) })
}

/// A notification from Consort without parameters.
pub fn notification(method: &str) -> Vec<u8> {
    line(&Request::<()> { id: None, method, params: None })
}

/// The answer to a request of the agent. `id` is the request's id as it stood in the JSON.
pub fn reply(id: &str, result: impl Serialize) -> Vec<u8> {
    line(&Reply { id: &raw_id(id), result: Some(result), error: None })
}

/// The refusal of a request of the agent.
pub fn refuse(id: &str, code: i64, message: &str) -> Vec<u8> {
    line(&Reply::<()> { id: &raw_id(id), result: None, error: Some(ReplyError { code, message }) })
}

/// What the beginning of a message that is too long still tells: a request must be answered and a turn must end, or
/// someone waits for ever.
#[derive(Debug, PartialEq, Default)]
pub struct Peek<'a> {
    /// The message's id, as it stands in the JSON.
    pub id: Option<&'a str>,
    pub method: Option<&'a str>,
    /// The thread, turn and item that it is about.
    pub thread: Option<&'a str>,
    pub turn: Option<&'a str>,
    pub item: Option<&'a str>,
}

/// Reads the beginning of a message, as far as whole values are there.
pub fn peek(head: &[u8]) -> Peek<'_> {
    // A cut may fall within a character; what stands before it is enough.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut found = Peek::default();
    let Some(rest) = fields(text, |key, value| match key {
        "\"id\"" => found.id = Some(value),
        "\"method\"" => found.method = Some(value.trim_matches('"')),
        _ => {}
    }) else {
        return found;
    };
    let params = rest.strip_prefix("\"params\"").and_then(after_colon).unwrap_or_default();
    let nested = fields(params, |key, value| match key {
        "\"threadId\"" => found.thread = Some(value.trim_matches('"')),
        "\"turnId\"" => found.turn = Some(value.trim_matches('"')),
        _ => {}
    });
    let Some(nested) = nested else { return found };
    for (name, into) in [("\"item\"", &mut found.item), ("\"turn\"", &mut found.turn)] {
        let Some(object) = nested.strip_prefix(name).and_then(after_colon) else { continue };
        fields(object, |key, value| {
            if key == "\"id\"" {
                *into = Some(value.trim_matches('"'));
            }
        });
    }
    found
}

/// Tells the whole fields at the beginning of an object; what stands where the first cut one begins.
fn fields<'a>(object: &'a str, mut tell: impl FnMut(&'a str, &'a str)) -> Option<&'a str> {
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let Some((key, after)) = take_value(rest) else { return Some(rest) };
        let Some((value, after)) = after_colon(after).and_then(take_value) else { return Some(rest) };
        tell(key, value);
        rest = after;
    }
}

fn after_colon(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix(':').map(str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_no_version_and_one_line() {
        assert_eq!(
            request(1, "a/b", Value::String("x\ny".into())),
            b"{\"id\":1,\"method\":\"a/b\",\"params\":\"x\\ny\"}\n"
        );
        assert_eq!(notification("initialized"), b"{\"method\":\"initialized\"}\n");
        assert_eq!(reply("\"a\"", 1), b"{\"id\":\"a\",\"result\":1}\n");
        assert_eq!(refuse("7", -1, "no"), b"{\"id\":7,\"error\":{\"code\":-1,\"message\":\"no\"}}\n");
    }

    #[test]
    fn a_cut_message_still_tells_what_it_is_about() {
        let request = br#"{"method":"item/x","id":12,"params":{"threadId":"t","text":"aaaa"#;
        assert_eq!(
            peek(request),
            Peek { id: Some("12"), method: Some("item/x"), thread: Some("t"), ..Peek::default() }
        );
        let item = br#"{"method":"item/completed","params":{"item":{"type":"x","id":"call","output":"aaaa"#;
        assert_eq!(
            peek(item),
            Peek { method: Some("item/completed"), item: Some("call"), ..Peek::default() }
        );
        let turn = br#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","items":[{"#;
        let seen = peek(turn);
        assert_eq!((seen.thread, seen.turn), (Some("t"), Some("u")));
        for noise in [&b"log line"[..], b"", b"{", b"{\"id\":1", b"\xff\xfe"] {
            assert_eq!(peek(noise), Peek::default());
        }
    }
}
