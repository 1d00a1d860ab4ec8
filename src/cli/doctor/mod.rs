//! `sift doctor`: all that is wrong at once, each with what to do about it.

mod store;

use super::args::{Doctor, Global};
use super::ask_once;
use super::exit::Exit;
use super::flags::Flags;
use super::keyring::{Keyring, variables};
use super::lookups::{proxy_of, shown_proxy, transport_settings};
use super::on_runtime;
use super::providers_of_run::{lanes, nobody};
use super::report::{CliError, chain};
use super::settings::{Settings, definitions, request};
use super::stdout::print;
use crate::config::{Environment, Folders, Loaded, Origin, Request, check, load};
use crate::enrich::outcome::ErrorBody;
use crate::enrich::{LaneSpec, Reached, Transport, is_about_issuer};
use crate::output::harmless;
use crate::plan::Guard;
use crate::provider::{ErrorType, KeyUse, Table};
use jiff::Timestamp;
use rustix::fs::{Access, access};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Before this the program did not exist (2026-01-01).
const EARLIEST: i64 = 1_767_225_600;
/// From here on a certificate may seem out of date, and times of retries are wrong by as much as people notice.
const SKEW_SECONDS: i64 = 60;

/// What one check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Good,
    Odd,
    Bad,
}

/// All that was found, in words.
#[derive(Debug, Default)]
struct Report {
    text: String,
    odd: usize,
    bad: usize,
}

impl Report {
    fn put(&mut self, grade: Grade, what: &str, found: &str, tip: Option<&str>) {
        let word = match grade {
            Grade::Good => "ok",
            Grade::Odd => "odd",
            Grade::Bad => "wrong",
        };
        self.odd += usize::from(grade == Grade::Odd);
        self.bad += usize::from(grade == Grade::Bad);
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{word:<6} {what:<14} {}", harmless(&found.replace('\n', "; ")));
        if let Some(tip) = tip {
            let _ = writeln!(self.text, "{:<21} tip: {}", "", harmless(tip));
        }
    }

    fn good(&mut self, what: &str, found: &str) {
        self.put(Grade::Good, what, found, None);
    }
}

/// Runs it.
///
/// # Errors
/// Only where standard output cannot be written: everything else is a finding.
pub(super) fn run(args: &Doctor, global: &Global) -> Result<Exit, CliError> {
    let env = Environment::of_process();
    let folders = Folders::find(&env);
    let mut report = Report::default();
    if let Some(settings) = configuration(&mut report, global, env.clone(), folders.clone()) {
        let keys = keys(&mut report, &settings);
        machine(&mut report, &settings);
        store::check(&mut report, &settings);
        providers(&mut report, args, &settings, &keys);
    }
    let summary = match (report.bad, report.odd) {
        (0, 0) => "all is well".to_owned(),
        (0, odd) => format!("nothing is wrong, {odd} odd"),
        (bad, 0) => format!("{bad} wrong"),
        (bad, odd) => format!("{bad} wrong, {odd} odd"),
    };
    print(&format!("{}{summary}\n", report.text))?;
    Ok(if report.bad > 0 { Exit::Fatal } else { Exit::Ok })
}

/// Configuration and definitions. With faults the defaults stand in, so that the other checks still run.
fn configuration(
    report: &mut Report,
    global: &Global,
    env: Environment,
    folders: Folders,
) -> Option<Settings> {
    let table = match Table::load(Some(&definitions(&folders))) {
        Ok((table, notices)) => {
            for notice in &notices {
                report.put(Grade::Odd, "providers", &notice.to_string(), None);
            }
            table
        }
        Err(faults) => {
            faults.0.iter().for_each(|fault| report.put(Grade::Bad, "providers", &chain(fault), None));
            Table::builtin().ok()?
        }
    };
    let names: Vec<&str> = table.names().collect();
    let loaded: Loaded = match check(&request(global, Flags::default(), None), &env, &folders, &names) {
        Ok(loaded) => {
            let files: Vec<String> = loaded.files.iter().map(|file| file.display().to_string()).collect();
            let which =
                if files.is_empty() { "no file; the defaults hold".to_owned() } else { files.join(", ") };
            report.good("configuration", &which);
            loaded.warnings.iter().for_each(|warning| report.put(Grade::Odd, "configuration", warning, None));
            loaded
        }
        Err(errors) => {
            for error in errors.iter() {
                report.put(Grade::Bad, "configuration", &error.to_string(), error.tip().as_deref());
            }
            let none = Request { config: Some("none".to_owned()), ..Request::default() };
            load(&none, &Environment::default(), &folders).ok()?
        }
    };
    Some(Settings { env, folders, loaded, table, is_missing_some: false })
}

/// Each key, where it is, and what is odd about that place.
fn keys(report: &mut Report, settings: &Settings) -> Keyring {
    let Settings { env, folders, loaded, table, is_missing_some: _ } = settings;
    let finder = settings.keys();
    let mut usable = Vec::new();
    let mut any = false;
    for definition in table.iter().filter(|definition| definition.key.usage != KeyUse::None) {
        let name = &definition.name;
        match finder.find(definition) {
            Ok(None) => {}
            Ok(Some((_, origin @ Origin::Variable(_)))) => {
                any = true;
                usable.push(name.clone());
                let tip = format!(
                    "keep it out of the environment, which children and dumps see: sift credentials set {name}"
                );
                report.put(Grade::Odd, "key", &format!("{name}: from the variable {origin}"), Some(&tip));
            }
            Ok(Some((_, origin))) => {
                any = true;
                usable.push(name.clone());
                report.good("key", &format!("{name}: from {origin}"));
            }
            Err(error) => {
                any = true;
                report.put(Grade::Bad, "key", &format!("{name}: {}", chain(&error)), error.tip().as_deref());
            }
        }
    }
    if !any {
        let usual: Vec<String> =
            ["abuseipdb", "virustotal"].iter().filter_map(|name| variables(table.get(name)?).pop()).collect();
        let tip = format!("sift credentials set NAME, or set {} or the like", usual.join(", "));
        report.put(Grade::Odd, "key", "none was found", Some(&tip));
    }
    if usable.is_empty() {
        return Keyring::default();
    }
    Keyring::gather(table, &loaded.config, env, folders, &usable).unwrap_or_default()
}

/// Clock, folders, proxy.
fn machine(report: &mut Report, settings: &Settings) {
    let now = Timestamp::now();
    if now.as_second() < EARLIEST {
        let tip = "set it; certificates and quotas go by it";
        report.put(Grade::Bad, "clock", &format!("it says {now:.0}"), Some(tip));
    } else {
        report.good("clock", &format!("{now:.0}"));
    }
    writable(report, "state", &settings.folders.state);
    let config = &settings.loaded.config;
    match config.proxy.clone().or_else(|| proxy_of(&settings.env)) {
        None => report.good("proxy", "none"),
        Some(proxy) => {
            if let Some(shown) = shown_proxy(&proxy) {
                report.good("proxy", &shown);
            } else {
                let tip = "write it like this: http://proxy.example:3128";
                report.put(Grade::Bad, "proxy", "its address cannot be read", Some(tip));
            }
        }
    }
    if let Some(file) = &config.ca_file {
        report.good("ca_file", &file.display().to_string());
    }
}

/// A folder that is there and can be written to, or that can be made.
fn writable(report: &mut Report, name: &str, folder: &Path) {
    let nearest = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if nearest == folder => report.good(name, &folder.display().to_string()),
        Ok(()) => report.good(name, &format!("{} (made when it is needed)", folder.display())),
        Err(error) => {
            let found = format!("{}: {} cannot be written to: {error}", folder.display(), nearest.display());
            let tip = format!("chown or chmod it, or set XDG_{}_HOME to another folder", name.to_uppercase());
            report.put(Grade::Bad, name, &found, Some(&tip));
        }
    }
}

/// Who would be asked, and whether they can be reached.
fn providers(report: &mut Report, args: &Doctor, settings: &Settings, keys: &Keyring) {
    let config = &settings.loaded.config;
    let somebody = |lanes: Vec<LaneSpec>| {
        if lanes.is_empty() { Err(nobody(&settings.table, config)) } else { Ok(lanes) }
    };
    let lanes = match lanes(&settings.table, config, keys, &[], None).and_then(somebody) {
        Ok(lanes) => lanes,
        Err(error) => {
            let tip = "rehearse without a key: sift enrich --simulate FILE";
            return report.put(Grade::Odd, "providers", &chain(&error), Some(tip));
        }
    };
    let names: Vec<&str> = lanes.iter().map(|lane| lane.definition.name.as_str()).collect();
    report.good("providers", &format!("would ask {}", names.join(", ")));
    if args.offline {
        return;
    }
    if args.ask {
        match on_runtime(ask_once::ask(settings, keys, &[])) {
            Ok(told) => told.iter().for_each(|told| asked(report, told)),
            Err(error) => report.put(Grade::Bad, "providers", &chain(&error), None),
        }
        return;
    }
    let definitions: Vec<_> = lanes.iter().map(|lane| Arc::clone(&lane.definition)).collect();
    match Transport::new(&transport_settings(config, &settings.env, &definitions), Guard::default()) {
        Ok(transport) => {
            let reached = on_runtime(async { Ok(reach(&transport, lanes).await) }).unwrap_or_default();
            report_reached(report, reached, Timestamp::now());
        }
        Err(error) => report.put(Grade::Bad, "client", &chain(&error), Some("see ca_file and proxy")),
    }
}

type Answer = (String, Result<Reached, ErrorBody>);

/// All at once, so that one that hangs costs its time-out and no more.
async fn reach(transport: &Transport, lanes: Vec<LaneSpec>) -> Vec<Answer> {
    let mut running = tokio::task::JoinSet::new();
    for lane in lanes {
        let transport = transport.clone();
        running.spawn(async move {
            let reached = transport.reach(&lane.definition, lane.settings.timeout).await;
            (lane.definition.name.clone(), reached)
        });
    }
    let mut all = running.join_all().await;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn report_reached(report: &mut Report, reached: Vec<Answer>, now: Timestamp) {
    let mut skew: Option<i64> = None;
    for (name, reached) in reached {
        match reached {
            Ok(reached) => {
                report.good("reach", &format!("{name}: in {} ms", reached.took.as_millis()));
                let off = reached.date.map(|date| now.as_second() - date.as_second());
                // The server that is nearest to our clock speaks for it: others may be wrong themselves.
                skew = [skew, off].into_iter().flatten().min_by_key(|off| off.abs());
            }
            Err(error) => {
                let found = format!("{name}: {}", error.message);
                report.put(Grade::Bad, "reach", &found, Some(reach_tip(&error)));
            }
        }
    }
    if let Some(off) = skew.filter(|off| off.abs() >= SKEW_SECONDS) {
        let word = if off > 0 { "ahead of" } else { "behind" };
        let found = format!("{} s {word} the providers' clocks", off.abs());
        report.put(Grade::Bad, "clock", &found, Some("set it, or let NTP do it"));
    }
}

fn asked(report: &mut Report, told: &ask_once::Told) {
    match &told.outcome {
        Ok(took) => report.good("asked", &format!("{}: answered in {} ms", told.provider, took.as_millis())),
        Err(error) => {
            let found = format!("{}: {}: {}", told.provider, error.error, error.message);
            report.put(Grade::Bad, "asked", &found, Some(reach_tip(error)));
        }
    }
}

/// What helps against a failure that a person can do something about.
fn reach_tip(error: &ErrorBody) -> &'static str {
    match error.error {
        ErrorType::Tls if is_about_issuer(&error.message) => {
            "is a proxy in between that signs by itself? then name its authority with ca_file"
        }
        ErrorType::Tls => {
            "see base_url in 'sift providers show NAME', the clock, and what its certificate says"
        }
        ErrorType::Connection | ErrorType::Timeout => {
            "check the network, the proxy (HTTPS_PROXY, NO_PROXY) and DNS"
        }
        ErrorType::Unauthorized => "store the key anew: sift credentials set NAME",
        ErrorType::Forbidden => "see what the key's plan covers",
        ErrorType::RateLimited | ErrorType::QuotaExhausted => {
            "the key works; wait until its limits allow more"
        }
        _ => "try again later",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn reached(name: &str, date: &str) -> Answer {
        let date = Some(date.parse().unwrap());
        (name.to_owned(), Ok(Reached { status: 200, date, took: Duration::from_millis(84) }))
    }

    fn report(reached: Vec<Answer>) -> String {
        let mut report = Report::default();
        report_reached(&mut report, reached, "2026-01-15T10:00:00Z".parse().unwrap());
        report.text
    }

    #[test]
    fn a_clock_that_differs_from_everybodys_is_wrong() {
        let wrong = reached("a", "2026-01-15T09:00:00Z");
        assert!(
            report(vec![wrong]).contains("wrong  clock          3600 s ahead of the providers' clocks\n")
        );
        let late = reached("a", "2026-01-15T10:02:00Z");
        assert!(report(vec![late]).contains("120 s behind the providers' clocks\n"));
        // One whose own clock is wrong does not speak against ours.
        let both = vec![reached("a", "2026-01-15T09:00:00Z"), reached("b", "2026-01-15T09:59:59Z")];
        assert!(!report(both).contains("clock"));
    }

    #[test]
    fn who_cannot_be_reached_is_told_with_what_helps() {
        let untrusted =
            "the TLS connection cannot be trusted: its certificate is from an issuer that is not trusted";
        let error = ErrorBody::new(ErrorType::Tls, untrusted);
        let text = report(vec![("a".to_owned(), Err(error))]);
        assert!(text.starts_with(&format!("wrong  reach          a: {untrusted}\n")), "{text}");
        assert!(text.contains("ca_file"), "{text}");
        let error = ErrorBody::new(ErrorType::Tls, "does not speak TLS");
        let text = report(vec![("a".to_owned(), Err(error))]);
        assert!(!text.contains("ca_file"), "{text}");
    }
}
