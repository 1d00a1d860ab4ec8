//! The thread that turns outcomes into records and writes them, so that a slow reader never holds up the network.

use super::exit::Tally;
use super::failures::Failures;
use super::progress::Done;
use super::voice;
use crate::enrich::outcome::{ErrorBody, Outcome, Part};
use crate::enrich::{Finished, RunClock, Stop, StopSignal, Stopper};
use crate::extract::Indicators;
use crate::output::record::Status;
use crate::output::summary::{RecordCounts, VerdictCounts};
use crate::output::{FailOn, OutputError, Record, Sink, Sort};
use crate::plan::{Fate, Guard, Local, Plan, fate};
use crate::provider::{Definition, ErrorType, Verdict};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the writer needs beside the outcomes.
pub(super) struct Writer {
    pub(super) sink: Sink,
    pub(super) sort: Sort,
    pub(super) indicators: Arc<Indicators>,
    pub(super) plan: Arc<Plan>,
    pub(super) local: Arc<Local>,
    pub(super) guard: Guard,
    pub(super) providers: Vec<Arc<Definition>>,
    pub(super) clock: RunClock,
    pub(super) fail_on: Option<FailOn>,
    pub(super) limit: usize,
    pub(super) stopper: Stopper,
    pub(super) stop: StopSignal,
    pub(super) done: Done,
}

/// What was written.
pub(super) struct Written {
    pub(super) records: RecordCounts,
    pub(super) verdicts: VerdictCounts,
    pub(super) tally: Tally,
    pub(super) failures: Failures,
    pub(super) error: Option<OutputError>,
    /// The unfinished file, where one was left.
    pub(super) partial: Option<PathBuf>,
}

impl Writer {
    /// Writes until the outcomes end, then what was not asked about. A failure calls a stop. The file appears unless the
    /// run was stopped or could not be written.
    pub(super) fn run(mut self, mut finished: mpsc::Receiver<Finished>) -> Written {
        let mut counts = Counts::default();
        let mut error = self.write_all(&mut finished, &mut counts).err();
        let stopped = matches!(self.stop.get(), Stop::Interrupted | Stop::Terminated);
        if error.is_none() && !stopped {
            error = voice::aside(|| self.sink.finish()).err();
        }
        if let Some(error) = &error {
            self.stopper.stop(if error.is_closed_pipe() { Stop::ClosedPipe } else { Stop::OutputFailed });
        }
        let partial =
            if error.is_some() || stopped { voice::aside(|| self.sink.keep_partial()) } else { None };
        // Whatever is still on its way is taken off the lanes' hands, so that they can end.
        while finished.blocking_recv().is_some() {}
        let Counts { records, verdicts, mut tally, failures } = counts;
        tally.stop = self.stop.get();
        Written { records, verdicts, tally, failures, error, partial }
    }

    fn write_all(
        &mut self,
        finished: &mut mpsc::Receiver<Finished>,
        counts: &mut Counts,
    ) -> Result<(), OutputError> {
        let places = self.places();
        self.answer_here(&places, counts)?;
        while let Some(Finished { id, parts }) = finished.blocking_recv() {
            let (ip, seen) = (self.indicators.ip(id), self.indicators.seen(id));
            let record = Record::joined(ip, seen, parts, self.clock.wall_now());
            self.write(&record, id, &places, counts)?;
            self.done.one_more();
        }
        let plan = Arc::clone(&self.plan);
        let message: Arc<str> =
            format!("not asked: the run's limit of {} addresses (--limit) is used up", self.limit).into();
        for &id in &plan.over_limit {
            let error = ErrorBody::new(ErrorType::BudgetExhausted, Arc::clone(&message));
            let record = self.over_limit(id, error);
            self.write(&record, id, &places, counts)?;
        }
        for id in 0..u32::try_from(self.indicators.len()).unwrap_or(u32::MAX) {
            let ip = self.indicators.ip(id);
            if let Fate::Withheld(reason) = fate(ip, &self.providers, &self.guard, &self.local) {
                let record = Record::skipped(ip, reason.as_str(), self.clock.wall_now());
                self.write(&record, id, &places, counts)?;
            }
        }
        Ok(())
    }

    /// The records of what this machine alone answers for: before any other, since they wait for nobody.
    fn answer_here(&mut self, places: &[u32], counts: &mut Counts) -> Result<(), OutputError> {
        if self.plan.local == 0 {
            return Ok(());
        }
        for id in 0..u32::try_from(self.indicators.len()).unwrap_or(u32::MAX) {
            let ip = self.indicators.ip(id);
            if let Fate::Local(_) = fate(ip, &self.providers, &self.guard, &self.local) {
                let parts = self.local.said(ip).into_iter().map(Part::from).collect();
                let record = Record::joined(ip, self.indicators.seen(id), parts, self.clock.wall_now());
                self.write(&record, id, places, counts)?;
            }
        }
        Ok(())
    }

    /// The record of an address that nobody is asked about any more: what this machine knows of it, and that the others
    /// were not asked.
    fn over_limit(&self, id: u32, error: ErrorBody) -> Record {
        let (ip, seen) = (self.indicators.ip(id), self.indicators.seen(id));
        let mut parts: Vec<Part> = self.local.said(ip).into_iter().map(Part::from).collect();
        if parts.is_empty() {
            return Record::refused(ip, seen, error, self.clock.wall_now());
        }
        let asked = self.providers.iter().filter(|provider| {
            provider.accepts.accepts(ip) && self.guard.clear(ip, provider.is_loopback()).is_ok()
        });
        parts.extend(asked.map(|provider| Part {
            provider: provider.name.as_str().into(),
            role: provider.role,
            outcome: Outcome::unasked(error.clone()),
        }));
        Record::joined(ip, seen, parts, self.clock.wall_now())
    }

    fn write(
        &mut self,
        record: &Record,
        id: u32,
        places: &[u32],
        counts: &mut Counts,
    ) -> Result<(), OutputError> {
        counts.take(record, self.fail_on);
        let place = match self.sort {
            Sort::Done => None,
            Sort::Input => Some(id),
            Sort::Rank => places.get(id as usize).copied(),
        };
        match place {
            Some(place) => voice::aside(|| self.sink.write_at(record, u64::from(place))),
            None => voice::aside(|| self.sink.write(record)),
        }
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

#[derive(Default)]
struct Counts {
    records: RecordCounts,
    verdicts: VerdictCounts,
    tally: Tally,
    failures: Failures,
}

impl Counts {
    fn take(&mut self, record: &Record, fail_on: Option<FailOn>) {
        self.failures.take(record);
        self.tally.found |= fail_on.is_some_and(|level| level.matches(record));
        match record.status {
            Status::Ok => {
                self.records.ok += 1;
                self.tally.ok += 1;
                self.records.incomplete += u64::from(!record.complete);
                self.tally.incomplete += u64::from(!record.complete);
                self.records.conflict += u64::from(record.conflict);
            }
            Status::Error => {
                self.records.error += 1;
                self.tally.error += 1;
                if let Some(error) = &record.error {
                    *self.records.errors.entry(error.error.as_str().to_owned()).or_default() += 1;
                }
            }
            Status::Skipped => {
                if let Some(reason) = &record.reason {
                    *self.records.skipped.entry(reason.to_string()).or_default() += 1;
                }
            }
        }
        match record.verdict {
            Some(Verdict::Malicious) => self.verdicts.malicious += 1,
            Some(Verdict::Suspicious) => self.verdicts.suspicious += 1,
            Some(Verdict::Benign) => self.verdicts.benign += 1,
            Some(Verdict::Unknown) => self.verdicts.unknown += 1,
            None => {}
        }
    }
}
