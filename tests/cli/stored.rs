//! A store with something in it, written through the library.

use super::harness::Home;
use jiff::{SignedDuration, Timestamp};
use sift::provider::{ErrorType, Window};
use sift::store::{
    Account, Ask, End, Ledger as _, Look, Place, Reply, Settled, SqliteStore, Stored, TellingOf, Who,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The address that everybody has something to say of.
pub(crate) const IP: &str = "203.0.113.7";

/// A store in this home's state folder.
pub(crate) struct Content {
    store: SqliteStore,
    pub(crate) now: Timestamp,
    pub(crate) quota: &'static str,
}

impl Content {
    pub(crate) fn of(home: &Home) -> Self {
        let store = SqliteStore::open(&Place::new(home.path().join("state/sift"))).unwrap();
        Self { store, now: Timestamp::now(), quota: "1000/day" }
    }

    /// An attempt at a provider so long ago, with its end.
    pub(crate) fn asked(&self, account: &Account, who: Who, ip: &str, ago: Duration, end: &str) {
        let ip: IpAddr = ip.parse().unwrap();
        let at = self.now - SignedDuration::try_from(ago).unwrap();
        let ask = Ask {
            account: account.clone(),
            quotas: vec![self.quota.parse().unwrap()],
            burst: 0,
            // Whatever the hour is, what was asked a while ago counts.
            rolling_day: true,
            reserve: 0.2,
            who,
            user: "ana".into(),
            keep_claim: Duration::from_secs(60),
        };
        get(self.store.admit(Arc::new(ask), vec![Look::from(ip)], true, at));
        let end = match end {
            "timeout" => End::Nothing(ErrorType::Timeout),
            answer => End::Answered(Stored {
                ip,
                found: !answer.contains("\"found\":false"),
                answer: answer.as_bytes().to_vec(),
                version: 1,
                status: 200,
                body: Some(format!("{{\"said\":{answer}}}").into_bytes()),
                fetched_at: at,
                keep_until: at + SignedDuration::from_hours(24 * 90),
            }),
        };
        get(self.store.settle(account, vec![Settled { ip, end }], None));
    }

    pub(crate) fn told(&self, account: &Account, left: u64) {
        let telling = TellingOf { window: Window::Day, remaining: left, limit: Some(1_000), reset: None };
        get(self.store.told(account, telling, self.now));
    }

    pub(crate) fn hold(&self, account: &Account, until: Timestamp) {
        get(self.store.hold(account, until, None, self.now));
    }
}

/// The real AbuseIPDB, with the key that tests have.
pub(crate) fn abuseipdb() -> Account {
    Account::new("abuseipdb", "api.abuseipdb.com", Some("fake-key"))
}

/// Two answers about [`IP`], one of them out of date, one from a rehearsal, and one failure about another address.
pub(crate) fn fill(home: &Home) {
    let content = Content::of(home);
    let (vt, minutes) =
        (Account::new("virustotal", "www.virustotal.com", None), |n: u64| Duration::from_secs(n * 60));
    let malicious = r#"{"verdict":"malicious","score":96,"found":true,"tags":["ssh"],"country":"NL"}"#;
    let unknown = r#"{"verdict":"unknown","score":null,"found":false}"#;
    let benign = r#"{"verdict":"benign","score":0,"found":true}"#;
    content.asked(&vt, Who::Person, IP, minutes(60 * 24 * 60), unknown);
    content.asked(&Account::on_loopback("shodan", None), Who::Person, IP, minutes(90), benign);
    content.asked(&abuseipdb(), Who::Job("eve".into()), IP, minutes(20), malicious);
    content.asked(&abuseipdb(), Who::Worker(None), "2001:db8::7", minutes(10), "timeout");
    content.told(&abuseipdb(), 958);
}

fn get<T>(reply: Reply<T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(reply).unwrap()
}
