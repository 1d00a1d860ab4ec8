use serde_json::json;

use super::*;
use crate::provider::Thresholds;

fn rules(role: Role) -> Rules {
    Rules { role, thresholds: Thresholds::default() }
}

fn answer(output: &Value) -> Answer {
    check(rules(Role::Reputation), output.as_object().unwrap(), None).unwrap()
}

#[test]
fn verdicts_follow_the_word_then_the_score() {
    for (output, role, expected) in [
        (json!({"found": true, "score": 75}), Role::Reputation, Verdict::Malicious),
        (json!({"found": true, "score": 74.4}), Role::Reputation, Verdict::Suspicious),
        (json!({"found": true, "score": 25}), Role::Reputation, Verdict::Suspicious),
        (json!({"found": true, "score": 24}), Role::Reputation, Verdict::Unknown),
        (json!({"found": true, "score": 0}), Role::Reputation, Verdict::Unknown),
        (json!({"found": true}), Role::Reputation, Verdict::Unknown),
        (json!({"found": true, "verdict": "benign", "score": 90}), Role::Reputation, Verdict::Benign),
        (json!({"found": true, "known_good": true}), Role::Reputation, Verdict::Benign),
        (json!({"found": false, "score": 90}), Role::Reputation, Verdict::Unknown),
        (json!({"found": true, "verdict": "malicious", "score": 90}), Role::Context, Verdict::Unknown),
    ] {
        let answer = check(rules(role), output.as_object().unwrap(), None).unwrap();
        assert_eq!(answer.verdict, expected, "{output}");
        assert!(answer.found || answer.score.is_none());
    }
    let torn = answer(&json!({"found": true, "known_good": true, "verdict": "malicious"}));
    assert!(!torn.known_good);
}

#[test]
fn what_the_author_got_wrong_is_a_fault() {
    for (output, reach) in [
        (json!({"score": 1}), Reach::Lane),
        (json!({"found": "yes"}), Reach::Lane),
        (json!({"found": true, "verdct": "malicious"}), Reach::Lane),
        (json!({"found": true, "verdict": "bad"}), Reach::Lane),
        (json!({"found": true, "known_good": 1}), Reach::Lane),
        (json!({"found": true, "score": 101}), Reach::Lookup),
        (json!({"found": true, "score": -1}), Reach::Lookup),
        (json!({"found": true, "score": "7"}), Reach::Lookup),
        (json!({"found": false, "verdict": "benign"}), Reach::Lookup),
        (json!({"found": false, "known_good": true}), Reach::Lookup),
    ] {
        let fault = check(rules(Role::Reputation), output.as_object().unwrap(), None).unwrap_err();
        assert_eq!(fault.reach, reach, "{output}");
    }
}

#[test]
fn decorations_are_cleaned_sorted_and_bounded() {
    let many: Vec<String> = (0..100).map(|n| format!("t{n:03}")).collect();
    let ports: Vec<u32> = (0..70_000).rev().step_by(100).collect();
    let got = answer(&json!({
        "found": true,
        "tags": ["ssh", "", "ssh", 7, null, "a\u{1b}[31m\nb", "x".repeat(100)],
        "vulns": many,
        "ports": ports,
        "hostnames": null,
        "country": "nl",
        "asn": "AS64500 Example",
        "as_org": "  Example \u{7}Hosting ",
        "reports": 3,
        "base_score": -14,
    }));
    assert_eq!(got.tags, ["a[31mb", "ssh", &"x".repeat(64)]);
    assert_eq!((got.vulns.len(), got.ports.len(), got.hostnames.len()), (MAX_VULNS, MAX_PORTS, 0));
    assert!(got.ports.is_sorted());
    assert_eq!(
        (got.country.as_deref(), got.asn, got.as_org.as_deref()),
        (Some("NL"), Some(64_500), Some("Example Hosting"))
    );
    assert_eq!((got.reports, got.base_score), (Some(3), Some(-14.0)));
    let odd =
        answer(&json!({"found": true, "country": "Netherlands", "asn": 0, "reports": -1, "tags": "ssh"}));
    assert_eq!((odd.country, odd.asn, odd.reports, odd.tags.len()), (None, None, None, 0));
}

#[test]
fn times_become_rfc_3339() {
    for (given, expected) in [
        (json!("2026-01-14T21:17:06+00:00"), Some("2026-01-14T21:17:06Z")),
        (json!("2026-01-14T22:17:06.123+01:00"), Some("2026-01-14T21:17:06Z")),
        (json!("2026-01-14T21:17:06.123456"), Some("2026-01-14T21:17:06Z")),
        (json!("2026-01-14 21:17:06 UTC"), Some("2026-01-14T21:17:06Z")),
        (json!("2026-01-14"), Some("2026-01-14T00:00:00Z")),
        (json!(1_768_424_226), Some("2026-01-14T20:57:06Z")),
        (json!(0), None),
        (json!(-1), None),
        (json!(9_000_000_000_000_000_u64), None),
        (json!("soon"), None),
        (json!(""), None),
        (json!(true), None),
    ] {
        assert_eq!(time(&given).as_deref(), expected, "{given}");
    }
}

#[test]
fn references_are_https() {
    for (given, expected) in [
        ("https://viz.greynoise.io/ip/198.51.100.7", true),
        ("http://viz.greynoise.io/", false),
        ("javascript:alert(1)", false),
        ("https://user:pw@example.net/", false),
        ("//example.net", false),
    ] {
        assert_eq!(reference(given).is_some(), expected, "{given}");
    }
    assert!(reference(&format!("https://example.net/{}", "x".repeat(2_048))).is_none());
}

#[test]
fn an_answer_is_about_the_address_that_was_asked() {
    let about = |named: Value, asked: &str| {
        let output = json!({"found": false, "about": named});
        check(rules(Role::Reputation), output.as_object().unwrap(), Some(asked.parse().unwrap()))
            .map(|_| ())
            .map_err(|fault| (fault.why, fault.reach))
    };
    for (named, asked) in [
        (json!("198.51.100.7"), "198.51.100.7"),
        (json!(" 198.51.100.7 "), "198.51.100.7"),
        (json!("2001:DB8:0:0:0:0:0:7"), "2001:db8::7"),
        (json!("::ffff:198.51.100.7"), "198.51.100.7"),
        // A provider that does not say it is taken at its word.
        (json!(null), "198.51.100.7"),
    ] {
        assert_eq!(about(named.clone(), asked), Ok(()), "{named}");
    }
    for named in [json!("198.51.100.8"), json!("2001:db8::7"), json!("gateway"), json!(""), json!(7)] {
        let (why, reach) = about(named.clone(), "198.51.100.7").unwrap_err();
        let shown = named.as_str().filter(|text| !text.is_empty()).unwrap_or("no address");
        assert_eq!((why, reach), (format!("the reply is about {shown}, not 198.51.100.7"), Reach::Lookup));
    }
}
