//! Batches: the fewest requests, and each address its own outcome.

use super::*;
use crate::provider::ErrorType;

const QUICK: &str = "[every]\nlatency = '20ms'";

/// GreyNoise takes IPv4 alone, and there are not enough documentation addresses of that family: these are made, and
/// asked of loopback.
fn greynoise(scenario: &str, addresses: usize) -> World {
    let mut world = World::of("greynoise", scenario, 0).adjusted(|settings| settings.quotas.clear());
    world.list = (0..addresses).map(|n| address(n) + "\n").collect();
    world
}

fn address(n: usize) -> String {
    std::net::Ipv4Addr::from_bits(0x0b00_0000 + u32::try_from(n).unwrap()).to_string()
}

#[test]
fn ten_thousand_addresses_take_the_fewest_requests() {
    for (addresses, requests) in [(10_000, 1), (1, 1)] {
        let came = greynoise(QUICK, addresses).run();
        came.is_whole(addresses);
        assert_eq!((came.answered(), came.provider("greynoise").requests), (addresses, requests));
        assert_eq!(came.stats[0].sent, addresses as u64);
    }
}

#[test]
fn one_address_that_the_provider_does_not_take_costs_one_error() {
    let bad = address(617);
    let scenario = format!("{QUICK}\n[[every.faults]]\nkind = 'status'\nstatus = 400\naddresses = ['{bad}']");
    let came = greynoise(&scenario, 1_000).run();
    came.is_whole(1_000);
    assert_eq!(came.answered(), 999);
    let errors: Vec<_> = came.errors().map(|(error, _)| (error.error, error.http_status)).collect();
    assert_eq!(errors, [(ErrorType::InvalidRequest, Some(400))]);
    // Halved ten times, both halves asked each time.
    assert!(came.provider("greynoise").requests <= 21, "{}", came.provider("greynoise").requests);
}

#[test]
fn one_address_that_the_reply_leaves_out_is_asked_alone_and_costs_one_error() {
    let mut world = greynoise(QUICK, 1_000);
    world.list += "2001:db8::7\n";
    world.both_families = true;
    let came = world.run();
    came.is_whole(1_001);
    assert_eq!((came.answered(), came.provider("greynoise").requests), (1_000, 2));
    let errors: Vec<_> = came.errors().map(|(error, _)| (error.error, error.http_status)).collect();
    assert_eq!(errors, [(ErrorType::InvalidRequest, Some(400))], "as if it had been asked alone");
}

#[test]
fn what_a_reply_leaves_out_for_good_is_an_error_each() {
    let mut world = greynoise(QUICK, 90);
    (0..10).for_each(|n| writeln!(world.list, "2001:db8::{n}").unwrap());
    world.both_families = true;
    let came = world.run();
    came.is_whole(100);
    assert_eq!((came.answered(), came.errors().count()), (90, 10));
    assert!(
        came.errors().all(|(error, attempts)| error.error == ErrorType::InvalidResponse && attempts == 4)
    );
    assert_eq!(came.provider("greynoise").requests, 4, "all of them together each time");
}

#[test]
fn quota_is_counted_in_look_ups_where_the_definition_says_so() {
    let came =
        greynoise(QUICK, 200).adjusted(|settings| settings.quotas = vec!["50/week".parse().unwrap()]).run();
    came.is_whole(200);
    assert_eq!((came.answered(), came.stats[0].unasked, came.provider("greynoise").requests), (50, 150, 1));
    assert!(
        came.errors().all(|(error, _)| error.error == ErrorType::QuotaExhausted && error.retry_at.is_some())
    );
}

#[test]
fn and_in_requests_where_it_says_that() {
    let world = World::of("misp", QUICK, 450);
    let came = world.adjusted(|settings| settings.quotas = vec!["3/day".parse().unwrap()]).run();
    came.is_whole(450);
    assert_eq!((came.answered(), came.stats[0].unasked, came.provider("misp").requests), (300, 150, 3));
}

#[test]
fn no_window_is_exceeded_by_batches_and_nearly_all_of_the_rate_is_used() {
    for (rate, kind) in [("50/s", "sliding"), ("50/s", "fixed"), ("300/min", "sliding")] {
        let (count, per) = rate.split_once('/').unwrap();
        let scenario = format!(
            "{QUICK}\n[providers.ipinfo]\nlimits = [{{ count = {count}, per = '1{per}', kind = '{kind}' }}]"
        );
        let came = World::of("ipinfo", &scenario, 700)
            .adjusted(move |settings| settings.rates = vec![rate.parse().unwrap()])
            .run();
        let report = came.is_whole(700).provider("ipinfo");
        assert_eq!((came.answered(), report.too_many), (700, 0), "{rate} {kind} {:?}", came.errors().next());
        let window = rate.parse::<crate::provider::Quota>().unwrap();
        // The first window is filled at once, and so is the last.
        let windows = 700_f64 / f64::from(window.count.get()) - 1.0;
        let ideal = windows.ceil() * window.window.length().as_secs_f64();
        assert!(
            came.took.as_secs_f64() <= ideal / 0.985 + 0.1,
            "{rate} {kind}: {:?} against {ideal}",
            came.took
        );
    }
}

#[test]
fn a_refusal_holds_the_batch_back_whole() {
    let fault = "[[every.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '2s'\nfrom = 1\nfirst = 1";
    let came = greynoise(&format!("{QUICK}\n{fault}"), 500).run();
    let report = came.is_whole(500).provider("greynoise");
    assert_eq!((came.answered(), report.requests, report.in_hold_off), (500, 2, 0));
    assert!(came.took >= Duration::from_secs(2), "{:?}", came.took);
}

#[test]
fn a_failure_of_its_side_is_tried_again_whole() {
    let fault = "[[every.faults]]\nkind = 'status'\nstatus = 503\nfrom = 1\nfirst = 2";
    let came = greynoise(&format!("{QUICK}\n{fault}"), 500).run();
    assert_eq!((came.is_whole(500).answered(), came.provider("greynoise").requests), (500, 3));
    assert_eq!(came.stats[0].retries, 2);
}

#[test]
fn a_batch_that_is_not_answered_in_time_is_halved() {
    let fault = "[[every.faults]]\nkind = 'stall'\nfrom = 1\nfirst = 1";
    let came = greynoise(&format!("{QUICK}\n{fault}"), 500).run();
    assert_eq!((came.is_whole(500).answered(), came.provider("greynoise").requests), (500, 3));
}

#[test]
fn a_page_in_the_place_of_every_reply_closes_the_lane() {
    let came = greynoise(&format!("{QUICK}\n[[every.faults]]\nkind = 'html'"), 5_000).run();
    came.is_whole(5_000);
    assert_eq!(came.answered(), 0);
    assert!(came.provider("greynoise").requests <= 16, "{}", came.provider("greynoise").requests);
}

#[test]
fn a_bulk_form_that_takes_nothing_is_given_up_for_the_single_one() {
    let bad: Vec<String> = (0..64).map(|n| format!("'{}'", address(n))).collect();
    let fault = format!("[[every.faults]]\nkind = 'status'\nstatus = 400\naddresses = [{}]", bad.join(", "));
    let came = greynoise(&format!("{QUICK}\n{fault}"), 64).run();
    came.is_whole(64);
    assert_eq!(came.errors().count(), 64);
    // Eight batches, and then one by one: fewer than halving all the way down.
    let requests = came.provider("greynoise").requests;
    assert!((64..=64 + 16).contains(&requests), "{requests}");
}

#[test]
fn the_cascade_fills_batches_too() {
    let mut world = World::of("abuseipdb", "[every]\nlatency = '10ms'", 300);
    world.lanes = vec![("abuseipdb", Ask::Always), ("misp", Ask::Suspicious)];
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(300);
    let asked = came.finished.iter().filter(|finished| finished.parts.len() == 2).count();
    let requests = came.provider("misp").requests;
    assert!(asked > 200 && requests <= 12, "{asked} in {requests}");
}

#[test]
fn a_batch_that_waits_is_given_up_with_the_run() {
    // The slow lane keeps the horizon where it is, so the rest of a third batch never fills.
    let mut world =
        World::of("misp", "[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'", 20_000);
    world.lanes = vec![("ipinfo", Ask::Always), ("virustotal", Ask::Always)];
    world.stop_after = Some(Duration::from_secs(30));
    let came = world
        .adjusted(|settings| {
            settings.quotas.clear();
            settings.slots = settings.slots.min(2);
            if settings.breaker.window == 10 {
                settings.rates.clear();
            }
        })
        .run();
    came.is_whole(20_000);
}

#[test]
fn no_record_waits_for_a_batch_to_fill() {
    // The other lane takes 4 a minute: its first answer must not wait for 10,000 others.
    let mut world = greynoise("[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'", 40);
    world.lanes = vec![("greynoise", Ask::Always), ("virustotal", Ask::Always)];
    let came = world
        .adjusted(|settings| {
            let is_slow = settings.quotas.iter().any(|quota| quota.count.get() == 500);
            settings.rates = if is_slow { vec!["4/min".parse().unwrap()] } else { Vec::new() };
            settings.quotas.clear();
        })
        .run();
    came.is_whole(40);
    assert_eq!(came.provider("greynoise").requests, 1);
    assert!(came.provider("greynoise").last_ms < 100.0);
}
