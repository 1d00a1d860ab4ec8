//! What came of one look-up: the room's product, and the output room's input.

use crate::plan::Said;
use crate::provider::{Answer, ErrorType, Role};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Where an answer came from, in the words of RFC 9211 (Cache-Status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheUse {
    /// The provider was asked.
    Miss,
    /// A stored answer, fresh.
    Hit,
    /// A stored answer, out of date, taken because the provider failed.
    Stale,
    /// Another look-up of the same address was on its way, and this one waited for it.
    Collapsed,
    /// A list or a file of this machine: nothing was sent.
    Local,
}

/// Why a look-up has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    /// The word of the documented list.
    pub error: ErrorType,
    /// One sentence for a person. Never holds a URL or a key.
    pub message: Arc<str>,
    /// The reply's status, where one came.
    pub http_status: Option<u16>,
    /// When it is worth asking again, where that is known.
    pub retry_at: Option<Timestamp>,
    /// The same as a wait, from when the error was made.
    pub retry_after: Option<Duration>,
}

impl ErrorBody {
    /// An error with nothing known but its kind.
    #[must_use]
    pub fn new(error: ErrorType, message: impl Into<Arc<str>>) -> Self {
        Self { error, message: message.into(), http_status: None, retry_at: None, retry_after: None }
    }

    /// The same, worth asking again at `at`, which is `wait` from now.
    #[must_use]
    pub fn retry(self, at: Timestamp, wait: Duration) -> Self {
        Self { retry_at: Some(at), retry_after: Some(wait), ..self }
    }
}

/// What one provider said of one address.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It answered; "never seen" is an answer.
    Answered {
        /// The answer.
        answer: Box<Answer>,
        /// From where.
        cache: CacheUse,
        /// When the provider gave it.
        fetched_at: Timestamp,
        /// Exchanges it took; 0 from the cache.
        attempts: u32,
        /// From the first attempt to the answer, waits included.
        latency: Duration,
        /// The reply's body as it came, but for the key; only where that was asked for.
        raw: Option<Box<[u8]>>,
    },
    /// It did not.
    Failed {
        /// Why.
        error: ErrorBody,
        /// Exchanges made; 0 where nothing was sent.
        attempts: u32,
        /// From the first attempt to the end.
        latency: Duration,
    },
}

impl Outcome {
    /// The same, without the reply's body.
    #[must_use]
    pub(super) fn without_raw(mut self) -> Self {
        if let Self::Answered { raw, .. } = &mut self {
            *raw = None;
        }
        self
    }

    /// The failure of a look-up that was never sent.
    #[must_use]
    pub fn unasked(error: ErrorBody) -> Self {
        Self::Failed { error, attempts: 0, latency: Duration::ZERO }
    }
}

/// One provider's share of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name.
    pub provider: Arc<str>,
    /// Whether it decides the record or only adds to it.
    pub role: Role,
    /// What it said.
    pub outcome: Outcome,
}

impl From<Said> for Part {
    /// What a list or a file of this machine says: it took no exchange and no time.
    fn from(said: Said) -> Self {
        let outcome = Outcome::Answered {
            answer: Box::new(said.answer),
            cache: CacheUse::Local,
            fetched_at: said.since,
            attempts: 0,
            latency: Duration::ZERO,
            raw: None,
        };
        Self { provider: said.source, role: said.role, outcome }
    }
}
