//! What `sift config check` finds beyond the values themselves: names of providers, and files that are named.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

use super::error::{ConfigError, ConfigErrors, Problem};
use super::resolve::rank;
use super::value::parse_network;
use super::{Environment, Folders, Loaded, Origin, Request, gather, layers};

/// Everything that is wrong, at once: what [`super::load`] finds, providers that nobody knows (`known` includes the
/// user's own), and files that are named and cannot be read.
///
/// # Errors
///
/// All faults.
pub fn check(
    request: &Request,
    env: &Environment,
    folders: &Folders,
    known: &[&str],
) -> Result<Loaded, ConfigErrors> {
    let (loaded, mut errors) = gather(request, env, folders);
    errors.extend(loaded.unknown_providers(known));
    errors.extend(loaded.unreadable_files());
    // As a reader meets them, whatever each was found by.
    errors.sort_by_cached_key(|error| (rank(&error.origin), file(&error.origin), error.origin.line()));
    if errors.is_empty() { Ok(loaded) } else { Err(ConfigErrors(errors)) }
}

fn file(origin: &Origin) -> Option<PathBuf> {
    if let Origin::File { path, line: _ } = origin { Some(path.clone()) } else { None }
}

/// What others than owner and group may do with a file of keys: nothing.
const OTHERS: u32 = 0o007;

impl Loaded {
    /// Checks the names in `[providers.NAME]` against those that there are; `known` includes the user's own.
    ///
    /// # Errors
    ///
    /// Every unknown name, with its place and the nearest known one.
    pub fn check_providers(&self, known: &[&str]) -> Result<(), ConfigErrors> {
        let errors = self.unknown_providers(known);
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors(errors)) }
    }

    fn unknown_providers(&self, known: &[&str]) -> Vec<ConfigError> {
        let names = self.config.providers.keys().filter(|name| !known.contains(&name.as_str()));
        names.map(|name| self.unknown_provider(name, known)).collect()
    }

    fn unknown_provider(&self, name: &str, known: &[&str]) -> ConfigError {
        let prefix = format!("providers.{name}.");
        let places = self.origins.0.iter().filter(|(path, _)| path.starts_with(&prefix));
        let first = places.map(|(_, setting)| &setting.origin).min_by_key(|origin| origin.line());
        let nearest = crate::provider::nearest(name, known.iter().copied()).map(str::to_owned);
        let problem = Problem::UnknownProvider { name: name.to_owned(), nearest };
        ConfigError { origin: first.cloned().unwrap_or(Origin::Default), problem }
    }

    fn unreadable_files(&self) -> Vec<ConfigError> {
        let config = &self.config;
        let mut errors = Vec::new();
        for path in &config.input.exclude_files {
            errors.extend(read_networks(path).err().into_iter().flat_map(|errors| errors.0));
        }
        let keys = config.providers.iter().filter_map(|(name, provider)| {
            Some((format!("providers.{name}.api_key_file"), provider.api_key_file.as_ref()?))
        });
        let databases = config.lists.mmdb.iter().map(|file| ("mmdb.files".to_owned(), file));
        let named =
            config.ca_file.iter().map(|file| ("ca_file".to_owned(), file)).chain(databases).chain(keys);
        for (key, file) in named {
            let Some(origin) = self.origins.of(&key) else { continue };
            let fault = match std::fs::File::open(file).and_then(|file| file.metadata()) {
                Err(error) => format!("cannot be read: {error}"),
                Ok(metadata)
                    if key.ends_with("api_key_file") && metadata.permissions().mode() & OTHERS != 0 =>
                {
                    let mode = metadata.permissions().mode() & 0o7777;
                    format!("others can read or write (mode {mode:04o}); chmod 600 {}", file.display())
                }
                Ok(_) => continue,
            };
            let reason = format!("names {}, which {fault}", file.display());
            errors.push(ConfigError::value(origin.clone(), &key, reason));
        }
        errors
    }

    /// All networks whose addresses are never sent: those of `exclude`, and of every file in `exclude_files`.
    ///
    /// # Errors
    ///
    /// Every file that cannot be read and every line that is no network: a list that is read by half protects by half.
    pub fn excluded(&self) -> Result<Vec<IpNet>, ConfigErrors> {
        let mut networks = self.config.input.exclude.clone();
        let mut errors = Vec::new();
        for path in &self.config.input.exclude_files {
            match read_networks(path) {
                Ok(read) => networks.extend(read),
                Err(mut found) => errors.append(&mut found.0),
            }
        }
        if errors.is_empty() { Ok(IpNet::aggregate(&networks)) } else { Err(ConfigErrors(errors)) }
    }
}

/// The networks of a file: one address or network a line, `#` for comments. For `exclude_files` and `--exclude @FILE`.
///
/// # Errors
///
/// A file that cannot be read, or every line that is no network.
pub fn read_networks(path: &Path) -> Result<Vec<IpNet>, ConfigErrors> {
    let text = layers::read(path).map_err(|error| {
        let problem = Problem::Unreadable { reason: error.to_string() };
        ConfigErrors(vec![ConfigError { origin: Origin::file(path, 0), problem }])
    })?;
    let (mut networks, mut errors) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match parse_network(line) {
            _ if line.is_empty() => {}
            Ok(network) => networks.push(network),
            Err(reason) => {
                let origin = Origin::file(path, number + 1);
                errors.push(ConfigError { origin, problem: Problem::Contradiction { reason } });
            }
        }
    }
    if errors.is_empty() { Ok(networks) } else { Err(ConfigErrors(errors)) }
}
