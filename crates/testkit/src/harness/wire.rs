//! The daemon's socket, line by line: for what a proper client never sends, and for reading events at one's own pace.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use consort_daemon::protocol::{Call, PROTOCOL_VERSION, Request};
use serde_json::{Value, json};

use super::LIMIT;

/// A connection that sends what it is given.
pub struct Wire {
    reader: BufReader<UnixStream>,
    next_id: u64,
}

impl Wire {
    /// Connects and says nothing.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(Self { reader: BufReader::new(stream), next_id: 1 })
    }

    /// Connects and says hello.
    pub fn greeted(socket: &Path) -> io::Result<Self> {
        let mut wire = Self::connect(socket)?;
        let hello = Call::Hello { protocol: PROTOCOL_VERSION, client: "harness".to_owned() };
        let answer = wire.call(&hello)?;
        if answer.get("error").is_some() {
            return Err(io::Error::other(format!("the hello was not answered well: {answer}")));
        }
        Ok(wire)
    }

    /// The stream, for timeouts and for shutting it down from another thread.
    pub fn stream(&self) -> &UnixStream {
        self.reader.get_ref()
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends a value as one line.
    pub fn send_json(&mut self, value: &Value) -> io::Result<()> {
        self.send(format!("{value}\n").as_bytes())
    }

    /// Sends a request and returns its id, without waiting.
    pub fn request(&mut self, call: &Call) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let request = Request { jsonrpc: "2.0".to_owned(), id: json!(id), call: call.clone() };
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        self.send(&line)?;
        Ok(id)
    }

    /// The next line; an error at the end of the stream or when nothing comes for too long.
    pub fn read(&mut self) -> io::Result<Value> {
        let line = self.read_line()?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// The next line as it came.
    pub fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        if self.reader.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    /// Asks, and skips notifications until the answer comes: the whole message.
    pub fn call(&mut self, call: &Call) -> io::Result<Value> {
        let id = self.request(call)?;
        loop {
            let message = self.read()?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }
}
