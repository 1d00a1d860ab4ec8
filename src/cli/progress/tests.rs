use super::*;

fn wall() -> Timestamp {
    "2026-01-15T10:00:00Z".parse().unwrap()
}

fn shown(name: &str, due: u64) -> Shown {
    Shown { name: name.to_owned(), due, is_fed: false, spacing: Duration::ZERO, pace: Pace::default() }
}

#[test]
fn what_a_lane_waits_for() {
    let now = Instant::now();
    let waits = |wait, seconds| LaneNow {
        wait,
        until: Some(now + Duration::from_secs(seconds)),
        ..LaneNow::default()
    };
    let closed = |why, at: Option<&str>| LaneNow {
        closed: Some((why, at.map(|at| at.parse().unwrap()))),
        is_done: true,
        ..LaneNow::default()
    };
    for (lane, expected) in [
        (LaneNow::default(), None),
        (waits(Wait::Pace, 1), None),
        (waits(Wait::Pace, 12), Some("next look-up in 12 s")),
        (waits(Wait::HoldOff, 30), Some("it asked for a pause, 30 s more")),
        (waits(Wait::Breaker, 30), Some("it fails, next trial in 30 s")),
        (waits(Wait::Retry, 3), Some("tries again in 3 s")),
        (closed(ErrorType::QuotaExhausted, Some("2026-01-16T00:00:00Z")), Some("quota back at 00:00 UTC")),
        (
            closed(ErrorType::QuotaExhausted, Some("2026-02-01T00:00:00Z")),
            Some("quota back at 2026-02-01 00:00 UTC"),
        ),
        (closed(ErrorType::Unauthorized, None), Some("refuses the key")),
        (closed(ErrorType::CircuitOpen, Some("2026-01-15T10:00:30Z")), Some("left alone until 10:00 UTC")),
        (LaneNow { is_done: true, ..LaneNow::default() }, Some("done")),
    ] {
        assert_eq!(waits_for(&lane, now, wall()).as_deref(), expected, "{lane:?}");
    }
}

#[test]
fn the_rate_is_that_of_the_last_while() {
    let start = Instant::now();
    let mut pace = Pace::default();
    assert_eq!(pace.per_second(start, 0), None);
    for second in 0..300 {
        // Ten a second for two minutes and a half, then one.
        let count = if second < 150 { second * 10 } else { 1_500 + (second - 150) };
        pace.take(start + Duration::from_secs(second), count);
    }
    let rate = pace.per_second(start + Duration::from_secs(299), 1_649).unwrap();
    assert!((rate - 1.0).abs() < 0.1, "{rate}");
    assert!(pace.0.len() <= 122);
    assert_eq!((shown_rate(9.8), shown_rate(4.0 / 60.0)), ("10/s".to_owned(), "4.0/min".to_owned()));
}

#[test]
fn the_slowest_lane_says_how_long_it_takes() {
    let now = Instant::now();
    let mut slow = shown("virustotal", 593);
    slow.spacing = Duration::from_secs(15);
    let mut view = View { lanes: vec![slow], total: 1_204, board: Board::new(1), done: Done::default() };
    assert_eq!(
        view.lines(now, wall()),
        ["0 of 1,204 addresses, about 2 h 28 min left", "  virustotal  0 of 593"]
    );
}
