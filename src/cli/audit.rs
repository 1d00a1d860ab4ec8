//! `sift audit`.

use super::address;
use super::args::{Audit as Args, Global};
use super::exit::Exit;
use super::flags::{Flags, moment};
use super::report::CliError;
use super::settings::{Settings, unknown};
use super::stdout::{lines, print};
use super::{store, voice};
use crate::output::harmless;
use crate::store::{Audit as _, AuditFilter, AuditRow, Who};
use jiff::Timestamp;
use serde::Serialize;
use std::fmt::Write as _;
use std::net::IpAddr;

/// A line of `sift audit -f ndjson`.
#[derive(Debug, Serialize)]
struct Row {
    at: Timestamp,
    user: String,
    uid: u32,
    /// `person`, `job` or `worker`.
    who: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    provider: String,
    host: String,
    key_id: String,
    ip: IpAddr,
    /// `found`, `not_found`, or a word of the records' `error.type`; null while it is in flight, or if its process died.
    outcome: Option<String>,
}

impl From<AuditRow> for Row {
    fn from(row: AuditRow) -> Self {
        let AuditRow { id: _, at, user, uid, who, provider, host, key_id, ip, outcome } = row;
        let (who, job) = match who {
            Who::Person => ("person", None),
            Who::Job(name) => ("job", Some(name)),
            Who::Worker(name) => ("worker", name),
        };
        Self {
            at,
            user: user.to_string(),
            uid,
            who,
            job: job.map(|name| name.to_string()),
            provider: provider.to_string(),
            host: host.to_string(),
            key_id: key_id.to_string(),
            ip,
            outcome: outcome.map(|word| word.to_string()),
        }
    }
}

/// Runs it: page by page, so that a long trail takes no memory and its beginning shows at once.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    let settings = Settings::load(&global, Flags::default(), None)?;
    let now = Timestamp::now();
    let filter = AuditFilter {
        since: args.since.as_deref().map(|text| moment("--since", text, now)).transpose()?,
        until: args.until.as_deref().map(|text| moment("--until", text, now)).transpose()?,
        provider: args.provider.as_deref().map(Into::into),
        user: args.user.as_deref().map(Into::into),
        job: args.job.as_deref().map(Into::into),
        ip: args.ip.as_deref().map(address::one).transpose()?,
    };
    let Some(store) = store::open_if_there(&settings.loaded.config, &settings.folders)? else {
        return Ok(Exit::Ok);
    };
    let is_table = args.format.is_table();
    let (mut after, mut is_empty) = (0, true);
    loop {
        let page = store.audit(filter.clone(), after).await.map_err(store::failed)?;
        let rows: Vec<Row> = page.rows.into_iter().map(Row::from).collect();
        if is_table {
            print(&table(&rows, is_empty))?;
        } else {
            print(&lines(&rows)?)?;
        }
        is_empty &= rows.is_empty();
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    if is_empty {
        match args.provider.filter(|name| settings.table.get(name).is_none()) {
            Some(name) => return Err(unknown(&settings.table, &name)),
            None => voice::note("no request fits"),
        }
    }
    Ok(Exit::Ok)
}

/// The columns are as wide as they mostly have to be: what comes on later pages is not known yet.
fn table(rows: &[Row], with_heading: bool) -> String {
    let mut text = String::new();
    let mut line = |cells: [&str; 6]| {
        let [at, user, who, provider, ip, outcome] = cells.map(harmless);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{at:<20}  {user:<10}  {who:<12}  {provider:<12}  {ip:<15}  {outcome}");
    };
    if with_heading && !rows.is_empty() {
        line(["time", "user", "for", "provider", "address", "outcome"]);
    }
    for row in rows {
        let who = match (row.who, &row.job) {
            ("worker", Some(job)) => format!("worker {job}"),
            (_, Some(job)) => job.clone(),
            (who, None) => who.to_owned(),
        };
        let (at, ip) = (format!("{:.0}", row.at), row.ip.to_string());
        // Where nobody said what the user is called, the number says who it was.
        let user = if row.user.is_empty() { row.uid.to_string() } else { row.user.clone() };
        line([&at, &user, &who, &row.provider, &ip, row.outcome.as_deref().unwrap_or("-")]);
    }
    text
}
