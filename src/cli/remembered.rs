//! What a run of look-ups has of the store: what it keeps, what it may spend, and how far its plan reaches.

use super::forecast::Kept;
use super::lookups::Session;
use super::report::CliError;
use super::{settings, store};
use crate::enrich::{LaneSpec, Memory};
use crate::extract::Indicators;
use crate::plan::{Guard, Plan};
use crate::store::Who;
use jiff::Timestamp;
use std::sync::Arc;

/// Most addresses of which the cache is read beforehand only to say how many will be asked: a look takes some
/// microseconds, and the first request is to leave within 100 ms.
const FORESEEN: usize = 10_000;

impl Session {
    /// What outlives the run, if anything is to: not in a rehearsal, which is the same for everybody, and not with
    /// `--no-store`. A dry run makes nothing.
    ///
    /// # Errors
    /// A store that cannot be used, or `--offline` without one.
    pub(super) fn memory(&self) -> Result<Option<Memory>, CliError> {
        if self.cache.no_store || self.rehearsal.is_some() {
            return Ok(None);
        }
        if self.is_dry && !store::file(self.config(), &self.folders).exists() {
            return Ok(None);
        }
        Ok(Some(Memory {
            store: store::open(self.config(), &self.folders)?,
            who: self.who(),
            user: store::user(),
            max_age: self.cache.max_age,
            refresh: self.cache.refresh,
            offline: self.cache.offline,
            stale_if_error: self.config().cache.stale_if_error,
            stopper: self.stopper.clone(),
            fault: Arc::default(),
        }))
    }

    /// For whom the run is made.
    pub(super) fn who(&self) -> Who {
        self.job.as_deref().map_or(Who::Person, |job| Who::Job(job.into()))
    }

    /// Gives the lanes their parts of `--budget`; returns that of the whole run.
    pub(super) fn spread_budget(&self, lanes: &mut [LaneSpec]) -> Result<Option<u64>, CliError> {
        let mut whole = None;
        for budget in &self.budget {
            let Some(name) = &budget.provider else {
                whole = Some(budget.lookups.get());
                continue;
            };
            if self.table.get(name).is_none() {
                return Err(settings::unknown(&self.table, name));
            }
            if let Some(lane) = lanes.iter_mut().find(|lane| lane.definition.name == *name) {
                lane.budget = Some(budget.lookups.get());
            }
        }
        Ok(whole)
    }

    /// Leaves out what is beyond the run's limit; what the cache answers does not count.
    pub(super) async fn bound(
        &self,
        plan: &mut Plan,
        memory: Option<&Memory>,
        lanes: &[LaneSpec],
        indicators: &Indicators,
        guard: &Guard,
    ) -> Result<Option<Kept>, CliError> {
        let limit = self.config().input.limit;
        let kept = match memory {
            Some(memory) if self.is_dry || plan.is_over(limit) || plan.order.len() <= FORESEEN => {
                let now = Timestamp::now();
                let kept = Kept::of(memory, lanes, indicators, guard, &plan.order, now).await;
                Some(kept.map_err(store::failed)?)
            }
            _ => None,
        };
        plan.bound(limit, kept.as_ref().map_or(&[], |kept| &kept.answered));
        Ok(kept)
    }

    /// Drops from the store what is out of date or too much. The answers are out; whoever waits for the prompt waits
    /// little, since there is little to drop after each run.
    pub(super) async fn tidy(&self, memory: Option<&Memory>) {
        let Some(memory) = memory else { return };
        let most = self.config().cache.max_bytes;
        if let Err(error) = memory.store.prune(Timestamp::now(), most).await {
            tracing::debug!("the store could not be tidied: {error}");
        }
    }
}
