//! The fast way through a line: a walk over its top level that ends once all it needs is seen.
//!
//! The scanner reads what Suricata writes. Whatever else it meets, it says `Odd`, and the line goes through
//! the full parse of `event.rs`: an escape in a key or in a value that is needed, a key given twice, a needed value
//! that is no string, a text that breaks off, white space in unusual places. So it never has to be right about what
//! is rare, only to notice it.
//!
//! Up to the point where it stops it checks as strictly as the full parse. Beyond it only two things are looked at:
//! that the line ends in `}`, and that no other JSON text follows the object in it. A line that is damaged further on is therefore
//! kept, and a key repeated further on is missed; `Options::strict` turns the scanner off.

#![expect(clippy::inline_always, reason = "the walk is one loop; split up it takes a fifth longer")]

use super::{
    json::{Walker, number_end, string_end},
    window::{WIDTH, Window, line_stops},
};

/// A part of the block: where it starts and ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    fn is_set(self) -> bool {
        self.end > 0
    }

    /// What the span holds, if it was found.
    pub(super) fn get(self, text: &[u8]) -> Option<&[u8]> {
        if self.is_set() { text.get(self.start..self.end) } else { None }
    }
}

/// Where the needed values are: strings without their quotes (there is no escape in them), numbers as they stand.
/// Unset where the key is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) is_alert: bool,
    pub(super) event_type: Span,
    pub(super) src_ip: Span,
    pub(super) dest_ip: Span,
    pub(super) dest_port: Span,
    pub(super) proto: Span,
    pub(super) timestamp: Span,
    has_alert: bool,
    pub(super) alert: AlertSpans,
    /// Where the walk ended; the rest of the line is not read.
    pub(super) stopped: usize,
    /// The walk ended at the end of the object.
    pub(super) is_closed: bool,
}

/// The values inside `alert`, as they stand: strings with their quotes, since they may hold escapes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AlertSpans {
    pub(super) severity: Span,
    pub(super) signature: Span,
    pub(super) signature_id: Span,
}

/// Keys to look for before a walk may end, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs(u16);

impl Needs {
    const TYPE: u16 = 1;
    const SRC: u16 = 2;
    const DEST: u16 = 4;
    const TIME: u16 = 8;
    const PORT: u16 = 16;
    const PROTO: u16 = 32;
    const ALERT: u16 = 64;

    /// The addresses and the type always; more with context; the time and the severity for a filter on them.
    pub(super) fn new(context: bool, time: bool, severity: bool) -> Self {
        let context_bits = if context { Self::TIME | Self::PORT | Self::PROTO | Self::ALERT } else { 0 };
        let filters = if time { Self::TIME } else { 0 } | if severity { Self::ALERT } else { 0 };
        Self(Self::TYPE | Self::SRC | Self::DEST | context_bits | filters)
    }
}

/// The line is not for the scanner.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Odd;

/// Walks over the line that starts at `at` in `text`. There must be more text after the line than a window holds,
/// else the line is odd.
#[inline]
pub(super) fn scan(text: &[u8], at: usize, needs: Needs) -> Result<Found, Odd> {
    let mut scanner = Scanner { text, at, missing: needs.0, found: Found::default() };
    scanner.walk()?;
    scanner.found.stopped = scanner.at;
    Ok(scanner.found)
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    missing: u16,
    found: Found,
}

impl Scanner<'_> {
    #[inline(always)]
    fn walk(&mut self) -> Result<(), Odd> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            self.found.is_closed = true;
            return Ok(());
        }
        loop {
            let key = self.plain_string()?;
            self.expect(b':')?;
            self.blank();
            self.member(key)?;
            if self.missing == 0 {
                return Ok(());
            }
            if self.next_member()? {
                self.found.is_closed = true;
                return Ok(());
            }
        }
    }

    /// After a member: true at the end of the object, false before the next key.
    #[inline(always)]
    fn next_member(&mut self) -> Result<bool, Odd> {
        match self.peek()? {
            b',' => {
                self.at += 1;
                self.blank();
                Ok(false)
            }
            b'}' => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(Odd),
        }
    }

    #[inline(always)]
    fn member(&mut self, key: Span) -> Result<(), Odd> {
        match key.of(self.text) {
            b"event_type" => {
                let value = self.needed(Needs::TYPE)?;
                self.found.event_type = value;
                self.found.is_alert = value.of(self.text) == b"alert";
                if !self.found.is_alert {
                    self.missing &= !Needs::ALERT;
                }
            }
            b"src_ip" => self.found.src_ip = self.needed(Needs::SRC)?,
            b"dest_ip" => self.found.dest_ip = self.needed(Needs::DEST)?,
            b"timestamp" => {
                refuse_second(self.found.timestamp)?;
                self.found.timestamp = self.needed(Needs::TIME)?;
            }
            b"proto" => {
                refuse_second(self.found.proto)?;
                self.found.proto = self.needed(Needs::PROTO)?;
            }
            b"dest_port" => {
                refuse_second(self.found.dest_port)?;
                self.found.dest_port = self.digits()?;
                self.missing &= !Needs::PORT;
            }
            b"alert" if self.missing & Needs::ALERT != 0 || self.found.has_alert => self.alert()?,
            _ => self.skip()?,
        }
        Ok(())
    }

    /// A plain string, the value of a key that may come once.
    #[inline(always)]
    fn needed(&mut self, bit: u16) -> Result<Span, Odd> {
        let already = match bit {
            Needs::TYPE => self.found.event_type,
            Needs::SRC => self.found.src_ip,
            Needs::DEST => self.found.dest_ip,
            _ => Span::default(),
        };
        refuse_second(already)?;
        self.missing &= !bit;
        self.plain_string()
    }

    /// Inside `alert`. Ends early only if the whole walk may.
    fn alert(&mut self) -> Result<(), Odd> {
        if self.found.has_alert {
            return Err(Odd);
        }
        self.found.has_alert = true;
        self.missing &= !Needs::ALERT;
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        let mut left = 3;
        loop {
            let key = self.plain_string()?;
            self.expect(b':')?;
            self.blank();
            let start = self.at;
            self.skip()?;
            let value = Span { start, end: self.at };
            let known = match key.of(self.text) {
                b"severity" => Some(&mut self.found.alert.severity),
                b"signature" => Some(&mut self.found.alert.signature),
                b"signature_id" => Some(&mut self.found.alert.signature_id),
                _ => None,
            };
            if let Some(slot) = known {
                refuse_second(*slot)?;
                *slot = value;
                left -= 1;
                if left == 0 && self.missing == 0 {
                    return Ok(());
                }
            }
            if self.next_member()? {
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn peek(&self) -> Result<u8, Odd> {
        self.text.get(self.at).copied().ok_or(Odd)
    }

    #[inline(always)]
    fn expect(&mut self, byte: u8) -> Result<(), Odd> {
        if self.peek()? != byte {
            return Err(Odd);
        }
        self.at += 1;
        Ok(())
    }

    /// The one space that Python's `json.dumps` puts after a comma and a colon.
    #[inline(always)]
    fn blank(&mut self) {
        self.at += usize::from(self.text.get(self.at) == Some(&b' '));
    }

    /// A string without escapes; the span is what is between the quotes.
    #[inline(always)]
    fn plain_string(&mut self) -> Result<Span, Odd> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let stops = Window::at(self.text, self.at).ok_or(Odd)?.string_stops();
            if stops == 0 {
                self.at += WIDTH;
                continue;
            }
            let end = self.at + stops.trailing_zeros() as usize;
            self.at = end + 1;
            return if self.text.get(end) == Some(&b'"') { Ok(Span { start, end }) } else { Err(Odd) };
        }
    }

    /// A number that is a port: digits alone.
    #[inline(always)]
    fn digits(&mut self) -> Result<Span, Odd> {
        let start = self.at;
        if !self.peek()?.is_ascii_digit() {
            return Err(Odd);
        }
        self.number()?;
        Ok(Span { start, end: self.at })
    }

    /// A number, most often a whole one of few digits.
    #[inline(always)]
    fn number(&mut self) -> Result<(), Odd> {
        let start = self.at;
        let mut end = start;
        loop {
            let stops = Window::at(self.text, end).ok_or(Odd)?.non_digits();
            if stops != 0 {
                end += stops.trailing_zeros() as usize;
                break;
            }
            end += WIDTH;
        }
        let is_plain = end > start
            && self.text.get(start) != Some(&b'0')
            && matches!(self.text.get(end), Some(b',' | b'}'));
        self.at = if is_plain { end } else { number_end(self.text, start).ok_or(Odd)? };
        Ok(())
    }

    /// Any value, strictly.
    #[inline(always)]
    fn skip(&mut self) -> Result<(), Odd> {
        self.at = match self.peek()? {
            b'"' => return self.any_string(),
            b'0'..=b'9' | b'-' => return self.number(),
            b'{' | b'[' | b't' | b'f' | b'n' => self.nested()?,
            _ => return Err(Odd),
        };
        Ok(())
    }

    /// A string that may hold escapes.
    #[inline(always)]
    fn any_string(&mut self) -> Result<(), Odd> {
        let start = self.at;
        if self.plain_string().is_err() {
            self.at = string_end(self.text, start).ok_or(Odd)?;
        }
        Ok(())
    }

    /// An object, a list or a word, up to the end of the line at most.
    #[cold]
    fn nested(&self) -> Result<usize, Odd> {
        let value = Walker::new(line_from(self.text, self.at)).value().map_err(|_| Odd)?;
        Ok(self.at + value.len())
    }
}

fn refuse_second(already: Span) -> Result<(), Odd> {
    if already.is_set() { Err(Odd) } else { Ok(()) }
}

/// Places in a line where another text might begin that are looked at one by one; beyond, the line is walked.
const DOUBTS: u32 = 8;

/// Finds the LF that ends the line from `start` on, from a place in it where nothing more is needed. Odd where the text
/// ends first, or where another JSON text follows the object.
#[inline]
pub(super) fn line_end(text: &[u8], start: usize, mut at: usize) -> Result<usize, Odd> {
    loop {
        let stops = line_stops(text, at).ok_or(Odd)?;
        if stops != 0 {
            let stop = at + stops.trailing_zeros() as usize;
            return if text.get(stop) == Some(&b'\n') {
                Ok(stop)
            } else {
                doubtful_line_end(text, start, at)
            };
        }
        at += 64;
    }
}

/// The same where something stands after a brace.
#[cold]
fn doubtful_line_end(text: &[u8], start: usize, mut at: usize) -> Result<usize, Odd> {
    let mut doubts = 0;
    loop {
        let mut stops = line_stops(text, at).ok_or(Odd)?;
        while stops != 0 {
            let stop = at + stops.trailing_zeros() as usize;
            if text.get(stop) == Some(&b'\n') {
                return Ok(stop);
            }
            if may_begin(text, stop) {
                doubts += 1;
                if doubts > DOUBTS {
                    return only_object(text, start);
                }
                if begins_texts(text, stop) {
                    return Err(Odd);
                }
            }
            stops &= stops - 1;
        }
        at += 64;
    }
}

/// Whether a JSON text may begin at `at`, or after the blanks there.
fn may_begin(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let next = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    matches!(next, Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
}

/// Whether the line is JSON texts and nothing else from `at` on: so it is where the object ended here and others follow.
/// Where the brace stands in a string, which looks just the same, it breaks off within a few bytes.
fn begins_texts(text: &[u8], at: usize) -> bool {
    let mut walker = Walker::new(line_from(text, at));
    while walker.peek().is_some() {
        if walker.value().is_err() {
            return false;
        }
    }
    true
}

/// The end of the line from `start` on, if it is one object and no more. What breaks off further on is no second object.
fn only_object(text: &[u8], start: usize) -> Result<usize, Odd> {
    let line = line_from(text, start);
    let mut walker = Walker::new(line);
    let is_alone = walker.value().is_err() || walker.peek().is_none();
    if is_alone { Ok(start + line.len()) } else { Err(Odd) }
}

fn line_from(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default()
}
