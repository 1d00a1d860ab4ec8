//! What a provider tells of its limits in headers.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use super::kind::Kind;
use super::limit::{DAY, Gate};
use super::scenario::{Dialect, RetryAfter};

/// A limit as it stands now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub count: u64,
    pub per: Duration,
    pub remaining: u64,
    pub reset_after: Duration,
}

impl Standing {
    pub(super) fn of(gate: &mut Gate, now: Duration) -> Self {
        Self {
            count: gate.count,
            per: gate.per,
            remaining: gate.remaining(now),
            reset_after: gate.reset_after(now),
        }
    }

    /// minute, hour or day, whichever is no shorter than the window.
    pub(super) fn window(&self) -> &'static str {
        match self.per.as_secs() {
            0..=60 => "minute",
            61..=3600 => "hour",
            _ => "day",
        }
    }
}

impl Kind {
    /// What this provider's own headers are, for `auto`.
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::AbuseIpdb => Dialect::Abuseipdb,
            Self::Urlscan => Dialect::Urlscan,
            Self::Misp => Dialect::Misp,
            _ => Dialect::None,
        }
    }

    /// What this provider's own 429 carries, for `auto`.
    pub(super) fn retry_after(self) -> RetryAfter {
        match self {
            Self::AbuseIpdb => RetryAfter::Exact,
            Self::Shodan => RetryAfter::Zero,
            _ => RetryAfter::None,
        }
    }
}

/// The limit that this dialect shows: the day's if there is one and the dialect knows but one, else the tightest.
pub(super) fn shown(dialect: Dialect, standings: &[Standing], refused_by: Option<usize>) -> Option<Standing> {
    let day = standings.iter().find(|it| it.per == DAY);
    // Compared by what share is left, without dividing.
    let tightest = standings.iter().min_by(|a, b| {
        (u128::from(a.remaining) * u128::from(b.count)).cmp(&(u128::from(b.remaining) * u128::from(a.count)))
    });
    match dialect {
        Dialect::Abuseipdb => day.or(tightest).copied(),
        _ => refused_by.and_then(|nth| standings.get(nth)).or(tightest).copied(),
    }
}

/// Writes the headers of one answer. `refused`: it is a 429. `anonymous`: no key came with it.
pub(super) fn write(
    out: &mut String,
    dialect: Dialect,
    standings: &[Standing],
    refused_by: Option<usize>,
    anonymous: bool,
    wall: Timestamp,
) {
    if dialect == Dialect::Ietf {
        return ietf(out, standings);
    }
    let Some(shown) = shown(dialect, standings, refused_by) else { return };
    let Standing { count, remaining, reset_after, .. } = shown;
    let seconds = seconds_up(reset_after);
    let _ = match dialect {
        Dialect::Abuseipdb => {
            let _ = write!(out, "X-RateLimit-Limit: {count}\r\nX-RateLimit-Remaining: {remaining}\r\n");
            // Documented for a 429 alone.
            if refused_by.is_none() {
                return;
            }
            write!(out, "X-RateLimit-Reset: {}\r\n", later(wall, reset_after, 1).as_second())
        }
        Dialect::Misp => write!(
            out,
            "X-Rate-Limit-Limit: {count}\r\nX-Rate-Limit-Remaining: {remaining}\r\nX-Rate-Limit-Reset: {seconds}\r\n"
        ),
        Dialect::Urlscan => write!(
            out,
            "X-Rate-Limit-Scope: {}\r\nX-Rate-Limit-Action: search\r\nX-Rate-Limit-Window: {}\r\n\
             X-Rate-Limit-Limit: {count}\r\nX-Rate-Limit-Remaining: {remaining}\r\n\
             X-Rate-Limit-Reset: {:.3}\r\nX-Rate-Limit-Reset-After: {seconds}\r\n",
            if anonymous { "ip-address" } else { "user" },
            shown.window(),
            later(wall, reset_after, 0),
        ),
        Dialect::Ietf | Dialect::Auto | Dialect::None => Ok(()),
    };
}

/// `draft-ietf-httpapi-ratelimit-headers`: every limit by name, in two lists.
fn ietf(out: &mut String, standings: &[Standing]) {
    if standings.is_empty() {
        return;
    }
    out.push_str("RateLimit-Policy: ");
    for (nth, it) in standings.iter().enumerate() {
        let comma = if nth > 0 { ", " } else { "" };
        let _ =
            write!(out, "{comma}\"{}\";q={};w={}", name(standings, nth), it.count, it.per.as_secs().max(1));
    }
    out.push_str("\r\nRateLimit: ");
    for (nth, it) in standings.iter().enumerate() {
        let comma = if nth > 0 { ", " } else { "" };
        let _ = write!(
            out,
            "{comma}\"{}\";r={};t={}",
            name(standings, nth),
            it.remaining,
            seconds_up(it.reset_after)
        );
    }
    out.push_str("\r\n");
}

fn name(standings: &[Standing], nth: usize) -> String {
    let window = standings.get(nth).map_or("", Standing::window);
    if nth == 0 { window.to_owned() } else { format!("{window}-{nth}") }
}

/// Writes `Retry-After` and gives the wait it announces, counted from `wall`.
pub(super) fn write_retry_after(
    out: &mut String,
    form: RetryAfter,
    wait: Duration,
    wall: Timestamp,
) -> Option<Duration> {
    let (value, announced) = match form {
        RetryAfter::Auto | RetryAfter::None => return None,
        RetryAfter::Exact => {
            let seconds = seconds_up(wait).max(1);
            (seconds.to_string(), Some(Duration::from_secs(seconds)))
        }
        RetryAfter::Fixed(wait) => {
            let seconds = seconds_up(wait);
            (seconds.to_string(), Some(Duration::from_secs(seconds)))
        }
        RetryAfter::Zero => ("0".to_owned(), None),
        RetryAfter::Negative => ("-1".to_owned(), None),
        RetryAfter::Garbage => ("soon, perhaps".to_owned(), None),
        RetryAfter::Date => {
            let until = later(wall, wait, 1);
            (http_date(until), Some(Duration::try_from(until.duration_since(wall)).unwrap_or_default()))
        }
    };
    let _ = write!(out, "Retry-After: {value}\r\n");
    announced
}

/// Whole seconds, rounded up: told less, a client would come back too early.
fn seconds_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// `wall` plus `wait`, rounded up to whole seconds if `whole` is 1.
fn later(wall: Timestamp, wait: Duration, whole: i64) -> Timestamp {
    let at = wall.checked_add(wait).unwrap_or(wall);
    if whole == 0 || at.subsec_nanosecond() == 0 {
        return at;
    }
    Timestamp::from_second(at.as_second() + 1).unwrap_or(at)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
pub(super) fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall() -> Timestamp {
        "2026-01-15T10:00:00.25Z".parse().unwrap()
    }

    fn minute() -> Standing {
        Standing {
            count: 120,
            per: Duration::from_secs(60),
            remaining: 3,
            reset_after: Duration::from_millis(43_250),
        }
    }

    fn day() -> Standing {
        Standing { count: 1000, per: DAY, remaining: 941, reset_after: Duration::from_secs(50_400) }
    }

    fn headers(dialect: Dialect, refused_by: Option<usize>) -> String {
        let mut out = String::new();
        write(&mut out, dialect, &[minute(), day()], refused_by, false, wall());
        out
    }

    #[test]
    fn each_dialect_in_its_own_units() {
        assert_eq!(
            headers(Dialect::Abuseipdb, None),
            "X-RateLimit-Limit: 1000\r\nX-RateLimit-Remaining: 941\r\n"
        );
        assert!(headers(Dialect::Abuseipdb, Some(1)).ends_with("X-RateLimit-Reset: 1768521601\r\n"));
        assert!(
            headers(Dialect::Misp, None).ends_with("X-Rate-Limit-Remaining: 3\r\nX-Rate-Limit-Reset: 44\r\n")
        );
        let urlscan = headers(Dialect::Urlscan, None);
        assert!(urlscan.contains("X-Rate-Limit-Window: minute\r\n"), "{urlscan}");
        assert!(urlscan.contains("X-Rate-Limit-Reset: 2026-01-15T10:00:43.500Z\r\n"), "{urlscan}");
        assert!(headers(Dialect::Urlscan, Some(1)).contains("X-Rate-Limit-Window: day\r\n"));
        assert_eq!(
            headers(Dialect::Ietf, None),
            "RateLimit-Policy: \"minute\";q=120;w=60, \"day-1\";q=1000;w=86400\r\n\
             RateLimit: \"minute\";r=3;t=44, \"day-1\";r=941;t=50400\r\n"
        );
        assert_eq!(headers(Dialect::None, None), "");
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        let wait = Duration::from_millis(1500);
        for (form, text, announced) in [
            (RetryAfter::None, "", None),
            (RetryAfter::Exact, "Retry-After: 2\r\n", Some(2000)),
            (RetryAfter::Zero, "Retry-After: 0\r\n", None),
            (RetryAfter::Negative, "Retry-After: -1\r\n", None),
            (RetryAfter::Garbage, "Retry-After: soon, perhaps\r\n", None),
            (RetryAfter::Fixed(Duration::from_secs(8 * 3600)), "Retry-After: 28800\r\n", Some(28_800_000)),
            (RetryAfter::Date, "Retry-After: Thu, 15 Jan 2026 10:00:02 GMT\r\n", Some(1750)),
        ] {
            let mut out = String::new();
            let given = write_retry_after(&mut out, form, wait, wall());
            assert_eq!((out.as_str(), given), (text, announced.map(Duration::from_millis)), "{form:?}");
        }
    }
}
