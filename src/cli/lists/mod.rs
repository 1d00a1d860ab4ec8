//! `sift lists`.

mod add;
mod update;

use super::args::{Global, ListForm, Lists, ListsCommand};
use super::exit::Exit;
use super::flags::Flags;
use super::local::{chosen, data_dir, find, mmdb_paths};
use super::report::CliError;
use super::settings::Settings;
use super::stdout::{Grid, lines, print};
use super::voice;
use crate::enrich::{Transport, TransportSettings};
use crate::output::thousands;
use crate::plan::Guard;
use crate::provider::{ListDefinition, Mmdb, Origin, Shelf, ShelfError};
use jiff::Timestamp;
use serde::Serialize;

/// A line of `sift lists list -f ndjson`.
#[derive(Debug, Serialize)]
struct Row {
    /// `list` or `mmdb`.
    kind: &'static str,
    name: String,
    title: String,
    /// `in force`, `not downloaded`, `out of date`, `broken`, `not used`.
    state: &'static str,
    /// What an address on it is.
    says: String,
    entries: usize,
    /// When its source last confirmed it, or when the file was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<Timestamp>,
    /// Where it comes from.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    licence: Option<String>,
    builtin: bool,
}

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) fn run(args: Lists, global: &Global) -> Result<Exit, CliError> {
    let settings = Settings::load(global, Flags::default(), None)?;
    match args.command {
        ListsCommand::Update(args) => update::run(&args, &settings),
        ListsCommand::List { format } => list(format, &settings),
        ListsCommand::Add(args) => add::run(&args, &settings),
        ListsCommand::Remove { names } => remove(&names, &settings),
    }
}

fn shelf(settings: &Settings) -> Shelf {
    Shelf::below(&data_dir(&settings.loaded.config, &settings.folders))
}

/// The client for downloads: the same as for a run's.
fn transport(settings: &Settings) -> Result<Transport, CliError> {
    let of_run = super::lookups::transport_settings(&settings.loaded.config, &settings.env, &[]);
    Ok(Transport::new(&TransportSettings { tls: true, ..of_run }, Guard::default())?)
}

fn list(form: ListForm, settings: &Settings) -> Result<Exit, CliError> {
    let (config, now) = (&settings.loaded.config, Timestamp::now());
    let shelf = shelf(settings);
    let used: Vec<String> = chosen(config, &settings.table)?.iter().map(|list| list.name.clone()).collect();
    let mut rows: Vec<Row> =
        settings.table.lists().map(|list| row(list, &shelf, used.contains(&list.name), now)).collect();
    let data = data_dir(config, &settings.folders);
    rows.extend(mmdb_paths(config, &data).iter().map(|path| mmdb_row(path)));
    if !form.is_table() {
        print(&lines(&rows)?)?;
        return Ok(Exit::Ok);
    }
    let mut grid = Grid::new(&["name", "state", "entries", "of", "says", "from"]).right(&[2]);
    for row in &rows {
        let entries = if row.entries > 0 { thousands(row.entries as u64) } else { "-".to_owned() };
        let of = row.confirmed.map_or_else(|| "-".to_owned(), |at| age(at, now));
        grid.row(&[&row.name, row.state, &entries, &of, &row.says, &row.source]);
    }
    print(&grid.text())?;
    Ok(Exit::Ok)
}

fn row(list: &ListDefinition, shelf: &Shelf, is_used: bool, now: Timestamp) -> Row {
    let card = shelf.card(list);
    let loaded = shelf.load(list);
    let state = match &loaded {
        Err(_) => "broken",
        Ok(None) => "not downloaded",
        Ok(Some(_)) if !is_used => "not used",
        Ok(Some(_)) if card.expired(list, now).is_some() => "out of date",
        Ok(Some(_)) => "in force",
    };
    Row {
        kind: "list",
        name: list.name.clone(),
        title: list.title.clone(),
        state,
        says: if list.known_good { "known good".to_owned() } else { list.answer().verdict.to_string() },
        entries: loaded.ok().flatten().map_or(0, |entries| entries.len()),
        confirmed: card.confirmed,
        source: list.url.as_ref().map_or_else(|| "a file".to_owned(), ToString::to_string),
        licence: list.licence.clone(),
        builtin: list.origin == Origin::Builtin,
    }
}

fn mmdb_row(path: &std::path::Path) -> Row {
    let file = Mmdb::open(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let built = file.as_ref().ok().and_then(|file| Timestamp::try_from(file.built()?).ok());
    Row {
        kind: "mmdb",
        title: file.as_ref().map(|file| file.kind().to_owned()).unwrap_or_default(),
        state: if file.is_ok() { "in force" } else { "broken" },
        name,
        says: "country, network".to_owned(),
        entries: 0,
        confirmed: built,
        source: path.display().to_string(),
        licence: None,
        builtin: false,
    }
}

/// `1 entry`, `1,200 entries`.
fn counted(entries: usize) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{} entries", thousands(entries as u64)) }
}

/// `just now`, `40 min ago`, `7 h ago`, `3 days ago`.
pub(in crate::cli) fn age(at: Timestamp, now: Timestamp) -> String {
    match now.duration_since(at).as_secs() {
        ..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

fn remove(names: &[String], settings: &Settings) -> Result<Exit, CliError> {
    let shelf = shelf(settings);
    let lists = names.iter().map(|name| find(&settings.table, name)).collect::<Result<Vec<_>, _>>()?;
    let _lock = shelf.lock().map_err(shelf_error)?;
    for list in lists {
        shelf.remove(&list.name).map_err(shelf_error)?;
        if let Origin::File(path) = &list.origin {
            std::fs::remove_file(path).map_err(|source| CliError::File {
                what: "remove",
                path: path.clone(),
                source,
            })?;
        }
        voice::note(format!("{} is gone", list.name));
    }
    Ok(Exit::Ok)
}

fn shelf_error(error: ShelfError) -> CliError {
    match error {
        ShelfError::Io { what, path, source } => CliError::File { what, path, source },
        other => CliError::usage(other.to_string(), "try again when it has ended"),
    }
}
