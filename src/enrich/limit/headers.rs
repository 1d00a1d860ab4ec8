//! What providers say of their budget in headers, each in its own dialect.
//!
//! Look-alike headers carry three units (providers.md §2.1): `X-RateLimit-Reset` is an epoch at AbuseIPDB and GitHub,
//! `X-Rate-Limit-Reset` an ISO date at urlscan and seconds left at MISP. So the dialect belongs to the provider, and there
//! is no parser for all.

use crate::provider::{Dialect, Window};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// What one reply says of one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Requests left, as the server counted when it answered.
    pub remaining: u64,
    /// The window's quota.
    pub limit: Option<u64>,
    /// Until the window starts anew.
    pub reset: Option<Duration>,
    /// Which window, where the dialect says or implies it.
    pub window: Option<Window>,
}

impl Told {
    /// Whether the window is longer than an hour: such a one is spent at full rate and then closes the lane.
    #[must_use]
    pub fn is_long(&self) -> bool {
        match (self.window, self.reset) {
            (Some(window), _) => !window.is_paced(),
            (None, Some(reset)) => reset > Duration::from_secs(3600),
            (None, None) => false,
        }
    }
}

/// Reads the headers of a reply that arrived at `now`. What cannot be read is left out; nothing here fails.
#[must_use]
pub fn told(dialect: Dialect, headers: &HeaderMap, now: Timestamp) -> Vec<Told> {
    let one = match dialect {
        Dialect::None => None,
        Dialect::Abuseipdb => plain(headers, "x-ratelimit", |text| until_epoch(text, now))
            .map(|told| Told { window: Some(Window::Day), ..told }),
        Dialect::Github => plain(headers, "x-ratelimit", |text| until_epoch(text, now)),
        Dialect::Misp => plain(headers, "x-rate-limit", whole_seconds),
        Dialect::IetfLegacy => plain(headers, "ratelimit", whole_seconds),
        Dialect::Azure => azure(headers),
        Dialect::Urlscan => urlscan(headers, now),
        Dialect::Ietf => return ietf(headers),
    };
    one.into_iter().collect()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

fn whole_seconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_secs)
}

fn until_epoch(text: &str, now: Timestamp) -> Option<Duration> {
    Some(until(Timestamp::from_second(text.parse().ok()?).ok()?, now))
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// The three-header family: `PREFIX-Limit`, `-Remaining`, `-Reset`.
fn plain(headers: &HeaderMap, prefix: &str, reset: impl Fn(&str) -> Option<Duration>) -> Option<Told> {
    Some(Told {
        remaining: number(headers, &format!("{prefix}-remaining"))?,
        limit: number(headers, &format!("{prefix}-limit")),
        reset: text(headers, &format!("{prefix}-reset")).and_then(reset),
        window: None,
    })
}

/// Azure gives counts only, one per scope: the smallest rules.
fn azure(headers: &HeaderMap) -> Option<Told> {
    let remaining = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-ms-ratelimit-remaining-"))
        .filter_map(|(_, value)| value.to_str().ok()?.trim().parse().ok())
        .min()?;
    Some(Told { remaining, limit: None, reset: None, window: None })
}

/// urlscan names the window that will be exceeded next, so it may change from reply to reply.
fn urlscan(headers: &HeaderMap, now: Timestamp) -> Option<Told> {
    let window = match text(headers, "x-rate-limit-window") {
        Some("minute") => Some(Window::Minute),
        Some("hour") => Some(Window::Hour),
        Some("day") => Some(Window::Day),
        _ => None,
    };
    let after = text(headers, "x-rate-limit-reset-after").and_then(whole_seconds);
    let at = || text(headers, "x-rate-limit-reset")?.parse().ok().map(|at| until(at, now));
    Some(Told {
        remaining: number(headers, "x-rate-limit-remaining")?,
        limit: number(headers, "x-rate-limit-limit"),
        reset: after.or_else(at),
        window,
    })
}

/// `RateLimit: "burst";r=42;t=17` beside `RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400`.
fn ietf(headers: &HeaderMap) -> Vec<Told> {
    let policies = text(headers, "ratelimit-policy").map(items).unwrap_or_default();
    text(headers, "ratelimit")
        .map(items)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, parameters)| {
            let policy = policies
                .iter()
                .find(|(other, _)| *other == name)
                .map(|(_, parameters)| parameters.as_slice());
            let of_policy = |key| policy.and_then(|parameters| parameter(parameters, key));
            Some(Told {
                remaining: parameter(&parameters, "r")?,
                limit: of_policy("q"),
                reset: parameter(&parameters, "t").map(Duration::from_secs),
                window: of_policy("w").map(window_of),
            })
        })
        .collect()
}

/// The window that a policy of so many seconds is closest to.
fn window_of(seconds: u64) -> Window {
    let shortest = Window::ALL.into_iter().find(|window| window.length().as_secs() >= seconds);
    shortest.unwrap_or(Window::Month)
}

type Item<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// A Structured-Field list of strings with parameters (RFC 9651), as far as these two fields need it.
fn items(list: &str) -> Vec<Item<'_>> {
    list.split(',')
        .map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            (name, parts.filter_map(|parameter| parameter.split_once('=')).collect())
        })
        .collect()
}

fn parameter(parameters: &[(&str, &str)], key: &str) -> Option<u64> {
    parameters.iter().find(|(name, _)| *name == key)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn now() -> Timestamp {
        "2026-01-15T20:00:00Z".parse().unwrap()
    }

    fn check(
        dialect: Dialect,
        lines: &[(&str, &str)],
        remaining: u64,
        limit: Option<u64>,
        reset: Option<u64>,
        long: bool,
    ) {
        let told = told(dialect, &headers(lines), now());
        assert_eq!(told.len(), 1, "{dialect:?}");
        assert_eq!(
            (told[0].remaining, told[0].limit, told[0].is_long()),
            (remaining, limit, long),
            "{dialect:?}"
        );
        assert_eq!(told[0].reset.map(|reset| reset.as_secs()), reset, "{dialect:?}");
    }

    #[test]
    fn the_same_name_has_another_unit_at_each_provider() {
        let epoch = (now().as_second() + 14_400).to_string();
        check(
            Dialect::Abuseipdb,
            &[("X-RateLimit-Limit", "1000"), ("X-RateLimit-Remaining", "941")],
            941,
            Some(1000),
            None,
            true,
        );
        check(
            Dialect::Abuseipdb,
            &[("X-RateLimit-Limit", "1000"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", &epoch)],
            0,
            Some(1000),
            Some(14_400),
            true,
        );
        check(
            Dialect::Urlscan,
            &[
                ("X-Rate-Limit-Window", "minute"),
                ("X-Rate-Limit-Limit", "120"),
                ("X-Rate-Limit-Remaining", "3"),
                ("X-Rate-Limit-Reset", "2026-01-15T20:00:30.000Z"),
                ("X-Rate-Limit-Reset-After", "29"),
            ],
            3,
            Some(120),
            Some(29),
            false,
        );
        check(
            Dialect::Urlscan,
            &[
                ("X-Rate-Limit-Window", "day"),
                ("X-Rate-Limit-Remaining", "3"),
                ("X-Rate-Limit-Reset", "2026-01-16T00:00:00.000Z"),
            ],
            3,
            None,
            Some(14_400),
            true,
        );
        check(
            Dialect::Misp,
            &[("X-Rate-Limit-Limit", "300"), ("X-Rate-Limit-Remaining", "0"), ("X-Rate-Limit-Reset", "512")],
            0,
            Some(300),
            Some(512),
            false,
        );
        check(
            Dialect::IetfLegacy,
            &[("RateLimit-Limit", "10"), ("RateLimit-Remaining", "9"), ("RateLimit-Reset", "50")],
            9,
            Some(10),
            Some(50),
            false,
        );
        check(
            Dialect::Azure,
            &[
                ("x-ms-ratelimit-remaining-subscription-reads", "11999"),
                ("x-ms-ratelimit-remaining-tenant-reads", "42"),
            ],
            42,
            None,
            None,
            false,
        );
    }

    #[test]
    fn ietf_lists_hold_several_policies() {
        let told = told(
            Dialect::Ietf,
            &headers(&[
                ("RateLimit-Policy", "\"burst\";q=100;w=60,\"daily\";q=1000;w=86400"),
                ("RateLimit", "\"burst\";r=42;t=17, \"daily\";r=7;t=4000"),
            ]),
            now(),
        );
        assert_eq!(told.len(), 2);
        assert_eq!((told[0].remaining, told[0].limit, told[0].is_long()), (42, Some(100), false));
        assert_eq!((told[1].remaining, told[1].limit, told[1].is_long()), (7, Some(1000), true));
    }

    proptest! {
        #[test]
        fn no_value_panics(value in "[ -~]{0,60}", epoch: i64) {
            let epoch = epoch.to_string();
            for dialect in [Dialect::None, Dialect::Abuseipdb, Dialect::Urlscan, Dialect::Misp, Dialect::Ietf, Dialect::IetfLegacy, Dialect::Github, Dialect::Azure] {
                for name in ["x-ratelimit-reset", "x-rate-limit-reset", "ratelimit", "ratelimit-policy", "x-ratelimit-remaining"] {
                    let map = headers(&[(name, &value), ("x-ratelimit-remaining", "1"), ("x-rate-limit-remaining", &epoch), ("x-rate-limit-reset-after", &value)]);
                    let _ = told(dialect, &map, now());
                }
            }
        }
    }
}
