//! The keys of a run, found before anything is asked.

use super::report::CliError;
use crate::config::{Config, Environment, Folders, KeyError, Keys, Origin};
use crate::provider::{Definition, KeyUse, Table};
use secrecy::SecretString;
use std::collections::BTreeMap;

/// Keys by provider, each with where it was found.
#[derive(Debug, Default)]
pub(super) struct Keyring(BTreeMap<String, (SecretString, Origin)>);

impl Keyring {
    /// Finds the keys of all providers that may be asked: those of `named`, or where there are none all that are not
    /// switched off. Blocks while an `api_key_command` runs, so it is called before anything else goes on.
    ///
    /// # Errors
    /// The first key that is there and cannot be used.
    pub(super) fn gather(
        table: &Table,
        config: &Config,
        env: &Environment,
        folders: &Folders,
        named: &[String],
    ) -> Result<Self, CliError> {
        let finder = Finder::new(table, config, env, folders);
        let mut keys = BTreeMap::new();
        for definition in table.iter() {
            let name = &definition.name;
            let is_wanted = if named.is_empty() {
                config.provider(name).enabled != Some(false)
            } else {
                named.contains(name)
            };
            if is_wanted
                && let Some(found) = finder
                    .find(definition)
                    .map_err(|source| CliError::Key { provider: name.clone(), source })?
            {
                keys.insert(name.clone(), found);
            }
        }
        Ok(Self(keys))
    }

    /// A provider's key.
    pub(super) fn key(&self, provider: &str) -> Option<&SecretString> {
        self.0.get(provider).map(|(key, _)| key)
    }

    /// Where it was found.
    pub(super) fn origin(&self, provider: &str) -> Option<&Origin> {
        self.0.get(provider).map(|(_, origin)| origin)
    }
}

/// Finds keys one by one.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    config: &'a Config,
    env: &'a Environment,
    folders: &'a Folders,
    /// All variables that hold a key of anybody's.
    variables: Vec<String>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(table: &Table, config: &'a Config, env: &'a Environment, folders: &'a Folders) -> Self {
        let variables = table.iter().flat_map(|definition| variables(definition)).collect();
        Self { config, env, folders, variables }
    }

    /// One provider's key and where it was found; none if it has none or takes none.
    ///
    /// # Errors
    /// A key that is there and cannot be used.
    pub(super) fn find(&self, definition: &Definition) -> Result<Option<(SecretString, Origin)>, KeyError> {
        if definition.key.usage == KeyUse::None {
            return Ok(None);
        }
        let settings = self.config.provider(&definition.name);
        let keys = Keys::new(self.env).with_folders(self.folders).hiding(&self.variables);
        keys.find_with(&definition.name, &definition.key.env, &settings)
    }
}

/// The variables that are looked at for a provider's key, strongest first.
pub(super) fn variables(definition: &Definition) -> Vec<String> {
    let own = format!("SIFT_{}_API_KEY", definition.name.to_uppercase().replace('-', "_"));
    let mut all = vec![own];
    for name in &definition.key.env {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}
