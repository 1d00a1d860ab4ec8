//! RFC 8259, strictly and without building anything: every reader of ours walks over the text and keeps spans of it.
//!
//! serde_json stands aside here, since it refuses what the rules of the room allow: a lone surrogate in an escape,
//! and `1e400`. Bytes that are no UTF-8 pass inside strings, where they stand
//! for U+FFFD, and nowhere else. There is no limit on depth: the stack is a vector, one byte a level.

use std::borrow::Cow;

use memchr::memchr;

use super::window::{WIDTH, Window};

/// The text is not JSON from here on. Carries no more: the line is what people look at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invalid;

/// A reader of one JSON text after another.
pub(super) struct Walker<'a> {
    text: &'a [u8],
    at: usize,
    /// The closers of the objects and lists we are in.
    stack: Vec<u8>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, stack: Vec::new() }
    }

    /// How far it went.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space, not consumed.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                _ => return Some(byte),
            }
        }
        None
    }

    /// Walks over an object that starts here, with every key and value as they stand in the text.
    pub(super) fn object(&mut self, mut member: impl FnMut(&'a [u8], &'a [u8])) -> Result<(), Invalid> {
        self.expect(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            let value = self.value()?;
            member(key, value);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(Invalid),
            }
        }
    }

    /// Walks over any value and gives its text.
    pub(super) fn value(&mut self) -> Result<&'a [u8], Invalid> {
        self.peek();
        let start = self.at;
        self.stack.clear();
        loop {
            match self.peek().ok_or(Invalid)? {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    // ASCII has `{` and `}`, `[` and `]` two apart.
                    let close = open + 2;
                    if self.peek() == Some(close) {
                        self.at += 1;
                    } else {
                        self.stack.push(close);
                        if open == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'"' => drop(self.string()?),
                b'-' | b'0'..=b'9' => self.at = number_end(self.text, self.at).ok_or(Invalid)?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return Err(Invalid),
            }
            loop {
                let Some(&close) = self.stack.last() else {
                    return self.text.get(start..self.at).ok_or(Invalid);
                };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if close == b'}' {
                            self.key()?;
                        }
                        break;
                    }
                    Some(byte) if byte == close => {
                        self.at += 1;
                        self.stack.pop();
                    }
                    _ => return Err(Invalid),
                }
            }
        }
    }

    /// A key with its quotes, up to and with the colon.
    fn key(&mut self) -> Result<&'a [u8], Invalid> {
        self.peek();
        let key = self.string()?;
        self.peek();
        self.expect(b':')?;
        Ok(key)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Invalid> {
        if self.text.get(self.at) != Some(&byte) {
            return Err(Invalid);
        }
        self.at += 1;
        Ok(())
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<&'a [u8], Invalid> {
        let start = self.at;
        self.at = string_end(self.text, start).ok_or(Invalid)?;
        self.text.get(start..self.at).ok_or(Invalid)
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Invalid> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(Invalid);
        }
        self.at += word.len();
        Ok(())
    }
}

/// The end of the string that starts at `at`, after its closing quote. `None` if it is no string.
pub(super) fn string_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        // Whole windows as long as there are any, then byte by byte.
        let stops = Window::at(text, at).map(Window::string_stops);
        if stops == Some(0) {
            at += WIDTH;
            continue;
        }
        at += stops.map_or(0, |stops| stops.trailing_zeros() as usize);
        at = match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => escape_end(text, at + 1)?,
            0..0x20 => return None,
            _ => at + 1,
        };
    }
}

/// The end of an escape; `at` is after its backslash.
fn escape_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' if text.get(at + 1..at + 5)?.iter().all(u8::is_ascii_hexdigit) => Some(at + 5),
        _ => None,
    }
}

/// The end of the number that starts at `at`. `None` if it is no number.
pub(super) fn number_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + usize::from(text.get(at) == Some(&b'-'));
    at = if text.get(at) == Some(&b'0') { at + 1 } else { digits_end(text, at)? };
    if text.get(at) == Some(&b'.') {
        at = digits_end(text, at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at = digits_end(text, at + usize::from(matches!(text.get(at), Some(b'+' | b'-'))))?;
    }
    Some(at)
}

fn digits_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

/// What a string says: `raw` with its quotes, already known to be valid. `None` if it is no string. Not necessarily
/// UTF-8.
pub(super) fn string_bytes(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(match memchr(b'\\', inner) {
        None => Cow::Borrowed(inner),
        Some(_) => Cow::Owned(unescape(inner)),
    })
}

/// The same as text, with U+FFFD for what is no UTF-8.
pub(super) fn string_text(raw: &[u8]) -> Option<String> {
    string_bytes(raw).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn unescape(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rest.len());
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        let escape = rest.get(at + 1..).unwrap_or_default();
        let (char, length) = match escape.first() {
            Some(b'u') => unicode(escape),
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(&other) => (char::from(other), 1),
            None => (char::REPLACEMENT_CHARACTER, 0),
        };
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        rest = escape.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// The character of `uXXXX` or of `uD8XX\uDCXX`, and how many bytes it took. Half a pair is U+FFFD.
fn unicode(escape: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(escape.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(1).unwrap_or(0xfffd);
    if escape.get(5..7) == Some(b"\\u")
        && let Some(second) = unit(7)
        && let Some(Ok(char)) = char::decode_utf16([first, second]).next()
        && u32::from(char) > 0xffff
    {
        return (char, 11);
    }
    (char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER), 5)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_valid(text: &[u8]) -> bool {
        let mut walker = Walker::new(text);
        walker.value().is_ok() && walker.peek().is_none()
    }

    #[test]
    fn what_the_rfc_allows() {
        for text in [
            "0",
            "-0",
            "1.5e+300",
            "1e400",
            "123456789012345678901234567890",
            "true",
            "null",
            "\"\"",
            "[]",
            "{}",
            "[1,[2,[3,{}]],{\"a\":[]}]",
            r#""\ud800""#,
            r#""\\u""#,
            r#"{"a":1,"a":2}"#,
            " \t\r\n1 ",
            "\"\u{7f}\"",
        ] {
            assert!(is_valid(text.as_bytes()), "{text}");
        }
        assert!(is_valid(b"\"\xff\""));
        let depth = 200_000;
        assert!(is_valid(&[vec![b'['; depth], vec![b']'; depth]].concat()));
    }

    #[test]
    fn what_the_rfc_forbids() {
        for text in [
            "",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "NaN",
            "Infinity",
            "tru",
            "\"",
            "\"\t\"",
            r#""\x""#,
            r#""\u12g4""#,
            r#""\u12""#,
            "[",
            "[1,]",
            "[1 2]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1"#,
            "{1:2}",
            "]",
            "[}",
            "1 2",
            "'a'",
            "[1]]",
        ] {
            assert!(!is_valid(text.as_bytes()), "{text}");
        }
        assert!(!is_valid(b"\xff"));
    }

    #[test]
    fn strings_are_decoded() {
        let decode = |raw: &str| string_text(raw.as_bytes()).unwrap();
        assert_eq!(decode(r#""a\"\\\/\b\f\n\r\tz""#), "a\"\\/\u{8}\u{c}\n\r\tz");
        assert_eq!(decode(r#""\u00e9\ud83e\udd80""#), "é\u{1f980}");
        assert_eq!(decode(r#""\ud800x\udc00\ud83d\ud83d\ude00""#), "\u{fffd}x\u{fffd}\u{fffd}\u{1f600}");
        assert_eq!(string_text(b"\"\xff\""), Some("\u{fffd}".to_owned()));
        assert_eq!(string_text(b"17"), None);
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in r#"[\[\]{}:,"\\a0-9.eE+ntrufls -]{0,24}"#) {
            let serde = serde_json::from_str::<serde_json::Value>(&text);
            // The two known differences are left out.
            prop_assume!(!text.contains('e') && !text.contains('E') && !text.contains("\\u"));
            prop_assert_eq!(is_valid(text.as_bytes()), serde.is_ok(), "{}", text);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = is_valid(&bytes);
            let _ = string_text(&[b"\"".to_vec(), bytes, b"\"".to_vec()].concat());
        }
    }
}
