//! Full-jitter exponential back-off.

use rand::{Rng, RngExt};
use std::time::Duration;

/// Base and cap of the wait after a 429 that names none (DESIGN.md §3).
pub(in crate::enrich) const REFUSED: Backoff =
    Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };
/// Base and cap of the wait after a 5xx, a timeout or a reset: half the above, for such faults are often short.
pub(in crate::enrich) const FAILED: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(30) };

/// How long to wait before an attempt is made again.
#[derive(Debug, Clone, Copy)]
pub(in crate::enrich) struct Backoff {
    base: Duration,
    cap: Duration,
}

impl Backoff {
    /// A wait for the `n`th failure in a row (1 is the first): anything up to min(cap, base · 2ⁿ⁻¹).
    pub(in crate::enrich) fn full(self, n: u32, rng: &mut impl Rng) -> Duration {
        self.ceiling(n).mul_f64(rng.random_range(0.0..=1.0))
    }

    /// A wait for the `n`th refusal in a row: base · 2ⁿ⁻¹ and a full jitter of as much again. Full jitter from zero could
    /// give nearly nothing, and a refused lane must wait longer each time.
    pub(in crate::enrich) fn grown(self, n: u32, rng: &mut impl Rng) -> Duration {
        self.ceiling(n).mul_f64(rng.random_range(1.0..=2.0)).min(self.cap)
    }

    fn ceiling(self, n: u32) -> Duration {
        self.base.saturating_mul(1_u32.checked_shl(n.saturating_sub(1)).unwrap_or(u32::MAX)).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    proptest! {
        #[test]
        fn waits_are_bounded_and_grow(n in 1_u32..10_000, seed: u64) {
            let mut rng = SmallRng::seed_from_u64(seed);
            let wait = REFUSED.full(n, &mut rng);
            prop_assert!(wait <= REFUSED.cap);
            let (lower, higher) = (REFUSED.grown(n, &mut rng), REFUSED.grown(n.saturating_add(1), &mut rng));
            prop_assert!(higher >= lower.min(REFUSED.cap / 2) && higher <= REFUSED.cap);
        }
    }

    #[test]
    fn two_waits_differ() {
        let mut rng = SmallRng::seed_from_u64(7);
        let waits: std::collections::BTreeSet<_> = (0..50).map(|_| FAILED.full(3, &mut rng)).collect();
        assert_eq!(waits.len(), 50);
    }
}
