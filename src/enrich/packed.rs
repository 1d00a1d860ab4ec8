//! An outcome as the queue keeps it: bytes that are read again when its address is done, by this program or a later one.

use super::outcome::{CacheUse, ErrorBody, Outcome, Part};
use crate::provider::{Answer, ErrorType, Role};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// An outcome with what its provider is good for. A reply as it came is not among it: the cache has it.
#[derive(Debug, Serialize, Deserialize)]
struct Packed<'a> {
    decides: bool,
    attempts: u32,
    latency_us: u64,
    end: End<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time, for a moment")]
enum End<'a> {
    Answered {
        answer: Cow<'a, Answer>,
        cache: CacheUse,
        fetched_at: Timestamp,
    },
    Failed {
        error: ErrorType,
        message: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        http_status: Option<u16>,
    },
}

/// The outcome as bytes.
#[must_use]
pub fn pack(role: Role, outcome: &Outcome) -> Vec<u8> {
    let (attempts, latency, end) = match outcome {
        Outcome::Answered { answer, cache, fetched_at, attempts, latency, raw: _ } => {
            let answer = Cow::Borrowed(&**answer);
            (*attempts, *latency, End::Answered { answer, cache: *cache, fetched_at: *fetched_at })
        }
        // When to ask again is the queue's own from here on.
        Outcome::Failed { error, attempts, latency } => {
            let ErrorBody { error, message, http_status, retry_at: _, retry_after: _ } = error;
            let message = Cow::Borrowed(&**message);
            (*attempts, *latency, End::Failed { error: *error, message, http_status: *http_status })
        }
    };
    let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    let packed = Packed { decides: role == Role::Reputation, attempts, latency_us, end };
    // Numbers, texts and no map with odd keys: this cannot fail.
    serde_json::to_vec(&packed).unwrap_or_default()
}

/// The provider's share of a record, from the bytes; none if they cannot be read.
#[must_use]
pub fn unpack(provider: Arc<str>, bytes: &[u8]) -> Option<Part> {
    let Packed { decides, attempts, latency_us, end } = serde_json::from_slice(bytes).ok()?;
    let latency = Duration::from_micros(latency_us);
    let outcome = match end {
        End::Answered { answer, cache, fetched_at } => {
            let answer = Box::new(answer.into_owned());
            Outcome::Answered { answer, cache, fetched_at, attempts, latency, raw: None }
        }
        End::Failed { error, message, http_status } => {
            let error = ErrorBody { http_status, ..ErrorBody::new(error, message.as_ref()) };
            Outcome::Failed { error, attempts, latency }
        }
    };
    let role = if decides { Role::Reputation } else { Role::Context };
    Some(Part { provider, role, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        let answer = Answer { tags: vec!["ssh \"x\"\n".to_owned()], score: Some(7), ..Answer::not_found() };
        let answered = Outcome::Answered {
            answer: Box::new(answer),
            cache: CacheUse::Miss,
            fetched_at: "2026-01-15T10:00:00.123456Z".parse().unwrap(),
            attempts: 2,
            latency: Duration::from_micros(12_345),
            raw: None,
        };
        let error = ErrorBody { http_status: Some(403), ..ErrorBody::new(ErrorType::Forbidden, "no") };
        let failed = Outcome::Failed { error, attempts: 1, latency: Duration::from_millis(3) };
        for (role, outcome) in [(Role::Reputation, answered), (Role::Context, failed)] {
            let part = Part { provider: "abuseipdb".into(), role, outcome };
            assert_eq!(unpack("abuseipdb".into(), &pack(role, &part.outcome)), Some(part));
        }
        assert_eq!(unpack("abuseipdb".into(), b"{}"), None);
    }
}
