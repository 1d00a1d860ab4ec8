//! What leaves: the permit and the token it takes, and the time it has.

use super::batch::Batch;
use super::flight::{Asked, fly};
use super::lane::{Lane, PER_ADDRESS, at};
use super::outcome::ErrorBody;
use crate::provider::ErrorType;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

impl Lane {
    /// Takes the permit and a token, and sends; or puts the batch back.
    pub(super) async fn launch(&mut self, mut batch: Batch) {
        let Some(permit) = self.permit().await else { return self.put_back(batch) };
        if let Err(due) = self.pace.take(self.cost(&batch)) {
            self.not_before = Some(due);
            drop(permit);
            return self.put_back(batch);
        }
        let now = Instant::now();
        let Some(limit) = self.time_left(&batch, now) else {
            drop(permit);
            self.not_sent(std::slice::from_ref(&batch));
            let error = ErrorBody::new(
                ErrorType::Deadline,
                "the look-up's time was over before it could be tried again",
            );
            return self.fail(&batch, error).await;
        };
        let questions = &self.shared.questions;
        let Some(definition) = questions.definitions.get(self.number) else { return };
        let asked = Asked::about(questions.ips(batch.places()));
        let prepared = match questions.transport.prepare(asked.ips(), definition, self.key.as_ref()) {
            Ok(prepared) => prepared,
            Err(lost) => {
                drop(permit);
                self.not_sent(std::slice::from_ref(&batch));
                return self.fail(&batch, ErrorBody::new(lost.error, lost.message)).await;
            }
        };
        batch.attempts += 1;
        batch.left += 1;
        if batch.attempts == 1 {
            batch.first = Some(now);
            self.retry_budget.deposit();
        }
        self.stats.leaves(&batch);
        self.allowance.sent(u64::from(self.cost(&batch)));
        self.budget.sent(u64::from(self.cost(&batch)));
        self.breaker.sent();
        let wall = self.shared.clock.wall(now);
        let flight = self.flights.spawn(fly(Arc::clone(&self.flying), asked, prepared, limit, wall, permit));
        self.aloft.insert(flight.id(), batch);
    }

    /// The run's permit; none if something else came first.
    async fn permit(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.shared.permits).try_acquire_owned() {
            return Some(permit);
        }
        let permits = Arc::clone(&self.shared.permits);
        let end = self.shared.run_end;
        tokio::select! {
            biased;
            permit = permits.acquire_owned() => permit.ok(),
            Some(landed) = self.flights.join_next_with_id() => {
                self.settle_landed(landed).await;
                None
            }
            _ = self.shared.stop.called() => None,
            () = at(end) => None,
        }
    }

    /// The attempt's own limit, cut to what the look-up and the run have left.
    fn time_left(&self, batch: &Batch, now: Instant) -> Option<Duration> {
        let more =
            PER_ADDRESS.saturating_mul(u32::try_from(batch.len().saturating_sub(1)).unwrap_or(u32::MAX));
        let whole = self.settings.timeout.saturating_add(more);
        let batch_end = batch.first.map(|first| first + self.settings.deadline);
        let end = [batch_end, self.shared.run_end].into_iter().flatten().min();
        let left = end.map_or(self.settings.deadline, |end| end.saturating_duration_since(now));
        (!left.is_zero()).then(|| left.min(whole))
    }

    /// Back to where it is taken from next.
    fn put_back(&mut self, batch: Batch) {
        match &mut self.memory {
            None => self.intake.again(batch, Instant::now()),
            Some(memory) => memory.put_back(batch),
        }
    }
}
