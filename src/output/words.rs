//! The run's summary in sentences for people. Pure; the last line says what to do next.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::summary::{ProviderCounts, Summary};
use super::wire::round_up;
use crate::provider::ErrorType;

impl Summary {
    /// The closing words, several lines, each with its newline. `again` is the command to type to ask for the rest.
    ///
    /// ```text
    /// 1,204 addresses in 48,112 events: 12 malicious, 31 suspicious, 402 benign, 747 unknown; 12 not answered, 9 half answered
    ///   abuseipdb   593 requests, 593 addresses sent to api.abuseipdb.com, 611 from cache
    ///   virustotal  572 requests, 572 addresses sent to www.virustotal.com, 611 from cache, 21 not asked: the quota is used up until 00:00 UTC (100 kept for people)
    /// took 2 min 22 s; ask again for the rest after 00:00 UTC: sift enrich eve.json
    /// ```
    #[must_use]
    pub fn words(&self, again: Option<&str>) -> String {
        let mut text = self.first_line();
        text.push('\n');
        let longest = self.providers.keys().map(String::len).max().unwrap_or(0);
        for (name, counts) in &self.providers {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:longest$}  {}", provider_line(counts, self.ended));
        }
        if let Some(local) = &self.local {
            let good = if local.known_good > 0 {
                format!(", {} of them known to be good", thousands(local.known_good))
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "  {} answered by this machine alone{good}",
                counted(local.addresses, "address", "addresses")
            );
        }
        let took = took(self.duration_s);
        let _ = match (&self.stopped_by, self.next_step(again)) {
            (None, None) => writeln!(text, "took {took}"),
            (None, Some(step)) => writeln!(text, "took {took}; {step}"),
            (Some(by), None) => writeln!(text, "{}", stopped(by, &took)),
            (Some(by), Some(step)) => writeln!(text, "{}; {step}", stopped(by, &took)),
        };
        text
    }

    fn first_line(&self) -> String {
        let records = &self.records;
        let skipped: u64 = records.skipped.values().sum();
        let total = records.ok + records.error + skipped;
        let mut text = counted(total, "address", "addresses");
        // The lines that 'lookup' counts are its arguments.
        let is_lookup = self.command == "lookup";
        if self.input.events > 0 {
            let _ = write!(text, " in {}", counted(self.input.events, "event", "events"));
        } else if self.input.lines > 0 && !is_lookup {
            let _ = write!(text, " in {}", counted(self.input.lines, "line", "lines"));
        }
        let verdicts = &self.verdicts;
        let answered = listed(&[
            (verdicts.malicious, "malicious"),
            (verdicts.suspicious, "suspicious"),
            (verdicts.benign, "benign"),
            (verdicts.unknown, "unknown"),
        ]);
        let short = listed(&[
            (records.error, "not answered"),
            (records.incomplete, "half answered"),
            (records.conflict, "on which providers disagree"),
        ]);
        let reasons: Vec<(u64, &str)> =
            records.skipped.iter().map(|(reason, n)| (*n, reason.as_str())).collect();
        let mut parts: Vec<String> = [answered, short].into_iter().filter(|part| !part.is_empty()).collect();
        if skipped > 0 {
            parts.push(format!("{} left out ({})", thousands(skipped), listed(&reasons).replace('_', " ")));
        }
        if !parts.is_empty() {
            let _ = write!(text, ": {}", parts.join("; "));
        }
        // Beside the addresses, not of them.
        if self.input.malformed > 0 {
            let _ = write!(text, "; {} could not be read", counted(self.input.malformed, "line", "lines"));
        }
        text
    }

    /// What helps most: a key to put right, a clock to wait for, a limit to raise, or just to ask again.
    fn next_step(&self, again: Option<&str>) -> Option<String> {
        let refused: Vec<&str> = self.failed_with(&[ErrorType::Unauthorized, ErrorType::Forbidden]);
        if let Some(first) = refused.first() {
            let names = refused.join(", ");
            return Some(format!(
                "put the API key of {names} right: 'sift providers show {first}' says where it is read from"
            ));
        }
        if self.records.error + self.records.incomplete == 0 {
            return None;
        }
        let command = again.map_or(String::new(), |again| format!(": {again}"));
        if let Some(at) = self.providers.values().filter_map(|counts| counts.retry_at).max() {
            return Some(format!("ask again for the rest after {}{command}", clock(at, self.ended)));
        }
        let bounded = ErrorType::BudgetExhausted.as_str();
        let over = self.records.errors.get(bounded).copied().unwrap_or(0);
        if over > 0 && over == self.records.error {
            let addresses = counted(over, "address was", "addresses were");
            let by_budget = self.providers.values().any(|counts| counts.errors.contains_key(bounded));
            let (what, flag) = if by_budget { ("budget", "--budget") } else { ("limit", "--limit") };
            return Some(format!("{addresses} over the {what}: raise it with {flag}"));
        }
        Some(format!("ask again for the rest{command}"))
    }

    fn failed_with(&self, types: &[ErrorType]) -> Vec<&str> {
        let failed =
            |counts: &ProviderCounts| types.iter().any(|error| counts.errors.contains_key(error.as_str()));
        self.providers.iter().filter(|(_, counts)| failed(counts)).map(|(name, _)| name.as_str()).collect()
    }
}

fn provider_line(counts: &ProviderCounts, now: Timestamp) -> String {
    let mut parts = vec![counted(counts.requests, "request", "requests")];
    if counts.sent > 0 && !counts.host.is_empty() {
        parts.push(format!("{} sent to {}", counted(counts.sent, "address", "addresses"), counts.host));
    }
    let cached = counts.cache.hit + counts.cache.stale;
    if cached > 0 {
        parts.push(format!("{} from cache", thousands(cached)));
    }
    if counts.retries > 0 {
        parts.push(counted(counts.retries, "retry", "retries"));
    }
    parts.extend(failures(&counts.errors, counts, now));
    if counts.breaker == "open" {
        parts.push("left alone because it fails".to_owned());
    }
    parts.join(", ")
}

/// What ended the run, from the word for it in the summary.
fn stopped(by: &str, took: &str) -> String {
    let why = match by {
        "max_time" => "--max-time was over",
        "closed_pipe" => "nobody reads the output",
        "output" => "the output could not be written",
        "store" => "the store failed",
        signal => return format!("stopped by {signal} after {took}"),
    };
    format!("stopped after {took}: {why}")
}

/// One phrase for each type of failure, the most useful to act on first.
fn failures(errors: &BTreeMap<String, u64>, counts: &ProviderCounts, now: Timestamp) -> Vec<String> {
    let mut known: Vec<(ErrorType, u64)> = errors
        .iter()
        .filter_map(|(word, n)| Some((ErrorType::from_word(word)?, *n)))
        .filter(|(_, n)| *n > 0)
        .collect();
    known.sort_by_key(|(error, _)| error.precedence());
    known.into_iter().map(|(error, n)| failure(error, n, counts, now)).collect()
}

fn failure(error: ErrorType, n: u64, counts: &ProviderCounts, now: Timestamp) -> String {
    let waits = matches!(error, ErrorType::QuotaExhausted | ErrorType::RateLimited | ErrorType::CircuitOpen);
    let mut text = format!("{} {}", thousands(n), phrase(error, are_all_sent_answered(counts)));
    if let (true, Some(at)) = (waits, counts.retry_at) {
        let _ = write!(text, " until {}", clock(at, now));
    }
    let keeps =
        matches!(error, ErrorType::QuotaExhausted | ErrorType::BudgetExhausted) && counts.reserved > 0;
    if keeps {
        let _ = write!(text, " ({} kept for people)", thousands(counts.reserved));
    }
    text
}

/// Whether every address that was sent has its answer: then those that failed were never sent.
fn are_all_sent_answered(counts: &ProviderCounts) -> bool {
    let failed: u64 = counts.errors.values().sum();
    // A stale answer stands in for a failure, and is counted among those.
    let cached = counts.cache.hit + counts.cache.collapsed;
    counts.sent <= counts.lookups.saturating_sub(failed + cached)
}

/// What is said of so many look-ups that failed, and were never sent if `is_unsent`.
const fn phrase(error: ErrorType, is_unsent: bool) -> &'static str {
    match error {
        ErrorType::RateLimited => "not answered: it asks for fewer requests",
        ErrorType::QuotaExhausted if is_unsent => "not asked: the quota is used up",
        // Some of them were, and refused.
        ErrorType::QuotaExhausted => "not answered: the quota is used up",
        ErrorType::BudgetExhausted => "not asked: over the limit set here",
        ErrorType::Timeout => "not answered within the time-out",
        ErrorType::Deadline => "not answered in time",
        ErrorType::CircuitOpen => "not asked: it failed too often",
        ErrorType::Connection => "without a connection",
        ErrorType::Tls => "not asked: its certificate is not accepted",
        ErrorType::ServerError => "failed on its side",
        ErrorType::Unauthorized => "not answered: it refuses the API key",
        ErrorType::Forbidden => "not answered: the API key does not cover this",
        ErrorType::InvalidRequest => "not answered: it refuses the question",
        ErrorType::InvalidResponse => "with an answer that cannot be read",
        ErrorType::ResponseTooLarge => "with an answer over the size limit",
        ErrorType::Offline => "not in the cache",
        ErrorType::Cancelled if is_unsent => "not asked: the run was stopped",
        ErrorType::Cancelled => "not answered: the run was stopped",
        ErrorType::Internal => "failed by a fault of sift",
    }
}

/// The counts above zero, with their words.
fn listed(counts: &[(u64, &str)]) -> String {
    let shown: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", thousands(*n))).collect();
    shown.join(", ")
}

/// `no lines`, `1 line`, `1,204 lines`.
#[must_use]
pub fn counted(n: u64, one: &str, many: &str) -> String {
    match n {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{} {many}", thousands(n)),
    }
}

/// `1204` as `1,204`.
#[must_use]
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The hour where that says enough, within a day from now; else the date too. Rounded up to the minute when it is not
/// about seconds.
fn clock(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.duration_since(now).as_secs();
    let zoned = TimeZone::UTC.to_datetime(round_up(at));
    let form = match seconds {
        86_400.. => "%Y-%m-%d %H:%M UTC",
        _ if zoned.second() != 0 => "%H:%M:%S UTC",
        _ => "%H:%M UTC",
    };
    zoned.strftime(form).to_string()
}

/// `0.8 s`, `2 min 22 s`, `1 h 12 min`.
fn took(seconds: f64) -> String {
    if seconds < 10.0 {
        return format!("{seconds:.1} s");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 10, and it saturates"
    )]
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, 0) => format!("{min} min"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

#[cfg(test)]
mod tests;
