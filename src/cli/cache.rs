//! `sift cache`.

use super::args::{Cache as Args, CacheCommand, Global, ListForm};
use super::exit::Exit;
use super::flags::Flags;
use super::lists::age;
use super::report::CliError;
use super::settings::{Settings, unknown};
use super::stdout::{Grid, lines, print};
use super::{address, prompt, store, voice};
use crate::output::thousands;
use crate::store::{Cache as _, CacheStats, Kept, SqliteStore};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::net::IpAddr;

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    let settings = Settings::load(&global, Flags::default(), None)?;
    match args.command {
        CacheCommand::Stats { format } => stats(&settings, format).await,
        CacheCommand::Get { ip, format } => get(&settings, address::one(&ip)?, format).await,
        CacheCommand::Clear { provider, ip, yes } => {
            let ip = ip.as_deref().map(address::one).transpose()?;
            clear(&settings, provider, ip, yes).await
        }
        CacheCommand::Prune => prune(&settings).await,
    }
}

/// A line of `sift cache stats -f ndjson`.
#[derive(Debug, Serialize)]
struct Row {
    provider: String,
    host: String,
    answers: u64,
    /// With what the store adds to each, estimated.
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<Timestamp>,
}

impl From<CacheStats> for Row {
    fn from(stats: CacheStats) -> Self {
        let CacheStats { provider, host, answers, bytes, fetched } = stats;
        let (oldest, newest) = fetched.unzip();
        Self { provider: provider.to_string(), host: host.to_string(), answers, bytes, oldest, newest }
    }
}

async fn stats(settings: &Settings, form: ListForm) -> Result<Exit, CliError> {
    let config = &settings.loaded.config;
    let Some(store) = store::open_if_there(config, &settings.folders)? else { return Ok(Exit::Ok) };
    let rows: Vec<Row> = store.stats().await.map_err(store::failed)?.into_iter().map(Row::from).collect();
    if !form.is_table() {
        print(&lines(&rows)?)?;
        return Ok(Exit::Ok);
    }
    let now = Timestamp::now();
    let when = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| age(at, now));
    let mut grid = Grid::new(&["provider", "answers", "size", "oldest", "newest", "from"]).right(&[1, 2]);
    for row in &rows {
        let (answers, size) = (thousands(row.answers), store::size(row.bytes));
        grid.row(&[&row.provider, &answers, &size, &when(row.oldest), &when(row.newest), &row.host]);
    }
    print(&grid.text())?;
    let bytes = rows.iter().map(|row| row.bytes).sum();
    let (used, most) = (store::size(bytes), store::size(config.cache.max_bytes));
    voice::note(format!("{used} of at most {most} (max_size), in {}", store.path().display()));
    Ok(Exit::Ok)
}

/// A line of `sift cache get -f ndjson`.
#[derive(Debug, Serialize)]
struct Whole {
    provider: String,
    host: String,
    ip: IpAddr,
    fetched_at: Timestamp,
    /// From when on it may be dropped.
    keep_until: Timestamp,
    /// HTTP status of the reply.
    status: u16,
    /// What the filter made of it.
    answer: Value,
    /// As it came; null where it was too long to keep.
    body: Value,
}

impl From<Kept> for Whole {
    fn from(kept: Kept) -> Self {
        let Kept { provider, host, stored } = kept;
        let text = |bytes: &[u8]| {
            serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
        };
        Self {
            provider: provider.to_string(),
            host: host.to_string(),
            ip: stored.ip,
            fetched_at: stored.fetched_at,
            keep_until: stored.keep_until,
            status: stored.status,
            answer: text(&stored.answer),
            body: stored.body.as_deref().map_or(Value::Null, text),
        }
    }
}

async fn get(settings: &Settings, ip: IpAddr, form: ListForm) -> Result<Exit, CliError> {
    let rows: Vec<Whole> =
        kept(settings, ip).await?.unwrap_or_default().into_iter().map(Whole::from).collect();
    if rows.is_empty() {
        voice::note(format!("nothing is kept about {ip}"));
        return Ok(Exit::Partial);
    }
    if !form.is_table() {
        print(&lines(&rows)?)?;
        return Ok(Exit::Ok);
    }
    let now = Timestamp::now();
    let mut text = String::new();
    for row in &rows {
        let mut grid = Grid::new(&["provider", &row.provider]);
        grid.row(&["from", &row.host]);
        grid.row(&["fetched", &format!("{:.0} ({})", row.fetched_at, age(row.fetched_at, now))]);
        grid.row(&["kept until", &format!("{:.0}", row.keep_until)]);
        grid.row(&["status", &row.status.to_string()]);
        grid.row(&["answer", &row.answer.to_string()]);
        grid.row(&["body", &if row.body.is_null() { "not kept".to_owned() } else { row.body.to_string() }]);
        if !text.is_empty() {
            text.push('\n');
        }
        text += &grid.text();
    }
    print(&text)?;
    Ok(Exit::Ok)
}

/// All that is kept about an address; none where there is no store.
pub(super) async fn kept(settings: &Settings, ip: IpAddr) -> Result<Option<Vec<Kept>>, CliError> {
    let Some(store) = store::open_if_there(&settings.loaded.config, &settings.folders)? else {
        return Ok(None);
    };
    store.explain(ip).await.map(Some).map_err(store::failed)
}

async fn clear(
    settings: &Settings,
    provider: Option<String>,
    ip: Option<IpAddr>,
    yes: bool,
) -> Result<Exit, CliError> {
    let Some(store) = store::open_if_there(&settings.loaded.config, &settings.folders)? else {
        return Ok(Exit::Ok);
    };
    let there = count(&store, provider.as_deref(), ip).await?;
    if let (0, Some(name)) = (there, &provider)
        && settings.table.get(name).is_none()
    {
        return Err(unknown(&settings.table, name));
    }
    let what = format!(
        "{}{}{}",
        if there == 1 { "1 answer".to_owned() } else { format!("{} answers", thousands(there)) },
        provider.as_ref().map(|name| format!(" of {name}")).unwrap_or_default(),
        ip.map(|ip| format!(" about {ip}")).unwrap_or_default()
    );
    if there > 0 && !yes && !prompt::agrees(&format!("drop {what}? [y/N] "))? {
        voice::note("nothing was changed");
        return Ok(Exit::Ok);
    }
    store.clear(provider.map(Into::into), ip).await.map_err(store::failed)?;
    voice::note(format!("dropped {what}"));
    Ok(Exit::Ok)
}

/// How many answers are there to be dropped.
async fn count(store: &SqliteStore, provider: Option<&str>, ip: Option<IpAddr>) -> Result<u64, CliError> {
    let is_meant = |name: &str| provider.is_none_or(|provider| provider == name);
    if let Some(ip) = ip {
        let kept = store.explain(ip).await.map_err(store::failed)?;
        return Ok(kept.iter().filter(|kept| is_meant(&kept.provider)).count() as u64);
    }
    let stats = store.stats().await.map_err(store::failed)?;
    Ok(stats.iter().filter(|stats| is_meant(&stats.provider)).map(|stats| stats.answers).sum())
}

async fn prune(settings: &Settings) -> Result<Exit, CliError> {
    let config = &settings.loaded.config;
    let Some(store) = store::open_if_there(config, &settings.folders)? else { return Ok(Exit::Ok) };
    let pruned = store.prune(Timestamp::now(), config.cache.max_bytes).await.map_err(store::failed)?;
    voice::note(format!(
        "dropped {} answers out of date, {} for room, {} rows of the audit trail, {} results that were read",
        thousands(pruned.expired),
        thousands(pruned.evicted),
        thousands(pruned.audit),
        thousands(pruned.results)
    ));
    Ok(Exit::Ok)
}
