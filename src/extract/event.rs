//! One event of eve.json: the few values we need, as they stand in the line, and the full parse that finds them.

use std::borrow::Cow;

use super::json::{Invalid, Walker, string_bytes};

/// The raw JSON values of the keys that matter, each `None` where the key is missing. Of two equal keys the last one
/// holds. Only keys of the top level count, and inside `alert` its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "event_type is eve.json's name for it")]
pub(super) struct Event<'a> {
    pub(super) event_type: Option<&'a [u8]>,
    pub(super) src_ip: Option<&'a [u8]>,
    pub(super) dest_ip: Option<&'a [u8]>,
    pub(super) dest_port: Option<&'a [u8]>,
    pub(super) proto: Option<&'a [u8]>,
    pub(super) timestamp: Option<&'a [u8]>,
    pub(super) alert: Alert<'a>,
}

/// The raw JSON values inside `alert`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Alert<'a> {
    pub(super) severity: Option<&'a [u8]>,
    pub(super) signature: Option<&'a [u8]>,
    pub(super) signature_id: Option<&'a [u8]>,
}

impl<'a> Event<'a> {
    /// The keys that matter.
    pub(super) const KEYS: &'static [&'static str] =
        &["event_type", "src_ip", "dest_ip", "dest_port", "proto", "timestamp", "alert"];

    /// Keeps `value` if `key` (with its quotes) is one that matters.
    fn set(&mut self, key: &[u8], value: &'a [u8]) {
        let slot = match plain_key(key).as_ref() {
            b"event_type" => &mut self.event_type,
            b"src_ip" => &mut self.src_ip,
            b"dest_ip" => &mut self.dest_ip,
            b"dest_port" => &mut self.dest_port,
            b"proto" => &mut self.proto,
            b"timestamp" => &mut self.timestamp,
            b"alert" => {
                self.alert = Alert::read(value);
                return;
            }
            _ => return,
        };
        *slot = Some(value);
    }
}

impl<'a> Alert<'a> {
    /// The keys that matter.
    pub(super) const KEYS: &'static [&'static str] = &["severity", "signature", "signature_id"];

    /// From the value of `alert`, already known to be valid. Anything but an object is an alert without values.
    fn read(value: &'a [u8]) -> Self {
        let mut alert = Self::default();
        if value.first() != Some(&b'{') {
            return alert;
        }
        let walked = Walker::new(value).object(|key, value| match plain_key(key).as_ref() {
            b"severity" => alert.severity = Some(value),
            b"signature" => alert.signature = Some(value),
            b"signature_id" => alert.signature_id = Some(value),
            _ => {}
        });
        debug_assert!(walked.is_ok(), "the value was walked over before");
        alert
    }
}

/// What a valid line holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Nearly every line is one object, and takes no allocation.
    pub(super) first: Option<Event<'a>>,
    /// The objects after it in the same line.
    pub(super) more: Vec<Event<'a>>,
    /// JSON texts that are no object.
    pub(super) not_object: u64,
}

/// Reads one line: one JSON text, or several with nothing but white space between them. An error anywhere makes the
/// whole line invalid.
pub(super) fn parse_line(line: &[u8]) -> Result<Line<'_>, Invalid> {
    let mut walker = Walker::new(line);
    let mut found = Line::default();
    while let Some(byte) = walker.peek() {
        if byte != b'{' {
            walker.value()?;
            found.not_object += 1;
            continue;
        }
        let mut event = Event::default();
        walker.object(|key, value| event.set(key, value))?;
        if found.first.is_none() {
            found.first = Some(event);
        } else {
            found.more.push(event);
        }
    }
    Ok(found)
}

/// Where the token starts that makes the line invalid, if it is.
pub(super) fn error_at(line: &[u8]) -> Option<usize> {
    let mut walker = Walker::new(line);
    while walker.peek().is_some() {
        if walker.value().is_err() {
            return Some(walker.at());
        }
    }
    None
}

/// A key without quotes and escapes.
fn plain_key(raw: &[u8]) -> Cow<'_, [u8]> {
    string_bytes(raw).unwrap_or_default()
}

/// A whole number without sign, also in quotes (Wazuh turns numbers into text).
pub(super) fn unsigned(raw: &[u8]) -> Option<u64> {
    let digits = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or(raw);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: Option<&[u8]>) -> Option<&str> {
        raw.map(|raw| std::str::from_utf8(raw).unwrap())
    }

    #[test]
    fn the_top_level_alone_counts() {
        let line =
            br#"{"flow":{"src_ip":"192.0.2.1"},"x":["src_ip","192.0.2.2"],"y":"\"src_ip\":\"192.0.2.3\"",
            "dest_ip":"203.0.113.1","Src_ip":"192.0.2.4","alert":{"severity":1,"source":{"severity":9}}}"#;
        let event = parse_line(line).unwrap().first.unwrap();
        assert_eq!(event.src_ip, None);
        assert_eq!(text(event.dest_ip), Some("\"203.0.113.1\""));
        assert_eq!(text(event.alert.severity), Some("1"));
    }

    #[test]
    fn the_last_of_two_keys_holds_and_escapes_count() {
        let line = br#"{"src_ip":"a","src\u005fip":"b","alert":{"severity":1},"alert":17,"event_type":"\u0061lert"}"#;
        let event = parse_line(line).unwrap().first.unwrap();
        assert_eq!(text(event.src_ip), Some("\"b\""));
        assert_eq!(event.alert, Alert::default());
        assert_eq!(event.event_type.and_then(string_bytes).as_deref(), Some(&b"alert"[..]));
    }

    #[test]
    fn several_texts_in_a_line() {
        let line = parse_line(br#"{"src_ip":1} 17 {"src_ip":2}{"src_ip":3}[]"#).unwrap();
        assert_eq!((line.more.len(), line.not_object), (2, 2));
        assert_eq!(parse_line(br#"{"src_ip":1}{"src_ip""#), Err(Invalid));
        assert_eq!(parse_line(br#"{"src_ip":1} garbage"#), Err(Invalid));
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(unsigned(b"443"), Some(443));
        assert_eq!(unsigned(b"\"443\""), Some(443));
        for raw in [&b"-1"[..], b"1.0", b"\"\"", b"\"", b"", b"1e3", b"null", b"99999999999999999999"] {
            assert_eq!(unsigned(raw), None);
        }
    }
}
