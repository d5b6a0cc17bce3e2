//! The connection to the daemon as the loop needs it: never waits, and says what came.
//!
//! Owns the socket, the numbers of requests and what each answer is for. Leaves to [`crate::app`] what an answer means.
//! A request that changes something is kept until it is answered and sent again on the next connection: all of them carry
//! an id of the client's, so the daemon recognises what it has done already.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use consort_daemon::protocol::{Call, ErrorBody, Notification, PROTOCOL_VERSION};
use consort_model::AgentId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::Reply;

/// The longest message that is taken, in bytes.
const MAX_MESSAGE: usize = 256 << 20;

/// How much is read before the loop looks at the keyboard again, in bytes.
const READ_AT_ONCE: usize = 4 << 20;

/// A message from the daemon.
#[derive(Debug)]
pub enum Message {
    /// Something happened.
    Notification(Box<Notification>),
    /// An answer: what it is for, and the answer as JSON text or the error.
    Answer(Reply, Result<String, ErrorBody>),
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorBody>,
    #[serde(default)]
    method: Option<&'a str>,
}

struct Asked {
    call: Call,
    reply: Reply,
}

/// A connection, or the wish for one.
#[derive(Default)]
pub struct Link {
    stream: Option<UnixStream>,
    incoming: Vec<u8>,
    /// How much of `incoming` was searched for an end of line already.
    searched: usize,
    outgoing: Vec<u8>,
    asked: BTreeMap<u64, Asked>,
    last_id: u64,
}

impl Link {
    /// Whether there is a connection.
    pub fn is_up(&self) -> bool {
        self.stream.is_some()
    }

    /// Takes a fresh connection: says hello and repeats what was not answered.
    pub fn connect(&mut self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        self.incoming.clear();
        self.outgoing.clear();
        self.searched = 0;
        self.stream = Some(stream);
        let again = std::mem::take(&mut self.asked);
        let client = format!("consort {}", env!("CARGO_PKG_VERSION"));
        self.call(Call::Hello { protocol: PROTOCOL_VERSION, client }, Reply::Hello);
        for asked in again.into_values().filter(|asked| asked.reply.is_worth_repeating()) {
            self.call(asked.call, asked.reply);
        }
        Ok(())
    }

    /// Asks; the answer comes as a [`Message::Answer`]. Without a connection a command waits for the next one.
    pub fn call(&mut self, call: Call, reply: Reply) {
        self.last_id += 1;
        if self.stream.is_some() {
            let request = consort_daemon::protocol::Request {
                jsonrpc: "2.0".to_owned(),
                id: self.last_id.into(),
                call,
            };
            // These types always serialise.
            if let Ok(line) = serde_json::to_vec(&request) {
                self.outgoing.extend_from_slice(&line);
                self.outgoing.push(b'\n');
            }
            self.asked.insert(self.last_id, Asked { call: request.call, reply });
        } else if reply.is_worth_repeating() {
            self.asked.insert(self.last_id, Asked { call, reply });
        }
    }

    /// What to wait for, and whether there is something to write.
    pub fn interest(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.stream.as_ref().map(|stream| (stream.as_fd(), !self.outgoing.is_empty()))
    }

    /// The prompts that no daemon was told of: for whom, and their texts.
    pub fn unsent(&self) -> Vec<(AgentId, String)> {
        let text = |asked: &Asked| match &asked.reply {
            Reply::Sent(agent, prompt) | Reply::Steered(agent, prompt) => Some((*agent, prompt.text.clone())),
            _ => None,
        };
        if self.is_up() { Vec::new() } else { self.asked.values().filter_map(text).collect() }
    }

    /// Whether something was asked that is not answered.
    pub fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Writes what can be written without waiting.
    pub fn write(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while !self.outgoing.is_empty() {
            match stream.write(&self.outgoing) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is there. An error means that the connection is over; what came before it is in `out`.
    pub fn read(&mut self, out: &mut Vec<Message>) -> io::Result<()> {
        let mut read = 0;
        let outcome = loop {
            let Some(stream) = &mut self.stream else { return Ok(()) };
            let mut chunk = [0; 64 << 10];
            match stream.read(&mut chunk) {
                Ok(0) => break Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.incoming.extend_from_slice(&chunk[..count]);
                    read += count;
                    if read >= READ_AT_ONCE {
                        break Ok(());
                    }
                    if self.incoming.len() > MAX_MESSAGE {
                        break Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.split(out);
        outcome
    }

    /// The connection is over.
    pub fn drop_connection(&mut self) {
        self.stream = None;
        self.outgoing.clear();
        self.incoming = Vec::new();
        self.searched = 0;
        self.asked.retain(|_, asked| asked.reply.is_worth_repeating());
    }

    fn split(&mut self, out: &mut Vec<Message>) {
        let incoming = std::mem::take(&mut self.incoming);
        let mut start = 0;
        let mut from = self.searched;
        while let Some(end) =
            incoming.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            let end = from + end;
            if let Some(message) = self.message(&incoming[start..end]) {
                out.push(message);
            }
            start = end + 1;
            from = start;
        }
        self.incoming = incoming;
        self.incoming.drain(..start);
        self.searched = self.incoming.len();
        self.incoming.shrink_to(1 << 20);
    }

    fn message(&mut self, line: &[u8]) -> Option<Message> {
        let frame: Frame<'_> = serde_json::from_slice(line).ok()?;
        if frame.method.is_some() {
            // What a newer daemon says and this program does not know changes nothing here.
            return serde_json::from_slice(line).ok().map(|it| Message::Notification(Box::new(it)));
        }
        let asked = self.asked.remove(&frame.id?)?;
        let answer = match (frame.result, frame.error) {
            (_, Some(error)) => Err(error),
            (Some(result), None) => Ok(result.get().to_owned()),
            (None, None) => Ok("null".to_owned()),
        };
        Some(Message::Answer(asked.reply, answer))
    }
}
