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
    detect::trim_end,
    json::{Walker, number_end, string_end},
    layout::{Layout, Member, Place},
    window::{Job, Lanes, STRING, WIDTH, Window},
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
/// else the line is odd. What `layout` knows makes it quicker, never different.
#[inline(always)]
pub(super) fn scan<L: Lanes>(
    lanes: L,
    text: &[u8],
    at: usize,
    needs: Needs,
    layout: &mut Layout,
) -> Result<Found, Odd> {
    let mut scanner =
        Scanner { cursor: Cursor { lanes, text, at }, missing: needs.0, found: Found::default() };
    scanner.walk(layout)?;
    scanner.found.stopped = scanner.cursor.at;
    Ok(scanner.found)
}

/// The same for one line, of which nothing is foreseen.
pub(super) struct ScanOnce<'a>(pub(super) &'a [u8], pub(super) Needs);

impl Job for ScanOnce<'_> {
    type Output = Result<Found, Odd>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Self::Output {
        scan(lanes, self.0, 0, self.1, &mut Layout::default())
    }
}

struct Scanner<'a, L> {
    cursor: Cursor<'a, L>,
    missing: u16,
    found: Found,
}

impl<L: Lanes> Scanner<'_, L> {
    #[inline(always)]
    fn walk(&mut self, layout: &mut Layout) -> Result<(), Odd> {
        let mut is_first = true;
        for place in &mut layout.places {
            if self.step(is_first, place)? {
                return Ok(());
            }
            is_first = false;
        }
        while !self.step(false, &mut Place::default())? {}
        Ok(())
    }

    /// From the brace or the comma before a key over its value. True where the walk may end.
    #[inline(always)]
    fn step(&mut self, is_first: bool, place: &mut Place) -> Result<bool, Odd> {
        let window = Window::at(self.cursor.text, self.cursor.at).ok_or(Odd)?;
        let (at, member) = match place.of(window) {
            Some((length, member)) => (self.cursor.at + length, Some(member)),
            None => key(self.cursor, is_first, place)?,
        };
        self.cursor.at = at;
        let Some(member) = member else {
            self.found.is_closed = true;
            return Ok(true);
        };
        self.member(member)?;
        Ok(self.missing == 0)
    }

    #[inline(always)]
    fn member(&mut self, member: Member) -> Result<(), Odd> {
        match member {
            Member::Type => {
                refuse_second(self.found.event_type)?;
                let value = self.needed(Needs::TYPE)?;
                self.found.event_type = value;
                self.found.is_alert = value.of(self.cursor.text) == b"alert";
                if !self.found.is_alert {
                    self.missing &= !Needs::ALERT;
                }
            }
            Member::Src => {
                refuse_second(self.found.src_ip)?;
                self.found.src_ip = self.needed(Needs::SRC)?;
            }
            Member::Dest => {
                refuse_second(self.found.dest_ip)?;
                self.found.dest_ip = self.needed(Needs::DEST)?;
            }
            Member::Time => {
                refuse_second(self.found.timestamp)?;
                self.found.timestamp = self.needed(Needs::TIME)?;
            }
            Member::Proto => {
                refuse_second(self.found.proto)?;
                self.found.proto = self.needed(Needs::PROTO)?;
            }
            Member::Port => {
                refuse_second(self.found.dest_port)?;
                self.found.dest_port = self.cursor.digits()?;
                self.missing &= !Needs::PORT;
            }
            Member::Alert if self.missing & Needs::ALERT != 0 || self.found.has_alert => {
                if self.found.has_alert {
                    return Err(Odd);
                }
                self.found.has_alert = true;
                self.missing &= !Needs::ALERT;
                (self.cursor.at, self.found.alert) = alert(self.cursor, self.missing == 0)?;
            }
            Member::Text => self.cursor.text_end()?,
            Member::Alert | Member::Value => self.cursor.skip()?,
        }
        Ok(())
    }

    /// The rest of a plain string, the value of a key that may come once.
    #[inline(always)]
    fn needed(&mut self, bit: u16) -> Result<Span, Odd> {
        self.missing &= !bit;
        self.cursor.plain_end()
    }
}

/// Reads a key up to its value, within the quotes where that is a string, and remembers it in `place`. No member at the
/// end of the object. What is rarer than a key foreseen takes the cursor by value, so that the walk keeps its own in
/// registers.
#[inline(never)]
fn key<L: Lanes>(
    mut cursor: Cursor<'_, L>,
    is_first: bool,
    place: &mut Place,
) -> Result<(usize, Option<Member>), Odd> {
    let start = cursor.at;
    if is_first {
        cursor.expect(b'{')?;
        if cursor.peek()? == b'}' {
            return Ok((cursor.at + 1, None));
        }
    } else if cursor.next_member()? {
        return Ok((cursor.at, None));
    }
    let key = cursor.plain_string()?;
    cursor.expect(b':')?;
    cursor.blank();
    let is_string = cursor.peek()? == b'"';
    cursor.at += usize::from(is_string);
    let member = Member::of(key.of(cursor.text), is_string).ok_or(Odd)?;
    *place = Place::new(cursor.text.get(start..cursor.at).unwrap_or_default(), member);
    Ok((cursor.at, Some(member)))
}

/// Inside `alert`. Ends early only if the whole walk may.
#[inline(never)]
fn alert<L: Lanes>(mut cursor: Cursor<'_, L>, may_end: bool) -> Result<(usize, AlertSpans), Odd> {
    let mut alert = AlertSpans::default();
    cursor.expect(b'{')?;
    if cursor.peek()? == b'}' {
        return Ok((cursor.at + 1, alert));
    }
    let mut left = 3;
    loop {
        let key = cursor.plain_string()?;
        cursor.expect(b':')?;
        cursor.blank();
        let start = cursor.at;
        cursor.skip()?;
        let value = Span { start, end: cursor.at };
        let known = match key.of(cursor.text) {
            b"severity" => Some(&mut alert.severity),
            b"signature" => Some(&mut alert.signature),
            b"signature_id" => Some(&mut alert.signature_id),
            _ => None,
        };
        if let Some(slot) = known {
            refuse_second(*slot)?;
            *slot = value;
            left -= 1;
            if left == 0 && may_end {
                return Ok((cursor.at, alert));
            }
        }
        if cursor.next_member()? {
            return Ok((cursor.at, alert));
        }
    }
}

#[derive(Clone, Copy)]
struct Cursor<'a, L> {
    lanes: L,
    text: &'a [u8],
    at: usize,
}

impl<L: Lanes> Cursor<'_, L> {
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
        self.plain_end()
    }

    /// The same from behind the opening quote on.
    #[inline(always)]
    fn plain_end(&mut self) -> Result<Span, Odd> {
        let start = self.at;
        let mut rest = self.text.get(start..).ok_or(Odd)?;
        while let Some(bytes) = rest.first_chunk::<STRING>() {
            let stops = self.lanes.string_stops(bytes);
            if stops != 0 {
                let place = stops.trailing_zeros() as usize;
                let end = self.text.len() - rest.len() + place;
                self.at = end + 1;
                return if bytes.get(place) == Some(&b'"') { Ok(Span { start, end }) } else { Err(Odd) };
            }
            rest = rest.get(STRING..).ok_or(Odd)?;
        }
        Err(Odd)
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
        let rest = self.text.get(start..).ok_or(Odd)?;
        let stops = Window::at(rest, 0).ok_or(Odd)?.non_digits();
        let length = stops.trailing_zeros() as usize;
        let is_plain = (1..WIDTH).contains(&length)
            && rest.first() != Some(&b'0')
            && matches!(rest.get(length), Some(b',' | b'}'));
        self.at = if is_plain { start + length } else { number_end(self.text, start).ok_or(Odd)? };
        Ok(())
    }

    /// Any value, strictly.
    #[inline(always)]
    fn skip(&mut self) -> Result<(), Odd> {
        self.at = match self.peek()? {
            b'"' => return self.any_string(),
            b'0'..=b'9' | b'-' => return self.number(),
            b'{' | b'[' | b't' | b'f' | b'n' => nested(self.text, self.at)?,
            _ => return Err(Odd),
        };
        Ok(())
    }

    /// A string that may hold escapes.
    #[inline(always)]
    fn any_string(&mut self) -> Result<(), Odd> {
        self.expect(b'"')?;
        self.text_end()
    }

    /// The same from behind the opening quote on.
    #[inline(always)]
    fn text_end(&mut self) -> Result<(), Odd> {
        let start = self.at;
        if self.plain_end().is_err() {
            self.at = string_end(self.text, start - 1).ok_or(Odd)?;
        }
        Ok(())
    }
}

/// The end of an object, a list or a word, up to the end of the line at most.
#[cold]
fn nested(text: &[u8], at: usize) -> Result<usize, Odd> {
    let value = Walker::new(line_from(text, at)).value().map_err(|_| Odd)?;
    Ok(at + value.len())
}

fn refuse_second(already: Span) -> Result<(), Odd> {
    if already.is_set() { Err(Odd) } else { Ok(()) }
}

/// Places in a line where another text might begin that are looked at one by one; beyond, the line is walked.
const DOUBTS: u32 = 8;

/// The LF that ends a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineEnd {
    pub(super) end: usize,
    /// Something stands after a brace before it.
    pub(super) is_doubtful: bool,
}

/// Finds the LF that ends the line, from a place in it on where nothing more is needed. Odd where the text ends first.
#[inline(always)]
pub(super) fn line_end<L: Lanes>(lanes: L, text: &[u8], at: usize) -> Result<LineEnd, Odd> {
    let mut rest = at.checked_sub(1).and_then(|before| text.get(before..)).ok_or(Odd)?;
    while let Some(bytes) = rest.first_chunk::<65>() {
        let stops = lanes.line_stops(bytes);
        if stops != 0 {
            let place = 1 + stops.trailing_zeros() as usize;
            let end = text.len() - rest.len() + place;
            if bytes.get(place) == Some(&b'\n') {
                return Ok(LineEnd { end, is_doubtful: false });
            }
            return doubtful_line_end(text, end);
        }
        rest = rest.get(64..).ok_or(Odd)?;
    }
    Err(Odd)
}

#[cold]
fn doubtful_line_end(text: &[u8], at: usize) -> Result<LineEnd, Odd> {
    let end = at + memchr::memchr(b'\n', text.get(at..).unwrap_or_default()).ok_or(Odd)?;
    Ok(LineEnd { end, is_doubtful: true })
}

#[inline(always)]
fn line_stops<L: Lanes>(lanes: L, text: &[u8], at: usize) -> Result<u64, Odd> {
    let bytes = at.checked_sub(1).and_then(|before| text.get(before..)).and_then(<[u8]>::first_chunk);
    bytes.map(|bytes| lanes.line_stops(bytes)).ok_or(Odd)
}

/// Whether no other JSON text follows the object of the line from `start` to `end`, looked at from `at` on, a place in it
/// where nothing more is needed.
#[inline(never)]
pub(super) fn is_alone<L: Lanes>(lanes: L, text: &[u8], start: usize, mut at: usize, end: usize) -> bool {
    let mut doubts = 0;
    loop {
        let Ok(mut stops) = line_stops(lanes, text, at) else { return false };
        while stops != 0 {
            let stop = at + stops.trailing_zeros() as usize;
            if stop >= end {
                return true;
            }
            if may_begin(text, stop) {
                doubts += 1;
                if doubts > DOUBTS {
                    return only_object(text, start);
                }
                if begins_texts(text, stop) {
                    return false;
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

/// Whether the line from `start` on is one object and no more. What breaks off further on is no second object.
fn only_object(text: &[u8], start: usize) -> bool {
    let mut walker = Walker::new(line_from(text, start));
    walker.value().is_err() || walker.peek().is_none()
}

/// The line from `at` on, without what is dropped behind one.
fn line_from(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    trim_end(rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default())
}
