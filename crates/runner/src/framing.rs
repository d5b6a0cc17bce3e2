//! The child's output stream, cut into the pieces that become records.
//!
//! Pure: bytes in, pieces out. Whatever the child writes, at most [`MAX_PIECE`] bytes are held here.

use std::io::BufRead;

use crate::spec::Framing;

/// The most bytes one piece, and so one output record, holds. A longer line is several pieces.
pub const MAX_PIECE: usize = 64 * 1024;

/// One piece of output; `end_of_line` says that it completes a line (whose newline is not part of it).
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    pub bytes: &'a [u8],
    pub end_of_line: bool,
}

/// Cuts a stream by its [`Framing`].
#[derive(Debug)]
pub struct Framer {
    framing: Framing,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Whether a piece of the current line was already given out.
    line_open: bool,
}

impl Framer {
    pub fn new(framing: Framing) -> Self {
        Self { framing, partial: Vec::new(), line_open: false }
    }

    /// Takes what was read and hands on every piece that is complete.
    pub fn push(&mut self, chunk: &[u8], mut give: impl FnMut(Piece<'_>)) {
        match self.framing {
            Framing::Raw => {
                for bytes in chunk.chunks(MAX_PIECE) {
                    give(Piece { bytes, end_of_line: false });
                }
            }
            Framing::Lines => self.push_lines(chunk, &mut give),
        }
    }

    /// The stream has ended: hands on a last line that had no newline.
    pub fn finish(&mut self, mut give: impl FnMut(Piece<'_>)) {
        if self.line_open || !self.partial.is_empty() {
            give(Piece { bytes: &self.partial, end_of_line: true });
        }
        self.partial = Vec::new();
        self.line_open = false;
    }

    fn push_lines(&mut self, mut chunk: &[u8], give: &mut impl FnMut(Piece<'_>)) {
        while !chunk.is_empty() {
            let (line, end_of_line, rest) = cut_line(chunk);
            chunk = rest;
            if end_of_line && self.partial.is_empty() && line.len() <= MAX_PIECE {
                self.line_open = false;
                give(Piece { bytes: line, end_of_line });
                continue;
            }
            self.extend(line, give);
            if end_of_line {
                give(Piece { bytes: &self.partial, end_of_line });
                self.partial.clear();
                self.line_open = false;
            }
        }
        if self.partial.is_empty() {
            // An idle child costs no buffer.
            self.partial = Vec::new();
        }
    }

    /// Adds to the open line, giving out what goes beyond one piece.
    fn extend(&mut self, mut bytes: &[u8], give: &mut impl FnMut(Piece<'_>)) {
        loop {
            let room = MAX_PIECE - self.partial.len();
            if bytes.len() <= room {
                self.partial.extend_from_slice(bytes);
                return;
            }
            let (now, later) = bytes.split_at(room);
            self.partial.extend_from_slice(now);
            give(Piece { bytes: &self.partial, end_of_line: false });
            self.line_open = true;
            self.partial.clear();
            bytes = later;
        }
    }
}

/// The first line without its newline, whether the newline was there, and what follows it.
fn cut_line(chunk: &[u8]) -> (&[u8], bool, &[u8]) {
    // The standard library's fast byte search, reached through `BufRead`; reading from a slice cannot fail.
    let length = (&mut &*chunk).skip_until(b'\n').unwrap_or(chunk.len());
    let (line, rest) = chunk.split_at(length);
    match line.strip_suffix(b"\n") {
        Some(line) => (line, true, rest),
        None => (line, false, rest),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(framing: Framing, chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut framer = Framer::new(framing);
        let mut pieces = Vec::new();
        for chunk in chunks {
            framer.push(chunk, |piece| pieces.push((piece.bytes.to_vec(), piece.end_of_line)));
        }
        framer.finish(|piece| pieces.push((piece.bytes.to_vec(), piece.end_of_line)));
        pieces
    }

    #[test]
    fn lines_are_cut_at_newlines_wherever_the_reads_fell() {
        let whole = |text: &str| (text.as_bytes().to_vec(), true);
        let expected = vec![whole("a"), whole(""), whole("bc\r"), whole("rest")];
        assert_eq!(pieces(Framing::Lines, &[b"a\n\nbc\r\nrest"]), expected);
        assert_eq!(pieces(Framing::Lines, &[b"a", b"\n", b"\nb", b"c\r", b"\nre", b"st"]), expected);
        assert_eq!(pieces(Framing::Lines, &[b"a\n"]), vec![whole("a")]);
        assert_eq!(pieces(Framing::Lines, &[]), vec![]);
    }

    #[test]
    fn a_line_too_long_for_one_piece_ends_with_its_last_piece() {
        let long = vec![b'x'; 2 * MAX_PIECE];
        let pieces = pieces(Framing::Lines, &[&long, b"\nshort\n"]);
        let shape: Vec<_> = pieces.iter().map(|(bytes, end)| (bytes.len(), *end)).collect();
        assert_eq!(shape, [(MAX_PIECE, false), (MAX_PIECE, true), (5, true)]);
    }

    #[test]
    fn raw_output_is_handed_on_as_it_was_read() {
        let pieces = pieces(Framing::Raw, &[b"a\nb", b"c"]);
        assert_eq!(pieces, [(b"a\nb".to_vec(), false), (b"c".to_vec(), false)]);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_invented(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..2000),
            size in 1usize..300,
        ) {
            let chunks: Vec<&[u8]> = text.chunks(size).collect();
            let mut joined = Vec::new();
            for (bytes, end_of_line) in pieces(Framing::Lines, &chunks) {
                joined.extend(bytes);
                if end_of_line {
                    joined.push(b'\n');
                }
            }
            let mut expected = text.clone();
            if !text.is_empty() && !text.ends_with(b"\n") {
                expected.push(b'\n');
            }
            prop_assert_eq!(joined, expected);
        }
    }
}
