//! What outlives the run, at a lane's elbow: answers that were paid for before, and the ledger that all processes share.
//!
//! ```text
//! source ─► recall ─► (hit: an outcome) ─► admission ─► exchange ─► booking ─► outcome
//!           cache                          ledger                   durable
//! ```
//!
//! - [`recall`]: looks ahead in the order, a block at a time, and answers from the cache what it can.
//! - [`admission`]: what is to leave is counted, claimed and written down first, durably.
//! - [`booking`]: what came of it is durable before anybody hears of it.
//!
//! The lane never waits for the store with anything else undone: each call is a task of its own, and the lane takes what
//! has come of them in its one loop. What is in flight and what is received and not yet committed are together never more
//! than may be in flight: so much a kill costs. Answers that are committed wait for the disk beside that.
//!
//! Where there is no store there is no [`LaneMemory`], and none of this happens.

mod admission;
mod booking;
mod recall;
mod tasks;

use admission::Supply;
pub(super) use booking::next_call;
pub(super) use recall::Ahead;
pub use tasks::Tasks;

use super::LaneSettings;
use super::batch::Batch;
use super::lane::Closing;
use super::outcome::Outcome;
use super::questions::Place;
use super::stop::{Stop, Stopper};
use crate::store::{Account, Admitted, Ask, Completed, Reply, Settled, Store, StoreError, Stored, Who};
use jiff::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What of the store a run uses, and how.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The store.
    pub store: Arc<dyn Store>,
    /// For whom the run is made.
    pub who: Who,
    /// The user's name, for the audit trail.
    pub user: Arc<str>,
    /// Take answers up to this old, found or not, instead of each provider's own ages.
    pub max_age: Option<Duration>,
    /// Take no answer from the cache.
    pub refresh: bool,
    /// Send nothing.
    pub offline: bool,
    /// By how much an answer may be out of date that is taken because the provider failed.
    pub stale_if_error: Duration,
    /// Ends the run when the store fails.
    pub stopper: Stopper,
    /// Why it did.
    pub fault: Arc<OnceLock<StoreError>>,
}

impl Memory {
    /// Whether an answer of this moment may be taken without asking.
    #[must_use]
    pub fn is_fresh(&self, keeping: &Keeping, found: bool, fetched_at: Timestamp, now: Timestamp) -> bool {
        age(fetched_at, now) < self.fresh_for(keeping, found)
    }

    /// How long an answer of this kind may be taken for.
    fn fresh_for(&self, keeping: &Keeping, found: bool) -> Duration {
        self.max_age.unwrap_or(if found { keeping.found_for } else { keeping.unknown_for })
    }

    /// The store failed: nothing more is asked, for it could not be kept.
    pub(crate) fn failed(&self, error: StoreError) {
        tracing::debug!("the store failed: {error}");
        // The first reason is the one to tell.
        let _ = self.fault.set(error);
        self.stopper.stop(Stop::StoreFailed);
    }
}

/// How old an answer is. One from the future comes of a clock that was set back: it is as good as new.
fn age(fetched_at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(fetched_at)).unwrap_or_default()
}

/// How a lane's answers are kept and its look-ups counted.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// Whose answers, whose quota.
    pub account: Account,
    /// Of everything that makes the same reply another answer: the definition, and the thresholds of the run.
    pub version: u64,
    /// How long an answer is fresh.
    pub found_for: Duration,
    /// How long a "not found" is.
    pub unknown_for: Duration,
    /// Share of each long window that jobs and workers leave to people, 0 to 1.
    pub reserve: f64,
}

/// How long an answer is kept after it is out of date, for `stale_if_error` and `sift explain`.
const KEPT_AFTER: Duration = Duration::from_secs(7 * 86_400);

/// Most answers that wait for the disk: what the busiest provider brings in some 50 ms, a few hundred bytes each.
const MOST_UNDURABLE: usize = 2_048;

/// What has come of a call to the store.
pub(super) enum Came {
    /// What is kept of these places, and whether they are read for the second time because another process asked.
    Read { places: Vec<Place>, again: bool, stored: Result<Vec<Option<Stored>>, StoreError> },
    /// Answers whose filter has changed since, with their bodies.
    Bodies { places: Vec<Place>, stored: Result<Vec<Option<Stored>>, StoreError> },
    /// Whether these may leave.
    Admitted { batches: Vec<Batch>, admitted: Result<Admitted, StoreError> },
    /// These answers outlast this process, and wait for the disk.
    Safe { outcomes: Vec<(Place, Outcome)>, booked: Reply<()> },
    /// These answers are durable, or cannot be made so; `was_safe`: after [`Self::Safe`].
    Booked { outcomes: Vec<(Place, Outcome)>, booked: Result<(), StoreError>, was_safe: bool },
    /// Something of which nobody waits for the end was written.
    Noted(Result<(), StoreError>),
}

/// One lane's use of the store.
pub(super) struct LaneMemory {
    memory: Memory,
    /// The tasks that the run works off, if it works off a queue.
    tasks: Option<Tasks>,
    keeping: Keeping,
    ask: Arc<Ask>,
    calls: JoinSet<Came>,
    /// Places that are being read.
    reading: usize,
    /// Answers that were there and are out of date, of places that are unfinished.
    known: HashMap<Place, Stored>,
    /// Requests whose admission is being decided.
    admitting: usize,
    supply: Supply,
    /// Admitted, and not yet sent.
    admitted: VecDeque<Batch>,
    /// Why no more is admitted: the lane closes once the last that was has left.
    closing: Option<Closing>,
    /// Look-ups that another process has in flight, and when to see after them.
    elsewhere: Vec<(Instant, Batch)>,
    /// What came of the exchange that is being settled, to be booked together.
    booking: Vec<Settled>,
    /// Tasks that end with it.
    completing: Vec<Completed>,
    outcomes: Vec<(Place, Outcome)>,
    /// Answers that are received and would not yet outlast this process.
    unkept: usize,
    /// Answers that would not yet outlast a power cut.
    undurable: usize,
    /// When the provider's own count was last handed to the ledger.
    told_at: Option<Instant>,
}

impl LaneMemory {
    pub(super) fn new(
        memory: Memory,
        tasks: Option<Tasks>,
        keeping: Keeping,
        settings: &LaneSettings,
        counts_each: bool,
        keep_claim: Duration,
    ) -> Self {
        let ask = Ask {
            account: keeping.account.clone(),
            quotas: settings.rates.iter().chain(&settings.quotas).copied().collect(),
            burst: if counts_each { 0 } else { settings.burst },
            rolling_day: false,
            reserve: keeping.reserve,
            who: memory.who.clone(),
            user: Arc::clone(&memory.user),
            keep_claim,
        };
        Self {
            memory,
            tasks,
            keeping,
            ask: Arc::new(ask),
            calls: JoinSet::new(),
            reading: 0,
            known: HashMap::new(),
            admitting: 0,
            supply: Supply::new(),
            admitted: VecDeque::new(),
            closing: None,
            elsewhere: Vec::new(),
            booking: Vec::new(),
            completing: Vec::new(),
            outcomes: Vec::new(),
            unkept: 0,
            undurable: 0,
            told_at: None,
        }
    }

    /// Whether nothing may be sent at all.
    pub(super) const fn is_offline(&self) -> bool {
        self.memory.offline
    }

    /// Whether no more may leave, with so many in flight: a kill would cost more than may be in flight, or too many answers
    /// wait for the disk.
    pub(super) const fn holds_back(&self, in_flight: usize, slots: usize) -> bool {
        in_flight + self.unkept >= slots || self.undurable >= MOST_UNDURABLE
    }

    /// Whether anything is under way or held here.
    pub(super) fn is_busy(&self) -> bool {
        self.waits() || !self.calls.is_empty()
    }

    /// Why the lane closes, once nothing that was admitted is left to send.
    pub(super) fn closing(&mut self) -> Option<Closing> {
        if self.admitted.is_empty() && self.admitting == 0 { self.closing.take() } else { None }
    }

    /// Whether anything waits here for its turn.
    pub(super) fn waits(&self) -> bool {
        !(self.admitted.is_empty() && self.elsewhere.is_empty())
    }

    /// Whether anything is held that is still to leave.
    pub(super) fn holds_some(&self) -> bool {
        self.waits() || self.admitting > 0
    }

    /// When something here falls due next, after `now`; what was due then waits for something else.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        self.elsewhere.iter().map(|(due, _)| *due).filter(|&due| due > now).min()
    }

    /// Back in front: its token was not due.
    pub(super) fn put_back(&mut self, batch: Batch) {
        self.admitted.push_front(batch);
    }

    /// Has something done, and the lane told of it.
    #[cfg(not(test))]
    fn call(&mut self, call: impl Future<Output = Came> + Send + 'static) {
        self.calls.spawn(call);
    }

    /// The same on a paused clock, which stands still while a blocking task runs, but not while another thread works.
    #[cfg(test)]
    fn call(&mut self, call: impl Future<Output = Came> + Send + 'static) {
        let runtime = tokio::runtime::Handle::current();
        self.calls.spawn_blocking(move || runtime.block_on(call));
    }

    /// Ends when a call has ended; never, if there is none.
    async fn next(&mut self) -> Came {
        loop {
            match self.calls.join_next().await {
                Some(Ok(came)) => return came,
                // A call neither panics nor is aborted; if one were, its places have their records from the assembler.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}
