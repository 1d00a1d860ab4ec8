//! A day's quota to its end: several processes, replies in any order, and perhaps somebody else with the same key.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::provider::{ErrorType, Window};
use crate::store::TellingOf;

const QUOTA: u64 = 40;
const IN_FLIGHT: usize = 12;

/// The processes, what is on its way, and the server.
struct Day {
    stores: Vec<Arc<dyn Store>>,
    now: f64,
    asked: u32,
    /// Which process, about which address.
    to_server: Vec<(usize, u32)>,
    /// And what is left by the server's count; none with a refusal.
    to_us: Vec<(usize, u32, Option<u64>)>,
    counted: u64,
    refused: u64,
    /// The ledger has said that there is nothing more before midnight.
    closed: bool,
}

impl Day {
    fn send(&mut self, pick: usize) {
        if self.closed || self.to_server.len() + self.to_us.len() >= IN_FLIGHT {
            return;
        }
        let who = pick % self.stores.len();
        self.asked += 1;
        let admitted = admit(&self.stores[who], &ask(&["40/day"]), [self.asked], self.now);
        match admitted.blocked {
            None => self.to_server.push((who, self.asked)),
            Some(blocked) => self.closed = blocked.until > at(self.now + 2.0),
        }
    }

    fn serve(&mut self, pick: usize) {
        if self.to_server.is_empty() {
            return;
        }
        let (who, n) = self.to_server.swap_remove(pick % self.to_server.len());
        let left = QUOTA.checked_sub(self.counted + 1);
        match left {
            Some(_) => self.counted += 1,
            None => self.refused += 1,
        }
        self.to_us.push((who, n, left));
    }

    fn receive(&mut self, pick: usize) {
        if self.to_us.is_empty() {
            return;
        }
        let (who, n, left) = self.to_us.swap_remove(pick % self.to_us.len());
        let end = match left {
            Some(_) => End::Answered(stored(ip(n), self.now)),
            None => End::Nothing(ErrorType::QuotaExhausted),
        };
        settle(&self.stores[who], n, end);
        let remaining = left.unwrap_or(0);
        let telling = TellingOf { window: Window::Day, remaining, limit: Some(QUOTA), reset: None };
        get(self.stores[who].told(&account(), telling, at(self.now)));
    }
}

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    let moves = prop::collection::vec((0..8_u8, 0..1_000_usize), 300);
    TestRunner::new(config)
        .run(&(moves, any::<bool>()), |(moves, somebody_else)| {
            let ground = ground();
            let mut day = Day {
                stores: (0..3).map(|_| ground.open()).collect(),
                now: 0.0,
                asked: 0,
                to_server: Vec::new(),
                to_us: Vec::new(),
                counted: 0,
                refused: 0,
                closed: false,
            };
            for (what, pick) in moves {
                day.now += 0.01;
                match what {
                    0..=2 => day.send(pick),
                    3 | 4 => day.serve(pick),
                    5 | 6 => day.receive(pick),
                    _ if somebody_else => day.counted = QUOTA.min(day.counted + 1),
                    _ => {}
                }
            }
            for pick in 0..1_000 {
                day.now += 0.6;
                day.send(pick);
                day.serve(pick);
                day.receive(pick);
            }
            prop_assert!(day.closed && day.to_server.is_empty() && day.to_us.is_empty());
            prop_assert_eq!(day.counted, QUOTA, "something was left over");
            if !somebody_else {
                prop_assert_eq!(day.refused, 0);
            }
            Ok(())
        })
        .unwrap();
}
