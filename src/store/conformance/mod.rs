//! What every engine must do, tested through the traits alone. An engine says how to open one store several times, as
//! several processes would, and calls [`all`].

mod cache;
mod claims;
mod day;
mod ledger;
mod model;
mod queue;
mod told;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Account, Admission, Admitted, Ask, End, Look, Settled, Store, Stored, Who};

/// An empty store, to be opened as often as wanted.
pub(super) trait Ground {
    /// Opens it, as one more process would.
    fn open(&self) -> Arc<dyn Store>;
}

/// Runs every test, each on ground of its own.
pub(super) fn all<G: Ground>(ground: impl Fn() -> G) {
    cache::all(&ground);
    ledger::all(&ground);
    queue::all(&ground);
    model::all(&ground);
    claims::all(&ground);
    told::all(&ground);
    day::all(&ground);
}

/// Waits for a reply, outside of any runtime of the program's.
pub(super) fn get<T>(reply: super::Reply<T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(reply).unwrap()
}

/// 2026-01-15 10:00 UTC, and so many seconds.
pub(super) fn at(seconds: f64) -> Timestamp {
    "2026-01-15T10:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs_f64(seconds)
}

/// One of many addresses.
pub(super) fn ip(n: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0808_0000 + n).into()
}

pub(super) fn account() -> Account {
    Account::new("abuseipdb", "api.abuseipdb.com", Some("secret"))
}

pub(super) fn stored(ip: IpAddr, seconds: f64) -> Stored {
    Stored {
        ip,
        found: true,
        answer: br#"{"verdict":"malicious","score":90,"found":true}"#.to_vec(),
        version: u64::MAX - 1,
        status: 200,
        body: None,
        fetched_at: at(seconds),
        keep_until: at(seconds + 86_400.0),
    }
}

pub(super) fn ask(quotas: &[&str]) -> Ask {
    Ask {
        account: account(),
        quotas: quotas.iter().map(|quota| quota.parse().unwrap()).collect(),
        burst: 0,
        rolling_day: false,
        reserve: 0.0,
        who: Who::Person,
        user: "ann".into(),
        keep_claim: Duration::from_secs(120),
    }
}

pub(super) fn admit(
    store: &Arc<dyn Store>,
    ask: &Ask,
    ips: impl IntoIterator<Item = u32>,
    seconds: f64,
) -> Admitted {
    let looks = ips.into_iter().map(|n| Look::from(ip(n))).collect();
    get(store.admit(Arc::new(ask.clone()), looks, true, at(seconds)))
}

pub(super) fn settle(store: &Arc<dyn Store>, n: u32, end: End) {
    get(store.settle(&account(), vec![Settled { ip: ip(n), end }], None));
}

pub(super) fn going(admitted: &Admitted) -> usize {
    admitted.verdicts.iter().filter(|verdict| **verdict == Admission::Go).count()
}
