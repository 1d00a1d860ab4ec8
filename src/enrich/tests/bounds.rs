//! Never more than the bound: in flight, a window, a day.

use super::*;
use crate::provider::ErrorType;

#[test]
fn what_is_in_flight_never_exceeds_the_bound_and_reaches_it() {
    for bound in [1, 4, 16, 64] {
        let mut world =
            World::of("virustotal", "[providers.virustotal]\nlatency = '50ms'\nsize = 'small'", 400);
        world.concurrency = bound;
        let world = world.adjusted(move |settings| {
            settings.quotas.clear();
            settings.slots = usize::MAX;
        });
        let came = world.run();
        came.is_whole(400);
        assert_eq!(came.answered(), 400);
        assert_eq!(came.ledger.total.peak_in_flight, bound as u64);
        let ideal = 400_usize.div_ceil(bound) as f64 * came.ledger.total.mean_hold_ms / 1e3;
        assert!(came.took.as_secs_f64() <= ideal * 1.03, "{bound}: {:?} against {ideal}", came.took);
    }
}

#[test]
fn a_providers_slots_bound_it_below_the_run() {
    let world = World::of("virustotal", "[providers.virustotal]\nlatency = '50ms'\nsize = 'small'", 60);
    let came = world.adjusted(|settings| settings.slots = 3).run();
    assert_eq!(came.is_whole(60).ledger.total.peak_in_flight, 3);
}

#[test]
fn no_window_is_exceeded_and_nearly_all_of_the_rate_is_used() {
    for (rate, per, count, addresses) in
        [("4/min", "1min", 4, 61), ("20/s", "1s", 20, 1_001), ("50/s", "1s", 50, 2_001)]
    {
        for kind in ["kind = 'sliding'", "kind = 'fixed'", "kind = 'bucket', burst = 2"] {
            let scenario = format!(
                "[providers.virustotal]\nlatency = '30ms'\nsize = 'small'\nlimits = [{{ count = {count}, per = '{per}', {kind} }}]"
            );
            let came = World::of("virustotal", &scenario, addresses)
                .adjusted(move |settings| {
                    settings.rates = vec![rate.parse().unwrap()];
                    settings.quotas.clear();
                })
                .run();
            let report = came.is_whole(addresses).provider("virustotal");
            assert_eq!((report.too_many, came.answered()), (0, addresses), "{rate} {kind}");
            assert!(
                report.limits[0].exceeded == 0 && report.limits[0].max_in_window <= count,
                "{rate} {kind}"
            );
            let window = rate.parse::<Quota>().unwrap().window.length().as_secs_f64();
            let sent = report.per_second * window / count as f64;
            assert!(sent >= 0.985, "{rate} {kind}: {sent}");
        }
    }
}

use crate::provider::Quota;

#[test]
fn a_days_quota_is_spent_to_the_last_and_the_rest_deferred_at_once() {
    let scenario =
        "[providers.abuseipdb]\nlatency = '40ms'\ndaily = { count = 1000, used = 900, reset = '8h' }";
    let came = World::of("abuseipdb", scenario, 205).run();
    came.is_whole(205);
    assert_eq!(came.answered(), 100);
    assert_eq!(came.errors().count(), 105);
    for (error, _) in came.errors() {
        assert_eq!(error.error, ErrorType::QuotaExhausted);
        assert!(error.retry_at.is_some(), "{error:?}");
    }
    assert!(came.provider("abuseipdb").too_many <= 1);
    assert!(came.took < Duration::from_secs(2), "no waiting: {:?}", came.took);
    assert_eq!(came.stats[0].unasked, 105);
}

#[test]
fn a_provider_with_nothing_left_is_asked_once() {
    let scenario =
        "[providers.abuseipdb]\nlatency = '40ms'\ndaily = { count = 1000, used = 1000, reset = '8h' }";
    let came = World::of("abuseipdb", scenario, 205).run();
    assert_eq!((came.is_whole(205).answered(), came.provider("abuseipdb").requests), (0, 1));
    let (error, _) = came.errors().next().unwrap();
    assert_eq!(
        error.retry_at.unwrap().as_second(),
        "2026-01-15T18:00:00Z".parse::<jiff::Timestamp>().unwrap().as_second()
    );
}

#[test]
fn without_headers_a_used_up_day_costs_at_most_what_was_in_flight() {
    let scenario = "[providers.greynoise-community]\nlatency = '40ms'\nheaders = 'none'\nretry_after = 'none'\ndaily = { count = 1000, used = 900, reset = '8h' }";
    let mut world = World::of("abuseipdb", &scenario.replace("greynoise-community", "abuseipdb"), 205);
    world.concurrency = 16;
    let came = world.run();
    came.is_whole(205);
    assert_eq!(came.answered(), 100);
    assert!(came.provider("abuseipdb").too_many <= 16);
    assert!(
        came.errors().all(|(error, _)| error.error == ErrorType::QuotaExhausted && error.retry_at.is_some())
    );
}

#[test]
fn our_own_count_stops_before_the_provider_has_to() {
    let scenario = "[providers.virustotal]\nlatency = '10ms'\nsize = 'small'";
    let came = World::of("virustotal", scenario, 80)
        .adjusted(|settings| settings.quotas = vec!["50/day".parse().unwrap()])
        .run();
    assert_eq!((came.is_whole(80).answered(), came.provider("virustotal").requests), (50, 50));
}
