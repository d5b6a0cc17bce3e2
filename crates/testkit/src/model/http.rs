//! HTTP/1.1 as far as a model server needs it, over any reader and writer.
//!
//! Owns the bounds: no request makes it keep more than [`MOST_HEAD`] and [`MOST_BODY`] bytes. What a request means is
//! left to the server. The invariant: a request comes out whole or as an error that names the status to answer with;
//! nothing a peer sends is trusted to be there, to be short, or to be text.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

/// Request line and headers together.
pub const MOST_HEAD: usize = 64 * 1024;
/// Prompts carry pictures.
pub const MOST_BODY: usize = 64 * 1024 * 1024;

/// One request, read to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    /// Names in lower case; of several with one name, the last.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// Whether the peer expects the connection to stay.
    pub keep_alive: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the connection failed while a request was read: {0}")]
    Io(#[from] io::Error),
    #[error("the connection ended in the middle of a request")]
    Cut,
    #[error("the request is not HTTP/1.1: {0}")]
    Malformed(&'static str),
    #[error("the request's {part} is larger than {most} bytes")]
    TooLarge { part: &'static str, most: usize },
    #[error("the body's encoding {0:?} is not supported; send it as it is")]
    Encoding(String),
}

impl HttpError {
    /// The status to answer with; none where nobody is left to read it.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Io(_) | Self::Cut => None,
            Self::Malformed(_) => Some(400),
            Self::TooLarge { part: "body", .. } => Some(413),
            Self::TooLarge { .. } => Some(431),
            Self::Encoding(_) => Some(415),
        }
    }
}

/// Reads the next request; none where the peer closed the connection between two. `interim` takes what has to be said
/// before the body comes.
pub fn read_request(
    reader: &mut impl BufRead,
    interim: &mut impl Write,
) -> Result<Option<Request>, HttpError> {
    let mut budget = MOST_HEAD;
    let mut line = String::new();
    // Empty lines between requests are to be passed over (RFC 9112, 2.2).
    while line.is_empty() {
        match read_line(reader, &mut budget)? {
            Some(next) => line = next,
            None => return Ok(None),
        }
    }
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HttpError::Malformed("the request line needs a method, a target and a version"));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(HttpError::Malformed("the version is neither 1.1 nor 1.0"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        keep_alive: version == "HTTP/1.1",
        ..Request::default()
    };
    loop {
        let line = read_line(reader, &mut budget)?.ok_or(HttpError::Cut)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or(HttpError::Malformed("a header line has no colon"))?;
        request.headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    let header = |name: &str| request.headers.get(name).map(|value| value.to_ascii_lowercase());
    match header("connection").as_deref() {
        Some("close") => request.keep_alive = false,
        Some("keep-alive") => request.keep_alive = true,
        _ => {}
    }
    if header("expect").as_deref() == Some("100-continue") {
        interim.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        interim.flush()?;
    }
    request.body = match header("transfer-encoding").as_deref() {
        None | Some("identity") => match header("content-length") {
            None => Vec::new(),
            Some(length) => read_counted(reader, &length)?,
        },
        Some("chunked") => read_chunks(reader)?,
        Some(other) => return Err(HttpError::Encoding(other.to_owned())),
    };
    match header("content-encoding").as_deref() {
        None | Some("identity") => Ok(Some(request)),
        Some(other) => Err(HttpError::Encoding(other.to_owned())),
    }
}

/// A line without its end; none at the end of the input.
fn read_line(reader: &mut impl BufRead, budget: &mut usize) -> Result<Option<String>, HttpError> {
    let mut line = Vec::new();
    let limit = u64::try_from(*budget).unwrap_or(u64::MAX);
    let read = reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
    *budget -= read;
    if line.last() != Some(&b'\n') {
        return match (*budget, read) {
            (0, _) => Err(HttpError::TooLarge { part: "head", most: MOST_HEAD }),
            (_, 0) => Ok(None),
            _ => Err(HttpError::Cut),
        };
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    String::from_utf8(line).map(Some).map_err(|_| HttpError::Malformed("the head is not text"))
}

fn read_counted(reader: &mut impl BufRead, length: &str) -> Result<Vec<u8>, HttpError> {
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HttpError::Malformed("the content length is not a number"));
    }
    // A number of digits that does not even fit is simply too large.
    let length = length.parse().unwrap_or(usize::MAX);
    let mut body = Vec::new();
    append(reader, length, &mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        let mut budget = 1024;
        let line = read_line(reader, &mut budget)?.ok_or(HttpError::Cut)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(HttpError::Malformed("a chunk's size is not a number"));
        }
        let size = usize::from_str_radix(size, 16).unwrap_or(usize::MAX);
        if size == 0 {
            break;
        }
        append(reader, size, &mut body)?;
        if read_line(reader, &mut 2)?.is_none_or(|end| !end.is_empty()) {
            return Err(HttpError::Malformed("a chunk is longer than its size"));
        }
    }
    let mut budget = MOST_HEAD;
    while !read_line(reader, &mut budget)?.ok_or(HttpError::Cut)?.is_empty() {}
    Ok(body)
}

/// Adds `length` bytes to the body. Memory grows with what arrives, not with what was promised.
fn append(reader: &mut impl BufRead, length: usize, body: &mut Vec<u8>) -> Result<(), HttpError> {
    if length > MOST_BODY - body.len() {
        return Err(HttpError::TooLarge { part: "body", most: MOST_BODY });
    }
    let read = reader.by_ref().take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(body)?;
    if read < length { Err(HttpError::Cut) } else { Ok(()) }
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Answer {
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, headers: vec![("content-type", "application/json".into())], body: body.to_string() }
    }

    /// Writes it; `head_only` for the answer to a HEAD request.
    pub fn write(&self, out: &mut impl Write, head_only: bool) -> io::Result<()> {
        let mut bytes = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status)).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        if !head_only {
            bytes.extend_from_slice(self.body.as_bytes());
        }
        out.write_all(&bytes)?;
        out.flush()
    }
}

/// Begins an answer of server-sent events.
pub fn begin_events(out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
          transfer-encoding: chunked\r\n\r\n",
    )?;
    out.flush()
}

/// Writes one event as one chunk, and out at once: its time of arrival is part of what a client is tested with.
pub fn write_event(out: &mut impl Write, event: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", event.len()).into_bytes();
    chunk.extend_from_slice(event);
    chunk.extend_from_slice(b"\r\n");
    out.write_all(&chunk)?;
    out.flush()
}

pub fn end_events(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"0\r\n\r\n")?;
    out.flush()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
