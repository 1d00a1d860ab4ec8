//! A plain file in pieces, each read by itself with `pread`, so that several threads can read one file.
//!
//! A piece holds the lines that start in its range of the file. Reading rather than mapping: a map is no faster, shows
//! the file as our memory, and a log that is truncated under it kills the process.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    sync::Arc,
};

use memchr::memchr;

/// Bytes of a piece: some milliseconds of work, so that threads seldom wait for each other.
const PIECE: u64 = 2 * 1024 * 1024;

/// A file that can be read in pieces.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    file: Arc<File>,
    /// Where the text begins.
    start: u64,
    /// Its end when it was opened; what is appended later belongs to the last piece.
    end: u64,
}

impl Plain {
    /// From a regular file. `start` is where the text begins.
    pub(super) fn new(file: Arc<File>, start: u64) -> Option<Self> {
        let data = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { file, start, end: data.len() })
    }

    /// The first bytes of the text do not count among its lines: a byte order mark.
    pub(crate) fn without(&self, bytes: usize) -> Self {
        Self { start: self.start + bytes as u64, ..self.clone() }
    }

    /// How many pieces there are, at least one.
    pub(crate) fn pieces(&self) -> u64 {
        self.end.saturating_sub(self.start).div_ceil(PIECE).max(1)
    }

    /// A reader of piece `at`.
    pub(crate) fn piece(&self, at: u64) -> PieceReader {
        let start = self.start + at * PIECE;
        let is_last = at + 1 >= self.pieces();
        PieceReader {
            file: Arc::clone(&self.file),
            // A line starts here if the byte before ends one.
            position: if at == 0 { start } else { start - 1 },
            is_before: at > 0,
            last: if is_last { u64::MAX } else { start + PIECE - 1 },
            ended: false,
        }
    }
}

/// Gives the bytes of one piece.
#[derive(Debug)]
pub(crate) struct PieceReader {
    file: Arc<File>,
    position: u64,
    /// Still in the line before the piece's first one.
    is_before: bool,
    /// The first LF from this offset on ends the piece.
    last: u64,
    ended: bool,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended {
            let count = self.file.read_at(buffer, self.position)?;
            let bytes = buffer.get(..count).unwrap_or_default();
            let begin = self.position;
            self.position += count as u64;
            if count == 0 {
                self.ended = true;
                break;
            }
            let mut from = 0;
            if self.is_before {
                let Some(at) = memchr(b'\n', bytes) else { continue };
                self.is_before = false;
                from = at + 1;
                if begin + at as u64 >= self.last {
                    // The line before reaches over the whole piece.
                    self.ended = true;
                    break;
                }
            }
            let until = usize::try_from(self.last.saturating_sub(begin)).unwrap_or(usize::MAX).max(from);
            let to = match bytes.get(until..).and_then(|rest| memchr(b'\n', rest)) {
                Some(at) => {
                    self.ended = true;
                    until + at + 1
                }
                None => count,
            };
            if from < to {
                buffer.copy_within(from..to, 0);
                return Ok(to - from);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// All pieces of a file cut at the places told.
    fn pieces(bytes: &[u8], cuts: &[u64], chunk: usize) -> Vec<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let file = Arc::new(file);
        let mut starts = vec![0];
        starts.extend_from_slice(cuts);
        let read = |(at, &start): (usize, &u64)| {
            let next = starts.get(at + 1);
            let mut reader = PieceReader {
                file: Arc::clone(&file),
                position: if at == 0 { start } else { start - 1 },
                is_before: at > 0,
                last: next.map_or(u64::MAX, |next| next - 1),
                ended: false,
            };
            let (mut all, mut buffer) = (Vec::new(), vec![0; chunk]);
            loop {
                match reader.read(&mut buffer).unwrap() {
                    0 => return all,
                    count => all.extend_from_slice(&buffer[..count]),
                }
            }
        };
        starts.iter().enumerate().map(read).collect()
    }

    proptest! {
        #[test]
        fn pieces_are_whole_lines_and_together_everything(
            bytes in prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..60),
            cuts in prop::collection::btree_set(1_u64..60, 0..5),
            chunk in 1_usize..20,
        ) {
            let cuts: Vec<_> = cuts.into_iter().collect();
            let pieces = pieces(&bytes, &cuts, chunk);
            prop_assert_eq!(pieces.concat(), bytes);
            let (last, others) = pieces.split_last().unwrap();
            for piece in others.iter().filter(|piece| !piece.is_empty()) {
                // Only the piece with the last line of the file may lack its LF.
                let rest_is_empty = last.is_empty();
                prop_assert!(piece.ends_with(b"\n") || rest_is_empty, "{:?}", piece);
            }
        }
    }
}
