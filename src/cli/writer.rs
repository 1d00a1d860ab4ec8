//! The thread that turns outcomes into records and writes them, so that a slow reader never holds up the network.

use super::defer::put_off;
use super::progress::Done;
use super::recorder::{Recorder, Written};
use crate::enrich::Finished;
use crate::enrich::outcome::ErrorBody;
use crate::extract::Indicators;
use crate::output::{OutputError, Record, Sort};
use crate::plan::{Fate, Plan};
use crate::provider::ErrorType;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the writer needs beside the outcomes.
pub(super) struct Writer {
    pub(super) recorder: Recorder,
    pub(super) sort: Sort,
    pub(super) indicators: Arc<Indicators>,
    pub(super) plan: Arc<Plan>,
    pub(super) limit: usize,
    /// Whether what is beyond it is in the queue.
    pub(super) defers: bool,
    pub(super) done: Done,
}

/// The word for addresses beyond `--limit`.
pub(super) fn over_limit(limit: usize) -> ErrorBody {
    let message = format!("not asked: the run's limit of {limit} addresses (--limit) is used up");
    ErrorBody::new(ErrorType::BudgetExhausted, message)
}

impl Writer {
    /// Writes until the outcomes end, then what was not asked about.
    pub(super) fn run(mut self, mut finished: mpsc::Receiver<Finished>) -> Written {
        let written = self.write_all(&mut finished);
        self.recorder.end(written, finished)
    }

    fn write_all(&mut self, finished: &mut mpsc::Receiver<Finished>) -> Result<(), OutputError> {
        let places = self.places();
        self.answer_here(&places)?;
        while let Some(one) = finished.blocking_recv() {
            let id = one.id;
            let record = self.recorder.finished(&self.indicators, one);
            self.write(&record, id, &places)?;
            self.done.one_more();
        }
        let (plan, error) = (Arc::clone(&self.plan), over_limit(self.limit));
        let error = if self.defers { put_off(&error) } else { error };
        for &id in &plan.over_limit {
            let record = self.recorder.unasked(&self.indicators, id, error.clone());
            self.write(&record, id, &places)?;
        }
        for id in 0..u32::try_from(self.indicators.len()).unwrap_or(u32::MAX) {
            if let Fate::Withheld(reason) = self.recorder.fate(self.indicators.ip(id)) {
                let record = self.recorder.withheld(&self.indicators, id, reason);
                self.write(&record, id, &places)?;
            }
        }
        Ok(())
    }

    /// The records of what this machine alone answers for: before any other, since they wait for nobody.
    fn answer_here(&mut self, places: &[u32]) -> Result<(), OutputError> {
        if self.plan.local == 0 {
            return Ok(());
        }
        for id in 0..u32::try_from(self.indicators.len()).unwrap_or(u32::MAX) {
            if let Fate::Local(_) = self.recorder.fate(self.indicators.ip(id)) {
                let record = self.recorder.here(&self.indicators, id);
                self.write(&record, id, places)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, record: &Record, id: u32, places: &[u32]) -> Result<(), OutputError> {
        let place = match self.sort {
            Sort::Done => None,
            Sort::Input => Some(id),
            Sort::Rank => places.get(id as usize).copied(),
        };
        self.recorder.write(record, place.map(u64::from))
    }

    /// For `--sort rank`: each address's place among all, those not asked about last.
    fn places(&self) -> Vec<u32> {
        if !matches!(self.sort, Sort::Rank) {
            return Vec::new();
        }
        let mut places = vec![u32::MAX; self.indicators.len()];
        let mut next = 0;
        let mut give = |id: u32, places: &mut Vec<u32>| {
            if let Some(place) = places.get_mut(id as usize).filter(|place| **place == u32::MAX) {
                *place = next;
                next += 1;
            }
        };
        self.plan.order.iter().chain(&self.plan.over_limit).for_each(|&id| give(id, &mut places));
        for id in 0..u32::try_from(self.indicators.len()).unwrap_or(u32::MAX) {
            give(id, &mut places);
        }
        places
    }
}
