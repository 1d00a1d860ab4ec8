//! `sift queue results`: the records of addresses whose tasks have all ended.

use super::super::args::{QueueResults as Args, When};
use super::super::exit::Exit;
use super::super::lookups::sink;
use super::super::report::CliError;
use super::super::settings::Settings;
use super::super::{local, store, voice};
use super::tend::error_of;
use crate::config::Config;
use crate::enrich::outcome::{Outcome, Part};
use crate::enrich::unpack;
use crate::extract::Seen;
use crate::output::{Form, Record, Sort};
use crate::plan::Local;
use crate::provider::{Role, Table};
use crate::store::{Done, Ended, Queue};
use jiff::Timestamp;
use std::sync::Arc;

/// Results that are read, written and marked at once.
const PAGE: u32 = 512;

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(settings: &Settings, args: &Args, color: When) -> Result<Exit, CliError> {
    let config = in_order_of_end(&settings.loaded.config);
    let Some(store) = store::open_if_there(&config, &settings.folders)? else { return Ok(Exit::Ok) };
    let local = local::open(&config, &settings.folders, &settings.table, Timestamp::now())?;
    let mut page = store.results(None, PAGE).await.map_err(store::failed)?;
    if page.is_empty() {
        voice::note("there is no result that nobody has read");
        return Ok(Exit::Ok);
    }
    let mut sink = sink(&config, &args.as_output(), color)?;
    // What a reader has is read. A file is nothing before it is whole, and so is an array.
    let streams = args.output.is_none() && config.output.format != Some(Form::Json);
    let mut last = 0;
    while let Some(done) = page.last() {
        last = done.number;
        for done in page {
            sink.write(&record(done, &settings.table, &local))?;
        }
        if streams && !args.keep {
            store.mark_read(last).await.map_err(store::failed)?;
        }
        page = store.results(Some(last), PAGE).await.map_err(store::failed)?;
    }
    if let Err(error) = sink.finish() {
        let _ = sink.keep_partial();
        return Err(error.into());
    }
    if !args.keep {
        store.mark_read(last).await.map_err(store::failed)?;
    }
    Ok(Exit::Ok)
}

/// Results have one order: that in which they ended.
fn in_order_of_end(config: &Config) -> Config {
    let mut config = config.clone();
    config.output.sort = Sort::Done;
    config
}

/// The record of an address, as `enrich` would have written it.
fn record(done: Done, table: &Table, local: &Local) -> Record {
    let Done { number: _, ip, context, job: _, at, outcomes } = done;
    let mut parts: Vec<Part> =
        outcomes.into_iter().filter_map(|(provider, ended)| part(provider, &ended, table)).collect();
    parts.extend(local.said(ip).into_iter().map(Part::from));
    Record::joined(ip, serde_json::from_slice::<Seen>(&context).ok(), parts, at)
}

/// A provider's share of it; none where others cleared the address, so that it was not asked.
fn part(provider: Arc<str>, ended: &Ended, table: &Table) -> Option<Part> {
    if matches!(ended, Ended::Completed(bytes) if bytes.is_empty()) {
        return None;
    }
    if let Ended::Completed(bytes) | Ended::Failed(bytes) = ended
        && let Some(part) = unpack(Arc::clone(&provider), bytes)
    {
        return Some(part);
    }
    let role = table.get(&provider).map_or(Role::Reputation, |definition| definition.role);
    let outcome = Outcome::unasked(error_of(&provider, ended));
    Some(Part { provider, role, outcome })
}
