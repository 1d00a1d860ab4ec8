//! What a run comes to: a wire type for `--summary-file`, and sentences for people.
//!
//! Every unique address is in exactly one of `records.ok`, `records.error` and the sum of `records.skipped`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{schema, wire};

/// Version of the summary format.
pub const SUMMARY_VERSION: u32 = 1;

/// The summary of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Version of this format.
    pub v: u32,
    /// The command, as in `enrich`.
    pub command: String,
    /// Name of the repeated run, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Version of the program.
    pub version: String,
    /// When the run began, RFC 3339 UTC with milliseconds.
    #[serde(with = "wire::millis")]
    #[schemars(schema_with = "schema::time")]
    pub started: Timestamp,
    /// When it ended.
    #[serde(with = "wire::millis")]
    #[schemars(schema_with = "schema::time")]
    pub ended: Timestamp,
    /// How long it took, in seconds by the steady clock.
    pub duration_s: f64,
    /// The exit status.
    pub exit_code: u8,
    /// What ended the run before its time: `SIGINT`, `SIGTERM`, `max_time`, `closed_pipe`, `output`; null if nothing.
    pub stopped_by: Option<String>,
    /// What was read.
    pub input: InputCounts,
    /// What this machine alone answered for; left out where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalCounts>,
    /// What was written.
    pub records: RecordCounts,
    /// The verdicts of the records that are ok.
    pub verdicts: VerdictCounts,
    /// One entry per provider, by name.
    pub providers: BTreeMap<String, ProviderCounts>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InputCounts {
    /// Files opened, standard input among them.
    pub files: u64,
    /// Bytes, after decompression.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Events that were taken, or lines of a list.
    pub events: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// Unique addresses, of all scopes.
    pub unique: u64,
    /// The input was read from where an earlier run of the job ended.
    pub from_cursor: bool,
}

/// What lists and MMDB files answered for without anybody being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LocalCounts {
    /// Addresses.
    pub addresses: u64,
    /// Those among them that a list of known good ones vouches for.
    pub known_good: u64,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecordCounts {
    /// Records of status ok.
    pub ok: u64,
    /// Those among them that a provider did not answer.
    pub incomplete: u64,
    /// Those among them with a conflict.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conflict: u64,
    /// Records of status error.
    pub error: u64,
    /// Error records by type.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Addresses that nobody was asked about, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// The verdicts of the records that are ok.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerdictCounts {
    /// Known-bad.
    pub malicious: u64,
    /// Something speaks against them.
    pub suspicious: u64,
    /// Vouched for.
    pub benign: u64,
    /// Nothing is known.
    pub unknown: u64,
}

/// One provider's part in a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderCounts {
    /// Addresses that were to be looked up.
    pub lookups: u64,
    /// Those that cost no request.
    pub cache: CacheCounts,
    /// Where requests went.
    #[serde(default)]
    pub host: String,
    /// Addresses that left this host for it, each once.
    #[serde(default)]
    pub sent: u64,
    /// Requests sent, retries among them.
    pub requests: u64,
    /// Retries.
    pub retries: u64,
    /// Replies by HTTP status.
    pub http: BTreeMap<String, u64>,
    /// Look-ups that failed, by type.
    pub errors: BTreeMap<String, u64>,
    /// Seconds that look-ups of this provider waited for its rate or hold-off, summed.
    pub waited_s: f64,
    /// Seconds from a request to its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<LatencySeconds>,
    /// Look-ups left, by window, as last told or counted.
    pub remaining: BTreeMap<String, u64>,
    /// Part of what is left that is kept for people.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reserved: u64,
    /// When it can be asked again, if not now.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::seconds")]
    #[schemars(schema_with = "schema::time")]
    pub retry_at: Option<Timestamp>,
    /// State of the breaker: `closed`, `open` or `half-open`.
    pub breaker: String,
}

/// Look-ups that cost no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounts {
    /// Answered by the cache.
    pub hit: u64,
    /// Answered by the cache beyond its age, because the provider failed.
    pub stale: u64,
    /// Answered by another look-up of the same address.
    pub collapsed: u64,
}

/// Seconds from a request to its reply.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencySeconds {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// The longest.
    pub max: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
