//! `sift credentials`.

use super::args::{Credentials as Args, CredentialsCommand, Global, ListForm};
use super::ask_once::{self, Told};
use super::exit::Exit;
use super::flags::Flags;
use super::keyring::Keyring;
use super::report::{CliError, chain};
use super::settings::Settings;
use super::stdout::{Grid, lines, print};
use super::{on_runtime, prompt, voice};
use crate::config::{Credentials, KeyError, Origin};
use crate::provider::{Definition, KeyUse};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) fn run(args: Args, global: &Global) -> Result<Exit, CliError> {
    let settings = Settings::load(global, Flags::default(), None)?;
    match args.command {
        CredentialsCommand::Set { name } => set(&settings, &name),
        CredentialsCommand::List { format } => list(&settings, format),
        CredentialsCommand::Check { names } => check(&settings, &names),
        CredentialsCommand::Remove { name } => remove(&settings, &name),
    }
}

/// The provider, which must be there and take a key.
fn provider<'a>(settings: &'a Settings, name: &str) -> Result<&'a Arc<Definition>, CliError> {
    let definition = settings.provider(name)?;
    if definition.key.usage == KeyUse::None {
        return Err(CliError::usage(
            format!("{name} takes no API key"),
            format!("just ask it: sift lookup -p {name} IP"),
        ));
    }
    Ok(definition)
}

fn stored(settings: &Settings, provider: &str) -> Result<(Credentials, PathBuf), CliError> {
    let path = settings.folders.credentials_file();
    let stored =
        Credentials::read(&path).map_err(|source| CliError::Key { provider: provider.to_owned(), source })?;
    Ok((stored, path))
}

fn set(settings: &Settings, name: &str) -> Result<Exit, CliError> {
    let definition = provider(settings, name)?;
    let (mut stored, path) = stored(settings, name)?;
    let key = prompt::secret(&format!("API key of {} (not shown): ", definition.title))?;
    let is_set =
        stored.set(name, &key).map_err(|source| CliError::Key { provider: name.to_owned(), source })?;
    if !is_set {
        return Err(CliError::usage(
            "no key was given",
            format!("pipe it in: pass show {name} | sift credentials set {name}"),
        ));
    }
    stored.write(&path).map_err(|source| CliError::File { what: "write", path: path.clone(), source })?;
    voice::note(format!("stored in {}; check it with 'sift credentials check {name}'", path.display()));
    // A key that is never used because a stronger source has another is a surprise at the worst time.
    match settings.keys().find(definition) {
        Ok(Some((_, Origin::File { path: used, .. }))) if used == path => {}
        Ok(Some((_, origin))) => {
            voice::warn(format!("{name}: the key in {origin} comes first and is the one that is used"));
        }
        Ok(None) => {}
        Err(error) => voice::warn(format!("{name}: a stronger source cannot be used: {}", chain(&error))),
    }
    Ok(Exit::Ok)
}

fn remove(settings: &Settings, name: &str) -> Result<Exit, CliError> {
    let path = settings.folders.credentials_file();
    let (mut stored, path_of) = stored(settings, name)?;
    if !stored.remove(name) {
        let held: Vec<&str> = stored.providers().collect();
        let tip = if held.is_empty() {
            "it holds none".to_owned()
        } else {
            format!("it holds keys of {}", held.join(", "))
        };
        return Err(CliError::usage(format!("{} holds no key of {name}", path.display()), tip));
    }
    stored.write(&path_of).map_err(|source| CliError::File { what: "write", path, source })?;
    voice::note(format!("removed the key of {name} from {}", path_of.display()));
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Row {
    provider: String,
    key: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

fn list(settings: &Settings, form: ListForm) -> Result<Exit, CliError> {
    let finder = settings.keys();
    let mut is_sound = true;
    let mut rows = Vec::new();
    for definition in settings.table.iter().filter(|definition| definition.key.usage != KeyUse::None) {
        let found = finder.find(definition);
        is_sound &= found.is_ok();
        let (from, fault) = match found {
            Ok(found) => (found.map(|(_, origin)| origin.to_string()), None),
            Err(error) => (None, Some(said(&error))),
        };
        rows.push(Row { provider: definition.name.clone(), key: from.is_some(), from, fault });
    }
    if form.is_table() {
        let mut grid = Grid::new(&["provider", "key"]);
        for row in &rows {
            let key = row.fault.as_ref().map(|fault| format!("cannot be used: {fault}"));
            let key = key.or_else(|| row.from.as_ref().map(|from| format!("from {from}")));
            grid.row(&[&row.provider, key.as_deref().unwrap_or("none")]);
        }
        print(&grid.text())?;
    } else {
        print(&lines(&rows)?)?;
    }
    Ok(if is_sound { Exit::Ok } else { Exit::Usage })
}

fn said(error: &KeyError) -> String {
    let tip = error.tip().map(|tip| format!(" ({tip})")).unwrap_or_default();
    chain(error) + &tip
}

fn check(settings: &Settings, names: &[String]) -> Result<Exit, CliError> {
    for name in names {
        provider(settings, name)?;
    }
    let keys =
        Keyring::gather(&settings.table, &settings.loaded.config, &settings.env, &settings.folders, names)?;
    let told = on_runtime(ask_once::ask(settings, &keys, names))?;
    let mut grid = Grid::new(&["provider", "key", "from"]);
    for Told { provider, outcome } in &told {
        let from = keys.origin(provider).map_or_else(|| "none".to_owned(), ToString::to_string);
        let word = match outcome {
            Ok(_) => "accepted".to_owned(),
            Err(error) => format!("{}: {}", error.error, error.message),
        };
        grid.row(&[provider, &word, &from]);
    }
    print(&grid.text())?;
    Ok(ask_once::exit(&told))
}
