//! How much may be asked of a provider: places in flight, paced rates, counted quotas, and its rate headers' dialect.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// The length of a quota's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// 1 s.
    Second,
    /// 60 s.
    Minute,
    /// 3,600 s.
    Hour,
    /// 86,400 s.
    Day,
    /// Seven days.
    Week,
    /// 30 days: providers that count by calendar month say so in their headers, and 30 days is never too short
    /// by more than one.
    Month,
}

impl Window {
    /// Every window, shortest first.
    pub const ALL: [Self; 6] = [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month];

    /// The window's length.
    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 604_800,
            Self::Month => 2_592_000,
        })
    }

    /// Whether look-ups are spread over the window (up to an hour) rather than counted against it.
    #[must_use]
    pub const fn is_paced(self) -> bool {
        matches!(self, Self::Second | Self::Minute | Self::Hour)
    }

    /// The short form, as in `4/min`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The full word, as in "the day's quota".
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.as_str() == word || window.word() == word)
    }
}

/// So many look-ups in one window: `4/min`, `50/s`, `1000/day`, `10/h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Look-ups.
    pub count: NonZeroU32,
    /// In this time.
    pub window: Window,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.window.as_str())
    }
}

/// A text that is no quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no quota; write a number above 0 and a window, as in 4/min, 50/s, 10/h, 1000/day, 50/week"
)]
pub struct ParseQuotaError {
    text: String,
}

impl FromStr for Quota {
    type Err = ParseQuotaError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split_once('/')
            .and_then(|(count, window)| {
                let count = count.trim().replace(['_', ','], "").parse().ok()?;
                Some(Self { count, window: Window::from_word(window.trim())? })
            })
            .ok_or_else(|| ParseQuotaError { text: text.chars().take(40).collect() })
    }
}

/// In which words and units a provider tells what is left. `enrich` reads the headers; a definition names the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// No rate headers.
    None,
    /// `X-RateLimit-Limit`, `-Remaining`, and on a 429 `-Reset` in epoch seconds; the window is the day.
    Abuseipdb,
    /// `X-Rate-Limit-Scope`, `-Action`, `-Window`, `-Limit`, `-Remaining`, `-Reset` (ISO 8601), `-Reset-After` (s).
    Urlscan,
    /// `X-Rate-Limit-Limit`, `-Remaining`, `-Reset` in seconds left of a window of 900 s.
    Misp,
    /// `RateLimit` and `RateLimit-Policy` of the IETF draft: Structured-Field lists.
    Ietf,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset` (seconds left) of the draft's sixth and earlier versions.
    IetfLegacy,
    /// `x-ratelimit-*` with the reset in epoch seconds; throttling also comes as 403.
    Github,
    /// `x-ms-ratelimit-remaining-*`: a count without a limit or a reset.
    Azure,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Abuseipdb,
        Self::Urlscan,
        Self::Misp,
        Self::Ietf,
        Self::IetfLegacy,
        Self::Github,
        Self::Azure,
    ];

    /// The word as it stands in a definition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Abuseipdb => "abuseipdb",
            Self::Urlscan => "urlscan",
            Self::Misp => "misp",
            Self::Ietf => "ietf",
            Self::IetfLegacy => "ietf-legacy",
            Self::Github => "github",
            Self::Azure => "azure",
        }
    }
}

/// What a provider allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight at once, where the provider is known to bound them; none leaves it to the run's own bound.
    pub concurrency: Option<NonZeroU32>,
    /// Windows up to an hour: look-ups are paced so that none is ever exceeded.
    pub rates: Vec<Quota>,
    /// Days, weeks and months: counted, spent at full rate on the worst first.
    pub quotas: Vec<Quota>,
    /// How the provider's rate headers are read.
    pub dialect: Dialect,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, count, window) in [
            ("4/min", 4, Window::Minute),
            ("50/s", 50, Window::Second),
            ("1000/day", 1000, Window::Day),
            ("15_500/month", 15_500, Window::Month),
            ("10 / hour", 10, Window::Hour),
        ] {
            let quota: Quota = text.parse().unwrap();
            assert_eq!((quota.count.get(), quota.window), (count, window), "{text}");
        }
        for text in ["", "4", "0/min", "-1/s", "4/fortnight", "/min", "4294967296/day"] {
            assert!(text.parse::<Quota>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(count in 1u32.., place in 0usize..6) {
            let quota = Quota { count: NonZeroU32::new(count).unwrap(), window: Window::ALL[place] };
            prop_assert_eq!(quota.to_string().parse::<Quota>().unwrap(), quota);
        }
    }
}
