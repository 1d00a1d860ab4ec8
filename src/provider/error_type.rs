//! The one vocabulary of failures: records, metrics and log fields use these words.

use serde::{Deserialize, Serialize};

/// Why a look-up got no answer. The words are an interface (`error.type` of a record).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    /// Told to slow down, and waiting did not fit the deadline or the retry budget.
    RateLimited,
    /// The quota of a day, week or month is used up.
    QuotaExhausted,
    /// Our own bound was reached: `--limit`, or the share of the quota that is kept for people.
    BudgetExhausted,
    /// Every attempt ran out of its time.
    Timeout,
    /// The look-up's deadline or the run's came first.
    Deadline,
    /// Not asked: the provider failed too often of late.
    CircuitOpen,
    /// Name resolution, connect, or reset.
    Connection,
    /// The certificate or the handshake.
    Tls,
    /// 5xx to the end.
    ServerError,
    /// The key is missing or refused.
    Unauthorized,
    /// The key is valid, and does not cover this.
    Forbidden,
    /// The provider does not accept the question.
    InvalidRequest,
    /// The reply cannot be read as an answer.
    InvalidResponse,
    /// The reply was longer than the cap.
    ResponseTooLarge,
    /// `--offline`, and not in the cache.
    Offline,
    /// A signal ended the run.
    Cancelled,
    /// A fault of this program.
    Internal,
}

impl ErrorType {
    /// Every value, in the order of the documentation.
    pub const ALL: [Self; 17] = [
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::BudgetExhausted,
        Self::Timeout,
        Self::Deadline,
        Self::CircuitOpen,
        Self::Connection,
        Self::Tls,
        Self::ServerError,
        Self::Unauthorized,
        Self::Forbidden,
        Self::InvalidRequest,
        Self::InvalidResponse,
        Self::ResponseTooLarge,
        Self::Offline,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The word as it stands in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::QuotaExhausted => "quota_exhausted",
            Self::BudgetExhausted => "budget_exhausted",
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
            Self::CircuitOpen => "circuit_open",
            Self::Connection => "connection",
            Self::Tls => "tls",
            Self::ServerError => "server_error",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidResponse => "invalid_response",
            Self::ResponseTooLarge => "response_too_large",
            Self::Offline => "offline",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// The value of a word, as a filter names it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == word)
    }

    /// Whether asking again later can help without anybody changing anything.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited
            | Self::QuotaExhausted
            | Self::BudgetExhausted
            | Self::Timeout
            | Self::Deadline
            | Self::CircuitOpen
            | Self::Connection
            | Self::ServerError
            | Self::Offline
            | Self::Cancelled => true,
            Self::Tls
            | Self::Unauthorized
            | Self::Forbidden
            | Self::InvalidRequest
            | Self::InvalidResponse
            | Self::ResponseTooLarge
            | Self::Internal => false,
        }
    }

    /// Place in the choice of a record's joint error; the lowest one is the most useful to act on and is shown.
    #[must_use]
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Unauthorized => 0,
            Self::Forbidden => 1,
            Self::QuotaExhausted => 2,
            Self::RateLimited => 3,
            Self::CircuitOpen => 4,
            Self::BudgetExhausted => 5,
            Self::Tls => 6,
            Self::Connection => 7,
            Self::Timeout => 8,
            Self::Deadline => 9,
            Self::ServerError => 10,
            Self::InvalidResponse => 11,
            Self::ResponseTooLarge => 12,
            Self::InvalidRequest => 13,
            Self::Offline => 14,
            Self::Internal => 15,
            Self::Cancelled => 16,
        }
    }
}

impl std::fmt::Display for ErrorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_serde_and_unique() {
        let mut places = Vec::new();
        for value in ErrorType::ALL {
            assert_eq!(serde_json::to_value(value).unwrap(), value.as_str());
            assert_eq!(ErrorType::from_word(value.as_str()), Some(value));
            places.push(value.precedence());
        }
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), ErrorType::ALL.len());
    }
}
