//! Cuts a stream into blocks of whole lines, with a bound on what one line may hold.

use std::{io::Read, ops::Range};

use memchr::{memchr, memrchr};

use super::{InputError, Plain, Source, sniff, source::is_damage};

/// Bytes asked for at a time. 128 KiB: with 512 KiB the second-level cache is left before the text is read, with 64 KiB
/// joining costs more (benches/README.md).
const BLOCK: usize = 128 * 1024;

/// Readable bytes after the lines, for readers that look at several bytes at a time.
pub(crate) const PAD: usize = 128;

/// How much of the beginning is looked at to tell what the input is.
const PREFIX: usize = 64 * 1024;

/// The UTF-8 byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What [`Blocks::next`] gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Whole lines, each ending in LF; only the last of the input may lack it. They take the first bytes of the text,
    /// as many as the number says; [`PAD`] more follow, of no meaning.
    Lines(&'a [u8], usize),
    /// One line over the cap, skipped.
    TooLong,
}

/// A [`Piece`] with its own buffer, to be given to another thread.
#[derive(Debug)]
pub(crate) enum Owned {
    /// As [`Piece::Lines`]: the lines are in this range, and there is room behind it.
    Lines(Vec<u8>, Range<usize>),
    TooLong,
}

/// Where the next piece is in the buffer.
enum Found {
    Lines(Range<usize>),
    TooLong,
}

/// A reader of lines over one input.
pub(crate) struct Blocks {
    source: Source,
    buffer: Vec<u8>,
    /// `start..filled` of the buffer is read and not yet given.
    start: usize,
    filled: usize,
    /// No LF stands before this index.
    searched: usize,
    max_line: usize,
    /// In a line over the cap, up to its LF.
    skipping: bool,
    ended: bool,
    /// An end is only one for now, and half a line waits.
    waits: bool,
    /// Bytes read so far, after decompression.
    pub(crate) bytes: u64,
    /// Why the stream ended early.
    pub(crate) damage: Option<String>,
}

impl Blocks {
    /// Reads enough to tell what the input is, and refuses what is no text.
    pub(crate) fn new(source: Source, max_line: usize) -> Result<Self, InputError> {
        let mut blocks = Self::bare(source, max_line);
        while blocks.filled < PREFIX && blocks.fill()? {}
        blocks.start = blocks.mark();
        blocks.searched = blocks.start;
        match sniff::binary(blocks.prefix()) {
            Some(what) => Err(InputError::NotText { input: blocks.source.input.clone(), what }),
            None => Ok(blocks),
        }
    }

    /// Over a stretch of an input that was looked at before.
    pub(crate) fn bare(source: Source, max_line: usize) -> Self {
        Self {
            source,
            buffer: vec![0; BLOCK + PAD],
            start: 0,
            filled: 0,
            searched: 0,
            max_line,
            skipping: false,
            ended: false,
            waits: false,
            bytes: 0,
            damage: None,
        }
    }

    /// How long the byte order mark at the start of the buffer is.
    fn mark(&self) -> usize {
        if self.buffer.get(..self.filled).unwrap_or_default().starts_with(BOM) { BOM.len() } else { 0 }
    }

    /// The input in pieces, before the first call of [`Blocks::next`], if it can be read so and has several.
    pub(crate) fn plain(&self) -> Option<(Plain, usize)> {
        let mark = self.mark();
        let plain = self.source.plain.as_ref()?.without(mark);
        (plain.pieces() > 1).then_some((plain, mark))
    }

    /// The beginning of the input, before the first call of [`Blocks::next`]: 64 KiB, or all there is.
    pub(crate) fn prefix(&self) -> &[u8] {
        let rest = self.rest();
        rest.get(..PREFIX).unwrap_or(rest)
    }

    /// Whether all of the input is in [`Blocks::prefix`].
    pub(crate) fn prefix_is_all(&self) -> bool {
        self.ended && self.rest().len() <= PREFIX
    }

    /// Whether the input may go on after its end: then [`Blocks::next`] says `None` there, keeps half a line, and may be
    /// asked again later.
    pub(crate) fn wait_for_more(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// No more is read; half a line that waited is given next.
    pub(crate) fn end_here(&mut self) {
        (self.waits, self.ended) = (false, true);
    }

    /// The next whole lines, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Piece<'_>>, InputError> {
        Ok(match self.find()? {
            None => None,
            Some(Found::TooLong) => Some(Piece::TooLong),
            Some(Found::Lines(range)) => {
                let length = range.len();
                self.buffer.get(range.start..range.end + PAD).map(|text| Piece::Lines(text, length))
            }
        })
    }

    /// The same with the buffer itself; `spare` takes its place, so that buffers can go round.
    pub(crate) fn next_owned(&mut self, mut spare: Vec<u8>) -> Result<Option<Owned>, InputError> {
        Ok(match self.find()? {
            None => None,
            Some(Found::TooLong) => Some(Owned::TooLong),
            Some(Found::Lines(range)) => {
                spare.resize(self.buffer.len(), 0);
                let rest = self.buffer.get(self.start..self.filled).unwrap_or_default();
                if let Some(start) = spare.get_mut(..rest.len()) {
                    start.copy_from_slice(rest);
                }
                self.filled -= self.start;
                self.searched = self.searched.saturating_sub(self.start);
                self.start = 0;
                Some(Owned::Lines(std::mem::replace(&mut self.buffer, spare), range))
            }
        })
    }

    fn find(&mut self) -> Result<Option<Found>, InputError> {
        loop {
            if self.skipping {
                if !self.skip()? {
                    return Ok(None);
                }
                continue;
            }
            let unsearched = self.buffer.get(self.searched..self.filled).unwrap_or_default();
            if let Some(at) = memrchr(b'\n', unsearched) {
                let lines = self.start..self.searched + at + 1;
                self.start = lines.end;
                self.searched = self.filled;
                return Ok(Some(Found::Lines(lines)));
            }
            self.searched = self.filled;
            if self.filled - self.start > self.max_line && self.drop_padding() > self.max_line {
                self.start = self.filled;
                self.skipping = true;
                return Ok(Some(Found::TooLong));
            }
            if !self.fill()? {
                if self.waits {
                    return Ok(None);
                }
                let rest = self.start..self.filled;
                self.start = self.filled;
                return Ok((!rest.is_empty()).then_some(Found::Lines(rest)));
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..self.filled).unwrap_or_default()
    }

    /// NULs and blanks before a record do not count against the cap: copytruncate leaves holes of any size. One
    /// byte of them is kept, so that a last line of nothing else is still a line. Returns the length without them.
    fn drop_padding(&mut self) -> usize {
        let padding = self.rest().iter().take_while(|&&byte| is_padding(byte)).count();
        self.start += padding.saturating_sub(1);
        self.rest().len() - padding.min(1)
    }

    /// Moves on past the LF of a line over the cap. False at the end of the input.
    fn skip(&mut self) -> Result<bool, InputError> {
        loop {
            if let Some(at) = memchr(b'\n', self.rest()) {
                self.start += at + 1;
                self.searched = self.start;
                self.skipping = false;
                return Ok(true);
            }
            self.start = self.filled;
            self.searched = self.filled;
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// Reads once. False at the end of the input, or where it is damaged.
    fn fill(&mut self) -> Result<bool, InputError> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.searched = self.searched.saturating_sub(self.start);
            self.start = 0;
        }
        if self.filled + PAD == self.buffer.len() {
            self.buffer.resize(self.filled * 2 + PAD, 0);
        }
        let end = self.buffer.len() - PAD;
        let space = self.buffer.get_mut(self.filled..end).unwrap_or_default();
        match self.source.read(space) {
            Ok(0) if self.waits => return Ok(false),
            Ok(0) => self.ended = true,
            Ok(count) => {
                self.filled += count;
                self.bytes += count as u64;
            }
            Err(error) if is_damage(&error) => {
                self.ended = true;
                self.damage = Some(error.to_string());
            }
            Err(error) => return Err(InputError::read(&self.source.input, error)),
        }
        Ok(!self.ended)
    }
}

/// What is dropped around a line: space, TAB, CR and NUL.
pub(crate) fn is_padding(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0)
}

#[cfg(test)]
mod tests {
    use std::io;

    use proptest::prelude::*;

    use super::{super::Input, *};

    /// Gives its bytes in pieces of the sizes told, over and over.
    struct Chunked(io::Cursor<Vec<u8>>, Vec<usize>, usize);

    impl Read for Chunked {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.1[self.2 % self.1.len()].clamp(1, buffer.len());
            self.2 += 1;
            self.0.read(&mut buffer[..size])
        }
    }

    /// Every line, `None` for one over the cap.
    fn lines(bytes: &[u8], chunks: &[usize], max_line: usize) -> Vec<Option<Vec<u8>>> {
        let reader = Chunked(io::Cursor::new(bytes.to_vec()), chunks.to_vec(), 0);
        let source = Source::over(&Input::Stdin, Box::new(reader)).unwrap();
        let mut blocks = Blocks::new(source, max_line).unwrap();
        let mut all = Vec::new();
        while let Some(piece) = blocks.next().unwrap() {
            match piece {
                Piece::TooLong => all.push(None),
                Piece::Lines(text, length) => {
                    let block = &text[..length];
                    for line in block.split_inclusive(|&byte| byte == b'\n') {
                        let bare = line.strip_suffix(b"\n").unwrap_or(line);
                        let bare = &bare[bare.iter().take_while(|&&byte| is_padding(byte)).count()..];
                        all.push((bare.len() <= max_line).then(|| bare.to_vec()));
                    }
                }
            }
        }
        assert_eq!(blocks.bytes, bytes.len() as u64);
        all
    }

    #[test]
    fn a_hole_larger_than_the_cap_does_not_lose_the_record_after_it() {
        let bytes = [vec![0; 3_000_000], b"{\"a\":1}\nnext".to_vec()].concat();
        assert_eq!(lines(&bytes, &[100_000], 1000), [Some(b"{\"a\":1}".to_vec()), Some(b"next".to_vec())]);
    }

    #[test]
    fn the_cap_is_exact() {
        for (length, fits) in [(999, true), (1000, true), (1001, false)] {
            let bytes = [vec![b'a'; length], b"\nb\n".to_vec()].concat();
            assert_eq!(lines(&bytes, &[4096], 1000)[0].is_some(), fits, "{length}");
            assert_eq!(lines(&bytes, &[1], 1000)[0].is_some(), fits, "{length}");
            assert_eq!(lines(&bytes, &[1], 1000)[1], Some(b"b".to_vec()));
        }
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            bytes in prop::collection::vec(prop::sample::select(b"ab{}\n\n\0 \r".to_vec()), 0..400),
            chunks in prop::collection::vec(1_usize..40, 1..6),
            max_line in 1_usize..30,
        ) {
            // Not at the very beginning, where "\n\r\r\n" is the magic number of a packet capture.
            let bytes = [b"a".as_slice(), &bytes].concat();
            prop_assert_eq!(lines(&bytes, &chunks, max_line), lines(&bytes, &[usize::MAX], max_line));
        }
    }
}
