//! A lane: one provider's look-ups, asked within its limits.
//!
//! The loop below is the only place of the crate that waits for a provider. One turn of it:
//!
//! 1. settle what has landed ([`settle`](super::settle));
//! 2. see what the next look-up has to wait for, in this order: something to ask, the breaker, a provider slot, the
//!    hold-off, the allowance;
//! 3. take the run's permit, then a token of the pace, and send; a token that is not due gives the permit back at once.
//!
//! A permit is held for the exchange alone, never across a wait. Whatever can never be sent is failed at once: the lane
//! closes ([`Closing`]), and everything left in it gets the same word and the same `retry_at`.

use super::assemble::Event;
use super::batch::Batch;
use super::board::Board;
use super::breaker::{Breaker, BreakerSettings, Gate};
use super::budget::Budget;
use super::clock::RunClock;
use super::ending::leaves_the_cache;
use super::flight::{Flying, Landed};
use super::intake::{Intake, Source};
use super::limit::allowance::{Admission, Allowance};
use super::limit::holdoff::HoldOff;
use super::limit::pace::{Pace, spacing};
use super::memory::{Ahead, LaneMemory, next_call};
use super::outcome::{ErrorBody, Outcome};
use super::questions::{Place, Questions};
use super::retry::budget::RetryBudget;
use super::source::Horizon;
use super::stats::LaneStats;
use super::stop::{Stop, StopSignal};
use super::{LaneSpec, Memory, Tasks};
use crate::provider::{Counts, Dialect, ErrorType, Quota};
use rand::rngs::SmallRng;
use secrecy::SecretString;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

/// How much longer than an attempt may take its claim holds: for the way to the ledger and back on a busy machine.
const CLAIM_MARGIN: Duration = Duration::from_secs(20);

/// What a batch's attempt may take longer for each address beyond the first: our choice, so that ten thousand have a minute
/// where one has ten seconds; IPinfo's own client gives a thousand three seconds more than one.
pub(super) const PER_ADDRESS: Duration = Duration::from_millis(5);

/// One lane's limits, from the definition and the configuration.
#[derive(Debug, Clone)]
pub struct LaneSettings {
    /// Requests in flight at once to this provider.
    pub slots: usize,
    /// Windows up to an hour: paced.
    pub rates: Vec<Quota>,
    /// Sends that may leave at once; 1 spaces them evenly.
    pub burst: u32,
    /// Longer windows: counted.
    pub quotas: Vec<Quota>,
    /// For one exchange, from the connection to the last byte; a batch has a little more for each address.
    pub timeout: Duration,
    /// For one look-up, from its first attempt: retries and the provider's waits included, our own pace not.
    pub deadline: Duration,
    /// Retries of one look-up.
    pub retries: u32,
    /// Retries over first attempts, 0 to 1.
    pub retry_budget: f64,
    /// When to stop asking a provider that fails.
    pub breaker: BreakerSettings,
}

/// What all lanes of a run share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) questions: Rc<Questions>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) horizon: Rc<Horizon>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) clock: RunClock,
    pub(super) stop: StopSignal,
    /// When the run's own time is over.
    pub(super) run_end: Option<Instant>,
    pub(super) run_limit: Duration,
    pub(super) board: Board,
    /// Look-ups that the run may still spend, over all lanes.
    pub(super) budget: Option<Rc<Cell<u64>>>,
}

/// Why a lane ends before its work is done; everything left in it fails with this.
#[derive(Debug, Clone)]
pub(super) struct Closing(pub(super) ErrorBody);

/// What a lane does next.
#[derive(Debug)]
pub(super) enum Step {
    Send(Batch),
    /// Until the instant, if there is one, or until something lands or comes in.
    Wait(Option<Instant>),
    Close(Closing),
    Finished,
}

/// One provider's look-ups. Owned and driven by one future; no other writes to it.
pub(super) struct Lane {
    pub(super) number: usize,
    pub(super) shared: Shared,
    pub(super) settings: LaneSettings,
    pub(super) key: Option<SecretString>,
    pub(super) flying: Arc<Flying>,
    /// What outlives the run, where there is a store.
    pub(super) memory: Option<LaneMemory>,
    /// How far the cache is read ahead.
    pub(super) ahead: Ahead,
    /// The word for all that the cache does not answer: nothing more is sent.
    pub(super) shut: Option<ErrorBody>,
    /// Look-ups that the run may still spend here.
    pub(super) budget: Budget,
    pub(super) intake: Intake,
    pub(super) flights: JoinSet<Landed>,
    pub(super) aloft: HashMap<Id, Batch>,
    pub(super) pace: Pace,
    /// Whether each address of a batch counts as a look-up of its own.
    pub(super) counts_each: bool,
    pub(super) hold: HoldOff,
    pub(super) allowance: Allowance,
    pub(super) breaker: Breaker,
    pub(super) retry_budget: RetryBudget,
    pub(super) rng: SmallRng,
    /// Our own pace or a short window that runs low: not before.
    pub(super) not_before: Option<Instant>,
    pub(super) closing: Option<Closing>,
    /// The provider has answered in this run, be it with a no.
    pub(super) has_answered: bool,
    /// The first failure since it last did.
    pub(super) failing_since: Option<Instant>,
    pub(super) stats: LaneStats,
    /// No reply has come yet. A provider that counts a long window in its headers is asked once, alone, before the lane
    /// opens: it may have nothing left.
    pub(super) is_scouting: bool,
    /// Batches in a row that the provider did not take, whatever was in them.
    pub(super) untaken_batches: u32,
}

impl Lane {
    pub(super) fn new(
        shared: Shared,
        spec: LaneSpec,
        memory: Option<(Memory, Option<Tasks>)>,
        flying: Flying,
        source: Source,
        rng: SmallRng,
    ) -> Self {
        let LaneSpec { definition: _, key, ask: _, settings, keeping, budget } = spec;
        let definition = shared.questions.definitions.get(flying.lane).cloned();
        let host = definition.as_ref().map_or("", |definition| definition.host());
        let bulk = definition.as_ref().and_then(|definition| definition.bulk.as_ref());
        let size = bulk.map_or(1, |bulk| bulk.size.get());
        let counts_each = bulk.is_some_and(|bulk| bulk.counts == Counts::Each);
        let each = if counts_each { size } else { 1 };
        let slots = u32::try_from(settings.slots).unwrap_or(u32::MAX);
        let intake = Intake::new(
            flying.lane,
            source,
            size as usize,
            Rc::clone(&shared.questions),
            Rc::clone(&shared.horizon),
            shared.run_end.map(|end| end.checked_sub(settings.timeout).unwrap_or(end)),
        )
        .checking(memory.is_some());
        let is_paced = is_paced(&settings);
        let keep_claim = settings.timeout + PER_ADDRESS * size + CLAIM_MARGIN;
        let memory = memory.map(|(memory, tasks)| {
            LaneMemory::new(memory, tasks, keeping, &settings, counts_each, keep_claim)
        });
        let name = definition.as_ref().map_or_else(String::new, |definition| definition.name.clone());
        Self {
            number: flying.lane,
            key,
            intake,
            flights: JoinSet::new(),
            aloft: HashMap::new(),
            pace: Pace::keeping(&settings.rates, settings.burst, each > 1),
            counts_each,
            hold: HoldOff::default(),
            allowance: Allowance::new(&settings.quotas, slots.saturating_mul(each)),
            breaker: Breaker::new(settings.breaker),
            retry_budget: RetryBudget::new(settings.retry_budget),
            rng,
            not_before: None,
            closing: None,
            has_answered: false,
            failing_since: None,
            stats: LaneStats::new(&name, host),
            ahead: Ahead::new(size as usize, settings.slots, is_paced),
            shut: None,
            budget: Budget { own: budget, run: shared.budget.clone() },
            memory,
            is_scouting: flying.dialect == Dialect::Abuseipdb,
            untaken_batches: 0,
            flying: Arc::new(flying),
            settings,
            shared,
        }
    }

    /// Asks until nothing is left to ask, or the lane closes. Every look-up that was due here has its outcome then.
    pub(super) async fn run(mut self) -> LaneStats {
        if self.memory.as_ref().is_some_and(LaneMemory::is_offline) {
            let word = "not asked: --offline sends nothing, and no fresh answer is stored";
            self.shut(ErrorBody::new(ErrorType::Offline, word)).await;
        }
        loop {
            while let Some(landed) = self.flights.try_join_next_with_id() {
                self.settle_landed(landed).await;
            }
            self.book();
            self.take_what_came().await;
            // Nothing is tried again in a lane that is shut.
            if let Some(error) = self.shut.clone().filter(|_| self.holds_some()) {
                self.fail_waiting(&error).await;
            }
            self.look_ahead();
            let now = Instant::now();
            match self.next_step(now) {
                Step::Send(batch) => self.launch(batch).await,
                Step::Wait(until) => self.wait(until, now).await,
                Step::Close(Closing(error)) if self.memory.is_some() && leaves_the_cache(error.error) => {
                    self.shut(error).await;
                }
                Step::Close(closing) => {
                    self.close(closing).await;
                    break;
                }
                Step::Finished => break,
            }
        }
        if let Some(error) = self.shut.clone() {
            let from = self.intake.untaken();
            self.tell(Event::Closed { lane: self.number, from, error }).await;
        }
        self.stats.remaining = self.allowance.remaining();
        self.stats.breaker = self.breaker.word();
        self.show_end();
        self.stats
    }

    fn next_step(&mut self, now: Instant) -> Step {
        if let Some(closing) = self.reason_to_close(now) {
            return Step::Close(closing);
        }
        if self.shut.is_some() {
            return self.idle();
        }
        if let Err(step) = self.gate(now) {
            return step;
        }
        let room = self.room(now);
        let next = match self.memory {
            None => self.intake.next(now, room),
            Some(_) => self.next_admitted(now, room),
        };
        match next {
            Some(batch) => Step::Send(batch),
            None if self.waits_for_the_ledger() => Step::Wait(None),
            None if self.intake.has_more() => Step::Wait(self.intake.due()),
            None => self.idle(),
        }
    }

    /// Whether anything was taken from the source and waits; what was admitted too, even after the lane was shut.
    fn holds_some(&self) -> bool {
        self.intake.holds_some() || self.memory.as_ref().is_some_and(LaneMemory::waits)
    }

    /// Whether anything is left that may have to be sent.
    fn has_more(&self) -> bool {
        self.intake.has_more() || self.memory.as_ref().is_some_and(LaneMemory::holds_some)
    }

    /// What stands before any look-up of this lane.
    fn gate(&mut self, now: Instant) -> Result<(), Step> {
        let gate = self.breaker.gate(now);
        if let Gate::Open(until) = gate {
            return Err(if self.has_more() { Step::Wait(Some(until)) } else { self.idle() });
        }
        let goes_alone = self.is_scouting || self.hold.is_unproven() || gate == Gate::Probe;
        let in_flight = self.flights.len();
        let slots = self.settings.slots;
        let is_held_back = self.memory.as_ref().is_some_and(|memory| memory.holds_back(in_flight, slots));
        if is_held_back || in_flight >= slots || (goes_alone && in_flight > 0) {
            return Err(Step::Wait(None));
        }
        if let Err(due) = self.pace.room(now) {
            self.not_before = Some(self.not_before.map_or(due, |earlier| earlier.max(due)));
        }
        let due = self.hold.until(now).max(self.not_before.filter(|&due| due > now));
        if due.is_some() && self.has_more() {
            return Err(Step::Wait(due));
        }
        if let Some(error) = self.budget.spent(&self.stats.provider).filter(|_| self.has_more()) {
            return Err(Step::Close(Closing(error)));
        }
        match self.allowance.admit(in_flight) {
            Admission::Go => Ok(()),
            Admission::AwaitReplies => Err(Step::Wait(None)),
            Admission::Spent(spent) if self.has_more() => Err(self.used_up(spent, now)),
            Admission::Spent(_) => Err(self.idle()),
        }
    }

    fn idle(&self) -> Step {
        let is_busy = self.memory.as_ref().is_some_and(LaneMemory::is_busy);
        if self.flights.is_empty() && !self.intake.has_more() && !is_busy {
            Step::Finished
        } else {
            Step::Wait(None)
        }
    }

    /// How many addresses the next request may hold, by what is left of the windows in which each counts.
    fn room(&mut self, now: Instant) -> usize {
        let budget =
            self.budget.left().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        if !self.counts_each {
            return if self.memory.is_some() { budget } else { usize::MAX };
        }
        let paced = self.pace.room(now).map_or(1, |room| room as usize);
        let left =
            self.allowance.room().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        paced.min(left).min(budget)
    }

    /// What a request costs of the provider's quotas, in look-ups.
    pub(super) fn cost(&self, batch: &Batch) -> u32 {
        if self.counts_each { u32::try_from(batch.len()).unwrap_or(u32::MAX) } else { 1 }
    }

    /// Waits for whatever comes first; `now` is when it was decided that there is nothing else to do.
    async fn wait(&mut self, until: Option<Instant>, now: Instant) {
        self.show(until);
        let began = Instant::now();
        let was_idle = self.flights.is_empty() && until.is_some();
        let (end, mut stop) = (self.shared.run_end, self.shared.stop.clone());
        let stopped = stop.get() != Stop::No;
        let changed = self.intake.changed();
        let seen_after = self.memory.as_ref().and_then(|memory| memory.due(now));
        tokio::select! {
            biased;
            Some(landed) = self.flights.join_next_with_id() => self.settle_landed(landed).await,
            came = next_call(&mut self.memory) => self.came(came).await,
            () = at(until) => {}
            () = at(seen_after) => {}
            _ = stop.called(), if !stopped => {}
            () = at(end), if end.is_some_and(|end| end > began) => {}
            () = changed => {}
        }
        if was_idle {
            self.stats.waited += began.elapsed();
        }
    }

    pub(super) async fn settle_landed(&mut self, landed: Result<(Id, Landed), tokio::task::JoinError>) {
        match landed {
            Ok((id, landed)) => {
                if let Some(batch) = self.aloft.remove(&id) {
                    self.settle(batch, landed).await;
                }
            }
            Err(lost) => {
                if let Some(batch) = self.aloft.remove(&lost.id()) {
                    let error = if lost.is_cancelled() {
                        ErrorBody::new(
                            ErrorType::Cancelled,
                            "the run was stopped before the provider answered",
                        )
                    } else {
                        ErrorBody::new(ErrorType::Internal, "a bug ended this look-up; please report it")
                    };
                    self.fail(&batch, error).await;
                }
            }
        }
    }

    pub(super) async fn finish(&mut self, place: Place, outcome: Outcome) {
        self.tell(Event::Outcome { lane: self.number, place, outcome }).await;
    }

    /// Whether replies are kept as they came.
    pub(super) fn keeps_raw(&self) -> bool {
        self.flying.keep_raw
    }

    /// Whether sends are spaced so far apart that there is time to ask the ledger about each.
    pub(super) fn is_paced(&self) -> bool {
        is_paced(&self.settings)
    }

    /// What the requests on their way cost of the provider's quotas, in look-ups.
    pub(super) fn cost_aloft(&self) -> u64 {
        self.aloft.values().map(|batch| u64::from(self.cost(batch))).sum()
    }

    pub(super) async fn tell(&mut self, event: Event) {
        // The assembler outlives the lanes; if it is gone the run is over and nobody wants to know.
        let _ = self.shared.events.send(event).await;
    }
}

/// Whether sends are spaced by more than an admission takes, many times over.
fn is_paced(settings: &LaneSettings) -> bool {
    settings.rates.iter().any(|rate| spacing(rate, settings.burst) >= Duration::from_millis(5))
}

/// Ends at the instant; never, if there is none.
pub(super) async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
