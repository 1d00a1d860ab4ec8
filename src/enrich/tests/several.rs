//! Several providers side by side, and the cascade.

use super::*;
use crate::provider::{ErrorType, Verdict};

#[test]
fn several_providers_meet_in_one_record() {
    let mut world =
        World::of("abuseipdb", "[every]\nlatency = '20ms'\n[providers.virustotal]\nsize = 'small'", 100);
    world.lanes = vec![("abuseipdb", Ask::Always), ("shodan", Ask::Always), ("virustotal", Ask::Always)];
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(100);
    assert!(came.finished.iter().all(|finished| finished.parts.len() == 3));
    assert!(came.ledger.total.peak_in_flight <= 16);
}

#[test]
fn a_slow_lane_does_not_hold_up_a_fast_one() {
    let mut world =
        World::of("abuseipdb", "[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'", 40);
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Always)];
    let came = world
        .adjusted(|settings| {
            if settings.quotas.iter().any(|quota| quota.count.get() == 500) {
                settings.rates = vec!["4/min".parse().unwrap()];
            }
            settings.quotas.clear();
        })
        .run();
    came.is_whole(40);
    assert!(came.provider("abuseipdb").last_ms < 1_000.0);
    assert!(came.took >= Duration::from_secs(9 * 60), "{:?}", came.took);
}

#[test]
fn the_cascade_asks_only_about_what_the_others_did_not_clear_worst_first() {
    let answers = "[answers]\n'2001:db8::1' = 'benign'\n'2001:db8::2' = 'unknown'\n'2001:db8::3' = 'suspicious'\n'2001:db8::4' = 'malicious'\n'2001:db8::5' = 'benign'\n'2001:db8::6' = 'malicious'";
    let scenario = format!("{answers}\n[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'");
    // 2001:db8::0 is left to the draw of the seed; it is not looked at.
    let mut world = World::of("abuseipdb", &scenario, 7);
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Suspicious)];
    let came = world
        .adjusted(|settings| {
            if settings.quotas.iter().any(|quota| quota.count.get() == 500) {
                settings.rates = vec!["4/min".parse().unwrap()];
            }
        })
        .run();
    came.is_whole(7);
    let asked: Vec<String> = came
        .provider("virustotal")
        .order
        .iter()
        .map(ToString::to_string)
        .filter(|ip| ip != "2001:db8::")
        .collect();
    let place = |ip: &str| asked.iter().position(|asked| asked == ip);
    assert_eq!(
        (place("2001:db8::1"), place("2001:db8::5")),
        (None, None),
        "cleared ones are not asked: {asked:?}"
    );
    let (unknown, suspicious) = (place("2001:db8::2").unwrap(), place("2001:db8::3").unwrap());
    let last_malicious = place("2001:db8::4").unwrap().max(place("2001:db8::6").unwrap());
    // The first one handed over may have left before the worse were known.
    assert!(last_malicious < unknown.max(suspicious), "{asked:?}");
    for finished in &came.finished {
        let cleared = finished.parts.iter().any(|part| matches!(&part.outcome, Outcome::Answered { answer, .. } if answer.verdict == Verdict::Benign && &*part.provider == "abuseipdb"));
        assert_eq!(finished.parts.len(), if cleared { 1 } else { 2 });
    }
}

#[test]
fn a_closed_lane_of_the_cascade_leaves_nothing_behind() {
    let scenario = "[every]\nlatency = '10ms'\n[providers.virustotal]\nkey = 'another'\nsize = 'small'";
    let mut world = World::of("abuseipdb", scenario, 300);
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Suspicious)];
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(300);
    assert!(came.provider("virustotal").requests <= 16);
    assert!(came.errors().all(|(error, _)| error.error == ErrorType::Unauthorized));
}

#[test]
fn an_address_that_one_lane_does_not_take_waits_for_nobody() {
    // GreyNoise's community endpoint takes IPv4 alone, and all addresses here are IPv6.
    let mut world = World::of(
        "greynoise-community",
        "[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'",
        50,
    );
    world.lanes = vec![("greynoise-community", Ask::Always), ("virustotal", Ask::Suspicious)];
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(50);
    assert!(came.finished.iter().all(|finished| finished.parts.len() == 1));
}

#[test]
fn more_addresses_than_the_window_hold_up_nobody() {
    let count = super::super::source::WINDOW as usize + 2_000;
    let mut world = World::of("abuseipdb", "[providers.virustotal]\nsize = 'small'\nkey = 'another'", count);
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Always), ("shodan", Ask::Always)];
    let came = world
        .adjusted(|settings| {
            settings.quotas = vec!["100/day".parse().unwrap()];
        })
        .run();
    came.is_whole(count);
    assert_eq!(came.answered(), 200);
}
