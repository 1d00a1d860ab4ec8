//! What came of an attempt, made durable before anybody hears of it; and what the provider said of its quotas.

use super::super::lane::Lane;
use super::super::limit::headers::Told;
use super::super::outcome::Outcome;
use super::super::questions::Place;
use super::{Came, LaneMemory};
use crate::provider::{ErrorType, Role, Window};
use crate::store::crash;
use crate::store::{Completed, End, Reply, Settled, StoreError, Stored, TellingOf};
use std::mem::take;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often the provider's own count is handed to the ledger while plenty is left.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// With fewer look-ups left than this the ledger hears of every count.
const FEW_LEFT: u64 = 100;

impl Lane {
    /// Notes that an attempt brought no answer for this address.
    pub(in crate::enrich) fn book_nothing(&mut self, place: Place, error: ErrorType) {
        let Some(ip) = self.shared.questions.ip(place) else { return };
        if let Some(memory) = &mut self.memory {
            memory.booking.push(Settled { ip, end: End::Nothing(error) });
        }
    }

    /// Holds an answer until it is durable. Gives it back where there is no store.
    pub(in crate::enrich) fn book_answer(
        &mut self,
        place: Place,
        status: u16,
        outcome: Outcome,
    ) -> Option<Outcome> {
        let keeps_raw = self.keeps_raw();
        let questions = &self.shared.questions;
        let role = questions.definitions.get(self.number).map(|definition| definition.role);
        let arrival = questions.id(place);
        let (Some(ip), Some(memory)) = (self.shared.questions.ip(place), &mut self.memory) else {
            return Some(outcome);
        };
        let Outcome::Answered { answer, fetched_at, raw, .. } = &outcome else { return Some(outcome) };
        let Ok(json) = serde_json::to_vec(answer) else { return Some(outcome) };
        let stored = Stored {
            ip,
            found: answer.found,
            answer: json,
            version: memory.keeping.version,
            status,
            body: raw.as_deref().map(<[u8]>::to_vec),
            fetched_at: *fetched_at,
            keep_until: memory.keep_until(answer.found, *fetched_at),
        };
        let settled = Settled { ip, end: End::Answered(stored) };
        let task = memory
            .tasks
            .as_ref()
            .and_then(|tasks| tasks.completed(arrival?, role.unwrap_or(Role::Reputation), &outcome));
        match task {
            Some(task) => {
                let settled = Some((memory.keeping.account.clone(), settled));
                memory.completing.push(Completed { settled, ..task });
            }
            None => memory.booking.push(settled),
        }
        memory.outcomes.push((place, if keeps_raw { outcome } else { outcome.without_raw() }));
        memory.unkept += 1;
        None
    }

    /// Hands over what was booked since the last time: once a turn of the lane, so that what landed together is kept
    /// together. What ends a task goes with its end in one transaction, whether
    /// somebody else has it by now or not: what was paid for is kept.
    pub(in crate::enrich) fn book(&mut self) {
        let now = self.shared.clock.wall_now();
        let Some(memory) = &mut self.memory else { return };
        let (settled, completed) = (take(&mut memory.booking), take(&mut memory.completing));
        if settled.is_empty() && completed.is_empty() {
            return;
        }
        crash::point("lane.answered");
        let outcomes = take(&mut memory.outcomes);
        let store = &memory.memory.store;
        let (early, safe) = oneshot::channel();
        // The later of the two tells: calls are carried out in their order.
        let (of_tasks, of_others) =
            if settled.is_empty() { (Some(early), None) } else { (None, Some(early)) };
        let completing = (!completed.is_empty()).then(|| store.complete(completed, now, of_tasks));
        let settling =
            (!settled.is_empty()).then(|| store.settle(&memory.keeping.account, settled, of_others));
        let mut booked: Reply<()> = Box::pin(async move {
            let (completed, settled) = tokio::join!(ended(completing), ended(settling));
            completed.and(settled)
        });
        memory.call(async move {
            tokio::select! {
                biased;
                result = &mut booked => Came::Booked { outcomes, booked: result, was_safe: false },
                Ok(()) = safe => Came::Safe { outcomes, booked },
            }
        });
    }

    /// Hands the provider's own count of its long windows to the ledger.
    pub(in crate::enrich) fn tell_ledger(&mut self, told: &[Told], now: Instant) {
        let Some(memory) = &mut self.memory else { return };
        let is_time = memory.told_at.is_none_or(|at| at + TELL_EVERY <= now);
        let is_due = |told: &&Told| told.is_long() && (is_time || told.remaining <= FEW_LEFT);
        if !told.iter().any(|told| is_due(&told)) {
            return;
        }
        memory.told_at = Some(now);
        // What the same reply answered is no longer in flight.
        self.book();
        let clock = &self.shared.clock;
        let Some(memory) = &mut self.memory else { return };
        for told in told.iter().filter(is_due) {
            let telling = TellingOf {
                window: told.window.unwrap_or(Window::Day),
                remaining: told.remaining,
                limit: told.limit,
                reset: told.reset.map(|reset| clock.wall(now + reset)),
            };
            let reply = memory.memory.store.told(&memory.keeping.account, telling, clock.wall(now));
            memory.call(async move { Came::Noted(reply.await) });
        }
    }

    /// Lets every process know until when the provider is not to be asked.
    pub(in crate::enrich) fn hold_all(&mut self, until: jiff::Timestamp, used_up: Option<Window>) {
        let now = self.shared.clock.wall_now();
        if let Some(memory) = &mut self.memory {
            let reply = memory.memory.store.hold(&memory.keeping.account, until, used_up, now);
            memory.call(async move { Came::Noted(reply.await) });
        }
    }

    /// Takes what has come of the calls so far, without waiting.
    pub(in crate::enrich) async fn take_what_came(&mut self) {
        while let Some(Some(came)) = self.memory.as_mut().map(|memory| memory.calls.try_join_next()) {
            if let Ok(came) = came {
                self.came(came).await;
            }
        }
    }

    /// Waits for the calls to end.
    pub(in crate::enrich) async fn end_calls(&mut self) {
        while self.memory.as_ref().is_some_and(|memory| !memory.calls.is_empty()) {
            let came = next_call(&mut self.memory).await;
            self.came(came).await;
        }
    }

    pub(in crate::enrich) async fn came(&mut self, came: Came) {
        match came {
            Came::Read { places, again, stored } => {
                self.read_in(places.len());
                match stored {
                    Ok(stored) => self.recalled(places, again, stored).await,
                    Err(error) => self.unread(places, error),
                }
            }
            Came::Bodies { places, stored } => {
                self.read_in(places.len());
                match stored {
                    Ok(stored) => self.recalled_bodies(places, stored).await,
                    Err(error) => self.unread(places, error),
                }
            }
            Came::Admitted { batches, admitted } => {
                if let Some(memory) = &mut self.memory {
                    memory.admitting = memory.admitting.saturating_sub(batches.len());
                }
                match admitted {
                    Ok(admitted) => self.admitted(batches, admitted),
                    Err(error) => {
                        self.store_failed(error);
                        let now = Instant::now();
                        for batch in batches {
                            self.intake.again(batch, now);
                        }
                    }
                }
            }
            Came::Safe { outcomes, booked } => self.safe(outcomes, booked),
            Came::Booked { outcomes, booked, was_safe } => {
                if let Some(memory) = &mut self.memory {
                    let waiting = if was_safe { &mut memory.undurable } else { &mut memory.unkept };
                    *waiting = waiting.saturating_sub(outcomes.len());
                }
                self.booked(outcomes, booked).await;
            }
            Came::Noted(Ok(())) => {}
            Came::Noted(Err(error)) => self.store_failed(error),
        }
    }

    fn read_in(&mut self, n: usize) {
        self.intake.back(n);
        if let Some(memory) = &mut self.memory {
            memory.reading = memory.reading.saturating_sub(n);
        }
    }

    /// Places that could not be read: the run ends, and they with it.
    fn unread(&mut self, places: Vec<Place>, error: StoreError) {
        self.store_failed(error);
        for place in places {
            self.intake.check_in(place);
        }
    }

    /// Answers outlast this process: others may be asked for. They are told once they outlast a power cut too.
    fn safe(&mut self, outcomes: Vec<(Place, Outcome)>, booked: Reply<()>) {
        if let Some(memory) = &mut self.memory {
            memory.unkept = memory.unkept.saturating_sub(outcomes.len());
            memory.undurable += outcomes.len();
            memory.call(async move { Came::Booked { outcomes, booked: booked.await, was_safe: true } });
        }
    }

    /// Answers are durable, or never will be: they were paid for, and are told in either case.
    async fn booked(&mut self, outcomes: Vec<(Place, Outcome)>, booked: Result<(), StoreError>) {
        if let Err(error) = booked {
            self.store_failed(error);
        }
        if let Some(memory) = &mut self.memory {
            for (place, _) in &outcomes {
                memory.known.remove(place);
            }
        }
        for (place, outcome) in outcomes {
            self.finish(place, outcome).await;
        }
    }

    fn store_failed(&self, error: StoreError) {
        if let Some(memory) = &self.memory {
            memory.memory.failed(error);
        }
    }
}

/// The end of a call, if there is one.
async fn ended<T>(call: Option<Reply<T>>) -> Result<(), StoreError> {
    match call {
        Some(reply) => reply.await.map(drop),
        None => Ok(()),
    }
}

/// Ends when a call of the lane's has ended; never, where there is no store or no call.
pub(in crate::enrich) async fn next_call(memory: &mut Option<LaneMemory>) -> Came {
    match memory {
        Some(memory) => memory.next().await,
        None => std::future::pending().await,
    }
}
