//! What the lanes are doing right now, for whoever shows it.

use super::breaker::Gate;
use super::lane::Lane;
use crate::provider::ErrorType;
use jiff::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// What a lane waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Replies, or something to ask.
    #[default]
    Replies,
    /// Its own pace.
    Pace,
    /// The end of a wait that the provider asked for.
    HoldOff,
    /// The breaker's next trial.
    Breaker,
    /// The next attempt of a look-up that failed.
    Retry,
}

/// One lane at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneNow {
    /// Look-ups answered or given up, those left by the lane's closing not counted.
    pub settled: u64,
    /// What it waits for.
    pub wait: Wait,
    /// Until when, where that is known.
    pub until: Option<Instant>,
    /// Why it closed, and when it is worth asking again.
    pub closed: Option<(ErrorType, Option<Timestamp>)>,
    /// Nothing is left to ask.
    pub is_done: bool,
}

/// One place a lane, in their order. Each lane writes its own, once a turn, so a lock is never waited for by more than
/// the one reader; it is never held across an await.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<[Mutex<LaneNow>]>);

impl Board {
    /// A board for so many lanes.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        Self((0..lanes).map(|_| Mutex::default()).collect())
    }

    /// A lane as it last was.
    #[must_use]
    pub fn lane(&self, number: usize) -> LaneNow {
        self.0
            .get(number)
            .map(|lane| *lane.lock().unwrap_or_else(PoisonError::into_inner))
            .unwrap_or_default()
    }

    fn put(&self, number: usize, now: LaneNow) {
        if let Some(lane) = self.0.get(number) {
            *lane.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
    }
}

impl Lane {
    /// Shows that the lane is about to wait.
    pub(super) fn show(&self, until: Option<Instant>) {
        let now = Instant::now();
        let wait = match until {
            None => Wait::Replies,
            Some(_) if matches!(self.breaker.gate(now), Gate::Open(_)) => Wait::Breaker,
            Some(_) if self.hold.until(now) == until => Wait::HoldOff,
            Some(_) if self.not_before == until => Wait::Pace,
            Some(_) => Wait::Retry,
        };
        self.show_as(LaneNow { wait, until, ..LaneNow::default() });
    }

    /// Shows that the lane asks nothing any more.
    pub(super) fn show_end(&self) {
        let closed = self.stats.closed.map(|why| (why, self.stats.retry_at));
        self.show_as(LaneNow { closed, is_done: true, ..LaneNow::default() });
    }

    fn show_as(&self, now: LaneNow) {
        let settled = self.stats.answered + self.stats.errors.values().sum::<u64>();
        self.shared.board.put(self.number, LaneNow { settled, ..now });
    }
}
