//! What is left of the provider's allowance: our own count of the long windows, corrected by the provider's headers.
//!
//! Windows up to an hour are paced; a longer one is spent at full rate on the worst addresses and then closes the lane.

use super::headers::Told;
use crate::provider::{Quota, Window};
use std::time::Duration;
use tokio::time::Instant;

/// Below this share of a short window's quota, what is left is paced evenly until the reset.
const FLOOR_SHARE: u64 = 10;

/// Whether one more request may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::enrich) enum Admission {
    /// It may.
    Go,
    /// Not while others are in flight: their replies say whether anything is left.
    AwaitReplies,
    /// A long window is used up.
    Spent(Spent),
}

/// A long window that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::enrich) struct Spent {
    /// Which.
    pub(in crate::enrich) window: Window,
    /// When it starts anew, if the provider said.
    pub(in crate::enrich) reset: Option<Instant>,
}

/// One lane's account. Not shared between processes: that is the ledger's.
#[derive(Debug)]
pub(in crate::enrich) struct Allowance {
    /// Look-ups that may be in flight at once: by so many may replies arrive out of order.
    slots: u64,
    /// Our own count, per window: what is left of it.
    counted: Vec<(Window, u64)>,
    /// What the provider said last of a long window. Its word wins over ours.
    told: Option<ToldLong>,
}

#[derive(Debug)]
struct ToldLong {
    window: Window,
    /// The lowest count seen since the window began: replies overtake each other, and an older one says more.
    lowest: u64,
    /// What may still be sent.
    left: u64,
    reset: Option<Instant>,
}

impl Allowance {
    /// Starts with the definition's or the configuration's long windows.
    pub(in crate::enrich) fn new(quotas: &[Quota], slots: u32) -> Self {
        let counted = quotas.iter().map(|quota| (quota.window, u64::from(quota.count.get()))).collect();
        Self { slots: u64::from(slots), counted, told: None }
    }

    /// Whether one more may be sent while `in_flight` are on their way.
    pub(in crate::enrich) fn admit(&self, in_flight: usize) -> Admission {
        let spent = match &self.told {
            Some(told) if told.left == 0 => Spent { window: told.window, reset: told.reset },
            Some(_) => return Admission::Go,
            None => match self
                .counted
                .iter()
                .filter(|(_, left)| *left == 0)
                .max_by_key(|(window, _)| window.length())
            {
                // Our own count needs no reply to be believed.
                Some(&(window, _)) => return Admission::Spent(Spent { window, reset: None }),
                None => return Admission::Go,
            },
        };
        if in_flight > 0 { Admission::AwaitReplies } else { Admission::Spent(spent) }
    }

    /// How many look-ups a request may hold; `None` where nothing bounds them.
    pub(in crate::enrich) fn room(&self) -> Option<u64> {
        match &self.told {
            Some(told) => Some(told.left),
            None => self.counted.iter().map(|(_, left)| *left).min(),
        }
    }

    /// A request of so many look-ups leaves.
    pub(in crate::enrich) fn sent(&mut self, cost: u64) {
        for (_, left) in &mut self.counted {
            *left = left.saturating_sub(cost);
        }
        if let Some(told) = &mut self.told {
            told.left = told.left.saturating_sub(cost);
        }
    }

    /// A request of so many look-ups never left after all.
    pub(in crate::enrich) fn give_back(&mut self, cost: u64) {
        for (_, left) in &mut self.counted {
            *left = left.saturating_add(cost);
        }
        if let Some(told) = &mut self.told {
            told.left = told.left.saturating_add(cost);
        }
    }

    /// What a reply said, with `in_flight` look-ups still on their way (the server may or may not have counted them, so they
    /// are taken as not counted: at the end of a quota the lane goes one by one rather than one too far). Returns until when
    /// to pause, where a short window runs low.
    pub(in crate::enrich) fn told(&mut self, told: &Told, in_flight: u64, now: Instant) -> Option<Instant> {
        if told.is_long() {
            self.told_long(told, in_flight, now);
            return None;
        }
        let reset = told.reset?;
        let left = told.remaining.saturating_sub(in_flight);
        let floor = (told.limit.unwrap_or(0) / FLOOR_SHARE).max(self.slots);
        if left == 0 {
            Some(now + reset)
        } else if told.remaining <= floor {
            let parts = u32::try_from(left + 1).unwrap_or(u32::MAX);
            Some(now + reset / parts)
        } else {
            None
        }
    }

    fn told_long(&mut self, told: &Told, in_flight: u64, now: Instant) {
        let window = told.window.unwrap_or(Window::Day);
        let lowest = match &self.told {
            // More than replies out of order explain: the window began anew.
            Some(before) if told.remaining > before.lowest + self.slots => told.remaining,
            Some(before) => before.lowest.min(told.remaining),
            None => told.remaining,
        };
        let reset =
            told.reset.map(|reset| now + reset).or(self.told.as_ref().and_then(|before| before.reset));
        self.told = Some(ToldLong { window, lowest, left: lowest.saturating_sub(in_flight), reset });
    }

    /// The told window ends: what was said of it no longer holds.
    pub(in crate::enrich) fn begin_anew(&mut self) {
        self.told = None;
    }

    /// What is left of the longest known window, and of which: for the summary.
    pub(in crate::enrich) fn remaining(&self) -> Option<(Window, u64)> {
        match &self.told {
            Some(told) => Some((told.window, told.lowest)),
            None => self.counted.iter().min_by_key(|(_, left)| *left).copied(),
        }
    }
}

/// When a window that the provider says nothing of starts anew, at the latest: days end at midnight UTC, months on the
/// first; a week is taken to be rolling.
pub(in crate::enrich) fn next_reset(window: Window, now: jiff::Timestamp) -> jiff::Timestamp {
    use jiff::{ToSpan, Unit, tz::TimeZone};
    let today = now.to_zoned_datetime(TimeZone::UTC).start_of_day();
    let at = match window {
        Window::Month => {
            today.and_then(|day| day.first_of_month()).and_then(|day| day.checked_add(1.month()))
        }
        Window::Week => {
            now.to_zoned_datetime(TimeZone::UTC).round(Unit::Minute).and_then(|at| at.checked_add(7.days()))
        }
        Window::Day => today.and_then(|day| day.checked_add(1.day())),
        _ => now
            .to_zoned_datetime(TimeZone::UTC)
            .checked_add(jiff::SignedDuration::try_from(window.length()).unwrap_or_default()),
    };
    at.map_or(now + Duration::from_secs(86_400), |at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(remaining: u64) -> Told {
        Told { remaining, limit: Some(1000), reset: None, window: Some(Window::Day) }
    }

    #[test]
    fn our_own_count_ends_exactly() {
        let mut own = Allowance::new(&["3/day".parse().unwrap()], 16);
        for _ in 0..3 {
            assert_eq!(own.admit(2), Admission::Go);
            own.sent(1);
        }
        assert_eq!(own.admit(2), Admission::Spent(Spent { window: Window::Day, reset: None }));
    }

    #[test]
    fn the_providers_word_wins_over_ours() {
        let mut allowance = Allowance::new(&["3/day".parse().unwrap()], 4);
        allowance.sent(1);
        allowance.told(&day(2_000), 0, Instant::now());
        for _ in 0..100 {
            assert_eq!(allowance.admit(0), Admission::Go);
            allowance.sent(1);
        }
    }

    #[test]
    fn near_the_end_it_waits_for_replies_rather_than_draw_a_refusal() {
        let now = Instant::now();
        let mut allowance = Allowance::new(&[], 4);
        allowance.told(&day(3), 3, now);
        assert_eq!(allowance.admit(3), Admission::AwaitReplies);
        // The three had been counted already: one reply after the other shows it.
        allowance.told(&day(3), 0, now);
        assert_eq!(allowance.admit(0), Admission::Go);
    }

    #[test]
    fn an_overtaken_reply_does_not_give_back_what_is_spent() {
        let now = Instant::now();
        let mut allowance = Allowance::new(&[], 4);
        allowance.told(&day(48), 2, now);
        allowance.told(&day(49), 1, now);
        allowance.told(&day(50), 0, now);
        assert_eq!(allowance.remaining(), Some((Window::Day, 48)));
        // A new day is more than that.
        allowance.told(&day(1_000), 0, now);
        assert_eq!(allowance.remaining(), Some((Window::Day, 1_000)));
    }

    #[test]
    fn a_short_window_is_paced_below_its_floor_and_paused_at_its_end() {
        let now = Instant::now();
        let told = |remaining| Told {
            remaining,
            limit: Some(100),
            reset: Some(Duration::from_secs(30)),
            window: Some(Window::Minute),
        };
        let mut allowance = Allowance::new(&[], 4);
        assert_eq!(allowance.told(&told(60), 2, now), None);
        assert_eq!(allowance.told(&told(10), 0, now), Some(now + Duration::from_secs(30) / 11));
        assert_eq!(allowance.told(&told(2), 2, now), Some(now + Duration::from_secs(30)));
        assert_eq!(allowance.admit(0), Admission::Go);
    }

    #[test]
    fn a_batch_takes_what_is_left_and_no_more() {
        let mut allowance = Allowance::new(&["50/week".parse().unwrap(), "500/month".parse().unwrap()], 4);
        assert_eq!(allowance.room(), Some(50));
        allowance.sent(30);
        assert_eq!(allowance.room(), Some(20));
        allowance.told(&day(7), 0, Instant::now());
        assert_eq!(allowance.room(), Some(7));
        assert_eq!(Allowance::new(&[], 4).room(), None);
    }

    #[test]
    fn windows_end_at_midnight_and_on_the_first() {
        let now = "2026-11-30T12:34:56Z".parse().unwrap();
        assert_eq!(next_reset(Window::Day, now).to_string(), "2026-12-01T00:00:00Z");
        assert_eq!(next_reset(Window::Month, now).to_string(), "2026-12-01T00:00:00Z");
        assert_eq!(next_reset(Window::Week, now).to_string(), "2026-12-07T12:35:00Z");
    }
}
