//! The store as commands open it.

use super::report::CliError;
use super::voice;
use crate::config::{Config, Folders};
use crate::provider::Definition;
use crate::store::{Place, SqliteStore, StoreError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Where it lies, and for how long it keeps what.
pub(super) fn place(config: &Config, folders: &Folders) -> Place {
    let folder = config.state_dir.clone().unwrap_or_else(|| folders.state.clone());
    Place { audit_kept: config.audit.keep, ..Place::new(folder) }
}

/// The store's file, whether it is there or not.
pub(super) fn file(config: &Config, folders: &Folders) -> PathBuf {
    place(config, folders).folder.join(Place::FILE)
}

/// Opens it, or makes it, for a command that has `--no-store`.
///
/// # Errors
/// Where there is no usable store and none can be made: exit 1.
pub(super) fn open(config: &Config, folders: &Folders) -> Result<Arc<SqliteStore>, CliError> {
    let opened = SqliteStore::open(&place(config, folders));
    opened.map(Arc::new).map_err(|source| CliError::Store { source, can_do_without: true })
}

/// Opens it, or makes it, for a command that is nothing without it.
///
/// # Errors
/// Where there is no usable store and none can be made: exit 1.
pub(super) fn make(config: &Config, folders: &Folders) -> Result<Arc<SqliteStore>, CliError> {
    SqliteStore::open(&place(config, folders)).map(Arc::new).map_err(failed)
}

/// Who runs this process, by the machine's list of users; the number where it has no name there. The environment's word
/// is nobody's proof.
pub(super) fn user() -> Arc<str> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().find_map(|line| name_of(line, &uid)).map_or(uid.as_str(), |name| name).into()
}

/// The name in a line of /etc/passwd (passwd(5)) that is this user's.
fn name_of<'a>(line: &'a str, uid: &str) -> Option<&'a str> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    (fields.nth(1) == Some(uid)).then_some(name)
}

/// Opens it for a command that only reads: where there is none, that is said, and none is made.
///
/// # Errors
/// One that is there and cannot be used: exit 1.
pub(super) fn open_if_there(
    config: &Config,
    folders: &Folders,
) -> Result<Option<Arc<SqliteStore>>, CliError> {
    let file = file(config, folders);
    match std::fs::symlink_metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            voice::note(format!("nothing is kept yet: {} is made by the first look-up", file.display()));
            return Ok(None);
        }
        // Whatever else is odd about it, opening it says so better.
        Err(_) | Ok(_) => {}
    }
    SqliteStore::open(&place(config, folders)).map(|store| Some(Arc::new(store))).map_err(failed)
}

/// A store that fails in the middle of a command that is nothing without it.
pub(super) fn failed(source: StoreError) -> CliError {
    CliError::Store { source, can_do_without: false }
}

/// The provider as it would be asked now: where the configuration says. None where that cannot be.
pub(super) fn as_asked(definition: &Definition, config: &Config) -> Option<Definition> {
    let settings = config.provider(&definition.name);
    match &settings.base_url {
        Some(url) => definition.with_base_url(url, &settings.send_key_to).ok(),
        None => Some(definition.clone()),
    }
}

/// `512 B`, `1.2 KiB`, `34 MiB`.
pub(super) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        ..1_024 => return format!("{bytes} B"),
        1_024..1_048_576 => (1_024, "KiB"),
        1_048_576..1_073_741_824 => (1_048_576, "MiB"),
        _ => (1_073_741_824, "GiB"),
    };
    match bytes * 10 / unit {
        tenths @ ..100 => format!("{}.{} {name}", tenths / 10, tenths % 10),
        tenths => format!("{} {name}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::store_tip;
    use super::*;

    #[test]
    fn a_users_name_goes_by_the_number() {
        let line = "ana:x:1001:1001:Ana,,,:/home/ana:/bin/bash";
        assert_eq!(name_of(line, "1001"), Some("ana"));
        for (line, uid) in [(line, "1002"), (line, "x"), (":x:1001:", "1001"), ("", "0"), ("ana", "ana")] {
            assert_eq!(name_of(line, uid), None, "{line} {uid}");
        }
        assert!(!user().is_empty());
    }

    #[test]
    fn sizes_have_two_digits_that_count() {
        for (bytes, shown) in
            [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (10_300, "10 KiB"), (300 << 20, "300 MiB")]
        {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn only_commands_that_have_the_flag_name_it() {
        let why = StoreError::Refused { path: PathBuf::from("/s"), why: "it is a symbolic link" };
        let tip = |can_do_without| store_tip(&why, can_do_without).unwrap();
        assert!(tip(true).contains("--no-store"));
        assert_eq!(tip(false), "choose another folder with state_dir");
        let why = StoreError::Damaged { path: PathBuf::from("/s"), detail: String::new() };
        assert!(!store_tip(&why, false).unwrap().contains("--no-store"));
    }
}
