//! `sift enqueue`: what a run would ask becomes tasks.

use super::super::args::{Enqueue as Args, Global, ListForm, LookupArgs, OutputArgs};
use super::super::enrich::{inputs, options, session};
use super::super::exit::Exit;
use super::super::flags::{Flags, to_come};
use super::super::lookups::{Session, warn_of};
use super::super::providers_of_run::nobody;
use super::super::report::CliError;
use super::super::stdout::{lines, print};
use super::super::{store, voice};
use crate::enrich::LaneSpec;
use crate::extract::{self, Extraction, Indicators};
use crate::output::{counted, thousands};
use crate::plan::rank::weight;
use crate::plan::{Guard, Plan, plan};
use crate::store::{Added, Queue, SqliteStore, Task};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Tasks that are added in one transaction: everybody else who writes waits for some hundredths of a second.
const AT_ONCE: usize = 4096;

/// Longest context that is kept whole; what extraction gathers of an address is far shorter.
const MOST_CONTEXT: usize = 8 * 1024;

/// What is said of it, and the object of `-f ndjson`.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// New tasks.
    added: u64,
    /// Tasks that were in the queue already.
    already: u64,
    /// Addresses that they are about.
    addresses: u64,
    /// Addresses that `--limit` left out.
    over_limit: u64,
    /// Addresses that this machine alone answers for.
    local: u64,
    /// Addresses that nobody is asked about, by reason.
    withheld: BTreeMap<&'static str, u64>,
}

/// What all tasks of a run have in common.
struct Terms {
    priority: u8,
    not_before: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    job: Option<Arc<str>>,
}

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(in crate::cli) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    if args.input.follow {
        let tip = "leave out --follow: what is there is added without it";
        return Err(CliError::usage("--follow has no end, and a task is added when all was read", tip));
    }
    let now = Timestamp::now();
    let moment = |flag, text: Option<&String>| text.map(|text| to_come(flag, text, now)).transpose();
    let terms = Terms {
        priority: args.priority,
        not_before: moment("--not-before", args.not_before.as_ref())?,
        expires_at: moment("--expires", args.expires.as_ref())?,
        job: args.job.as_deref().map(Into::into),
    };
    let inputs = inputs(args.files, "sift enqueue")?;
    let mut flags = Flags::default();
    flags.input(&args.input);
    let lookups = LookupArgs {
        provider: args.provider,
        exclude: args.exclude,
        pap: args.pap,
        ask_known_good: args.ask_known_good,
        limit: args.limit,
        job: args.job,
        ..LookupArgs::default()
    };
    let session = session("enqueue", flags, lookups, OutputArgs::default(), global, None).await?;
    let options = options(&args.input, session.config(), now)?;
    session.listen()?;
    let lanes = session.lanes()?;
    if lanes.is_empty() {
        return Err(nobody(&session.table, session.config()));
    }
    // Before the input is read: a store that cannot be used is told at once.
    let store = store::make(session.config(), &session.folders)?;
    let extraction = read(&session, move |stop| extract::extract(&inputs, &options, stop)).await?;
    let definitions: Vec<_> = lanes.iter().map(|lane| Arc::clone(&lane.definition)).collect();
    let guard = guard(&session);
    let limit = session.config().input.limit;
    let laid = plan(&extraction.indicators, &definitions, &guard, &session.local, limit);
    let added = add(&session, &store, &laid, &lanes, &extraction.indicators, &terms).await?;
    say(&laid, added, limit, args.format)
}

/// What holds addresses back.
fn guard(session: &Session) -> Guard {
    Guard::new(&session.exclude).never_sending(&session.config().input.never_send)
}

/// Reads the input, until a signal comes.
async fn read<F>(session: &Session, read: F) -> Result<Extraction, CliError>
where
    F: FnOnce(&std::sync::atomic::AtomicBool) -> Result<Extraction, extract::ExtractError> + Send + 'static,
{
    let reading = Arc::clone(&session.reading);
    let mut stop = session.stop.clone();
    let extraction = tokio::select! {
        read = tokio::task::spawn_blocking(move || read(&reading)) => read,
        stopped = stop.called() => return Err(CliError::Stopped(stopped)),
    };
    let extraction = extraction.map_err(|error| CliError::Bug(error.to_string()))??;
    warn_of(&extraction);
    Ok(extraction)
}

/// Adds the tasks of the plan, worst first. All tasks of an address are added at once, so that it has one record.
async fn add(
    session: &Session,
    store: &SqliteStore,
    plan: &Plan,
    lanes: &[LaneSpec],
    indicators: &Indicators,
    terms: &Terms,
) -> Result<Added, CliError> {
    let (guard, mut stop) = (guard(session), session.stop.clone());
    let mut sum = Added::default();
    for ids in plan.order.chunks((AT_ONCE / lanes.len().max(1)).max(1)) {
        let tasks = ids.iter().flat_map(|&id| tasks(id, lanes, indicators, &guard, terms)).collect();
        let added = tokio::select! {
            added = store.enqueue(tasks, Timestamp::now()) => added.map_err(store::failed)?,
            stopped = stop.called() => {
                let so_far = thousands(sum.added);
                voice::tell(format!("stopped after {so_far} new tasks; the same once more adds the rest"));
                return Err(CliError::Stopped(stopped));
            }
        };
        sum.added += added.added;
        sum.already += added.already;
    }
    Ok(sum)
}

/// An address's tasks: one for each provider that would be asked.
fn tasks(id: u32, lanes: &[LaneSpec], indicators: &Indicators, guard: &Guard, terms: &Terms) -> Vec<Task> {
    let ip = indicators.ip(id);
    let context = context(indicators, id);
    let takes = |lane: &&LaneSpec| {
        lane.definition.accepts.accepts(ip) && guard.clear(ip, lane.definition.is_loopback()).is_ok()
    };
    let task = |lane: &LaneSpec| Task {
        provider: lane.definition.name.as_str().into(),
        ip,
        priority: terms.priority,
        rank: place(indicators, id),
        context: Arc::clone(&context),
        not_before: terms.not_before,
        expires_at: terms.expires_at,
        job: terms.job.clone(),
    };
    lanes.iter().filter(takes).map(task).collect()
}

/// What was seen of the address; empty where that is nothing, or more than anybody could have meant.
pub(in crate::cli) fn context(indicators: &Indicators, id: u32) -> Arc<[u8]> {
    let seen = indicators.seen(id).and_then(|seen| serde_json::to_vec(&seen).ok()).unwrap_or_default();
    if seen.len() <= MOST_CONTEXT { seen.into() } else { Arc::default() }
}

/// Its place in the queue, the smallest first: comparable between runs, and a number of 63 bits, as the store's are.
pub(in crate::cli) fn place(indicators: &Indicators, id: u32) -> u64 {
    !weight(&indicators.rank_key(id)) >> 1
}

fn say(plan: &Plan, added: Added, limit: Option<usize>, form: ListForm) -> Result<Exit, CliError> {
    let summary = Summary {
        added: added.added,
        already: added.already,
        addresses: plan.order.len() as u64,
        over_limit: plan.over_limit.len() as u64,
        local: plan.local,
        withheld: plan.withheld.clone(),
    };
    let left_out = !plan.over_limit.is_empty();
    if form == ListForm::Ndjson {
        print(&lines(&[&summary])?)?;
    } else {
        let mut text = format!("added {}", counted(summary.added, "task", "tasks"));
        // Writing to a String cannot fail.
        if summary.already > 0 {
            let were = if summary.already == 1 { "was" } else { "were" };
            let _ = write!(text, "; {} {were} in the queue already", thousands(summary.already));
        }
        let withheld: u64 = summary.withheld.values().sum();
        if withheld + summary.local > 0 {
            let left = counted(withheld + summary.local, "address is", "addresses are");
            let _ = write!(text, "; {left} not asked about");
        }
        voice::note(text);
    }
    if left_out {
        voice::warn(format!(
            "{} beyond the limit of {} (--limit) and left out",
            counted(summary.over_limit, "address is", "addresses are"),
            thousands(limit.unwrap_or_default() as u64)
        ));
    }
    Ok(if left_out { Exit::Partial } else { Exit::Ok })
}
