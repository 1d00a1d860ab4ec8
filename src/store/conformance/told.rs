use super::*;
use crate::provider::{ErrorType, Window};
use crate::store::{Blocked, TellingOf, Why};

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    the_providers_word_wins_in_both_directions(&ground());
    what_is_in_flight_may_be_counted_or_not(&ground());
    a_reply_that_was_overtaken_says_nothing(&ground());
    a_told_reset_ends_the_window(&ground());
    a_raised_limit_is_believed(&ground());
    a_hold_off_is_seen_by_all(&ground());
    a_used_up_short_window_holds_off(&ground());
}

fn say(store: &Arc<dyn Store>, remaining: u64, seconds: f64) {
    let telling = TellingOf { window: Window::Day, remaining, limit: Some(1_000), reset: None };
    get(store.told(&account(), telling, at(seconds)));
}

fn left(store: &Arc<dyn Store>, seconds: f64) -> u64 {
    get(store.quota(at(seconds)))[0].left
}

fn the_providers_word_wins_in_both_directions(ground: &impl Ground) {
    let (store, other) = (ground.open(), ground.open());
    let ask = ask(&["1000/day"]);
    admit(&store, &ask, [1], 0.0);
    settle(&store, 1, End::Answered(stored(ip(1), 0.0)));
    say(&store, 400, 0.0);
    assert_eq!(left(&other, 0.0), 400);
    // Said long after: it counts less than we did.
    say(&store, 450, 100.0);
    assert_eq!(left(&other, 100.0), 450);
    say(&store, 0, 101.0);
    let midnight = "2026-01-16T00:00:00Z".parse().unwrap();
    let blocked = Blocked { window: Some(Window::Day), until: midnight, why: Why::Told, left: 0 };
    assert_eq!(admit(&other, &ask, [2], 102.0).blocked, Some(blocked));
    let row = &get(other.quota(at(102.0)))[0];
    assert_eq!(row.told, Some((0, at(101.0))));
}

fn what_is_in_flight_may_be_counted_or_not(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    let ask = ask(&["1000/day"]);
    admit(&theirs, &ask, 0..10, 0.0);
    admit(&mine, &ask, [100], 0.0);
    settle(&mine, 100, End::Answered(stored(ip(100), 0.0)));
    // Somebody else uses the key. Between none and ten of those in flight are counted: five may be left, or none.
    say(&mine, 5, 0.1);
    let blocked = admit(&mine, &ask, [101], 0.2).blocked.unwrap();
    assert_eq!((blocked.why, blocked.until), (Why::Quota, at(0.7)));
    for n in 0..7 {
        settle(&theirs, n, End::Answered(stored(ip(n), 0.2)));
    }
    say(&theirs, 5, 0.3);
    assert_eq!(left(&mine, 0.3), 2);
    for n in 7..10 {
        settle(&theirs, n, End::Nothing(ErrorType::Timeout));
    }
    say(&theirs, 5, 0.4);
    assert_eq!(left(&mine, 0.4), 5);
    say(&mine, 0, 0.5);
    let midnight = "2026-01-16T00:00:00Z".parse().unwrap();
    assert_eq!(admit(&mine, &ask, [101], 0.5).blocked.map(|blocked| blocked.until), Some(midnight));
}

fn a_reply_that_was_overtaken_says_nothing(ground: &impl Ground) {
    let store = ground.open();
    admit(&store, &ask(&["1000/day"]), 0..3, 0.0);
    for (n, remaining) in [(0, 498), (1, 500), (2, 499)] {
        settle(&store, n, End::Answered(stored(ip(n), 0.0)));
        say(&store, remaining, 1.0);
    }
    assert_eq!(left(&store, 1.0), 498);
    // More than overtaking explains: the window began anew.
    say(&store, 999, 2.0);
    assert_eq!(left(&store, 2.0), 999);
}

fn a_told_reset_ends_the_window(ground: &impl Ground) {
    let store = ground.open();
    let ask = ask(&["10/day"]);
    let telling = TellingOf { window: Window::Day, remaining: 0, limit: Some(10), reset: Some(at(600.0)) };
    get(store.told(&account(), telling, at(0.0)));
    assert_eq!(admit(&store, &ask, [1], 599.0).blocked.map(|blocked| blocked.until), Some(at(600.0)));
    assert_eq!(going(&admit(&store, &ask, 0..20, 600.0)), 10);
}

fn a_raised_limit_is_believed(ground: &impl Ground) {
    let store = ground.open();
    let ask = ask(&["10/day"]);
    assert_eq!(going(&admit(&store, &ask, 0..20, 0.0)), 10);
    for n in 0..10 {
        settle(&store, n, End::Answered(stored(ip(n), 0.0)));
    }
    say(&store, 990, 1.0);
    assert_eq!(going(&admit(&store, &ask, 100..150, 2.0)), 50);
}

fn a_hold_off_is_seen_by_all(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    let ask = ask(&["10/day"]);
    get(mine.hold(&account(), at(30.0), None, at(0.0)));
    get(mine.hold(&account(), at(20.0), None, at(0.0)));
    let blocked = admit(&theirs, &ask, [1], 29.9).blocked;
    assert_eq!(blocked.map(|blocked| (blocked.until, blocked.why)), Some((at(30.0), Why::HeldOff)));
    assert_eq!(going(&admit(&theirs, &ask, [1], 30.0)), 1);
    get(mine.hold(&account(), at(7_200.0), Some(Window::Day), at(31.0)));
    let blocked = admit(&theirs, &ask, [2], 40.0).blocked;
    let told = Blocked { window: Some(Window::Day), until: at(7_200.0), why: Why::Told, left: 9 };
    assert_eq!(blocked, Some(told));
    assert_eq!(get(theirs.quota(at(40.0)))[0].held_until, Some(at(7_200.0)));
    assert_eq!(get(theirs.quota(at(7_200.0)))[0].held_until, None);
}

fn a_used_up_short_window_holds_off(ground: &impl Ground) {
    let store = ground.open();
    let telling = TellingOf { window: Window::Minute, remaining: 0, limit: Some(4), reset: Some(at(40.0)) };
    get(store.told(&account(), telling, at(0.0)));
    assert_eq!(going(&admit(&store, &ask(&["4/min"]), [1], 39.0)), 0);
    assert_eq!(going(&admit(&store, &ask(&["4/min"]), [1], 40.0)), 1);
}
