//! `sift providers`.

mod check;

use super::args::{Global, ListForm, Providers, ProvidersCommand};
use super::exit::Exit;
use super::flags::Flags;
use super::keyring::variables;
use super::providers_of_run::{is_asked_for_its_key, limits};
use super::report::CliError;
use super::settings::Settings;
use super::stdout::{Grid, lines, print};
use crate::config::show_duration;
use crate::enrich::{Ask, LaneSettings};
use crate::provider::{Definition, KeyUse, Origin, Role};
use serde::Serialize;
use std::fmt::Write as _;

/// A line of `sift providers list -f ndjson`.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    title: String,
    enabled: bool,
    key: String,
    role: &'static str,
    ask: &'static str,
    limits: String,
    builtin: bool,
}

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) fn run(args: Providers, global: &Global) -> Result<Exit, CliError> {
    match args.command {
        ProvidersCommand::Check(args) => return check::run(&args, global),
        ProvidersCommand::List { format } => list(format, &Settings::load(global, Flags::default(), None)?)?,
        ProvidersCommand::Show { name } => {
            let settings = Settings::load(global, Flags::default(), None)?;
            print(&show(settings.provider(&name)?, &settings)?)?;
        }
    }
    Ok(Exit::Ok)
}

fn list(form: ListForm, settings: &Settings) -> Result<(), CliError> {
    let rows: Vec<Row> =
        settings.table.iter().map(|definition| row(definition, settings)).collect::<Result<_, _>>()?;
    if !form.is_table() {
        return print(&lines(&rows)?);
    }
    let mut grid = Grid::new(&["provider", "asked", "key", "role", "limits"]);
    for row in &rows {
        let asked = if row.enabled { row.ask } else { "no" };
        grid.row(&[&row.name, asked, &row.key, row.role, &row.limits]);
    }
    print(&grid.text())
}

fn row(definition: &Definition, settings: &Settings) -> Result<Row, CliError> {
    let config = &settings.loaded.config;
    let own = config.provider(&definition.name);
    let found = settings
        .keys()
        .find(definition)
        .map_err(|source| CliError::Key { provider: definition.name.clone(), source })?;
    let origin = |name: &str| {
        let of = settings.table.get(name)?;
        settings.keys().find(of).ok()?.map(|(_, origin)| origin)
    };
    let enabled = own.enabled.unwrap_or_else(|| is_asked_for_its_key(definition, config, &origin));
    Ok(Row {
        name: definition.name.clone(),
        title: definition.title.clone(),
        enabled,
        key: match (&definition.key.usage, found) {
            (KeyUse::None, _) => "needs none".to_owned(),
            (_, Some((_, origin))) => format!("found in {origin}"),
            (KeyUse::Optional, None) => "none (optional)".to_owned(),
            (KeyUse::Required, None) => "none".to_owned(),
        },
        role: role(definition.role),
        ask: ask(own.ask),
        limits: limits_in_words(&limits(definition, config)),
        builtin: matches!(definition.origin, Origin::Builtin),
    })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Reputation => "reputation",
        Role::Context => "context",
    }
}

fn takes(definition: &Definition) -> &'static str {
    match (definition.accepts.ipv4, definition.accepts.ipv6) {
        (true, true) => "IPv4 and IPv6",
        (true, false) => "IPv4",
        (false, true) => "IPv6",
        (false, false) => "nothing",
    }
}

fn ask(ask: Ask) -> &'static str {
    match ask {
        Ask::Always => "always",
        Ask::Suspicious => "suspicious",
    }
}

fn limits_in_words(settings: &LaneSettings) -> String {
    let all: Vec<String> = settings.rates.iter().chain(&settings.quotas).map(ToString::to_string).collect();
    if all.is_empty() { "none known".to_owned() } else { all.join(", ") }
}

fn show(definition: &Definition, settings: &Settings) -> Result<String, CliError> {
    let row = row(definition, settings)?;
    let settings = limits(definition, &settings.loaded.config);
    let origin = match &definition.origin {
        Origin::Builtin => "built in".to_owned(),
        Origin::File(path) => path.display().to_string(),
    };
    let keys = match definition.key.usage {
        KeyUse::None => row.key.clone(),
        _ => format!("{}; looked for in {}", row.key, variables(definition).join(", ")),
    };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("provider", &format!("{} ({})", definition.name, definition.title));
    line("definition", &origin);
    line("asked", if row.enabled { row.ask } else { "no" });
    line("key", &keys);
    line("role", row.role);
    line("host", if definition.is_placed() { definition.host() } else { "none yet: set base_url" });
    line("sends", &definition.sends);
    line("takes", takes(definition));
    line("limits", &format!("{}; {} in flight at once", row.limits, settings.slots));
    line("headers", definition.limits.dialect.as_str());
    line(
        "times",
        &format!(
            "attempt {}, look-up {}, {} retries",
            show_duration(settings.timeout),
            show_duration(settings.deadline),
            settings.retries
        ),
    );
    line(
        "cached",
        &format!(
            "{}; not found {}",
            show_duration(definition.cache.found),
            show_duration(definition.cache.unknown)
        ),
    );
    line("pap", definition.pap.as_str());
    if let Some(licence) = &definition.licence {
        line("licence", licence);
    }
    let _ = writeln!(text, "filter\n{}", indent(&definition.filter));
    Ok(text)
}

fn indent(text: &str) -> String {
    text.trim().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
