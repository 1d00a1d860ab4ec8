//! Records of our own, as `sift extract` and `sift enrich` print them: so that a selection of them can be asked again.

use std::net::IpAddr;

use super::{
    address,
    json::{Invalid, Walker, string_bytes},
    seen::Seen,
};

/// What is taken from a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// `None` where `ip` is missing or no address.
    pub(super) ip: Option<IpAddr>,
    /// `None` where it is missing, or does not read as ours.
    pub(super) seen: Option<Seen>,
}

/// Reads one line: one record or several.
pub(super) fn parse_line(line: &[u8], with_seen: bool) -> Result<Vec<Record>, Invalid> {
    let mut walker = Walker::new(line);
    let mut records = Vec::new();
    while let Some(byte) = walker.peek() {
        if byte != b'{' {
            return Err(Invalid);
        }
        let (mut ip, mut seen) = (None, None);
        walker.object(|key, value| match string_bytes(key).as_deref() {
            Some(b"ip") => ip = Some(value),
            Some(b"seen") if with_seen => seen = Some(value),
            _ => {}
        })?;
        records.push(Record {
            ip: ip.and_then(string_bytes).and_then(|text| address::parse(&text)),
            seen: seen.and_then(|raw| serde_json::from_slice(raw).ok()),
        });
    }
    Ok(records)
}

/// Whether an object is one of our records rather than an event: `ip` and `v` at the top level, and neither `src_ip`
/// nor `dest_ip`. `None` where the line is no object.
pub(super) fn is_record(line: &[u8]) -> Option<bool> {
    let (mut own, mut event) = (0, false);
    Walker::new(line)
        .object(|key, _| match string_bytes(key).as_deref() {
            Some(b"ip" | b"v") => own += 1,
            Some(b"src_ip" | b"dest_ip") => event = true,
            _ => {}
        })
        .ok()?;
    Some(own >= 2 && !event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_status() {
        let line = br#"{"ip":"203.0.113.7","type":"ipv4-addr","status":"ok","seen":{"count":3,
            "first":"2025-01-31T08:02:11.402Z","fields":["src_ip"],"severity":2},"v":1}"#;
        let records = parse_line(line, true).unwrap();
        assert_eq!(records[0].ip, Some("203.0.113.7".parse().unwrap()));
        let seen = records[0].seen.as_ref().unwrap();
        assert_eq!((seen.count, seen.severity), (3, Some(2)));
        assert_eq!(parse_line(line, false).unwrap()[0].seen, None);
        assert_eq!(parse_line(br#"{"ip":"x"}"#, true).unwrap(), [Record { ip: None, seen: None }]);
        assert_eq!(parse_line(br#"{"ip":"203.0.113.7""#, true), Err(Invalid));
    }

    #[test]
    fn told_from_events() {
        assert_eq!(is_record(br#"{"ip":"203.0.113.7","v":1}"#), Some(true));
        assert_eq!(is_record(br#"{"ip":"203.0.113.7","v":1,"src_ip":"203.0.113.7"}"#), Some(false));
        assert_eq!(is_record(br#"{"event_type":"stats"}"#), Some(false));
        assert_eq!(is_record(br#"{"ip":"#), None);
    }
}
