//! Works off the queue: takes tasks by lease, has `enrich` ask, and ends them.
//!
//! Each provider has a [`shift`] of its own, so that a slow one holds nobody up and one that closed can open again. All
//! together keep one bound of requests in flight. A shift holds no more leases than its lane reaches soon, renews them
//! while it lives, and gives them back in words where it can: [`end`] says what becomes of a task. An answer, what the
//! record says of it and the end of the task are one transaction (`enrich`'s booking). What a process leaves that dies is
//! taken again when its leases are over; `store` documents what is left at each point.

mod cascade;
mod end;
mod round;
mod shift;

pub use cascade::First;
pub use end::MOST_ATTEMPTS;
pub use round::{Round, Tally};
pub use shift::Shift;

use std::time::Duration;

/// How long a lease holds that nobody renews.
pub const LEASE: Duration = Duration::from_secs(60);

/// When a worker ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// When nothing is due, and no other worker has a task that may come back.
    #[default]
    Empty,
    /// When what was due at its start has had its turn.
    Once,
    /// Never.
    Stopped,
}
