use proptest::prelude::*;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::*;
use crate::provider::{Filters, Sandbox, Table, Verdict};

const RULES: Rules =
    Rules { role: Role::Reputation, thresholds: Thresholds { malicious: 75, suspicious: 25 } };

fn judge(status: u16, kind: Kind, output: Value) -> Reading {
    let reply = Reply { status, headers: HeaderMap::new(), body: Vec::new() };
    reading(RULES, &reply, kind, Outcome::Output(output), None)
}

fn words(reading: &Reading) -> String {
    match reading {
        Reading::Answer(answer) => format!("{} {}", answer.verdict, answer.found),
        Reading::Failure(failure) => format!("{} {:?} {}", failure.error, failure.reach, failure.retry),
    }
}

/// A failure must never read as clean, whatever the filter makes of it.
#[test]
fn answers_stand_where_answers_can() {
    let clean = || json!({"found": true, "verdict": "benign"});
    for (status, kind, answers) in [
        (200, Kind::Json, true),
        (206, Kind::Json, true),
        (404, Kind::Json, true),
        (204, Kind::Empty, true),
        (200, Kind::Empty, false),
        (200, Kind::Other, false),
        (404, Kind::Other, false),
        (404, Kind::Empty, false),
        (302, Kind::Json, false),
        (401, Kind::Json, false),
        (403, Kind::Json, false),
        (429, Kind::Json, false),
        (500, Kind::Json, false),
        (503, Kind::Other, false),
    ] {
        assert_eq!(matches!(judge(status, kind, clean()), Reading::Answer(_)), answers, "{status} {kind:?}");
    }
}

#[test]
fn failures_take_their_defaults_from_the_word() {
    for (output, expected) in [
        (json!({"error": "unauthorized"}), "unauthorized Lane false"),
        (json!({"error": "quota_exhausted"}), "quota_exhausted Lane false"),
        (json!({"error": "rate_limited"}), "rate_limited Lookup true"),
        (json!({"error": "server_error"}), "server_error Lookup true"),
        (json!({"error": "forbidden"}), "forbidden Lookup false"),
        (json!({"error": "forbidden", "lane": true}), "forbidden Lane false"),
        (json!({"error": "invalid_response", "retry": true}), "invalid_response Lookup true"),
        (json!({"error": "quota_exhausted", "lane": false}), "quota_exhausted Lookup false"),
        // Not words of a filter.
        (json!({"error": "cancelled"}), "invalid_response Lookup false"),
        (json!({"error": "ratelimited"}), "invalid_response Lookup false"),
        (json!({"error": null}), "invalid_response Lookup false"),
        (json!({"error": "forbidden", "lane": "yes"}), "invalid_response Lookup false"),
        (json!({"error": "forbidden", "found": true}), "invalid_response Lookup false"),
        (json!([1]), "invalid_response Lane false"),
        (json!("clean"), "invalid_response Lane false"),
        (json!({}), "invalid_response Lane false"),
    ] {
        assert_eq!(words(&judge(200, Kind::Json, output.clone())), expected, "{output}");
    }
}

#[test]
fn messages_are_one_clean_line() {
    let output = json!({"error": "forbidden", "message": format!("a\n\u{1b}[31mb\u{0} {}", "x".repeat(500))});
    let Reading::Failure(failure) = judge(403, Kind::Json, output) else { panic!() };
    assert!(failure.message.starts_with("a [31mb x"), "{}", failure.message);
    assert_eq!(failure.message.chars().count(), MAX_MESSAGE_CHARS);
}

#[test]
fn a_filter_that_stumbles_over_an_error_page_leaves_the_status_to_speak() {
    let reply = Reply { status: 503, headers: HeaderMap::new(), body: Vec::new() };
    let raised = reading(RULES, &reply, Kind::Other, Outcome::Raised("cannot index".into()), None);
    assert_eq!(words(&raised), "server_error Lookup true");
    let reply = Reply { status: 200, ..reply };
    let raised = reading(RULES, &reply, Kind::Json, Outcome::Raised("cannot index".into()), None);
    assert_eq!(words(&raised), "invalid_response Lookup false");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any bytes under any status give a reading, and never one that reads as clean.
    #[test]
    fn reading_never_panics(status in 0u16..1200, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        static FILTERS: std::sync::LazyLock<(Filters, usize)> = std::sync::LazyLock::new(|| {
            let all: Vec<_> = Table::builtin().unwrap().iter().cloned().collect();
            (Filters::new(&all, Sandbox::InProcess, Thresholds::default()).unwrap(), all.len())
        });
        let (filters, lanes) = &*FILTERS;
        let reply = Reply { status, headers: HeaderMap::new(), body };
        for lane in 0..*lanes {
            if let Reading::Answer(answer) = filters.read_here(lane, None, &reply) {
                prop_assert_ne!(answer.verdict, Verdict::Benign);
            }
        }
    }
}
