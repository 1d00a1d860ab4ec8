//! `sift enrich -n`: what a run would ask of whom, and what that takes. Sends nothing.

use super::args::OutputForm;
use super::exit::Exit;
use super::forecast::{Kept, left};
use super::progress::{due, pace, rough};
use super::report::CliError;
use super::stdout::{Grid, lines, print};
use crate::enrich::{Ask, LaneSpec};
use crate::extract::{Counts, Indicators};
use crate::output::{counted, thousands};
use crate::plan::{Guard, Plan};
use crate::provider::{KeyUse, Window};
use crate::store::{QuotaRow, Who};
use jiff::Timestamp;
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
    /// Look-ups that all providers together may spend; null without `--budget`.
    budget: Option<u64>,
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
    /// Requests that would leave, where nothing fails.
    requests: u64,
    /// Those are the most: it is asked only about what others do not clear.
    at_most: bool,
    /// The rates that are kept, as in `4/min`.
    rates: Vec<String>,
    /// Look-ups that the provider's long windows allow, by window.
    quotas: BTreeMap<&'static str, u64>,
    /// What is left of the tightest of them, by the ledger of all processes; null where there is none.
    left: Option<u64>,
    /// The same for this run: a job leaves a part to people, and a provider that is held off is not asked.
    usable: Option<u64>,
    /// Until when the provider is held off, if it is.
    held_until: Option<Timestamp>,
    /// The rank of the first address that would not be asked about, from 1; null where all would.
    cut_at_rank: Option<u64>,
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
    /// What the cache answers.
    pub(super) kept: Kept,
    /// What was spent of the quotas.
    pub(super) spent: Vec<QuotaRow>,
    /// For whom the run would be made.
    pub(super) who: Who,
    /// Look-ups that it may spend in all.
    pub(super) budget: Option<u64>,
    /// Nothing is sent at all.
    pub(super) is_offline: bool,
}

impl DryRun<'_> {
    /// Prints it; 3 where some look-ups would not be answered, else 0.
    ///
    /// # Errors
    /// Where standard output cannot be written.
    pub(super) fn print(&self, form: Option<OutputForm>) -> Result<Exit, CliError> {
        let rows: Vec<Row> =
            self.lanes.iter().enumerate().map(|(number, lane)| self.row(number, lane)).collect();
        let input = self.input();
        match form {
            Some(OutputForm::Ndjson | OutputForm::Json) => print(&(lines(&[input])? + &lines(&rows)?))?,
            _ => print(&table(&input, &rows))?,
        }
        let sure = || rows.iter().filter(|row| !row.at_most);
        let asked: u64 = sure().map(|row| row.to_ask - row.unanswered).sum();
        let falls_short = !self.plan.over_limit.is_empty()
            || sure().any(|row| row.unanswered > 0)
            || self.budget.is_some_and(|budget| budget < asked);
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
            budget: self.budget,
            v: VERSION,
        }
    }

    fn row(&self, number: usize, lane: &LaneSpec) -> Row {
        let (definition, settings) = (&lane.definition, &lane.settings);
        let due = due(lane, self.plan, self.indicators, self.guard);
        // Ranks, from 1, of those that the cache has no answer for.
        let ranks: Vec<u64> =
            self.kept.missing(number, lane, self.plan, self.indicators, self.guard).collect();
        let to_ask = ranks.len() as u64;
        let pace = Some(pace(lane)).filter(|pace| !pace.is_zero());
        let left = left(lane, &self.spent, &self.who);
        let budget = lane.budget.into_iter().chain(self.budget).min();
        let by_budget = match budget {
            _ if self.is_offline => 0,
            budget => budget.map_or(to_ask, |budget| to_ask.min(budget)),
        };
        let by_quota = left.map_or(by_budget, |left| by_budget.min(left.usable));
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
            from_cache: due - to_ask,
            to_ask,
            requests: definition.requests_for(asked),
            at_most: lane.ask == Ask::Suspicious,
            rates: settings.rates.iter().map(ToString::to_string).collect(),
            quotas: settings
                .quotas
                .iter()
                .map(|quota| (quota.window.word(), u64::from(quota.count.get())))
                .collect(),
            left: left.map(|left| left.all),
            usable: left.map(|left| left.usable),
            held_until: left.and_then(|left| left.held_until),
            cut_at_rank: usize::try_from(asked).ok().and_then(|asked| ranks.get(asked).copied()),
            takes_s: takes.map(|takes| takes.as_secs_f64().round()),
            unanswered: to_ask - asked,
            v: VERSION,
            why: if by_time < by_quota {
                "within --max-time"
            } else if by_quota < by_budget {
                left.map_or("", |left| in_window(left.window))
            } else if self.is_offline {
                "with --offline"
            } else {
                "within --budget"
            },
        }
    }
}

/// ` in 1 request`, where that is fewer than the look-ups.
fn in_batches(row: &Row) -> String {
    match row.requests {
        n if n >= row.to_ask - row.unanswered => String::new(),
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
    let mut text = counted(input.addresses, "address", "addresses");
    if input.events > 0 {
        let _ = write!(text, " in {}", counted(input.events, "event", "events"));
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
    let withheld: Vec<String> =
        input.withheld.iter().map(|(reason, n)| format!("{} {reason}", thousands(*n))).collect();
    if !withheld.is_empty() {
        let stay = if input.withheld.values().sum::<u64>() == 1 { "stays" } else { "stay" };
        let _ = write!(text, "; {} {stay} here", withheld.join(", "));
    }
    text.push('\n');
    let mut grid =
        Grid::new(&["provider", "from cache", "to ask", "left", "at", "takes"]).right(&[1, 2, 3, 4]);
    for row in rows {
        let most = if row.at_most { "up to " } else { "" };
        let left = match (row.left, row.usable) {
            (Some(left), Some(usable)) if usable < left => {
                format!("{} ({})", thousands(left), thousands(usable))
            }
            (Some(left), _) => thousands(left),
            (None, _) => "-".to_owned(),
        };
        let takes = match row.takes_s {
            Some(seconds) => format!("{most}{}", rough(Duration::from_secs_f64(seconds))),
            None => "as it answers".to_owned(),
        };
        let short = if row.unanswered > 0 {
            let from = row
                .cut_at_rank
                .map_or_else(String::new, |rank| format!(", from rank {} on", thousands(rank)));
            format!(", and {most}{} would not be answered {}{from}", thousands(row.unanswered), row.why)
        } else {
            String::new()
        };
        grid.row(&[
            &row.provider,
            &thousands(row.from_cache),
            &format!("{most}{}{}", thousands(row.to_ask), in_batches(row)),
            &left,
            row.rates.first().map_or("-", |rate| rate),
            &format!("{takes}{short}"),
        ]);
    }
    text += &grid.text();
    // Whoever is quicker takes more of it, so no row can say what is left for its provider.
    if let Some(budget) = input.budget.filter(|_| rows.len() > 1) {
        let _ = writeln!(text, "all of them together: at most {} (--budget)", thousands(budget));
    }
    text + &leaves(rows) + "nothing was sent\n"
}

/// What would leave this host, and to whom.
fn leaves(rows: &[Row]) -> String {
    let mut leaves: BTreeMap<(String, bool), Vec<&str>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.to_ask > row.unanswered) {
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
