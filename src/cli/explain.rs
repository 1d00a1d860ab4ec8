//! `sift explain`: what is kept about an address, and how its verdict comes out of it. Asks nobody.

use super::args::{Explain as Args, Global};
use super::exit::Exit;
use super::flags::Flags;
use super::lists::age;
use super::lookups::excluded;
use super::providers_of_run::version;
use super::report::CliError;
use super::settings::Settings;
use super::stdout::{Grid, lines, print};
use super::{address, cache, local, store, voice};
use crate::config::Config;
use crate::enrich::outcome::{CacheUse, ErrorBody, Outcome, Part};
use crate::output::verdict::Rule;
use crate::output::{Record, harmless};
use crate::plan::{Guard, Said};
use crate::provider::{Answer, ErrorType, Role, Table, Verdict};
use crate::store::{Account, Kept};
use jiff::Timestamp;
use std::fmt::Write as _;
use std::time::Duration;

/// What an answer is to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// It has a say in it.
    Decides,
    /// It adds tags, country, network.
    Adds,
    /// It does not count: its provider is asked elsewhere now, as after a rehearsal.
    Elsewhere,
    /// It does not count: there is no such provider any more.
    Gone,
    /// It does not count: it cannot be read.
    Unreadable,
}

impl Counts {
    const fn of(role: Role) -> Self {
        match role {
            Role::Reputation => Self::Decides,
            Role::Context => Self::Adds,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Decides => "decides",
            Self::Adds => "adds to it",
            Self::Elsewhere => "no: asked elsewhere now",
            Self::Gone => "no: no such provider now",
            Self::Unreadable => "no: cannot be read",
        }
    }
}

/// One answer, judged.
#[derive(Debug)]
struct Judged {
    provider: String,
    host: String,
    answer: Answer,
    at: Timestamp,
    counts: Counts,
    cache: CacheUse,
    /// The definition, or a threshold, has changed since: a run would read what is kept again.
    is_read_anew: bool,
}

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    let settings = Settings::load(&global, Flags::default(), None)?;
    let config = &settings.loaded.config;
    let ip = address::one(&args.ip)?;
    let now = Timestamp::now();
    let kept = cache::kept(&settings, ip).await?.unwrap_or_default();
    let is_stored = !kept.is_empty();
    let local = local::open(config, &settings.folders, &settings.table, now)?;
    let mut all: Vec<Judged> =
        kept.into_iter().map(|kept| judge(kept, &settings.table, config, now)).collect();
    all.extend(local.said(ip).into_iter().map(Judged::from));
    let parts: Vec<Part> = all.iter().filter_map(Judged::part).collect();
    let record = if parts.is_empty() {
        let error = ErrorBody::new(ErrorType::Offline, "nothing is kept about this address");
        Record::refused(ip, None, error, now)
    } else {
        Record::joined(ip, None, parts, now)
    };
    if !args.format.is_table() {
        print(&lines(&[&record])?)?;
    } else if !all.is_empty() {
        print(&(table(&all, now) + &conclusion(&record, &all)))?;
    }
    if is_stored {
        return Ok(Exit::Ok);
    }
    let guard = Guard::new(&excluded(config, &[])?).never_sending(&config.input.never_send);
    // A provider on this machine may be asked about documentation addresses, as in a rehearsal.
    let on_loopback = (settings.table.iter())
        .filter_map(|definition| store::as_asked(definition, config))
        .any(|definition| definition.is_loopback());
    voice::note(match guard.clear(ip, on_loopback) {
        Ok(_) => format!("no provider's answer about {ip} is kept; ask: sift lookup {ip}"),
        Err(why) => {
            let why = why.as_str().replace('-', " ");
            format!("no provider's answer about {ip} is kept, and none will be: it is never sent ({why})")
        }
    });
    Ok(Exit::Partial)
}

/// What a kept answer is worth now.
fn judge(kept: Kept, table: &Table, config: &Config, now: Timestamp) -> Judged {
    let Kept { provider, host, stored } = kept;
    let definition = table.get(&provider);
    let asked = definition.and_then(|definition| store::as_asked(definition, config));
    let answer = serde_json::from_slice::<Answer>(&stored.answer);
    let counts = match (&asked, definition) {
        _ if answer.is_err() => Counts::Unreadable,
        (_, None) => Counts::Gone,
        (Some(asked), _) if Account::of(asked, None).host == host => Counts::of(asked.role),
        _ => Counts::Elsewhere,
    };
    let good_for = definition.map_or(Duration::ZERO, |definition| {
        let own = config.provider(&provider);
        if stored.found {
            own.max_age.unwrap_or(definition.cache.found)
        } else {
            own.max_age_unknown.unwrap_or(definition.cache.unknown)
        }
    });
    // As a run judges it: an answer from the future comes of a clock that was set back.
    let age = Duration::try_from(now.duration_since(stored.fetched_at)).unwrap_or_default();
    let is_fresh = age < good_for;
    Judged {
        provider: provider.to_string(),
        host: host.to_string(),
        answer: answer.unwrap_or_else(|_| Answer::not_found()),
        at: stored.fetched_at,
        counts,
        is_read_anew: asked.is_some_and(|asked| version(&asked, config) != stored.version),
        cache: if is_fresh { CacheUse::Hit } else { CacheUse::Stale },
    }
}

impl From<Said> for Judged {
    /// What this machine says by itself.
    fn from(said: Said) -> Self {
        Self {
            provider: said.source.to_string(),
            host: "this machine".to_owned(),
            answer: said.answer,
            at: said.since,
            counts: Counts::of(said.role),
            cache: CacheUse::Local,
            is_read_anew: false,
        }
    }
}

impl Judged {
    /// Its share of the record; none if it does not count.
    fn part(&self) -> Option<Part> {
        let role = match self.counts {
            Counts::Decides => Role::Reputation,
            Counts::Adds => Role::Context,
            Counts::Elsewhere | Counts::Gone | Counts::Unreadable => return None,
        };
        let outcome = Outcome::Answered {
            answer: Box::new(self.answer.clone()),
            cache: self.cache,
            fetched_at: self.at,
            attempts: 0,
            latency: Duration::ZERO,
            raw: None,
        };
        Some(Part { provider: self.provider.as_str().into(), role, outcome })
    }
}

fn table(all: &[Judged], now: Timestamp) -> String {
    let mut grid =
        Grid::new(&["provider", "verdict", "score", "known", "of", "", "counts", "from"]).right(&[2]);
    for one in all {
        let score = one.answer.score.map_or_else(|| "-".to_owned(), |score| score.to_string());
        let (verdict, known) = match one.counts {
            Counts::Unreadable => ("?", "?"),
            _ => (one.answer.verdict.as_str(), if one.answer.found { "yes" } else { "no" }),
        };
        let state = match one.cache {
            CacheUse::Stale => "out of date",
            CacheUse::Local => "",
            _ => "fresh",
        };
        let age = age(one.at, now);
        grid.row(&[&one.provider, verdict, &score, known, &age, state, one.counts.words(), &one.host]);
    }
    grid.text()
}

/// The verdict and the rule behind it, in sentences.
fn conclusion(record: &Record, all: &[Judged]) -> String {
    let ip = record.ip;
    let (Some(verdict), Some(rule)) = (record.verdict, rule(record)) else {
        return format!("{ip} has no verdict: none of these answers counts\n");
    };
    let score = record.score.map(|score| format!(", score {score}")).unwrap_or_default();
    let mut text =
        format!("{ip} is {verdict}{score}, by the rule {}: {}\n", rule.name(), because(rule, record, all));
    let place: Vec<String> = record
        .country
        .iter()
        .cloned()
        .chain(record.asn.map(|asn| format!("AS{asn}")))
        .chain(record.as_org.clone())
        .collect();
    for (what, words) in [("network", place.join(" ")), ("tags", record.tags.join(" "))] {
        if !words.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{what}: {}", harmless(&words));
        }
    }
    let of_those = |is_meant: &dyn Fn(&Judged) -> bool| {
        let counting = all.iter().filter(|one| one.part().is_some() && is_meant(one));
        counting.map(|one| one.provider.as_str()).collect::<Vec<_>>().join(", ")
    };
    for (what, names) in [
        ("read by an older definition, so a run would read them anew", of_those(&|one| one.is_read_anew)),
        ("out of date, so a run would ask again", of_those(&|one| one.cache == CacheUse::Stale)),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "{what}: {names}");
        }
    }
    text
}

fn rule(record: &Record) -> Option<Rule> {
    let name = record.rule.as_deref()?;
    Rule::ALL.into_iter().find(|rule| rule.name() == name)
}

fn because(rule: Rule, record: &Record, all: &[Judged]) -> String {
    let names = |is_meant: &dyn Fn(&Answer) -> bool| {
        let deciding = all.iter().filter(|one| one.counts == Counts::Decides && is_meant(&one.answer));
        let mut names: Vec<&str> = deciding.map(|one| one.provider.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let accused = || names(&|answer| matches!(answer.verdict, Verdict::Malicious | Verdict::Suspicious));
    let vouched = || names(&|answer| answer.verdict == Verdict::Benign || answer.known_good);
    match rule {
        Rule::OnlyContext => "nobody who decides a verdict has answered".to_owned(),
        Rule::Conflict => format!("it is vouched for by {}, and accused by {}", vouched(), accused()),
        Rule::WorstAnswer => {
            let worst = names(&|answer| Some(answer.verdict) == record.verdict);
            format!("the worst of the answers, from {worst}")
        }
        Rule::BenignWithheld => "one vouches for it, but not all have answered".to_owned(),
        Rule::VouchedFor => format!("nobody accuses it, and it is vouched for by {}", vouched()),
        Rule::NobodyKnows => "nobody has anything to say of it, which is no good news".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(provider: &str, answer: Answer, cache: CacheUse) -> Judged {
        Judged {
            provider: provider.to_owned(),
            host: "api.example".to_owned(),
            answer,
            at: "2026-01-15T09:00:00Z".parse().unwrap(),
            counts: Counts::Decides,
            cache,
            is_read_anew: false,
        }
    }

    fn says(verdict: Verdict) -> Answer {
        Answer { verdict, found: true, ..Answer::not_found() }
    }

    fn explained(all: &[Judged]) -> String {
        let now = "2026-01-15T10:00:00Z".parse().unwrap();
        let parts = all.iter().filter_map(Judged::part).collect();
        conclusion(&Record::joined("203.0.113.7".parse().unwrap(), None, parts, now), all)
    }

    #[test]
    fn every_rule_is_put_into_words() {
        let one = |verdict| judged("one", says(verdict), CacheUse::Hit);
        let two = |verdict| judged("two", says(verdict), CacheUse::Hit);
        let context = Judged { counts: Counts::Adds, ..one(Verdict::Unknown) };
        let elsewhere = Judged { counts: Counts::Elsewhere, ..one(Verdict::Malicious) };
        let scored = judged(
            "two",
            Answer { score: Some(52), tags: vec!["scan\u{1b}[2J".to_owned()], ..says(Verdict::Suspicious) },
            CacheUse::Stale,
        );
        let all = [
            explained(&[context]),
            explained(&[one(Verdict::Benign), two(Verdict::Malicious)]),
            explained(&[one(Verdict::Unknown), scored]),
            explained(&[one(Verdict::Benign), two(Verdict::Unknown)]),
            explained(&[one(Verdict::Unknown)]),
            explained(&[elsewhere]),
        ];
        insta::assert_snapshot!(all.concat(), @"
        203.0.113.7 is unknown, by the rule only-context: nobody who decides a verdict has answered
        203.0.113.7 is suspicious, by the rule conflict: it is vouched for by one, and accused by two
        203.0.113.7 is suspicious, score 52, by the rule worst-answer: the worst of the answers, from two
        tags: scan�[2J
        out of date, so a run would ask again: two
        203.0.113.7 is benign, by the rule vouched-for: nobody accuses it, and it is vouched for by one
        203.0.113.7 is unknown, by the rule nobody-knows: nobody has anything to say of it, which is no good news
        203.0.113.7 has no verdict: none of these answers counts
        ");
    }
}
