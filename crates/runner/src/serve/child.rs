//! The child's pipes: output in, input out, the tail of stderr.
//!
//! Owns what is read from and written to the child and the memory that takes. When the child is started and ended is
//! the event loop's to decide.
//!
//! Invariant: nothing here ever waits for the child. Input it does not read lies in the journal, and only where it lies
//! is remembered, up to [`MAX_WAITING_INPUTS`] and [`MAX_WAITING_BYTES`]; beyond that input is refused.

use std::collections::VecDeque;
use std::io;

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use crate::framing::Framer;
use crate::journal::{Journal, StoredInput};
use crate::process::Started;
use crate::protocol::Exit;
use crate::spec::Spec;

const MAX_WAITING_INPUTS: usize = 16 * 1024;
const MAX_WAITING_BYTES: u64 = 256 << 20;

/// How much of stderr is served.
const STDERR_TAIL: usize = 16 << 10;

/// How often a pipe is read before others have their turn.
const READS_PER_TURN: usize = 8;

/// Something that waits for the child to read its stdin.
enum Waiting {
    Stored(StoredInput),
    /// The protocol's own stop, which is not input and so not in the journal.
    Stop(Vec<u8>),
}

pub struct Child {
    pub pid: Pid,
    pub stdin: Option<pipe::Sender>,
    pub stdout: Option<pipe::Receiver>,
    pub stderr: Option<pipe::Receiver>,
    /// How it ended, once it was reaped.
    pub exit: Option<Exit>,
    /// Whether it and all its descendants are gone.
    pub tree_gone: bool,
    /// When it last wrote or read something.
    pub last_activity: Instant,
    framer: Framer,
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    stderr_tail: Vec<u8>,
}

/// What a turn of reading found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// So many bytes; there may be more.
    Some(usize),
    /// There is nothing more now.
    Empty,
    /// There never will be more.
    Ended,
}

impl Child {
    pub fn new(started: Started, spec: &Spec) -> io::Result<Self> {
        Ok(Self {
            pid: started.pid,
            stdin: started.stdin.map(pipe::Sender::from_owned_fd).transpose()?,
            stdout: Some(pipe::Receiver::from_owned_fd(started.stdout)?),
            stderr: started.stderr.map(pipe::Receiver::from_owned_fd).transpose()?,
            exit: None,
            tree_gone: false,
            last_activity: Instant::now(),
            framer: Framer::new(spec.framing),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            stderr_tail: Vec::new(),
        })
    }

    /// Reads stdout once into the journal's next batch.
    pub fn read_stdout(&mut self, journal: &mut Journal, scratch: &mut [u8]) -> Read {
        let Some(stdout) = &self.stdout else { return Read::Ended };
        match stdout.try_read(scratch) {
            Ok(count) if count > 0 => {
                self.last_activity = Instant::now();
                self.framer
                    .push(&scratch[..count], |piece| journal.append_output(piece.bytes, piece.end_of_line));
                Read::Some(count)
            }
            Err(error) if is_not_now(&error) => Read::Empty,
            // The end; a pipe that cannot be read has ended too.
            _ => {
                self.end_stdout(journal);
                Read::Ended
            }
        }
    }

    /// Takes stdout as ended and journals a last line without its newline.
    pub fn end_stdout(&mut self, journal: &mut Journal) {
        self.stdout = None;
        self.framer.finish(|piece| journal.append_output(piece.bytes, piece.end_of_line));
    }

    /// Reads stderr into the tail, within one turn.
    pub fn read_stderr(&mut self, scratch: &mut [u8]) {
        for _ in 0..READS_PER_TURN {
            let Some(stderr) = &self.stderr else { return };
            match stderr.try_read(scratch) {
                Ok(count) if count > 0 => self.keep_stderr(&scratch[..count]),
                Err(error) if is_not_now(&error) => return,
                _ => self.stderr = None,
            }
        }
    }

    fn keep_stderr(&mut self, bytes: &[u8]) {
        self.stderr_tail.extend_from_slice(bytes);
        // Cut only now and then, so that a child that writes in small bits is not copied around for each.
        if self.stderr_tail.len() > 2 * STDERR_TAIL {
            self.stderr_tail.drain(..self.stderr_tail.len() - STDERR_TAIL);
            self.stderr_tail.shrink_to(2 * STDERR_TAIL);
        }
    }

    /// The last of what the child wrote to stderr.
    pub fn stderr_tail(&self) -> String {
        let start = self.stderr_tail.len().saturating_sub(STDERR_TAIL);
        String::from_utf8_lossy(&self.stderr_tail[start..]).into_owned()
    }

    /// Whether the child reads too slowly to take any more input.
    pub fn is_input_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING_INPUTS || self.waiting_bytes >= MAX_WAITING_BYTES
    }

    pub fn has_waiting_input(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives the child an input that is in the journal, when its turn comes.
    pub fn give_input(&mut self, input: StoredInput, scratch: &mut [u8]) {
        self.last_activity = Instant::now();
        self.waiting_bytes += input.left();
        self.waiting.push_back(Waiting::Stored(input));
        self.write_stdin(scratch);
    }

    /// Gives the child the protocol's own stop after the input that waits.
    pub fn give_stop(&mut self, bytes: Vec<u8>, scratch: &mut [u8]) {
        self.waiting.push_back(Waiting::Stop(bytes));
        self.write_stdin(scratch);
    }

    /// Closes stdin; input the child has not read by now it will never read.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
        self.waiting = VecDeque::new();
        self.waiting_bytes = 0;
    }

    /// Writes what waits for the child, as far as its pipe takes it.
    pub fn write_stdin(&mut self, scratch: &mut [u8]) {
        let Some(stdin) = &self.stdin else { return self.close_stdin() };
        while let Some(front) = self.waiting.front_mut() {
            let (written, left) = match front {
                Waiting::Stored(input) => {
                    let written = input.read(scratch).and_then(|count| stdin.try_write(&scratch[..count]));
                    if let Ok(count) = written {
                        input.advance(count);
                        self.waiting_bytes = self.waiting_bytes.saturating_sub(count as u64);
                    }
                    (written, input.left())
                }
                Waiting::Stop(bytes) => {
                    let written = stdin.try_write(bytes);
                    if let Ok(count) = written {
                        bytes.drain(..count);
                    }
                    (written, bytes.len() as u64)
                }
            };
            match written {
                Ok(_) if left == 0 => drop(self.waiting.pop_front()),
                Ok(count) if count > 0 => {}
                Err(error) if is_not_now(&error) => return,
                // The child closed its stdin, or the journal cannot be read: either way the rest cannot be delivered.
                Ok(_) => return self.close_stdin(),
                Err(error) => {
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        super::log(format_args!("input could not be given to the child: {error}"));
                    }
                    return self.close_stdin();
                }
            }
            self.last_activity = Instant::now();
        }
        self.waiting = VecDeque::new();
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
