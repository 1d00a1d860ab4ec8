//! `sift worker`.

use super::args::{CacheArgs, Global, LookupArgs, OutputArgs, Worker as Args};
use super::enrich::session;
use super::exit::{self, Exit, choose};
use super::flags::Flags;
use super::lookups::{Session, transport_settings};
use super::progress::clock;
use super::providers_of_run::{lanes, nobody};
use super::report::CliError;
use super::{notes, store, voice};
use crate::enrich::{Ask, LaneSpec, Memory, Transport};
use crate::output::thousands;
use crate::plan::Guard;
use crate::provider::{Definition, ErrorType, Filters, KeyUse, Role, Sandbox};
use crate::store::{QueueStatus, Who};
use crate::worker::{First, LEASE, Round, Shift, Tally, Until};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

/// Shortest lease: a third of it must be enough for a busy machine to come to renew it.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    let lease = args.lease.unwrap_or(LEASE);
    if lease < SHORTEST_LEASE {
        return Err(CliError::usage("--lease is shorter than 1 s", "it is renewed at a third of its length"));
    }
    let until = match (args.once, args.watch) {
        (true, _) => Until::Once,
        (_, true) => Until::Stopped,
        _ => Until::Empty,
    };
    let lookups = LookupArgs {
        provider: args.provider,
        concurrency: args.concurrency,
        max_time: args.max_time,
        rate: args.rate,
        cache: CacheArgs { max_age: args.max_age, refresh: args.refresh, ..CacheArgs::default() },
        ..LookupArgs::default()
    };
    let session = session("worker", Flags::default(), lookups, OutputArgs::default(), global, None).await?;
    session.listen()?;
    let lanes = all_lanes(&session)?;
    let memory = memory(&session)?;
    let status = memory.store.status(Timestamp::now()).await.map_err(store::failed)?;
    begin(&session, &lanes, &status, until);
    let owner: Arc<str> = format!("{}-{:016x}", std::process::id(), rand::random::<u64>()).into();
    let tallies = work(&session, lanes, &memory, until, lease, &owner).await?;
    if let Some(fault) = memory.fault.get() {
        return Err(store::failed(fault.clone()));
    }
    // Every task was given back by itself; this is for those that a bug has left.
    memory.store.release(owner, Timestamp::now()).await.map_err(store::failed)?;
    session.tidy(Some(&memory)).await;
    conclude(&session, &tallies, &memory).await
}

/// The providers that can be asked: who is asked what was chosen when the task was added.
fn all_lanes(session: &Session) -> Result<Vec<LaneSpec>, CliError> {
    let (table, config) = (&session.table, session.config());
    let can_be_asked = |definition: &&Arc<Definition>| {
        let settings = config.provider(&definition.name);
        let has_key = session.keys.key(&definition.name).is_some();
        settings.enabled != Some(false)
            && (definition.is_placed() || settings.base_url.is_some())
            && (has_key || definition.key.usage != KeyUse::Required)
    };
    let all: Vec<String> = if session.named.is_empty() {
        table.iter().filter(can_be_asked).map(|definition| definition.name.clone()).collect()
    } else {
        session.named.clone()
    };
    let lanes = if all.is_empty() { Vec::new() } else { lanes(table, config, &session.keys, &all, None)? };
    if lanes.is_empty() {
        return Err(nobody(table, config));
    }
    Ok(lanes)
}

/// The store, as a worker uses it: what failed is tried again rather than answered with what is out of date.
fn memory(session: &Session) -> Result<Memory, CliError> {
    let memory = session.memory().map_err(|error| match error {
        CliError::Store { source, .. } => store::failed(source),
        other => other,
    })?;
    let memory = memory.ok_or_else(|| CliError::Bug("a worker without a store".to_owned()))?;
    Ok(Memory { who: Who::Worker(None), stale_if_error: Duration::ZERO, ..memory })
}

/// Says what there is to do, and for whom nobody does it.
fn begin(session: &Session, lanes: &[LaneSpec], status: &[QueueStatus], until: Until) {
    let is_asked = |row: &&QueueStatus| lanes.iter().any(|lane| *lane.definition.name == *row.provider);
    let due: Vec<String> = status
        .iter()
        .filter(is_asked)
        .filter(|row| row.ready > 0)
        .map(|row| format!("{} for {}", thousands(row.ready), row.provider))
        .collect();
    let asked: Vec<LaneSpec> = lanes
        .iter()
        .filter(|lane| status.iter().any(|row| *row.provider == *lane.definition.name))
        .cloned()
        .collect();
    notes::say(&asked, &session.folders.state);
    let concurrency = session.config().concurrency.get();
    if !due.is_empty() {
        voice::note(format!("working off, {concurrency} at once: {}", due.join(", ")));
    } else if until == Until::Stopped {
        voice::note("waiting for tasks");
    }
    for row in status.iter().filter(|row| !is_asked(row) && row.ready + row.delayed > 0) {
        let n = thousands(row.ready + row.delayed);
        let why = if session.named.is_empty() { "which cannot be asked here" } else { "which -p leaves out" };
        let text = format!("{n} tasks are for {}, {why}", row.provider);
        if session.named.is_empty() { voice::warn(text) } else { voice::note(text) }
    }
}

/// All shifts, side by side.
async fn work(
    session: &Session,
    lanes: Vec<LaneSpec>,
    memory: &Memory,
    until: Until,
    lease: Duration,
    owner: &Arc<str>,
) -> Result<Vec<Tally>, CliError> {
    let config = session.config();
    let definitions: Vec<Arc<Definition>> = lanes.iter().map(|lane| Arc::clone(&lane.definition)).collect();
    let guard = Guard::new(&session.exclude).never_sending(&config.input.never_send);
    let transport = Transport::new(&transport_settings(config, &session.env, &definitions), guard)?;
    let permits = Arc::new(Semaphore::new(config.concurrency.get()));
    let end = config.max_time.map(|limit| (Instant::now() + limit, limit));
    let goes_first = |lane: &&LaneSpec| lane.ask == Ask::Always && lane.definition.role == Role::Reputation;
    let first: Arc<[Arc<str>]> =
        lanes.iter().filter(goes_first).map(|lane| lane.definition.name.as_str().into()).collect();
    let set = LocalSet::new();
    let mut running = JoinSet::new();
    for (number, spec) in (0..).zip(lanes) {
        let own = [Arc::clone(&spec.definition)];
        let filters =
            Filters::new(&own, Sandbox::this_program(), config.verdict).map_err(CliError::Definitions)?;
        let providers = if spec.ask == Ask::Suspicious { Arc::clone(&first) } else { Arc::default() };
        let round = Round {
            spec,
            first: First { providers, local: Arc::clone(&session.local) },
            filters: Arc::new(filters),
            transport: transport.clone(),
            permits: Arc::clone(&permits),
            memory: memory.clone(),
            stop: session.stop.clone(),
            end,
            until,
            lease,
            owner: Arc::clone(owner),
        };
        running.spawn_local_on(async move { (number, Shift::new(round).run().await) }, &set);
    }
    let collect = async {
        let mut tallies: Vec<(usize, Tally)> = Vec::new();
        while let Some(ended) = running.join_next().await {
            tallies.push(ended.map_err(|error| CliError::Bug(error.to_string()))?);
        }
        tallies.sort_by_key(|(number, _)| *number);
        Ok(tallies.into_iter().map(|(_, tally)| tally).collect())
    };
    set.run_until(collect).await
}

/// Says what it came to.
async fn conclude(session: &Session, tallies: &[Tally], memory: &Memory) -> Result<Exit, CliError> {
    let now = Timestamp::now();
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let answered = sum(|tally| tally.answered);
    let unanswered = sum(|tally| tally.put_off + tally.again + tally.back + tally.dead);
    let tally =
        exit::Tally { stop: session.stop.get(), ok: answered, error: unanswered, ..exit::Tally::default() };
    for tally in tallies {
        let Some((why, at)) = tally.closed.filter(|(why, _)| !is_ours(*why)) else { continue };
        let until = at.map_or_else(String::new, |at| format!(" until {}", clock(at, now)));
        voice::warn(format!("{} is not asked any more{until}: {}", tally.provider, why.as_str()));
    }
    let rows = memory.store.status(now).await.map_err(store::failed)?;
    let words = words(tallies, &rows, now);
    let of = |tally: &Tally| {
        json!({
            "provider": &*tally.provider, "answered": tally.answered, "from_store": tally.from_store,
            "cleared": tally.cleared, "put_off": tally.put_off, "again": tally.again, "back": tally.back, "dead": tally.dead,
            "closed": tally.closed.map(|(why, _)| why.as_str()),
        })
    };
    let object: Vec<_> = tallies.iter().filter(|tally| is_busy(tally)).map(of).collect();
    voice::object(&words, "worker", object.into());
    Ok(choose(&tally))
}

fn is_busy(tally: &Tally) -> bool {
    tally.closed.is_some()
        || tally.answered + tally.cleared + tally.put_off + tally.again + tally.back + tally.dead > 0
}

/// The end in one sentence.
fn words(tallies: &[Tally], rows: &[QueueStatus], now: Timestamp) -> String {
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let mut text = format!("{} answered", thousands(sum(|tally| tally.answered)));
    // Writing to a String cannot fail.
    if sum(|tally| tally.from_store) > 0 {
        let _ = write!(text, " ({} from the store)", thousands(sum(|tally| tally.from_store)));
    }
    for (n, words) in [
        (sum(|tally| tally.cleared), "not asked, since others cleared the address"),
        (sum(|tally| tally.put_off), "put off"),
        (sum(|tally| tally.again), "to be tried again"),
        (sum(|tally| tally.back), "left"),
        (sum(|tally| tally.dead), "given up (sift queue failed)"),
    ] {
        if n > 0 {
            let _ = write!(text, ", {} {words}", thousands(n));
        }
    }
    let asked: BTreeSet<&str> = tallies.iter().map(|tally| &*tally.provider).collect();
    let own = || rows.iter().filter(|row| asked.contains(&*row.provider));
    let (ready, delayed) = own().fold((0, 0), |(r, d), row| (r + row.ready, d + row.delayed));
    if ready > 0 {
        let _ = write!(text, "; {} tasks are due", thousands(ready));
    }
    if delayed > 0 {
        let next = own().filter(|row| row.delayed > 0).filter_map(|row| row.next_due).min();
        let next = next.map_or_else(String::new, |at| format!(", the first until {}", clock(at, now)));
        let _ = write!(text, "; {} wait{next}", thousands(delayed));
    }
    text
}

/// Whether the run itself ended the lane.
const fn is_ours(why: ErrorType) -> bool {
    matches!(why, ErrorType::Cancelled | ErrorType::Deadline | ErrorType::Internal)
}
