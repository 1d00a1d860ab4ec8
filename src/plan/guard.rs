//! Which addresses may leave the host.
//!
//! The transport asks [`Guard::clear`] for every single request of every provider: a new provider cannot forget it.

use crate::extract::{Scope, embedded};
use ipnet::IpNet;
use std::net::IpAddr;

/// An address that may be sent to the provider it was cleared for. Only [`Guard::clear`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleared(IpAddr);

impl Cleared {
    /// The address.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        self.0
    }
}

/// Why an address stays here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Withheld {
    /// It is no public address.
    Scope(Scope),
    /// It lies in one of the user's `exclude` networks.
    Excluded,
    /// It lies in one of the user's `never_send` networks: only what answers on this machine may know of it.
    NeverSent,
    /// No provider of this run takes its kind (an IPv6 address where all take IPv4 only).
    NotAccepted,
}

impl Withheld {
    /// The word used as `reason` in records and as key in the summary.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scope(scope) => scope.as_str(),
            Self::Excluded => "excluded",
            Self::NeverSent => "never-sent",
            Self::NotAccepted => "not-accepted",
        }
    }
}

/// The scopes and the user's networks that are never sent.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    exclude: Vec<IpNet>,
    never_send: Vec<IpNet>,
}

impl Guard {
    /// A guard that holds back `exclude` beside what is not public.
    #[must_use]
    pub fn new(exclude: &[IpNet]) -> Self {
        Self { exclude: aggregated(exclude), never_send: Vec::new() }
    }

    /// The same, which also holds back `networks`; lists and files of this machine still answer about them.
    #[must_use]
    pub fn never_sending(self, networks: &[IpNet]) -> Self {
        Self { never_send: aggregated(networks), ..self }
    }

    /// Clears an address for a provider. A provider on loopback may be asked about documentation addresses, which
    /// rehearsals and tests use as stand-ins for public ones; nothing else softens the rule.
    ///
    /// # Errors
    /// Why the address must stay.
    pub fn clear(&self, ip: IpAddr, provider_on_loopback: bool) -> Result<Cleared, Withheld> {
        match Scope::of(ip) {
            Scope::Global => {}
            Scope::Documentation if provider_on_loopback => {}
            scope => return Err(Withheld::Scope(scope)),
        }
        if holds(&self.exclude, ip) {
            return Err(Withheld::Excluded);
        }
        if holds(&self.never_send, ip) {
            return Err(Withheld::NeverSent);
        }
        Ok(Cleared(ip))
    }
}

/// An address is held back with every form of it: an IPv4 network holds the mapped, 6to4, NAT64 and Teredo ones too.
fn holds(networks: &[IpNet], ip: IpAddr) -> bool {
    let is_held = |ip: IpAddr| networks.iter().any(|network| network.contains(&ip));
    is_held(ip) || embedded(ip).any(|inner| is_held(inner.into()))
}

fn aggregated(networks: &[IpNet]) -> Vec<IpNet> {
    IpNet::aggregate(&networks.iter().map(unmapped).collect())
}

/// `::ffff:198.51.100.0/120` is 198.51.100.0/24, and means every form of it.
fn unmapped(network: &IpNet) -> IpNet {
    let IpNet::V6(mapped) = network else { return *network };
    let inner = mapped.addr().to_ipv4_mapped().zip(mapped.prefix_len().checked_sub(96));
    inner.and_then(|(ip, length)| IpNet::new(ip.into(), length).ok()).unwrap_or(*network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(exclude: &[&str], ip: &str, loopback: bool, expected: Result<(), &str>) {
        let networks: Vec<IpNet> = exclude.iter().map(|network| network.parse().unwrap()).collect();
        let guard = Guard::new(&networks);
        let got = guard.clear(ip.parse().unwrap(), loopback).map(|_| ()).map_err(Withheld::as_str);
        assert_eq!(got, expected, "{ip}");
    }

    #[test]
    fn only_public_addresses_outside_the_users_networks_leave() {
        check(&[], "9.9.9.9", false, Ok(()));
        check(&["9.9.9.0/24"], "9.9.9.9", false, Err("excluded"));
        check(&["9.9.9.0/24"], "::ffff:9.9.9.9", false, Err("excluded"));
        for form in ["64:ff9b::909:909", "2002:909:909::1", "::9.9.9.9", "2001:0:808:808:0:0:f6f6:f6f6"] {
            check(&["9.9.9.0/24"], form, false, Err("excluded"));
        }
        check(&["::ffff:9.9.9.0/120"], "9.9.9.9", false, Err("excluded"));
        check(&[], "10.0.0.1", true, Err("private"));
        check(&[], "::ffff:10.0.0.1", true, Err("private"));
        check(&[], "203.0.113.7", false, Err("documentation"));
        check(&[], "203.0.113.7", true, Ok(()));
        check(&["203.0.113.0/24"], "203.0.113.7", true, Err("excluded"));
        check(&["2001:db8:40::/48"], "2001:db8:40::1", true, Err("excluded"));
    }

    #[test]
    fn what_is_never_sent_is_told_apart_from_what_is_left_out() {
        let networks =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        let guard = Guard::new(&networks(&["203.0.113.0/25"])).never_sending(&networks(&["203.0.113.0/24"]));
        let clear = |ip: &str| guard.clear(ip.parse().unwrap(), true).map(|_| ());
        assert_eq!(clear("203.0.113.7"), Err(Withheld::Excluded));
        assert_eq!(clear("203.0.113.200"), Err(Withheld::NeverSent));
        assert_eq!(clear("::ffff:203.0.113.200"), Err(Withheld::NeverSent));
        assert_eq!(clear("198.51.100.7"), Ok(()));
    }

    proptest! {
        #[test]
        fn nothing_private_is_ever_cleared(a: u8, b: u8, c: u8, loopback: bool) {
            for ip in [[10, a, b, c], [192, 168, b, c], [172, 16 + a % 16, b, c], [100, 64 + a % 64, b, c], [127, a, b, c], [169, 254, b, c], [224 + a % 32, a, b, c]] {
                let ip = std::net::Ipv4Addr::from(ip);
                prop_assert!(Guard::default().clear(ip.into(), loopback).is_err());
                prop_assert!(Guard::default().clear(ip.to_ipv6_mapped().into(), loopback).is_err());
            }
        }
    }
}
