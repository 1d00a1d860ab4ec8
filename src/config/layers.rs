//! The layers, weakest first: each value of each is checked by itself, and the strongest of every key stays.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::env::Environment;
use super::error::{ConfigError, Problem};
use super::known;
use super::origin::Origin;
use super::value::{Value, Written};
use crate::provider::nearest;

/// A configuration of ours has some hundred lines; a file beyond this is none.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A value in force, and where it came from.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// The default, be it written out: a time in a file that has all of them is nobody's wish.
    pub(super) is_default: bool,
}

/// Values by dotted path, with every fault met on the way.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) settings: BTreeMap<String, Setting>,
    pub(super) errors: Vec<ConfigError>,
    /// Variables of our prefix that mean nothing to us, with what may have been meant.
    pub(super) warnings: Vec<String>,
}

impl Layers {
    /// A file. One that is not there is an empty one, unless it was asked for by name.
    pub(super) fn file(&mut self, path: &Path, must_exist: bool) {
        match read(path) {
            Ok(text) => self.text(&text, &|line| Origin::file(path, line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {}
            Err(error) => {
                let problem = Problem::Unreadable { reason: error.to_string() };
                self.errors.push(ConfigError { origin: Origin::file(path, 0), problem });
            }
        }
    }

    /// The text of a file; `origin` makes a place of a line.
    pub(super) fn text(&mut self, text: &str, origin: &dyn Fn(usize) -> Origin) {
        let line = |byte: usize| text.get(..byte).map_or(0, |before| before.matches('\n').count() + 1);
        let before = self.errors.len();
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let place = error.span().map_or(0, |span| line(span.start));
            let reason = error.message().replace('\n', "; ");
            self.errors.push(ConfigError { origin: origin(place), problem: Problem::Syntax { reason } });
        }
        let place = |span: std::ops::Range<usize>| origin(line(span.start));
        self.table("", table.get_ref(), &place);
        if let Some(found) = self.errors.get_mut(before..) {
            found.sort_by_key(|error| error.origin.line());
        }
    }

    fn table(&mut self, at: &str, table: &DeTable<'_>, place: &dyn Fn(std::ops::Range<usize>) -> Origin) {
        for (key, value) in table {
            let path =
                if at.is_empty() { key.get_ref().to_string() } else { format!("{at}.{}", key.get_ref()) };
            let origin = place(key.span());
            match value.get_ref() {
                DeValue::Table(inner) if is_table(&path) => self.table(&path, inner, place),
                other => self.put(&path, &Written::from_file(other), origin),
            }
        }
    }

    /// The table of a scenario, or of anything else that has no lines.
    pub(super) fn values(&mut self, at: &str, table: &toml::Table, origin: &Origin) {
        for (key, value) in table {
            let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            match value {
                toml::Value::Table(inner) if is_table(&path) => self.values(&path, inner, origin),
                other => self.put(&path, &Written::from_value(other), origin.clone()),
            }
        }
    }

    /// `SIFT_*`. A name that means nothing to us may belong to another program called `sift`, so it is no fault.
    pub(super) fn variables(&mut self, env: &Environment) {
        for (name, text) in env.ours() {
            let written = Written::Typed(text.to_owned());
            if let Some((path, _)) = known::KEYS.iter().find(|(path, _)| known::variable(path) == name) {
                self.put(path, &written, Origin::Variable(name.to_owned()));
            } else if name == "SIFT_LOG" {
                self.put("log.level", &written, Origin::Variable(name.to_owned()));
            } else if let Some(path) = provider_path(name) {
                self.put(&path, &written, Origin::Variable(name.to_owned()));
            } else if !known::OTHER_VARIABLES.contains(&name) && !is_key_variable(name) {
                let known: Vec<String> = known::KEYS.iter().map(|(path, _)| known::variable(path)).collect();
                let hint = nearest(name, known.iter().map(String::as_str));
                let hint = hint.map_or(String::new(), |hint| format!("; did you mean {hint}?"));
                self.warnings.push(format!("{name} is set and means nothing to sift{hint}"));
            }
        }
    }

    /// One value: known and of its kind, or a fault.
    pub(super) fn put(&mut self, path: &str, written: &Written, origin: Origin) {
        let Some(kind) = known::kind(path) else {
            self.errors.push(ConfigError { origin, problem: unknown(path) });
            return;
        };
        match kind.read(written) {
            Ok(value) => {
                let is_default = match origin {
                    Origin::Default => true,
                    Origin::File { .. } => (self.settings.get(path))
                        .is_some_and(|old| old.is_default && old.value.is_same_time(&value)),
                    _ => false,
                };
                self.settings.insert(path.to_owned(), Setting { value, origin, is_default });
            }
            Err(reason) => self.errors.push(ConfigError::value(origin, path, reason)),
        }
    }
}

/// The text of a file of ours, bounded.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB"));
    }
    Ok(text)
}

/// Whether a table may stand at this path: one of ours, or a provider's.
fn is_table(path: &str) -> bool {
    let provider =
        path.strip_prefix("providers.").is_some_and(|name| !name.is_empty() && !name.contains('.'));
    known::TABLES.contains(&path) || provider
}

fn unknown(path: &str) -> Problem {
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    if let Some(provider) = table.strip_prefix("providers.")
        && matches!(key, "api_key" | "apikey" | "key" | "token" | "password")
    {
        return Problem::KeyInConfiguration { provider: provider.to_owned() };
    }
    let names = known::names(table);
    let elsewhere =
        || known::KEYS.iter().find(|(path, _)| path.rsplit('.').next() == Some(key)).map(|(path, _)| *path);
    let nearest = nearest(key, names.iter().copied()).or_else(elsewhere);
    Problem::UnknownKey {
        key: key.to_owned(),
        table: if table.is_empty() { "the top table".to_owned() } else { format!("[{table}]") },
        nearest: nearest.map(str::to_owned),
    }
}

/// `providers.greynoise-community.base_url` for `SIFT_GREYNOISE_COMMUNITY_BASE_URL`. Of two keys that both end the
/// name the longer one is meant, and a table of ours is no provider.
fn provider_path(variable: &str) -> Option<String> {
    let lower = variable.strip_prefix("SIFT_")?.to_ascii_lowercase();
    let (key, name) = known::PROVIDER_KEYS
        .iter()
        .filter_map(|(key, _)| Some((*key, lower.strip_suffix(key)?.strip_suffix('_')?)))
        .filter(|(_, name)| !name.is_empty() && !known::TABLES.contains(name))
        .max_by_key(|(key, _)| key.len())?;
    Some(format!("providers.{}.{key}", name.replace('_', "-")))
}

fn is_key_variable(name: &str) -> bool {
    name.ends_with("_API_KEY")
}
