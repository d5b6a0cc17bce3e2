//! The connected daemon: its messages in, records and replies out.
//!
//! Owns framing and flow control of one socket and decides nothing. A daemon that reads slowly costs one buffer: records
//! are copied from the journal as the socket takes them, and replies are slipped in between whole frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use tokio::io::{Interest, Ready};
use tokio::net::UnixStream;

use super::inbox::{Inbox, Incoming};
use crate::framing::MAX_PIECE;
use crate::journal::Journal;
use crate::protocol::{FromRunner, ProtocolError, first_frame, frame_head};

/// What is copied from the journal at once: at least one whole output record.
const CHUNK: usize = MAX_PIECE + 64;

/// A daemon that lets this much of replies wait is not read from until it takes some.
const MAX_REPLIES: usize = 256 << 10;

/// A rough bound on the work done for the daemon before others have their turn.
const CHUNKS_PER_TURN: usize = 8;

pub struct Connection {
    stream: UnixStream,
    inbox: Inbox,
    /// What goes out next, and how much of it is sent.
    out: Vec<u8>,
    sent: usize,
    /// Encoded replies that wait for the end of a frame.
    replies: Vec<u8>,
    /// Where in the journal the next chunk begins.
    position: u64,
    /// How much of a record longer than a chunk is still to come.
    in_frame: u64,
}

impl Connection {
    /// A daemon that gets records from `position` on.
    pub fn new(stream: UnixStream, position: u64) -> Self {
        Self {
            stream,
            inbox: Inbox::default(),
            out: Vec::new(),
            sent: 0,
            replies: Vec::new(),
            position,
            in_frame: 0,
        }
    }

    /// What to wait for its messages on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Waits until the socket can take or give something that is wanted.
    pub async fn ready(&self, journal_end: u64) -> io::Result<Ready> {
        let wants_write =
            self.sent < self.out.len() || !self.replies.is_empty() || self.position < journal_end;
        let interest = match (self.replies.len() < MAX_REPLIES, wants_write) {
            (true, true) => Interest::READABLE | Interest::WRITABLE,
            (true, false) => Interest::READABLE,
            (false, _) => Interest::WRITABLE,
        };
        self.stream.ready(interest).await
    }

    /// Reads once; `None` means that the daemon hung up.
    pub fn receive(&mut self, scratch: &mut [u8], dir: &Path) -> io::Result<Option<Vec<Incoming>>> {
        if self.replies.len() >= MAX_REPLIES {
            return Ok(Some(Vec::new()));
        }
        match self.stream.try_read(scratch) {
            Ok(0) => Ok(None),
            Ok(count) => self.inbox.take(&scratch[..count], dir).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Queues a reply.
    pub fn reply(&mut self, message: &FromRunner) {
        if message.encode(&mut self.replies).is_err() {
            super::log(format_args!("a reply was too long to be sent"));
        }
    }

    /// Whether everything up to the journal's end is sent, so that the next batch can go out from memory.
    pub fn is_up_to_date(&self, journal: &Journal) -> bool {
        self.sent == self.out.len()
            && self.replies.is_empty()
            && self.in_frame == 0
            && self.position == journal.end()
    }

    /// Sends a batch that was just journaled to a daemon that was up to date before it.
    pub fn send_batch(&mut self, batch: &[u8]) -> io::Result<()> {
        let sent = match self.stream.try_write(batch) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.position += batch.len() as u64;
        self.out = batch[sent..].to_vec();
        self.sent = 0;
        Ok(())
    }

    /// Sends as much as the socket takes, within one turn.
    pub fn send(&mut self, journal: &mut Journal) -> io::Result<()> {
        for _ in 0..CHUNKS_PER_TURN {
            if self.sent == self.out.len() {
                self.sent = 0;
                self.out.clear();
                self.fill(journal)?;
            }
            if self.out.is_empty() {
                // Nothing to say: an idle connection costs no buffer.
                self.out = Vec::new();
                return Ok(());
            }
            match self.stream.try_write(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Chooses what goes out next: a reply if no record is half sent, then records.
    fn fill(&mut self, journal: &mut Journal) -> io::Result<()> {
        if self.in_frame == 0 && !self.replies.is_empty() {
            self.out = std::mem::take(&mut self.replies);
            return Ok(());
        }
        let oldest = journal.oldest_position();
        if self.position < oldest {
            if self.in_frame > 0 {
                return Err(io::Error::other("the daemon confirmed a record it was still being sent"));
            }
            self.position = oldest;
        }
        if self.position >= journal.end() {
            return Ok(());
        }
        self.out.resize(CHUNK, 0);
        let count = journal.read(self.position, &mut self.out)?;
        let count = if self.in_frame > 0 {
            let count = count.min(usize::try_from(self.in_frame).unwrap_or(usize::MAX));
            self.in_frame -= count as u64;
            count
        } else {
            let whole = whole_frames(&self.out[..count]).map_err(io::Error::other)?;
            if whole == 0 {
                let head = frame_head(&self.out[..count]).map_err(io::Error::other)?;
                let head = head.ok_or(io::ErrorKind::InvalidData)?;
                self.in_frame = (head.total() - count) as u64;
                count
            } else {
                whole
            }
        };
        self.out.truncate(count);
        self.position += count as u64;
        Ok(())
    }
}

/// How many bytes of whole frames stand at the front.
fn whole_frames(bytes: &[u8]) -> Result<usize, ProtocolError> {
    let mut whole = 0;
    while let Some((head, _)) = first_frame(&bytes[whole..])? {
        whole += head.total();
    }
    Ok(whole)
}
