//! Flags about what outlives a run: cached answers, the budget of a run, its job's name.

use crate::config::parse_duration;
use clap::Args;
use std::num::NonZeroU64;
use std::time::Duration;

/// Longest name of a job: it stands in file names and in tables.
const LONGEST_NAME: usize = 64;

/// What is kept of earlier runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cache")]
pub struct CacheArgs {
    /// Take cached answers up to this old: 1h, 7d (default: each provider's own)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_age: Option<Duration>,
    /// Ask again even where the cache has an answer, and keep the new one
    #[arg(long, conflicts_with = "max_age")]
    pub refresh: bool,
    /// Use the cache alone; send nothing
    #[arg(long, conflicts_with_all = ["refresh", "simulate"])]
    pub offline: bool,
    /// If a provider fails, take an answer that is out of date by up to this much [default: 0s]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub stale_if_error: Option<String>,
    /// Keep nothing and use nothing kept: no cache, no shared quota, no audit trail
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["max_age", "offline", "stale_if_error", "job"])]
    pub no_store: bool,
}

/// What a run may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// At this provider; none is all of them together.
    pub provider: Option<String>,
    /// Look-ups.
    pub lookups: NonZeroU64,
}

/// A time as the configuration has it.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a time like this: 10s, 2m, 12h, 7d".to_owned())
}

/// `500`, or `virustotal=200`.
pub(super) fn budget(text: &str) -> Result<Budget, String> {
    let (provider, number) = match text.split_once('=') {
        Some((name, number)) => (Some(name.trim().to_owned()), number),
        None => (None, text),
    };
    let lookups = number.trim().replace('_', "").parse().ok();
    lookups
        .filter(|_| provider.as_deref() != Some(""))
        .map(|lookups| Budget { provider, lookups })
        .ok_or_else(|| "write it like this: 500, or virustotal=200; at least 1".to_owned())
}

/// A job's name, which stands in the name of a file.
pub(super) fn job_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    if (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err(format!("use a-z, 0-9, '.', '_' and '-', at most {LONGEST_NAME} of them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_for_all_or_for_one() {
        let of = |provider: Option<&str>, lookups| {
            Ok(Budget { provider: provider.map(str::to_owned), lookups: NonZeroU64::new(lookups).unwrap() })
        };
        assert_eq!(budget("500"), of(None, 500));
        assert_eq!(budget("virustotal=1_000"), of(Some("virustotal"), 1_000));
        for wrong in ["", "0", "x", "=5", "virustotal=", "virustotal=0", "a=b=1", "-3", "1.5"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_jobs_are_fit_for_a_file() {
        for fits in ["eve", "a.b_c-9", &"x".repeat(64)] {
            assert_eq!(job_name(fits).as_deref(), Ok(fits));
        }
        for wrong in ["", "Eve", "a/b", "a b", "é", &"x".repeat(65)] {
            assert!(job_name(wrong).is_err(), "{wrong}");
        }
    }
}
