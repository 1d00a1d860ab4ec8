//! The server's own rate accounting: what it admits, and what it could say about it.

use std::collections::VecDeque;
use std::time::Duration;

use super::scenario::{Daily, Limit, LimitKind};

/// A day, for the quota that lasts one.
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// One limit at work. Times are durations since the server's start.
#[derive(Debug)]
pub(super) struct Gate {
    pub count: u64,
    pub per: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    /// When each request inside the window was admitted.
    Sliding(VecDeque<Duration>),
    Fixed {
        ends: Duration,
        used: u64,
    },
    /// When the bucket would be full again, as in the generic cell rate algorithm; `burst` requests fit into it.
    Bucket {
        full_at: Duration,
        burst: u64,
    },
}

impl Gate {
    /// A limit nobody has used, from `now` on.
    pub(super) fn new(limit: Limit, now: Duration) -> Self {
        let state = match limit.kind {
            LimitKind::Sliding => State::Sliding(VecDeque::new()),
            LimitKind::Fixed => State::Fixed { ends: now + limit.per, used: 0 },
            LimitKind::Bucket => State::Bucket { full_at: now, burst: limit.burst.get() },
        };
        Self { count: limit.count.get(), per: limit.per, state }
    }

    /// A day's quota; `midnight` is how far off the day's end is where the scenario does not say.
    pub(super) fn daily(daily: Daily, midnight: Duration, now: Duration) -> Self {
        let ends = now + daily.reset.map_or(midnight, |span| span.0);
        Self { count: daily.count, per: DAY, state: State::Fixed { ends, used: daily.used } }
    }

    /// Lets time pass.
    fn turn(&mut self, now: Duration) {
        match &mut self.state {
            State::Sliding(inside) => {
                while inside.front().is_some_and(|first| now.saturating_sub(*first) >= self.per) {
                    inside.pop_front();
                }
            }
            State::Fixed { ends, used } => {
                if now >= *ends {
                    let over = now.saturating_sub(*ends).as_nanos() / self.per.as_nanos().max(1) + 1;
                    *ends += self.per * u32::try_from(over).unwrap_or(u32::MAX);
                    *used = 0;
                }
            }
            State::Bucket { full_at, .. } => *full_at = (*full_at).max(now),
        }
    }

    /// How long until `cost` would be admitted; zero: now. A cost beyond the limit counts as the whole limit.
    pub(super) fn wait(&mut self, now: Duration, cost: u64) -> Duration {
        self.turn(now);
        match &self.state {
            State::Sliding(inside) => {
                let cost = cost.min(self.count);
                let room = self.count - (inside.len() as u64).min(self.count);
                let Some(short) = cost.checked_sub(room).filter(|short| *short > 0) else {
                    return Duration::ZERO;
                };
                let leaves = inside.get(usize::try_from(short).unwrap_or(usize::MAX) - 1);
                leaves.map_or(Duration::ZERO, |admitted| (*admitted + self.per).saturating_sub(now))
            }
            State::Fixed { ends, used } => {
                if used + cost.min(self.count.max(1)) <= self.count {
                    Duration::ZERO
                } else {
                    ends.saturating_sub(now)
                }
            }
            State::Bucket { full_at, burst } => {
                let step = self.step();
                let after = *full_at + times(step, cost.min(*burst));
                after.saturating_sub(now + times(step, *burst))
            }
        }
    }

    /// Counts `cost` as admitted.
    pub(super) fn take(&mut self, now: Duration, cost: u64) {
        self.turn(now);
        let step = self.step();
        match &mut self.state {
            State::Sliding(inside) => {
                inside.extend(std::iter::repeat_n(
                    now,
                    usize::try_from(cost.min(self.count)).unwrap_or(usize::MAX),
                ));
            }
            State::Fixed { used, .. } => *used = used.saturating_add(cost),
            State::Bucket { full_at, .. } => *full_at += times(step, cost),
        }
    }

    /// Requests left now.
    pub(super) fn remaining(&mut self, now: Duration) -> u64 {
        self.turn(now);
        match &self.state {
            State::Sliding(inside) => self.count.saturating_sub(inside.len() as u64),
            State::Fixed { used, .. } => self.count.saturating_sub(*used),
            State::Bucket { full_at, burst } => {
                let step = self.step().as_nanos().max(1);
                let taken = full_at.saturating_sub(now).as_nanos().div_ceil(step);
                burst.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX))
            }
        }
    }

    /// Until the limit is whole again (fixed: until its window ends).
    pub(super) fn reset_after(&mut self, now: Duration) -> Duration {
        self.turn(now);
        match &self.state {
            State::Sliding(inside) => {
                inside.back().map_or(Duration::ZERO, |last| (*last + self.per).saturating_sub(now))
            }
            State::Fixed { ends, .. } => ends.saturating_sub(now),
            State::Bucket { full_at, .. } => full_at.saturating_sub(now),
        }
    }

    /// A bucket gets one request back in this time.
    fn step(&self) -> Duration {
        self.per / u32::try_from(self.count.max(1)).unwrap_or(u32::MAX)
    }
}

fn times(step: Duration, count: u64) -> Duration {
    step.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use proptest::prelude::*;

    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn limit(count: u64, per: u64, kind: LimitKind, burst: u64) -> Limit {
        let count = NonZeroU64::new(count).unwrap();
        Limit { count, per: ms(per), kind, burst: NonZeroU64::new(burst).unwrap() }
    }

    /// Asks at each of these milliseconds; gives which were admitted.
    fn admitted(gate: &mut Gate, at: &[u64]) -> Vec<bool> {
        at.iter()
            .map(|at| {
                let now = ms(*at);
                let goes = gate.wait(now, 1).is_zero();
                if goes {
                    gate.take(now, 1);
                }
                goes
            })
            .collect()
    }

    #[test]
    fn sliding_windows_open_as_requests_leave_them() {
        let mut gate = Gate::new(limit(2, 1000, LimitKind::Sliding, 2), Duration::ZERO);
        assert_eq!(
            admitted(&mut gate, &[0, 400, 999, 1000, 1399, 1400]),
            [true, true, false, true, false, true]
        );
        assert_eq!(gate.wait(ms(1500), 1), ms(500));
        assert_eq!((gate.remaining(ms(1500)), gate.remaining(ms(2000))), (0, 1));
    }

    #[test]
    fn fixed_windows_open_all_at_once() {
        let mut gate = Gate::new(limit(2, 1000, LimitKind::Fixed, 2), Duration::ZERO);
        assert_eq!(
            admitted(&mut gate, &[900, 950, 999, 1000, 1001, 1002]),
            [true, true, false, true, true, false]
        );
        assert_eq!(gate.reset_after(ms(1002)), ms(998));
        assert!(gate.wait(Duration::from_secs(3600), 1).is_zero());
    }

    #[test]
    fn buckets_hold_their_burst_and_refill_evenly() {
        let mut gate = Gate::new(limit(10, 1000, LimitKind::Bucket, 2), Duration::ZERO);
        assert_eq!(
            admitted(&mut gate, &[0, 0, 0, 99, 100, 100, 1000, 1000, 1000]),
            [true, true, false, false, true, false, true, true, false]
        );
        assert_eq!(gate.wait(ms(1000), 1), ms(100));
    }

    #[test]
    fn a_day_starts_with_what_is_spent() {
        let mut gate =
            Gate::daily(Daily { count: 10, used: 8, reset: None }, Duration::from_secs(60), Duration::ZERO);
        assert_eq!(admitted(&mut gate, &[0, 1, 2, 59_999, 60_000]), [true, true, false, false, true]);
        assert_eq!(gate.reset_after(Duration::from_secs(60)), DAY);
        let mut none =
            Gate::daily(Daily { count: 0, used: 0, reset: None }, Duration::from_secs(60), Duration::ZERO);
        assert_eq!(none.wait(Duration::ZERO, 1), Duration::from_secs(60));
    }

    #[test]
    fn a_batch_costs_what_it_holds() {
        for kind in [LimitKind::Sliding, LimitKind::Fixed, LimitKind::Bucket] {
            let mut gate = Gate::new(limit(10, 1000, kind, 10), Duration::ZERO);
            gate.take(Duration::ZERO, 7);
            assert_eq!(gate.remaining(Duration::ZERO), 3, "{kind:?}");
            assert!(gate.wait(Duration::ZERO, 3).is_zero(), "{kind:?}");
            assert!(!gate.wait(Duration::ZERO, 4).is_zero(), "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn the_wait_it_names_is_enough_and_the_window_holds(
            count in 1_u64..6, burst in 1_u64..6, kind in 0..3_u8, gaps in prop::collection::vec(0_u64..400, 1..60),
        ) {
            let kind = [LimitKind::Sliding, LimitKind::Fixed, LimitKind::Bucket][usize::from(kind)];
            let mut gate = Gate::new(limit(count, 1000, kind, burst), Duration::ZERO);
            let (mut now, mut taken) = (Duration::ZERO, Vec::<Duration>::new());
            for gap in gaps {
                now += ms(gap);
                let wait = gate.wait(now, 1);
                if !wait.is_zero() {
                    // One nanosecond earlier it is refused, then it is not.
                    let before = (now + wait).saturating_sub(Duration::from_nanos(1));
                    prop_assert!(!gate.wait(before, 1).is_zero());
                    now += wait;
                    prop_assert!(gate.wait(now, 1).is_zero());
                }
                gate.take(now, 1);
                taken.push(now);
                let inside = taken.iter().filter(|at| now.saturating_sub(**at) < Duration::from_secs(1)).count() as u64;
                let most = match kind {
                    LimitKind::Sliding => count,
                    // Two windows meet in one second.
                    LimitKind::Fixed => 2 * count,
                    LimitKind::Bucket => burst + count,
                };
                prop_assert!(inside <= most, "{inside} of {most}");
            }
        }
    }
}
