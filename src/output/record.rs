//! The record: one line of NDJSON, everything known about one address.
//!
//! The keys come in the order of the fields below. Those that people test or iterate are always there (`ip`, `type`,
//! `status`, `verdict`, `score`, `found`, `complete`, `tags`, `providers`, `timestamp`, `v`); the others are left out
//! when there is nothing to say. A record of status `error` or `skipped` has null for `verdict`, `score` and `found`,
//! so that a tally keeps "nobody knows" and "nobody answered" apart.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{schema, verdict, wire};
use crate::enrich::outcome::{CacheUse, ErrorBody, Outcome, Part};
use crate::extract::Seen;
use crate::provider::{ErrorType, Verdict};

/// Version of the record format, in every line. Additions do not raise it; a removed key, a changed meaning or a new
/// word in `status` or `verdict` does.
pub const RECORD_VERSION: u32 = 1;

/// One line of NDJSON: everything known about one address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::forbid_verdict_without_answer)]
pub struct Record {
    /// The address, canonical.
    #[schemars(schema_with = "schema::ip")]
    pub ip: IpAddr,
    /// STIX 2.1 object type, as in ECS threat.indicator.type.
    #[serde(rename = "type")]
    pub kind: AddressType,
    /// Whether anybody answered.
    pub status: Status,
    /// The joint verdict; null unless status is ok.
    pub verdict: Option<Verdict>,
    /// 0..100, the highest of the reputation providers' normalised scores; null if none gives one.
    #[schemars(range(max = 100))]
    pub score: Option<u8>,
    /// Some provider knows the address; null unless status is ok.
    pub found: Option<bool>,
    /// Every provider that decides the record was asked and has answered.
    pub complete: bool,
    /// A provider vouches for the address while another accuses it; left out when false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conflict: bool,
    /// The name of the rule that decided the verdict, one of [`verdict::Rule`]'s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::rule")]
    pub rule: Option<Cow<'static, str>>,
    /// Tags of all providers, sorted, each once.
    pub tags: Vec<String>,
    /// ISO 3166 code of the first provider, by name, that gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Number of the autonomous system, from the first provider, by name, that gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<u32>,
    /// Who runs the autonomous system, from the first provider, by name, that gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_org: Option<String>,
    /// Why nobody was asked; only where status is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// The most useful of the failures; only where status is error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What the input said about the address; never sent anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::seen")]
    pub seen: Option<Seen>,
    /// One entry for each provider asked, keyed and ordered by name.
    pub providers: Entries,
    /// When this record was made, RFC 3339 UTC with milliseconds.
    #[serde(with = "wire::millis")]
    #[schemars(schema_with = "schema::time")]
    pub timestamp: Timestamp,
    /// Version of this format.
    pub v: u32,
}

/// STIX 2.1's name for the kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AddressType {
    /// An IPv4 address.
    #[serde(rename = "ipv4-addr")]
    Ipv4,
    /// An IPv6 address.
    #[serde(rename = "ipv6-addr")]
    Ipv6,
}

impl From<IpAddr> for AddressType {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }
}

/// Whether anybody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// At least one provider that decides the record answered.
    Ok,
    /// None of them did: no verdict, not even "unknown".
    Error,
    /// Nobody was asked, on purpose.
    Skipped,
}

impl Status {
    /// The word in the record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

/// A failure, of a record or of one provider in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// A word of a documented list, the same in metrics and logs.
    #[serde(rename = "type")]
    pub error: ErrorType,
    /// One sentence for a person; may change.
    pub message: String,
    /// Whose failure it is; left out in the provider's own entry and where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::name")]
    #[schemars(with = "Option<String>")]
    pub provider: Option<Arc<str>>,
    /// HTTP status, where an answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Asking again later may work.
    pub retryable: bool,
    /// Seconds to wait, as the provider said or as we know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// Not before this, RFC 3339 UTC in whole seconds, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::seconds")]
    #[schemars(schema_with = "schema::time")]
    pub retry_at: Option<Timestamp>,
}

/// The providers' entries, ordered by name; an object in the record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entries(Vec<(Arc<str>, Entry)>);

impl Entries {
    /// Takes entries in any order; of two with one name the later stays.
    #[must_use]
    pub fn new(entries: Vec<(Arc<str>, Entry)>) -> Self {
        let mut sorted = entries;
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        sorted.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Self(sorted)
    }

    /// The entries with their providers' names, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(name, entry)| (&**name, entry))
    }

    /// The entry of one provider.
    #[must_use]
    pub fn get(&self, provider: &str) -> Option<&Entry> {
        self.iter().find_map(|(name, entry)| (name == provider).then_some(entry))
    }

    fn get_mut(&mut self, provider: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find_map(|(name, entry)| (&**name == provider).then_some(entry))
    }

    /// How many providers have an entry.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What one provider said, or why it said nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Entry {
    /// The provider answered; "never heard of it" is an answer.
    Ok(AnswerEntry),
    /// It did not.
    Error(FailureEntry),
}

/// An answer, in the words that all providers share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerEntry {
    /// What the provider makes of the address.
    pub verdict: Verdict,
    /// 0..100; null if the provider gives none.
    #[schemars(range(max = 100))]
    pub score: Option<u8>,
    /// Whether the provider knows the address.
    pub found: bool,
    /// The provider's own number, unscaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_score: Option<f64>,
    /// How many reports, sightings or hits the provider counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports: Option<u64>,
    /// The provider vouches for the address; left out when false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known_good: bool,
    /// The provider's words for the address, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When the provider first saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub first_seen: Option<String>,
    /// When the provider last saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_seen: Option<String>,
    /// A page for people, always https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Open ports, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Names that point to the address, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
    /// CVE ids, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vulns: Vec<String>,
    /// Where the answer came from.
    pub cache: CacheUse,
    /// When the provider gave it, RFC 3339 UTC with milliseconds.
    #[serde(with = "wire::millis")]
    #[schemars(schema_with = "schema::time")]
    pub fetched_at: Timestamp,
    /// Requests sent for it in this run.
    pub attempts: u32,
    /// From the first attempt to the answer, in milliseconds.
    pub latency_ms: u64,
    /// The provider's answer as it came; only where that was asked for (`--raw`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<serde_json::Value>,
}

/// Why one provider has not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureEntry {
    /// The failure.
    pub error: Failure,
    /// Requests sent; 0 if it was given up before the first.
    pub attempts: u32,
    /// From the first attempt to giving up, in milliseconds.
    pub latency_ms: u64,
}

impl Failure {
    /// The wire form of an error; `provider` is left out where the place in the record says whose it is.
    fn new(body: &ErrorBody, provider: Option<Arc<str>>) -> Self {
        Self {
            error: body.error,
            message: body.message.to_string(),
            provider,
            http_status: body.http_status,
            retryable: body.error.is_retryable(),
            retry_after_s: body.retry_after.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
            retry_at: body.retry_at,
        }
    }
}

impl Record {
    /// The record of an address that was asked about, by the rules of [`verdict`]. The order of `parts` does not
    /// matter. With no part at all it is an error record: who was never asked is never vouched for.
    #[must_use]
    pub fn joined(ip: IpAddr, seen: Option<Seen>, parts: Vec<Part>, now: Timestamp) -> Self {
        let joint = verdict::join(&parts);
        let mut record = Self::empty(ip, seen, now);
        record.status = joint.status;
        record.verdict = joint.verdict;
        record.score = joint.score;
        record.found = joint.found;
        record.complete = joint.complete;
        record.conflict = joint.conflict;
        record.rule = joint.rule.map(|rule| Cow::Borrowed(rule.name()));
        record.tags = joint.tags;
        record.country = joint.country;
        record.asn = joint.asn;
        record.as_org = joint.as_org;
        record.error = joint.error.map(|(provider, body)| Failure::new(&body, provider));
        record.providers = Entries::new(parts.into_iter().map(entry).collect());
        record
    }

    /// The record of an address that nobody was to be asked about: `reason` is a scope's name, `excluded` or the like.
    #[must_use]
    pub fn skipped(ip: IpAddr, reason: &'static str, now: Timestamp) -> Self {
        let mut record = Self::empty(ip, None, now);
        record.status = Status::Skipped;
        record.complete = true;
        record.reason = Some(Cow::Borrowed(reason));
        record
    }

    /// The record of an address that was due but for which no provider was asked: over the limit, or cancelled first.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "the failure is the record's from here on")]
    pub fn refused(ip: IpAddr, seen: Option<Seen>, error: ErrorBody, now: Timestamp) -> Self {
        let mut record = Self::empty(ip, seen, now);
        record.error = Some(Failure::new(&error, None));
        record
    }

    /// Adds a provider's answer as it came, for `--raw`. Nothing happens where the provider has not answered.
    pub fn attach_raw(&mut self, provider: &str, body: serde_json::Value) {
        if let Some(Entry::Ok(answer)) = self.providers.get_mut(provider) {
            answer.raw = Some(body);
        }
    }

    fn empty(ip: IpAddr, seen: Option<Seen>, now: Timestamp) -> Self {
        Self {
            ip,
            kind: ip.into(),
            status: Status::Error,
            verdict: None,
            score: None,
            found: None,
            complete: false,
            conflict: false,
            rule: None,
            tags: Vec::new(),
            country: None,
            asn: None,
            as_org: None,
            reason: None,
            error: None,
            seen,
            providers: Entries::default(),
            timestamp: now,
            v: RECORD_VERSION,
        }
    }
}

fn entry(part: Part) -> (Arc<str>, Entry) {
    let entry = match part.outcome {
        Outcome::Answered { answer, cache, fetched_at, attempts, latency, raw } => Entry::Ok(AnswerEntry {
            verdict: answer.verdict,
            score: answer.score,
            found: answer.found,
            base_score: answer.base_score,
            reports: answer.reports,
            known_good: answer.known_good,
            tags: verdict::sorted_once(answer.tags),
            first_seen: answer.first_seen,
            last_seen: answer.last_seen,
            reference: answer.reference,
            ports: answer.ports,
            hostnames: answer.hostnames,
            vulns: answer.vulns,
            cache,
            fetched_at,
            attempts,
            latency_ms: millis(latency),
            raw: raw.map(|body| as_it_came(&body)),
        }),
        Outcome::Failed { error, attempts, latency } => Entry::Error(FailureEntry {
            error: Failure::new(&error, None),
            attempts,
            latency_ms: millis(latency),
        }),
    };
    (part.provider, entry)
}

/// A body that is no JSON is shown as text.
fn as_it_came(body: &[u8]) -> serde_json::Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

fn millis(latency: Duration) -> u64 {
    u64::try_from(latency.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
