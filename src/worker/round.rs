//! What a shift is given, and what it comes to.

use super::Until;
use super::cascade::First;
use crate::enrich::{LaneSettings, LaneSpec, Memory, StopSignal, Transport, spacing};
use crate::provider::{ErrorType, Filters};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How far a paced lane's leases reach.
const REACH: Duration = Duration::from_secs(2);

/// Leases of one shift, at the most: what fits into the lanes' window many times.
pub(super) const MOST_LEASES: usize = 4_096;

/// What all rounds of a shift have in common.
#[derive(Debug, Clone)]
pub struct Round {
    /// The provider.
    pub spec: LaneSpec,
    /// Its filter alone.
    pub filters: Arc<Filters>,
    /// The client.
    pub transport: Transport,
    /// Requests in flight, over all shifts.
    pub permits: Arc<Semaphore>,
    /// The store, and how it is used.
    pub memory: Memory,
    /// What ends the worker early.
    pub stop: StopSignal,
    /// When the worker's own time is over, and how long that was in all.
    pub end: Option<(Instant, Duration)>,
    /// When it ends by itself.
    pub until: Until,
    /// How long a lease holds.
    pub lease: Duration,
    /// Who holds them.
    pub owner: Arc<str>,
    /// Whose word comes first.
    pub first: First,
}

/// What a shift came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The provider.
    pub provider: Arc<str>,
    /// Tasks that ended with an answer.
    pub answered: u64,
    /// Of them, those that the store answered.
    pub from_store: u64,
    /// Tasks that ended unasked, since others cleared the address.
    pub cleared: u64,
    /// Tasks that wait until the provider may be asked again.
    pub put_off: u64,
    /// Tasks that were asked in vain and will be tried again.
    pub again: u64,
    /// Tasks that went back because the worker ended.
    pub back: u64,
    /// Tasks that were given up.
    pub dead: u64,
    /// Why the lane closed, and when it is worth trying again.
    pub closed: Option<(ErrorType, Option<Timestamp>)>,
}

/// How many leases a shift holds: as many as its lane reaches soon.
pub(super) fn window(spec: &LaneSpec) -> usize {
    let LaneSettings { slots, rates, burst, .. } = &spec.settings;
    let size = spec.definition.bulk.as_ref().map_or(1, |bulk| bulk.size.get() as usize);
    let paced = |quota| {
        let spaced = spacing(quota, *burst).as_nanos().max(1);
        usize::try_from(REACH.as_nanos() / spaced).unwrap_or(usize::MAX)
    };
    let reached = rates.iter().map(paced).min().unwrap_or(usize::MAX);
    let soon = slots.saturating_mul(4).min(reached).max(2);
    soon.max(size.saturating_mul(2)).min(MOST_LEASES)
}
