//! `Retry-After`, as met in the field (providers.md §2.2): seconds, an HTTP date, 0, negative, hours, garbage.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use std::time::Duration;

/// A wait longer than this is taken for a year of it: enough to close a lane, and safe to add to any clock.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The wait that the reply asks for: `Some(0)` for zero, a negative number or a date that has passed; `None` when the
/// header is not there or says nothing that can be read. A date is measured from the reply's own `Date`, so that a wrong
/// clock here does not matter; without one from `now`.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Some(seconds) = seconds(text) {
        return Some(seconds);
    }
    let at = http_date(text)?;
    let from = headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(http_date).unwrap_or(now);
    Some(Duration::try_from(at.duration_since(from)).unwrap_or_default().min(LONGEST))
}

/// A whole or decimal number of seconds. Anything below zero is zero.
fn seconds(text: &str) -> Option<Duration> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.'));
    let number: f64 = text.parse().ok().filter(|_| plain)?;
    Some(Duration::try_from_secs_f64(number.max(0.0)).unwrap_or(LONGEST).min(LONGEST))
}

/// IMF-fixdate, as RFC 9110 wants it and every server met sends it.
pub(in crate::enrich) fn http_date(text: &str) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    // RFC 2822 is what HTTP's dates come from; "GMT" is its obsolete zone.
    PARSER.parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    fn wait(value: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_str(date).unwrap());
        }
        retry_after(&headers, "2026-01-15T20:00:00Z".parse().unwrap()).map(|wait| wait.as_secs())
    }

    #[test]
    fn every_form_met_in_the_field() {
        for (value, date, expected) in [
            ("2", None, Some(2)),
            ("29241", None, Some(29_241)),
            ("0", None, Some(0)),
            ("-5", None, Some(0)),
            ("1.9", None, Some(1)),
            (" 7 ", None, Some(7)),
            ("99999999999999999999", None, Some(LONGEST.as_secs())),
            ("soon", None, None),
            ("", None, None),
            ("1e3", None, None),
            ("inf", None, None),
            ("Thu, 15 Jan 2026 20:01:00 GMT", None, Some(60)),
            ("Thu, 15 Jan 2026 19:00:00 GMT", None, Some(0)),
            // The reply's own date counts, not our clock.
            ("Thu, 15 Jan 2026 21:00:30 GMT", Some("Thu, 15 Jan 2026 21:00:00 GMT"), Some(30)),
        ] {
            assert_eq!(wait(value, date), expected, "{value:?} with date {date:?}");
        }
    }

    #[test]
    fn absent_is_none() {
        assert_eq!(retry_after(&HeaderMap::new(), Timestamp::UNIX_EPOCH), None);
    }

    proptest! {
        #[test]
        fn never_panics_and_never_asks_for_more_than_a_year(value in "[ -~]{0,40}") {
            if let Some(seconds) = wait(&value, None) {
                prop_assert!(seconds <= LONGEST.as_secs());
            }
        }
    }
}
