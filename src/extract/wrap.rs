//! Events inside other events: Wazuh's alerts, Filebeat's and Elastic's documents.

use std::{borrow::Cow, fmt, str::FromStr};

use super::{
    event::{self, Line},
    json::{Invalid, Walker, string_bytes},
};

/// Where in each line's object the event is: keys joined by dots, as `data` or `suricata.eve`.
///
/// What is there is an object, or a text that holds one (`message`, `event.original`). A key with dots of its own is
/// found too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPath(String);

/// An empty path, or one with an empty key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not keys joined by dots, as in 'data' or 'suricata.eve'")]
pub struct BadPath;

impl FromStr for EventPath {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        // jq's way of writing it has a dot in front.
        let text = text.strip_prefix('.').unwrap_or(text);
        if text.split('.').any(str::is_empty) { Err(BadPath) } else { Ok(Self(text.to_owned())) }
    }
}

impl fmt::Display for EventPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl EventPath {
    /// Reads a line, and gives `take` what was found in each of its objects: the events at this path, or an empty
    /// line where there is nothing.
    pub(super) fn parse_line(
        &self,
        line: &[u8],
        mut take: impl FnMut(Option<&Line<'_>>),
    ) -> Result<u64, Invalid> {
        let mut walker = Walker::new(line);
        let (mut objects, mut not_object) = (Vec::new(), 0);
        while let Some(byte) = walker.peek() {
            let value = walker.value()?;
            if byte == b'{' {
                objects.push(at(value, self.0.as_bytes()));
            } else {
                not_object += 1;
            }
        }
        let found: Vec<_> = objects.iter().map(|inner| inner.as_deref().map(event::parse_line)).collect();
        if found.iter().flatten().any(Result::is_err) {
            return Err(Invalid);
        }
        for line in found {
            take(line.and_then(Result::ok).as_ref());
        }
        Ok(not_object)
    }
}

/// The object at `path` in `object`, which is known to be valid.
fn at<'a>(object: &'a [u8], path: &[u8]) -> Option<Cow<'a, [u8]>> {
    let mut inner = None;
    Walker::new(object)
        .object(|key, value| {
            let Some(key) = string_bytes(key) else { return };
            match path.strip_prefix(&*key) {
                Some([]) => inner = as_object(value),
                Some([b'.', rest @ ..]) if value.first() == Some(&b'{') => {
                    inner = at(value, rest).or(inner.take());
                }
                _ => {}
            }
        })
        .ok()?;
    inner
}

/// An object, or the text of one.
fn as_object(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    match value.first() {
        Some(b'{') => Some(Cow::Borrowed(value)),
        Some(b'"') => string_bytes(value).filter(|text| text.trim_ascii_start().first() == Some(&b'{')),
        _ => None,
    }
}

/// Lines looked at to tell whether events are wrapped.
const LOOKED_AT: usize = 50;

/// Levels looked at: `_source.suricata.eve` has three.
const DEPTH: usize = 3;

/// Where the events of an input that begins like this are, if they are wrapped: the first place below the top with
/// `event_type` and one of the address keys.
pub(super) fn recognise(prefix: &[u8]) -> Option<String> {
    let lines = prefix
        .split(|&byte| byte == b'\n')
        .map(super::detect::trim)
        .filter(|line| line.first() == Some(&b'{'));
    lines.take(LOOKED_AT).find_map(|line| search(line, DEPTH))
}

fn search(object: &[u8], depth: usize) -> Option<String> {
    let mut found = None;
    let walked = Walker::new(object).object(|key, value| {
        if found.is_some() {
            return;
        }
        let (Some(key), Some(inner)) = (string_bytes(key), as_object(value)) else { return };
        let key = String::from_utf8_lossy(&key);
        if is_event(&inner) {
            found = Some(key.into_owned());
        } else if depth > 1 && matches!(inner, Cow::Borrowed(_)) {
            found = search(&inner, depth - 1).map(|rest| format!("{key}.{rest}"));
        }
    });
    walked.ok().and(found)
}

fn is_event(object: &[u8]) -> bool {
    let event = event::parse_line(object).ok().and_then(|line| line.first);
    event.is_some_and(|event| {
        event.event_type.is_some() && (event.src_ip.is_some() || event.dest_ip.is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(path: &str, line: &str) -> Result<Vec<Option<String>>, Invalid> {
        let path: EventPath = path.parse().unwrap();
        let mut all = Vec::new();
        path.parse_line(line.as_bytes(), |line| {
            let src = line.and_then(|line| line.first.as_ref()).and_then(|event| event.src_ip);
            all.push(src.map(|raw| String::from_utf8_lossy(raw).into_owned()));
        })?;
        Ok(all)
    }

    #[test]
    fn objects_texts_and_dotted_keys() {
        let one = Ok(vec![Some("\"192.0.2.1\"".to_owned())]);
        assert_eq!(events("data", r#"{"src_ip":"x","data":{"src_ip":"192.0.2.1"}}"#), one);
        assert_eq!(events(".suricata.eve", r#"{"suricata":{"eve":{"src_ip":"192.0.2.1"}}}"#), one);
        assert_eq!(events("suricata.eve", r#"{"suricata.eve":{"src_ip":"192.0.2.1"}}"#), one);
        assert_eq!(events("event.original", r#"{"event":{"original":"{\"src_ip\":\"192.0.2.1\"}\n"}}"#), one);
        assert_eq!(
            events("data", r#"{"data":17} {"x":{"data":{"src_ip":"192.0.2.1"}}}"#),
            Ok(vec![None, None])
        );
        assert_eq!(events("message", r#"{"message":"{\"src_ip\":"}"#), Err(Invalid));
        assert_eq!(events("data", r#"{"data":{"src_ip":"192.0.2.1"}"#), Err(Invalid));
    }

    #[test]
    fn recognised_by_type_and_address() {
        let check =
            |line: &str, expected: Option<&str>| assert_eq!(recognise(line.as_bytes()).as_deref(), expected);
        check(r#"{"data":{"event_type":"flow","dest_ip":"192.0.2.1"}}"#, Some("data"));
        check(
            r#"{"_source":{"suricata":{"eve":{"event_type":"flow","src_ip":"192.0.2.1"}}}}"#,
            Some("_source.suricata.eve"),
        );
        check(r#"{"message":"{\"event_type\":\"flow\",\"src_ip\":\"192.0.2.1\"}"}"#, Some("message"));
        check(r#"{"event_type":"flow","flow":{"src_ip":"192.0.2.1"}}"#, None);
        check("x\n{\"data\":", None);
    }

    #[test]
    fn paths() {
        assert_eq!("a.b".parse::<EventPath>().unwrap().to_string(), "a.b");
        for text in ["", ".", "a.", "a..b"] {
            assert_eq!(text.parse::<EventPath>(), Err(BadPath), "{text}");
        }
    }
}
