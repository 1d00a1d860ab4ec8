//! Reads the text of an address, strictly.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A plain address: no port, no prefix length, no leading zero in an octet, no space around it. A zone id after an
/// IPv6 address is cut off.
pub(super) fn parse(text: &[u8]) -> Option<IpAddr> {
    if let Some(ip) = parse_expanded(text) {
        return Some(IpAddr::V6(Ipv6Addr::from_bits(ip)));
    }
    if let Some(ip) = parse_v4(text) {
        return Some(IpAddr::V4(Ipv4Addr::from_bits(ip)));
    }
    let text = std::str::from_utf8(text).ok()?;
    let (address, zone) = text.split_once('%').unwrap_or((text, "-"));
    if zone.is_empty() || zone.contains('%') {
        return None;
    }
    address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// Dotted quad, four numbers up to 255 without leading zeros.
pub(super) fn parse_v4(text: &[u8]) -> Option<u32> {
    if !(7..=15).contains(&text.len()) {
        return None;
    }
    let (mut bits, mut octet, mut digits, mut dots) = (0_u32, 0_u32, 0, 0);
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                if digits == 3 || (digits == 1 && octet == 0) {
                    return None;
                }
                octet = octet * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && dots < 3 && octet < 256 => {
                bits = bits << 8 | octet;
                (octet, digits, dots) = (0, 0, dots + 1);
            }
            _ => return None,
        }
    }
    (dots == 3 && digits > 0 && octet < 256).then_some(bits << 8 | octet)
}

/// IPv6 as Suricata up to 8 writes it: eight groups of four digits.
fn parse_expanded(text: &[u8]) -> Option<u128> {
    let text: &[u8; 39] = text.try_into().ok()?;
    let (mut bits, mut seen) = (0_u128, 0);
    let (groups, last) = text.as_chunks::<5>();
    let [a, b, c, d] = *last else { return None };
    for [a, b, c, d, colon] in groups.iter().copied().chain([[a, b, c, d, b':']]) {
        let [a, b, c, d] = [a, b, c, d].map(hex);
        // One bit above the lower four in any of them is enough.
        seen |= a | b | c | d | (colon ^ b':') << 4 | (colon ^ b':') & 0xf0;
        bits = bits << 16
            | u128::from(u16::from(a) << 12 | u16::from(b) << 8 | u16::from(c) << 4 | u16::from(d));
    }
    (seen < 16).then_some(bits)
}

/// The value of a hexadecimal digit, 255 for another byte.
fn hex(digit: u8) -> u8 {
    const VALUES: [u8; 256] = {
        let (mut values, mut value) = ([255; 256], 0_u8);
        while value < 16 {
            values[b"0123456789abcdef"[value as usize] as usize] = value;
            values[b"0123456789ABCDEF"[value as usize] as usize] = value;
            value += 1;
        }
        values
    };
    VALUES.get(usize::from(digit)).copied().unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(parse(text.as_bytes()).map(|ip| ip.to_string()).as_deref(), expected, "{text}");
    }

    #[test]
    fn only_plain_addresses() {
        check("203.0.113.7", Some("203.0.113.7"));
        check("0.0.0.0", Some("0.0.0.0"));
        check("2001:0db8:0000:0000:0000:0000:0000:0001", Some("2001:db8::1"));
        check("2001:DB8::1:0:0:1", Some("2001:db8::1:0:0:1"));
        check("::FFFF:192.0.2.1", Some("::ffff:192.0.2.1"));
        check("fe80::1%eth0", Some("fe80::1"));
        for text in [
            "",
            "203.0.113",
            "256.1.1.1",
            "010.0.0.1",
            " 203.0.113.7",
            "203.0.113.7 ",
            "203.0.113.7:443",
            "1.2.3.4.5",
            "203.0.113.0/24",
            "203.0.113.7,203.0.113.8",
            "::ffff:203.0.113",
            "2001:db8::g",
            "unknown",
            "0xCB007107",
            "203.0.113.7\0",
            "203.0.113.7%eth0",
            "fe80::1%",
            "fe80::1%a%b",
            "[2001:db8::1]",
            "1..2.3",
            ".1.2.3.4",
            "1.2.3.4.",
            "00.0.0.0",
            "1.2.3.1000",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(text in "[0-9.]{5,17}|([0-9]{1,3}\\.){3}[0-9]{1,3}") {
            prop_assert_eq!(parse_v4(text.as_bytes()).map(Ipv4Addr::from_bits), text.parse().ok());
        }

        #[test]
        fn expanded_ipv6_too(text in "([0-9a-fA-F:]{4}:){7}[0-9a-f]{4}|[0-9a-f]{4}(:[0-9a-fA-F]{4}){7}") {
            prop_assert_eq!(parse(text.as_bytes()), text.parse::<Ipv6Addr>().ok().map(IpAddr::V6));
        }
    }
}
