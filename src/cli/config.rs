//! `sift config`.

use super::args::{Config, ConfigCommand, Global};
use super::exit::Exit;
use super::flags::Flags;
use super::report::{CliError, say, say_config};
use super::settings::{Settings, definitions, request};
use super::stdout::print;
use super::{store, voice};
use crate::config::{Environment, Folders, check, home_net, init_text, load};
use crate::output::write_whole;
use crate::provider::Table;
use crate::store::Place;
use ipnet::IpNet;
use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) fn run(args: Config, global: &Global) -> Result<Exit, CliError> {
    match args.command {
        ConfigCommand::Init { home_net, force } => init(home_net.as_deref(), force, global),
        ConfigCommand::Show { origin } => {
            let settings = Settings::load(global, Flags::default(), None)?;
            print(&settings.loaded.origins.render(origin))?;
            Ok(Exit::Ok)
        }
        ConfigCommand::Check { file } => check_all(file, global),
        ConfigCommand::Paths => paths(global),
    }
}

fn init(suricata: Option<&Path>, force: bool, global: &Global) -> Result<Exit, CliError> {
    let folders = Folders::find(&Environment::of_process());
    let path = user_file(global, &folders)?;
    let networks = suricata.map(networks).transpose()?.unwrap_or_default();
    let text = init_text(&networks);
    let failed = |source| CliError::File { what: "write", path: path.clone(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    if force {
        write_whole(&path, text.as_bytes(), 0o600).map_err(failed)?;
    } else {
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o600).open(&path);
        let mut file = created.map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => {
                CliError::usage(format!("{} is there already", path.display()), "--force replaces it")
            }
            _ => failed(source),
        })?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    }
    voice::note(format!("wrote {}", path.display()));
    if !networks.is_empty() {
        let list: Vec<String> = networks.iter().map(ToString::to_string).collect();
        voice::note(format!("never sent: {}", list.join(", ")));
    }
    Ok(Exit::Ok)
}

/// The networks of a suricata.yaml's HOME_NET.
fn networks(path: &Path) -> Result<Vec<IpNet>, CliError> {
    let text = std::fs::read_to_string(path).map_err(|source| CliError::File {
        what: "read",
        path: path.to_owned(),
        source,
    })?;
    home_net(&text).map_err(|source| CliError::HomeNet { path: path.to_owned(), source })
}

/// The user's file, or the one that is named in its place.
fn user_file(global: &Global, folders: &Folders) -> Result<PathBuf, CliError> {
    match global.config.as_deref() {
        Some("none") => Err(CliError::usage("--config none names no file", "name one, or leave it out")),
        Some(file) => Ok(file.into()),
        None => Ok(folders.config_file()),
    }
}

/// Every fault of configuration and definitions, and of the files that they name.
fn check_all(file: Option<PathBuf>, global: &Global) -> Result<Exit, CliError> {
    let env = Environment::of_process();
    let folders = Folders::find(&env);
    let mut global = global.clone();
    if let Some(file) = file {
        global.config = Some(file.display().to_string());
    }
    let (table, faults) = match Table::load(Some(&definitions(&folders))) {
        Ok((table, _)) => (table, Vec::new()),
        Err(faults) => (Table::builtin().map_err(CliError::Definitions)?, faults.0),
    };
    let names: Vec<&str> = table.names().collect();
    let checked = check(&request(&global, Flags::default(), None), &env, &folders, &names);
    for fault in &faults {
        say(fault, &[]);
    }
    match checked {
        Err(errors) => {
            say_config(&errors);
            Ok(Exit::Usage)
        }
        Ok(_) if !faults.is_empty() => Ok(Exit::Usage),
        Ok(loaded) => {
            loaded.warnings.iter().for_each(voice::warn);
            let read: Vec<String> = loaded.files.iter().map(|file| file.display().to_string()).collect();
            let what = if read.is_empty() {
                "no file is there, and the defaults hold".to_owned()
            } else {
                read.join(", ")
            };
            print(&format!("no fault: {what}\n"))?;
            Ok(Exit::Ok)
        }
    }
}

fn paths(global: &Global) -> Result<Exit, CliError> {
    let folders = Folders::find(&Environment::of_process());
    let user = user_file(global, &folders).unwrap_or_else(|_| PathBuf::from("none"));
    // With a fault in the configuration, where the store would be without it.
    let loaded = load(&request(global, Flags::default(), None), &Environment::of_process(), &folders);
    let store = loaded
        .map_or_else(|_| folders.state.join(Place::FILE), |loaded| store::file(&loaded.config, &folders));
    let mut text = String::new();
    for (name, path) in [
        ("configuration", user),
        ("machine's", folders.system_config_file()),
        ("credentials", folders.credentials_file()),
        ("providers", definitions(&folders)),
        ("state", folders.state.clone()),
        ("store", store),
        ("data", folders.data.clone()),
    ] {
        let absent = if path.exists() { "" } else { "  (not there)" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<15}{}{absent}", path.display());
    }
    print(&text)?;
    Ok(Exit::Ok)
}
