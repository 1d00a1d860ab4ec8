//! `--fail-on`: when a result counts as a finding, so that a script can act on the exit status 10.

use std::fmt;
use std::str::FromStr;

use super::record::Record;
use crate::provider::Verdict;

/// From which badness on a record is a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Suspicious or malicious.
    Suspicious,
    /// Malicious.
    Malicious,
    /// This score (0 to 100) or a higher one.
    Score(u8),
}

impl FailOn {
    /// Whether the record is a finding. One without an answer never is: nobody has accused the address.
    #[must_use]
    pub fn matches(self, record: &Record) -> bool {
        match self {
            Self::Suspicious => matches!(record.verdict, Some(Verdict::Suspicious | Verdict::Malicious)),
            Self::Malicious => record.verdict == Some(Verdict::Malicious),
            Self::Score(least) => record.score.is_some_and(|score| score >= least),
        }
    }
}

/// A text that names no badness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is neither suspicious, nor malicious, nor a score from 0 to 100")]
pub struct ParseFailOnError {
    text: String,
}

impl FromStr for FailOn {
    type Err = ParseFailOnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "suspicious" => Ok(Self::Suspicious),
            "malicious" => Ok(Self::Malicious),
            _ => match text.parse() {
                Ok(score @ 0..=100) => Ok(Self::Score(score)),
                _ => Err(ParseFailOnError { text: text.chars().take(40).collect() }),
            },
        }
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspicious => f.write_str("suspicious"),
            Self::Malicious => f.write_str("malicious"),
            Self::Score(least) => write!(f, "{least}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_words_and_scores() {
        for text in ["suspicious", "malicious", "0", "80", "100"] {
            assert_eq!(text.parse::<FailOn>().unwrap().to_string(), text);
        }
        for text in ["", "bad", "-1", "101", "80%", "Malicious"] {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }

    #[test]
    fn no_answer_is_no_finding() {
        let mut record =
            Record::skipped("192.0.2.1".parse().unwrap(), "private", jiff::Timestamp::UNIX_EPOCH);
        for fail_on in [FailOn::Suspicious, FailOn::Malicious, FailOn::Score(0)] {
            assert!(!fail_on.matches(&record));
        }
        record.verdict = Some(Verdict::Suspicious);
        record.score = Some(80);
        assert!(FailOn::Suspicious.matches(&record));
        assert!(!FailOn::Malicious.matches(&record));
        assert!(FailOn::Score(80).matches(&record));
        assert!(!FailOn::Score(81).matches(&record));
    }
}
