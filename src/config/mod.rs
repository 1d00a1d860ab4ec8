//! What is in force, and where each value came from.
//!
//! [`load`] lays the layers over each other, weakest first: the embedded default, `/etc/sift/config.toml`, the user's
//! file, a scenario's settings in a rehearsal, `SIFT_*` variables, flags. Every fault is found in one go, with its file
//! and line. [`Config`] holds usable values, [`Origins`] says where each came from.
//!
//! [`Keys`] finds the providers' API keys, which are no part of the configuration. [`Environment`] and [`Folders`] are
//! read once and passed in: nothing in this room reads a variable of the process by itself.

mod check;
mod command;
mod credentials;
mod env;
mod error;
mod folders;
mod keys;
mod known;
mod layers;
mod origin;
mod resolve;
mod show;
mod suricata;
mod value;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;

pub use check::{check, read_networks};
pub use credentials::Credentials;
pub use env::Environment;
pub use error::{ConfigError, ConfigErrors, Problem};
pub use folders::Folders;
pub use keys::{COMMAND_LIMIT, KeyError, Keys};
pub use origin::Origin;
pub use resolve::{parse_duration, show_duration};
pub use show::init_text;
pub use suricata::{HomeNetError, home_net};

use crate::enrich::Ask;
use crate::output::{Field, Form, Sort};
use crate::provider::{Pap, Quota, Thresholds};
use layers::{Layers, Setting};
use value::Written;

/// The embedded default: every key with its value and what it means. `sift config init` writes it.
pub const DEFAULT: &str = include_str!("default.toml");

/// What is in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// Look-ups in flight at once, over all providers.
    pub concurrency: NonZeroUsize,
    /// For one attempt.
    pub timeout: Duration,
    /// For one look-up at one provider, from its first attempt on.
    pub deadline: Duration,
    /// For the run; none is no limit.
    pub max_time: Option<Duration>,
    /// Retries for one look-up, 0 to 20.
    pub retries: u32,
    /// Retries over first attempts, 0 to 1, over the run.
    pub retry_budget: f64,
    /// A proxy's URL, perhaps with a password; none leaves it to `HTTPS_PROXY` and `NO_PROXY`.
    pub proxy: Option<SecretString>,
    /// Certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Bytes of one reply, after decompression.
    pub max_body: usize,
    /// The marking of the addresses: a provider that is not permitted under it is left out.
    pub pap: Pap,
    /// Lists and MMDB files; none is the data folder.
    pub data_dir: Option<PathBuf>,
    /// Where the store lies, an absolute path; none is the state folder.
    pub state_dir: Option<PathBuf>,
    /// What is read.
    pub input: InputConfig,
    /// What answers on this machine.
    pub lists: ListsConfig,
    /// What is written.
    pub output: OutputConfig,
    /// How a score becomes a word.
    pub verdict: Thresholds,
    /// When a failing provider is left alone.
    pub breaker: BreakerConfig,
    /// Answers that are kept.
    pub cache: CacheConfig,
    /// The audit trail.
    pub audit: AuditConfig,
    /// What is logged.
    pub log: LogConfig,
    /// What is set for providers, by name. The rest is in their definitions. One that is not here has nothing set.
    pub providers: BTreeMap<String, ProviderConfig>,
}

/// What is read.
#[derive(Debug, Clone, PartialEq)]
pub struct InputConfig {
    /// Event types taken; empty takes all.
    pub event_types: Vec<String>,
    /// Addresses asked about in one run; none is no limit.
    pub limit: Option<usize>,
    /// Addresses held in memory.
    pub max_unique: usize,
    /// Bytes of one line.
    pub max_line: usize,
    /// Share of malformed lines from which on the run fails, 0 to 1.
    pub max_malformed: f64,
    /// Networks never sent.
    pub exclude: Vec<IpNet>,
    /// Files with such networks.
    pub exclude_files: Vec<PathBuf>,
    /// Networks that only what answers on this machine may know of.
    pub never_send: Vec<IpNet>,
    /// The user's own networks, for the rank alone.
    pub home_net: Vec<IpNet>,
}

/// What answers on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListsConfig {
    /// The lists that count; empty is all.
    pub only: Vec<String>,
    /// Whether addresses that are known to be good are asked about.
    pub ask_known_good: bool,
    /// Bytes of one list, when it is downloaded.
    pub max_bytes: usize,
    /// MMDB files; empty is all in the data folder.
    pub mmdb: Vec<PathBuf>,
}

/// What is written.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputConfig {
    /// The form; none is a table on a terminal, else NDJSON.
    pub format: Option<Form>,
    /// Columns of a table, CSV or TSV.
    pub fields: Vec<Field>,
    /// The order.
    pub sort: Sort,
    /// Whether skipped addresses get their record.
    pub skipped: bool,
    /// Whether addresses in a table, CSV or TSV are written as `203.0.113[.]7`.
    pub defang: bool,
}

/// When a failing provider is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// So many failures, at least 1,
    pub failures: u32,
    /// of the last so many look-ups,
    pub window: u32,
    /// open it for this long.
    pub open_for: Duration,
}

/// Answers that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheConfig {
    /// At most so many bytes.
    pub max_bytes: u64,
    /// How much out of date an answer may be when its provider fails.
    pub stale_if_error: Duration,
}

/// The audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// How long its rows are kept.
    pub keep: Duration,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The form.
    pub format: LogFormat,
    /// In tracing's filter syntax.
    pub level: String,
}

/// The form of the log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, with journal priorities under systemd.
    Auto,
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}

/// What is set for one provider; what is none is left to its definition.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProviderConfig {
    /// Asked or not, whether or not it has a key.
    pub enabled: Option<bool>,
    /// When it is asked.
    pub ask: Ask,
    /// Never faster than any of these.
    pub rate: Option<Vec<Quota>>,
    /// Look-ups that may leave at once; never above a rate's count.
    pub burst: Option<NonZeroU32>,
    /// Look-ups a day.
    pub daily: Option<u32>,
    /// Look-ups by the day, the week or the month, in place of all of the definition's.
    pub quota: Option<Vec<Quota>>,
    /// In flight at once.
    pub concurrency: Option<NonZeroU32>,
    /// For one attempt; the look-up's deadline ends it too.
    pub timeout: Option<Duration>,
    /// For one look-up.
    pub deadline: Option<Duration>,
    /// For one look-up.
    pub retries: Option<u32>,
    /// Share of the day that jobs and workers leave to people, 0 to 1.
    pub reserve: f64,
    /// Of a cached answer.
    pub max_age: Option<Duration>,
    /// Of a cached "not found".
    pub max_age_unknown: Option<Duration>,
    /// Another place to ask; the provider's definition says what it may be.
    pub base_url: Option<String>,
    /// Hosts beyond the provider's own that its key may go to.
    pub send_key_to: Vec<String>,
    /// A file with the key.
    pub api_key_file: Option<PathBuf>,
    /// A command that prints the key.
    pub api_key_command: Option<Vec<String>>,
}

impl Config {
    /// What is set for a provider; the defaults if nothing is.
    #[must_use]
    pub fn provider(&self, name: &str) -> ProviderConfig {
        self.providers.get(name).cloned().unwrap_or_default()
    }
}

/// Where the values in force came from, and what they are, secrets masked.
#[derive(Debug, Clone)]
pub struct Origins(BTreeMap<String, Setting>);

impl Origins {
    /// Where a value came from, by its dotted path: `timeout`, `providers.virustotal.rate`.
    #[must_use]
    pub fn of(&self, path: &str) -> Option<&Origin> {
        self.0.get(path).map(|setting| &setting.origin)
    }

    /// Every value in force: path, value as it would stand in a file, origin. Ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String, &Origin)> {
        self.0.iter().map(|(path, setting)| (path.as_str(), setting.value.show(), &setting.origin))
    }
}

/// A configuration, and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What is in force.
    pub config: Config,
    /// Where each value came from.
    pub origins: Origins,
    /// Files that were read, weakest first.
    pub files: Vec<PathBuf>,
    /// Things that are no fault and yet not as they should be, one sentence each.
    pub warnings: Vec<String>,
}

/// What the command line asks of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--config`: a file in the place of the user's own, or `none` for no file at all.
    pub config: Option<String>,
    /// A scenario's name and its settings.
    pub scenario: Option<(String, toml::Table)>,
    /// Flags that were given: the dotted path, the value, and the flag as typed.
    pub flags: Vec<(String, toml::Value, String)>,
}

/// Lays the layers over each other.
///
/// `--config FILE` (or `SIFT_CONFIG`) stands in the place of the user's file; the machine's still counts below it, for
/// that is where a site keeps the networks that must never be sent. `none` reads neither.
///
/// # Errors
///
/// Every fault of every layer, and every contradiction, at once.
pub fn load(request: &Request, env: &Environment, folders: &Folders) -> Result<Loaded, ConfigErrors> {
    let (loaded, errors) = gather(request, env, folders);
    if errors.is_empty() { Ok(loaded) } else { Err(ConfigErrors(errors)) }
}

/// The layers and their faults; with a fault, what is loaded is what the others make of it.
fn gather(request: &Request, env: &Environment, folders: &Folders) -> (Loaded, Vec<ConfigError>) {
    let mut layers = Layers::default();
    layers.text(DEFAULT, &|_| Origin::Default);
    let mut files = Vec::new();
    let chosen = request.config.as_deref().or_else(|| env.get("SIFT_CONFIG"));
    if chosen != Some("none") {
        let user = chosen.map_or_else(|| folders.config_file(), PathBuf::from);
        let system = folders.system_config_file();
        if system != user {
            layers.file(&system, false);
            files.push(system);
        }
        layers.file(&user, chosen.is_some());
        files.push(user);
        files.retain(|file| file.exists());
    }
    if let Some((name, table)) = &request.scenario {
        layers.values("", table, &Origin::Scenario(name.clone()));
    }
    layers.variables(env);
    for (path, value, flag) in &request.flags {
        layers.put(path, &Written::from_value(value), Origin::Flag(flag.clone()));
    }
    let mut settings = resolve::Settings { all: &layers.settings, errors: Vec::new() };
    let config = settings.config();
    let mut errors = layers.errors;
    errors.append(&mut settings.errors);
    (Loaded { config, origins: Origins(layers.settings), files, warnings: layers.warnings }, errors)
}

#[cfg(test)]
mod tests;
