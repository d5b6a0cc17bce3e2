//! Reading the journal of a runner that is gone.
//!
//! A runner that was killed leaves its segments. What it had written completely is read; a record that was torn by the
//! kill ends the reading without an error.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::segment_files;
use crate::protocol::{HEAD, Record, frame_head, take_u64};

/// The records with an offset of at least `offset` that a dead runner left in `dir`; none if there is no journal.
///
/// Must not be used while a runner serves `dir`: ask that runner instead.
pub fn read_from(dir: &Path, offset: u64) -> io::Result<Salvage> {
    let mut files = segment_files(dir)?;
    // Segments that end before the offset need not be read: keep from the last one that begins at or before it.
    let skipped = files.partition_point(|(first, _)| *first <= offset).saturating_sub(1);
    files.drain(..skipped);
    let next = files.first().map_or(offset, |(first, _)| *first);
    Ok(Salvage { files: files.into_iter(), reader: None, next, from: offset })
}

/// See [`read_from`].
pub struct Salvage {
    files: std::vec::IntoIter<(u64, PathBuf)>,
    reader: Option<BufReader<File>>,
    /// The offset the next record must have: anything else is the remains of a failed write.
    next: u64,
    from: u64,
}

impl Iterator for Salvage {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step() {
                Ok(Some(record)) if record.offset < self.from => {}
                Ok(record) => return record.map(Ok),
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Salvage {
    fn step(&mut self) -> io::Result<Option<Record>> {
        loop {
            if let Some(reader) = &mut self.reader {
                if let Some(record) = read_record(reader, self.next)? {
                    self.next += 1;
                    return Ok(Some(record));
                }
                self.reader = None;
            }
            match self.files.next() {
                Some((first, path)) if first == self.next => {
                    self.reader = Some(BufReader::new(File::open(path)?))
                }
                // A gap: what follows cannot be in order any more.
                _ => {
                    self.end();
                    return Ok(None);
                }
            }
        }
    }

    fn end(&mut self) {
        self.reader = None;
        self.files = Vec::new().into_iter();
    }
}

/// The next record, or `None` at the end of the whole records.
fn read_record(reader: &mut impl Read, offset: u64) -> io::Result<Option<Record>> {
    let Some(head) = read_whole(reader, HEAD)? else { return Ok(None) };
    let Ok(Some(head)) = frame_head(&head) else { return Ok(None) };
    let Some(payload) = read_whole(reader, head.payload)? else { return Ok(None) };
    if take_u64(&payload).is_none_or(|(found, _)| found != offset) {
        return Ok(None);
    }
    Ok(Record::decode(head.kind, &payload).ok())
}

fn read_whole(reader: &mut impl Read, length: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(length.min(64 << 10));
    reader.take(length as u64).read_to_end(&mut bytes)?;
    Ok((bytes.len() == length).then_some(bytes))
}
