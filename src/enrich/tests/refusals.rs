//! A 429 is an instruction to the whole lane.

use super::*;
use crate::provider::ErrorType;

fn virustotal(more: &str) -> String {
    format!("[providers.virustotal]\nlatency = '20ms'\nsize = 'small'\n{more}")
}

/// Nothing came in a hold-off but what crossed the 429 on its way: that left before anybody could know.
fn assert_keeps_off(report: &crate::simulate::ProviderReport) {
    let late = report.hold_off_breaches.iter().find(|breach| breach.after_ms > 5.0);
    assert!(late.is_none(), "{late:?}");
}

#[test]
fn nothing_is_sent_in_a_hold_off() {
    let scenario = virustotal(
        "[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '2s'\nfrom = 40\nfirst = 1",
    );
    let came = World::of("virustotal", &scenario, 200).adjusted(|settings| settings.quotas.clear()).run();
    let report = came.is_whole(200).provider("virustotal");
    assert_eq!(came.answered(), 200);
    assert_eq!(report.too_many, 1);
    assert_keeps_off(report);
    assert!(came.took >= Duration::from_secs(2));
    // The refused look-up took its second token like any other attempt.
    assert_eq!(came.stats[0].requests, 201);
}

#[test]
fn without_a_header_the_waits_grow_and_differ() {
    let scenario = virustotal(
        "[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = 'none'\nfrom = 3\nto = 7",
    );
    let mut world = World::of("virustotal", &scenario, 10);
    world.concurrency = 1;
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(10);
    let arrivals = &came.provider("virustotal").arrivals_ms;
    let waits: Vec<f64> = arrivals[2..8].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits.len(), 5);
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
    assert!(waits[0] >= 1_000.0, "{waits:?}");
    assert_eq!(came.answered(), 10);
}

#[test]
fn a_hold_off_beyond_the_deadline_closes_the_lane_at_once() {
    let scenario = virustotal(
        "[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '8h'\nfrom = 21",
    );
    let came = World::of("virustotal", &scenario, 200).adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(200);
    assert_eq!(came.answered(), 20);
    assert!(came.took < Duration::from_secs(2), "{:?}", came.took);
    let at = "2026-01-15T18:00:00Z".parse::<jiff::Timestamp>().unwrap();
    assert!(
        came.errors()
            .all(|(error, _)| error.error == ErrorType::RateLimited && error.retry_at.unwrap() >= at)
    );
}

#[test]
fn a_hold_off_beyond_the_run_closes_the_lane_at_once() {
    let scenario = virustotal(
        "[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '30s'\nfrom = 21",
    );
    let mut world = World::of("virustotal", &scenario, 200).adjusted(|settings| settings.quotas.clear());
    world.max_time = Some(Duration::from_secs(10));
    let came = world.run();
    assert_eq!(came.is_whole(200).answered(), 20);
    assert!(came.took < Duration::from_secs(2), "{:?}", came.took);
}

#[test]
fn odd_waits_are_read_for_what_they_are() {
    for (odd, least, most) in [
        ("zero", 1.0, 1.5),
        ("negative", 1.0, 1.5),
        ("garbage", 1.0, 2.5),
        ("date", 0.9, 4.0),
        ("3s", 3.0, 3.6),
    ] {
        let scenario = virustotal(&format!(
            "[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '{odd}'\nfrom = 5\nfirst = 1"
        ));
        let mut world = World::of("virustotal", &scenario, 10);
        world.concurrency = 1;
        let came = world.adjusted(|settings| settings.quotas.clear()).run();
        assert_eq!(came.is_whole(10).answered(), 10, "{odd}");
        let arrivals = &came.provider("virustotal").arrivals_ms;
        let wait = (arrivals[5] - arrivals[4]) / 1e3;
        assert!((least..=most).contains(&wait), "{odd}: {wait}");
    }
}

#[test]
fn a_provider_that_only_refuses_is_given_up_within_the_deadline() {
    let scenario =
        virustotal("[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '10s'");
    let came = World::of("virustotal", &scenario, 50).adjusted(|settings| settings.quotas.clear()).run();
    assert_eq!(came.is_whole(50).answered(), 0);
    assert!(came.took <= Duration::from_secs(121), "{:?}", came.took);
    let report = came.provider("virustotal");
    assert!(report.requests <= 16 + 12, "the first burst, then one at a time: {}", report.requests);
    assert_keeps_off(report);
}

#[test]
fn a_refused_key_costs_at_most_what_was_in_flight() {
    let scenario = "[providers.abuseipdb]\nkey = 'another'\nlatency = '20ms'\n[providers.virustotal]\nkey = 'another'\nlatency = '20ms'";
    for provider in ["abuseipdb", "virustotal"] {
        let came = World::of(provider, scenario, 300).adjusted(|settings| settings.quotas.clear()).run();
        assert_eq!(came.is_whole(300).answered(), 0);
        assert!(came.provider(provider).requests <= 16);
        assert!(came.errors().all(|(error, _)| error.error == ErrorType::Unauthorized), "{provider}");
        assert!(came.took < Duration::from_secs(1));
    }
}
