//! What kind of address an address is, by the IANA special-purpose registries (RFC 6890 and its updates).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The scope of an address. Only [`Scope::Global`] ones are ever looked up anywhere.
///
/// An address that carries an IPv4 address inside (IPv4-mapped, IPv4-compatible, 6to4, NAT64, Teredo) has the scope
/// of the one inside. Where the registries leave a doubt, it is not global.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// Public unicast.
    Global,
    /// 10/8, 172.16/12, 192.168/16, and fec0::/10, the site-local addresses of old.
    Private,
    /// fc00::/7, unique local.
    Ula,
    /// 127/8, ::1.
    Loopback,
    /// 169.254/16, fe80::/10.
    LinkLocal,
    /// 100.64/10, between a carrier and its customers.
    Shared,
    /// 224/4, ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// 0.0.0.0, ::.
    Unspecified,
    /// The rest of 0/8.
    ThisNetwork,
    /// Set aside, for protocols or for later.
    Reserved,
    /// 100::/64, and 100:0:0:1::/64, the dummy prefix.
    Discard,
    /// For examples: 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20.
    Documentation,
    /// 198.18/15, 2001:2::/48.
    Benchmarking,
}

impl Scope {
    /// All scopes, global first.
    pub const ALL: [Self; 14] = [
        Self::Global,
        Self::Private,
        Self::Ula,
        Self::Loopback,
        Self::LinkLocal,
        Self::Shared,
        Self::Multicast,
        Self::Broadcast,
        Self::Unspecified,
        Self::ThisNetwork,
        Self::Reserved,
        Self::Discard,
        Self::Documentation,
        Self::Benchmarking,
    ];

    /// The scope of `ip`.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => of_v4(ip),
            IpAddr::V6(ip) => of_v6(ip),
        }
    }

    /// The word for it in records: `scope`, and the `reason` of a skipped one.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Private => "private",
            Self::Ula => "ula",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Unspecified => "unspecified",
            Self::ThisNetwork => "this-network",
            Self::Reserved => "reserved",
            Self::Discard => "discard",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
        }
    }

    /// Whether the address is public unicast.
    #[must_use]
    pub fn is_global(self) -> bool {
        self == Self::Global
    }

    /// Whether the address is of a kind that networks use inside: private, ULA, link-local, shared, loopback.
    #[must_use]
    pub fn is_internal(self) -> bool {
        matches!(self, Self::Private | Self::Ula | Self::LinkLocal | Self::Shared | Self::Loopback)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Scope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// IANA IPv4 Special-Purpose Address Registry, and RFC 1112, 5771 for the rest.
fn of_v4(ip: Ipv4Addr) -> Scope {
    match ip.octets() {
        [0, 0, 0, 0] => Scope::Unspecified,
        [0, ..] => Scope::ThisNetwork,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Scope::Private,
        [100, 64..=127, ..] => Scope::Shared,
        [127, ..] => Scope::Loopback,
        [169, 254, ..] => Scope::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Scope::Documentation,
        [198, 18..=19, ..] => Scope::Benchmarking,
        [255, 255, 255, 255] => Scope::Broadcast,
        [224..=239, ..] => Scope::Multicast,
        // Protocol assignments; AS112 (twice); AMT; the 6to4 relay anycast of old; and class E.
        [192, 0, 0, _]
        | [192, 31, 196, _]
        | [192, 175, 48, _]
        | [192, 52, 193, _]
        | [192, 88, 99, _]
        | [240..=255, ..] => Scope::Reserved,
        _ => Scope::Global,
    }
}

/// IANA IPv6 Special-Purpose Address Registry, and the IPv6 address space registry: only 2000::/3 is global.
/// The IPv4 addresses inside an IPv6 one: mapped, compatible, NAT64, 6to4 (one each) and Teredo (client and server). What
/// is said of a network holds for them too.
pub fn embedded(ip: IpAddr) -> impl Iterator<Item = Ipv4Addr> {
    let IpAddr::V6(ip) = ip else { return [None, None].into_iter().flatten() };
    let found = match ip.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => [Some(v4(high, low)), None],
        [0x2001, 0, high, low, _, _, x, y] => [Some(v4(!x, !y)), Some(v4(high, low))],
        _ => [None, None],
    };
    found.into_iter().flatten()
}

fn of_v6(ip: Ipv6Addr) -> Scope {
    let last = |[.., high, low]: [u16; 8]| v4(high, low);
    let segments = ip.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Scope::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Scope::Loopback,
        // IPv4-compatible, IPv4-mapped, and NAT64's well-known prefix.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => of_v4(last(segments)),
        // NAT64 in a network's own use: never global, whatever is inside.
        [0x64, 0xff9b, 1, ..] => worse(of_v4(last(segments)), Scope::Private),
        [0x100, 0, 0, 0 | 1, ..] => Scope::Discard,
        // Teredo: the server, and the client with its bits turned over.
        [0x2001, 0, high, low, _, _, x, y] => worse(of_v4(v4(!x, !y)), of_v4(v4(high, low))),
        [0x2001, 2, 0, ..] => Scope::Benchmarking,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Scope::Documentation,
        // 2001::/23 and the rest of IETF's: anycast, AMT, AS112, ORCHID, drone ids. 2620:4f:8000::/48 is AS112.
        [0x2001, 0..=0x1ff, ..] | [0x2620, 0x4f, 0x8000, ..] => Scope::Reserved,
        [0x2002, high, low, ..] => of_v4(v4(high, low)),
        [0x2000..=0x3fff, ..] => Scope::Global,
        [0xfc00..=0xfdff, ..] => Scope::Ula,
        [0xfe80..=0xfebf, ..] => Scope::LinkLocal,
        [0xfec0..=0xfeff, ..] => Scope::Private,
        [0xff00..=0xffff, ..] => Scope::Multicast,
        // Everything else is unassigned, or is it (5f00::/16, segment routing).
        _ => Scope::Reserved,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

/// The first unless it is global.
fn worse(first: Scope, second: Scope) -> Scope {
    if first.is_global() { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scope: Scope, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(Scope::of(address.parse().unwrap()), scope, "{address}");
        }
    }

    #[test]
    fn every_ipv4_boundary() {
        check(Scope::Unspecified, &["0.0.0.0"]);
        check(Scope::ThisNetwork, &["0.0.0.1", "0.255.255.255"]);
        check(Scope::Private, &["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255"]);
        check(Scope::Private, &["192.168.0.0", "192.168.255.255"]);
        check(Scope::Shared, &["100.64.0.0", "100.127.255.255"]);
        check(Scope::Loopback, &["127.0.0.0", "127.255.255.255"]);
        check(Scope::LinkLocal, &["169.254.0.0", "169.254.255.255"]);
        check(Scope::Documentation, &["192.0.2.0", "192.0.2.255", "198.51.100.0", "198.51.100.255"]);
        check(Scope::Documentation, &["203.0.113.0", "203.0.113.255"]);
        check(Scope::Benchmarking, &["198.18.0.0", "198.19.255.255"]);
        check(Scope::Multicast, &["224.0.0.0", "239.255.255.255", "233.252.0.1"]);
        check(Scope::Broadcast, &["255.255.255.255"]);
        check(Scope::Reserved, &["192.0.0.0", "192.0.0.9", "192.0.0.255", "192.31.196.0", "192.31.196.255"]);
        check(Scope::Reserved, &["192.52.193.0", "192.52.193.255", "192.88.99.0", "192.88.99.255"]);
        check(Scope::Reserved, &["192.175.48.0", "192.175.48.255", "240.0.0.0", "255.255.255.254"]);
        check(Scope::Global, &["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"]);
        check(Scope::Global, &["126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0"]);
        check(Scope::Global, &["172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0"]);
        check(Scope::Global, &["192.31.195.255", "192.31.197.0", "192.52.192.255", "192.52.194.0"]);
        check(Scope::Global, &["192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0"]);
        check(Scope::Global, &["192.175.47.255", "192.175.49.0", "198.17.255.255", "198.20.0.0"]);
        check(Scope::Global, &["198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0"]);
        check(Scope::Global, &["223.255.255.255"]);
    }

    #[test]
    fn every_ipv6_boundary() {
        check(Scope::Unspecified, &["::"]);
        check(Scope::Loopback, &["::1"]);
        check(Scope::Discard, &["100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::", "100:0:0:1:ffff::"]);
        check(Scope::Reserved, &["100:0:0:2::", "64:ff9a::1", "64:ff9b:2::", "1::", "1fff:ffff::", "4000::"]);
        check(Scope::Benchmarking, &["2001:2::", "2001:2:0:ffff::"]);
        check(Scope::Reserved, &["2001:1::1", "2001:1::2", "2001:2:1::", "2001:3::", "2001:4:112::"]);
        check(Scope::Reserved, &["2001:10::", "2001:1f:ffff::", "2001:20::", "2001:2f:ffff::", "2001:30::"]);
        check(Scope::Reserved, &["2001:1ff:ffff::", "2620:4f:8000::", "2620:4f:8000:ffff::"]);
        check(
            Scope::Global,
            &["2001:200::", "2001:db7:ffff::", "2001:db9::", "2620:4f:7fff::", "2620:4f:8001::"],
        );
        check(Scope::Global, &["2000::", "2003::", "3ffe:ffff::", "3fff:1000::", "3fff:ffff::"]);
        check(Scope::Documentation, &["2001:db8::", "2001:db8:ffff:ffff::", "3fff::", "3fff:fff:ffff::"]);
        check(Scope::Reserved, &["5f00::", "5f00:ffff::", "6000::", "fbff:ffff::", "fe00::", "fe7f:ffff::"]);
        check(Scope::Ula, &["fc00::", "fdff:ffff::"]);
        check(Scope::LinkLocal, &["fe80::", "febf:ffff::"]);
        check(Scope::Private, &["fec0::", "feff:ffff::"]);
        check(Scope::Multicast, &["ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);
    }

    #[test]
    fn an_ipv4_address_inside_decides() {
        check(Scope::Private, &["::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1"]);
        check(Scope::Global, &["::ffff:9.9.9.9", "64:ff9b::9.9.9.9", "2002:909:909::1", "::9.9.9.9"]);
        check(Scope::Loopback, &["::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::127.0.0.1"]);
        check(Scope::ThisNetwork, &["::2", "::ffff:0.0.0.1"]);
        check(Scope::Unspecified, &["::ffff:0.0.0.0"]);
        check(Scope::Private, &["64:ff9b:1::9.9.9.9", "64:ff9b:1:ffff::9.9.9.9"]);
        check(Scope::LinkLocal, &["64:ff9b:1::169.254.0.1"]);
        // Teredo: server 9.9.9.9 throughout but for the last; the client is 9.9.9.10, 192.168.0.1, 9.9.9.10.
        check(Scope::Global, &["2001:0:909:909:0:0:f6f6:f6f5"]);
        check(Scope::Private, &["2001:0:909:909:0:0:3f57:fffe"]);
        check(Scope::Private, &["2001:0:a00:1:0:0:f6f6:f6f5"]);
    }

    #[test]
    fn words_are_unique() {
        let words: std::collections::HashSet<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        assert_eq!(words.len(), Scope::ALL.len());
    }
}
