//! The ledger's counts, driven by hand.

use std::num::NonZeroU64;

use super::*;
use crate::simulate::scenario::LimitKind;

fn per_second(count: u64) -> Limit {
    let count = NonZeroU64::new(count).unwrap();
    Limit { count, per: Duration::from_secs(1), kind: LimitKind::Sliding, burst: count }
}

struct Bench {
    ledger: Ledger,
    start: Instant,
}

impl Bench {
    fn new(limits: Vec<Limit>) -> Self {
        let start = Instant::now();
        Self { ledger: Ledger::new(start, vec![("abuseipdb".into(), limits)]), start }
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    fn arrive(&self, milliseconds: u64, ip: &str) {
        self.ledger.arrive(&Arrival {
            page: 0,
            at: self.at(milliseconds),
            addresses: &[ip.parse().unwrap()],
            malformed: 0,
            special: crate::simulate::special::is_special,
            key: KeyShown::None,
        });
    }

    fn end(&self, from: u64, to: u64, status: u16, ip: &str, announced: Option<u64>) {
        let answered = [ip.parse().unwrap()];
        self.ledger.end(&Outcome {
            page: 0,
            arrived: self.at(from),
            at: self.at(to),
            status: Some(status),
            bytes: 100,
            abandoned: false,
            answered: if status == 200 { &answered } else { &[] },
            announced: announced.map(Duration::from_secs),
        });
    }

    fn report(&self) -> ProviderReport {
        self.ledger.snapshot().provider("abuseipdb").unwrap().clone()
    }
}

#[test]
fn counts_duplicates_special_addresses_and_holds() {
    let bench = Bench::new(vec![]);
    for (at, ip) in [(0, "203.0.113.7"), (10, "203.0.113.7"), (20, "10.0.0.1")] {
        bench.arrive(at, ip);
    }
    bench.end(0, 50, 200, "203.0.113.7", None);
    bench.end(10, 110, 200, "203.0.113.7", None);
    let report = bench.report();
    assert_eq!((report.requests, report.peak_in_flight, report.in_flight), (3, 3, 1));
    assert_eq!((report.distinct, report.asked_again, report.answered_again), (2, 1, 1));
    assert_eq!((report.special, report.no_key), (1, 3));
    assert!((report.mean_hold_ms - 75.0).abs() < 0.001 && (report.max_hold_ms - 100.0).abs() < 0.001);
    assert!((report.per_second - 100.0).abs() < 0.001, "{}", report.per_second);
    assert_eq!(report.arrivals_ms, [0.0, 10.0, 20.0]);
}

#[test]
fn a_request_in_an_announced_hold_off_is_a_breach() {
    let bench = Bench::new(vec![]);
    bench.arrive(0, "203.0.113.7");
    bench.end(0, 5, 429, "203.0.113.7", Some(2));
    bench.arrive(1500, "203.0.113.8");
    bench.arrive(2005, "203.0.113.9");
    let report = bench.report();
    assert_eq!((report.too_many, report.in_hold_off), (1, 1));
    let breach = &report.hold_off_breaches[0];
    assert!((breach.after_ms - 1495.0).abs() < 0.001 && (breach.left_ms - 505.0).abs() < 0.001);
}

#[test]
fn windows_are_open_at_their_far_end() {
    let bench = Bench::new(vec![per_second(2)]);
    for at in [0, 500, 1000, 1500] {
        bench.arrive(at, "203.0.113.7");
    }
    assert_eq!((bench.report().limits[0].max_in_window, bench.report().limits[0].exceeded), (2, 0));
    bench.arrive(1999, "203.0.113.7");
    assert_eq!((bench.report().limits[0].max_in_window, bench.report().limits[0].exceeded), (3, 1));
}

#[test]
fn reset_keeps_what_is_in_flight() {
    let bench = Bench::new(vec![per_second(1)]);
    bench.arrive(0, "203.0.113.7");
    bench.ledger.reset(bench.at(10));
    bench.end(0, 20, 200, "203.0.113.7", None);
    let snapshot = bench.ledger.snapshot();
    assert_eq!((snapshot.total.requests, snapshot.total.in_flight), (0, 0));
    bench.arrive(30, "203.0.113.7");
    assert_eq!(bench.report().limits.len(), 1);
}

#[test]
fn people_can_read_it() {
    let bench = Bench::new(vec![per_second(1)]);
    assert!(bench.ledger.snapshot().to_string().starts_with("no requests\n"));
    bench.arrive(0, "203.0.113.7");
    bench.end(0, 50, 200, "203.0.113.7", None);
    bench.ledger.trapped("localhost:1", true);
    let text = bench.ledger.snapshot().to_string();
    for part in [
        "1 request for 1 address, ",
        "no special addresses",
        "1 request, 1 × 200",
        "trap: 1 request, ",
        "limit 1 in 1.0 s (sliding): 1 at most, 0 over",
        "1 with a key",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(
        serde_json::to_value(bench.ledger.snapshot()).unwrap()["providers"]["abuseipdb"]["limits"][0]["exceeded"]
            == 0
    );
}
