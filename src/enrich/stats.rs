//! What a lane counts, once and in one place: for the summary, the progress and the metrics.

use super::batch::Batch;
use super::outcome::CacheUse;
use crate::provider::{ErrorType, Window};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Latencies are kept in buckets that grow by this factor from 1 ms: any quantile is right to 10 %.
const BUCKET_GROWTH: f64 = 1.1;
/// 1.1^150 ms is 26 minutes, longer than any attempt.
const BUCKETS: usize = 150;

/// One lane's counts over a run.
#[derive(Debug, Clone)]
pub struct LaneStats {
    /// The provider.
    pub provider: String,
    /// Where it is asked.
    pub host: String,
    /// Look-ups answered, from the cache too.
    pub answered: u64,
    /// Of them, those that a stored answer was fresh for.
    pub hits: u64,
    /// Of them, those that a stored answer out of date stood in for.
    pub stale: u64,
    /// Of them, those that another process had in flight.
    pub collapsed: u64,
    /// Look-ups that failed, by kind.
    pub errors: BTreeMap<ErrorType, u64>,
    /// Look-ups that the closing of the lane left unasked; `closed` says why.
    pub unasked: u64,
    /// Addresses that left this host, each once.
    pub sent: u64,
    /// Requests that left.
    pub requests: u64,
    /// Of them, those made again.
    pub retries: u64,
    /// Replies, by status.
    pub http: BTreeMap<u16, u64>,
    /// Time in which there was work, none of it in flight, and the lane waited for its pace, a hold-off or its breaker.
    pub waited: Duration,
    /// Latencies of exchanges that brought a reply.
    pub latency: Latencies,
    /// What is left of the tightest long window, as last known.
    pub remaining: Option<(Window, u64)>,
    /// When the lane is worth asking again, if it closed.
    pub retry_at: Option<Timestamp>,
    /// Why the lane closed before its work was done.
    pub closed: Option<ErrorType>,
    /// The breaker's state at the end.
    pub breaker: &'static str,
}

impl LaneStats {
    /// A request leaves, as one of those that [`Batch::left`] counts.
    pub(super) fn leaves(&mut self, batch: &Batch) {
        self.requests += 1;
        self.retries += u64::from(batch.left > 1);
        self.sent += if batch.left == 1 { batch.len() as u64 } else { 0 };
    }

    /// There was no connection for it.
    pub(super) fn never_left(&mut self, batch: &Batch) {
        self.requests -= 1;
        self.retries -= u64::from(batch.left > 1);
        self.sent -= if batch.left == 1 { batch.len() as u64 } else { 0 };
    }

    /// An answer came from the cache.
    pub(super) const fn cached(&mut self, cache: CacheUse) {
        match cache {
            CacheUse::Hit => self.hits += 1,
            CacheUse::Stale => self.stale += 1,
            CacheUse::Collapsed => self.collapsed += 1,
            CacheUse::Miss | CacheUse::Local => {}
        }
    }

    pub(super) fn new(provider: &str, host: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            host: host.to_owned(),
            answered: 0,
            hits: 0,
            stale: 0,
            collapsed: 0,
            errors: BTreeMap::new(),
            unasked: 0,
            sent: 0,
            requests: 0,
            retries: 0,
            http: BTreeMap::new(),
            waited: Duration::ZERO,
            latency: Latencies::default(),
            remaining: None,
            retry_at: None,
            closed: None,
            breaker: "closed",
        }
    }
}

/// A histogram of latencies; its size does not depend on how many there are.
#[derive(Debug, Clone)]
pub struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max: Duration::ZERO }
    }
}

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        let millis = (latency.as_secs_f64() * 1e3).max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "millis ≥ 1, so 0 ≤ bucket < 1000"
        )]
        let bucket = (millis.ln() / BUCKET_GROWTH.ln()) as usize;
        if let Some(count) = self.buckets.get_mut(bucket.min(BUCKETS - 1)) {
            *count += 1;
        }
        self.count += 1;
        self.max = self.max.max(latency);
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The latency that `share` (0 to 1) of them do not exceed, to 10 %; zero when none was counted.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
        let rank = self.count as f64 * share;
        let mut below = 0;
        for (exponent, count) in (1_i32..).zip(&self.buckets) {
            below += count;
            #[expect(clippy::cast_precision_loss, reason = "as above")]
            if below as f64 >= rank && below > 0 {
                return Duration::from_secs_f64(BUCKET_GROWTH.powi(exponent) / 1e3).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_tenth() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), Duration::ZERO);
        for millis in 1..=1000 {
            latencies.record(Duration::from_millis(millis));
        }
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0)] {
            let got = latencies.quantile(share).as_secs_f64() * 1e3;
            assert!((got / expected - 1.0).abs() <= 0.1, "{share}: {got}");
        }
        assert_eq!(latencies.max(), Duration::from_secs(1));
    }
}
