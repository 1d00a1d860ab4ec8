use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::enrich::outcome::CacheUse;
use crate::output::record::Record;

pub(in crate::output) fn answered(provider: &str, role: Role, answer: Answer) -> Part {
    let outcome = Outcome::Answered {
        answer: Box::new(answer),
        cache: CacheUse::Miss,
        fetched_at: Timestamp::UNIX_EPOCH,
        attempts: 1,
        latency: Duration::from_millis(84),
        raw: None,
    };
    Part { provider: provider.into(), role, outcome }
}

pub(in crate::output) fn failed(provider: &str, role: Role, error: ErrorType) -> Part {
    let error = ErrorBody::new(error, "no answer");
    Part {
        provider: provider.into(),
        role,
        outcome: Outcome::Failed { error, attempts: 1, latency: Duration::ZERO },
    }
}

fn says(verdict: Verdict) -> Answer {
    Answer { verdict, found: true, ..Answer::not_found() }
}

use ErrorType::{CircuitOpen, Internal, QuotaExhausted, RateLimited, Timeout, Unauthorized};
use Role::{Context, Reputation};
use Verdict::{Benign, Malicious, Suspicious, Unknown};

#[test]
fn each_rule_decides_its_case() {
    let ok = |name: &str, role, verdict| answered(name, role, says(verdict));
    let known_good = Answer { known_good: true, ..says(Unknown) };
    let cases = [
        (vec![ok("a", Context, Unknown)], Rule::OnlyContext, Unknown),
        (vec![ok("a", Reputation, Malicious), ok("b", Reputation, Benign)], Rule::Conflict, Suspicious),
        (vec![ok("a", Reputation, Suspicious), ok("b", Reputation, Benign)], Rule::Conflict, Suspicious),
        (
            vec![ok("a", Reputation, Malicious), answered("b", Reputation, known_good)],
            Rule::Conflict,
            Suspicious,
        ),
        (vec![ok("a", Reputation, Malicious), ok("b", Context, Benign)], Rule::WorstAnswer, Malicious),
        (vec![ok("a", Reputation, Malicious), ok("b", Reputation, Suspicious)], Rule::WorstAnswer, Malicious),
        (vec![ok("a", Reputation, Unknown), ok("b", Reputation, Suspicious)], Rule::WorstAnswer, Suspicious),
        (
            vec![ok("a", Reputation, Malicious), failed("b", Reputation, Timeout)],
            Rule::WorstAnswer,
            Malicious,
        ),
        (vec![ok("a", Reputation, Benign), failed("b", Reputation, Timeout)], Rule::BenignWithheld, Unknown),
        (vec![ok("a", Reputation, Benign), failed("b", Context, Timeout)], Rule::VouchedFor, Benign),
        (vec![ok("a", Reputation, Benign), ok("b", Reputation, Unknown)], Rule::VouchedFor, Benign),
        (vec![answered("a", Reputation, Answer::not_found())], Rule::NobodyKnows, Unknown),
    ];
    for (parts, rule, verdict) in cases {
        let joint = join(&parts);
        assert_eq!((joint.rule, joint.verdict), (Some(rule), Some(verdict)), "{parts:?}");
        assert_eq!(joint.conflict, rule == Rule::Conflict);
        assert_eq!(joint.status, Status::Ok);
    }
}

#[test]
fn context_neither_saves_nor_spoils_a_record() {
    let joint = join(&[failed("vt", Reputation, Timeout), answered("shodan", Context, says(Unknown))]);
    assert_eq!((joint.status, joint.complete, joint.found), (Status::Error, false, None));
    let joint = join(&[answered("vt", Reputation, says(Malicious)), failed("shodan", Context, Timeout)]);
    assert_eq!((joint.status, joint.complete, joint.found), (Status::Ok, true, Some(true)));
}

#[test]
fn context_alone_decides_all_but_the_verdict() {
    let answer = Answer { score: Some(90), ..says(Malicious) };
    let joint = join(&[answered("shodan", Context, answer), failed("internetdb", Context, Timeout)]);
    assert_eq!((joint.status, joint.verdict, joint.score), (Status::Ok, Some(Unknown), None));
    assert_eq!((joint.complete, joint.found), (false, Some(true)));
    let joint = join(&[failed("internetdb", Context, Timeout)]);
    assert_eq!((joint.status, joint.verdict), (Status::Error, None));
}

#[test]
fn the_most_useful_failure_speaks_for_the_record() {
    let errors = [Internal, Timeout, CircuitOpen, RateLimited, QuotaExhausted, Unauthorized];
    for (place, expected) in errors.iter().enumerate() {
        let parts: Vec<Part> =
            errors[..=place].iter().map(|error| failed(error.as_str(), Reputation, *error)).collect();
        let (provider, body) = join(&parts).error.unwrap();
        assert_eq!((provider.as_deref(), body.error), (Some(expected.as_str()), *expected));
    }
    let parts = [failed("b", Reputation, Timeout), failed("a", Reputation, Timeout)];
    assert_eq!(join(&parts).error.unwrap().0.as_deref(), Some("a"));
}

#[test]
fn nobody_asked_is_an_error_not_a_verdict() {
    let joint = join(&[]);
    assert_eq!((joint.status, joint.verdict, joint.complete), (Status::Error, None, false));
    assert_eq!(joint.error.unwrap().1.error, Internal);
}

#[test]
fn facts_come_from_the_first_name_that_has_them() {
    let with = |country: Option<&str>, asn, tags: &[&str]| Answer {
        country: country.map(str::to_owned),
        asn,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        score: asn.map(|_| 35),
        ..says(Suspicious)
    };
    let joint = join(&[
        answered("c", Reputation, with(Some("NL"), Some(64496), &["ssh", "scan"])),
        answered("b", Context, with(Some("DE"), None, &["tor"])),
        answered("a", Reputation, with(None, None, &["scan"])),
    ]);
    assert_eq!((joint.country.as_deref(), joint.asn, joint.score), (Some("DE"), Some(64496), Some(35)));
    assert_eq!(joint.tags, ["scan", "ssh", "tor"]);
}

pub(in crate::output) fn any_part() -> impl Strategy<Value = Part> {
    let name = prop::sample::select(vec!["abuseipdb", "greynoise", "otx", "shodan", "urlscan", "virustotal"]);
    let role = prop::sample::select(vec![Context, Reputation]);
    let answer = (
        prop::sample::select(vec![Malicious, Suspicious, Benign, Unknown]),
        prop::option::of(0..=100u8),
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec("[a-z]{1,3}", 0..4),
        prop::option::of(prop::sample::select(vec!["DE", "NL"])),
    )
        .prop_map(|(verdict, score, found, known_good, tags, country)| Answer {
            verdict,
            score,
            found,
            known_good,
            tags,
            country: country.map(str::to_owned),
            ..Answer::not_found()
        });
    let error = prop::sample::select(ErrorType::ALL.to_vec());
    (name, role, prop_oneof![answer.prop_map(Ok), error.prop_map(Err)]).prop_map(|(name, role, outcome)| {
        match outcome {
            Ok(answer) => answered(name, role, answer),
            Err(error) => failed(name, role, error),
        }
    })
}

/// Each provider answers once.
pub(in crate::output) fn any_parts() -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(any_part(), 0..6).prop_map(|mut parts| {
        parts.sort_by(|a, b| a.provider.cmp(&b.provider));
        parts.dedup_by(|a, b| a.provider == b.provider);
        parts
    })
}

proptest! {
    #[test]
    fn the_order_of_parts_does_not_matter(
        (parts, shuffled) in any_parts().prop_flat_map(|parts| (Just(parts.clone()), Just(parts).prop_shuffle()))
    ) {
        prop_assert_eq!(join(&parts), join(&shuffled));
        let record = |parts| Record::joined("192.0.2.1".parse().unwrap(), None, parts, Timestamp::UNIX_EPOCH);
        prop_assert_eq!(record(parts), record(shuffled));
    }

    #[test]
    fn a_failure_never_reads_as_benign(parts in any_parts(), error in prop::sample::select(ErrorType::ALL.to_vec())) {
        let mut parts = parts;
        parts.push(failed("zz", Reputation, error));
        let joint = join(&parts);
        prop_assert_ne!(joint.verdict, Some(Benign));
        prop_assert!(!joint.complete);
    }

    #[test]
    fn status_and_verdict_go_together(parts in any_parts()) {
        let joint = join(&parts);
        let is_ok = joint.status == Status::Ok;
        prop_assert_eq!(joint.verdict.is_some(), is_ok);
        prop_assert_eq!(joint.found.is_some(), is_ok);
        prop_assert_eq!(joint.rule.is_some(), is_ok);
        prop_assert_eq!(joint.error.is_some(), !is_ok);
        prop_assert!(is_ok || joint.score.is_none());
    }

    /// Another answer never makes a record look better than an accusation allows.
    #[test]
    fn an_accusation_is_never_lost(parts in any_parts()) {
        let mut parts = parts;
        parts.push(answered("zz", Reputation, says(Malicious)));
        let verdict = join(&parts).verdict;
        prop_assert!(matches!(verdict, Some(Malicious | Suspicious)));
    }
}
