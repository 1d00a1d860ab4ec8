//! The run's clock: tokio's monotonic time, and the wall time that belongs to it.
//!
//! Everything in this room takes `now` from here, so a test on tokio's paused clock sees the same decisions, with the
//! same `retry_at` stamps, as a run of hours.

use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// Relates tokio's [`Instant`]s to wall time. The wall clock is read once, at the start: a clock that is set during the
/// run must not move a hold-off.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    start: Instant,
    wall: Timestamp,
}

impl RunClock {
    /// Starts at this moment, which `wall` says in wall time.
    #[must_use]
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { start: Instant::now(), wall }
    }

    /// The wall time of an instant of this run.
    #[must_use]
    pub fn wall(&self, at: Instant) -> Timestamp {
        let since = at.saturating_duration_since(self.start);
        self.wall.checked_add(jiff::SignedDuration::try_from(since).unwrap_or_default()).unwrap_or(self.wall)
    }

    /// The wall time of now.
    #[must_use]
    pub fn wall_now(&self) -> Timestamp {
        self.wall(Instant::now())
    }

    /// The instant of a wall time; one that has passed is `now`.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.wall_now());
        Instant::now() + Duration::try_from(ahead).unwrap_or_default()
    }
}

/// tokio's clock for governor, which would otherwise read the machine's and ignore a paused one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RuntimeClock;

impl governor::clock::Clock for RuntimeClock {
    type Instant = std::time::Instant;

    fn now(&self) -> Self::Instant {
        Instant::now().into_std()
    }
}
