//! Turns outcomes into records, writes and counts them: what a run over a finished input and one that follows share.

use super::exit::Tally;
use super::failures::Failures;
use super::voice;
use crate::enrich::outcome::{ErrorBody, Outcome, Part};
use crate::enrich::{Finished, RunClock, Stop, StopSignal, Stopper};
use crate::extract::Indicators;
use crate::output::record::Status;
use crate::output::summary::{RecordCounts, VerdictCounts};
use crate::output::{FailOn, OutputError, Record, Sink};
use crate::plan::{Fate, Guard, Local, Withheld, fate};
use crate::provider::{Definition, Verdict};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What records are made with, and where they go.
pub(super) struct Recorder {
    pub(super) sink: Sink,
    pub(super) local: Arc<Local>,
    pub(super) guard: Guard,
    pub(super) providers: Vec<Arc<Definition>>,
    pub(super) clock: RunClock,
    pub(super) fail_on: Option<FailOn>,
    pub(super) stopper: Stopper,
    pub(super) stop: StopSignal,
    pub(super) counts: Counts,
}

impl Recorder {
    /// What becomes of an address.
    pub(super) fn fate(&self, ip: std::net::IpAddr) -> Fate {
        fate(ip, &self.providers, &self.guard, &self.local)
    }

    /// The record of one that was asked about.
    pub(super) fn finished(&self, indicators: &Indicators, finished: Finished) -> Record {
        let Finished { id, parts } = finished;
        Record::joined(indicators.ip(id), indicators.seen(id), parts, self.clock.wall_now())
    }

    /// The record of one that this machine alone answers for.
    pub(super) fn here(&self, indicators: &Indicators, id: u32) -> Record {
        let ip = indicators.ip(id);
        let parts = self.local.said(ip).into_iter().map(Part::from).collect();
        Record::joined(ip, indicators.seen(id), parts, self.clock.wall_now())
    }

    /// The record of one that nobody is to be asked about.
    pub(super) fn withheld(&self, indicators: &Indicators, id: u32, reason: Withheld) -> Record {
        Record::skipped(indicators.ip(id), reason.as_str(), self.clock.wall_now())
    }

    /// The record of an address that nobody is asked about any more: what this machine knows of it, and that the others
    /// were not asked.
    pub(super) fn unasked(&self, indicators: &Indicators, id: u32, error: ErrorBody) -> Record {
        let (ip, seen) = (indicators.ip(id), indicators.seen(id));
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

    /// Writes a record, in its turn where it has one, and counts it.
    pub(super) fn write(&mut self, record: &Record, place: Option<u64>) -> Result<(), OutputError> {
        self.counts.take(record, self.fail_on);
        match place {
            Some(place) => voice::aside(|| self.sink.write_at(record, place)),
            None => voice::aside(|| self.sink.write(record)),
        }
    }

    /// The end of the output. A failure calls a stop. The file appears unless the run was stopped or could not be written;
    /// what is still on its way is taken off the lanes' hands, so that they can end.
    pub(super) fn end(
        mut self,
        written: Result<(), OutputError>,
        mut finished: mpsc::Receiver<Finished>,
    ) -> Written {
        let mut error = written.err();
        let stopped = matches!(self.stop.get(), Stop::Interrupted | Stop::Terminated);
        if error.is_none() && !stopped {
            error = voice::aside(|| self.sink.finish()).err();
        }
        if let Some(error) = &error {
            self.stopper.stop(if error.is_closed_pipe() { Stop::ClosedPipe } else { Stop::OutputFailed });
        }
        let partial =
            if error.is_some() || stopped { voice::aside(|| self.sink.keep_partial()) } else { None };
        while finished.blocking_recv().is_some() {}
        let Counts { records, verdicts, mut tally, failures } = self.counts;
        tally.stop = self.stop.get();
        Written { records, verdicts, tally, failures, error, partial }
    }
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

/// The same, as it goes.
#[derive(Default)]
pub(super) struct Counts {
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
