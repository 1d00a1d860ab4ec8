//! The ledger as it is read: by programs as JSON, by people as text.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use super::{Book, Page, Seen};
use crate::output::counted;
use crate::simulate::scenario::{FaultKind, LimitKind};

/// The ledger at one moment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Over all providers.
    pub total: Total,
    /// Providers that were asked, by name.
    pub providers: BTreeMap<String, ProviderReport>,
    /// Requests to `/__trap`.
    pub trap: TrapReport,
}

/// What arrived in all.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Total {
    /// Requests to providers.
    pub requests: u64,
    /// In flight now: arrived and not yet fully answered.
    pub in_flight: u64,
    /// Most in flight at once.
    pub peak_in_flight: u64,
    /// Requests by the status sent.
    pub statuses: BTreeMap<u16, u64>,
    /// Addresses asked about, each once.
    pub distinct: u64,
    /// Questions about special addresses (private, reserved and so on; documentation ranges are not among them).
    pub special: u64,
    /// Bytes sent, heads included.
    pub bytes_out: u64,
    /// First to last arrival, in milliseconds.
    pub span_ms: f64,
    /// Requests a second from the first to the last arrival; 0 below two requests.
    pub per_second: f64,
    /// Mean time from a request's arrival to its answer's last byte, in milliseconds.
    pub mean_hold_ms: f64,
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub peak_connections: u64,
    /// Requests to paths of nobody.
    pub unrouted: u64,
    /// Connections closed because what came was not HTTP/1.1.
    pub malformed: u64,
    /// `Host` headers other than this server's address (the first 100).
    pub other_hosts: Vec<String>,
}

/// What arrived for one provider.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProviderReport {
    /// Requests, refused ones included.
    pub requests: u64,
    /// In flight now.
    pub in_flight: u64,
    /// Most in flight at once.
    pub peak_in_flight: u64,
    /// Requests by the status sent.
    pub statuses: BTreeMap<u16, u64>,
    /// 429s sent.
    pub too_many: u64,
    /// Faults applied.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Requests whose answer was written in full.
    pub answered: u64,
    /// Requests whose client left before that.
    pub abandoned: u64,
    /// Requests that arrived in a hold-off announced by an earlier 429's `Retry-After`.
    pub in_hold_off: u64,
    /// The first 100 of them.
    pub hold_off_breaches: Vec<HoldOffBreach>,
    /// Each configured limit against what arrived.
    pub limits: Vec<LimitReport>,
    /// Addresses asked about, each once.
    pub distinct: u64,
    /// Questions about an address that had been asked before.
    pub asked_again: u64,
    /// Answers about an address that had been answered before.
    pub answered_again: u64,
    /// Questions that held no address.
    pub malformed_addresses: u64,
    /// Questions about special addresses.
    pub special: u64,
    /// The first 100 of them.
    pub special_addresses: Vec<IpAddr>,
    /// Requests without a key, where the provider reads one.
    pub no_key: u64,
    /// Requests with another key than the scenario's.
    pub wrong_key: u64,
    /// Bytes sent, heads included.
    pub bytes_out: u64,
    /// First arrival, in milliseconds from the server's start.
    pub first_ms: f64,
    /// Last arrival.
    pub last_ms: f64,
    /// Requests a second between the two; 0 below two requests.
    pub per_second: f64,
    /// Mean time from arrival to the answer's last byte, in milliseconds.
    pub mean_hold_ms: f64,
    /// The longest of them.
    pub max_hold_ms: f64,
    /// The last 100,000 arrivals, in milliseconds from the server's start.
    pub arrivals_ms: Vec<f64>,
    /// The first 100,000 addresses in the order they were first asked about.
    pub order: Vec<IpAddr>,
}

/// A limit of the scenario, and how far the asking side kept it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LimitReport {
    /// Requests allowed …
    pub count: u64,
    /// … in so many milliseconds.
    pub per_ms: f64,
    /// How the server counts: sliding, fixed or bucket.
    pub kind: &'static str,
    /// Most arrivals in any window of that length, refused ones included.
    pub max_in_window: u64,
    /// Arrivals that found their window full: 0 means that the limit was never exceeded.
    pub exceeded: u64,
}

/// A request that came although it had been told to wait.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HoldOffBreach {
    /// When, in milliseconds from the server's start.
    pub at_ms: f64,
    /// So long after the 429 was written: a few milliseconds mean that they crossed on the way.
    pub after_ms: f64,
    /// So much too early.
    pub left_ms: f64,
}

/// What reached `/__trap`.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct TrapReport {
    /// Requests.
    pub requests: u64,
    /// Those that carried a key: a provider's key header or parameter, or a key of the scenario anywhere.
    pub with_key: u64,
    /// Their `Host` headers.
    pub hosts: Vec<String>,
}

impl Snapshot {
    /// What arrived for this provider, if anything did.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&ProviderReport> {
        self.providers.get(name)
    }
}

fn ms(duration: Duration) -> f64 {
    // Microseconds are finer than the runtime's timer, and keep the JSON short.
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// A count as a number to divide by.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, and a ledger counts fewer")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

fn mean_ms(sum: Duration, count: u64) -> f64 {
    if count == 0 { 0.0 } else { (sum.as_secs_f64() * 1e6 / float(count)).round() / 1e3 }
}

fn rate(requests: u64, span: Duration) -> f64 {
    if requests < 2 || span.is_zero() { 0.0 } else { float(requests - 1) / span.as_secs_f64() }
}

impl Book {
    pub(super) fn snapshot(&self) -> Snapshot {
        let asked = || self.names.iter().zip(&self.pages).filter(|(_, page)| page.requests > 0);
        let first = asked().filter_map(|(_, page)| page.first).min();
        let last = asked().filter_map(|(_, page)| page.last).max();
        let span =
            first.zip(last).map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first));
        let sum = |of: fn(&Page) -> u64| self.pages.iter().map(of).sum::<u64>();
        let mut statuses = BTreeMap::new();
        for (_, page) in asked() {
            for (status, count) in &page.statuses {
                *statuses.entry(*status).or_default() += count;
            }
        }
        let requests = sum(|page| page.requests);
        let total = Total {
            requests,
            in_flight: self.in_flight,
            peak_in_flight: self.peak_in_flight,
            statuses,
            distinct: self.distinct() as u64,
            special: sum(|page| page.special),
            bytes_out: sum(|page| page.bytes_out),
            span_ms: ms(span),
            per_second: rate(requests, span),
            mean_hold_ms: mean_ms(self.pages.iter().map(|page| page.held).sum(), sum(|page| page.answered)),
            connections: self.connections,
            peak_connections: self.peak_open,
            unrouted: self.unrouted,
            malformed: self.malformed,
            other_hosts: self.other_hosts.clone(),
        };
        let providers = asked().map(|((name, _), page)| (name.clone(), self.report(page))).collect();
        Snapshot { total, providers, trap: self.trap.clone() }
    }

    /// Addresses asked about at any provider. A million of them are not copied where one provider saw them all.
    fn distinct(&self) -> usize {
        let mut asked = self.pages.iter().filter(|page| page.requests > 0);
        match (asked.next(), asked.next()) {
            (None, _) => 0,
            (Some(one), None) => one.seen.len(),
            (Some(one), Some(two)) => {
                let mut all = Seen::default();
                for page in [one, two].into_iter().chain(asked) {
                    all.join(&page.seen);
                }
                all.len()
            }
        }
    }

    fn report(&self, page: &Page) -> ProviderReport {
        let since = |at: Option<tokio::time::Instant>| {
            at.map_or(Duration::ZERO, |at| at.saturating_duration_since(self.start))
        };
        ProviderReport {
            requests: page.requests,
            in_flight: page.in_flight,
            peak_in_flight: page.peak_in_flight,
            too_many: page.statuses.get(&429).copied().unwrap_or(0),
            statuses: page.statuses.clone(),
            faults: page.faults.clone(),
            answered: page.answered,
            abandoned: page.abandoned,
            in_hold_off: page.breaches,
            hold_off_breaches: page.breach_examples.clone(),
            limits: page.watches.iter().map(LimitReport::of).collect(),
            distinct: page.seen.len() as u64,
            asked_again: page.asked_again,
            answered_again: page.answered_again,
            malformed_addresses: page.malformed_addresses,
            special: page.special,
            special_addresses: page.special_examples.clone(),
            no_key: page.no_key,
            wrong_key: page.wrong_key,
            bytes_out: page.bytes_out,
            first_ms: ms(since(page.first)),
            last_ms: ms(since(page.last)),
            per_second: rate(page.requests, since(page.last).saturating_sub(since(page.first))),
            mean_hold_ms: mean_ms(page.held, page.answered),
            max_hold_ms: ms(page.longest_hold),
            arrivals_ms: page.arrivals.iter().map(|micros| float(*micros) / 1e3).collect(),
            order: page.order.clone(),
        }
    }
}

impl LimitReport {
    fn of(watch: &super::Watch) -> Self {
        Self {
            count: watch.limit.count.get(),
            per_ms: ms(watch.limit.per),
            kind: match watch.limit.kind {
                LimitKind::Sliding => "sliding",
                LimitKind::Fixed => "fixed",
                LimitKind::Bucket => "bucket",
            },
            max_in_window: watch.most,
            exceeded: watch.over,
        }
    }
}

fn requests(n: u64) -> String {
    counted(n, "request", "requests")
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        if total.requests == 0 {
            writeln!(f, "no requests")?;
        } else {
            writeln!(
                f,
                "{} for {}, {:.1}/s, at most {} in flight, {}",
                requests(total.requests),
                counted(total.distinct, "address", "addresses"),
                total.per_second,
                total.peak_in_flight,
                counted(total.special, "special address", "special addresses")
            )?;
        }
        for (name, page) in &self.providers {
            write!(f, "  {name}: {page}")?;
        }
        if self.trap.requests > 0 {
            writeln!(f, "  trap: {}, {} with a key", requests(self.trap.requests), self.trap.with_key)?;
        }
        if total.unrouted + total.malformed > 0 {
            let unrouted = requests(total.unrouted);
            writeln!(f, "  {unrouted} to unknown paths, {} not HTTP", total.malformed)?;
        }
        Ok(())
    }
}

impl fmt::Display for ProviderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&requests(self.requests))?;
        for (status, count) in &self.statuses {
            write!(f, ", {count} × {status}")?;
        }
        writeln!(
            f,
            "; at most {} in flight, {:.1}/s, answered in {:.1} ms (mean), {:.1} ms (max)",
            self.peak_in_flight, self.per_second, self.mean_hold_ms, self.max_hold_ms
        )?;
        for limit in &self.limits {
            let LimitReport { count, kind, max_in_window, exceeded, per_ms } = limit;
            writeln!(
                f,
                "    limit {count} in {:.1} s ({kind}): {max_in_window} at most, {exceeded} over",
                per_ms / 1e3
            )?;
        }
        for (count, what) in [
            (self.in_hold_off, "in a hold-off"),
            (self.asked_again, "about an address asked before"),
            (self.answered_again, "answered again"),
            (self.special, "about special addresses"),
            (self.no_key, "without a key"),
            (self.wrong_key, "with a wrong key"),
            (self.abandoned, "given up by the client"),
        ] {
            if count > 0 {
                writeln!(f, "    {count} {what}")?;
            }
        }
        Ok(())
    }
}
