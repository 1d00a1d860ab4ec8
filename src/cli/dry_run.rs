//! `sift enrich -n`: what a run would ask of whom, and what that takes. Sends nothing.

use super::args::OutputForm;
use super::exit::Exit;
use super::progress::{due, pace, rough};
use super::report::CliError;
use super::stdout::{Grid, lines, print};
use crate::enrich::{Ask, LaneSpec};
use crate::extract::{Counts, Indicators};
use crate::output::thousands;
use crate::plan::{Guard, Plan};
use crate::provider::{KeyUse, Window};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Version of the NDJSON form.
const VERSION: u32 = 1;

/// What was read: the first line of the NDJSON form.
#[derive(Debug, Serialize)]
struct Input {
    kind: &'static str,
    /// Unique addresses.
    addresses: u64,
    events: u64,
    /// Addresses that somebody would be asked about.
    to_ask: u64,
    /// Addresses beyond `--limit`.
    over_limit: u64,
    /// Addresses that lists and MMDB files of this machine would answer for alone.
    local: u64,
    /// Those among them that are known to be good.
    known_good: u64,
    /// Addresses that never leave this host, by reason.
    withheld: BTreeMap<&'static str, u64>,
    v: u32,
}

/// One provider: a line each.
#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    provider: String,
    /// Where requests would go.
    host: String,
    /// What would leave this host, in words.
    sends: String,
    /// Whether a key would go with it.
    key: bool,
    /// Look-ups that the cache would answer.
    from_cache: u64,
    /// Look-ups that would be asked.
    to_ask: u64,
    /// Requests that they would take, where nothing fails.
    requests: u64,
    /// Those are the most: it is asked only about what others do not clear.
    at_most: bool,
    /// The rates that are kept, as in `4/min`.
    rates: Vec<String>,
    /// Look-ups that the provider's long windows allow, by window.
    quotas: BTreeMap<&'static str, u64>,
    /// Seconds that the rate makes it take; null where no rate does.
    takes_s: Option<f64>,
    /// Look-ups that would not be answered: beyond a quota, or beyond `--max-time`.
    unanswered: u64,
    v: u32,
    #[serde(skip)]
    why: &'static str,
}

/// What a dry run looks at.
pub(super) struct DryRun<'a> {
    pub(super) plan: &'a Plan,
    pub(super) lanes: &'a [LaneSpec],
    pub(super) indicators: &'a Indicators,
    pub(super) guard: &'a Guard,
    pub(super) counts: &'a Counts,
    pub(super) max_time: Option<Duration>,
}

impl DryRun<'_> {
    /// Prints it; 3 where some look-ups would not be answered, else 0.
    ///
    /// # Errors
    /// Where standard output cannot be written.
    pub(super) fn print(&self, form: Option<OutputForm>) -> Result<Exit, CliError> {
        let rows: Vec<Row> = self.lanes.iter().map(|lane| self.row(lane)).collect();
        let input = self.input();
        match form {
            Some(OutputForm::Ndjson | OutputForm::Json) => print(&(lines(&[input])? + &lines(&rows)?))?,
            _ => print(&table(&input, &rows))?,
        }
        let falls_short =
            !self.plan.over_limit.is_empty() || rows.iter().any(|row| row.unanswered > 0 && !row.at_most);
        Ok(if falls_short { Exit::Partial } else { Exit::Ok })
    }

    fn input(&self) -> Input {
        Input {
            kind: "input",
            addresses: self.indicators.len() as u64,
            events: self.counts.events,
            to_ask: self.plan.order.len() as u64,
            over_limit: self.plan.over_limit.len() as u64,
            local: self.plan.local,
            known_good: self.plan.known_good,
            withheld: self.plan.withheld.clone(),
            v: VERSION,
        }
    }

    fn row(&self, lane: &LaneSpec) -> Row {
        let (definition, settings) = (&lane.definition, &lane.settings);
        let to_ask = due(lane, self.plan, self.indicators, self.guard);
        let pace = Some(pace(lane)).filter(|pace| !pace.is_zero());
        let quota = settings.quotas.iter().min_by_key(|quota| quota.count);
        let by_quota = quota.map_or(to_ask, |quota| to_ask.min(u64::from(quota.count.get())));
        let by_time = match (pace, self.max_time) {
            (Some(pace), Some(limit)) => to_ask.min(within(limit, pace)),
            _ => to_ask,
        };
        let asked = by_quota.min(by_time);
        let takes = pace.map(|pace| pace.mul_f64(count(asked.saturating_sub(1))));
        Row {
            kind: "provider",
            provider: definition.name.clone(),
            host: definition.host().to_owned(),
            sends: definition.sends.clone(),
            key: definition.key.usage != KeyUse::None && lane.key.is_some(),
            from_cache: 0,
            to_ask,
            requests: definition.requests_for(to_ask),
            at_most: lane.ask == Ask::Suspicious,
            rates: settings.rates.iter().map(ToString::to_string).collect(),
            quotas: settings
                .quotas
                .iter()
                .map(|quota| (quota.window.word(), u64::from(quota.count.get())))
                .collect(),
            takes_s: takes.map(|takes| takes.as_secs_f64().round()),
            unanswered: to_ask - asked,
            v: VERSION,
            why: if by_time < by_quota {
                "within --max-time"
            } else {
                quota.map_or("", |quota| in_window(quota.window))
            },
        }
    }
}

/// ` in 1 request`, where that is fewer than the look-ups.
fn in_batches(row: &Row) -> String {
    match row.requests {
        n if n == row.to_ask => String::new(),
        1 => " in 1 request".to_owned(),
        n => format!(" in {} requests", thousands(n)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of look-ups is far below 2^52")]
fn count(n: u64) -> f64 {
    n as f64
}

/// Look-ups that leave within a time, the first of them at once.
fn within(limit: Duration, pace: Duration) -> u64 {
    u64::try_from(limit.as_nanos() / pace.as_nanos().max(1)).unwrap_or(u64::MAX).saturating_add(1)
}

const fn in_window(window: Window) -> &'static str {
    match window {
        Window::Week => "this week",
        Window::Month => "this month",
        Window::Second | Window::Minute | Window::Hour | Window::Day => "today",
    }
}

fn table(input: &Input, rows: &[Row]) -> String {
    // Writing to a String cannot fail.
    let mut text = format!("{} addresses", thousands(input.addresses));
    if input.events > 0 {
        let _ = write!(text, " in {} events", thousands(input.events));
    }
    let _ = write!(text, ": {} to ask about", thousands(input.to_ask));
    if input.over_limit > 0 {
        let _ = write!(text, ", {} over the limit", thousands(input.over_limit));
    }
    if input.local > 0 {
        let _ = write!(text, "; {} answered here alone", thousands(input.local));
    }
    if input.known_good > 0 {
        let _ = write!(text, ", {} of them known to be good", thousands(input.known_good));
    }
    let withheld: Vec<String> = input
        .withheld
        .iter()
        .map(|(reason, n)| format!("{} {}", thousands(*n), reason.replace('-', " ")))
        .collect();
    if !withheld.is_empty() {
        let _ = write!(text, "; {} stay here", withheld.join(", "));
    }
    text.push('\n');
    let mut grid =
        Grid::new(&["provider", "from cache", "to ask", "quota", "at", "takes"]).right(&[1, 2, 3, 4]);
    for row in rows {
        let most = if row.at_most { "up to " } else { "" };
        let quotas: Vec<String> =
            row.quotas.iter().map(|(window, n)| format!("{}/{window}", thousands(*n))).collect();
        let takes = match row.takes_s {
            Some(seconds) => format!("{most}{}", rough(Duration::from_secs_f64(seconds))),
            None => "as it answers".to_owned(),
        };
        let short = if row.unanswered > 0 {
            format!(", and {most}{} would not be answered {}", thousands(row.unanswered), row.why)
        } else {
            String::new()
        };
        grid.row(&[
            &row.provider,
            &thousands(row.from_cache),
            &format!("{most}{}{}", thousands(row.to_ask), in_batches(row)),
            if quotas.is_empty() { "-" } else { quotas.first().map_or("-", |quota| quota) },
            row.rates.first().map_or("-", |rate| rate),
            &format!("{takes}{short}"),
        ]);
    }
    text + &grid.text() + &leaves(rows) + "nothing was sent\n"
}

/// What would leave this host, and to whom.
fn leaves(rows: &[Row]) -> String {
    let mut leaves: BTreeMap<(String, bool), Vec<&str>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.to_ask > 0) {
        let hosts = leaves.entry((row.sends.clone(), row.key)).or_default();
        if !hosts.contains(&row.host.as_str()) {
            hosts.push(&row.host);
        }
    }
    let mut text = String::new();
    for ((sends, key), hosts) in leaves {
        let key = if key { ", with a key" } else { "" };
        let _ = writeln!(text, "{sends}{key}, would go to {}", hosts.join(", "));
    }
    text
}
