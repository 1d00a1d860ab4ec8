//! UTF-16 to UTF-8, for files that a Windows tool has re-saved.

use std::io::{self, Read};

/// A [`Read`] of UTF-8. Half a surrogate pair, or half a unit at the end, becomes U+FFFD.
pub(super) struct Utf16<R> {
    source: R,
    big_endian: bool,
    units: Vec<u16>,
    half: Option<u8>,
    text: Vec<u8>,
    given: usize,
    ended: bool,
}

impl<R: Read> Utf16<R> {
    /// `source` stands after the byte order mark.
    pub(super) fn new(source: R, big_endian: bool) -> Self {
        Self { source, big_endian, units: Vec::new(), half: None, text: Vec::new(), given: 0, ended: false }
    }

    fn refill(&mut self) -> io::Result<()> {
        let mut bytes = [0; 8192];
        let count = self.source.read(&mut bytes)?;
        self.ended = count == 0;
        for &byte in bytes.get(..count).unwrap_or_default() {
            match self.half.take() {
                None => self.half = Some(byte),
                Some(first) if self.big_endian => self.units.push(u16::from_be_bytes([first, byte])),
                Some(first) => self.units.push(u16::from_le_bytes([first, byte])),
            }
        }
        if self.ended && self.half.take().is_some() {
            self.units.push(0xfffd);
        }
        // The first half of a pair waits for the second.
        let waits = !self.ended && self.units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        let kept = if waits { self.units.pop() } else { None };
        self.text.clear();
        self.given = 0;
        let mut utf8 = [0; 4];
        for char in char::decode_utf16(self.units.drain(..)) {
            let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(char.encode_utf8(&mut utf8).as_bytes());
        }
        self.units.extend(kept);
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.ended {
            self.refill()?;
        }
        let mut rest = self.text.get(self.given..).unwrap_or_default();
        let count = rest.read(buffer)?;
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneByOne<'a>(&'a [u8]);

    impl Read for OneByOne<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let limit = buffer.len().min(1);
            self.0.read(&mut buffer[..limit])
        }
    }

    #[test]
    fn both_orders_in_any_pieces() {
        let text = "{\"a\":\"é\u{1f980}\"}\n";
        for big_endian in [false, true] {
            let order = if big_endian { u16::to_be_bytes } else { u16::to_le_bytes };
            let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
            let mut out = String::new();
            Utf16::new(OneByOne(&bytes), big_endian).read_to_string(&mut out).unwrap();
            assert_eq!(out, text);
        }
    }

    #[test]
    fn broken_units_become_replacement_characters() {
        let mut out = String::new();
        Utf16::new(&[0x00, 0xd8, 0x41, 0x00, 0x42][..], false).read_to_string(&mut out).unwrap();
        assert_eq!(out, "\u{fffd}A\u{fffd}");
    }
}
