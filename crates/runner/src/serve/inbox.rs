//! What the daemon says, as it comes in.
//!
//! Cuts the bytes of the socket into messages. Invariant: memory holds at most one control message; an input longer than
//! [`INLINE_INPUT`] goes through a file, so prompts with images cost the runner nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::protocol::{HEAD, Kind, ProtocolError, ToRunner, first_frame, frame_head, take_u64};

/// An input longer than this goes through a file instead of memory.
const INLINE_INPUT: usize = 64 << 10;

/// A message, or an input too long to be held in memory.
pub enum Incoming {
    Message(ToRunner),
    LargeInput(Spool),
}

/// An input on its way from the socket to the journal, in a file without a name.
pub struct Spool {
    pub number: u64,
    pub length: u64,
    /// The file, or why it could not be written; the rest of the input is then read and thrown away.
    pub file: io::Result<File>,
    left: u64,
}

impl Spool {
    fn create(dir: &Path, number: u64, length: u64) -> Self {
        let path = dir.join("input");
        let open = || {
            let file =
                File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        Self { number, length, file: open(), left: length }
    }

    /// Takes what belongs to this input and returns the rest.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let count = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let (mine, rest) = bytes.split_at(count);
        if let Ok(file) = &mut self.file
            && let Err(error) = file.write_all(mine)
        {
            self.file = Err(error);
        }
        self.left -= count as u64;
        rest
    }
}

/// The daemon's bytes that are no message yet.
#[derive(Default)]
pub struct Inbox {
    /// The beginning of a frame.
    received: Vec<u8>,
    /// A long input of which more is to come.
    spool: Option<Spool>,
}

impl Inbox {
    /// Takes what was read and returns the messages it completes. After an error the connection is of no use.
    pub fn take(&mut self, bytes: &[u8], dir: &Path) -> Result<Vec<Incoming>, ProtocolError> {
        let mut incoming = Vec::new();
        let mut rest = bytes;
        if let Some(mut spool) = self.spool.take() {
            rest = spool.take(rest);
            if spool.left > 0 {
                self.spool = Some(spool);
                return Ok(incoming);
            }
            incoming.push(Incoming::LargeInput(spool));
        }
        let mut received = std::mem::take(&mut self.received);
        received.extend_from_slice(rest);
        let mut rest = received.as_slice();
        while let Some(head) = frame_head(rest)? {
            if head.kind == Kind::Input && head.payload > INLINE_INPUT {
                let Some((number, body)) = rest.get(HEAD..).and_then(take_u64) else { break };
                let length = (head.payload - size_of::<u64>()) as u64;
                let mut spool = Spool::create(dir, number, length);
                rest = spool.take(body);
                if spool.left > 0 {
                    // It took everything there was.
                    self.spool = Some(spool);
                    break;
                }
                incoming.push(Incoming::LargeInput(spool));
            } else {
                let Some((head, payload)) = first_frame(rest)? else { break };
                incoming.push(Incoming::Message(ToRunner::decode(head.kind, payload)?));
                rest = &rest[head.total()..];
            }
        }
        if !rest.is_empty() {
            let read = received.len() - rest.len();
            received.drain(..read);
            self.received = received;
        }
        Ok(incoming)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    /// Messages in a form that can be compared, whichever way they came.
    fn received(chunks: &[&[u8]]) -> Vec<ToRunner> {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::default();
        let mut messages = Vec::new();
        for chunk in chunks {
            for incoming in inbox.take(chunk, dir.path()).unwrap() {
                messages.push(match incoming {
                    Incoming::Message(message) => message,
                    Incoming::LargeInput(spool) => {
                        let mut bytes = vec![0; usize::try_from(spool.length).unwrap()];
                        let mut file = spool.file.unwrap();
                        file.read_exact_at(&mut bytes, 0).unwrap();
                        assert_eq!(file.read(&mut [0]).unwrap(), 0);
                        ToRunner::Input { number: spool.number, bytes }
                    }
                });
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(inbox.received.is_empty() && inbox.spool.is_none());
        messages
    }

    fn conversation() -> (Vec<ToRunner>, Vec<u8>) {
        let input = |number, length| ToRunner::Input { number, bytes: vec![b'x'; length] };
        let confirm = ToRunner::Confirm { offset: 3 };
        let messages = vec![
            input(1, 10),
            input(2, INLINE_INPUT - 8),
            input(3, INLINE_INPUT - 7),
            confirm.clone(),
            input(4, 3 * INLINE_INPUT),
            input(5, 2 * INLINE_INPUT),
            ToRunner::StderrTail,
            input(6, 0),
        ];
        let mut bytes = Vec::new();
        for message in &messages {
            message.encode(&mut bytes).unwrap();
        }
        (messages, bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn messages_are_the_same_wherever_the_reads_fell(size in 1usize..40_000) {
            let (messages, bytes) = conversation();
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert!(received(&chunks) == messages);
        }

        #[test]
        fn garbage_never_panics(chunks in proptest::collection::vec(proptest::collection::vec(0u8..8, 0..40), 0..10)) {
            let dir = tempfile::tempdir().unwrap();
            let mut inbox = Inbox::default();
            for chunk in &chunks {
                if inbox.take(chunk, dir.path()).is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn an_input_that_finds_no_room_on_disk_is_read_past() {
        let (_, bytes) = conversation();
        let mut inbox = Inbox::default();
        let incoming = inbox.take(&bytes, Path::new("/no/such/place")).unwrap();
        let failed = incoming
            .iter()
            .filter(|incoming| matches!(incoming, Incoming::LargeInput(Spool { file: Err(_), .. })));
        assert_eq!(failed.count(), 3);
        assert_eq!(incoming.len(), 8);
    }
}
