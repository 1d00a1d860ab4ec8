//! `sift quota`.

use super::args::{Global, Quota as Args};
use super::exit::Exit;
use super::flags::Flags;
use super::keyring::Keyring;
use super::lists::age;
use super::progress::clock;
use super::providers_of_run::lanes;
use super::report::{CliError, chain};
use super::settings::{Settings, unknown};
use super::stdout::{Grid, lines, print};
use super::{store, voice};
use crate::enrich::LaneSpec;
use crate::output::thousands;
use crate::provider::Quota;
use crate::store::{Account, Ledger as _, QuotaRow};
use jiff::Timestamp;
use serde::Serialize;
use std::fmt::Write as _;

/// Digits of a key's id that tell keys apart well enough for people.
const ID_DIGITS: usize = 8;

/// A line of `sift quota -f ndjson`: one window of one provider, asked with one key.
#[derive(Debug, Serialize)]
struct Row {
    provider: String,
    host: String,
    key_id: String,
    /// Whether a run would ask there, with this key.
    in_use: bool,
    /// `day`, `week` or `month`; left out where no such quota is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<&'static str>,
    /// Look-ups spent, those in flight included.
    used: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// With those that are kept for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<u64>,
    /// Look-ups that runs with `--job` and workers leave alone.
    reserve: u64,
    /// When the window is empty again, or gives the next look-up back.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<Timestamp>,
    /// What the provider last said was left, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    told_left: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    told_at: Option<Timestamp>,
    /// Nobody asks before.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<Timestamp>,
    /// The rates that are kept beside, as in `4/min`.
    rates: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    let settings = Settings::load(&global, Flags::default(), None)?;
    let (table, config) = (&settings.table, &settings.loaded.config);
    let lanes = Keyring::gather(table, config, &settings.env, &settings.folders, &[])
        .and_then(|keys| lanes(table, config, &keys, &[], None))
        .unwrap_or_else(|error| {
            // Who may read the store need not have the keys: what was spent can be told all the same.
            voice::warn(format!("{}: who would be asked is not known", chain(&error)));
            Vec::new()
        });
    let now = Timestamp::now();
    let told = match store::open_if_there(config, &settings.folders)? {
        Some(store) => store.quota(now).await.map_err(store::failed)?,
        None => Vec::new(),
    };
    let mut rows = rows(&told, &lanes);
    for name in &args.provider {
        if table.get(name).is_none() && rows.iter().all(|row| row.provider != *name) {
            return Err(unknown(table, name));
        }
    }
    rows.retain(|row| args.provider.is_empty() || args.provider.contains(&row.provider));
    if rows.is_empty() {
        voice::note("nobody was asked yet, and nobody is known who would be: see 'sift providers list'");
    }
    print(&if args.format.is_table() { table_of(&rows, now) } else { lines(&rows)? })?;
    Ok(Exit::Ok)
}

/// What the ledger has, and what the configuration allows of those that were never asked.
fn rows(told: &[QuotaRow], lanes: &[LaneSpec]) -> Vec<Row> {
    let lanes: Vec<(&LaneSpec, &Account)> = lanes.iter().map(|lane| (lane, &lane.keeping.account)).collect();
    let mut rows: Vec<Row> = told
        .iter()
        .map(|row| {
            let lane = lanes.iter().find(|(_, account)| {
                *account.provider == *row.provider && account.host == row.host && account.key_id == row.key_id
            });
            counted(row, lane.map(|(lane, _)| *lane))
        })
        .collect();
    for (lane, account) in &lanes {
        let is_known = |window: Option<&str>| {
            let key_id = account.key_id.to_string();
            rows.iter().any(|row| {
                row.provider == *account.provider
                    && row.host == *account.host
                    && row.key_id == key_id
                    && (window.is_none() || row.window == window)
            })
        };
        let mut new: Vec<Row> = lane
            .settings
            .quotas
            .iter()
            .filter(|quota| !is_known(Some(quota.window.word())))
            .map(|quota| unused(lane, account, Some(quota)))
            .collect();
        if new.is_empty() && !is_known(None) {
            new.push(unused(lane, account, None));
        }
        rows.append(&mut new);
    }
    let order = |row: &Row| (row.provider.clone(), !row.in_use, row.host.clone(), row.key_id.clone());
    rows.sort_by_key(order);
    rows
}

fn rates(lane: &LaneSpec) -> Vec<String> {
    lane.settings.rates.iter().map(ToString::to_string).collect()
}

fn counted(row: &QuotaRow, lane: Option<&LaneSpec>) -> Row {
    let (told_left, told_at) = row.told.unzip();
    Row {
        provider: row.provider.to_string(),
        host: row.host.to_string(),
        key_id: row.key_id.to_string(),
        in_use: lane.is_some(),
        window: Some(row.window.word()),
        used: row.used,
        limit: Some(row.limit),
        left: Some(row.left),
        reserve: row.reserve,
        resets_at: Some(row.resets_at),
        told_left,
        told_at,
        held_until: row.held_until,
        rates: lane.map(rates).unwrap_or_default(),
    }
}

fn unused(lane: &LaneSpec, account: &Account, quota: Option<&Quota>) -> Row {
    let limit = quota.map(|quota| u64::from(quota.count.get()));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1 of a count of 32 bits"
    )]
    let kept = quota.map_or(0, |quota| (f64::from(quota.count.get()) * lane.keeping.reserve).floor() as u64);
    Row {
        provider: account.provider.to_string(),
        host: account.host.to_string(),
        key_id: account.key_id.to_string(),
        in_use: true,
        window: quota.map(|quota| quota.window.word()),
        used: 0,
        limit,
        left: limit,
        reserve: kept,
        resets_at: None,
        told_left: None,
        told_at: None,
        held_until: None,
        rates: rates(lane),
    }
}

fn table_of(rows: &[Row], now: Timestamp) -> String {
    let heading = ["provider", "key", "window", "used", "limit", "left", "kept", "resets", "told", ""];
    let mut grid = Grid::new(&heading).right(&[3, 4, 5, 6]);
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), thousands);
    for row in rows {
        let resets = row.resets_at.filter(|at| *at > now).map(|at| clock(at, now));
        let told = row.told_left.zip(row.told_at).map(|(left, at)| format!("{left} left, {}", age(at, now)));
        grid.row(&[
            &row.provider,
            row.key_id.get(..ID_DIGITS).unwrap_or(&row.key_id),
            row.window.unwrap_or("-"),
            &thousands(row.used),
            &number(row.limit),
            &number(row.left),
            &thousands(row.reserve),
            resets.as_deref().unwrap_or("-"),
            told.as_deref().unwrap_or("-"),
            &remarks(row, now),
        ]);
    }
    grid.text()
}

/// What the columns do not say.
fn remarks(row: &Row, now: Timestamp) -> String {
    let mut text = String::new();
    if let Some(at) = row.held_until {
        // Writing to a String cannot fail.
        let _ = write!(text, "held off until {}", clock(at, now));
    }
    if !row.in_use {
        let _ = write!(text, "{}not in use: {}", if text.is_empty() { "" } else { "; " }, row.host);
    }
    if row.window.is_none() && text.is_empty() {
        let rates = if row.rates.is_empty() { String::new() } else { format!(", {}", row.rates.join(", ")) };
        let _ = write!(text, "no quota{rates}");
    }
    text
}
