//! A provider's settings as written in a scenario.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units::{Latency, Span, duration};

/// `[providers.NAME]`, and `[every]` for what holds for all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::simulate) struct Settings {
    pub like: Option<String>,
    pub key: Option<String>,
    pub key_header: Option<String>,
    pub latency: Option<Latency>,
    pub limits: Option<Vec<Limit>>,
    pub daily: Option<Daily>,
    pub headers: Option<Dialect>,
    pub retry_after: Option<RetryAfter>,
    pub penalty: Option<Span>,
    pub size: Option<Size>,
    pub faults: Vec<Fault>,
    pub body: Option<String>,
    pub body_file: Option<String>,
    pub not_found: Option<u16>,
}

impl Settings {
    /// These settings, with `every`'s where they say nothing. `every`'s faults come after their own.
    pub(super) fn over(mut self, every: &Self) -> Self {
        self.latency = self.latency.or(every.latency);
        self.limits = self.limits.or_else(|| every.limits.clone());
        self.daily = self.daily.or(every.daily);
        self.headers = self.headers.or(every.headers);
        self.retry_after = self.retry_after.or(every.retry_after);
        self.penalty = self.penalty.or(every.penalty);
        self.size = self.size.or(every.size);
        self.key = self.key.or_else(|| every.key.clone());
        self.faults.extend(every.faults.iter().cloned());
        self
    }
}

/// How a window counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::simulate) enum LimitKind {
    /// Any stretch of time of the window's length.
    #[default]
    Sliding,
    /// Windows that follow each other, the first one from the server's start.
    Fixed,
    /// Refilled evenly, holding at most `burst`.
    Bucket,
}

/// At most `count` requests in `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenLimit")]
pub(in crate::simulate) struct Limit {
    pub count: NonZeroU64,
    pub per: Duration,
    pub kind: LimitKind,
    /// What a bucket holds; `count` for the other kinds.
    pub burst: NonZeroU64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLimit {
    count: NonZeroU64,
    per: Span,
    #[serde(default)]
    kind: LimitKind,
    burst: Option<NonZeroU64>,
}

impl TryFrom<WrittenLimit> for Limit {
    type Error = &'static str;

    fn try_from(written: WrittenLimit) -> Result<Self, Self::Error> {
        if written.per.0.is_zero() {
            return Err("a limit's window is longer than nothing");
        }
        if written.burst.is_some() && written.kind != LimitKind::Bucket {
            return Err("burst belongs to kind = \"bucket\"");
        }
        let burst = written.burst.unwrap_or(written.count);
        Ok(Self { count: written.count, per: written.per.0, kind: written.kind, burst })
    }
}

/// A day's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::simulate) struct Daily {
    pub count: u64,
    /// Spent before the server's start.
    #[serde(default)]
    pub used: u64,
    /// From the server's start to the end of the day; unset: to the next midnight UTC.
    pub reset: Option<Span>,
}

/// Which headers tell of what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::simulate) enum Dialect {
    Auto,
    Abuseipdb,
    Urlscan,
    Misp,
    Ietf,
    None,
}

/// What `Retry-After` a refusal carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(in crate::simulate) enum RetryAfter {
    Auto,
    Exact,
    None,
    Zero,
    Negative,
    Garbage,
    Date,
    Fixed(Duration),
}

impl TryFrom<String> for RetryAfter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(match text.as_str() {
            "auto" => Self::Auto,
            "exact" => Self::Exact,
            "none" => Self::None,
            "zero" => Self::Zero,
            "negative" => Self::Negative,
            "garbage" => Self::Garbage,
            "date" => Self::Date,
            other => Self::Fixed(duration(other).ok_or_else(|| {
                format!(
                    "'{other}' is none of auto, exact, none, zero, negative, garbage, date, or a time like 2s"
                )
            })?),
        })
    }
}

/// How long the bodies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::simulate) enum Size {
    /// With their long lists: 90 engines of VirusTotal, banners of Shodan.
    #[default]
    Full,
    Small,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FaultKind {
    /// Answers with `status`, the provider's own body for it, and `retry_after` if set.
    Status,
    /// Takes the request and never answers.
    Stall,
    /// Gives the head at once and the body in pieces over `over` (10 s).
    Slow,
    /// Answers `delay` (2 s) later than otherwise.
    Delay,
    /// Promises more body than it sends, then closes.
    Cut,
    /// Resets the connection instead of answering.
    Reset,
    /// A sound JSON body of `bytes` (10 MB).
    Huge,
    /// A body of `bytes` (5 MB) of `[`.
    Nest,
    /// 200 with the page of a captive portal.
    Html,
    /// 404 with a web server's own page.
    Html404,
    /// A small gzip body that unpacks to `bytes` (64 MB).
    GzipBomb,
    /// 302 to `location`, in which `{port}` is the server's own.
    Redirect,
    /// 200 with a body that says it is an error.
    #[serde(rename = "error-in-200")]
    ErrorIn200,
    /// The provider's refusal of a key.
    Unauthorized,
    /// The provider's refusal of a sound key: the plan does not allow it.
    Forbidden,
    /// `status` (500), ten requests in a row unless `run` says otherwise.
    #[serde(rename = "burst-500")]
    Burst500,
    /// 200 with JSON that breaks off.
    BrokenJson,
    /// 200 without a body.
    Empty,
    /// Bytes that are not HTTP.
    NotHttp,
}

/// One fault: its kind, what it needs, and the requests it hits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::simulate) struct Fault {
    pub kind: FaultKind,
    pub status: Option<u16>,
    pub retry_after: Option<RetryAfter>,
    pub delay: Option<Span>,
    pub over: Option<Span>,
    pub bytes: Option<usize>,
    pub location: Option<String>,
    pub from: Option<u64>,
    pub to: Option<u64>,
    pub every: Option<NonZeroU64>,
    pub run: Option<u64>,
    pub share: Option<f64>,
    pub address_share: Option<f64>,
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    pub first: Option<u64>,
}

impl Fault {
    /// What makes this fault senseless, if anything does.
    pub(super) fn objection(&self) -> Option<&'static str> {
        let is_share = |share: Option<f64>| share.is_none_or(|share| (0.0..=1.0).contains(&share));
        if !is_share(self.share) || !is_share(self.address_share) {
            return Some("a share lies between 0 and 1");
        }
        if self.kind == FaultKind::Status && self.status.is_none() {
            return Some("a fault of kind \"status\" needs a status");
        }
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Some("a fault's status lies between 200 and 599");
        }
        if self.kind == FaultKind::Redirect && self.location.is_none() {
            return Some("a fault of kind \"redirect\" needs a location");
        }
        // 256 MiB: a test's worth of hostile body, not enough to fill the machine by a typing error.
        if self.bytes.is_some_and(|bytes| bytes > 256 << 20) {
            return Some("a fault's bytes are at most 268435456");
        }
        None
    }
}
