//! Paced windows in which each address of a batch counts: a log of what left, so that no window ever holds more than its
//! quota and yet a batch may fill it at once. Spacing single sends, as [`pace`](super::pace) does, would split batches.

use super::pace::STRETCH;
use crate::provider::Quota;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// What left in the last of each window. Holds at most as many entries as the largest quota counts. Pure: `now` comes in.
#[derive(Debug)]
pub(super) struct Windows {
    /// Look-ups, and how long each of them counts: the window and a little more, for the network's jitter.
    quotas: Vec<(u32, Duration)>,
    /// When so many look-ups left, oldest first.
    log: VecDeque<(Instant, u32)>,
}

impl Windows {
    /// Keeps every one of `quotas`.
    pub(super) fn keeping(quotas: &[Quota]) -> Self {
        let stretched = |quota: &Quota| (quota.count.get(), quota.window.length().mul_f64(STRETCH));
        Self { quotas: quotas.iter().map(stretched).collect(), log: VecDeque::new() }
    }

    /// How many look-ups may leave now, or when the next one may.
    pub(super) fn room(&mut self, now: Instant) -> Result<u32, Instant> {
        self.forget(now);
        match self.wait(1, now) {
            Some(due) => Err(due),
            None => Ok(self
                .quotas
                .iter()
                .map(|&(count, length)| count.saturating_sub(self.held(length, now)))
                .min()
                .unwrap_or(u32::MAX)),
        }
    }

    /// Notes that `n` leave now, or says when they may. More than a quota's whole are taken as its whole.
    pub(super) fn take(&mut self, n: u32, now: Instant) -> Result<(), Instant> {
        self.forget(now);
        if let Some(due) = self.wait(n, now) {
            return Err(due);
        }
        self.log.push_back((now, n));
        Ok(())
    }

    /// Look-ups that left in the last `length`, at most the quota by construction.
    fn held(&self, length: Duration, now: Instant) -> u32 {
        self.log.iter().rev().take_while(|(at, _)| *at + length > now).map(|(_, n)| n).sum()
    }

    /// When `n` more fit into all windows; `None` if they do now.
    fn wait(&self, n: u32, now: Instant) -> Option<Instant> {
        let due = |&(count, length): &(u32, Duration)| {
            let mut over = (self.held(length, now) + n.min(count)).saturating_sub(count);
            let mut counting = self.log.iter().filter(|(at, _)| *at + length > now);
            let mut due = None;
            while over > 0
                && let Some((at, n)) = counting.next()
            {
                over = over.saturating_sub(*n);
                due = Some(*at + length);
            }
            due
        };
        self.quotas.iter().filter_map(due).max()
    }

    fn forget(&mut self, now: Instant) {
        let longest = self.quotas.iter().map(|(_, length)| *length).max().unwrap_or_default();
        while self.log.front().is_some_and(|(at, _)| *at + longest <= now) {
            self.log.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_batch_may_fill_the_window_at_once_and_the_next_waits() {
        let start = Instant::now();
        let mut windows = Windows::keeping(&["100/min".parse().unwrap()]);
        assert_eq!(windows.room(start), Ok(100));
        windows.take(60, start).unwrap();
        let later = start + Duration::from_secs(10);
        assert_eq!(windows.room(later), Ok(40));
        windows.take(40, later).unwrap();
        let due = start + Duration::from_secs(60).mul_f64(STRETCH);
        assert_eq!(windows.room(later), Err(due));
        assert_eq!(windows.room(due), Ok(60));
        // All of it fits only when the second batch is forgotten too.
        assert_eq!(windows.take(1_000, due), Err(later + Duration::from_secs(60).mul_f64(STRETCH)));
    }

    proptest! {
        #[test]
        fn no_window_ever_exceeds_its_quota(
            count in 1_u32..200,
            steps in prop::collection::vec((1_u32..300, 0_u64..2_000), 1..100),
        ) {
            let quotas = [format!("{count}/s").parse().unwrap(), format!("{}/min", count * 3).parse().unwrap()];
            let mut windows = Windows::keeping(&quotas);
            let mut now = Instant::now();
            let mut left: Vec<(Instant, u32)> = Vec::new();
            for (wish, pause) in steps {
                now += Duration::from_millis(pause);
                match windows.room(now) {
                    Ok(room) => {
                        prop_assert!(room >= 1);
                        windows.take(wish.min(room), now).unwrap();
                        left.push((now, wish.min(room)));
                    }
                    Err(due) => prop_assert!(due > now),
                }
            }
            for (at, _) in &left {
                for (most, length) in [(count, 1), (count * 3, 60)] {
                    let end = *at + Duration::from_secs(length);
                    let sum: u32 = left.iter().filter(|(t, _)| t >= at && *t <= end).map(|(_, n)| n).sum();
                    prop_assert!(sum <= most, "{sum} in {length} s");
                }
            }
        }
    }
}
