//! The lists and MMDB files of a run.

use super::report::CliError;
use super::voice;
use crate::config::{Config, Folders};
use crate::plan::Local;
use crate::provider::{Entries, ListDefinition, Lists, Mmdb, Shelf, Table, nearest};
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where lists and MMDB files lie.
pub(super) fn data_dir(config: &Config, folders: &Folders) -> PathBuf {
    config.data_dir.clone().unwrap_or_else(|| folders.data.clone())
}

/// Reads them. What cannot be used is said, and left aside: the run goes on without it.
///
/// # Errors
/// A list that is named in the configuration and that nobody knows.
pub(super) fn open(
    config: &Config,
    folders: &Folders,
    table: &Table,
    now: Timestamp,
) -> Result<Local, CliError> {
    let data = data_dir(config, folders);
    let shelf = Shelf::below(&data);
    let mut read = Vec::new();
    let mut confirmed = HashMap::new();
    let mut old = Vec::new();
    for list in chosen(config, table)? {
        let card = shelf.card(&list);
        if card.expired(&list, now).is_some() {
            old.push(list.name.clone());
            continue;
        }
        if let Some(entries) = load(&shelf, &list, !config.lists.only.is_empty()) {
            confirmed.insert(list.name.clone(), card.confirmed.unwrap_or_default());
            read.push((list, entries));
        }
    }
    if !old.is_empty() {
        let details = [("tip", format!("renew them: sift lists update {}", old.join(" ")))];
        voice::warn_with(&format!("lists out of date, and left aside: {}", old.join(", ")), &details);
    }
    if read.len() > Lists::MAX {
        voice::warn(format!("only the first {} of {} lists count", Lists::MAX, read.len()));
    }
    let at = |list: &ListDefinition| confirmed.get(&list.name).copied().unwrap_or_default();
    let local = Local::new(Lists::build(read), at, files(config, &data));
    Ok(local.asking_known_good(config.lists.ask_known_good))
}

/// The lists that count, by name.
///
/// # Errors
/// A name that no list has.
pub(super) fn chosen(config: &Config, table: &Table) -> Result<Vec<Arc<ListDefinition>>, CliError> {
    if config.lists.only.is_empty() {
        return Ok(table.lists().map(Arc::clone).collect());
    }
    config.lists.only.iter().map(|name| find(table, name)).collect()
}

/// A list by its name.
///
/// # Errors
/// A name that no list has, with the nearest one.
pub(super) fn find(table: &Table, name: &str) -> Result<Arc<ListDefinition>, CliError> {
    table.list(name).map(Arc::clone).ok_or_else(|| {
        let tip = nearest(name, table.lists().map(|list| list.name.as_str())).map_or_else(
            || "see the lists with 'sift lists list'".to_owned(),
            |near| format!("did you mean '{near}'?"),
        );
        CliError::usage(format!("there is no list named '{name}'"), tip)
    })
}

/// The list in force; none where there is none, which is said only of one that was asked for by name.
fn load(shelf: &Shelf, list: &ListDefinition, is_named: bool) -> Option<Entries> {
    match shelf.load(list) {
        Ok(None) if is_named => {
            let details = [("tip", format!("sift lists update {}", list.name))];
            voice::warn_with(&format!("{} was never downloaded", list.name), &details);
            None
        }
        Ok(entries) => entries,
        Err(error) => {
            voice::warn(format!("{error}; the list is left aside"));
            None
        }
    }
}

/// The MMDB files that are named, or all in the folder.
fn files(config: &Config, data: &Path) -> Vec<Mmdb> {
    let mut found = Vec::new();
    for path in mmdb_paths(config, data) {
        match Mmdb::open(&path) {
            Ok(file) => found.push(file),
            Err(error) => voice::warn(format!("{error}; it is left aside")),
        }
    }
    found
}

/// Their paths, sorted where they were not named.
pub(super) fn mmdb_paths(config: &Config, data: &Path) -> Vec<PathBuf> {
    if !config.lists.mmdb.is_empty() {
        return config.lists.mmdb.clone();
    }
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "mmdb") && path.is_file());
    paths.sort();
    paths
}
