//! `enrich --defer`: what could not be asked goes into the queue instead of being given up.
//!
//! Stands between the lanes and the writer: a task is durable before the record that speaks of it is written. Answers of
//! the same address become tasks too, which the store answers at once: so the record that comes out of the queue is whole.

use super::args::PRIORITY;
use super::queue::{context, place};
use crate::enrich::outcome::{CacheUse, ErrorBody, Outcome, Part};
use crate::enrich::{Finished, LaneSpec, Memory, Stop, StopSignal};
use crate::extract::Indicators;
use crate::plan::Guard;
use crate::store::{StoreError, Task};
use jiff::Timestamp;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Finished addresses that are looked through at once; and tasks that are added at once, at most by so many providers more.
const AT_ONCE: usize = 1024;

/// What goes into the queue, and how.
pub(super) struct Deferring {
    pub(super) memory: Memory,
    pub(super) indicators: Arc<Indicators>,
    pub(super) job: Option<Arc<str>>,
    pub(super) stop: StopSignal,
}

/// The same error, of a look-up that is in the queue now.
pub(super) fn put_off(error: &ErrorBody) -> ErrorBody {
    let message = format!("{}; put into the queue", error.message);
    ErrorBody { message: message.into(), ..error.clone() }
}

impl Deferring {
    /// Puts itself before the writer. The handle gives the number of look-ups that were put off.
    pub(super) fn before(self, writer: mpsc::Sender<Finished>) -> (mpsc::Sender<Finished>, JoinHandle<u64>) {
        let (lanes, finished) = mpsc::channel(AT_ONCE);
        (lanes, tokio::spawn(self.relay(finished, writer)))
    }

    /// Adds what nobody is asked about in this run. Returns how many look-ups that is.
    ///
    /// # Errors
    /// A store that fails.
    pub(super) async fn add_all(
        &self,
        ids: &[u32],
        lanes: &[LaneSpec],
        guard: &Guard,
    ) -> Result<u64, StoreError> {
        let mut n = 0;
        for ids in ids.chunks(AT_ONCE) {
            let mut tasks = Vec::new();
            for &id in ids {
                let ip = self.indicators.ip(id);
                let takes = |lane: &&LaneSpec| {
                    let definition = &lane.definition;
                    definition.accepts.accepts(ip) && guard.clear(ip, definition.is_loopback()).is_ok()
                };
                let asked = lanes.iter().filter(takes);
                tasks.extend(self.tasks(id, asked.map(|lane| (lane.definition.name.as_str().into(), None))));
            }
            n += tasks.len() as u64;
            self.memory.store.enqueue(tasks, Timestamp::now()).await?;
        }
        Ok(n)
    }

    async fn relay(self, mut finished: mpsc::Receiver<Finished>, writer: mpsc::Sender<Finished>) -> u64 {
        let mut n = 0;
        while let Some(first) = finished.recv().await {
            let mut all = vec![first];
            while all.len() < AT_ONCE
                && let Ok(next) = finished.try_recv()
            {
                all.push(next);
            }
            n += self.put_off(&mut all).await;
            for one in all {
                // A writer that is gone has its own reason; the lanes hear of it by the stop signal.
                let _ = writer.send(one).await;
            }
        }
        n
    }

    /// Puts off what can be answered later, unless the run ends because nothing can be kept or nobody wants to know.
    async fn put_off(&self, all: &mut [Finished]) -> u64 {
        if !matches!(self.stop.get(), Stop::No | Stop::Interrupted | Stop::Terminated) {
            return 0;
        }
        let late: Vec<&mut Finished> =
            all.iter_mut().filter(|one| one.parts.iter().any(|part| later(part).is_some())).collect();
        if late.is_empty() {
            return 0;
        }
        let tasks =
            late.iter().flat_map(|one| self.tasks(one.id, one.parts.iter().filter_map(due))).collect();
        if let Err(error) = self.memory.store.enqueue(tasks, Timestamp::now()).await {
            self.memory.failed(error);
            return 0;
        }
        let mut n = 0;
        for part in late.into_iter().flat_map(|one| &mut one.parts) {
            if later(part).is_some()
                && let Outcome::Failed { error, .. } = &mut part.outcome
            {
                *error = put_off(error);
                n += 1;
            }
        }
        n
    }

    fn tasks(&self, id: u32, providers: impl Iterator<Item = (Arc<str>, Option<Timestamp>)>) -> Vec<Task> {
        let (ip, context) = (self.indicators.ip(id), context(&self.indicators, id));
        let task = |(provider, not_before)| Task {
            provider,
            ip,
            priority: PRIORITY,
            rank: place(&self.indicators, id),
            context: Arc::clone(&context),
            not_before,
            expires_at: None,
            job: self.job.clone(),
        };
        providers.map(task).collect()
    }
}

/// The failure of a look-up that may be answered later.
fn later(part: &Part) -> Option<&ErrorBody> {
    match &part.outcome {
        Outcome::Failed { error, .. } if error.error.is_retryable() => Some(error),
        Outcome::Failed { .. } | Outcome::Answered { .. } => None,
    }
}

/// Whose task it becomes, and from when on.
fn due(part: &Part) -> Option<(Arc<str>, Option<Timestamp>)> {
    match &part.outcome {
        Outcome::Answered { cache: CacheUse::Local, .. } => None,
        Outcome::Answered { .. } => Some((Arc::clone(&part.provider), None)),
        Outcome::Failed { .. } => later(part).map(|error| (Arc::clone(&part.provider), error.retry_at)),
    }
}
