//! The ledger's word before anything leaves: counted against the quotas that all processes share, claimed, written down.

use super::super::batch::Batch;
use super::super::lane::{Closing, Lane};
use super::super::outcome::ErrorBody;
use super::super::questions::Place;
use super::{Came, LaneMemory};
use crate::provider::ErrorType;
use crate::store::{Admission, Admitted, Blocked, End, Look, Settled, Why};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most requests whose admission is asked for at once: they share one commit, and unused tokens lie idle.
const MOST_AT_ONCE: usize = 64;

/// How many times as many are, at the most, where the provider answers faster than the disk.
const MOST_TIMES: usize = 8;

/// How often to see after a look-up that another process has in flight.
const SEE_AFTER: Duration = Duration::from_millis(200);

/// How many requests are to be admitted before they can leave.
#[derive(Debug)]
pub(super) struct Supply {
    /// How many times the usual number.
    times: usize,
    /// Anything was ever sent: before, the lane waits for the ledger in any case.
    has_sent: bool,
    /// The lane could have sent, had the ledger answered.
    stood_still: bool,
}

impl Supply {
    pub(super) const fn new() -> Self {
        Self { times: 1, has_sent: false, stood_still: false }
    }

    fn enough(&self, slots: usize, is_paced: bool) -> usize {
        if is_paced { 1 } else { slots.clamp(1, MOST_AT_ONCE) * self.times }
    }

    /// The lane took a request, or found none while some were being decided on.
    fn taken(&mut self, is_some: bool, is_deciding: bool) {
        self.has_sent |= is_some;
        self.stood_still |= !is_some && is_deciding && self.has_sent;
    }

    /// The ledger has answered: more is asked for from now on, if the lane stood still for it.
    fn arrived(&mut self) {
        if std::mem::take(&mut self.stood_still) {
            self.times = (self.times * 2).min(MOST_TIMES);
        }
    }
}

impl LaneMemory {
    /// How many requests to have admitted, so that the lane never waits for the ledger: none while enough are, and one
    /// by one where the provider's pace leaves time.
    fn wants(&self, slots: usize, is_paced: bool) -> usize {
        let enough = self.supply.enough(slots, is_paced);
        if self.closing.is_some() || self.admitting > 0 || self.admitted.len() * 2 >= enough.max(2) {
            return 0;
        }
        if is_paced && !self.admitted.is_empty() { 0 } else { enough }
    }

    /// Takes a batch of another process's whose time to see after it has come.
    fn seen_after(&mut self, now: Instant) -> Option<Batch> {
        let at = self.elsewhere.iter().position(|(due, _)| *due <= now)?;
        Some(self.elsewhere.swap_remove(at).1)
    }
}

impl Lane {
    /// Whether nothing can be asked for until the ledger, or another process, has answered.
    pub(in crate::enrich) fn waits_for_the_ledger(&self) -> bool {
        let slots = self.settings.slots.max(1);
        self.memory.as_ref().is_some_and(|memory| memory.admitting > 0 || memory.elsewhere.len() >= slots)
    }

    /// The next admitted request; asks for the admission of more.
    pub(in crate::enrich) fn next_admitted(&mut self, now: Instant, room: usize) -> Option<Batch> {
        let slots = self.settings.slots.max(1);
        let memory = self.memory.as_ref()?;
        let wants = memory.wants(slots, self.is_paced());
        // While others have as many in flight, no more are begun; but those are seen after.
        let begins = memory.elsewhere.len() < slots;
        let mut batches = Vec::new();
        let mut room = room;
        while batches.len() < wants && room > 0 {
            let seen = self.memory.as_mut().and_then(|memory| memory.seen_after(now));
            let next = || if begins { self.intake.next(now, room) } else { None };
            let Some(batch) = seen.or_else(next) else { break };
            // One request of many addresses that counts as one is admitted by itself.
            let is_alone = batch.len() > 1 && !self.counts_each;
            if is_alone && !batches.is_empty() {
                self.intake.again(batch, now);
                break;
            }
            room = room.saturating_sub(if self.counts_each { batch.len() } else { 0 });
            batches.push(batch);
            if is_alone {
                break;
            }
        }
        if !batches.is_empty() {
            self.ask_to_leave(batches, now);
        }
        let memory = self.memory.as_mut()?;
        let next = memory.admitted.pop_front();
        memory.supply.taken(next.is_some(), memory.admitting > 0);
        next
    }

    fn ask_to_leave(&mut self, batches: Vec<Batch>, now: Instant) {
        let wall = self.shared.clock.wall(now);
        let Some(memory) = &mut self.memory else { return };
        let look = |place: &Place| {
            let ip = self.shared.questions.ip(*place)?;
            Some(Look { ip, known: memory.known.get(place).map(|stored| stored.fetched_at) })
        };
        let looks: Vec<Look> = batches.iter().flat_map(Batch::places).filter_map(look).collect();
        let each = self.counts_each || batches.iter().all(|batch| batch.len() == 1);
        memory.admitting += batches.len();
        let reply = memory.memory.store.admit(Arc::clone(&memory.ask), looks, each, wall);
        memory.call(async move { Came::Admitted { batches, admitted: reply.await } });
    }

    /// Takes the ledger's word.
    pub(super) fn admitted(&mut self, batches: Vec<Batch>, admitted: Admitted) {
        let now = Instant::now();
        if let Some(memory) = &mut self.memory {
            memory.supply.arrived();
        }
        let mut verdicts = admitted.verdicts.into_iter();
        let mut answered = Vec::new();
        for batch in batches {
            let mut go = Vec::new();
            let mut blocked = Vec::new();
            let mut elsewhere = Vec::new();
            for &place in batch.places() {
                match verdicts.next().unwrap_or(Admission::Blocked) {
                    Admission::Go => go.push(place),
                    Admission::Blocked => blocked.push(place),
                    Admission::Elsewhere(_) => elsewhere.push(place),
                    Admission::Answered => answered.push(place),
                }
            }
            let Some(memory) = &mut self.memory else { return };
            if !elsewhere.is_empty() {
                memory.elsewhere.push((now + SEE_AFTER, batch.part(elsewhere)));
            }
            if !go.is_empty() {
                memory.admitted.push_back(batch.part(go));
            }
            if !blocked.is_empty() {
                self.intake.again(batch.part(blocked), now);
            }
        }
        if !answered.is_empty() {
            self.read_again(answered);
        }
        if let Some(blocked) = admitted.blocked {
            self.blocked(blocked, now);
        }
    }

    /// The ledger lets no more through: wait for it where that is short, else close.
    fn blocked(&mut self, blocked: Blocked, now: Instant) {
        let Blocked { window, until, why, left } = blocked;
        let at = self.shared.clock.instant(until);
        let is_long = window.is_some_and(|window| !window.is_paced());
        let in_time = self.shared.run_end.is_none_or(|end| at < end);
        if in_time
            && (!is_long || at <= now + self.settings.deadline)
            && at <= now + self.longest_wait(is_long)
        {
            // A little later, so that the ledger's clock has surely come to it.
            let at = at.max(now + Duration::from_millis(1));
            self.not_before = Some(self.not_before.map_or(at, |earlier| earlier.max(at)));
            return;
        }
        let provider = &self.stats.provider;
        let word = window.map_or("", |window| window.word());
        let (error, message) = match why {
            Why::Reserve => (
                ErrorType::BudgetExhausted,
                format!("not asked: what is left of the {word}'s quota ({left}) is kept for people"),
            ),
            Why::Quota => (ErrorType::QuotaExhausted, format!("not asked: the {word}'s quota is used up")),
            Why::Told => (
                ErrorType::QuotaExhausted,
                format!("not asked: {provider} says that the {word}'s quota is used up"),
            ),
            Why::HeldOff => {
                (ErrorType::RateLimited, format!("not asked: {provider} asked to be left alone until then"))
            }
        };
        let error = self.until(ErrorBody::new(error, message), until);
        if let Some(memory) = &mut self.memory {
            memory.closing.get_or_insert(Closing(error));
        }
    }

    /// Our own pace is waited for however slow it is; another's word as long as a look-up may take.
    fn longest_wait(&self, is_long: bool) -> Duration {
        let slowest = self.settings.rates.iter().map(|rate| rate.window.length()).max().unwrap_or_default();
        if is_long { self.settings.deadline } else { self.settings.deadline.max(slowest) }
    }

    /// Gives back what was admitted and will not leave, and what waits for another process.
    pub(in crate::enrich) fn take_back_admitted(&mut self) -> Vec<Batch> {
        let Some(memory) = &mut self.memory else { return Vec::new() };
        let unsent: Vec<Batch> = memory.admitted.drain(..).collect();
        let elsewhere: Vec<Batch> = memory.elsewhere.drain(..).map(|(_, batch)| batch).collect();
        self.not_sent(&unsent);
        unsent.into_iter().chain(elsewhere).collect()
    }

    /// Tells the ledger that these did not leave after all.
    pub(in crate::enrich) fn not_sent(&mut self, batches: &[Batch]) {
        let questions = &self.shared.questions;
        let ips = batches.iter().flat_map(Batch::places).filter_map(|&place| questions.ip(place));
        let settled: Vec<Settled> = ips.map(|ip| Settled { ip, end: End::NotSent }).collect();
        if let Some(memory) = self.memory.as_mut().filter(|_| !settled.is_empty()) {
            let reply = memory.memory.store.settle(&memory.keeping.account, settled, None);
            memory.call(async move { Came::Noted(reply.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_admitted_ahead_once_the_lane_has_stood_still() {
        let mut supply = Supply::new();
        // The first requests are waited for by every lane.
        supply.taken(false, true);
        supply.arrived();
        assert_eq!(supply.enough(32, false), 32);
        // One that always finds some does not need more.
        supply.taken(true, true);
        supply.arrived();
        assert_eq!(supply.enough(32, false), 32);
        // However often it looks in vain meanwhile, it is one wait.
        for twice in [64, 128, 256, 256] {
            supply.taken(false, true);
            supply.taken(false, true);
            supply.arrived();
            assert_eq!(supply.enough(32, false), twice);
        }
        assert_eq!((supply.enough(500, false), supply.enough(500, true)), (512, 1));
    }
}
