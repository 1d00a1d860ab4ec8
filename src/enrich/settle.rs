//! What an exchange means for its look-up and for its lane.

use super::batch::{Batch, is_for_halves, whole_failure};
use super::flight::{Brought, Landed};
use super::lane::{Closing, Lane};
use super::limit::allowance::next_reset;
use super::limit::headers::Told;
use super::outcome::{CacheUse, ErrorBody, Outcome};
use super::questions::Place;
use super::redact;
use super::retry::backoff::FAILED;
use crate::provider::{Answer, ErrorType, Failure, Reach, Reading, Window};
use secrecy::ExposeSecret as _;
use std::time::Duration;
use tokio::time::Instant;

/// So many batches in a row that the provider does not take, and its bulk form is given up: an odd address out would have
/// left one half answered long before.
const UNTAKEN_BATCHES: u32 = 8;

/// What a reply says beside its body.
struct Around {
    sent: Instant,
    status: u16,
    told: Vec<Told>,
    retry_after: Option<Duration>,
}

impl Lane {
    /// Takes what an exchange brought: to the lane's limits first, then to the look-ups.
    pub(super) async fn settle(&mut self, mut batch: Batch, landed: Landed) {
        let now = Instant::now();
        self.is_scouting = false;
        match landed.brought {
            Brought::Nothing(lost) => {
                tracing::debug!(provider = %self.stats.provider, "no reply: {}", lost.message);
                if lost.unsent {
                    // Nobody was asked: what was to be spent on it is given back.
                    self.stats.never_left(&batch);
                    batch.left -= 1;
                    self.not_sent(std::slice::from_ref(&batch));
                    self.allowance.give_back(u64::from(self.cost(&batch)));
                } else {
                    batch.places().iter().for_each(|&place| self.book_nothing(place, lost.error));
                }
                let failure = Failure {
                    error: lost.error,
                    reach: Reach::Lookup,
                    message: lost.message,
                    retry: lost.retry,
                };
                self.failed(batch, failure, None, None, now).await;
            }
            Brought::Reply { status, mut readings, told, retry_after, raw, odd } => {
                if let Some(key) = &self.key {
                    for reading in &mut readings {
                        redact::reading(reading, key.expose_secret());
                    }
                }
                tracing::debug!(provider = %self.stats.provider, status, took_ms = millis(landed.took), "reply");
                if let Some(odd) = odd {
                    let body = redact::start(&odd, self.key.as_ref().map_or("", |key| key.expose_secret()));
                    tracing::debug!(provider = %self.stats.provider, ?body, "nothing can be made of the reply");
                }
                *self.stats.http.entry(status).or_default() += 1;
                self.stats.latency.record(landed.took);
                self.heed(&told, now);
                for (&place, reading) in batch.places().iter().zip(&readings) {
                    if let Reading::Failure(failure) = reading {
                        self.book_nothing(place, failure.error);
                    }
                }
                let around = Around { sent: landed.sent, status, told, retry_after };
                match whole_failure(&readings).cloned() {
                    Some(failure) if is_refusal(failure.error) => {
                        self.refused(batch, failure, &around, now).await;
                    }
                    Some(failure) => {
                        self.hold.answered(around.sent);
                        self.failed(batch, failure, Some(status), retry_after, now).await;
                    }
                    None => {
                        self.hold.answered(around.sent);
                        self.breaker.settle(true, now);
                        (self.has_answered, self.failing_since) = (true, None);
                        self.untaken_batches = 0;
                        self.apart(&batch, readings, raw, &around, now).await;
                    }
                }
                self.tell_ledger(&around.told, now);
            }
        }
    }

    /// A reply that holds answers: each address gets its own. Those of a batch that may be asked about again are, together.
    async fn apart(
        &mut self,
        batch: &Batch,
        readings: Vec<Reading>,
        mut raw: Option<Box<[u8]>>,
        around: &Around,
        now: Instant,
    ) {
        let mut again: Option<(Failure, Vec<Place>)> = None;
        let mut refused: Option<(Failure, Vec<Place>)> = None;
        for (&place, reading) in batch.places().iter().zip(readings) {
            match reading {
                Reading::Answer(answer) => {
                    self.answered(place, batch, answer, around.status, raw.take(), now).await;
                }
                Reading::Failure(failure) if is_refusal(failure.error) => {
                    refused.get_or_insert_with(|| (failure, Vec::new())).1.push(place);
                }
                Reading::Failure(failure) if failure.retry => {
                    again.get_or_insert_with(|| (failure, Vec::new())).1.push(place);
                }
                Reading::Failure(failure) => {
                    self.heed_reach(&failure);
                    let error = ErrorBody {
                        http_status: Some(around.status),
                        ..ErrorBody::new(failure.error, failure.message)
                    };
                    self.fail_one(place, batch, error).await;
                }
            }
        }
        if let Some((failure, places)) = again {
            self.again_or_fail(batch.part(places), failure, Some(around.status), around.retry_after, now)
                .await;
        }
        if let Some((failure, places)) = refused {
            self.refused(batch.part(places), failure, around, now).await;
        }
    }

    /// The provider's own word on what is left.
    fn heed(&mut self, told: &[Told], now: Instant) {
        for told in told {
            let in_flight = self.cost_aloft();
            if let Some(pause) = self.allowance.told(told, in_flight, now) {
                self.not_before = Some(self.not_before.map_or(pause, |earlier| earlier.max(pause)));
            }
        }
    }

    /// A failure that is everybody's.
    fn heed_reach(&mut self, failure: &Failure) {
        if failure.reach == Reach::Lane {
            let error = ErrorBody::new(failure.error, format!("not asked: {}", failure.message));
            self.closing.get_or_insert(Closing(error));
        }
    }

    async fn answered(
        &mut self,
        place: Place,
        batch: &Batch,
        answer: Box<Answer>,
        status: u16,
        raw: Option<Box<[u8]>>,
        now: Instant,
    ) {
        self.stats.answered += 1;
        let outcome = Outcome::Answered {
            answer,
            cache: CacheUse::Miss,
            fetched_at: self.shared.clock.wall(now),
            attempts: batch.attempts,
            latency: batch.first.map(|first| now - first).unwrap_or_default(),
            raw: raw.map(|raw| redact::body(raw, self.key.as_ref().map_or("", |key| key.expose_secret()))),
        };
        if let Some(outcome) = self.book_answer(place, status, outcome) {
            self.finish(place, outcome).await;
        }
    }

    /// A refusal is an instruction to the whole lane: wait, or close if that takes too long.
    async fn refused(&mut self, mut batch: Batch, failure: Failure, around: &Around, now: Instant) {
        let Around { sent, status: _, ref told, retry_after } = *around;
        self.breaker.abandon_probe(now);
        let status = Some(429);
        let gone = told.iter().find(|told| told.remaining == 0 && told.is_long());
        // A window that starts anew within a look-up's deadline is worth the wait, whatever its length.
        let is_short = retry_after.is_some_and(|wait| wait <= self.settings.deadline);
        if !is_short && (failure.error == ErrorType::QuotaExhausted || gone.is_some()) {
            let window = gone.and_then(|told| told.window).or(self.longest_window()).unwrap_or(Window::Day);
            let reset = retry_after.filter(|wait| !wait.is_zero()).or(gone.and_then(|told| told.reset));
            let wall = self.shared.clock.wall(now);
            let at =
                reset.map_or_else(|| next_reset(window, wall), |reset| self.shared.clock.wall(now + reset));
            let error = ErrorBody {
                http_status: status,
                ..ErrorBody::new(ErrorType::QuotaExhausted, failure.message)
            };
            let error = self.until(error, at);
            self.hold_all(at, Some(window));
            let others = format!(
                "not asked: {} says that the {}'s quota is used up",
                self.stats.provider,
                window.word()
            );
            self.closing.get_or_insert(Closing(ErrorBody {
                http_status: None,
                message: others.into(),
                ..error.clone()
            }));
            return self.fail(&batch, error).await;
        }
        let asked = retry_after
            .or_else(|| told.iter().filter(|told| told.remaining == 0).find_map(|told| told.reset));
        let until = self.hold.refuse(now, sent, asked, &mut self.rng);
        let wait = until - now;
        self.hold_all(self.shared.clock.wall(until), None);
        tracing::info!(provider = %self.stats.provider, wait_s = wait.as_secs_f64(), "429: the lane holds off");
        let end = self.shared.run_end;
        let too_long = wait > self.settings.deadline
            || end.is_some_and(|end| until >= end)
            || self.hold.refusing_for(now) + wait > self.settings.deadline;
        let lookup_end = batch.first.unwrap_or(now) + self.settings.deadline;
        if !too_long && until < lookup_end {
            let error =
                ErrorBody { http_status: status, ..ErrorBody::new(ErrorType::RateLimited, failure.message) };
            batch.last = Some(self.until(error, self.shared.clock.wall(until)));
            return self.intake.again(batch, until);
        }
        let seconds = wait.as_secs_f64().ceil();
        let what = if asked.is_some() { "the wait asked for" } else { "the wait" };
        let than = if too_long {
            "than the run or the look-up may take"
        } else {
            "than what is left of the look-up's deadline"
        };
        let error = ErrorBody {
            http_status: status,
            ..ErrorBody::new(
                ErrorType::RateLimited,
                format!("429, and {what} ({seconds} s) is longer {than}"),
            )
        };
        let error = self.until(error, self.shared.clock.wall(until));
        if too_long {
            let rest = format!("not asked: {} refuses for {seconds} s more", self.stats.provider);
            self.closing.get_or_insert(Closing(ErrorBody {
                http_status: None,
                message: rest.into(),
                ..error.clone()
            }));
        }
        self.fail(&batch, error).await;
    }

    /// A failure that is no refusal: tried again where that is sound, else told.
    async fn failed(
        &mut self,
        batch: Batch,
        failure: Failure,
        http_status: Option<u16>,
        retry_after: Option<Duration>,
        now: Instant,
    ) {
        let trouble = shows_trouble(failure.error);
        if trouble {
            self.failing_since.get_or_insert(now);
        } else {
            (self.has_answered, self.failing_since) = (true, None);
        }
        if self.breaker.settle(!trouble, now) {
            self.breaker_opened(&failure, now);
        }
        self.heed_reach(&failure);
        if let Some(asked) =
            retry_after.filter(|_| http_status == Some(503) && failure.reach == Reach::Lookup)
        {
            // "Temporarily less capacity" with a time: as binding as a 429's.
            self.hold.pause(now + asked.min(self.settings.deadline));
        }
        if batch.is_bulk() && self.closing.is_none() && is_for_halves(&failure) {
            tracing::debug!(provider = %self.stats.provider, addresses = batch.len(), "batch split after {}", failure.message);
            self.untaken_batches += 1;
            if self.untaken_batches == UNTAKEN_BATCHES {
                tracing::info!(provider = %self.stats.provider, "its bulk form takes nothing: asking one by one");
                self.intake.single_out();
            }
            return self.intake.halves(batch, now);
        }
        self.again_or_fail(batch, failure, http_status, retry_after, now).await;
    }

    /// Once more after a wait, if retries, their budget and the deadline allow it; else one error for each address.
    async fn again_or_fail(
        &mut self,
        mut batch: Batch,
        failure: Failure,
        http_status: Option<u16>,
        retry_after: Option<Duration>,
        now: Instant,
    ) {
        let goes_on = failure.retry && self.closing.is_none() && batch.retries < self.settings.retries;
        let wait = FAILED.full(batch.retries + 1, &mut self.rng).max(retry_after.unwrap_or_default());
        let due = now + wait;
        let end = [batch.first.map(|first| first + self.settings.deadline), self.shared.run_end];
        let in_time = end.into_iter().flatten().all(|end| due < end);
        if goes_on && in_time && self.retry_budget.withdraw() {
            tracing::debug!(provider = %self.stats.provider, wait_s = wait.as_secs_f64(), "retry after {}", failure.message);
            batch.retries += 1;
            batch.last =
                Some(ErrorBody { http_status, ..ErrorBody::new(failure.error, failure.message.clone()) });
            // Half as many may be answered in time.
            if failure.error == ErrorType::Timeout {
                return self.intake.halves(batch, due);
            }
            return self.intake.again(batch, due);
        }
        let message = match batch.attempts {
            0 | 1 => failure.message,
            // The last attempt may have had less time than the others.
            n if failure.error == ErrorType::Timeout => format!("no answer in {n} attempts"),
            n => format!("{}, {n} times", failure.message),
        };
        let error = ErrorBody { http_status, ..ErrorBody::new(failure.error, message) };
        self.fail(&batch, error).await;
    }

    /// The breaker opened: the lane waits for its probe. It is given up where that would come after the run's end, where
    /// the first probe of a provider that never answered failed, and where none has been answered for as long as one
    /// look-up may take: waiting on would be a hang.
    fn breaker_opened(&mut self, last: &Failure, now: Instant) {
        let (failed, of) = self.breaker.tally();
        let open_for = self.settings.breaker.open_for;
        let reopens = now + open_for;
        tracing::warn!(provider = %self.stats.provider, "breaker open: {failed} of the last {of} requests failed");
        let failing_for = self.failing_since.map_or(Duration::ZERO, |since| now - since);
        let ends_first = self.shared.run_end.is_some_and(|end| reopens >= end);
        let is_dead = !self.has_answered && self.breaker.is_reopened();
        if !ends_first && !is_dead && failing_for + open_for <= self.settings.deadline {
            return;
        }
        let provider = &self.stats.provider;
        // Where there never was a connection, that is what there is to tell.
        let error = if !self.has_answered && last.error == ErrorType::Connection {
            ErrorBody::new(last.error, format!("not asked: {provider} {}", last.message))
        } else {
            let message = format!("not asked: {failed} of the last {of} requests to {provider} failed");
            ErrorBody::new(ErrorType::CircuitOpen, message)
        };
        let error = self.until(error, self.shared.clock.wall(reopens));
        self.closing.get_or_insert(Closing(error));
    }

    fn longest_window(&self) -> Option<Window> {
        self.settings.quotas.iter().map(|quota| quota.window).max()
    }
}

/// Whether the provider says "not so fast" or "no more", in whatever way.
fn is_refusal(error: ErrorType) -> bool {
    matches!(error, ErrorType::RateLimited | ErrorType::QuotaExhausted)
}

/// Whether the error shows a provider (or a path to it) that does not work, rather than one that says no.
fn shows_trouble(error: ErrorType) -> bool {
    matches!(
        error,
        ErrorType::ServerError
            | ErrorType::Timeout
            | ErrorType::Connection
            | ErrorType::Tls
            | ErrorType::InvalidResponse
            | ErrorType::ResponseTooLarge
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
