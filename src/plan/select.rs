//! Who is asked about, who is not and why.

use super::guard::{Guard, Withheld};
use super::local::Local;
use super::rank::rank;
use crate::extract::Indicators;
use crate::provider::Definition;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A run's work, laid out before the first request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Addresses that are asked about, by number, worst first.
    pub order: Vec<u32>,
    /// Addresses beyond the run's limit, in the same order.
    pub over_limit: Vec<u32>,
    /// How many are answered on this machine alone.
    pub local: u64,
    /// How many of those are known to be good, so that nobody need be asked.
    pub known_good: u64,
    /// How many are not asked about, by reason.
    pub withheld: BTreeMap<&'static str, u64>,
}

/// What becomes of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A provider is asked.
    Asked,
    /// Lists and files of this machine alone answer.
    Local(Why),
    /// Nobody answers.
    Withheld(Withheld),
}

/// Why nobody is asked about an address that this machine answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A list vouches for it.
    KnownGood,
    /// It may not be sent, or nobody takes its kind.
    Unsent(Withheld),
}

/// Lays `indicators` against the providers of the run. `limit` bounds how many are asked about, after everything that is
/// not asked about anyhow; `None` is no bound.
#[must_use]
pub fn plan(
    indicators: &Indicators,
    providers: &[Arc<Definition>],
    guard: &Guard,
    local: &Local,
    limit: Option<usize>,
) -> Plan {
    let mut plan = Plan::default();
    for (id, ip) in (0..).zip(indicators.iter()) {
        match fate(ip, providers, guard, local) {
            Fate::Asked => plan.order.push(id),
            Fate::Local(why) => {
                plan.local += 1;
                plan.known_good += u64::from(why == Why::KnownGood);
            }
            Fate::Withheld(reason) => *plan.withheld.entry(reason.as_str()).or_default() += 1,
        }
    }
    rank(indicators, &mut plan.order);
    plan.bound(limit, &[]);
    plan
}

impl Plan {
    /// Whether a limit leaves some out.
    #[must_use]
    pub fn is_over(&self, limit: Option<usize>) -> bool {
        limit.is_some_and(|limit| limit < self.order.len())
    }

    /// Leaves out what is beyond the limit, from the worst on. Those that are `answered` already, by place of the order,
    /// do not count: nobody need be asked about them.
    pub fn bound(&mut self, limit: Option<usize>, answered: &[bool]) {
        let Some(limit) = limit.filter(|&limit| limit < self.order.len()) else { return };
        let mut asked = 0;
        let order = std::mem::take(&mut self.order);
        for (place, id) in order.into_iter().enumerate() {
            let is_free = answered.get(place).copied().unwrap_or(false);
            if is_free || asked < limit {
                asked += usize::from(!is_free);
                self.order.push(id);
            } else {
                self.over_limit.push(id);
            }
        }
    }
}

/// What becomes of `ip`. What is not public or excluded is nobody's business, not even a list's: a hit on a private
/// address says nothing.
#[must_use]
pub fn fate(ip: IpAddr, providers: &[Arc<Definition>], guard: &Guard, local: &Local) -> Fate {
    match withheld(ip, providers, guard) {
        None if local.clears(ip) => Fate::Local(Why::KnownGood),
        None => Fate::Asked,
        Some(reason @ (Withheld::NeverSent | Withheld::NotAccepted)) if !local.is_empty() => {
            Fate::Local(Why::Unsent(reason))
        }
        Some(reason) => Fate::Withheld(reason),
    }
}

/// Why nobody is asked about `ip`; `None` if somebody is. Of several reasons the one that says most: its scope or the
/// user's network before a provider that does not take its family.
#[must_use]
pub fn withheld(ip: IpAddr, providers: &[Arc<Definition>], guard: &Guard) -> Option<Withheld> {
    let mut reason = match guard.clear(ip, false) {
        Ok(_) => Withheld::NotAccepted,
        Err(reason) => reason,
    };
    for provider in providers {
        match guard.clear(ip, provider.is_loopback()) {
            Ok(_) if provider.accepts.accepts(ip) => return None,
            Ok(_) => reason = Withheld::NotAccepted,
            Err(Withheld::Scope(_)) => {}
            // For a provider on loopback a documentation address is public, and what holds it back is the user's network.
            Err(why) => reason = why,
        }
    }
    Some(reason)
}

#[cfg(test)]
mod tests {
    use super::super::local::tests::local;
    use super::*;
    use crate::provider::Table;

    #[test]
    fn what_is_answered_already_does_not_count_against_the_limit() {
        let whole = Plan { order: vec![4, 2, 7, 1, 9], ..Plan::default() };
        let bound = |limit, answered: &[bool]| {
            let mut plan = whole.clone();
            plan.bound(limit, answered);
            (plan.order, plan.over_limit)
        };
        assert_eq!(bound(Some(2), &[]), (vec![4, 2], vec![7, 1, 9]));
        assert_eq!(bound(Some(2), &[true, false, false, true, false]), (vec![4, 2, 7, 1], vec![9]));
        assert_eq!(bound(Some(5), &[]), (whole.order.clone(), vec![]));
        assert_eq!(bound(None, &[]), (whole.order.clone(), vec![]));
        assert!(whole.is_over(Some(4)) && !whole.is_over(Some(5)) && !whole.is_over(None));
    }

    #[test]
    fn an_address_is_asked_about_answered_here_or_left_alone() {
        let table = Table::builtin().unwrap();
        let greynoise = table.get("greynoise").unwrap().with_base_url("http://127.0.0.1:1", &[]).unwrap();
        let providers = [Arc::new(greynoise)];
        let guard = Guard::new(&["203.0.113.128/25".parse().unwrap()])
            .never_sending(&["192.0.2.0/24".parse().unwrap(), "203.0.113.240/28".parse().unwrap()]);
        let unsent = |why| Fate::Local(Why::Unsent(why));
        for (ip, with_lists, without) in [
            ("203.0.113.7", Fate::Asked, Fate::Asked),
            ("203.0.113.54", Fate::Local(Why::KnownGood), Fate::Asked),
            ("203.0.113.53", Fate::Asked, Fate::Asked),
            ("2001:db8::7", unsent(Withheld::NotAccepted), Fate::Withheld(Withheld::NotAccepted)),
            ("192.0.2.7", unsent(Withheld::NeverSent), Fate::Withheld(Withheld::NeverSent)),
            ("203.0.113.250", Fate::Withheld(Withheld::Excluded), Fate::Withheld(Withheld::Excluded)),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            let got =
                [fate(ip, &providers, &guard, &local()), fate(ip, &providers, &guard, &Local::default())];
            assert_eq!(got, [with_lists, without], "{ip}");
        }
        let private = "10.0.0.7".parse().unwrap();
        assert!(matches!(fate(private, &providers, &guard, &local()), Fate::Withheld(Withheld::Scope(_))));
    }
}
