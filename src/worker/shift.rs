//! One provider's tasks, from the lease to the end.

use super::Until;
use super::cascade::Taken;
use super::end::{End, end, shows_closing};
use super::round::{MOST_LEASES, Round, Tally, window};
use crate::enrich::outcome::{ErrorBody, Outcome};
use crate::enrich::{Arrival, Board, Finished, LaneStats, Run, RunClock, Stop, Tasks, Work, pack, work};
use crate::plan::Local;
use crate::provider::ErrorType;
use crate::store::crash;
use crate::store::{Completed, Lease, StoreError, TaskId};
use jiff::{SignedDuration, Timestamp};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// How often to see whether there is something new.
const LOOK_EACH: Duration = Duration::from_millis(500);

/// How long a task waits of which nobody said how long.
const A_WHILE: Duration = Duration::from_secs(60);

/// How long a lane rests, with `--watch`, whose provider refuses the key: until somebody may have mended it.
const REST: Duration = Duration::from_secs(600);

/// How soon a task comes back of which another provider is still to be heard.
const EARLY: Duration = Duration::from_secs(1);

/// Finished look-ups that wait for the shift.
const UNREAD: usize = 1_024;

/// A task that is held.
#[derive(Debug, Clone, Copy)]
struct Held {
    id: TaskId,
    failed: u32,
}

/// One provider's shift. Driven by one future, on the thread of its lanes.
#[derive(Debug)]
pub struct Shift {
    round: Round,
    tally: Tally,
    held: HashMap<u32, Held>,
    tasks: Tasks,
    next: u32,
    /// Tasks that may still be taken.
    left: u64,
    /// Until when tasks come back that wait for another provider's word.
    early_until: Option<Instant>,
    rng: SmallRng,
    /// Ends that are on their way into the store.
    ending: JoinSet<Result<(), StoreError>>,
}

/// Ends of tasks that are told to the store together.
#[derive(Debug, Default)]
struct Ends {
    completed: Vec<Completed>,
    back: BTreeMap<Timestamp, Vec<TaskId>>,
    failed: Vec<(TaskId, Vec<u8>, Option<Timestamp>)>,
}

impl Shift {
    /// A shift that begins.
    #[must_use]
    pub fn new(round: Round) -> Self {
        let provider = round.spec.definition.name.as_str().into();
        Self {
            round,
            tally: Tally { provider, ..Tally::default() },
            held: HashMap::new(),
            tasks: Tasks::default(),
            next: 0,
            left: u64::MAX,
            early_until: None,
            rng: SmallRng::seed_from_u64(rand::random()),
            ending: JoinSet::new(),
        }
    }

    /// Works until it ends by itself or is stopped. A store that fails stops all shifts;
    /// [`Memory::fault`](crate::enrich::Memory::fault) has why.
    pub async fn run(mut self) -> Tally {
        if let Err(error) = self.work().await {
            self.round.memory.failed(error);
        }
        self.tally
    }

    async fn work(&mut self) -> Result<(), StoreError> {
        if self.round.until == Until::Once {
            self.left = self.status().await?.0;
        }
        while !self.is_over() {
            let mut ends = Ends::default();
            let taken = self.take().await?;
            let leases = self.sort_out(taken, &mut ends);
            self.tell(&mut ends);
            self.told().await?;
            if leases.is_empty() {
                if !self.waits().await? {
                    break;
                }
                self.pause(LOOK_EACH).await;
                continue;
            }
            let stats = self.ask(leases).await?;
            self.tally.closed = stats.and_then(|stats| Some((stats.closed?, stats.retry_at)));
            let Some((_, retry_at)) = self.tally.closed else { continue };
            if self.round.until != Until::Stopped {
                break;
            }
            let wait = retry_at.map_or(REST, |at| until(at).max(LOOK_EACH));
            self.pause(wait).await;
        }
        Ok(())
    }

    /// Whether no more is begun.
    fn is_over(&self) -> bool {
        self.round.stop.get() != Stop::No || self.is_late()
    }

    fn is_late(&self) -> bool {
        self.round.end.is_some_and(|(end, _)| end <= Instant::now())
    }

    /// Whether there will be something to take: another worker may die with what it has.
    async fn waits(&self) -> Result<bool, StoreError> {
        match self.round.until {
            _ if self.early_until.is_some_and(|until| Instant::now() <= until) => Ok(true),
            Until::Once => Ok(false),
            Until::Stopped => Ok(true),
            Until::Empty => self.status().await.map(|(ready, leased)| ready + leased > 0),
        }
    }

    /// Tasks that are ready, and that somebody has.
    async fn status(&self) -> Result<(u64, u64), StoreError> {
        let rows = self.round.memory.store.status(Timestamp::now()).await?;
        let own = rows.into_iter().find(|row| row.provider == self.tally.provider);
        Ok(own.map_or((0, 0), |row| (row.ready, row.leased)))
    }

    /// Waits; a stop or the end of the time ends it.
    async fn pause(&self, wait: Duration) {
        let mut stop = self.round.stop.clone();
        let end = Instant::now() + wait;
        let end = self.round.end.map_or(end, |(last, _)| end.min(last));
        tokio::select! {
            _ = stop.called() => {}
            () = tokio::time::sleep_until(end) => {}
        }
    }

    /// Leases to take now.
    fn wanted(&self) -> u32 {
        let room = window(&self.round.spec).saturating_sub(self.held.len());
        u32::try_from(self.left.min(room as u64)).unwrap_or(u32::MAX)
    }

    fn take(&self) -> impl Future<Output = Result<Taken, StoreError>> + Send + use<> {
        let Round { memory, lease, owner, first, .. } = &self.round;
        let (wanted, store, first) = (self.wanted(), Arc::clone(&memory.store), first.clone());
        let reply = store.take(&self.tally.provider, wanted, *lease, Arc::clone(owner), Timestamp::now());
        async move { if wanted == 0 { Ok(Taken::default()) } else { first.sort(&*store, reply.await?).await } }
    }

    /// Ends the tasks that others have cleared, puts off those of which others are still to be heard, and gives those
    /// that are to be asked.
    fn sort_out(&mut self, taken: Taken, ends: &mut Ends) -> Vec<Lease> {
        let Taken { ask, cleared, early } = taken;
        self.tally.cleared += cleared.len() as u64;
        self.left -= cleared.len() as u64;
        let unasked = |lease: Lease| Completed { id: lease.id, outcome: Vec::new(), settled: None };
        ends.completed.extend(cleared.into_iter().map(unasked));
        if !early.is_empty() {
            self.early_until = Some(Instant::now() + 2 * EARLY);
            let due = after(Timestamp::now(), EARLY);
            ends.back.entry(due).or_default().extend(early.iter().map(|lease| lease.id));
        }
        ask
    }

    /// Waits until the store has all that it was told.
    async fn told(&mut self) -> Result<(), StoreError> {
        let mut failed = None;
        while let Some(ended) = self.ending.join_next().await {
            failed = failed.or(fault(ended));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Asks about tasks, and more as they are taken, until no more is due or the lane closes.
    async fn ask(&mut self, leases: Vec<Lease>) -> Result<Option<LaneStats>, StoreError> {
        let (arrivals, coming) = mpsc::channel(MOST_LEASES);
        let (out, finished) = mpsc::channel(UNREAD);
        let now = Instant::now();
        let run = Run {
            lanes: vec![self.round.spec.clone()],
            filters: Arc::clone(&self.round.filters),
            work: Work::Arriving(coming),
            local: Arc::new(Local::default()),
            transport: self.round.transport.clone(),
            concurrency: self.round.spec.settings.slots,
            max_time: self.round.end.map(|(end, _)| end.saturating_duration_since(now)),
            clock: RunClock::starting_at(Timestamp::now()),
            stop: self.round.stop.clone(),
            seed: rand::random(),
            board: Board::new(1),
            keep_raw: false,
            memory: Some(self.round.memory.clone()),
            budget: None,
        };
        let asking = work(run, Arc::clone(&self.round.permits), self.tasks.clone(), out);
        let (stats, fed) = tokio::join!(asking, self.feed(leases, arrivals, finished));
        fed?;
        Ok(stats.into_iter().next())
    }

    /// Hands tasks over and ends them.
    async fn feed(
        &mut self,
        leases: Vec<Lease>,
        arrivals: mpsc::Sender<Arrival>,
        mut finished: mpsc::Receiver<Finished>,
    ) -> Result<(), StoreError> {
        let mut ends = Ends::default();
        let mut arrivals = Some(arrivals);
        self.hand_over(leases, &mut arrivals, &mut ends);
        let mut stop = self.round.stop.clone();
        let mut heartbeat = tokio::time::interval(self.round.lease / 3);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut taking = JoinSet::new();
        let mut look_at = Instant::now();
        let mut failed = None;
        loop {
            self.tell(&mut ends);
            let wanted = self.wanted() as usize;
            let is_time = self.held.is_empty()
                || (wanted >= window(&self.round.spec).div_ceil(4) && look_at <= Instant::now());
            if arrivals.is_some() && taking.is_empty() && is_time {
                taking.spawn(self.take());
            }
            tokio::select! {
                biased;
                _ = heartbeat.tick() => self.renew(),
                Some(ended) = self.ending.join_next() => failed = failed.or(fault(ended)),
                Some(taken) = taking.join_next() => match taken {
                    Ok(Ok(taken)) => {
                        let leases = self.sort_out(taken, &mut ends);
                        if leases.is_empty() {
                            look_at = Instant::now() + LOOK_EACH;
                            // The end of the round: whether more will come is seen without a lane that waits.
                            arrivals = arrivals.filter(|_| !self.held.is_empty());
                        }
                        self.hand_over(leases, &mut arrivals, &mut ends);
                    }
                    other => failed = failed.or(fault(other)),
                },
                one = finished.recv() => {
                    let Some(one) = one else { break };
                    let mut next = Some(one);
                    while let Some(one) = next {
                        if self.finish(one, &mut ends) {
                            arrivals = None;
                        }
                        next = finished.try_recv().ok();
                    }
                }
                _ = stop.called(), if arrivals.is_some() => arrivals = None,
                () = tokio::time::sleep_until(look_at), if arrivals.is_some() && look_at > Instant::now() => {}
            }
            if failed.is_some() {
                arrivals = None;
                self.round.memory.failed(failed.clone().unwrap_or(StoreError::Closed));
            }
        }
        // A take that is under way still brings leases: they go back.
        while let Some(taken) = taking.join_next().await {
            match taken {
                Ok(Ok(taken)) => {
                    let leases = self.sort_out(taken, &mut ends);
                    self.hand_over(leases, &mut None, &mut ends);
                }
                other => failed = failed.or(fault(other)),
            }
        }
        self.tell(&mut ends);
        let told = self.told().await;
        failed.map_or(told, Err)
    }

    /// Hands tasks over to the lane; those that it does not take any more go back.
    fn hand_over(
        &mut self,
        leases: Vec<Lease>,
        arrivals: &mut Option<mpsc::Sender<Arrival>>,
        ends: &mut Ends,
    ) {
        if !leases.is_empty() {
            crash::point("worker.taken");
        }
        for lease in leases {
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            self.left -= 1;
            self.tasks.put(number, lease.id);
            // Smaller is sooner in the queue, larger in the lane.
            let weight = u64::from(u8::MAX - lease.task.priority) << 56 | (u64::MAX - lease.task.rank) >> 8;
            let arrival = Arrival { ip: lease.task.ip, id: number, weight, lanes: None };
            let is_sent = arrivals.as_ref().is_some_and(|way| way.try_send(arrival).is_ok());
            if is_sent {
                self.held.insert(number, Held { id: lease.id, failed: lease.attempts });
            } else {
                *arrivals = None;
                self.tasks.forget(number);
                self.tally.back += 1;
                ends.back.entry(Timestamp::now()).or_default().push(lease.id);
            }
        }
    }

    /// Renews what is held.
    fn renew(&mut self) {
        let ids: Vec<TaskId> = self.held.values().map(|held| held.id).collect();
        if ids.is_empty() {
            return;
        }
        let renewed = self.round.memory.store.renew(ids, self.round.lease, Timestamp::now());
        self.ending.spawn(async move {
            let lost = renewed.await?.iter().filter(|held| !**held).count();
            if lost > 0 {
                // Their look-ups go on: what was paid for is kept, and ends no task of another's.
                tracing::debug!("{lost} leases are another's by now");
            }
            Ok(())
        });
    }

    /// Ends a task's turn. Says whether the lane has closed.
    fn finish(&mut self, finished: Finished, ends: &mut Ends) -> bool {
        crash::point("worker.finished");
        let Finished { id: number, parts } = finished;
        self.tasks.forget(number);
        let Some(Held { id, failed }) = self.held.remove(&number) else { return false };
        let role = self.round.spec.definition.role;
        let outcome = parts.into_iter().next().map_or_else(unsent, |part| part.outcome);
        let now = Timestamp::now();
        match end(&outcome, failed, self.is_late(), &mut self.rng) {
            End::Booked => self.tally.answered += 1,
            End::Answered => {
                self.tally.answered += 1;
                self.tally.from_store += 1;
                ends.completed.push(Completed { id, outcome: pack(role, &outcome), settled: None });
            }
            End::Later(at) => {
                self.tally.put_off += 1;
                ends.back.entry(at.unwrap_or_else(|| after(now, A_WHILE))).or_default().push(id);
            }
            End::Back => {
                self.tally.back += 1;
                ends.back.entry(now).or_default().push(id);
            }
            End::Again(wait) => {
                self.tally.again += 1;
                ends.failed.push((id, pack(role, &outcome), Some(after(now, wait))));
            }
            End::Dead => {
                self.tally.dead += 1;
                ends.failed.push((id, pack(role, &outcome), None));
            }
        }
        shows_closing(&outcome)
    }

    /// Tells the store what has ended.
    fn tell(&mut self, ends: &mut Ends) {
        let store = &self.round.memory.store;
        let now = Timestamp::now();
        let Ends { completed, back, failed } = std::mem::take(ends);
        if !completed.is_empty() {
            let reply = store.complete(completed, now, None);
            self.ending.spawn(async move { reply.await.map(drop) });
        }
        for (due, ids) in back {
            let reply = store.defer(ids, due, now);
            self.ending.spawn(async move { reply.await.map(drop) });
        }
        for (id, error, due) in failed {
            let reply = store.fail(id, error, due, now);
            self.ending.spawn(async move { reply.await.map(drop) });
        }
    }
}

/// The outcome of a task that the lane does not take.
fn unsent() -> Outcome {
    let message = "not asked: the address is excluded by now, or of a kind that the provider does not take";
    Outcome::unasked(ErrorBody::new(ErrorType::InvalidRequest, message))
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
}

/// Why a call to the store came to nothing. Calls neither panic nor are aborted.
fn fault<T>(ended: Result<Result<T, StoreError>, tokio::task::JoinError>) -> Option<StoreError> {
    match ended {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error),
        Err(_) => Some(StoreError::Closed),
    }
}
