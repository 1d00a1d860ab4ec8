//! What is said before the first request and after the last record.

use super::exit::Exit;
use super::forecast::Kept;
use super::progress::{due, pace, rough};
use super::recorder::Written;
use super::voice;
use crate::enrich::{Ask, LaneSpec, LaneStats, Stop};
use crate::extract::{Counts, Indicators};
use crate::output::summary::{
    CacheCounts, InputCounts, LatencySeconds, LocalCounts, ProviderCounts, SUMMARY_VERSION,
};
use crate::output::{Summary, thousands};
use crate::plan::{Guard, Local, Plan};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// When a run began, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began {
    pub(super) at: Timestamp,
    pub(super) steady: Instant,
}

/// Says how many addresses go to whom, and how long that takes where a pace sets it.
pub(super) fn announce(
    plan: &Plan,
    lanes: &[LaneSpec],
    indicators: &Indicators,
    guard: &Guard,
    local: &Local,
    kept: &Kept,
    concurrency: usize,
) {
    if plan.order.is_empty() && plan.local == 0 && plan.withheld.is_empty() {
        return;
    }
    let here = here(plan, local);
    if plan.order.is_empty() {
        let why = if plan.local == 0 { ": no address may leave this host" } else { "" };
        return voice::note(format!("nobody is asked{why}{here}"));
    }
    let who: Vec<String> = lanes
        .iter()
        .enumerate()
        .map(|(number, lane)| {
            let count = kept.missing(number, lane, plan, indicators, guard).count() as u64;
            let from_cache = due(lane, plan, indicators, guard) - count;
            let most = if lane.ask == Ask::Suspicious { "up to " } else { "" };
            let time = pace(lane).saturating_mul(u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX));
            let time = if time >= Duration::from_secs(1) {
                format!(" ({most}{})", rough(time))
            } else {
                String::new()
            };
            let cached = match from_cache {
                0 => String::new(),
                n => format!(", {} from the cache", thousands(n)),
            };
            format!("{most}{} to {}{time}{cached}", thousands(count), lane.definition.name)
        })
        .collect();
    let withheld: u64 = plan.withheld.values().sum();
    let kept = match withheld {
        0 => String::new(),
        1 => "; 1 never leaves this host".to_owned(),
        n => format!("; {} never leave this host", thousands(n)),
    };
    voice::note(format!("asking, {concurrency} at once: {}{here}{kept}", who.join(", ")));
}

/// What answers on this machine, and for how many alone.
fn here(plan: &Plan, local: &Local) -> String {
    let sources = [(local.n_lists(), "list", "lists"), (local.n_files(), "MMDB file", "MMDB files")];
    let sources: Vec<String> = sources
        .into_iter()
        .filter(|(n, _, _)| *n > 0)
        .map(|(n, one, many)| format!("{n} {}", if n == 1 { one } else { many }))
        .collect();
    let by = sources.join(" and ");
    match (plan.local, plan.known_good) {
        _ if sources.is_empty() => String::new(),
        (0, _) => format!("; beside them {by}"),
        (n, 0) => format!("; {} answered here alone, by {by}", thousands(n)),
        (n, good) => {
            let (n, good) = (thousands(n), thousands(good));
            format!("; {n} answered here alone, by {by}: {good} known to be good")
        }
    }
}

/// The run's summary.
pub(super) fn summary(
    command: &str,
    counts: &Counts,
    written: &Written,
    plan: &Plan,
    lanes: Vec<LaneStats>,
    began: Began,
    exit: Exit,
) -> Summary {
    let deadline = lanes.iter().any(|lane| lane.closed == Some(crate::provider::ErrorType::Deadline));
    let asked = plan.order.len() as u64;
    Summary {
        v: SUMMARY_VERSION,
        command: command.to_owned(),
        job: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: began.at,
        ended: Timestamp::now(),
        duration_s: (began.steady.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        exit_code: exit.code(),
        stopped_by: match written.tally.stop {
            Stop::No if deadline => Some("max_time".to_owned()),
            Stop::No => None,
            Stop::Interrupted => Some("SIGINT".to_owned()),
            Stop::Terminated => Some("SIGTERM".to_owned()),
            Stop::ClosedPipe => Some("closed_pipe".to_owned()),
            Stop::OutputFailed => Some("output".to_owned()),
            Stop::StoreFailed => Some("store".to_owned()),
        },
        input: InputCounts {
            files: counts.files,
            bytes: counts.bytes,
            lines: counts.lines,
            events: counts.events,
            malformed: counts.malformed,
            unique: asked + plan.local + plan.over_limit.len() as u64 + plan.withheld.values().sum::<u64>(),
            from_cursor: false,
        },
        local: (plan.local > 0).then_some(LocalCounts { addresses: plan.local, known_good: plan.known_good }),
        records: written.records.clone(),
        verdicts: written.verdicts,
        providers: lanes.into_iter().map(|lane| (lane.provider.clone(), provider(&lane))).collect(),
    }
}

fn provider(lane: &LaneStats) -> ProviderCounts {
    let failed: u64 = lane.errors.values().sum();
    let round = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    ProviderCounts {
        lookups: lane.answered + failed + lane.unasked,
        cache: CacheCounts { hit: lane.hits, stale: lane.stale, collapsed: lane.collapsed },
        host: lane.host.clone(),
        sent: lane.sent,
        requests: lane.requests,
        retries: lane.retries,
        http: lane.http.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
        errors: errors(lane),
        waited_s: round(lane.waited),
        latency_s: (lane.latency.max() > Duration::ZERO).then(|| LatencySeconds {
            p50: round(lane.latency.quantile(0.5)),
            p95: round(lane.latency.quantile(0.95)),
            max: round(lane.latency.max()),
        }),
        remaining: lane.remaining.iter().map(|(window, left)| (window.word().to_owned(), *left)).collect(),
        retry_at: lane.retry_at,
        breaker: lane.breaker.to_owned(),
        ..ProviderCounts::default()
    }
}

/// What failed by itself, and what the closing of the lane left.
fn errors(lane: &LaneStats) -> BTreeMap<String, u64> {
    let mut errors: BTreeMap<String, u64> =
        lane.errors.iter().map(|(kind, count)| (kind.as_str().to_owned(), *count)).collect();
    if let Some(closed) = lane.closed.filter(|_| lane.unasked > 0) {
        *errors.entry(closed.as_str().to_owned()).or_default() += lane.unasked;
    }
    errors
}
