//! What every command begins with: the configuration, the providers, and where things are.

use super::args::Global;
use super::flags::Flags;
use super::keyring::Finder;
use super::report::{CliError, say};
use super::{log, voice};
use crate::config::{Config, Environment, Folders, Loaded, Request, load};
use crate::provider::{Definition, Table};
use std::path::PathBuf;
use std::sync::Arc;

/// All of it, checked.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) env: Environment,
    pub(super) folders: Folders,
    pub(super) loaded: Loaded,
    pub(super) table: Table,
    /// A definition of the user's was left aside for its faults.
    pub(super) is_missing_some: bool,
}

impl Settings {
    /// Reads everything, says what is odd about it, and gives the log its form and level.
    ///
    /// # Errors
    /// Every fault of the configuration, or of the definitions.
    pub(super) fn load(
        global: &Global,
        flags: Flags,
        scenario: Option<(String, toml::Table)>,
    ) -> Result<Self, CliError> {
        let env = Environment::of_process();
        let folders = Folders::find(&env);
        let loaded = load(&request(global, flags, scenario), &env, &folders)?;
        log::settle(global, &loaded.config.log);
        let (table, notices, faults) = Table::load_sound(Some(&definitions(&folders)))?;
        if let Some((last, others)) = faults.0.split_last() {
            for fault in others {
                say(fault, &[]);
            }
            say(last, &[("tip", "mend it; until then all goes on without that provider".to_owned())]);
        }
        loaded.check_providers(&table.names().collect::<Vec<_>>())?;
        loaded.warnings.iter().for_each(voice::warn);
        notices.iter().for_each(voice::warn);
        let is_missing_some = !faults.0.is_empty();
        Ok(Self { env, folders, loaded, table, is_missing_some })
    }

    /// The configuration alone, for a command that asks nobody. The definitions, which take longer to read than a small
    /// log, are read only where it names providers, to tell a name that nobody has.
    ///
    /// # Errors
    /// Every fault of the configuration.
    pub(super) fn config(global: &Global, flags: Flags) -> Result<Config, CliError> {
        let env = Environment::of_process();
        let folders = Folders::find(&env);
        let loaded = load(&request(global, flags, None), &env, &folders)?;
        log::settle(global, &loaded.config.log);
        if !loaded.config.providers.is_empty() {
            let (table, ..) = Table::load_sound(Some(&definitions(&folders)))?;
            loaded.check_providers(&table.names().collect::<Vec<_>>())?;
        }
        loaded.warnings.iter().for_each(voice::warn);
        Ok(loaded.config)
    }

    /// Finds keys.
    pub(super) fn keys(&self) -> Finder<'_> {
        Finder::new(&self.table, &self.loaded.config, &self.env, &self.folders)
    }

    /// A provider by its name.
    ///
    /// # Errors
    /// A name that nobody has, with the nearest one.
    pub(super) fn provider(&self, name: &str) -> Result<&Arc<Definition>, CliError> {
        self.table.get(name).ok_or_else(|| unknown(&self.table, name))
    }
}

/// What the command line asks of the configuration.
pub(super) fn request(global: &Global, mut flags: Flags, scenario: Option<(String, toml::Table)>) -> Request {
    flags.global(global);
    Request { config: global.config.clone(), scenario, flags: flags.0 }
}

/// The folder of the user's own definitions.
pub(super) fn definitions(folders: &Folders) -> PathBuf {
    folders.config.join("providers")
}

/// The error of a name that no provider has.
pub(super) fn unknown(table: &Table, name: &str) -> CliError {
    if table.is_faulty(name) {
        let message = format!("{name} cannot be asked: its definition has faults");
        return CliError::usage(message, "mend them; they are told above");
    }
    if table.list(name).is_some() {
        let message = format!("{name} is a list: it answers on this machine, without being asked");
        return CliError::usage(message, "see 'sift lists list'");
    }
    let tip = table.nearest(name).map_or_else(
        || "see the list with 'sift providers list'".to_owned(),
        |near| format!("did you mean '{near}'?"),
    );
    CliError::usage(format!("there is no provider named '{name}'"), tip)
}
