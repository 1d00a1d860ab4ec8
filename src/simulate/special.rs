//! The server's own check for addresses that nobody may be asked about.
//!
//! By the IANA special-purpose address registries (IPv4 and IPv6, read 2026-01). Documentation addresses are not
//! among them here: on loopback they stand in for public ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks as (first address, prefix length).
const V4: [([u8; 4], u32); 12] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// IPv6 networks as (first 32 bits, prefix length); longer prefixes are spelled out below.
const V6: [(u128, u32); 6] = [
    // Unique local, link-local, site-local (deprecated), multicast.
    (0xfc00 << 112, 7),
    (0xfe80 << 112, 10),
    (0xfec0 << 112, 10),
    (0xff00 << 112, 8),
    // Discard only; benchmarking.
    (0x0100 << 112, 64),
    (0x2001_0002 << 96, 48),
];

/// Whether no provider should ever see this address.
pub(super) fn is_special(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_special_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_special_v4(v4),
            None => is_special_v6(v6),
        },
    }
}

fn is_special_v4(ip: Ipv4Addr) -> bool {
    let bits = ip.to_bits();
    V4.iter().any(|(first, length)| (bits ^ u32::from_be_bytes(*first)) >> (32 - length) == 0)
}

fn is_special_v6(ip: Ipv6Addr) -> bool {
    let bits = ip.to_bits();
    bits <= 1 || V6.iter().any(|(first, length)| (bits ^ first) >> (128 - length) == 0)
}

/// The IPv4 address inside: mapped, compatible, NAT64 (64:ff9b::/96), 6to4 (2002::/16), Teredo's client (2001::/32).
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = ip.to_bits();
    let inside = |shift: u32| u32::try_from(bits >> shift & 0xffff_ffff).ok().map(Ipv4Addr::from_bits);
    if bits >> 32 == 0xffff || bits >> 32 == 0x0064_ff9b << 64 || (bits >> 32 == 0 && bits > 0xffff) {
        inside(0)
    } else if bits >> 112 == 0x2002 {
        inside(80)
    } else if bits >> 96 == 0x2001_0000 {
        inside(0).map(|client| Ipv4Addr::from_bits(!client.to_bits()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_told_from_public_ones() {
        for (ip, special) in [
            ("0.1.2.3", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("100.63.255.255", false),
            ("100.64.0.0", true),
            ("100.128.0.0", false),
            ("127.0.0.1", true),
            ("169.254.169.254", true),
            ("172.15.255.255", false),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("192.168.1.1", true),
            ("192.0.2.7", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("198.19.255.255", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("::", true),
            ("::1", true),
            ("::ffff:10.0.0.1", true),
            ("::ffff:203.0.113.7", false),
            ("64:ff9b::c0a8:101", true),
            ("64:ff9b::cb00:7107", false),
            ("2002:0a00:0001::1", true),
            ("2002:cb00:7107::1", false),
            // Teredo holds its client's address inverted: 10.0.0.1.
            ("2001:0:cb00:7107::f5ff:fffe", true),
            ("2001:db8::7", false),
            ("2001:2::1", true),
            ("100::1", true),
            ("fc00::1", true),
            ("fdff::1", true),
            ("fe80::1", true),
            ("ff02::1", true),
            ("2600::1", false),
        ] {
            assert_eq!(is_special(ip.parse().unwrap()), special, "{ip}");
        }
    }
}
