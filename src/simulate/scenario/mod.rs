//! What the server does: read from TOML, embedded or from a file.

mod error;
mod settings;
mod units;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;

use serde::Deserialize;

pub use error::ScenarioError;
pub use settings::FaultKind;
pub(super) use settings::{Daily, Dialect, Fault, Limit, LimitKind, RetryAfter, Settings, Size};

use super::kind::Kind;
use super::verdict::Verdict;

/// Scenario files are small; one larger than this is not one (1 MiB).
const LARGEST_FILE: u64 = 1 << 20;

/// The embedded scenarios by name.
const NAMED: [(&str, &str); 7] = [
    ("default", include_str!("default.toml")),
    ("calm", include_str!("calm.toml")),
    ("strict", include_str!("strict.toml")),
    ("quota", include_str!("quota.toml")),
    ("storm", include_str!("storm.toml")),
    ("flaky", include_str!("flaky.toml")),
    ("slow", include_str!("slow.toml")),
];

/// How the providers behave, and how the asking side is set up for it.
#[derive(Debug, Clone)]
pub struct Scenario {
    about: String,
    client: toml::Table,
    pub(super) epoch: Option<jiff::Timestamp>,
    pub(super) answers: HashMap<IpAddr, Verdict>,
    pub(super) shares: Shares,
    pub(super) every: Settings,
    pub(super) providers: BTreeMap<String, Settings>,
}

/// How often each verdict comes up; what is left of 1 is unknown.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Shares {
    pub malicious: f64,
    pub suspicious: f64,
    pub benign: f64,
    pub conflict: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { malicious: 0.25, suspicious: 0.15, benign: 0.2, conflict: 0.08 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    about: String,
    epoch: Option<jiff::Timestamp>,
    #[serde(default)]
    client: toml::Table,
    #[serde(default)]
    answers: HashMap<IpAddr, Verdict>,
    #[serde(default)]
    shares: Shares,
    #[serde(default)]
    every: Settings,
    #[serde(default)]
    providers: BTreeMap<String, Settings>,
}

impl Scenario {
    /// The embedded scenario of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, text) = NAMED.iter().find(|(known, _)| *known == name)?;
        // A test reads every embedded scenario, so that none is missing here.
        Self::parse(Path::new(name), text).ok()
    }

    /// The names of the embedded scenarios, with a line about each.
    pub fn names() -> impl Iterator<Item = (&'static str, String)> {
        NAMED.iter().map(|(name, _)| (*name, Self::named(name).map(|it| it.about).unwrap_or_default()))
    }

    /// The scenario of a first look: every kind of record in under ten seconds.
    ///
    /// # Panics
    ///
    /// Never in a build whose tests pass: one of them reads every embedded scenario.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test reads every embedded scenario")]
    pub fn default_scenario() -> Self {
        Self::named("default").expect("the default scenario is embedded and sound")
    }

    /// Reads a scenario file; a `body_file` in it is looked for beside it.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`], by the file and line where there is one.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(path, &read(path)?)
    }

    /// What this scenario wants of the asking side's configuration: a layer in the shape of `config.toml`.
    #[must_use]
    pub fn client(&self) -> &toml::Table {
        &self.client
    }

    /// One line about it, for people.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The key that this scenario's `provider` accepts; a stand-in where it accepts any; `None` where none is needed.
    #[must_use]
    pub fn key(&self, provider: &str) -> Option<String> {
        let settings = self.settings(provider);
        let kind = settings.like.as_deref().map_or_else(|| Kind::named(provider), Kind::named);
        let wants_one = settings.key_header.is_some() || kind.is_some_and(Kind::takes_a_key);
        settings.key.or_else(|| wants_one.then(|| "simulated-key".to_owned()))
    }

    /// What holds for this provider.
    pub(super) fn settings(&self, provider: &str) -> Settings {
        self.providers.get(provider).cloned().unwrap_or_default().over(&self.every)
    }

    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, ScenarioError> {
        let mut written: Written =
            toml::from_str(text).map_err(|error| ScenarioError::from_toml(path, text, &error))?;
        for (name, settings) in &mut written.providers {
            if let Some(file) = settings.body_file.take() {
                settings.body = Some(read(&path.with_file_name(file))?);
            }
            if let Some(message) = objection(name, settings) {
                return Err(ScenarioError::Provider { path: path.into(), provider: name.clone(), message });
            }
        }
        let shares = written.shares;
        let each = [shares.malicious, shares.suspicious, shares.benign, shares.conflict];
        let known: f64 = each.iter().take(3).sum();
        let wrong = if each.iter().any(|share| !(0.0..=1.0).contains(share)) || known > 1.0 {
            Some("shares lie between 0 and 1, and those of the verdicts add up to at most 1")
        } else {
            written.every.faults.iter().find_map(Fault::objection)
        };
        if let Some(message) = wrong {
            return Err(ScenarioError::Invalid { path: path.into(), line: 1, message: message.to_owned() });
        }
        let Written { about, epoch, client, answers, shares, every, providers } = written;
        Ok(Self { about, client, epoch, answers, shares, every, providers })
    }
}

/// Why these settings cannot be those of the provider `name`.
fn objection(name: &str, settings: &Settings) -> Option<String> {
    let like = settings.like.as_deref();
    if let Some(like) = like.filter(|like| Kind::named(like).is_none()) {
        return Some(format!("there is no built-in provider '{like}' to be like"));
    }
    if Kind::named(name).is_some() && (like.is_some() || settings.body.is_some()) {
        return Some("it is built in, so like and body do not apply".to_owned());
    }
    if Kind::named(name).is_none() && like.is_none() && settings.body.is_none() {
        return Some("it is not built in, so it needs body, body_file or like".to_owned());
    }
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_') {
        return Some("a name is made of letters, digits, - and _".to_owned());
    }
    settings.faults.iter().find_map(Fault::objection).map(str::to_owned)
}

fn read(path: &Path) -> Result<String, ScenarioError> {
    let fail = |source| ScenarioError::Read { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(fail)?.len();
    if length > LARGEST_FILE {
        return Err(fail(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "larger than 1 MiB")));
    }
    std::fs::read_to_string(path).map_err(fail)
}

#[cfg(test)]
mod tests;
