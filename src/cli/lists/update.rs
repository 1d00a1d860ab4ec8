//! `sift lists update`.

use super::super::args::ListsUpdate;
use super::super::exit::Exit;
use super::super::local::{chosen, find};
use super::super::report::{CliError, chain};
use super::super::settings::Settings;
use super::super::stdout::print;
use super::super::{on_runtime, voice};
use super::{age, counted, shelf, shelf_error, transport};
use crate::enrich::{Downloaded, Transport, Validators};
use crate::output::thousands;
use crate::provider::{Card, Entries, ListDefinition, Refused, Shelf, ShelfError, accept};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// For one list, from the connection to the last byte: a slow line takes two minutes for 64 MiB at 4 Mbit/s.
const LIMIT: Duration = Duration::from_secs(120);

/// What became of one list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Another one is in force, with so many entries, after so many.
    Taken { entries: usize, before: Option<usize> },
    /// It is what it was.
    Unchanged,
    /// Not asked: the source wants to be left alone until then.
    TooSoon(Timestamp),
    /// It has no source: the user's own file.
    Own,
    /// `--from`: the folder holds no such file.
    Absent,
    /// The old one, if there is one, stays in force; why.
    Kept(String),
}

impl Came {
    /// How many entries were taken, or why none were.
    pub(super) fn taken(self) -> Result<usize, String> {
        match self {
            Self::Taken { entries, before: _ } => Ok(entries),
            Self::Kept(why) => Err(why),
            other => Err(format!("{other:?}")),
        }
    }
}

/// Runs it.
///
/// # Errors
/// See [`CliError`]. A list that could not be had is none: it is said, and the status is 3, or 4 if none could.
pub(super) fn run(args: &ListsUpdate, settings: &Settings) -> Result<Exit, CliError> {
    let lists = if args.names.is_empty() {
        chosen(&settings.loaded.config, &settings.table)?
    } else {
        args.names.iter().map(|name| find(&settings.table, name)).collect::<Result<_, _>>()?
    };
    let shelf = shelf(settings);
    let _lock = shelf.lock().map_err(shelf_error)?;
    let came = if let Some(folder) = &args.from {
        from_folder(&lists, folder, &shelf, args.take_smaller)?
    } else {
        let transport = transport(settings)?;
        let most = settings.loaded.config.lists.max_bytes;
        on_runtime(async { Ok(download_all(&lists, &transport, &shelf, most, args.take_smaller).await) })?
    };
    let mut text = String::new();
    let (mut good, mut bad) = (0, 0);
    for (list, came) in lists.iter().zip(came) {
        match &came {
            Came::Kept(why) => {
                bad += 1;
                let stays =
                    if shelf.holds(list) { "the old list stays in force" } else { "there is none in force" };
                voice::warn(format!("{}: {why}; {stays}", list.name));
            }
            _ => good += 1,
        }
        text += &line(list, &came);
    }
    print(&text)?;
    Ok(match (good, bad) {
        (_, 0) => Exit::Ok,
        (0, _) => Exit::Unanswered,
        _ => Exit::Partial,
    })
}

fn line(list: &ListDefinition, came: &Came) -> String {
    let said = match came {
        Came::Taken { entries, before: None } => counted(*entries),
        Came::Taken { entries, before: Some(before) } => {
            format!("{}, after {}", counted(*entries), thousands(*before as u64))
        }
        Came::Unchanged => "unchanged".to_owned(),
        Came::TooSoon(next) => format!("not asked: not again before {next:.0}"),
        Came::Own => format!(
            "your own file: 'sift lists update --from DIR {0}' takes {0}.txt of that folder for it",
            list.name
        ),
        Came::Absent => "not in the folder".to_owned(),
        Came::Kept(_) => "not taken".to_owned(),
    };
    format!("{:<20} {said}\n", list.name)
}

/// One after the other: there are a dozen, each from another host, and nobody waits at a prompt for the last second.
async fn download_all(
    lists: &[Arc<ListDefinition>],
    transport: &Transport,
    shelf: &Shelf,
    most: usize,
    take_smaller: bool,
) -> Vec<Came> {
    let mut came = Vec::new();
    for list in lists {
        let one = download(list, transport, shelf, most, take_smaller).await;
        came.push(one.unwrap_or_else(|error| Came::Kept(chain(&error))));
    }
    came
}

async fn download(
    list: &ListDefinition,
    transport: &Transport,
    shelf: &Shelf,
    most: usize,
    take_smaller: bool,
) -> Result<Came, ShelfError> {
    let Some(url) = &list.url else { return Ok(Came::Own) };
    let (mut card, now) = (shelf.card(list), Timestamp::now());
    if let Some(next) = card.asked_too_soon(list, now) {
        return Ok(Came::TooSoon(next));
    }
    let known = if shelf.holds(list) {
        Validators { etag: card.etag.clone(), last_modified: card.last_modified.clone() }
    } else {
        Validators::default()
    };
    match transport.download(url, &known, most, LIMIT, now).await {
        Ok(Downloaded::Unchanged) => {
            card = Card { asked: Some(now), confirmed: Some(now), not_before: None, ..card };
            shelf.note(list, &card)?;
            Ok(Came::Unchanged)
        }
        Ok(Downloaded::Whole { body, validators }) => {
            let Validators { etag, last_modified } = validators;
            let fresh = Card {
                etag,
                last_modified,
                fetched: Some(now),
                confirmed: Some(now),
                asked: Some(now),
                not_before: None,
                ..card.clone()
            };
            match put(list, &body, fresh, shelf, take_smaller)? {
                Came::Kept(why) => {
                    // The source was asked; what it sent is not taken, nor its tag.
                    shelf.note(list, &Card { asked: Some(now), ..card })?;
                    Ok(Came::Kept(why))
                }
                taken => Ok(taken),
            }
        }
        Err(failed) => {
            // A source that answered is asked again as late as one that sent its list.
            if failed.error.http_status.is_some() {
                card.asked = Some(now);
                card.not_before = failed
                    .wait
                    .and_then(|wait| now.checked_add(jiff::SignedDuration::try_from(wait).ok()?).ok());
                shelf.note(list, &card)?;
            }
            Ok(Came::Kept(failed.error.message.to_string()))
        }
    }
}

/// Puts bytes in force if they are the list.
pub(super) fn put(
    list: &ListDefinition,
    bytes: &[u8],
    card: Card,
    shelf: &Shelf,
    take_smaller: bool,
) -> Result<Came, ShelfError> {
    let before = shelf.load(list).ok().flatten().map(|entries| entries.len());
    let entries = Entries::read(&list.format, bytes);
    match accept(list, &entries, before) {
        Err(Refused::Shrunk { .. }) if take_smaller => {}
        Err(refused) => return Ok(Came::Kept(refused.why())),
        Ok(()) => {}
    }
    shelf.put(list, bytes, &Card { entries: entries.len(), ..card })?;
    Ok(Came::Taken { entries: entries.len(), before })
}

fn from_folder(
    lists: &[Arc<ListDefinition>],
    folder: &Path,
    shelf: &Shelf,
    take_smaller: bool,
) -> Result<Vec<Came>, CliError> {
    let unreadable = |path: &Path, source| CliError::File { what: "read", path: path.to_owned(), source };
    let entries = std::fs::read_dir(folder).map_err(|source| unreadable(folder, source))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let mut all = Vec::new();
    for list in lists {
        let named = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == list.name.as_str());
        let came = match paths.iter().find(named) {
            None => Came::Absent,
            Some(path) => file(list, path, shelf, take_smaller).map_err(|source| unreadable(path, source))?,
        };
        all.push(came);
    }
    Ok(all)
}

/// A file counts as of when it was last written: that is when somebody downloaded it.
fn file(list: &ListDefinition, path: &Path, shelf: &Shelf, take_smaller: bool) -> std::io::Result<Came> {
    let bytes = std::fs::read(path)?;
    let written = Timestamp::try_from(std::fs::metadata(path)?.modified()?).unwrap_or_default();
    let card = shelf.card(list);
    if let Some(confirmed) = card.confirmed.filter(|confirmed| *confirmed >= written && shelf.holds(list)) {
        let since = age(confirmed, Timestamp::now());
        return Ok(if confirmed == written {
            Came::Unchanged
        } else {
            Came::Kept(format!("the file is older than what is in force, which is of {since}"))
        });
    }
    let card =
        Card { fetched: Some(written), confirmed: Some(written), etag: None, last_modified: None, ..card };
    put(list, &bytes, card, shelf, take_smaller).map_err(std::io::Error::other)
}
