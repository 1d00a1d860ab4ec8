//! How a lane ends before its work is done: why, and what becomes of what is left in it.

use super::assemble::Event;
use super::batch::Batch;
use super::lane::{Closing, Lane, Step, at};
use super::limit::allowance::{Spent, next_reset};
use super::memory::LaneMemory;
use super::outcome::{ErrorBody, Outcome};
use super::questions::Place;
use super::stop::Stop;
use crate::provider::ErrorType;
use std::time::Duration;
use tokio::time::Instant;

/// How long what is in flight may still take after a stop (DESIGN.md §3, Signals).
const GRACE: Duration = Duration::from_secs(5);

impl Lane {
    pub(super) fn reason_to_close(&mut self, now: Instant) -> Option<Closing> {
        let by_ledger = |memory: &mut LaneMemory| memory.closing();
        if let Some(closing) = self.closing.take().or_else(|| self.memory.as_mut().and_then(by_ledger)) {
            return Some(closing);
        }
        let word = match self.shared.stop.get() {
            Stop::No => None,
            Stop::StoreFailed => Some("not asked: the store failed, and the answer could not have been kept"),
            _ => Some("the run was stopped before this look-up's turn"),
        };
        if let Some(word) = word {
            return Some(Closing(ErrorBody::new(ErrorType::Cancelled, word)));
        }
        let end = self.shared.run_end?;
        // A turn that would come only after the end is no turn: what is left is told so now.
        let resumes = self.hold.until(now).max(self.not_before).unwrap_or(now);
        (end <= resumes.max(now) && (end <= now || self.flights.is_empty())).then(|| {
            let limit = super::transport::seconds(self.shared.run_limit);
            Closing(ErrorBody::new(
                ErrorType::Deadline,
                format!("the run's {limit} were over before this look-up's turn"),
            ))
        })
    }

    /// Closes the lane, unless the window starts anew within a look-up's deadline.
    pub(super) fn used_up(&mut self, spent: Spent, now: Instant) -> Step {
        let waits = |at: &Instant| {
            *at <= now + self.settings.deadline && self.shared.run_end.is_none_or(|end| *at < end)
        };
        if let Some(at) = spent.reset.filter(waits) {
            self.allowance.begin_anew();
            self.not_before = Some(at);
            return Step::Wait(Some(at));
        }
        let window = spent.window.word();
        let at = spent.reset.map_or_else(
            || next_reset(spent.window, self.shared.clock.wall(now)),
            |at| self.shared.clock.wall(at),
        );
        let error =
            ErrorBody::new(ErrorType::QuotaExhausted, format!("not asked: the {window}'s quota is used up"));
        Step::Close(Closing(self.until(error, at)))
    }

    /// The error with its `retry_at`.
    pub(super) fn until(&self, error: ErrorBody, at: jiff::Timestamp) -> ErrorBody {
        let wait = Duration::try_from(at.duration_since(self.shared.clock.wall_now())).unwrap_or_default();
        error.retry(at, wait)
    }

    /// Sends nothing more: what the cache answers is still answered, all else fails with this word.
    pub(super) async fn shut(&mut self, error: ErrorBody) {
        self.stats.closed = Some(error.error);
        self.stats.retry_at = error.retry_at;
        self.show_end();
        tracing::info!(provider = %self.stats.provider, reason = error.error.as_str(), "lane shut: {}", error.message);
        self.shut = Some(error.clone());
        self.fail_waiting(&error).await;
    }

    /// Fails what is left, at once; what is in flight may still answer.
    pub(super) async fn close(&mut self, closing: Closing) {
        let Closing(error) = closing;
        self.stats.closed = Some(error.error);
        self.stats.retry_at = error.retry_at;
        self.show_end();
        tracing::info!(provider = %self.stats.provider, reason = error.error.as_str(), "lane closed: {}", error.message);
        self.shut = None;
        self.fail_waiting(&error).await;
        let from = self.intake.untaken();
        self.tell(Event::Closed { lane: self.number, from, error: error.clone() }).await;
        self.shut = Some(error.clone());
        self.drain(&error).await;
        self.end_calls().await;
        self.fail_waiting(&error).await;
        self.end_calls().await;
        self.shut = None;
    }

    /// Settles what is in flight; after a stop for [`GRACE`] at the most.
    async fn drain(&mut self, error: &ErrorBody) {
        let mut give_up = None;
        while !self.flights.is_empty() {
            let mut stop = self.shared.stop.clone();
            if stop.get() != Stop::No {
                give_up = give_up.or(Some(Instant::now() + GRACE));
            }
            tokio::select! {
                biased;
                Some(landed) = self.flights.join_next_with_id() => self.settle_landed(landed).await,
                _ = stop.called(), if give_up.is_none() => {}
                () = at(give_up) => self.flights.abort_all(),
            }
            self.book();
            // Nothing is tried again in a lane that is closed.
            self.fail_waiting(error).await;
        }
    }

    /// Fails what waits for another attempt. What was asked is told for what it met, unless we ended it ourselves.
    pub(super) async fn fail_waiting(&mut self, error: &ErrorBody) {
        let is_ours = matches!(error.error, ErrorType::Cancelled | ErrorType::Deadline);
        let unsent = self.take_back_admitted();
        for mut batch in self.intake.drain().into_iter().chain(unsent) {
            let met = batch.last.take().filter(|_| !is_ours);
            self.fail(&batch, met.unwrap_or_else(|| error.clone())).await;
        }
    }

    /// The same error for each address of the batch.
    pub(super) async fn fail(&mut self, batch: &Batch, error: ErrorBody) {
        for &place in batch.places() {
            self.fail_one(place, batch, error.clone()).await;
        }
    }

    pub(super) async fn fail_one(&mut self, place: Place, batch: &Batch, error: ErrorBody) {
        *self.stats.errors.entry(error.error).or_default() += 1;
        let latency = batch.first.map(|first| first.elapsed()).unwrap_or_default();
        let outcome = self.stale(place, &error, batch.attempts);
        let failed = Outcome::Failed { error, attempts: batch.attempts, latency };
        self.finish(place, outcome.unwrap_or(failed)).await;
    }
}

/// Whether a lane that closes for this still answers from the cache: not where the run itself ends.
pub(super) const fn leaves_the_cache(error: ErrorType) -> bool {
    !matches!(error, ErrorType::Cancelled | ErrorType::Deadline | ErrorType::Internal)
}
