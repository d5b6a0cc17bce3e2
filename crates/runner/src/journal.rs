//! The journal: every record of one child, in segment files, until the daemon has confirmed it.
//!
//! Owns offsets, the files and the room they take. Leaves to `serve` what goes in and who is served. Readers address it
//! by *position*, a byte count over the whole journal, because records have the same bytes here as on the wire.
//!
//! Invariants: what [`Journal::flush`] has written stays readable until it is confirmed; memory holds at most one
//! batch of records, whatever the journal's size; a write that fails leaves the journal as it was, to be tried again.
//! There is no fsync: the journal survives the runner's death, not the machine's.

mod salvage;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub use salvage::{Salvage, read_from};

use crate::protocol::{self, Exit, HEAD, INPUT_RECORD_PREFIX, frame_head};

/// A segment is full when it has reached this size.
const SEGMENT_BYTES: u64 = 4 << 20;

/// A segment whose records are all confirmed is dropped at this size, so that an idle journal is small.
const SMALL_SEGMENT_BYTES: u64 = 256 << 10;

/// How much is copied or scanned at once.
const COPY_BYTES: usize = 64 << 10;

const SEGMENT_PREFIX: &str = "j-";

struct Segment {
    /// The offset of its first record.
    first_offset: u64,
    /// The offset after its last record.
    next_offset: u64,
    /// Where in the whole journal it begins.
    start: u64,
    length: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.length
    }

    fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{SEGMENT_PREFIX}{:020}", self.first_offset))
    }
}

/// Accepted input that lies in the journal until the child reads it; it holds its file open, so confirming and
/// dropping the segment takes nothing from it.
pub struct StoredInput {
    file: Rc<File>,
    position: u64,
    left: u64,
}

impl StoredInput {
    pub fn left(&self) -> u64 {
        self.left
    }

    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.file.read_at(&mut buffer[..wanted], self.position)
    }

    pub fn advance(&mut self, written: usize) {
        let written = (written as u64).min(self.left);
        self.position += written;
        self.left -= written;
    }
}

pub struct Journal {
    dir: PathBuf,
    segments: VecDeque<Segment>,
    /// The last segment's file, if it still takes records.
    active: Option<Rc<File>>,
    /// The segment file a reader was last served from, or is next, by the segment's start.
    reading: Option<(u64, Rc<File>)>,
    /// Encoded records that are not in a file yet.
    unwritten: Vec<u8>,
    /// The batch that was written last, for a reader that is up to date.
    written: Vec<u8>,
    /// The offset the next appended record gets.
    append_offset: u64,
    /// The offset after the last record in a file.
    stored_offset: u64,
    end: u64,
    last_input: u64,
    limit: u64,
}

impl Journal {
    /// An empty journal in `dir`; segments that an earlier runner left there are removed.
    pub fn create(dir: &Path, limit: u64) -> io::Result<Self> {
        remove_segments(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            segments: VecDeque::new(),
            active: None,
            reading: None,
            unwritten: Vec::new(),
            written: Vec::new(),
            append_offset: 0,
            stored_offset: 0,
            end: 0,
            last_input: 0,
            limit,
        })
    }

    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The oldest record still held.
    pub fn first_offset(&self) -> u64 {
        self.segments.front().map_or(self.stored_offset, |segment| segment.first_offset)
    }

    /// The offset after the last record that can be served.
    pub fn next_offset(&self) -> u64 {
        self.stored_offset
    }

    /// The position after the last record that can be served.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn last_input(&self) -> u64 {
        self.last_input
    }

    /// Whether the journal holds as much as it may: no more output should be read.
    pub fn is_full(&self) -> bool {
        let start = self.segments.front().map_or(self.end, |segment| segment.start);
        self.end - start >= self.limit
    }

    /// Whether records wait for the disk: [`Journal::flush`] failed and should be tried again.
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    pub fn append_output(&mut self, bytes: &[u8], end_of_line: bool) {
        protocol::put_output(&mut self.unwritten, self.append_offset, end_of_line, bytes);
        self.append_offset += 1;
    }

    pub fn append_exit(&mut self, exit: Exit) -> u64 {
        let offset = self.append_offset;
        if protocol::put_exit(&mut self.unwritten, offset, exit).is_ok() {
            self.append_offset += 1;
        }
        offset
    }

    /// Writes what was appended; on an error nothing is lost and it can be tried again.
    pub fn flush(&mut self) -> io::Result<&[u8]> {
        self.written.clear();
        if !self.unwritten.is_empty() {
            let (file, at) = self.open_active()?;
            file.write_all_at(&self.unwritten, at)?;
            let length = self.unwritten.len() as u64;
            self.commit(length);
            std::mem::swap(&mut self.written, &mut self.unwritten);
        }
        Ok(&self.written)
    }

    /// Gives back the memory of the last batches; for when the child has gone quiet.
    pub fn release_buffers(&mut self) {
        self.written = Vec::new();
        if self.unwritten.is_empty() {
            self.unwritten = Vec::new();
        }
    }

    /// Journals the next numbered input, read from `source`, and returns where it lies.
    ///
    /// Records that wait for the disk come first: this fails while there are any.
    pub fn store_input(&mut self, source: InputSource<'_>) -> io::Result<StoredInput> {
        self.flush()?;
        let number = self.last_input + 1;
        let length = source.length();
        let prefix = usize::try_from(length)
            .ok()
            .and_then(|length| protocol::input_record_prefix(self.append_offset, number, length).ok())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        let (file, at) = self.open_active()?;
        file.write_all_at(&prefix, at)?;
        let position = at + INPUT_RECORD_PREFIX as u64;
        match source {
            InputSource::Bytes(bytes) => file.write_all_at(bytes, position)?,
            InputSource::File(source, length) => copy(source, length, &file, position)?,
        }
        self.append_offset += 1;
        self.last_input = number;
        self.commit(INPUT_RECORD_PREFIX as u64 + length);
        Ok(StoredInput { file, position, left: length })
    }

    /// Drops the records before `offset`, as far as they fill whole segments.
    pub fn confirm(&mut self, offset: u64) {
        while let Some(first) = self.segments.front() {
            let is_active = self.segments.len() == 1 && self.active.is_some();
            if first.next_offset > offset || (is_active && first.length < SMALL_SEGMENT_BYTES) {
                break;
            }
            if let Err(error) = std::fs::remove_file(first.path(&self.dir)) {
                // It will be removed with the directory; its records are done with either way.
                tracing::debug!(%error, "a journal segment could not be removed");
            }
            if is_active {
                self.active = None;
            }
            self.segments.pop_front();
        }
        if self.reading.as_ref().is_some_and(|(start, _)| !self.segments.iter().any(|s| s.start == *start)) {
            self.reading = None;
        }
    }

    /// The position of the record with this offset: the oldest one's if it is gone already.
    pub fn locate(&mut self, offset: u64) -> io::Result<u64> {
        let index = self.segments.partition_point(|segment| segment.next_offset <= offset);
        let Some(segment) = self.segments.get(index) else { return Ok(self.end) };
        let (mut position, end) = (segment.start, segment.end());
        let mut at = segment.first_offset;
        // Heads are read through a buffer, as records are mostly short.
        let mut buffer = vec![0; COPY_BYTES];
        let (mut buffered, mut from) = (0, 0);
        while at < offset && position < end {
            if buffered - from < HEAD {
                buffered = self.read(position, &mut buffer)?;
                from = 0;
            }
            let head =
                frame_head(&buffer[from..buffered]).ok().flatten().ok_or(io::ErrorKind::InvalidData)?;
            position += head.total() as u64;
            from = (from + head.total()).min(buffered);
            at += 1;
        }
        Ok(position)
    }

    /// Reads stored bytes at a position; records that were dropped are skipped, see [`Journal::oldest_position`].
    pub fn read(&mut self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let index = self.segments.partition_point(|segment| segment.end() <= position);
        let Some(segment) = self.segments.get(index) else { return Ok(0) };
        let inside = position.saturating_sub(segment.start);
        let wanted = buffer.len().min(usize::try_from(segment.length - inside).unwrap_or(usize::MAX));
        let is_last = index + 1 == self.segments.len();
        let file: &File = match (&self.active, &mut self.reading) {
            (Some(active), _) if is_last => active,
            (_, Some((start, file))) if *start == segment.start => file,
            (_, reading) => &reading.insert((segment.start, Rc::new(File::open(segment.path(&self.dir))?))).1,
        };
        file.read_exact_at(&mut buffer[..wanted], inside)?;
        Ok(wanted)
    }

    /// The position of the oldest record still held.
    pub fn oldest_position(&self) -> u64 {
        self.segments.front().map_or(self.end, |segment| segment.start)
    }

    /// The file that takes the next record and where in it.
    fn open_active(&mut self) -> io::Result<(Rc<File>, u64)> {
        if let (Some(file), Some(segment)) = (&self.active, self.segments.back()) {
            return Ok((Rc::clone(file), segment.length));
        }
        let segment = Segment {
            first_offset: self.stored_offset,
            next_offset: self.stored_offset,
            start: self.end,
            length: 0,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(segment.path(&self.dir))?;
        let file = Rc::new(file);
        self.active = Some(Rc::clone(&file));
        self.segments.push_back(segment);
        Ok((file, 0))
    }

    /// Counts what was written to the active segment, and closes it when it is full.
    fn commit(&mut self, length: u64) {
        self.end += length;
        self.stored_offset = self.append_offset;
        let Some(segment) = self.segments.back_mut() else { return };
        segment.length += length;
        segment.next_offset = self.append_offset;
        if segment.length >= SEGMENT_BYTES.min(self.limit / 4) {
            let file = self.active.take();
            // A reader that is a little behind goes on in the file that it has been reading.
            self.reading = self.reading.take().or_else(|| Some((segment.start, file?)));
        }
    }
}

/// Where an input's bytes come from.
pub enum InputSource<'a> {
    Bytes(&'a [u8]),
    File(&'a File, u64),
}

impl InputSource<'_> {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }
}

fn copy(source: &File, length: u64, target: &File, mut position: u64) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut done = 0;
    while done < length {
        let wanted = buffer.len().min(usize::try_from(length - done).unwrap_or(usize::MAX));
        source.read_exact_at(&mut buffer[..wanted], done)?;
        target.write_all_at(&buffer[..wanted], position)?;
        done += wanted as u64;
        position += wanted as u64;
    }
    Ok(())
}

/// The segment files in a directory with the offset of their first record, in order.
fn segment_files(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let first =
            name.to_str().and_then(|name| name.strip_prefix(SEGMENT_PREFIX)).and_then(|n| n.parse().ok());
        if let Some(first) = first {
            files.push((first, entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

/// Removes all segment files in a directory.
pub fn remove_segments(dir: &Path) -> io::Result<()> {
    for (_, path) in segment_files(dir)? {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
