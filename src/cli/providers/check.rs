//! `sift providers check`: definitions before they are trusted with a key.

use super::super::args::{Global, ProvidersCheck};
use super::super::exit::Exit;
use super::super::flags::Flags;
use super::super::keyring::Keyring;
use super::super::report::{CliError, chain, say};
use super::super::settings::Settings;
use super::super::stdout::{Grid, print};
use super::super::{ask_once, on_runtime, voice};
use crate::provider::{Definition, ErrorType, Filters, Origin, Reading, Reply, Sandbox, Table};
use reqwest::header::HeaderMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// A saved reply is read up to this size; the largest that a provider may send by default is 2 MiB.
const MOST_BYTES: u64 = 64 << 20;

/// Runs it.
///
/// # Errors
/// See [`CliError`]; a faulty definition is said, and ends in status 2.
pub(super) fn run(args: &ProvidersCheck, global: &Global) -> Result<Exit, CliError> {
    let settings = Settings::load(global, Flags::default(), None)?;
    let mut chosen = Vec::new();
    let mut is_sound = true;
    for name in &args.names {
        let is_file = name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml");
        if !is_file {
            chosen.push(Arc::clone(settings.provider(name)?));
            continue;
        }
        match Table::read_file(Path::new(name)) {
            Ok(definition) => chosen.push(Arc::new(definition)),
            Err(faults) => {
                is_sound = false;
                faults.0.iter().for_each(|fault| say(fault, &[]));
            }
        }
    }
    if args.names.is_empty() {
        is_sound &= !settings.is_missing_some;
        chosen.extend(settings.table.iter().cloned());
    }
    if args.live {
        return live(&settings, args);
    }
    if let Some(reply) = &args.reply {
        return read(&settings, &chosen, args, reply, is_sound);
    }
    let mut grid = Grid::new(&["provider", "check", "sends", "to"]);
    for definition in &chosen {
        let checked = filters(&settings, definition);
        is_sound &= checked.is_ok();
        let word = checked.map_or_else(|error| chain(&error), |_| "ok".to_owned());
        let to = if definition.is_placed() { definition.host() } else { "nowhere yet: set base_url" };
        grid.row(&[&name(definition), &word, &definition.sends, to]);
    }
    print(&grid.text())?;
    Ok(if is_sound { Exit::Ok } else { Exit::Usage })
}

/// One look-up each, over the way that every look-up takes.
fn live(settings: &Settings, args: &ProvidersCheck) -> Result<Exit, CliError> {
    let config = &settings.loaded.config;
    let keys = Keyring::gather(&settings.table, config, &settings.env, &settings.folders, &args.names)?;
    let told = on_runtime(ask_once::ask(settings, &keys, &args.names))?;
    let mut grid = Grid::new(&["provider", "answer"]);
    for one in &told {
        let word = match &one.outcome {
            Ok(took) => format!("ok, after {} ms", took.as_millis()),
            Err(error) => format!("{}: {}", error.error, error.message),
        };
        grid.row(&[&one.provider, &word]);
    }
    print(&grid.text())?;
    Ok(ask_once::exit(&told))
}

fn name(definition: &Definition) -> String {
    match &definition.origin {
        Origin::Builtin => definition.name.clone(),
        Origin::File(path) => format!("{} ({})", definition.name, path.display()),
    }
}

fn filters(settings: &Settings, definition: &Arc<Definition>) -> Result<Filters, CliError> {
    let definitions = [Arc::clone(definition)];
    Filters::new(&definitions, Sandbox::this_program(), settings.loaded.config.verdict)
        .map_err(CliError::Definitions)
}

/// Whether the filter passes the reply over because it is told no address to compare with.
fn needs_address(filters: &Filters, reading: &Reading, reply: &Reply) -> bool {
    let any = std::net::IpAddr::from([203, 0, 113, 7]);
    matches!(reading, Reading::Failure(failure) if failure.error == ErrorType::InvalidResponse)
        && matches!(filters.read_here(0, Some(any), reply), Reading::Answer(_))
}

/// What the filter makes of a saved reply, as JSON.
fn read(
    settings: &Settings,
    chosen: &[Arc<Definition>],
    args: &ProvidersCheck,
    path: &Path,
    is_sound: bool,
) -> Result<Exit, CliError> {
    let [definition] = chosen else {
        if !is_sound {
            return Ok(Exit::Usage);
        }
        return Err(CliError::usage(
            "--reply is read by one provider",
            "name the one: sift providers check NAME --reply FILE",
        ));
    };
    let failed = |source| CliError::File { what: "read", path: path.to_owned(), source };
    let mut body = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut body))
        .map_err(failed)?;
    let reply = Reply { status: args.status, headers: HeaderMap::new(), body };
    let filters = filters(settings, definition)?;
    let reading = filters.read_here(0, args.ip, &reply);
    if args.ip.is_none() && needs_address(&filters, &reading, &reply) {
        let tip = "give the one that was asked about: --ip 203.0.113.7".to_owned();
        voice::warn_with("the filter reads this reply for an address alone", &[("tip", tip)]);
    }
    let (json, exit) = match reading {
        Reading::Answer(answer) => (serde_json::to_value(answer), Exit::Ok),
        Reading::Failure(failure) => {
            let error = serde_json::json!({ "type": failure.error.as_str(), "message": failure.message });
            (Ok(serde_json::json!({ "error": error })), Exit::Unanswered)
        }
    };
    let json = json.map_err(|error| CliError::Bug(error.to_string()))?;
    print(&format!("{json:#}\n"))?;
    Ok(exit)
}
