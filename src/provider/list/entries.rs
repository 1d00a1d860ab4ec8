//! Reading a list: plain text, CSV, JSON and JSON lines, with addresses, networks and ranges of both families.
//!
//! Tolerant of single lines, not of whole files: what is no address is counted, and [`accept`](super::accept) refuses a
//! list of which too much is that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

/// How a list is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// The first word of each line; `#` and `;` begin comments.
    Plain,
    /// A column, counted from 0, of lines with commas; quotes around a value are taken off. The first line may be a
    /// heading.
    Csv {
        /// Counted from 0.
        column: usize,
    },
    /// An array of texts, or of objects that hold the address under `field`; the array may itself stand in an object,
    /// under `list`.
    Json {
        /// The member of each object; `None` for an array of texts.
        field: Option<String>,
        /// The member that holds the array; `None` where the document is the array.
        list: Option<String>,
    },
    /// One object a line, with the address under `field`; objects without it (metadata) are passed over.
    JsonLines {
        /// The member of each object.
        field: String,
    },
    /// `ExitAddress A.B.C.D TIME` records of the Tor project.
    ExitAddresses,
}

/// A run of addresses, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span<T> {
    pub(super) first: T,
    pub(super) last: T,
}

/// What no address could be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEntry {
    /// Counted from 1: the line, or in JSON the place in the array.
    pub line: usize,
    /// As written, shortened.
    pub text: String,
}

/// The entries of one list.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    pub(super) v4: Vec<Span<u32>>,
    pub(super) v6: Vec<Span<u128>>,
    /// How many could not be read.
    pub bad: usize,
    /// The first of them.
    pub first_bad: Option<BadEntry>,
    /// How many there are by the list's own words (Spamhaus's last line).
    pub promised: Option<usize>,
    /// Whether the text was HTML, or JSON of another shape: no list at all.
    pub is_other: bool,
}

impl Entries {
    /// Reads a list. Never fails; see [`accept`](super::accept) for what is then made of it.
    #[must_use]
    pub fn read(format: &Format, bytes: &[u8]) -> Self {
        let mut entries = Self::default();
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let start = bytes.trim_ascii_start();
        if start.first() == Some(&b'<') {
            entries.is_other = true;
            return entries;
        }
        match format {
            Format::Json { field, list } => entries.json(bytes, field.as_deref(), list.as_deref()),
            Format::Plain => entries.lines(bytes, false, |line| line.split_ascii_whitespace().next()),
            Format::Csv { column } => entries.lines(bytes, true, |line| {
                line.split(',')
                    .nth(*column)
                    .map(|value| value.trim().trim_matches('"'))
                    .filter(|value| !value.is_empty())
            }),
            Format::ExitAddresses => entries.lines(bytes, false, |line| {
                line.strip_prefix("ExitAddress ").and_then(|rest| rest.split_ascii_whitespace().next())
            }),
            Format::JsonLines { field } => entries.json_lines(bytes, field),
        }
        entries
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries between white space.
    pub(super) fn read_words(texts: &[&str]) -> Self {
        let mut entries = Self::default();
        for word in texts.iter().flat_map(|text| text.split_ascii_whitespace()) {
            entries.push(0, word);
        }
        entries
    }

    fn lines<'a>(
        &mut self,
        bytes: &'a [u8],
        mut may_be_heading: bool,
        pick: impl Fn(&'a str) -> Option<&'a str>,
    ) {
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let Ok(line) = std::str::from_utf8(line) else {
                self.bad(number, "not UTF-8");
                continue;
            };
            let line = line.split(['#', ';']).next().unwrap_or_default().trim();
            let Some(entry) = pick(line) else { continue };
            let is_heading = std::mem::take(&mut may_be_heading) && span(entry).is_none();
            if !is_heading {
                self.push(number, entry);
            }
        }
    }

    fn json_lines(&mut self, bytes: &[u8], field: &str) {
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Value>(line) {
                Ok(Value::Object(members)) => match members.get(field).and_then(Value::as_str) {
                    Some(entry) => self.push(number, entry),
                    None if members.get("type").is_some_and(|kind| kind == "metadata") => {
                        let records = members.get("records").and_then(Value::as_u64);
                        self.promised = records.and_then(|records| usize::try_from(records).ok());
                    }
                    None => self.bad(number, "an object without the field"),
                },
                _ => self.bad(number, &String::from_utf8_lossy(line)),
            }
        }
    }

    fn json(&mut self, bytes: &[u8], field: Option<&str>, list: Option<&str>) {
        let document = serde_json::from_slice::<Value>(bytes).ok();
        let array = document.as_ref().and_then(|document| match list {
            Some(list) => document.get(list),
            None => Some(document),
        });
        let Some(array) = array.and_then(Value::as_array) else {
            self.is_other = true;
            return;
        };
        for (number, item) in (1..).zip(array) {
            let entry = field.map_or(Some(item), |field| item.get(field)).and_then(Value::as_str);
            match entry {
                Some(entry) => self.push(number, entry),
                None => self.bad(number, "not a text"),
            }
        }
    }

    fn push(&mut self, line: usize, entry: &str) {
        match span(entry) {
            Some(Either::V4(span)) => self.v4.push(span),
            Some(Either::V6(span)) => self.v6.push(span),
            None => self.bad(line, entry),
        }
    }

    fn bad(&mut self, line: usize, text: &str) {
        self.bad += 1;
        if self.first_bad.is_none() {
            let text = text.chars().filter(|symbol| !symbol.is_control()).take(60).collect();
            self.first_bad = Some(BadEntry { line, text });
        }
    }
}

enum Either {
    V4(Span<u32>),
    V6(Span<u128>),
}

/// An address, a network (host bits are cut off) or a range `FIRST-LAST`.
fn span(text: &str) -> Option<Either> {
    if let Some((first, last)) = text.split_once('-') {
        return match (first.trim().parse().ok()?, last.trim().parse().ok()?) {
            (IpAddr::V4(first), IpAddr::V4(last)) => v4(first.into(), last.into()),
            (IpAddr::V6(first), IpAddr::V6(last)) => v6(first.into(), last.into()),
            _ => None,
        };
    }
    let (address, length) = match text.split_once('/') {
        None => (text, None),
        // At most three digits, and no sign.
        Some((address, length)) if length.len() <= 3 && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            (address, Some(length.parse::<u32>().ok()?))
        }
        Some(_) => return None,
    };
    if let Ok(address) = address.parse::<Ipv4Addr>() {
        let host = !u32::MAX.checked_shl(32_u32.checked_sub(length.unwrap_or(32))?).unwrap_or(0);
        let first = u32::from(address) & !host;
        return v4(first, first | host);
    }
    let address = address.parse::<Ipv6Addr>().ok()?;
    let length = length.unwrap_or(128);
    // An IPv4 address in IPv6's clothes is that address.
    if let (Some(inner), Some(length)) = (address.to_ipv4_mapped(), length.checked_sub(96)) {
        let host = !u32::MAX.checked_shl(32_u32.checked_sub(length)?).unwrap_or(0);
        let first = u32::from(inner) & !host;
        return v4(first, first | host);
    }
    let host = !u128::MAX.checked_shl(128_u32.checked_sub(length)?).unwrap_or(0);
    let first = u128::from(address) & !host;
    v6(first, first | host)
}

fn v4(first: u32, last: u32) -> Option<Either> {
    (first <= last).then_some(Either::V4(Span { first, last }))
}

fn v6(first: u128, last: u128) -> Option<Either> {
    (first <= last).then_some(Either::V6(Span { first, last }))
}
