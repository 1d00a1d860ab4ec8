//! The lane's hold-off: the instant before which nothing goes to the provider.

use super::super::retry::backoff::REFUSED;
use rand::{Rng, RngExt};
use std::time::Duration;
use tokio::time::Instant;

/// `Retry-After: 0`, or a date that has passed, still means "too fast" (Shodan sends it: providers.md §3.4).
const FLOOR: Duration = Duration::from_secs(1);
/// Jitter above what the provider asked for: at most this share of the wait ...
const JITTER_SHARE: u32 = 10;
/// ... and at most this long.
const JITTER_CAP: Duration = Duration::from_secs(1);

/// Says what a refusal does to the lane.
///
/// | state | a 429 | an answer |
/// |---|---|---|
/// | open | hold off, episode + 1 | – |
/// | held, and the request was sent before it | extended if the provider asks for longer | – |
/// | held, and the request was sent after it | hold off anew, episode + 1 | open, episodes = 0 |
#[derive(Debug, Default)]
pub(in crate::enrich) struct HoldOff {
    until: Option<Instant>,
    imposed: Option<Instant>,
    /// Since when the provider has refused without one answer between.
    refusing_since: Option<Instant>,
    episodes: u32,
}

impl HoldOff {
    /// When the lane may send again; `None` when it may now.
    pub(in crate::enrich) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|&until| until > now)
    }

    /// Whether the provider has refused and not answered since: the next request goes alone, to see.
    pub(in crate::enrich) fn is_unproven(&self) -> bool {
        self.refusing_since.is_some()
    }

    /// How long the provider has refused without an answer between.
    pub(in crate::enrich) fn refusing_for(&self, now: Instant) -> Duration {
        self.refusing_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Refusals in a row, those of one burst counted once.
    #[cfg(test)]
    fn episodes(&self) -> u32 {
        self.episodes
    }

    /// Takes a refusal of a request that was sent at `sent`. `asked` is the provider's own wait, if it gave one; without
    /// it the wait grows with each refusal in a row. Returns when the lane may send again.
    pub(in crate::enrich) fn refuse(
        &mut self,
        now: Instant,
        sent: Instant,
        asked: Option<Duration>,
        rng: &mut impl Rng,
    ) -> Instant {
        self.refusing_since.get_or_insert(now);
        let same_burst = self.imposed.is_some_and(|imposed| sent <= imposed);
        if same_burst && asked.is_none() {
            return self.until.unwrap_or(now);
        }
        if !same_burst {
            self.episodes = self.episodes.saturating_add(1);
            self.imposed = Some(now);
        }
        let wait = match asked {
            Some(asked) => above(asked.max(FLOOR), rng),
            None => REFUSED.grown(self.episodes, rng),
        };
        let until = now + wait;
        self.until = Some(self.until.map_or(until, |earlier| earlier.max(until)));
        self.until.unwrap_or(until)
    }

    /// The provider's headers ask for a pause although it answered (nothing left of a short window).
    pub(in crate::enrich) fn pause(&mut self, until: Instant) {
        self.until = Some(self.until.map_or(until, |earlier| earlier.max(until)));
    }

    /// The provider answered a request that was sent at `sent`.
    pub(in crate::enrich) fn answered(&mut self, sent: Instant) {
        if self.imposed.is_none_or(|imposed| sent > imposed) {
            self.refusing_since = None;
            self.episodes = 0;
        }
    }
}

/// The wait as asked for, and a little more, so that many processes do not come back in the same instant.
fn above(asked: Duration, rng: &mut impl Rng) -> Duration {
    let most = (asked / JITTER_SHARE).min(JITTER_CAP);
    asked + most.mul_f64(rng.random_range(0.0..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn the_wait_is_kept_as_given_with_jitter_only_above_it() {
        let start = Instant::now();
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..200 {
            let mut hold = HoldOff::default();
            let until = hold.refuse(start, start, Some(Duration::from_secs(2)), &mut rng);
            assert!((2_000..=2_200).contains(&until.duration_since(start).as_millis()));
        }
    }

    #[test]
    fn one_burst_of_refusals_is_one_episode() {
        let start = Instant::now();
        let mut rng = SmallRng::seed_from_u64(1);
        let mut hold = HoldOff::default();
        let first = hold.refuse(at(start, 10), start, None, &mut rng);
        for _ in 0..15 {
            assert_eq!(hold.refuse(at(start, 12), start, None, &mut rng), first);
        }
        assert_eq!(hold.episodes(), 1);
        // A request that was sent after the hold-off ended and is refused again: a new one.
        let again = at(start, 3_100);
        hold.refuse(at(start, 3_200), again, None, &mut rng);
        assert_eq!(hold.episodes(), 2);
        assert!(hold.refusing_for(at(start, 3_200)) >= Duration::from_secs(3));
        hold.answered(at(start, 9_000));
        assert_eq!((hold.episodes(), hold.is_unproven()), (0, false));
    }

    #[test]
    fn zero_is_a_second_and_a_longer_word_wins() {
        let start = Instant::now();
        let mut rng = SmallRng::seed_from_u64(1);
        let mut hold = HoldOff::default();
        let floor = hold.refuse(start, start, Some(Duration::ZERO), &mut rng);
        assert!(floor >= at(start, 1_000));
        let longer = hold.refuse(at(start, 5), start, Some(Duration::from_secs(30)), &mut rng);
        assert!(longer >= at(start, 30_000));
        let shorter = hold.refuse(at(start, 6), start, Some(Duration::from_secs(1)), &mut rng);
        assert_eq!(shorter, longer);
    }
}
