//! Short windows: one lane is never held up by what it keeps anyway, and several never exceed the quota.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::super::db::Db;
use super::super::{schema, short};
use crate::provider::Quota;
use crate::store::conformance::at;

fn memory() -> Db {
    let conn = rusqlite::Connection::open_in_memory().unwrap();
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(schema::MIGRATIONS[0]).unwrap();
    Db::new(conn, Path::new("memory").into()).unwrap()
}

fn after(nanos: u64) -> Timestamp {
    at(0.0) + SignedDuration::from_nanos(nanos.cast_signed())
}

/// What the lane's own pace lets through: GCRA with 1.008·W/(q − b + 1) and 0.003·W, in whole hundredths as governor
/// counts (`enrich::limit::pace`).
struct Pace {
    step: u64,
    slack: u64,
    due: u64,
}

impl Pace {
    fn keeping(quota: Quota, burst: u32) -> Self {
        let burst = burst.clamp(1, quota.count.get());
        let spaced = quota.count.get() - (burst - 1);
        let cell = quota.window.length().mul_f64(1.008) / spaced / 100;
        let cell = u64::try_from(cell.as_nanos()).unwrap();
        // 0.003 · 100 / 1.008 of a cell for each spaced send.
        let slack = u64::from(spaced) * 300 / 1_008;
        Self { step: 100 * cell, slack: cell * (u64::from(100 * (burst - 1)) + slack), due: 0 }
    }

    fn next(&mut self, now: u64) -> u64 {
        let leaves = now.max(self.due.saturating_sub(self.slack));
        self.due = self.due.max(leaves) + self.step;
        leaves
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_lane_that_paces_itself_is_never_refused(
        q in 1_u32..200,
        burst in 1_u32..20,
        window in prop::sample::select(vec!["s", "min", "h"]),
        late in prop::collection::vec(0_u64..3_000, 1..20),
    ) {
        let quota: Quota = format!("{q}/{window}").parse().unwrap();
        let db = memory();
        let mut pace = Pace::keeping(quota, burst);
        let mut now = 0;
        for n in 0..300 {
            now = pace.next(now + late[n % late.len()] * 1_000_000);
            let (room, blocked) = short::room(&db, 1, &[quota], burst, 1, after(now)).unwrap();
            prop_assert_eq!(room, 1, "send {} at {} ns: {:?}", n, now, blocked);
            short::spend(&db, 1, &[quota], burst, 1, after(now)).unwrap();
        }
    }

    #[test]
    fn several_lanes_never_exceed_the_quota(
        q in 1_u32..100,
        steps in prop::collection::vec((0_u32..4, 1_u64..200, 0_u64..3_000), 1..150),
    ) {
        let quotas: [Quota; 2] =
            [format!("{q}/s").parse().unwrap(), format!("{}/min", q * 5).parse().unwrap()];
        let db = memory();
        let mut now = 0;
        let mut sent: Vec<(u64, u64)> = Vec::new();
        // Some lanes pace single sends, with bursts of their own, and some send batches.
        for (burst, wish, pause) in steps {
            now += pause * 1_000_000;
            let wish = if burst == 0 { wish } else { 1 };
            let (room, blocked) = short::room(&db, 1, &quotas, burst, wish, after(now)).unwrap();
            prop_assert_eq!(blocked.is_some(), room < wish);
            if let Some(blocked) = blocked {
                prop_assert!(room > 0 || blocked.until > after(now));
            }
            short::spend(&db, 1, &quotas, burst, room, after(now)).unwrap();
            sent.push((now, room));
        }
        for (from, _) in &sent {
            for (most, seconds) in [(u64::from(q), 1), (u64::from(q) * 5, 60)] {
                let end = from + seconds * 1_000_000_000;
                let sum: u64 = sent.iter().filter(|(t, _)| t >= from && *t <= end).map(|(_, n)| n).sum();
                prop_assert!(sum <= most, "{} in {} s", sum, seconds);
            }
        }
    }
}

#[test]
fn whoever_comes_back_when_told_is_let_through() {
    for quotas in [["4/min", "30/h"], ["50/s", "1000/min"]] {
        let quotas: Vec<Quota> = quotas.iter().map(|quota| quota.parse().unwrap()).collect();
        let db = memory();
        let mut now = at(0.0);
        let mut refused_in_a_row = 0;
        for _ in 0..400 {
            match short::room(&db, 1, &quotas, 1, 1, now).unwrap() {
                (1, None) => {
                    short::spend(&db, 1, &quotas, 1, 1, now).unwrap();
                    refused_in_a_row = 0;
                }
                (_, blocked) => {
                    now = blocked.unwrap().until;
                    refused_in_a_row += 1;
                }
            }
            // Several windows may each have their say once.
            assert!(refused_in_a_row <= 2);
        }
        assert!(now > at(1.0));
    }
}

#[test]
fn a_clock_that_was_far_ahead_blocks_nobody_for_ever() {
    let quotas: [Quota; 1] = ["2/min".parse().unwrap()];
    let db = memory();
    let year = at(0.0) + Duration::from_secs(365 * 86_400);
    short::spend(&db, 1, &quotas, 1, 2, year).unwrap();
    assert_eq!(short::room(&db, 1, &quotas, 1, 1, at(0.0)).unwrap().0, 1);
    short::spend(&db, 1, &quotas, 0, 2, at(0.0)).unwrap();
    assert_eq!(short::room(&db, 1, &quotas, 0, 1, at(59.0)).unwrap().0, 0);
    assert_eq!(short::room(&db, 1, &quotas, 0, 1, at(61.0)).unwrap().0, 1);
}
