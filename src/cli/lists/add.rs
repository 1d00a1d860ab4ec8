//! `sift lists add`: a definition file of the user's, and the list itself.

use super::super::args::{ListsAdd, Says, Written};
use super::super::exit::Exit;
use super::super::report::CliError;
use super::super::settings::{Settings, definitions};
use super::super::{on_runtime, voice};
use super::{counted, shelf, shelf_error, transport, update};
use crate::enrich::{Downloaded, Validators};
use crate::output::write_whole;
use crate::provider::{Card, Entries, Format, ListDefinition, Table};
use jiff::Timestamp;
use reqwest::Url;
use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;
use toml::Value;

/// For the first download; see `update`.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs it.
///
/// # Errors
/// A name that is taken, a source that cannot be had, or one in which no address was found.
pub(super) fn run(args: &ListsAdd, settings: &Settings) -> Result<Exit, CliError> {
    let table = &settings.table;
    if table.list(&args.name).is_some() || table.get(&args.name).is_some() {
        let tip =
            format!("choose another name, or take that one away first: sift lists remove {}", args.name);
        return Err(CliError::usage(format!("there is a provider or a list named '{}'", args.name), tip));
    }
    let url = Url::parse(&args.source).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
    let now = Timestamp::now();
    let (bytes, validators) = match &url {
        Some(url) => fetch(url, settings, now)?,
        None => (read(Path::new(&args.source), settings)?, Validators::default()),
    };
    let format = format(args, &bytes)?;
    let folder = definitions(&settings.folders);
    let path = folder.join(format!("{}.toml", args.name));
    let list = write(args, &format, url.as_ref(), &folder, &path)?;
    let shelf = shelf(settings);
    let _lock = shelf.lock().map_err(shelf_error)?;
    let card = Card {
        etag: validators.etag,
        last_modified: validators.last_modified,
        fetched: Some(now),
        confirmed: Some(now),
        asked: url.is_some().then_some(now),
        ..Card::blank(&list)
    };
    let came = update::put(&list, &bytes, card, &shelf, true).map_err(shelf_error);
    let n = came
        .and_then(|came| {
            let tip = "see 'sift lists add --help' for the forms";
            came.taken().map_err(|why| CliError::usage(why, tip))
        })
        .inspect_err(|_| {
            // Without its list the definition is of no use.
            let _ = std::fs::remove_file(&path);
        })?;
    voice::note(format!("{}: {}; the definition is {}", args.name, counted(n), path.display()));
    Ok(Exit::Ok)
}

fn fetch(url: &Url, settings: &Settings, now: Timestamp) -> Result<(Vec<u8>, Validators), CliError> {
    let transport = transport(settings)?;
    let most = settings.loaded.config.lists.max_bytes;
    let known = Validators::default();
    let came = on_runtime(async { Ok(transport.download(url, &known, most, LIMIT, now).await) })?;
    match came {
        Ok(Downloaded::Whole { body, validators }) => Ok((body, validators)),
        Ok(Downloaded::Unchanged) => Err(CliError::Bug("a first download is never unchanged".to_owned())),
        Err(failed) => {
            let host = url.host_str().unwrap_or_default();
            Err(CliError::usage(format!("{host}: {}", failed.error.message), "check the URL"))
        }
    }
}

fn read(path: &Path, settings: &Settings) -> Result<Vec<u8>, CliError> {
    use std::io::Read as _;
    let failed = |source| CliError::File { what: "read", path: path.to_owned(), source };
    let most = settings.loaded.config.lists.max_bytes;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > most {
        let message = format!("{} is longer than {most} bytes", path.display());
        return Err(CliError::usage(message, "raise [lists] max_size"));
    }
    Ok(bytes)
}

/// As it was said, or found by looking.
fn format(args: &ListsAdd, bytes: &[u8]) -> Result<Format, CliError> {
    let said = match args.form {
        None => {
            return Format::guess(bytes).ok_or_else(|| {
                CliError::usage(
                    format!("no addresses were found in {}", args.source),
                    "say how it is written: --form csv --column 2, --form json --field ip",
                )
            });
        }
        Some(Written::Plain) => Format::Plain,
        Some(Written::Csv) => Format::Csv { column: usize::from(args.column.unwrap_or_default()) },
        Some(Written::Json) => Format::Json { field: args.field.clone(), list: args.member.clone() },
        Some(Written::JsonLines) => {
            let Some(field) = args.field.clone() else {
                return Err(CliError::usage("--form json-lines needs --field", "as in --field ip"));
            };
            Format::JsonLines { field }
        }
    };
    let entries = Entries::read(&said, bytes);
    if entries.is_empty() {
        let message = format!("no addresses were found in {} in that form", args.source);
        return Err(CliError::usage(message, "leave --form out to have it found by looking"));
    }
    Ok(said)
}

/// Writes the definition, and reads it as every other one is read.
fn write(
    args: &ListsAdd,
    format: &Format,
    url: Option<&Url>,
    folder: &Path,
    path: &Path,
) -> Result<ListDefinition, CliError> {
    let failed = |source| CliError::File { what: "write", path: path.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    write_whole(path, definition(args, format, url).as_bytes(), 0o600).map_err(failed)?;
    Table::read_list(path).map_err(|error| {
        let _ = std::fs::remove_file(path);
        CliError::Definitions(error)
    })
}

fn definition(args: &ListsAdd, format: &Format, url: Option<&Url>) -> String {
    let (verdict, role) = match (args.known_good, args.verdict) {
        (true, _) => ("benign", "reputation"),
        (false, Says::Malicious) => ("malicious", "reputation"),
        (false, Says::Suspicious) => ("suspicious", "reputation"),
        (false, Says::Unknown) => ("unknown", "context"),
    };
    // Writing to a String cannot fail.
    let mut text =
        format!("# Made by 'sift lists add'.\ntitle = {}\nrole = \"{role}\"\n\n[list]\n", quoted(&args.name));
    let mut line = |key: &str, value: Value| {
        let _ = writeln!(text, "{key} = {value}");
    };
    if let Some(url) = url {
        line("url", url.as_str().into());
    }
    match format {
        Format::Plain => line("format", "plain".into()),
        Format::ExitAddresses => line("format", "tor-exits".into()),
        Format::Csv { column } => {
            line("format", "csv".into());
            line("column", i64::try_from(*column).unwrap_or_default().into());
        }
        Format::JsonLines { field } => {
            line("format", "json-lines".into());
            line("field", field.as_str().into());
        }
        Format::Json { field, list } => {
            line("format", "json".into());
            if let Some(field) = field {
                line("field", field.as_str().into());
            }
            if let Some(list) = list {
                line("member", list.as_str().into());
            }
        }
    }
    line("verdict", verdict.into());
    if args.known_good {
        line("known_good", true.into());
    }
    if let Some(score) = args.score {
        line("score", i64::from(score).into());
    }
    if !args.tag.is_empty() {
        line("tags", args.tag.clone().into());
    }
    if let Some(every) = &args.every {
        line("every", every.as_str().into());
    }
    text
}

fn quoted(text: &str) -> Value {
    text.into()
}
