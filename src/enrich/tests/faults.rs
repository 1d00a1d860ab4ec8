//! A provider in trouble: every failure has its name, nothing hangs, and the run goes on.

use super::*;
use crate::provider::ErrorType;
use std::collections::BTreeSet;

fn one_fault(kind: &str) -> Came {
    let scenario = format!(
        "[providers.virustotal]\nlatency = '5ms'\nsize = 'small'\n[[providers.virustotal.faults]]\n{kind}\naddresses = ['2001:db8::5']"
    );
    World::of("virustotal", &scenario, 20)
        .adjusted(|settings| {
            settings.quotas.clear();
            settings.timeout = Duration::from_secs(2);
            settings.retries = 1;
        })
        .run()
}

#[test]
fn each_fault_has_its_error_and_the_others_their_answers() {
    for (kind, error) in [
        ("kind = 'status'\nstatus = 500", ErrorType::ServerError),
        ("kind = 'status'\nstatus = 400", ErrorType::InvalidRequest),
        ("kind = 'stall'", ErrorType::Timeout),
        ("kind = 'cut'", ErrorType::Connection),
        ("kind = 'reset'", ErrorType::Connection),
        ("kind = 'huge'", ErrorType::ResponseTooLarge),
        ("kind = 'nest'", ErrorType::ResponseTooLarge),
        ("kind = 'html'", ErrorType::InvalidResponse),
        ("kind = 'html404'", ErrorType::InvalidResponse),
        ("kind = 'gzip-bomb'", ErrorType::ResponseTooLarge),
    ] {
        let came = one_fault(kind);
        came.is_whole(20);
        assert_eq!(came.answered(), 19, "{kind}");
        let errors: Vec<ErrorType> = came.errors().map(|(error, _)| error.error).collect();
        assert_eq!(errors, [error], "{kind}");
        assert!(came.took <= Duration::from_secs(10), "{kind}: {:?}", came.took);
    }
}

#[test]
fn a_server_that_takes_the_request_is_not_said_to_be_out_of_reach() {
    for (kind, words) in
        [("kind = 'stall'", "no answer in 2 attempts"), ("kind = 'reset'", "gave no HTTP reply: ")]
    {
        let came = one_fault(kind);
        let said: Vec<&str> = came.errors().map(|(error, _)| &*error.message).collect();
        assert!(matches!(said.as_slice(), [said] if said.starts_with(words)), "{said:?}");
    }
}

#[test]
fn no_key_follows_a_redirect() {
    let came = one_fault("kind = 'redirect'\nlocation = '/__trap'");
    assert_eq!(came.errors().map(|(error, _)| error.error).collect::<Vec<_>>(), [ErrorType::InvalidResponse]);
    assert_eq!((came.ledger.trap.requests, came.ledger.trap.with_key), (0, 0));
}

#[test]
fn a_dead_provider_is_given_up_after_one_probe_and_not_hammered() {
    let scenario = "[providers.virustotal]\n[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 500";
    let came = World::of("virustotal", scenario, 500).adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(500);
    let requests = came.provider("virustotal").requests;
    assert!(requests <= 8 + 16 + 1, "{requests}");
    assert!(came.took >= Duration::from_secs(30) && came.took < Duration::from_secs(40), "{:?}", came.took);
    for (error, attempts) in came.errors() {
        let expected = if attempts == 0 { ErrorType::CircuitOpen } else { ErrorType::ServerError };
        assert_eq!(error.error, expected, "what was asked is told for what it met");
    }
    assert!(came.errors().all(|(error, attempts)| attempts > 0 || error.retry_at.is_some()));
}

#[test]
fn a_bad_start_is_waited_out() {
    let scenario = "[providers.virustotal]\nlatency = '20ms'\nsize = 'small'\n[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 500\nfirst = 10";
    let came = World::of("virustotal", scenario, 205).adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(205);
    assert!(came.answered() >= 195, "{}", came.answered());
}

#[test]
fn a_burst_of_failures_is_ridden_out_where_the_provider_worked_before() {
    let scenario = "[providers.virustotal]\nlatency = '10ms'\nsize = 'small'\n[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 503\nretry_after = 'none'\nfrom = 50\nto = 59";
    let came = World::of("virustotal", scenario, 300)
        .adjusted(|settings| {
            settings.quotas.clear();
            // Ten of sixteen in flight fail: in whatever order they land, four of some ten do.
            settings.breaker.failures = 4;
        })
        .run();
    came.is_whole(300);
    assert!(came.answered() >= 295, "{} {:?}", came.answered(), came.errors().next());
    assert_eq!(came.stats[0].breaker, "closed");
    assert!(came.took < Duration::from_secs(60), "{:?}", came.took);
}

#[test]
fn retries_stay_within_their_budget() {
    let scenario = "[providers.virustotal]\nlatency = '10ms'\nsize = 'small'\n[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 500\nshare = 0.3";
    let came = World::of("virustotal", scenario, 1_000).adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(1_000);
    assert!(came.stats[0].retries <= 210, "{}", came.stats[0].retries);
    assert_eq!(came.stats[0].requests, came.provider("virustotal").requests);
}

#[test]
fn a_stop_lets_what_is_in_flight_answer_and_gives_the_rest_their_records() {
    let mut world = World::of("virustotal", "[providers.virustotal]\nlatency = '1s'\nsize = 'small'", 200);
    world.stop_after = Some(Duration::from_millis(2_500));
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(200);
    assert_eq!(came.answered(), 48);
    assert!(came.errors().all(|(error, _)| error.error == ErrorType::Cancelled));
    assert!(came.took <= Duration::from_millis(3_200), "{:?}", came.took);
}

#[test]
fn a_stop_waits_for_a_stall_no_longer_than_its_grace() {
    let scenario = "[providers.virustotal]\n[[providers.virustotal.faults]]\nkind = 'stall'";
    let mut world = World::of("virustotal", scenario, 50);
    world.stop_after = Some(Duration::from_secs(1));
    let came = world.adjusted(|settings| settings.timeout = Duration::from_secs(60)).run();
    assert_eq!(came.is_whole(50).answered(), 0);
    assert!(
        came.errors().all(|(error, _)| error.error == ErrorType::Cancelled),
        "no bug, and no fault of the provider's"
    );
    assert!(came.took <= Duration::from_millis(6_100), "{:?}", came.took);
}

#[test]
fn the_runs_own_time_ends_it() {
    let mut world = World::of("virustotal", "[providers.virustotal]\nlatency = '1s'\nsize = 'small'", 200);
    world.max_time = Some(Duration::from_millis(3_500));
    let came = world.adjusted(|settings| settings.quotas.clear()).run();
    came.is_whole(200);
    assert_eq!(came.answered(), 48);
    let kinds: BTreeSet<&str> = came.errors().map(|(error, _)| error.error.as_str()).collect();
    assert!(kinds.is_subset(&["deadline", "timeout"].into()), "{kinds:?}");
    assert!(came.took <= Duration::from_millis(3_600), "{:?}", came.took);
}
