//! Puts the pieces of long lines together, within bounds.
//!
//! A runner cuts a line into pieces; a driver wants whole lines. A line past [`MAX_LINE`] is not kept: the driver is
//! told its length and beginning instead.

use consort_drivers::Frame;

/// The longest line that is held in memory.
const MAX_LINE: usize = 32 << 20;

/// How much of a longer line is kept to show.
const HEAD: usize = 4 << 10;

/// The line that is being put together.
#[derive(Default)]
pub struct Assembler {
    pieces: Vec<u8>,
    len: u64,
}

impl Assembler {
    /// Adds a piece; hands the line to `take` if it is the last one. Returns whether it was.
    pub fn push(&mut self, bytes: &[u8], end_of_line: bool, take: impl FnOnce(Frame<'_>)) -> bool {
        if end_of_line && self.len == 0 && bytes.len() <= MAX_LINE {
            take(Frame::Line(bytes));
            return true;
        }
        self.len += bytes.len() as u64;
        if self.len <= MAX_LINE as u64 {
            self.pieces.extend_from_slice(bytes);
        } else if self.pieces.len() > HEAD || self.pieces.is_empty() {
            self.pieces.extend_from_slice(&bytes[..bytes.len().min(HEAD)]);
            self.pieces.truncate(HEAD);
            self.pieces.shrink_to_fit();
        }
        if !end_of_line {
            return false;
        }
        let Self { pieces, len } = std::mem::take(self);
        if len <= MAX_LINE as u64 {
            take(Frame::Line(&pieces));
        } else {
            take(Frame::Oversized { len, head: &pieces });
        }
        true
    }

    /// Whether a line has begun and not ended.
    pub fn is_partial(&self) -> bool {
        self.len > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Got {
        Line(Vec<u8>),
        Oversized(u64, usize),
    }

    fn run(pieces: &[(&[u8], bool)]) -> Vec<Got> {
        let mut assembler = Assembler::default();
        let mut got = Vec::new();
        for (bytes, end) in pieces {
            assembler.push(bytes, *end, |frame| {
                got.push(match frame {
                    Frame::Line(line) => Got::Line(line.to_vec()),
                    Frame::Oversized { len, head } => Got::Oversized(len, head.len()),
                });
            });
        }
        got
    }

    #[test]
    fn pieces_become_lines() {
        let got = run(&[(b"a", true), (b"b", false), (b"", false), (b"c", true), (b"", true)]);
        assert_eq!(got, [b"a".to_vec(), b"bc".to_vec(), b"".to_vec()].map(Got::Line));
    }

    #[test]
    fn a_line_past_the_limit_keeps_its_length_and_head_and_the_next_line_is_whole() {
        let piece = vec![b'x'; 1 << 20];
        let mut pieces: Vec<(&[u8], bool)> = vec![(&piece, false); 40];
        pieces.push((b"", true));
        pieces.push((b"next", true));
        let got = run(&pieces);
        assert_eq!(got, [Got::Oversized(40 << 20, HEAD), Got::Line(b"next".to_vec())]);
    }
}
