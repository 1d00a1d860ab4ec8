//! The most requests that ever fell into one window, whatever the server did about them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::simulate::scenario::Limit;

/// Arrivals kept of one window. A window that holds more is reported as at least this many.
const KEPT: usize = 100_000;

/// Slides a limit's window over the arrivals.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) limit: Limit,
    inside: VecDeque<Duration>,
    /// Most arrivals in any window of the limit's length.
    pub(super) most: u64,
    /// Arrivals that found the window full.
    pub(super) over: u64,
}

impl Watch {
    pub(super) fn new(limit: Limit) -> Self {
        Self { limit, inside: VecDeque::new(), most: 0, over: 0 }
    }

    /// Notes an arrival so long after the start. A window is open at its far end: with 4 a minute, a fifth arrival
    /// exactly a minute after the first is within the limit.
    pub(super) fn note(&mut self, at: Duration) {
        while self.inside.front().is_some_and(|first| at.saturating_sub(*first) >= self.limit.per) {
            self.inside.pop_front();
        }
        if self.inside.len() == KEPT {
            self.inside.pop_front();
        }
        self.inside.push_back(at);
        let now = self.inside.len() as u64;
        self.most = self.most.max(now);
        self.over += u64::from(now > self.limit.count.get());
    }
}
