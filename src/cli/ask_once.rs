//! One look-up at each provider, over the same way as every other: `credentials check` and `doctor --ask`.

use super::exit::Exit;
use super::keyring::Keyring;
use super::lookups::{excluded, transport_settings};
use super::providers_of_run::{lanes, nobody};
use super::report::CliError;
use super::settings::Settings;
use super::store;
use crate::enrich::outcome::{ErrorBody, Outcome, Part};
use crate::enrich::{self, LaneSpec, Memory, Run, RunClock, Transport, Work, stop};
use crate::extract::{self, InputFormat};
use crate::input::Input;
use crate::plan::{Guard, Local, plan};
use crate::provider::{Filters, Sandbox};
use crate::store::Who;
use jiff::Timestamp;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::mpsc;

/// Quad9's resolver: public, and nobody's secret. Every provider takes IPv4.
const ADDRESS: &str = "9.9.9.9";

/// What one provider said.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) provider: String,
    pub(super) outcome: Result<Duration, ErrorBody>,
}

/// Asks those of `names`, or all that would be asked.
///
/// # Errors
/// As for a run: nobody to ask, an unknown name, a client that cannot be built.
pub(super) async fn ask(
    settings: &Settings,
    keys: &Keyring,
    names: &[String],
) -> Result<Vec<Told>, CliError> {
    let config = &settings.loaded.config;
    let lanes: Vec<LaneSpec> =
        lanes(&settings.table, config, keys, names, None)?.into_iter().map(once).collect();
    if lanes.is_empty() {
        return Err(nobody(&settings.table, config));
    }
    let definitions: Vec<_> = lanes.iter().map(|lane| Arc::clone(&lane.definition)).collect();
    let options = extract::Options { format: InputFormat::List, ..extract::Options::default() };
    let read =
        extract::extract_reader(&Input::Stdin, Cursor::new(ADDRESS), &options, &AtomicBool::new(false))?;
    let indicators = Arc::new(read.indicators);
    let guard = Guard::new(&excluded(config, &[])?).never_sending(&config.input.never_send);
    let order = plan(&indicators, &definitions, &guard, &Local::default(), None).order;
    if order.is_empty() {
        return Err(CliError::usage(
            format!("{ADDRESS} would be asked about, and the configuration says that it is never sent"),
            "look up an address that may leave: sift lookup IP",
        ));
    }
    let filters =
        Filters::new(&definitions, Sandbox::this_program(), config.verdict).map_err(CliError::Definitions)?;
    let transport = Transport::new(&transport_settings(config, &settings.env, &definitions), guard)?;
    // Nobody calls a stop; a signal ends the process.
    let (stopper, stop) = stop::channel();
    let (out, mut finished) = mpsc::channel(1);
    let run = Run {
        concurrency: lanes.len(),
        lanes,
        filters: Arc::new(filters),
        work: Work::Ranked { indicators, order },
        local: Arc::new(Local::default()),
        transport,
        max_time: None,
        clock: RunClock::starting_at(Timestamp::now()),
        stop,
        seed: rand::random(),
        board: enrich::Board::default(),
        keep_raw: false,
        memory: memory(settings, &stopper),
        budget: None,
    };
    let (_, parts) = tokio::join!(enrich::run(run, out), async {
        let mut parts = Vec::new();
        while let Some(one) = finished.recv().await {
            parts.extend(one.parts);
        }
        parts
    });
    drop(stopper);
    Ok(told(parts))
}

/// A look-up of this kind counts and is written down like any other, and is never answered from the cache. Where there is
/// no usable store it is made all the same: somebody wants to know whether a key works.
fn memory(settings: &Settings, stopper: &enrich::Stopper) -> Option<Memory> {
    let store = store::open(&settings.loaded.config, &settings.folders).ok()?;
    Some(Memory {
        store,
        who: Who::Person,
        user: store::user(),
        max_age: None,
        refresh: true,
        offline: false,
        stale_if_error: Duration::ZERO,
        stopper: stopper.clone(),
        fault: Arc::default(),
    })
}

fn told(parts: Vec<Part>) -> Vec<Told> {
    let mut told: Vec<Told> = parts
        .into_iter()
        .map(|part| Told {
            provider: part.provider.to_string(),
            outcome: match part.outcome {
                Outcome::Answered { latency, .. } => Ok(latency),
                Outcome::Failed { error, .. } => Err(error),
            },
        })
        .collect();
    told.sort_by(|a, b| a.provider.cmp(&b.provider));
    told
}

/// The lane for one attempt: who wants to know whether something works does not want it tried again.
fn once(mut lane: LaneSpec) -> LaneSpec {
    lane.ask = enrich::Ask::Always;
    lane.settings.retries = 0;
    lane.settings.deadline = lane.settings.deadline.min(lane.settings.timeout);
    lane
}

/// 0 if all answered, 4 if none did, else 3.
pub(super) fn exit(told: &[Told]) -> Exit {
    match told.iter().filter(|told| told.outcome.is_ok()).count() {
        answered if answered == told.len() => Exit::Ok,
        0 => Exit::Unanswered,
        _ => Exit::Partial,
    }
}
