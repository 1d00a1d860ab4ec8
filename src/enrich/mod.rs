//! Asks the providers, each in its own lane, and brings their outcomes together.
//!
//! - [`lane`]: one provider's look-ups within its limits; the one loop that waits. [`intake`] says what it asks next, one
//!   address or a [`batch`], and [`settle`] what an exchange means, [`ending`]
//!   what becomes of the rest where it ends early.
//! - [`limit`], [`retry`], [`breaker`]: the decisions, pure.
//! - [`transport`]: one request, out and back; the one place from which anything leaves the host. [`mistrust`]
//!   says why TLS failed.
//! - [`memory`]: what outlives the run: the cache before a look-up, the ledger before it leaves, both after.
//! - [`assemble`]: outcomes into finished addresses, and the cascade.
//!
//! Addresses are all known and ranked beforehand, or they come while the run goes on ([`arrivals`]). There is no task per
//! address: a lane holds a cursor into the ranked order or takes from a feed, and holds what is in flight.

mod arrivals;
mod assemble;
mod batch;
mod board;
mod breaker;
mod budget;
mod clock;
mod download;
mod ending;
mod flight;
mod intake;
mod lane;
mod launch;
pub mod limit;
mod memory;
mod mistrust;
pub mod outcome;
mod packed;
mod questions;
mod reach;
mod redact;
pub mod retry;
mod settle;
mod source;
pub mod stats;
pub mod stop;
pub mod transport;

pub use arrivals::{Arrival, Work};
pub use assemble::Finished;
pub use board::{Board, LaneNow, Wait};
pub use breaker::BreakerSettings;
pub use clock::RunClock;
pub use download::{Downloaded, NotDownloaded, Validators};
pub use lane::LaneSettings;
pub use limit::pace::spacing;
pub use memory::{Keeping, Memory, Tasks};
pub use mistrust::is_about_issuer;
pub use packed::{pack, unpack};
pub use questions::{LaneSet, MOST_LANES};
pub use reach::Reached;
pub use stats::LaneStats;
pub use stop::{Stop, StopSignal, Stopper};
pub use transport::{Transport, TransportError, TransportSettings};

use crate::plan::Local;
use crate::provider::{Definition, Filters, Role};
use arrivals::Arrivals;
use assemble::{Assembler, LaneMeta};
use flight::Flying;
use intake::Source;
use lane::{Lane, Shared};
use questions::{Addresses, Questions};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use secrecy::SecretString;
use source::{Feed, Horizon};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Events that wait for the assembler. It never waits for a lane, so this only evens out bursts.
const EVENTS: usize = 256;

/// Shorter than an attempt may take, and long enough to cost nothing.
const TICK: Duration = Duration::from_secs(1);

/// When a provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ask {
    /// About every address.
    #[default]
    Always,
    /// About those that the providers asked first did not clear.
    Suspicious,
}

/// One provider of a run.
#[derive(Debug, Clone)]
pub struct LaneSpec {
    /// What it is.
    pub definition: Arc<Definition>,
    /// Its key, where it takes one.
    pub key: Option<SecretString>,
    /// When it is asked.
    pub ask: Ask,
    /// Its limits.
    pub settings: LaneSettings,
    /// How its answers are kept, where there is a store.
    pub keeping: Keeping,
    /// Look-ups that this run may spend on it, where that is bounded.
    pub budget: Option<u64>,
}

/// A run: who is asked, about what, within which bounds.
#[derive(Debug)]
pub struct Run {
    /// The providers, at most [`MOST_LANES`].
    pub lanes: Vec<LaneSpec>,
    /// Their filters, in the same order.
    pub filters: Arc<Filters>,
    /// The addresses.
    pub work: Work,
    /// What answers on this machine, beside the providers.
    pub local: Arc<Local>,
    /// The client.
    pub transport: Transport,
    /// Requests in flight at once, over all lanes.
    pub concurrency: usize,
    /// For the whole run, from now.
    pub max_time: Option<Duration>,
    /// Wall time.
    pub clock: RunClock,
    /// What ends it early.
    pub stop: StopSignal,
    /// Of the jitter.
    pub seed: u64,
    /// Where the lanes show what they do; an empty one where nobody looks.
    pub board: Board,
    /// Whether outcomes keep the providers' replies as they came (`--raw`).
    pub keep_raw: bool,
    /// The cache and the ledger; none for a run that keeps nothing.
    pub memory: Option<Memory>,
    /// Look-ups that the run may spend over all lanes, where that is bounded.
    pub budget: Option<u64>,
}

/// Asks. Every address of the ranked order, or every one that arrived, comes out of `out` exactly once, as soon as it is
/// finished, whatever happens; the returned counts are in the order of the lanes.
///
/// Must run on a current-thread runtime: the lanes share state without locks.
pub async fn run(run: Run, out: mpsc::Sender<Finished>) -> Vec<LaneStats> {
    let permits = Arc::new(Semaphore::new(run.concurrency.max(1)));
    ask(run, permits, None, out).await
}

/// The same for the tasks of a queue: an answer ends its task, in one transaction. `permits` stands in for
/// [`Run::concurrency`], so that several runs can keep one bound together.
pub async fn work(
    run: Run,
    permits: Arc<Semaphore>,
    tasks: Tasks,
    out: mpsc::Sender<Finished>,
) -> Vec<LaneStats> {
    ask(run, permits, Some(tasks), out).await
}

async fn ask(
    run: Run,
    permits: Arc<Semaphore>,
    tasks: Option<Tasks>,
    out: mpsc::Sender<Finished>,
) -> Vec<LaneStats> {
    let run_end = run.max_time.map(|limit| Instant::now() + limit);
    let horizon = Rc::new(Horizon::default());
    let (events, inbox) = mpsc::channel(EVENTS);
    let (addresses, coming) = match run.work {
        Work::Ranked { indicators, order } => (Addresses::Ranked { indicators, order }, None),
        Work::Arriving(inbox) => (Addresses::Arrived(RefCell::default()), Some(inbox)),
    };
    let arrivals = Arrivals::new(coming, run.stop.clone(), run_end);
    let questions = Rc::new(Questions {
        addresses,
        definitions: run.lanes.iter().map(|lane| Arc::clone(&lane.definition)).collect(),
        local: run.local,
        transport: run.transport.clone(),
    });
    let shared = Shared {
        questions: Rc::clone(&questions),
        permits,
        horizon: Rc::clone(&horizon),
        events,
        clock: run.clock,
        stop: run.stop,
        run_end,
        run_limit: run.max_time.unwrap_or_default(),
        board: run.board,
        budget: run.budget.map(|budget| Rc::new(Cell::new(budget))),
    };
    // With nobody to go first there is no cascade.
    let cascades = |lane: &LaneSpec| lane.ask == Ask::Suspicious && lane.definition.role == Role::Reputation;
    let has_first = run.lanes.iter().any(|lane| lane.definition.role == Role::Reputation && !cascades(lane));
    let mut metas = Vec::with_capacity(run.lanes.len());
    let mut lanes = Vec::with_capacity(run.lanes.len());
    for (number, spec) in run.lanes.into_iter().enumerate() {
        let cascades = has_first && spec.ask == Ask::Suspicious;
        let feed = (cascades || !arrivals.is_over()).then(|| Rc::new(Feed::default()));
        let name: Arc<str> = spec.definition.name.as_str().into();
        metas.push(LaneMeta {
            name: Arc::clone(&name),
            role: spec.definition.role,
            cascades,
            feed: feed.clone(),
            closed: None,
            unasked: 0,
        });
        let flying = Flying {
            transport: run.transport.clone(),
            filters: Arc::clone(&run.filters),
            lane: number,
            dialect: spec.definition.limits.dialect,
            keep_raw: run.keep_raw,
            keep_body: run.keep_raw || run.memory.is_some(),
        };
        let source = feed.map_or(Source::Ranked { next: 0 }, Source::Fed);
        let rng = SmallRng::seed_from_u64(run.seed.wrapping_add(number as u64));
        let memory = run.memory.clone().map(|memory| (memory, tasks.clone()));
        lanes.push(Lane::new(shared.clone(), spec, memory, flying, source, rng));
    }
    drop(shared);
    let assembler = Assembler::new(questions, metas, arrivals, horizon, out);
    drive(lanes, assembler.run(inbox)).await
}

/// Drives the lanes and the assembler side by side until all are done.
async fn drive(lanes: Vec<Lane>, assembler: impl Future<Output = Vec<u64>>) -> Vec<LaneStats> {
    let local = tokio::task::LocalSet::new();
    let mut running = JoinSet::new();
    for (number, lane) in lanes.into_iter().enumerate() {
        running.spawn_local_on(async move { (number, lane.run().await) }, &local);
    }
    let collect = async {
        let mut stats = Vec::new();
        while let Some(lane) = running.join_next().await {
            stats.extend(lane.ok());
        }
        stats
    };
    let work = Box::pin(async { tokio::join!(collect, assembler) });
    let (mut stats, unasked) = local.run_until(with_a_timer(work)).await;
    stats.sort_by_key(|(number, _): &(usize, LaneStats)| *number);
    let with_unasked = |(number, stats): (usize, LaneStats)| LaneStats {
        unasked: stats.unasked + unasked.get(number).copied().unwrap_or_default(),
        ..stats
    };
    stats.into_iter().map(with_unasked).collect()
}

/// Does the work with a timer running that is due before any attempt's. Without one, each attempt that begins while none
/// is in flight has the runtime woken by a system call, to see to its timer: 9 of 10 where answers come at once.
async fn with_a_timer<T>(work: impl Future<Output = T>) -> T {
    async fn tick() -> std::convert::Infallible {
        loop {
            tokio::time::sleep(TICK).await;
        }
    }
    tokio::select! {
        biased;
        done = work => done,
        never = tick() => match never {},
    }
}

#[cfg(test)]
mod tests;
