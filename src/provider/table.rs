//! All definitions by name: those built in, and the user's.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Definition, DefinitionError, DefinitionErrors, ListDefinition, Origin, nearest,
    parse::{self, Entry},
};

/// The built-in definitions.
const BUILTIN: [(&str, &str); 14] = [
    ("abuseipdb", include_str!("builtin/abuseipdb.toml")),
    ("crowdsec", include_str!("builtin/crowdsec.toml")),
    ("greynoise", include_str!("builtin/greynoise.toml")),
    ("greynoise-community", include_str!("builtin/greynoise-community.toml")),
    ("internetdb", include_str!("builtin/internetdb.toml")),
    ("ipinfo", include_str!("builtin/ipinfo.toml")),
    ("ipqualityscore", include_str!("builtin/ipqualityscore.toml")),
    ("misp", include_str!("builtin/misp.toml")),
    ("otx", include_str!("builtin/otx.toml")),
    ("shodan", include_str!("builtin/shodan.toml")),
    ("threatfox", include_str!("builtin/threatfox.toml")),
    ("urlhaus", include_str!("builtin/urlhaus.toml")),
    ("urlscan", include_str!("builtin/urlscan.toml")),
    ("virustotal", include_str!("builtin/virustotal.toml")),
];

/// The built-in lists. abuse.ch's SSLBL is not among them: it was retired on 2025-01-03.
const BUILTIN_LISTS: [(&str, &str); 10] = [
    ("blocklist-de", include_str!("builtin/lists/blocklist-de.toml")),
    ("cins", include_str!("builtin/lists/cins.toml")),
    ("et-compromised", include_str!("builtin/lists/et-compromised.toml")),
    ("feodo", include_str!("builtin/lists/feodo.toml")),
    ("firehol-level1", include_str!("builtin/lists/firehol-level1.toml")),
    ("misp-public-dns-v4", include_str!("builtin/lists/misp-public-dns-v4.toml")),
    ("misp-public-dns-v6", include_str!("builtin/lists/misp-public-dns-v6.toml")),
    ("spamhaus-drop-v4", include_str!("builtin/lists/spamhaus-drop-v4.toml")),
    ("spamhaus-drop-v6", include_str!("builtin/lists/spamhaus-drop-v6.toml")),
    ("tor-exits", include_str!("builtin/lists/tor-exits.toml")),
];

/// Longest definition file that is read. The longest built in has 4 KiB.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Something to tell the user about the definitions, on standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A file of the user takes the place of a built-in.
    Override {
        /// The provider.
        name: String,
        /// The file.
        path: PathBuf,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Override { name, path } => {
                write!(f, "{} takes the place of the built-in provider {name}", path.display())
            }
        }
    }
}

/// All definitions, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Table {
    definitions: BTreeMap<String, Arc<Definition>>,
    lists: BTreeMap<String, Arc<ListDefinition>>,
    faulty: BTreeSet<String>,
}

impl Table {
    /// The built-in definitions alone.
    ///
    /// # Errors
    /// Never in a released program: a test reads every built-in.
    pub fn builtin() -> Result<Self, DefinitionErrors> {
        let mut table = Self::default();
        let mut faults = Vec::new();
        for (name, text) in BUILTIN.into_iter().chain(BUILTIN_LISTS) {
            match parse::definition(name, text, Origin::Builtin, &[]) {
                Ok(entry) => table.put(entry),
                Err(mut found) => faults.append(&mut found),
            }
        }
        if faults.is_empty() { Ok(table) } else { Err(DefinitionErrors(faults)) }
    }

    /// The built-in definitions and those of a folder: every `NAME.toml` in it. A missing folder holds none.
    ///
    /// # Errors
    /// All faults of all files at once.
    pub fn load(folder: Option<&Path>) -> Result<(Self, Vec<Notice>), DefinitionErrors> {
        let (table, notices, faults) = Self::load_sound(folder)?;
        if faults.0.is_empty() { Ok((table, notices)) } else { Err(faults) }
    }

    /// The same without the files that have faults, and the faults: a run goes on with the others. A built-in that a
    /// faulty file was to replace is left out with it: its owner meant to ask somebody else.
    ///
    /// # Errors
    /// As [`Table::builtin`].
    pub fn load_sound(
        folder: Option<&Path>,
    ) -> Result<(Self, Vec<Notice>, DefinitionErrors), DefinitionErrors> {
        let mut table = Self::builtin()?;
        let mut notices = Vec::new();
        let mut faults = Vec::new();
        for path in folder.map_or_else(Vec::new, |folder| files(folder, &mut faults)) {
            match read(&path) {
                Ok(entry) => {
                    let name = entry.name().to_owned();
                    if table.definitions.contains_key(&name) || table.lists.contains_key(&name) {
                        notices.push(Notice::Override { name, path });
                    }
                    table.put(entry);
                }
                Err(mut found) => {
                    let name = path.file_stem().unwrap_or_default().to_string_lossy();
                    table.definitions.remove(&*name);
                    table.lists.remove(&*name);
                    table.faulty.insert(name.into_owned());
                    faults.append(&mut found);
                }
            }
        }
        Ok((table, notices, DefinitionErrors(faults)))
    }

    /// One file of the user, checked as those of the folder are (`providers check FILE`).
    ///
    /// # Errors
    /// All its faults at once.
    pub fn read_file(path: &Path) -> Result<Definition, DefinitionErrors> {
        match read(path).map_err(DefinitionErrors)? {
            Entry::Service(definition) => Ok(*definition),
            Entry::List(_) => {
                let why = "holds a list, which is not asked over HTTP";
                Err(DefinitionErrors(vec![DefinitionError::File { path: path.to_owned(), why }]))
            }
        }
    }

    /// Whether the user's definition of this name was left out for its faults.
    #[must_use]
    pub fn is_faulty(&self, name: &str) -> bool {
        self.faulty.contains(name)
    }

    /// One list of the user, checked as those of the folder are.
    ///
    /// # Errors
    /// All its faults at once.
    pub fn read_list(path: &Path) -> Result<ListDefinition, DefinitionErrors> {
        match read(path).map_err(DefinitionErrors)? {
            Entry::List(list) => Ok(*list),
            Entry::Service(_) => {
                let why = "holds a provider that is asked over HTTP, and no list";
                Err(DefinitionErrors(vec![DefinitionError::File { path: path.to_owned(), why }]))
            }
        }
    }

    /// One definition.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(name)
    }

    /// All definitions, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    /// The name that a mistyped one comes closest to.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.names())
    }

    /// All lists, by name.
    pub fn lists(&self) -> impl Iterator<Item = &Arc<ListDefinition>> {
        self.lists.values()
    }

    /// One list.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<&Arc<ListDefinition>> {
        self.lists.get(name)
    }

    /// A name belongs to one kind of provider, the last that took it.
    fn put(&mut self, entry: Entry) {
        match entry {
            Entry::Service(definition) => {
                self.lists.remove(&definition.name);
                self.insert(*definition);
            }
            Entry::List(list) => {
                self.definitions.remove(&list.name);
                self.lists.insert(list.name.clone(), Arc::new(*list));
            }
        }
    }

    /// Puts a definition in, or in the place of one of the same name (a moved base URL, other limits).
    pub fn insert(&mut self, definition: Definition) {
        self.definitions.insert(definition.name.clone(), Arc::new(definition));
    }
}

/// The definition files of a folder, sorted; none when the folder is not there.
fn files(folder: &Path, faults: &mut Vec<DefinitionError>) -> Vec<PathBuf> {
    let unreadable = |source| DefinitionError::Read { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            faults.push(unreadable(error));
            return Vec::new();
        }
    };
    let mut paths = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => faults.push(unreadable(error)),
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    if !paths.is_empty()
        && let Err(fault) = is_private(folder)
    {
        faults.push(fault);
        return Vec::new();
    }
    paths
}

/// Reads one definition file of the user, with all checks of a file in the folder except the folder's own.
///
/// # Errors
/// All faults of the file at once.
fn read(path: &Path) -> Result<Entry, Vec<DefinitionError>> {
    use std::io::Read as _;
    let unreadable = |source| vec![DefinitionError::Read { path: path.to_owned(), source }];
    let odd = |why| vec![DefinitionError::File { path: path.to_owned(), why }];
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(odd("is not a regular file"));
    }
    is_private(path).map_err(|fault| vec![fault])?;
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return Err(odd("has no name that a provider could have"));
    };
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(odd("is longer than the 64 KiB a definition may have"));
    }
    parse::definition(name, &text, Origin::File(path.to_owned()), &BUILTIN)
}

impl Entry {
    fn name(&self) -> &str {
        match self {
            Self::Service(definition) => &definition.name,
            Self::List(list) => &list.name,
        }
    }
}

/// Whoever can write a definition can have keys sent where it says.
fn is_private(path: &Path) -> Result<(), DefinitionError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = std::fs::metadata(path)
            .map_err(|source| DefinitionError::Read { path: path.to_owned(), source })?;
        if meta.permissions().mode() & 0o022 != 0 {
            return Err(DefinitionError::Writable { path: path.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
