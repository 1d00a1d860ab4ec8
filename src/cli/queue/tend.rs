//! What waits in the queue, what was given up, and what becomes of it.

use super::super::args::{ListForm, Purged};
use super::super::exit::Exit;
use super::super::lists::age;
use super::super::progress::clock;
use super::super::report::CliError;
use super::super::settings::{Settings, unknown};
use super::super::stdout::{Grid, lines, print};
use super::super::{prompt, store, voice};
use crate::enrich::outcome::{ErrorBody, Outcome};
use crate::enrich::unpack;
use crate::output::thousands;
use crate::provider::ErrorType;
use crate::store::{Ended, FailedTask, Purge, Queue, QueueStatus, SqliteStore};
use jiff::Timestamp;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;

/// Dead letters that are read at once.
const PAGE: u32 = 1024;

/// The store, where there is one.
fn open(settings: &Settings) -> Result<Option<Arc<SqliteStore>>, CliError> {
    store::open_if_there(&settings.loaded.config, &settings.folders)
}

/// A line of `sift queue status -f ndjson`.
#[derive(Debug, Serialize)]
struct Row {
    provider: String,
    /// To be asked now.
    ready: u64,
    /// To be asked later.
    delayed: u64,
    /// A worker has them.
    leased: u64,
    /// Given up.
    dead: u64,
    /// When the next of those that wait, or that a worker has, falls due.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_due: Option<Timestamp>,
    /// When the oldest that is not ended was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Timestamp>,
}

impl From<QueueStatus> for Row {
    fn from(status: QueueStatus) -> Self {
        let QueueStatus { provider, ready, delayed, leased, dead, next_due, oldest } = status;
        Self { provider: provider.to_string(), ready, delayed, leased, dead, next_due, oldest }
    }
}

pub(super) async fn status(settings: &Settings, form: ListForm) -> Result<Exit, CliError> {
    let Some(store) = open(settings)? else { return Ok(Exit::Ok) };
    let now = Timestamp::now();
    let rows: Vec<Row> = store.status(now).await.map_err(store::failed)?.into_iter().map(Row::from).collect();
    if !form.is_table() {
        print(&lines(&rows)?)?;
        return Ok(Exit::Ok);
    }
    if rows.is_empty() {
        voice::note("the queue is empty");
    } else {
        let mut grid = Grid::new(&["provider", "ready", "delayed", "until", "asked now", "dead", "oldest"])
            .right(&[1, 2, 4, 5]);
        let word = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        for row in &rows {
            let until = row.next_due.filter(|_| row.delayed > 0).map(|at| clock(at, now));
            let oldest = row.oldest.map(|at| age(at, now));
            let [ready, delayed, leased, dead] =
                [row.ready, row.delayed, row.leased, row.dead].map(thousands);
            grid.row(&[&row.provider, &ready, &delayed, &word(until), &leased, &dead, &word(oldest)]);
        }
        print(&grid.text())?;
    }
    if !store.results(None, 1).await.map_err(store::failed)?.is_empty() {
        voice::note("there are results that nobody has read: sift queue results");
    }
    Ok(Exit::Ok)
}

/// A line of `sift queue failed -f ndjson`.
#[derive(Debug, Serialize)]
struct Dead {
    id: i64,
    provider: String,
    ip: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// `failed`, `expired` or `lost`.
    why: &'static str,
    error: DeadError,
    /// Attempts that failed.
    attempts: u32,
    /// Times a worker took it and was never heard of again.
    lost: u32,
    at: Timestamp,
}

/// As in a record.
#[derive(Debug, Serialize)]
struct DeadError {
    #[serde(rename = "type")]
    error: ErrorType,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
}

impl From<FailedTask> for Dead {
    fn from(failed: FailedTask) -> Self {
        let FailedTask { id, task, attempts, deliveries, why, at } = failed;
        let word = match &why {
            Ended::Failed(_) | Ended::Completed(_) => "failed",
            Ended::Expired => "expired",
            Ended::Lost => "lost",
        };
        let ErrorBody { error, message, http_status, .. } = error_of(&task.provider, &why);
        Self {
            id,
            provider: task.provider.to_string(),
            ip: task.ip,
            job: task.job.as_deref().map(str::to_owned),
            why: word,
            error: DeadError { error, message: message.to_string(), http_status },
            attempts,
            lost: deliveries,
            at,
        }
    }
}

/// What a task that ended without an answer ended with.
pub(super) fn error_of(provider: &Arc<str>, why: &Ended) -> ErrorBody {
    let unread = || ErrorBody::new(ErrorType::Internal, "what it failed with cannot be read");
    match why {
        Ended::Failed(bytes) | Ended::Completed(bytes) => match unpack(Arc::clone(provider), bytes) {
            Some(part) => match part.outcome {
                Outcome::Failed { error, .. } => error,
                Outcome::Answered { .. } => unread(),
            },
            None => unread(),
        },
        Ended::Expired => {
            ErrorBody::new(ErrorType::Deadline, "not asked: its time was over (--expires) before its turn")
        }
        Ended::Lost => ErrorBody::new(
            ErrorType::Internal,
            "not asked: time and again the worker that took it was never heard of again",
        ),
    }
}

pub(super) async fn failed(settings: &Settings, form: ListForm) -> Result<Exit, CliError> {
    let Some(store) = open(settings)? else { return Ok(Exit::Ok) };
    let now = Timestamp::now();
    let heading = ["provider", "ip", "given up", "attempts", "error", "why"];
    let mut grid = Grid::new(&heading).right(&[3]);
    let (mut after, mut n) = (0, 0_u64);
    loop {
        let page = store.failed(after, PAGE).await.map_err(store::failed)?;
        let Some(last) = page.last() else { break };
        after = last.id;
        n += page.len() as u64;
        let rows: Vec<Dead> = page.into_iter().map(Dead::from).collect();
        if !form.is_table() {
            print(&lines(&rows)?)?;
            continue;
        }
        for row in &rows {
            let (ip, attempts) = (row.ip.to_string(), row.attempts.to_string());
            let error = row.error.error.as_str();
            grid.row(&[&row.provider, &ip, &age(row.at, now), &attempts, error, &row.error.message]);
        }
    }
    match (n, form.is_table()) {
        (0, _) => voice::note("nothing was given up"),
        (_, true) => print(&grid.text())?,
        (_, false) => {}
    }
    Ok(Exit::Ok)
}

pub(super) async fn retry(settings: &Settings, provider: Option<String>) -> Result<Exit, CliError> {
    let Some(store) = open(settings)? else { return Ok(Exit::Ok) };
    let now = Timestamp::now();
    if let Some(name) = provider.as_deref().filter(|name| settings.table.get(name).is_none()) {
        let rows = store.status(now).await.map_err(store::failed)?;
        if rows.iter().all(|row| &*row.provider != name) {
            return Err(unknown(&settings.table, name));
        }
    }
    let n = store.retry(provider.map(Into::into), now).await.map_err(store::failed)?;
    voice::note(match n {
        0 => "nothing was given up".to_owned(),
        n => format!("{} can be asked again: sift worker", tasks(n)),
    });
    Ok(Exit::Ok)
}

pub(super) async fn purge(settings: &Settings, what: Purged, yes: bool) -> Result<Exit, CliError> {
    let Some(store) = open(settings)? else { return Ok(Exit::Ok) };
    let now = Timestamp::now();
    let rows = store.status(now).await.map_err(store::failed)?;
    let open: u64 = rows.iter().map(|row| row.ready + row.delayed + row.leased).sum();
    let dead: u64 = rows.iter().map(|row| row.dead).sum();
    let (words, purge) = match what {
        Purged::Open => (format!("{} that were never asked", tasks(open)), Purge::Open),
        Purged::Dead => (format!("{} that were given up", tasks(dead)), Purge::Dead),
        Purged::Read => ("the results that were read".to_owned(), Purge::Read),
        Purged::All => (format!("{}, and all results, read or not", tasks(open + dead)), Purge::All),
    };
    if !yes && !prompt::agrees(&format!("remove {words}? [y/N] "))? {
        voice::note("nothing was changed");
        return Ok(Exit::Ok);
    }
    let n = store.purge(purge, now).await.map_err(store::failed)?;
    let kind = match what {
        Purged::Open | Purged::Dead => "tasks",
        Purged::Read => "results",
        Purged::All => "tasks and results",
    };
    voice::note(format!("removed {} {kind}", thousands(n)));
    Ok(Exit::Ok)
}

fn tasks(n: u64) -> String {
    format!("{} {}", thousands(n), if n == 1 { "task" } else { "tasks" })
}
