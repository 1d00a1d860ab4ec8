//! Flags as a layer of the configuration: what was typed beats every file and variable, and is named where it is wrong.

use super::args::{Global, InputArgs, LogForm, LookupArgs, OutputArgs, OutputForm, OutputSort, PapLevel};
use super::report::CliError;
use jiff::{SignedDuration, Timestamp};
use toml::Value;

/// A flag's value: dotted path, value, the flag as typed.
pub(super) type Flag = (String, Value, String);

/// Gathers flags that were given.
#[derive(Debug, Default)]
pub(super) struct Flags(pub(super) Vec<Flag>);

impl Flags {
    fn put(&mut self, path: &str, value: Option<impl Into<Value>>, flag: &str) {
        if let Some(value) = value {
            self.0.push((path.to_owned(), value.into(), flag.to_owned()));
        }
    }

    pub(super) fn global(&mut self, global: &Global) {
        let form = global.log_format.map(|form| match form {
            LogForm::Auto => "auto",
            LogForm::Text => "text",
            LogForm::Json => "json",
        });
        self.put("log.format", form, "--log-format");
    }

    pub(super) fn input(&mut self, args: &InputArgs) {
        let types = if args.alerts { vec!["alert".to_owned()] } else { args.event_type.clone() };
        let flag = if args.alerts { "--alerts" } else { "--event-type" };
        self.put("input.event_types", (!types.is_empty()).then_some(types), flag);
        self.put("input.max_malformed", args.max_malformed, "--max-malformed");
    }

    pub(super) fn lookups(&mut self, args: &LookupArgs) -> Result<(), CliError> {
        self.put("concurrency", args.concurrency.map(i64::from), "--concurrency");
        self.put("input.limit", args.limit.map(i64::from), "--limit");
        self.put("timeout", args.timeout.clone(), "--timeout");
        self.put("deadline", args.deadline.clone(), "--deadline");
        self.put("max_time", args.max_time.clone(), "--max-time");
        self.put("retries", args.retries.map(i64::from), "--retries");
        self.put("cache.stale_if_error", args.cache.stale_if_error.clone(), "--stale-if-error");
        // A job's records are read by a machine, day after day: what was left out is in the summary.
        self.put("output.skipped", args.job.as_ref().map(|_| false), "--job");
        self.put("pap", args.pap.map(PapLevel::word), "--pap");
        self.put("lists.ask_known_good", args.ask_known_good.then_some(true), "--ask-known-good");
        for rate in &args.rate {
            let Some((provider, rate)) = rate.split_once('=') else {
                return Err(CliError::usage(
                    format!("--rate {rate}: a provider and its rate were expected"),
                    "write it like this: --rate virustotal=4/min",
                ));
            };
            self.put(&format!("providers.{provider}.rate"), Some(rate.to_owned()), "--rate");
        }
        Ok(())
    }

    pub(super) fn output(&mut self, args: &OutputArgs) {
        self.put("output.format", args.format.map(OutputForm::word), "--format");
        self.put("output.fields", (!args.fields.is_empty()).then(|| args.fields.clone()), "--fields");
        self.put("output.defang", args.defang.then_some(true), "--defang");
        let sort = args.sort.map(|sort| match sort {
            OutputSort::Done => "done",
            OutputSort::Input => "input",
            OutputSort::Rank => "rank",
        });
        self.put("output.sort", sort, "--sort");
        self.put("output.skipped", args.no_skipped.then_some(false), "--no-skipped");
    }
}

/// `--since`: a span back from now (`15m`, `24h`, `7d`), or a time.
///
/// # Errors
/// A text that is neither.
pub(super) fn since(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    moment("--since", text, now)
}

/// The same, of another flag.
///
/// # Errors
/// A text that is neither.
pub(super) fn moment(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let tip = "write a span back from now (15m, 24h, 7d) or an RFC 3339 time (2026-01-15T08:00:00Z)";
    let wrong = || CliError::usage(format!("{flag} {text}: neither a span of time nor a time"), tip);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    span(text).and_then(|span| now.checked_sub(span).ok()).ok_or_else(wrong)
}

/// A moment to come: a span from now (`30m`, `2h`, `7d`), or a time.
///
/// # Errors
/// A text that is neither.
pub(super) fn to_come(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let tip = "write a span from now (30m, 2h, 7d) or an RFC 3339 time (2026-01-15T08:00:00Z)";
    let wrong = || CliError::usage(format!("{flag} {text}: neither a span of time nor a time"), tip);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    span(text).and_then(|span| now.checked_add(span).ok()).ok_or_else(wrong)
}

/// `15m`, `24h`, `7d`.
fn span(text: &str) -> Option<SignedDuration> {
    let (count, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let count: i64 = count.parse().ok()?;
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    count.checked_mul(seconds).map(SignedDuration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_spans_and_times() {
        let now: Timestamp = "2026-01-15T10:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("15m", "2026-01-15T09:45:00Z"),
            ("24h", "2026-01-14T10:00:00Z"),
            ("7d", "2026-01-08T10:00:00Z"),
            ("2026-01-01T00:00:00+01:00", "2025-12-31T23:00:00Z"),
        ] {
            assert_eq!(since(text, now).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(to_come("--expires", "2h", now).unwrap().to_string(), "2026-01-15T12:00:00Z");
        for text in ["", "7", "d", "-3d", "7 parsecs", "99999999999999999d", "yesterday"] {
            assert!(since(text, now).is_err(), "{text}");
            assert!(to_come("--expires", text, now).is_err(), "{text}");
        }
    }
}
