//! The lane's pace: governor's GCRA, set so that no window ever holds more than the quota.

use super::super::clock::RuntimeClock;
use super::windows::Windows;
use crate::provider::Quota;
use governor::RateLimiter;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::Instant;

/// A bucket of burst b refilled every p lets b + W/p − 1 through in a window W, so a plain `per_minute(4)` grants 7.
/// Ours spaces sends by p = W/(q − b + 1) × [`STRETCH`] and lets a late one be made up for by at most [`SLACK`] × W; a
/// window then holds at most b + ⌊(W + SLACK·W)/p⌋ ≤ b + ⌊0.9951·(q − b + 1)⌋ ≤ q. What is left of the stretch (0.5 % of
/// W) absorbs the network's jitter: requests may arrive closer together than they left. The price is 0.8 % of the rate at
/// a burst of 1, the default; a larger one answers the first few at once and costs its share of the rate.
pub(super) const STRETCH: f64 = 1.008;
/// How much of a window a late send may be made up for. tokio's timer wakes up to 1 ms late, which at 50/s would cost
/// 5 % of the rate if it were never made up for.
const SLACK: f64 = 0.003;
/// governor counts whole cells; a send takes this many, so that the slack can be a part of a send.
const CELLS: u32 = 100;

type Limiter = RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<std::time::Instant>>;

/// Spaces a provider's sends. Tokens are taken by the lane alone.
#[derive(Debug)]
pub(in crate::enrich) struct Pace {
    keeper: Keeper,
    period: Duration,
}

#[derive(Debug)]
enum Keeper {
    Nobody,
    /// One send at a time.
    Spacing(Limiter),
    /// Batches, each address of which counts.
    Windows(Windows),
}

impl Pace {
    /// The pace that keeps every one of `quotas` (windows up to an hour): the slowest one rules. None given: no pace.
    /// `burst` sends may leave at once, after a pause that is long enough. `in_batches`: a request may hold many look-ups,
    /// and each of them counts; a batch may then fill a window at once.
    pub(in crate::enrich) fn keeping(quotas: &[Quota], burst: u32, in_batches: bool) -> Self {
        let slowest = quotas.iter().max_by(|a, b| spacing(a, burst).cmp(&spacing(b, burst)));
        let Some(quota) = slowest else { return Self { keeper: Keeper::Nobody, period: Duration::ZERO } };
        let period = spacing(quota, burst);
        if in_batches {
            return Self { keeper: Keeper::Windows(Windows::keeping(quotas)), period };
        }
        let slack = (SLACK * f64::from(spaced(*quota, burst)) * f64::from(CELLS) / STRETCH).floor();
        let at_once = CELLS.saturating_mul(burst.clamp(1, quota.count.get()));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 ≤ slack ≤ 0.3·u32::MAX"
        )]
        let cells = NonZeroU32::MIN.saturating_add(at_once - 1).saturating_add(slack as u32);
        let limiter = governor::Quota::with_period(period / CELLS)
            .map(|quota| RateLimiter::direct_with_clock(quota.allow_burst(cells), RuntimeClock));
        Self { keeper: limiter.map_or(Keeper::Nobody, Keeper::Spacing), period }
    }

    /// How many look-ups a request may hold now, or when the next one may leave. Where sends are spaced one by one it is
    /// [`take`](Self::take) that says when.
    pub(in crate::enrich) fn room(&mut self, now: Instant) -> Result<u32, Instant> {
        match &mut self.keeper {
            Keeper::Windows(windows) => windows.room(now),
            Keeper::Nobody | Keeper::Spacing(_) => Ok(u32::MAX),
        }
    }

    /// Takes a token for a request of so many look-ups, or says when it is due.
    pub(in crate::enrich) fn take(&mut self, look_ups: u32) -> Result<(), Instant> {
        let limiter = match &mut self.keeper {
            Keeper::Nobody => return Ok(()),
            Keeper::Windows(windows) => return windows.take(look_ups, Instant::now()),
            Keeper::Spacing(limiter) => limiter,
        };
        let cells = NonZeroU32::MIN.saturating_add(CELLS - 1);
        match limiter.check_n(cells) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(wait)) => {
                let now = RuntimeClock.now();
                Err(Instant::now() + wait.wait_time_from(now).max(Duration::from_micros(1)))
            }
            // Never: the burst is at least CELLS. Waiting a period is the safe reading of it.
            Err(_) => Err(Instant::now() + self.period),
        }
    }

    /// Time between two sends; zero where there is no pace.
    #[cfg(test)]
    fn period(&self) -> Duration {
        self.period
    }
}

/// Time between two sends that keeps `quota` where `burst` may leave at once.
#[must_use]
pub fn spacing(quota: &Quota, burst: u32) -> Duration {
    quota.window.length().mul_f64(STRETCH) / spaced(*quota, burst)
}

/// How many sends of a window are spaced: all but those that the burst takes beyond the first. Never 0.
fn spaced(quota: Quota, burst: u32) -> u32 {
    quota.count.get() - (burst.clamp(1, quota.count.get()) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    /// Sends as fast as the pace lets it, each up to `late` after its token was due; returns when they left.
    fn departures(quota: &str, burst: u32, n: usize, late: &[u64]) -> Vec<Duration> {
        let quotas = [quota.parse().unwrap()];
        runtime().block_on(async {
            let mut pace = Pace::keeping(&quotas, burst, false);
            let start = Instant::now();
            let mut at = Vec::with_capacity(n);
            while at.len() < n {
                match pace.take(1) {
                    Ok(()) => at.push(start.elapsed()),
                    Err(due) => {
                        let late = Duration::from_millis(
                            late.get(at.len() % late.len().max(1)).copied().unwrap_or(0),
                        );
                        tokio::time::sleep_until(due + late).await;
                    }
                }
            }
            at
        })
    }

    fn fullest_window(at: &[Duration], window: Duration) -> usize {
        (0..at.len()).map(|i| at[i..].iter().take_while(|&&t| t <= at[i] + window).count()).max().unwrap_or(0)
    }

    #[test]
    fn keeps_nearly_all_of_the_rate_and_never_more() {
        for (quota, window, q, n) in [("4/min", 60, 4, 120), ("20/s", 1, 20, 2_000), ("50/s", 1, 50, 5_000)] {
            let at = departures(quota, 1, n, &[0]);
            assert!(fullest_window(&at, Duration::from_secs(window)) <= q, "{quota}");
            let allowed = at[n - 1].as_secs_f64() * f64::from(u32::try_from(q).unwrap())
                / Duration::from_secs(window).as_secs_f64();
            let share = f64::from(u32::try_from(n - 1).unwrap()) / allowed;
            assert!(share >= 0.985, "{quota}: {share}");
        }
    }

    #[test]
    fn a_late_timer_is_made_up_for() {
        // tokio's timer wakes up to a millisecond late: at 50/s that must not cost 5 % of the rate.
        let at = departures("50/s", 1, 2_000, &[1]);
        let share = 1_999.0 / (at[1_999].as_secs_f64() * 50.0);
        assert!(share >= 0.985, "{share}");
        assert!(fullest_window(&at, Duration::from_secs(1)) <= 50);
    }

    #[test]
    fn a_burst_leaves_at_once_and_still_fits_the_window() {
        let at = departures("4/min", 2, 40, &[0]);
        assert_eq!(at[1], Duration::ZERO);
        assert!(at[2] >= Duration::from_secs(20));
        assert_eq!(fullest_window(&at, Duration::from_secs(60)), 4);
    }

    #[test]
    fn the_slowest_of_several_windows_rules() {
        let quotas = ["10/s".parse().unwrap(), "60/min".parse().unwrap(), "120/min".parse().unwrap()];
        assert_eq!(Pace::keeping(&quotas, 1, false).period(), Duration::from_millis(1008));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_window_ever_exceeds_its_quota(q in 1_u32..200, burst in 1_u32..20, window in prop::sample::select(vec!["s", "min", "h"]), late in prop::collection::vec(0_u64..3_000, 1..20)) {
            let quota: Quota = format!("{q}/{window}").parse().unwrap();
            let at = departures(&format!("{q}/{window}"), burst, 400, &late);
            prop_assert!(fullest_window(&at, quota.window.length()) <= q as usize);
        }
    }
}
