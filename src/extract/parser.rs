//! Turns blocks of lines into batches: the fast scanner where it can, the full parse where it must.

#![expect(clippy::inline_always, reason = "compiled for the processor's lanes with the scanner")]

use std::net::IpAddr;

use super::{
    Options, address,
    batch::{Batch, NO_PROTO, NO_TIME, NONE, Record},
    counts::MAX_PLACES,
    detect::{trim_end, trim_start},
    event::{self, Event, Line},
    json::{Invalid, string_bytes},
    layout::Layout,
    list::{self, Entry},
    own,
    recent::{Recent, Slot, TextKey},
    scan::{Found, LineEnd, Needs, Span, is_alone, line_end, scan},
    state::NO_SEVERITY,
    time::Clock,
    window::{Job, Lanes, widest},
};

/// How the lines of an input are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Eve,
    List,
    Own,
}

/// Reads lines. One for each thread; it remembers recent addresses.
pub(super) struct Parser<'o> {
    options: &'o Options,
    reading: Reading,
    since_ms: Option<i64>,
    needs: Needs,
    /// No filter and no context.
    is_bare: bool,
    clock: Clock,
    layout: Layout,
    pub(super) recent: Recent,
    pub(super) batch: Batch,
}

/// The values of an event that decide and are kept, as text without escapes.
struct Facts<'a> {
    is_alert: bool,
    event_type: Option<&'a [u8]>,
    timestamp: Option<&'a [u8]>,
    proto: Option<&'a [u8]>,
    /// Raw, as it stands.
    port: Option<&'a [u8]>,
    severity: Option<&'a [u8]>,
    signature: Option<&'a [u8]>,
    signature_id: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
/// What the line says under `src_ip` or `dest_ip`.
enum Value<'a> {
    Missing,
    /// Not a string.
    Other,
    /// With its key, if it has one.
    Text(&'a [u8], Option<TextKey>),
}

impl<'a> Value<'a> {
    /// From the text of a value, if it has one, and the value as it stands.
    fn new(text: Option<&'a [u8]>, raw: Option<&[u8]>) -> Self {
        match (text, raw) {
            (Some(text), _) => Self::Text(text, TextKey::of(text)),
            (None, Some(_)) => Self::Other,
            (None, None) => Self::Missing,
        }
    }
}

/// Lines of eve.json for the scanner.
struct EveLines<'p, 'o, 't> {
    parser: &'p mut Parser<'o>,
    text: &'t [u8],
    length: usize,
}

impl Job for EveLines<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let mut at = 0;
        while at < self.length {
            at = match self.parser.fast_line(lanes, self.text, at, self.length) {
                Some(next) => next,
                None => self.parser.slow_line(self.text, at, self.length),
            };
        }
    }
}

impl<'o> Parser<'o> {
    pub(super) fn new(options: &'o Options, reading: Reading) -> Self {
        let since_ms = options.since.map(jiff::Timestamp::as_millisecond);
        Self {
            options,
            reading,
            since_ms,
            needs: Needs::new(options.context, since_ms.is_some(), options.severity.is_some()),
            is_bare: !options.context
                && options.event_types.is_empty()
                && options.severity.is_none()
                && since_ms.is_none(),
            clock: Clock::default(),
            layout: Layout::default(),
            recent: Recent::new(),
            batch: Batch::default(),
        }
    }

    /// Another input begins.
    pub(super) fn begin(&mut self, reading: Reading) {
        self.reading = reading;
    }

    /// Reads the lines in the first `length` bytes of `text`; what follows is room for windows. Only the last line of
    /// an input may lack its LF.
    pub(super) fn block(&mut self, text: &[u8], length: usize) {
        let is_fast =
            self.reading == Reading::Eve && !self.options.strict && self.options.event_path.is_none();
        if is_fast {
            return widest(EveLines { parser: self, text, length });
        }
        let mut at = 0;
        while at < length {
            at = self.slow_line(text, at, length);
        }
    }

    /// A line over the cap, skipped by the reader.
    pub(super) fn too_long(&mut self) {
        self.batch.counts.lines += 1;
        self.batch.counts.too_long += 1;
        self.malformed(true);
    }

    /// Reads the line at `at` if it is one for the scanner, and returns where the next one starts.
    #[inline(always)]
    fn fast_line<L: Lanes>(&mut self, lanes: L, text: &[u8], at: usize, length: usize) -> Option<usize> {
        let found = scan(lanes, text, at, self.needs, &mut self.layout).ok()?;
        let [src, dest] = [self.sought(text, found.src_ip), self.sought(text, found.dest_ip)];
        let LineEnd { end, is_doubtful } = line_end(lanes, text, found.stopped).ok()?;
        if is_doubtful && !is_alone(lanes, text, at, found.stopped, end) {
            return None;
        }
        let body = trim_end(text.get(at..end).unwrap_or_default());
        let is_whole =
            if found.is_closed { at + body.len() == found.stopped } else { body.last() == Some(&b'}') };
        if end >= length || end - at > self.options.max_line || !is_whole {
            return None;
        }
        self.batch.counts.lines += 1;
        if self.is_bare {
            self.bare(found.is_alert, src, dest);
        } else {
            self.found(text, &found, src, dest);
        }
        Some(end + 1)
    }

    /// What is found under an address's key, which is looked up soon.
    #[inline(always)]
    fn sought<'t>(&self, text: &'t [u8], span: Span) -> Value<'t> {
        let Some(value) = span.get(text) else { return Value::Missing };
        let key = TextKey::at(text, span.start, value.len());
        if let Some(key) = key {
            self.recent.prefetch(key);
        }
        Value::Text(value, key)
    }

    #[cold]
    fn slow_line(&mut self, text: &[u8], at: usize, length: usize) -> usize {
        let rest = text.get(at..length).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest);
        let line = trim_start(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
        self.batch.counts.unterminated += u64::from(end.is_none());
        if line.len() > self.options.max_line {
            self.too_long();
        } else {
            self.line(trim_end(line), end.is_some());
        }
        end.map_or(length, |end| at + end + 1)
    }

    fn line(&mut self, line: &[u8], is_whole: bool) {
        self.batch.counts.lines += 1;
        if line.is_empty() {
            self.batch.counts.blank += 1;
            return;
        }
        self.batch.counts.non_utf8 += u64::from(std::str::from_utf8(line).is_err());
        match self.reading {
            Reading::Eve => self.eve_line(line, is_whole),
            Reading::List => self.list_line(line, is_whole),
            Reading::Own => self.own_line(line, is_whole),
        }
    }

    fn malformed(&mut self, is_whole: bool) {
        self.batch.counts.malformed += 1;
        self.batch.counts.cut += u64::from(!is_whole);
        if self.batch.malformed.len() < MAX_PLACES {
            self.batch.malformed.push(self.batch.counts.lines);
        }
    }

    fn eve_line(&mut self, line: &[u8], is_whole: bool) {
        if let Some(path) = &self.options.event_path {
            match path.parse_line(line, |found| self.events(found)) {
                Ok(not_object) => self.batch.counts.not_object += not_object,
                Err(Invalid) => self.malformed(is_whole),
            }
            return;
        }
        match event::parse_line(line) {
            Ok(found) => self.events(Some(&found)),
            Err(Invalid) => self.malformed(is_whole),
        }
    }

    /// The events of a line; where there is none at the place told, an event without anything.
    fn events(&mut self, found: Option<&Line<'_>>) {
        let Some(found) = found else { return self.event(&Event::default()) };
        self.batch.counts.not_object += found.not_object;
        for event in found.first.iter().chain(&found.more) {
            self.event(event);
        }
    }

    fn list_line(&mut self, line: &[u8], is_whole: bool) {
        match list::read(line) {
            Entry::Address(ip) => {
                self.batch.counts.entries += 1;
                self.batch.add(ip, None);
            }
            Entry::Comment => self.batch.counts.comments += 1,
            Entry::Network => {
                self.batch.counts.networks += 1;
                self.malformed(is_whole);
            }
            Entry::Bad => self.malformed(is_whole),
        }
    }

    fn own_line(&mut self, line: &[u8], is_whole: bool) {
        let Ok(records) = own::parse_line(line, self.options.context) else {
            return self.malformed(is_whole);
        };
        for record in records {
            let Some(ip) = record.ip else {
                self.batch.counts.bad_ip += 1;
                continue;
            };
            self.batch.counts.entries += 1;
            let number = self.batch.add(ip, None);
            self.batch.seen.extend(record.seen.map(|seen| (number, seen)));
        }
    }

    /// An event from the scanner, of which nothing but the addresses is wanted.
    #[inline(always)]
    fn bare(&mut self, is_alert: bool, src: Value<'_>, dest: Value<'_>) {
        self.batch.counts.events += 1;
        self.batch.counts.alerts += u64::from(is_alert);
        if matches!((src, dest), (Value::Missing, Value::Missing)) {
            self.batch.counts.no_ip_key += 1;
            return;
        }
        let (src, dest) = (self.address(src), self.address(dest));
        self.batch.counts.with_ip += u64::from(src != NONE || dest != NONE);
    }

    /// An event from the scanner.
    #[inline]
    fn found(&mut self, text: &[u8], found: &Found, src: Value<'_>, dest: Value<'_>) {
        let facts = Facts {
            is_alert: found.is_alert,
            event_type: found.event_type.get(text),
            timestamp: found.timestamp.get(text),
            proto: found.proto.get(text),
            port: found.dest_port.get(text),
            severity: found.alert.severity.get(text),
            signature: found.alert.signature.get(text),
            signature_id: found.alert.signature_id.get(text),
        };
        self.facts(&facts, src, dest);
    }

    /// An event from the full parse.
    fn event(&mut self, event: &Event<'_>) {
        let [event_type, timestamp, proto, src, dest] =
            [event.event_type, event.timestamp, event.proto, event.src_ip, event.dest_ip]
                .map(|raw| raw.and_then(string_bytes));
        let facts = Facts {
            is_alert: event_type.as_deref() == Some(b"alert"),
            event_type: event_type.as_deref(),
            timestamp: timestamp.as_deref(),
            proto: proto.as_deref(),
            port: event.dest_port,
            severity: event.alert.severity,
            signature: event.alert.signature,
            signature_id: event.alert.signature_id,
        };
        let src = Value::new(src.as_deref(), event.src_ip);
        self.facts(&facts, src, Value::new(dest.as_deref(), event.dest_ip));
    }

    #[inline]
    fn facts(&mut self, facts: &Facts<'_>, src: Value<'_>, dest: Value<'_>) {
        let counts = &mut self.batch.counts;
        counts.events += 1;
        counts.alerts += u64::from(facts.is_alert);
        let is_filtered = self.options.severity.is_some() || self.since_ms.is_some();
        let severity = if facts.is_alert && (is_filtered || self.options.context) {
            facts.severity.and_then(event::unsigned).and_then(|value| u8::try_from(value).ok())
        } else {
            None
        };
        let time = if self.options.context || self.since_ms.is_some() {
            facts.timestamp.and_then(|text| self.clock.parse_ms(text))
        } else {
            None
        };
        if !self.passes(facts, severity, time) {
            self.batch.counts.filtered += 1;
            return;
        }
        if matches!((src, dest), (Value::Missing, Value::Missing)) {
            self.batch.counts.no_ip_key += 1;
            return;
        }
        let (src, dest) = (self.address(src), self.address(dest));
        self.batch.counts.with_ip += u64::from(src != NONE || dest != NONE);
        if self.options.context && (src != NONE || dest != NONE) {
            self.record(facts, src, dest, severity, time);
        }
    }

    fn record(&mut self, facts: &Facts<'_>, src: u32, dest: u32, severity: Option<u8>, time: Option<i64>) {
        let severity = severity.unwrap_or(NO_SEVERITY);
        let signature = match facts.signature {
            Some(name) if facts.is_alert && name.first() == Some(&b'"') => {
                self.batch.signature(facts.signature_id.unwrap_or_default(), name, severity)
            }
            _ => NONE,
        };
        let record = Record {
            time: time.unwrap_or(NO_TIME),
            src,
            dest,
            signature,
            port: facts.port.and_then(event::unsigned).and_then(|port| u16::try_from(port).ok()),
            proto: facts.proto.map_or(NO_PROTO, |name| self.batch.proto(name)),
            severity,
            is_alert: facts.is_alert,
        };
        self.batch.records.push(record);
    }

    /// Whether no filter leaves the event out. One without a readable time passes `since`: in doubt it is looked at.
    #[inline]
    fn passes(&self, facts: &Facts<'_>, severity: Option<u8>, time: Option<i64>) -> bool {
        let types = &self.options.event_types;
        let is_of_type = |name: &[u8]| types.iter().any(|wanted| wanted.as_bytes() == name);
        let type_passes = types.is_empty() || facts.event_type.is_some_and(is_of_type);
        let severity_passes = (self.options.severity)
            .is_none_or(|most| facts.is_alert && severity.is_some_and(|value| value <= most));
        let time_passes = self.since_ms.is_none_or(|since| time.is_none_or(|time| time >= since));
        type_passes && severity_passes && time_passes
    }

    /// The number of an address, [`NONE`] where there is none.
    #[inline(always)]
    fn address(&mut self, value: Value<'_>) -> u32 {
        match value {
            Value::Text(text, Some(key)) => match self.recent.find(key) {
                (_, Some(number)) => number,
                (slot, None) => self.fresh_v4(text, key, slot),
            },
            Value::Text(text, None) => self.other_address(text),
            Value::Missing => NONE,
            Value::Other => self.bad_address(),
        }
    }

    #[inline(never)]
    fn fresh_v4(&mut self, text: &[u8], key: TextKey, slot: Slot) -> u32 {
        let Some(ip) = key.v4(text.len()) else { return self.bad_address() };
        let number = self.batch.add(IpAddr::V4(ip.into()), Some(slot));
        self.recent.put(slot, key, number);
        number
    }

    /// An address of other characters is an IPv6 one.
    #[inline(never)]
    fn other_address(&mut self, text: &[u8]) -> u32 {
        let Some(ip @ IpAddr::V6(v6)) = address::parse(text) else { return self.bad_address() };
        let value = v6.to_bits();
        match self.recent.find_v6(value) {
            (_, Some(number)) => number,
            (slot, None) => {
                let number = self.batch.add(ip, Some(slot));
                self.recent.put_v6(slot, value, number);
                number
            }
        }
    }

    #[cold]
    fn bad_address(&mut self) -> u32 {
        self.batch.counts.bad_ip += 1;
        NONE
    }
}
