//! What answers on this machine: lists and MMDB files, before any request.
//!
//! Nothing is kept for each address: what the sources say is worked out anew whenever it is needed, once for the plan and
//! once for the record, which takes less than a microsecond and no memory.

use crate::provider::{Answer, ListDefinition, Lists, Mmdb, Role, Verdict};
use jiff::Timestamp;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The name under which a record says that an address is on none of the lists.
pub const LISTS: &str = "lists";
/// The name under which a record shows what the MMDB files say, all of them together.
pub const MMDB: &str = "mmdb";

/// What one local source says of an address.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// A list's name, [`LISTS`] or [`MMDB`].
    pub source: Arc<str>,
    /// A hit counts as its list says; a miss and an MMDB file are context.
    pub role: Role,
    /// What it says.
    pub answer: Answer,
    /// Of when that is.
    pub since: Timestamp,
}

/// The lists and files of a run. Empty where there are none.
#[derive(Debug, Default)]
pub struct Local {
    lists: Lists,
    /// By list: its name, and when its source last confirmed it.
    names: HashMap<String, (Arc<str>, Timestamp)>,
    /// Of when the oldest list is.
    oldest: Timestamp,
    files: Vec<Mmdb>,
    /// Of when the newest file is.
    built: Timestamp,
    asks_known_good: bool,
}

impl Local {
    /// Puts lists and files together. `confirmed` is when a list's source last said that it is what there is.
    #[must_use]
    pub fn new(lists: Lists, confirmed: impl Fn(&ListDefinition) -> Timestamp, files: Vec<Mmdb>) -> Self {
        let names: HashMap<_, _> = lists
            .iter()
            .map(|list| (list.name.clone(), (Arc::from(list.name.as_str()), confirmed(list))))
            .collect();
        let built = files.iter().filter_map(|file| Timestamp::try_from(file.built()?).ok()).max();
        Self {
            oldest: names.values().map(|(_, at)| *at).min().unwrap_or_default(),
            lists,
            names,
            built: built.unwrap_or_default(),
            files,
            asks_known_good: false,
        }
    }

    /// The same, and addresses that are known to be good are asked about like all others.
    #[must_use]
    pub fn asking_known_good(self, asks: bool) -> Self {
        Self { asks_known_good: asks, ..self }
    }

    /// Whether nothing here can answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.files.is_empty()
    }

    /// How many lists there are.
    #[must_use]
    pub fn n_lists(&self) -> usize {
        self.lists.len()
    }

    /// How many MMDB files there are.
    #[must_use]
    pub fn n_files(&self) -> usize {
        self.files.len()
    }

    /// Whether the address need not be asked about: a list of known good ones holds it, and none that accuses it.
    #[must_use]
    pub fn clears(&self, ip: IpAddr) -> bool {
        !self.asks_known_good && self.lists.contains(ip) && self.verdict(ip) == Some(Verdict::Benign)
    }

    /// The worst of what the lists say of the address; `None` where it is on none that decides.
    #[must_use]
    pub fn verdict(&self, ip: IpAddr) -> Option<Verdict> {
        let deciding = self.lists.matches(ip).filter(|list| list.role == Role::Reputation);
        deciding.map(|list| list.verdict).min_by_key(|verdict| match verdict {
            Verdict::Malicious => 0,
            Verdict::Suspicious => 1,
            Verdict::Benign => 2,
            Verdict::Unknown => 3,
        })
    }

    /// All that the sources say of the address: each list that holds it, or that none does, and the files.
    #[must_use]
    pub fn said(&self, ip: IpAddr) -> Vec<Said> {
        let mut said: Vec<Said> = self.lists.matches(ip).filter_map(|list| self.hit(list)).collect();
        if said.is_empty() && !self.lists.is_empty() {
            said.push(Said {
                source: Arc::from(LISTS),
                role: Role::Context,
                answer: Answer::not_found(),
                since: self.oldest,
            });
        }
        said.extend(self.place(ip));
        said
    }

    fn hit(&self, list: &ListDefinition) -> Option<Said> {
        let (name, since) = self.names.get(&list.name)?;
        Some(Said { source: Arc::clone(name), role: list.role, answer: list.answer(), since: *since })
    }

    /// Country and network, each from the first file that knows it. A file that is damaged at this place says nothing.
    fn place(&self, ip: IpAddr) -> Option<Said> {
        let mut answer = Answer::not_found();
        for file in &self.files {
            let Ok(found) = file.answer(ip) else { continue };
            answer.found |= found.found;
            answer.country = answer.country.or(found.country);
            answer.asn = answer.asn.or(found.asn);
            answer.as_org = answer.as_org.or(found.as_org);
        }
        (!self.files.is_empty()).then(|| Said {
            source: Arc::from(MMDB),
            role: Role::Context,
            answer,
            since: self.built,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::provider::{Entries, Table};

    /// Lists of these built-in names, each of this text.
    pub(crate) fn lists(texts: &[(&str, &str)]) -> Lists {
        let table = Table::builtin().unwrap();
        let read = |(name, text): &(&str, &str)| {
            let list = Arc::clone(table.list(name).unwrap());
            let entries = Entries::read(&list.format, text.as_bytes());
            assert!(!entries.is_empty() && entries.bad == 0, "{name}");
            (list, entries)
        };
        Lists::build(texts.iter().map(read).collect())
    }

    /// A place that answers on its own: bad, good, both, a Tor exit.
    pub(crate) fn local() -> Local {
        let lists = lists(&[
            ("cins", "203.0.113.7\n203.0.113.53\n"),
            ("misp-public-dns-v4", "{\"list\": [\"203.0.113.53\", \"203.0.113.54\"]}"),
            ("tor-exits", "203.0.113.54\n203.0.113.99\n"),
        ]);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mmdb");
        let files = ["geolite2_country", "geolite2_asn"]
            .map(|name| Mmdb::open(&folder.join(format!("{name}.mmdb"))).unwrap());
        Local::new(lists, |_| "2026-01-15T09:00:00Z".parse().unwrap(), files.into())
    }

    fn words(local: &Local, ip: &str) -> Vec<String> {
        let said = local.said(ip.parse().unwrap());
        said.iter()
            .map(|said| {
                format!("{} {:?} {} {}", said.source, said.role, said.answer.verdict, said.answer.found)
            })
            .collect()
    }

    #[test]
    fn hits_count_as_their_list_says_and_misses_are_context() {
        let local = local();
        let mmdb = |found: bool| format!("mmdb Context unknown {found}");
        assert_eq!(words(&local, "203.0.113.7"), ["cins Reputation suspicious true", &mmdb(true)]);
        assert_eq!(words(&local, "203.0.113.99"), ["tor-exits Context unknown true", &mmdb(true)]);
        assert_eq!(words(&local, "2001:db9::1"), ["lists Context unknown false", &mmdb(false)]);
        assert!(words(&Local::default(), "203.0.113.7").is_empty());
    }

    #[test]
    fn good_is_what_only_good_lists_hold() {
        let local = local();
        let clears = |ip: &str| local.clears(ip.parse().unwrap());
        assert!(clears("203.0.113.54"), "a Tor exit is context, which accuses nobody");
        assert!(!clears("203.0.113.53") && !clears("203.0.113.7") && !clears("203.0.113.1"));
        assert_eq!(local.verdict("203.0.113.53".parse().unwrap()), Some(Verdict::Suspicious));
        let asking = local.asking_known_good(true);
        assert!(!asking.clears("203.0.113.54".parse().unwrap()));
    }

    #[test]
    fn files_complete_each_other() {
        let answer = local().place("198.51.100.7".parse().unwrap()).unwrap().answer;
        assert_eq!((answer.country.as_deref(), answer.asn), (Some("NL"), Some(64_500)));
    }
}
