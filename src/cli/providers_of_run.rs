//! Who is asked in this run, with which key, and within which limits.

use super::keyring::{Keyring, variables};
use super::report::CliError;
use super::{settings, voice};
use crate::config::{Config, Origin};
use crate::enrich::{BreakerSettings, Keeping, LaneSettings, LaneSpec, MOST_LANES};
use crate::provider::{Definition, KeyUse, Pap, Quota, Table, Window};
use crate::store::Account;
use secrecy::{ExposeSecret, SecretString};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The providers of a rehearsal: where they listen, who they are, and which key they want.
pub(super) struct Rehearsal {
    pub(super) base: String,
    pub(super) names: Vec<String>,
    pub(super) keys: BTreeMap<String, String>,
}

/// Chooses and sets up the lanes. `named` are those of `-p`; none means all that are enabled or have a key. Those that the
/// addresses' marking does not permit are left out, whoever named them.
///
/// # Errors
/// An unknown or unusable provider, or a missing or unreadable key. Nobody to ask is none of it: see [`nobody`].
pub(super) fn lanes(
    table: &Table,
    config: &Config,
    keys: &Keyring,
    named: &[String],
    rehearsal: Option<&Rehearsal>,
) -> Result<Vec<LaneSpec>, CliError> {
    if let Some(unknown) = named.iter().find(|name| table.get(name).is_none()) {
        return Err(settings::unknown(table, unknown));
    }
    let mut lanes = Vec::new();
    let mut left_out = Vec::new();
    for definition in table.iter() {
        let name = definition.name.as_str();
        let lane = match rehearsal {
            Some(rehearsal) if rehearsal.names.iter().any(|known| known == name) => (named.is_empty()
                || named.iter().any(|asked| asked == name))
            .then(|| rehearse(definition, rehearsal)),
            Some(_) if named.iter().any(|asked| asked == name) => {
                let tip = format!("it has {}", rehearsal.map(|r| r.names.join(", ")).unwrap_or_default());
                return Err(CliError::usage(format!("the scenario has no provider named '{name}'"), tip));
            }
            Some(_) => None,
            None => real(definition, config, keys, named)?.map(Ok),
        };
        if let Some(lane) = lane {
            let (definition, key) = lane?;
            if definition.pap > config.pap {
                left_out.push(format!("{} ({})", definition.name, definition.pap.as_str()));
                continue;
            }
            lanes.push(LaneSpec {
                ask: config.provider(name).ask,
                settings: limits(&definition, config),
                keeping: keeping(&definition, key.as_ref(), config),
                budget: None,
                definition: Arc::new(definition),
                key,
            });
        }
    }
    if !left_out.is_empty() {
        voice::note(format!("left out by PAP {}: {}", config.pap.as_str(), left_out.join(", ")));
    }
    if lanes.len() > MOST_LANES {
        let message =
            format!("{} providers are more than the {MOST_LANES} that one run may ask", lanes.len());
        return Err(CliError::usage(message, "name those you want with -p"));
    }
    Ok(lanes)
}

type Chosen = (Definition, Option<SecretString>);

fn rehearse(definition: &Definition, rehearsal: &Rehearsal) -> Result<Chosen, CliError> {
    let moved = definition.with_base_url(&rehearsal.base, &[]).map_err(definition_error)?;
    let key = rehearsal.keys.get(&definition.name).cloned().unwrap_or_else(|| "rehearsal".to_owned());
    Ok((moved, Some(key.into())))
}

/// A provider of a real run: `None` if it is not asked.
fn real(
    definition: &Definition,
    config: &Config,
    keys: &Keyring,
    named: &[String],
) -> Result<Option<Chosen>, CliError> {
    let settings = config.provider(&definition.name);
    let key = keys.key(&definition.name).cloned();
    let is_placed = definition.is_placed() || settings.base_url.is_some();
    let wanted = if named.is_empty() {
        let origin = |name: &str| keys.origin(name).cloned();
        settings.enabled.unwrap_or_else(|| is_asked_for_its_key(definition, config, &origin))
    } else {
        named.contains(&definition.name)
    };
    if !wanted {
        return Ok(None);
    }
    if !is_placed {
        let message = format!("{} has no address of its own", definition.name);
        let tip = format!("set [providers.{}] base_url to where your instance is", definition.name);
        return Err(CliError::usage(message, tip));
    }
    if key.is_none() && definition.key.usage == KeyUse::Required {
        let message = format!("{} needs an API key and none was found", definition.name);
        let tip = format!(
            "sift credentials set {}, or set {}",
            definition.name,
            variables(definition).join(" or ")
        );
        return Err(CliError::usage(message, tip));
    }
    let moved = match &settings.base_url {
        Some(url) => definition.with_base_url(url, &settings.send_key_to).map_err(definition_error)?,
        None => definition.clone(),
    };
    Ok(Some((moved, key)))
}

/// Whether a provider that nobody named or switched on or off is asked: it has a key, and the key is not that of a fuller
/// service of the same people, which is asked instead. `origin` is where a provider's key was found.
pub(super) fn is_asked_for_its_key(
    definition: &Definition,
    config: &Config,
    origin: &dyn Fn(&str) -> Option<Origin>,
) -> bool {
    let is_placed = definition.is_placed() || config.provider(&definition.name).base_url.is_some();
    let Some(found) = origin(&definition.name) else { return false };
    let yields = definition.yields_to.as_deref().is_some_and(|fuller| {
        config.provider(fuller).enabled != Some(false) && origin(fuller).is_some_and(|other| other == found)
    });
    is_placed && !yields
}

fn definition_error(error: crate::provider::DefinitionError) -> CliError {
    CliError::Definitions(crate::provider::DefinitionErrors(vec![error]))
}

/// One variable a provider is enough to go by: the one that people know.
pub(super) fn nobody(table: &Table, config: &Config) -> CliError {
    let wanted = table.iter().filter(|definition| definition.key.usage == KeyUse::Required);
    let usual: BTreeSet<String> = wanted.filter_map(|definition| variables(definition).pop()).collect();
    let usual: Vec<String> = usual.into_iter().collect();
    if config.pap != Pap::Clear {
        let message = format!("there is nobody to ask under PAP {}", config.pap.as_str());
        return CliError::usage(
            message,
            "'sift providers show NAME' says what a provider needs; lists of this machine answer under any",
        );
    }
    CliError::Usage {
        message: "there is nobody to ask: no API key was found".to_owned(),
        details: vec![
            ("looked for", format!("{}; and where 'sift help credentials' says", usual.join(", "))),
            ("tip", "rehearse without a key: sift enrich --simulate FILE".to_owned()),
            ("tip", "store a key: sift credentials set NAME".to_owned()),
            (
                "tip",
                "or ask who needs none: lists ('sift lists update'), or a provider, as in -p internetdb"
                    .to_owned(),
            ),
        ],
    }
}

/// How the provider's answers are kept, and on whose account it is asked.
fn keeping(definition: &Definition, key: Option<&SecretString>, config: &Config) -> Keeping {
    let own = config.provider(&definition.name);
    Keeping {
        account: Account::of(definition, key.map(ExposeSecret::expose_secret)),
        version: version(definition, config),
        found_for: own.max_age.unwrap_or(definition.cache.found),
        unknown_for: own.max_age_unknown.unwrap_or(definition.cache.unknown),
        reserve: own.reserve,
    }
}

/// Changes with all that makes the same reply another answer: the definition, and the thresholds of the configuration.
pub(super) fn version(definition: &Definition, config: &Config) -> u64 {
    let thresholds = u64::from(config.verdict.malicious) << 8 | u64::from(config.verdict.suspicious);
    definition.version.rotate_left(16) ^ thresholds
}

/// The definition's limits, where the configuration has none of its own.
pub(super) fn limits(definition: &Definition, config: &Config) -> LaneSettings {
    let own = config.provider(&definition.name);
    let slots = own.concurrency.or(definition.limits.concurrency).map(|slots| slots.get() as usize);
    let mut quotas = own.quota.unwrap_or_else(|| definition.limits.quotas.clone());
    if let Some(daily) = own.daily.and_then(NonZeroU32::new) {
        quotas.retain(|quota| quota.window != Window::Day);
        quotas.push(Quota { count: daily, window: Window::Day });
    }
    // What is written as a rate and is none (500/day) is a quota.
    let (rates, long): (Vec<Quota>, Vec<Quota>) =
        own.rate.unwrap_or_default().into_iter().partition(|rate| rate.window.is_paced());
    quotas.retain(|quota| long.iter().all(|own| own.window != quota.window));
    quotas.extend(long);
    LaneSettings {
        slots: slots.unwrap_or(usize::MAX).min(config.concurrency.get()),
        rates: if rates.is_empty() { definition.limits.rates.clone() } else { rates },
        burst: own.burst.map_or(1, NonZeroU32::get),
        quotas,
        timeout: own.timeout.unwrap_or(config.timeout),
        deadline: own.deadline.unwrap_or(config.deadline),
        retries: own.retries.unwrap_or(config.retries),
        retry_budget: config.retry_budget,
        breaker: BreakerSettings {
            failures: config.breaker.failures as usize,
            window: config.breaker.window as usize,
            open_for: config.breaker.open_for,
        },
    }
}
