//! A filter's answer, checked key by key and bounded.
//!
//! What a filter's author got wrong (an unknown key, a verdict that is no word, a missing `found`) is a fault, since
//! guessing could read as clean. What only decorates and does not fit (a date that is none, a link that is not https)
//! is left out.
//!
//! `about` is the address that the reply itself names, as text: a mixed-up answer must not become anybody's verdict.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::{Timestamp, civil, tz::TimeZone};
use serde_json::{Map, Value};

use super::{body, judge::Rules};
use crate::provider::{Answer, Reach, Role, Verdict};

const KEYS: [&str; 17] = [
    "found",
    "about",
    "verdict",
    "score",
    "base_score",
    "reports",
    "tags",
    "first_seen",
    "last_seen",
    "country",
    "asn",
    "as_org",
    "reference",
    "known_good",
    "ports",
    "hostnames",
    "vulns",
];

/// Tags, and the other lists, stay readable in a record of one line.
const MAX_TAGS: usize = 32;
const MAX_TAG_CHARS: usize = 64;
const MAX_PORTS: usize = 64;
const MAX_HOSTNAMES: usize = 16;
/// DNS allows 253 octets.
const MAX_HOSTNAME_CHARS: usize = 253;
const MAX_VULNS: usize = 64;
const MAX_ORG_CHARS: usize = 128;
const MAX_REFERENCE_BYTES: usize = 2_048;

#[derive(Debug)]
pub(super) struct Fault {
    pub(super) why: String,
    pub(super) reach: Reach,
}

/// The filter itself is wrong: it would be for every reply.
fn broken(why: String) -> Fault {
    Fault { why, reach: Reach::Lane }
}

/// This reply holds what no answer can.
fn odd(why: String) -> Fault {
    Fault { why, reach: Reach::Lookup }
}

/// `asked` is the one address that was asked about, where there is one.
pub(super) fn check(
    rules: Rules,
    output: &Map<String, Value>,
    asked: Option<IpAddr>,
) -> Result<Answer, Fault> {
    if let Some(key) = output.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let key: String = key.chars().filter(|symbol| !symbol.is_control()).take(40).collect();
        return Err(broken(format!("the filter's answer has an unknown key `{key}`")));
    }
    let get = |key: &str| output.get(key).filter(|value| !value.is_null());
    if let Some((asked, named)) = asked.zip(get("about"))
        && !is_same(named, asked)
    {
        return Err(odd(format!("the reply is about {}, not {asked}", shown(named))));
    }
    let found = match get("found") {
        Some(Value::Bool(found)) => *found,
        _ => return Err(broken("the filter's answer does not say whether the address was `found`".into())),
    };
    let word = verdict(get("verdict"))?;
    let score = score(get("score"))?;
    let known_good = match get("known_good") {
        None => false,
        Some(Value::Bool(known_good)) => *known_good,
        Some(_) => return Err(broken("the filter's `known_good` is neither true nor false".into())),
    };
    if !found {
        // Who has never seen an address can say nothing of it, good or bad.
        if known_good || word.is_some_and(|word| word != Verdict::Unknown) {
            return Err(odd("the answer has a verdict on an address that was not found".into()));
        }
        return Ok(Answer { known_good: false, verdict: Verdict::Unknown, ..decorations(&get) });
    }
    let verdict = match (rules.role, word, score) {
        (Role::Reputation, Some(word), _) => word,
        (Role::Reputation, None, _) if known_good => Verdict::Benign,
        (Role::Reputation, None, Some(score)) => rules.thresholds.verdict(score),
        (Role::Reputation, None, None) | (Role::Context, _, _) => Verdict::Unknown,
    };
    // Somebody who vouches for an address and accuses it at once vouches for nothing.
    let known_good = known_good && verdict == Verdict::Benign;
    Ok(Answer { verdict, score, found, known_good, ..decorations(&get) })
}

/// What a reply names, for a message.
fn shown(named: &Value) -> String {
    named.as_str().and_then(|text| line(text, 40)).unwrap_or_else(|| "no address".to_owned())
}

/// Whether the text names the address, in whatever spelling.
fn is_same(named: &Value, asked: IpAddr) -> bool {
    named.as_str().and_then(body::address) == Some(asked.to_canonical())
}

/// The keys that are taken as they fit or left out.
fn decorations<'a>(get: &impl Fn(&str) -> Option<&'a Value>) -> Answer {
    Answer {
        base_score: get("base_score").and_then(Value::as_f64).filter(|number| number.is_finite()),
        reports: get("reports").and_then(Value::as_u64),
        tags: words(get("tags"), MAX_TAGS, MAX_TAG_CHARS),
        first_seen: get("first_seen").and_then(time),
        last_seen: get("last_seen").and_then(time),
        country: get("country").and_then(country),
        asn: get("asn").and_then(asn),
        as_org: get("as_org").and_then(organisation),
        reference: get("reference").and_then(Value::as_str).and_then(reference),
        ports: ports(get("ports")),
        hostnames: words(get("hostnames"), MAX_HOSTNAMES, MAX_HOSTNAME_CHARS),
        vulns: words(get("vulns"), MAX_VULNS, MAX_TAG_CHARS),
        ..Answer::not_found()
    }
}

fn verdict(value: Option<&Value>) -> Result<Option<Verdict>, Fault> {
    match value {
        None => Ok(None),
        Some(value) => serde_json::from_value(value.clone()).map(Some).map_err(|_| {
            broken("the filter's `verdict` is none of malicious, suspicious, benign, unknown".into())
        }),
    }
}

fn score(value: Option<&Value>) -> Result<Option<u8>, Fault> {
    let Some(value) = value else { return Ok(None) };
    let number = value.as_f64().filter(|number| (0.0..=100.0).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    number
        .map(|number| Some(number.round() as u8))
        .ok_or_else(|| odd("the answer's score is not between 0 and 100".into()))
}

/// Text on one line, without control characters; `None` when nothing is left.
fn line(text: &str, max: usize) -> Option<String> {
    let text: String = text.chars().filter(|symbol| !symbol.is_control()).take(max).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn words(value: Option<&Value>, max: usize, max_chars: usize) -> Vec<String> {
    let values = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words = values.iter().filter_map(Value::as_str).filter_map(|text| line(text, max_chars));
    words.collect::<BTreeSet<_>>().into_iter().take(max).collect()
}

fn ports(value: Option<&Value>) -> Vec<u16> {
    let values = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ports = values.iter().filter_map(Value::as_u64).filter_map(|port| u16::try_from(port).ok());
    ports.collect::<BTreeSet<_>>().into_iter().take(MAX_PORTS).collect()
}

pub(in crate::provider) fn country(value: &Value) -> Option<String> {
    let code = value.as_str()?.trim();
    (code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()))
        .then(|| code.to_ascii_uppercase())
}

/// A name on one line.
pub(in crate::provider) fn organisation(value: &Value) -> Option<String> {
    line(value.as_str()?, MAX_ORG_CHARS)
}

/// A number, or a text like `AS64500`; 0 stands for "none" at several providers.
pub(in crate::provider) fn asn(value: &Value) -> Option<u32> {
    let number = match value {
        Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        Value::String(text) => {
            let text = text.trim();
            let digits = text.strip_prefix("AS").or_else(|| text.strip_prefix("as")).unwrap_or(text);
            // Some providers put the name behind the number.
            digits.split_whitespace().next()?.parse().ok()
        }
        _ => None,
    };
    number.filter(|number| *number > 0)
}

/// An https link without a user; other schemes could run something when clicked. Its characters are those of RFC 3986
/// and nothing is rewritten, so that it is no matter of whose URL parser reads it: a host begins with a letter, a digit
/// or a bracket.
fn reference(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[');
    let is_plain =
        rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte));
    let fits = is_host && is_plain && !host.contains('@') && text.len() <= MAX_REFERENCE_BYTES;
    fits.then(|| text.to_owned())
}

/// Epoch seconds, RFC 3339, ISO 8601 without a zone (taken as UTC, which is what providers mean), a bare date, and
/// abuse.ch's `2026-01-14 21:17:06 UTC`; as RFC 3339 in UTC, to the second.
fn time(value: &Value) -> Option<String> {
    let stamp = match value {
        Value::Number(number) => {
            // 0 stands for "never".
            let seconds = number.as_i64().filter(|seconds| *seconds > 0)?;
            Timestamp::from_second(seconds).ok()?
        }
        Value::String(text) => {
            let text = text.trim().trim_end_matches("UTC").trim_end();
            text.parse::<Timestamp>()
                .ok()
                .or_else(|| civil_time(text.parse::<civil::DateTime>().ok()?))
                .or_else(|| {
                    civil_time(text.parse::<civil::Date>().ok()?.to_datetime(civil::Time::midnight()))
                })?
        }
        _ => return None,
    };
    let whole = Timestamp::from_second(stamp.as_second()).ok()?;
    Some(whole.to_string())
}

fn civil_time(time: civil::DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
