//! What a provider says of one address, in our words.

use serde::{Deserialize, Serialize};

/// STIX's four words. Nobody having heard of an address is `unknown`, never `benign`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Known-bad.
    Malicious,
    /// Something speaks against it.
    Suspicious,
    /// Somebody looked and found nothing, or vouches for it.
    Benign,
    /// Nothing is known.
    Unknown,
}

impl Verdict {
    /// The word as it stands in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malicious => "malicious",
            Self::Suspicious => "suspicious",
            Self::Benign => "benign",
            Self::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// From which score on an answer without a word of its own is malicious or suspicious.
///
/// Defaults 75 and 25: the range that AbuseIPDB advises for block lists starts at 75, and its block list refuses a
/// minimum below 25 (its documentation, from memory, unverified). Below `suspicious` the verdict is unknown:
/// a low score says that little is known, not that anybody vouches for the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Score (0 to 100) from which on the verdict is malicious.
    pub malicious: u8,
    /// Score (0 to 100) from which on the verdict is suspicious.
    pub suspicious: u8,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { malicious: 75, suspicious: 25 }
    }
}

impl Thresholds {
    /// The verdict of a bare score.
    #[must_use]
    pub fn verdict(self, score: u8) -> Verdict {
        if score >= self.malicious {
            Verdict::Malicious
        } else if score >= self.suspicious {
            Verdict::Suspicious
        } else {
            Verdict::Unknown
        }
    }
}

/// One provider's answer about one address, checked and bounded.
///
/// Serialized as the provider's entry of a record: keys with nothing to say are left out, `verdict`, `score`
/// and `found` always stand. `found: false` always comes with `verdict: unknown` and no score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// The verdict; always unknown from a provider whose role is context.
    pub verdict: Verdict,
    /// 0 (nothing speaks against it) to 100.
    pub score: Option<u8>,
    /// Whether the provider knows the address.
    pub found: bool,
    /// The provider's own number, in its own unit (VirusTotal: engines).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_score: Option<f64>,
    /// How many reports, sightings or hits the provider counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports: Option<u64>,
    /// Sorted, without repeats, at most 32 of at most 64 characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// ISO 3166 code of two capital letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Number of the autonomous system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<u32>,
    /// Who runs the autonomous system, at most 128 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_org: Option<String>,
    /// Page for a person, always https, at most 2,048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The provider vouches for the address: a known business service, a whitelist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known_good: bool,
    /// Open ports, sorted, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Names that point to the address, sorted, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
    /// CVE ids, sorted, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vulns: Vec<String>,
}

impl Answer {
    /// The answer of a provider that has never seen the address.
    #[must_use]
    pub const fn not_found() -> Self {
        Self {
            verdict: Verdict::Unknown,
            score: None,
            found: false,
            base_score: None,
            reports: None,
            tags: Vec::new(),
            first_seen: None,
            last_seen: None,
            country: None,
            asn: None,
            as_org: None,
            reference: None,
            known_good: false,
            ports: Vec::new(),
            hostnames: Vec::new(),
            vulns: Vec::new(),
        }
    }
}
