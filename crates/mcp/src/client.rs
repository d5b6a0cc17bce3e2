//! The other end: one message to the endpoint, and what it answers.
//!
//! Blocking and without dependencies, for programs that have nothing else to do meanwhile: the bridge on stdio, and the
//! agents that tests script. Speaks HTTP/1.1 as far as the endpoint does: a body of known length, in chunks, or to the end,
//! which is one message or a stream of events.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use thiserror::Error;

/// How long the endpoint may take to be reached. It is on this machine.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The longest line of a header or an event, and the longest body.
const MAX_LINE: u64 = 16 << 20;

/// Why no answer came.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The address is none of a server on this machine.
    #[error("`{0}` is not an address like http://127.0.0.1:PORT/mcp")]
    Address(String),
    /// Nobody answers there, or no longer.
    #[error("Consort's daemon does not answer: {0}; it may be starting, so try again")]
    Unreachable(#[from] io::Error),
    /// It answered with a refusal.
    #[error("Consort's daemon turned this away ({status}): {words}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What it said.
        words: String,
    },
}

/// Where the endpoint is and what to show there.
#[derive(Clone)]
pub struct Address {
    host: SocketAddr,
    path: String,
    token: String,
}

impl Address {
    /// Reads a URL.
    pub fn new(url: &str, token: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address(url.to_owned());
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
        let host: SocketAddr = host.parse().map_err(|_| wrong())?;
        let clean = |text: &str| !text.contains(|c: char| c.is_control() || c == ' ');
        if !host.ip().is_loopback() || !clean(path) || !clean(token) {
            return Err(wrong());
        }
        Ok(Self { host, path: format!("/{path}"), token: token.to_owned() })
    }

    /// Sends a message. What the endpoint answers is read from the [`Exchange`].
    pub fn post(&self, message: &str) -> Result<Exchange, ClientError> {
        let stream = TcpStream::connect_timeout(&self.host, CONNECT_LIMIT)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            self.host,
            self.token,
            message.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(message.as_bytes());
        (&stream).write_all(&request)?;
        Ok(Exchange { stream })
    }
}

/// A message that was sent and may be answered.
pub struct Exchange {
    stream: TcpStream,
}

/// Ends an exchange from another thread, as when nobody waits for its answer any more.
pub struct HangUp(TcpStream);

impl HangUp {
    /// Ends it. One that is over already stays so.
    pub fn now(self) {
        self.0.shutdown(Shutdown::Both).ok();
    }
}

impl Exchange {
    /// What ends it early.
    pub fn hang_up(&self) -> io::Result<HangUp> {
        self.stream.try_clone().map(HangUp)
    }

    /// Hands every message of the answer to `take`, as it comes.
    pub fn read(self, mut take: impl FnMut(&str)) -> Result<(), ClientError> {
        let mut reader = BufReader::new(self.stream);
        let head = Head::read(&mut reader)?;
        let mut body: Box<dyn BufRead> = match head.length {
            _ if head.chunked => Box::new(BufReader::new(Chunks { inner: reader, left: 0, over: false })),
            Some(length) => Box::new(reader.take(length)),
            None => Box::new(reader),
        };
        if !(200..300).contains(&head.status) {
            let mut words = String::new();
            body.take(2000).read_to_string(&mut words)?;
            return Err(ClientError::Refused { status: head.status, words: words.trim().to_owned() });
        }
        if !head.events {
            let mut message = String::new();
            body.take(MAX_LINE).read_to_string(&mut message)?;
            if !message.trim().is_empty() {
                take(message.trim());
            }
            return Ok(());
        }
        let mut data = String::new();
        while let Some(line) = line(&mut body)? {
            if let Some(rest) = line.strip_prefix("data:") {
                data.push_str(rest.trim_start_matches(' '));
            } else if line.is_empty() && !data.is_empty() {
                take(&std::mem::take(&mut data));
            }
        }
        Ok(())
    }
}

/// What stands above a body.
struct Head {
    status: u16,
    length: Option<u64>,
    chunked: bool,
    events: bool,
}

impl Head {
    fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP");
        let first = line(reader)?.ok_or_else(broken)?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let mut head = Self { status, length: None, chunked: false, events: false };
        loop {
            let line = line(reader)?.ok_or_else(broken)?;
            let Some((name, value)) = line.split_once(':') else { return Ok(head) };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = Some(value.parse().map_err(|_| broken())?),
                "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
                "content-type" => head.events = value.starts_with("text/event-stream"),
                _ => {}
            }
        }
    }
}

/// A line without its end; none at the end of everything.
fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() as u64 == MAX_LINE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer has a line that is too long"));
    }
    line.pop_if(|last| *last == b'\r');
    String::from_utf8(line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A body that comes in chunks, put together again.
struct Chunks<R> {
    inner: R,
    left: u64,
    over: bool,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer's chunks are broken");
        if self.left == 0 && !self.over {
            let size = line(&mut self.inner)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            self.left = u64::from_str_radix(size, 16).map_err(|_| broken())?;
            self.over = self.left == 0;
        }
        if self.over {
            return Ok(0);
        }
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..room])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        if self.left == 0 {
            line(&mut self.inner)?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with these bytes, and says what was read of it.
    fn answering(answer: &'static [u8]) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).unwrap();
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        (url, server)
    }

    fn messages(answer: &'static [u8]) -> Result<Vec<String>, ClientError> {
        let (url, server) = answering(answer);
        let exchange = Address::new(&url, "t").unwrap().post("{}").unwrap();
        let mut messages = Vec::new();
        let read = exchange.read(|message| messages.push(message.to_owned()));
        let request = server.join().unwrap();
        assert!(
            request.contains("Authorization: Bearer t\r\n") && request.ends_with("\r\n\r\n{}"),
            "{request}"
        );
        read.map(|()| messages)
    }

    #[test]
    fn answers_of_every_shape_are_read() {
        let json =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"id\": 1}"
                .as_slice();
        assert_eq!(messages(json).unwrap(), ["{\"id\": 1}"]);
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x\r\n\":1}\r\n0\r\n\r\n";
        assert_eq!(messages(chunked).unwrap(), ["{\"a\":1}"]);
        let events = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\ndata: {\"a\":1}\n\nid: 2\ndata: {\"b\":2}\n\n";
        assert_eq!(messages(events).unwrap(), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(messages(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_no_answer_is_an_error_in_words() {
        let refused = messages(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 5\r\n\r\nnope\n").unwrap_err();
        assert_eq!(refused.to_string(), "Consort's daemon turned this away (401): nope");
        for broken in [
            b"".as_slice(),
            b"SSH-2.0\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        ] {
            assert!(matches!(messages(broken), Err(ClientError::Unreachable(_))), "{broken:?}");
        }
    }

    #[test]
    fn only_this_machine_is_spoken_to() {
        for (url, token) in [
            ("https://127.0.0.1:1/mcp", "t"),
            ("http://example.org:80/mcp", "t"),
            ("http://10.0.0.1:80/mcp", "t"),
            ("http://127.0.0.1:1", "t"),
            ("http://127.0.0.1:1/mcp", "t\r\nHost: x"),
            ("", ""),
        ] {
            assert!(Address::new(url, token).is_err(), "{url} {token}");
        }
    }
}
