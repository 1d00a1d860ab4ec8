//! From values to usable types, and the faults that no single value shows.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;

use super::error::{ConfigError, Problem};
use super::layers::Setting;
use super::origin::Origin;
use super::value::{Value, parse_time, show_time};
use super::{
    AuditConfig, BreakerConfig, CacheConfig, Config, InputConfig, ListsConfig, LogConfig, LogFormat,
    OutputConfig, ProviderConfig,
};
use crate::enrich::Ask;
use crate::output::{Field, Form, Sort, default_fields};
use crate::provider::{Pap, Quota, Thresholds};

/// Values by path. Every key of [`super::known`] has one, from the embedded default at least, and of its own kind: a
/// test holds both, so what a getter gives for anything else never counts.
pub(super) struct Settings<'a> {
    pub(super) all: &'a BTreeMap<String, Setting>,
    pub(super) errors: Vec<ConfigError>,
}

impl Settings<'_> {
    fn value(&self, path: &str) -> Option<&Value> {
        self.all.get(path).map(|setting| &setting.value)
    }

    fn count(&self, path: &str) -> Option<u64> {
        if let Some(Value::Count(count)) = self.value(path) { Some(*count) } else { None }
    }

    fn small(&self, path: &str) -> Option<u32> {
        self.count(path).and_then(|count| u32::try_from(count).ok())
    }

    fn share(&self, path: &str) -> Option<f64> {
        if let Some(Value::Share(share)) = self.value(path) { Some(*share) } else { None }
    }

    fn time(&self, path: &str) -> Option<Duration> {
        if let Some(Value::Time(time)) = self.value(path) { Some(*time) } else { None }
    }

    fn size(&self, path: &str) -> Option<u64> {
        if let Some(Value::Size(size)) = self.value(path) { Some(*size) } else { None }
    }

    fn flag(&self, path: &str) -> Option<bool> {
        if let Some(Value::Flag(flag)) = self.value(path) { Some(*flag) } else { None }
    }

    fn text(&self, path: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.value(path) { Some(text) } else { None }
    }

    fn file(&self, path: &str) -> Option<PathBuf> {
        self.text(path).map(PathBuf::from)
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        if let Some(Value::Texts(texts)) = self.value(path) { Some(texts.clone()) } else { None }
    }

    fn networks(&self, path: &str) -> Vec<IpNet> {
        if let Some(Value::Networks(networks)) = self.value(path) { networks.clone() } else { Vec::new() }
    }

    fn rates(&self, path: &str) -> Option<Vec<Quota>> {
        if let Some(Value::Rates(rates)) = self.value(path) { Some(rates.clone()) } else { None }
    }

    fn secret(&self, path: &str) -> Option<SecretString> {
        if let Some(Value::Secret(secret)) = self.value(path) { Some(secret.clone()) } else { None }
    }

    /// `timeout ("10s", config.toml:3)`.
    fn cite(&self, path: &str) -> String {
        self.all.get(path).map_or_else(
            || path.to_owned(),
            |setting| format!("{path} ({}, {})", setting.value.show(), setting.origin),
        )
    }

    fn refuse(&mut self, blamed: &str, reason: String) {
        if let Some(setting) = self.all.get(blamed) {
            let problem = Problem::Contradiction { reason };
            self.errors.push(ConfigError { origin: setting.origin.clone(), problem });
        }
    }

    /// Refuses `low` above `high`; blames the one that was set last.
    fn in_order(&mut self, low: &str, high: &str, why: &str, holds: bool) {
        if !holds {
            let reason = format!("{} is above {}: {why}", self.cite(low), self.cite(high));
            let strength = |path: &str| self.all.get(path).map_or(0, strength);
            let blamed = if strength(low) >= strength(high) { low } else { high };
            self.refuse(blamed, reason);
        }
    }

    pub(super) fn config(&mut self) -> Config {
        let (timeout, deadline) = self.fitted_times();
        let config = Config {
            concurrency: self
                .count("concurrency")
                .and_then(|count| NonZeroUsize::new(usize::try_from(count).ok()?))
                .unwrap_or(NonZeroUsize::MIN),
            timeout,
            deadline,
            max_time: self.time("max_time"),
            retries: self.small("retries").unwrap_or_default(),
            retry_budget: self.share("retry_budget").unwrap_or_default(),
            proxy: self.secret("proxy"),
            ca_file: self.file("ca_file"),
            max_body: to_usize(self.size("max_body")),
            pap: match self.text("pap") {
                Some("red") => Pap::Red,
                Some("amber") => Pap::Amber,
                Some("green") => Pap::Green,
                _ => Pap::Clear,
            },
            data_dir: self.file("data_dir"),
            state_dir: self.file("state_dir"),
            input: self.input(),
            lists: self.lists(),
            output: self.output(),
            verdict: Thresholds {
                malicious: self.score("verdict.malicious"),
                suspicious: self.score("verdict.suspicious"),
            },
            breaker: BreakerConfig {
                failures: self.small("breaker.failures").unwrap_or_default(),
                window: self.small("breaker.window").unwrap_or_default(),
                open_for: self.time("breaker.open_for").unwrap_or_default(),
            },
            cache: CacheConfig {
                max_bytes: self.size("cache.max_size").unwrap_or_default(),
                stale_if_error: self.time("cache.stale_if_error").unwrap_or_default(),
            },
            audit: AuditConfig { keep: self.time("audit.keep").unwrap_or_default() },
            log: LogConfig {
                format: match self.text("log.format") {
                    Some("text") => LogFormat::Text,
                    Some("json") => LogFormat::Json,
                    _ => LogFormat::Auto,
                },
                level: self.text("log.level").unwrap_or("warn").to_owned(),
            },
            providers: self.providers(),
        };
        self.contradictions(&config);
        self.errors.sort_by_key(|error| (rank(&error.origin), error.origin.line()));
        config
    }

    /// Time-out and deadline. A default, or a scenario's, gives way to a shorter limit that somebody set, so that
    /// `--max-time 30s` asks for nothing else; what was set on both sides is compared as it stands.
    fn fitted_times(&self) -> (Duration, Duration) {
        let cap = |path: &str, limit: Option<Duration>| {
            let time = self.time(path).unwrap_or_default();
            if self.gives_way(path) { limit.map_or(time, |limit| time.min(limit)) } else { time }
        };
        let deadline = cap("deadline", self.time("max_time"));
        (cap("timeout", Some(deadline)), deadline)
    }

    fn is_default(&self, path: &str) -> bool {
        self.all.get(path).is_none_or(|setting| setting.is_default)
    }

    /// Whether nobody who runs this has set it.
    fn gives_way(&self, path: &str) -> bool {
        let is_of = |setting: &Setting| matches!(setting.origin, Origin::Scenario(_));
        self.is_default(path) || self.all.get(path).is_some_and(is_of)
    }

    fn input(&self) -> InputConfig {
        InputConfig {
            event_types: self.texts("input.event_types").unwrap_or_default(),
            limit: self.count("input.limit").filter(|limit| *limit > 0).map(|limit| to_usize(Some(limit))),
            max_unique: to_usize(self.count("input.max_unique")),
            max_line: to_usize(self.size("input.max_line")),
            max_malformed: self.share("input.max_malformed").unwrap_or_default(),
            exclude: self.networks("input.exclude"),
            exclude_files: self
                .texts("input.exclude_files")
                .unwrap_or_default()
                .into_iter()
                .map(PathBuf::from)
                .collect(),
            never_send: self.networks("input.never_send"),
            home_net: self.networks("input.home_net"),
        }
    }

    fn lists(&self) -> ListsConfig {
        let files = self.texts("mmdb.files").unwrap_or_default();
        ListsConfig {
            only: self.texts("lists.use").unwrap_or_default(),
            ask_known_good: self.flag("lists.ask_known_good").unwrap_or_default(),
            max_bytes: to_usize(self.size("lists.max_size")),
            mmdb: files.into_iter().map(PathBuf::from).collect(),
        }
    }

    fn output(&mut self) -> OutputConfig {
        let names = self.texts("output.fields").unwrap_or_default();
        let mut fields = Vec::with_capacity(names.len());
        for name in names {
            match name.parse::<Field>() {
                Ok(field) => fields.push(field),
                Err(error) => self.refuse("output.fields", format!("'output.fields': {error}")),
            }
        }
        OutputConfig {
            format: self.text("output.format").and_then(|word| word.parse::<Form>().ok()),
            fields: if fields.is_empty() { default_fields() } else { fields },
            sort: self.text("output.sort").and_then(|word| word.parse::<Sort>().ok()).unwrap_or_default(),
            skipped: self.flag("output.skipped").unwrap_or(true),
            defang: self.flag("output.defang").unwrap_or_default(),
        }
    }

    fn score(&self, path: &str) -> u8 {
        self.count(path).and_then(|score| u8::try_from(score).ok()).unwrap_or_default()
    }

    fn providers(&self) -> BTreeMap<String, ProviderConfig> {
        let named = self.all.keys().filter_map(|path| path.strip_prefix("providers.")?.rsplit_once('.'));
        let mut unique: Vec<&str> = named.map(|(name, _)| name).collect();
        unique.dedup();
        unique.into_iter().map(|name| (name.to_owned(), self.provider(name))).collect()
    }

    fn provider(&self, name: &str) -> ProviderConfig {
        let at = |key: &str| format!("providers.{name}.{key}");
        ProviderConfig {
            enabled: self.flag(&at("enabled")),
            ask: if self.text(&at("ask")) == Some("suspicious") { Ask::Suspicious } else { Ask::Always },
            rate: self.rates(&at("rate")),
            burst: self.small(&at("burst")).and_then(NonZeroU32::new),
            daily: self.small(&at("daily")),
            quota: self.rates(&at("quota")),
            concurrency: self.small(&at("concurrency")).and_then(NonZeroU32::new),
            timeout: self.time(&at("timeout")),
            deadline: self.time(&at("deadline")),
            retries: self.small(&at("retries")),
            reserve: self.share(&at("reserve")).unwrap_or_default(),
            max_age: self.time(&at("max_age")),
            max_age_unknown: self.time(&at("max_age_unknown")),
            base_url: self.text(&at("base_url")).map(str::to_owned),
            send_key_to: self.texts(&at("send_key_to")).unwrap_or_default(),
            api_key_file: self.file(&at("api_key_file")),
            api_key_command: self.texts(&at("api_key_command")),
        }
    }

    /// What no value shows by itself.
    fn contradictions(&mut self, config: &Config) {
        self.in_order(
            "timeout",
            "deadline",
            "a look-up would end within its first attempt",
            config.timeout <= self.time("deadline").unwrap_or_default(),
        );
        if config.state_dir.as_ref().is_some_and(|folder| folder.is_relative()) {
            let reason = format!(
                "{} is no absolute path: it would be another store from each folder that sift runs in",
                self.cite("state_dir")
            );
            self.refuse("state_dir", reason);
        }
        let fits = config.max_time.is_none_or(|max_time| config.deadline <= max_time);
        self.in_order("deadline", "max_time", "a look-up may not take longer than the run", fits);
        let (failures, window) = (config.breaker.failures, config.breaker.window);
        self.in_order(
            "breaker.failures",
            "breaker.window",
            "so many failures never fit the window",
            failures <= window,
        );
        let (suspicious, malicious) = (config.verdict.suspicious, config.verdict.malicious);
        self.in_order(
            "verdict.suspicious",
            "verdict.malicious",
            "nothing would ever be suspicious",
            suspicious <= malicious,
        );
        for (name, provider) in &config.providers {
            self.provider_contradictions(name, provider, config);
        }
    }

    fn provider_contradictions(&mut self, name: &str, provider: &ProviderConfig, config: &Config) {
        let at = |key: &str| format!("providers.{name}.{key}");
        let timeout = provider.timeout.unwrap_or(config.timeout);
        let deadline = provider.deadline.unwrap_or(config.deadline);
        if provider.timeout.is_some() || provider.deadline.is_some() {
            let path = |own: bool, key: &str| if own { at(key) } else { key.to_owned() };
            let low = path(provider.timeout.is_some(), "timeout");
            let high = path(provider.deadline.is_some(), "deadline");
            let fits = timeout <= deadline || self.is_default(&low);
            self.in_order(&low, &high, "a look-up would end within its first attempt", fits);
        }
        let smallest = provider.rate.iter().flatten().map(|rate| rate.count.get()).min();
        if let (Some(burst), Some(smallest)) = (provider.burst, smallest) {
            self.in_order(
                &at("burst"),
                &at("rate"),
                "the first burst would exceed it",
                burst.get() <= smallest,
            );
        }
        if provider.enabled == Some(true) && provider.daily == Some(0) {
            let reason = format!(
                "{} with {} asks nobody anything; say enabled = false",
                self.cite(&at("enabled")),
                self.cite(&at("daily"))
            );
            self.refuse(&at("daily"), reason);
        }
    }
}

/// Which of two values was set by the stronger layer, for the blame.
fn strength(setting: &Setting) -> u8 {
    rank(&setting.origin)
}

pub(super) fn rank(origin: &Origin) -> u8 {
    match origin {
        Origin::Default => 0,
        Origin::File { .. } | Origin::Command(_) => 1,
        Origin::Scenario(_) => 2,
        Origin::Variable(_) => 3,
        Origin::Flag(_) => 4,
    }
}

fn to_usize(number: Option<u64>) -> usize {
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX)
}

/// A time as the configuration has it: `10s`, `2m`, `1h30m`, `12h`, `7d`, `500ms`. A day has 24 hours.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    parse_time(text.trim())
}

/// For messages of other rooms that name a time of the configuration: `2m`, `1h30m`.
#[must_use]
pub fn show_duration(time: Duration) -> String {
    show_time(time)
}
