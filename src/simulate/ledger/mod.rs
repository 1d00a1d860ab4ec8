//! What arrived, when, and what was answered.
//!
//! One lock, taken once at a request's arrival and once at its end, never across a wait. Memory is bounded: arrivals
//! and orders keep their last or first so many, addresses are kept as 64-bit fingerprints (8 bytes each; two addresses
//! out of a million share one with a chance of 3 in 10⁸).

mod seen;
mod snapshot;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::seen::Seen;
use self::watch::Watch;
use super::scenario::{FaultKind, Limit};

pub use snapshot::{HoldOffBreach, LimitReport, ProviderReport, Snapshot, Total, TrapReport};

/// Arrival times kept of each provider: the last so many.
const KEPT_ARRIVALS: usize = 100_000;
/// Addresses kept in the order they were first asked: the first so many.
const KEPT_ORDER: usize = 100_000;
/// Examples kept of each kind of mischief: the first so many.
const KEPT_EXAMPLES: usize = 100;

/// The server's record of what reached it. Take a [`Snapshot`] to read it.
#[derive(Debug)]
pub struct Ledger {
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    start: Instant,
    names: Vec<(String, Vec<Limit>)>,
    pages: Vec<Page>,
    in_flight: u64,
    peak_in_flight: u64,
    connections: u64,
    open: u64,
    peak_open: u64,
    unrouted: u64,
    malformed: u64,
    other_hosts: Vec<String>,
    trap: TrapReport,
}

/// What the ledger holds of one provider.
#[derive(Debug)]
struct Page {
    requests: u64,
    in_flight: u64,
    peak_in_flight: u64,
    statuses: BTreeMap<u16, u64>,
    faults: BTreeMap<FaultKind, u64>,
    answered: u64,
    abandoned: u64,
    bytes_out: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    held: Duration,
    longest_hold: Duration,
    hold: Option<HoldOff>,
    breaches: u64,
    breach_examples: Vec<HoldOffBreach>,
    seen: Seen,
    asked_again: u64,
    answered_again: u64,
    malformed_addresses: u64,
    special: u64,
    special_examples: Vec<IpAddr>,
    no_key: u64,
    wrong_key: u64,
    arrivals: VecDeque<u64>,
    order: Vec<IpAddr>,
    watches: Vec<Watch>,
}

/// A hold-off announced by a 429.
#[derive(Debug, Clone, Copy)]
struct HoldOff {
    announced: Instant,
    until: Instant,
}

/// What a request showed of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyShown {
    Right,
    Wrong,
    None,
    /// The provider reads none.
    NotRead,
}

/// What is known of a request at its arrival.
pub(super) struct Arrival<'a> {
    pub page: usize,
    pub at: Instant,
    pub addresses: &'a [IpAddr],
    pub malformed: u64,
    pub special: fn(IpAddr) -> bool,
    pub key: KeyShown,
}

/// What became of a request.
pub(super) struct Outcome<'a> {
    pub page: usize,
    pub arrived: Instant,
    pub at: Instant,
    /// `None`: nothing of a status line was sent.
    pub status: Option<u16>,
    pub bytes: u64,
    /// The client was gone before all was written.
    pub abandoned: bool,
    /// The addresses were answered: a status of 2xx, or the provider's not-found, without a fault.
    pub answered: &'a [IpAddr],
    /// The wait announced by `Retry-After`.
    pub announced: Option<Duration>,
}

impl Ledger {
    /// An empty ledger with a page for each of these providers.
    pub(super) fn new(start: Instant, names: Vec<(String, Vec<Limit>)>) -> Self {
        Self { book: Mutex::new(Book::new(start, names)) }
    }

    /// Everything noted so far, summed up.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.book().snapshot()
    }

    /// Forgets everything but what is in flight.
    pub(super) fn reset(&self, start: Instant) {
        let mut book = self.book();
        let mut fresh = Book::new(start, std::mem::take(&mut book.names));
        fresh.in_flight = book.in_flight;
        fresh.open = book.open;
        for (new, old) in fresh.pages.iter_mut().zip(&book.pages) {
            new.in_flight = old.in_flight;
        }
        *book = fresh;
    }

    pub(super) fn arrive(&self, arrival: &Arrival<'_>) {
        self.book().arrive(arrival);
    }

    pub(super) fn fault(&self, page: usize, kind: FaultKind) {
        if let Some(page) = self.book().pages.get_mut(page) {
            *page.faults.entry(kind).or_default() += 1;
        }
    }

    pub(super) fn end(&self, outcome: &Outcome<'_>) {
        self.book().end(outcome);
    }

    pub(super) fn connected(&self) {
        let mut book = self.book();
        book.connections += 1;
        book.open += 1;
        book.peak_open = book.peak_open.max(book.open);
    }

    pub(super) fn disconnected(&self) {
        let mut book = self.book();
        book.open = book.open.saturating_sub(1);
    }

    pub(super) fn unrouted(&self) {
        self.book().unrouted += 1;
    }

    pub(super) fn not_http(&self) {
        self.book().malformed += 1;
    }

    pub(super) fn other_host(&self, host: &str) {
        let mut book = self.book();
        if book.other_hosts.len() < KEPT_EXAMPLES && !book.other_hosts.iter().any(|known| known == host) {
            book.other_hosts.push(host.to_owned());
        }
    }

    pub(super) fn trapped(&self, host: &str, with_key: bool) {
        let mut book = self.book();
        book.trap.requests += 1;
        book.trap.with_key += u64::from(with_key);
        if book.trap.hosts.len() < KEPT_EXAMPLES && !book.trap.hosts.iter().any(|known| known == host) {
            book.trap.hosts.push(host.to_owned());
        }
    }

    /// A holder of the lock that panicked left counts that are still counts.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn new(start: Instant, names: Vec<(String, Vec<Limit>)>) -> Self {
        Self {
            start,
            pages: names.iter().map(|(_, limits)| Page::new(limits)).collect(),
            names,
            in_flight: 0,
            peak_in_flight: 0,
            connections: 0,
            open: 0,
            peak_open: 0,
            unrouted: 0,
            malformed: 0,
            other_hosts: Vec::new(),
            trap: TrapReport::default(),
        }
    }

    fn arrive(&mut self, arrival: &Arrival<'_>) {
        let since = arrival.at.saturating_duration_since(self.start);
        let Some(page) = self.pages.get_mut(arrival.page) else { return };
        self.in_flight += 1;
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        page.arrive(arrival, since);
    }

    fn end(&mut self, outcome: &Outcome<'_>) {
        let Some(page) = self.pages.get_mut(outcome.page) else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        page.end(outcome);
    }
}

impl Page {
    fn new(limits: &[Limit]) -> Self {
        Self {
            requests: 0,
            in_flight: 0,
            peak_in_flight: 0,
            statuses: BTreeMap::new(),
            faults: BTreeMap::new(),
            answered: 0,
            abandoned: 0,
            bytes_out: 0,
            first: None,
            last: None,
            held: Duration::ZERO,
            longest_hold: Duration::ZERO,
            hold: None,
            breaches: 0,
            breach_examples: Vec::new(),
            seen: Seen::default(),
            asked_again: 0,
            answered_again: 0,
            malformed_addresses: 0,
            special: 0,
            special_examples: Vec::new(),
            no_key: 0,
            wrong_key: 0,
            arrivals: VecDeque::new(),
            order: Vec::new(),
            watches: limits.iter().map(|limit| Watch::new(*limit)).collect(),
        }
    }

    fn arrive(&mut self, arrival: &Arrival<'_>, since: Duration) {
        self.requests += 1;
        self.in_flight += 1;
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        self.first.get_or_insert(arrival.at);
        self.last = Some(arrival.at);
        let micros = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        if self.arrivals.len() == KEPT_ARRIVALS {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(micros);
        for watch in &mut self.watches {
            watch.note(since);
        }
        match arrival.key {
            KeyShown::None => self.no_key += 1,
            KeyShown::Wrong => self.wrong_key += 1,
            KeyShown::Right | KeyShown::NotRead => {}
        }
        self.note_breach(arrival.at, micros);
        self.malformed_addresses += arrival.malformed;
        for ip in arrival.addresses {
            self.note_address(*ip, (arrival.special)(*ip));
        }
    }

    fn note_breach(&mut self, at: Instant, micros: u64) {
        let Some(hold) = self.hold.filter(|hold| at < hold.until) else { return };
        self.breaches += 1;
        if self.breach_examples.len() < KEPT_EXAMPLES {
            self.breach_examples.push(HoldOffBreach {
                at_ms: snapshot::float(micros) / 1000.0,
                after_ms: at.saturating_duration_since(hold.announced).as_secs_f64() * 1000.0,
                left_ms: hold.until.saturating_duration_since(at).as_secs_f64() * 1000.0,
            });
        }
    }

    fn note_address(&mut self, ip: IpAddr, special: bool) {
        if special {
            self.special += 1;
            if self.special_examples.len() < KEPT_EXAMPLES {
                self.special_examples.push(ip);
            }
        }
        if !self.seen.ask(ip) {
            self.asked_again += 1;
        } else if self.order.len() < KEPT_ORDER {
            self.order.push(ip);
        }
    }

    fn end(&mut self, outcome: &Outcome<'_>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(status) = outcome.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        self.abandoned += u64::from(outcome.abandoned);
        self.bytes_out += outcome.bytes;
        if !outcome.abandoned {
            let held = outcome.at.saturating_duration_since(outcome.arrived);
            self.answered += 1;
            self.held += held;
            self.longest_hold = self.longest_hold.max(held);
        }
        for ip in outcome.answered {
            self.answered_again += u64::from(!self.seen.answer(*ip));
        }
        if let Some(wait) = outcome.announced {
            let until = outcome.at + wait;
            if self.hold.is_none_or(|hold| hold.until < until) {
                self.hold = Some(HoldOff { announced: outcome.at, until });
            }
        }
    }
}

#[cfg(test)]
mod tests;
