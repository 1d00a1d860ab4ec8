//! What was seen, as JSON, straight from the states: for 200,000 addresses serde's way takes a fifth of the whole run.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{indicators::Indicators, seen::Shown, time};

impl Indicators {
    /// Appends what [`Indicators::seen`] serialises to, or says false and appends nothing where that is `None`.
    pub fn append_seen(&self, id: u32, out: &mut Vec<u8>) -> bool {
        let Some(shown) = self.contexts.show(id, &self.addresses) else { return false };
        append(&shown, out);
        true
    }
}

fn append(shown: &Shown<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"count\":");
    append_number(shown.count, out);
    if let Some((first, last)) = shown.times {
        out.extend_from_slice(b",\"first\":\"");
        append_time(first, out);
        out.extend_from_slice(b"\",\"last\":\"");
        append_time(last, out);
        out.push(b'"');
    }
    out.extend_from_slice(b",\"fields\":[");
    append_list(shown.fields, out, |name, out| {
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
    });
    if let Some(severity) = shown.severity {
        out.extend_from_slice(b"],\"severity\":");
        append_number(severity.into(), out);
        out.extend_from_slice(b",\"signatures\":[");
    } else {
        out.extend_from_slice(b"],\"signatures\":[");
    }
    append_list(&shown.signatures, out, |(count, known), out| {
        out.push(b'{');
        if let Some(id) = known.id {
            out.extend_from_slice(b"\"id\":");
            append_number(id, out);
            out.push(b',');
        }
        out.extend_from_slice(b"\"name\":");
        out.extend_from_slice(known.json.as_bytes());
        out.extend_from_slice(b",\"count\":");
        append_number(*count, out);
        out.push(b'}');
    });
    out.extend_from_slice(b"],\"ports\":[");
    append_list(&shown.ports, out, |port, out| append_number((*port).into(), out));
    out.extend_from_slice(b"],\"protos\":[");
    append_list(&shown.protos, out, |name, out| append_text(name, out));
    out.extend_from_slice(b"],\"peers\":[");
    append_list(&shown.peers, out, |ip, out| {
        out.push(b'"');
        append_ip(*ip, out);
        out.push(b'"');
    });
    out.extend_from_slice(b"]}");
}

fn append_list<T>(list: &[T], out: &mut Vec<u8>, mut append: impl FnMut(&T, &mut Vec<u8>)) {
    for (at, value) in list.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        append(value, out);
    }
}

/// A JSON string.
fn append_text(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing to a vector does not fail.
        drop(serde_json::to_writer(out, text));
    }
}

/// An address in its usual form, without quotes.
pub fn append_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => append_v4(ip, out),
        IpAddr::V6(ip) => append_v6(ip, out),
    }
}

fn append_v4(ip: Ipv4Addr, out: &mut Vec<u8>) {
    /// Each octet with a dot, and how many bytes that is.
    const OCTETS: [([u8; 4], u8); 256] = {
        let (mut octets, mut octet) = ([([0; 4], 0); 256], 0_u8);
        loop {
            let [hundreds, tens, ones] = [b'0' + octet / 100, b'0' + octet / 10 % 10, b'0' + octet % 10];
            octets[octet as usize] = match octet {
                100.. => ([hundreds, tens, ones, b'.'], 4),
                10.. => ([tens, ones, b'.', 0], 3),
                _ => ([ones, b'.', 0, 0], 2),
            };
            if octet == 255 {
                break octets;
            }
            octet += 1;
        }
    };
    let (mut text, mut length) = ([0; 16], 0);
    for octet in ip.octets() {
        let (digits, count) = OCTETS.get(usize::from(octet)).copied().unwrap_or_default();
        if let Some(place) = text.get_mut(length..length + 4) {
            place.copy_from_slice(&digits);
        }
        length += usize::from(count);
    }
    // The last dot is none.
    out.extend_from_slice(text.get(..length.saturating_sub(1)).unwrap_or_default());
}

/// As the standard library writes it (RFC 5952), at a third of the time.
fn append_v6(ip: Ipv6Addr, out: &mut Vec<u8>) {
    let segments = ip.segments();
    if segments.starts_with(&[0, 0, 0, 0, 0]) {
        // With an IPv4 address in it, or a short one. Writing to a vector does not fail.
        drop(write!(out, "{ip}"));
        return;
    }
    // The first of the longest runs of zeros, if it is longer than one.
    let (mut start, mut longest, mut run) = (0, 1, 0);
    for (at, segment) in segments.into_iter().enumerate() {
        run = if segment == 0 { run + 1 } else { 0 };
        if run > longest {
            (start, longest) = (at + 1 - run, run);
        }
    }
    let omitted = if longest > 1 { start..start + longest } else { 8..8 };
    for (at, segment) in segments.into_iter().enumerate() {
        if omitted.contains(&at) {
            if at == omitted.start {
                out.extend_from_slice(b"::");
            }
            continue;
        }
        if at > 0 && at != omitted.end {
            out.push(b':');
        }
        let digits = [segment >> 12, segment >> 8 & 15, segment >> 4 & 15, segment & 15]
            .map(|digit| b"0123456789abcdef".get(usize::from(digit)).copied().unwrap_or(b'0'));
        let zeros = usize::try_from(segment.leading_zeros() / 4).unwrap_or(0).min(3);
        out.extend_from_slice(digits.get(zeros..).unwrap_or_default());
    }
}

fn append_number(mut number: u64, out: &mut Vec<u8>) {
    // 20 digits hold every u64.
    let mut digits = [0; 20];
    let mut start = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        // The remainder is below 10.
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        start = at;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// As `{:.3}` of jiff's timestamps.
fn append_time(ms: i64, out: &mut Vec<u8>) {
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = time::date(days);
    if !(1..=9999).contains(&year) {
        drop(write!(out, "{:.3}", time::from_ms(ms)));
        return;
    }
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let parts = [
        (year / 100, None),
        (year % 100, Some(b'-')),
        (month, Some(b'-')),
        (day, Some(b'T')),
        (seconds / 3600, Some(b':')),
        (seconds / 60 % 60, Some(b':')),
        (seconds % 60, Some(b'.')),
        (millis / 10, None),
    ];
    let digit = |value: i64| b'0' + u8::try_from(value % 10).unwrap_or(0);
    for (value, after) in parts {
        out.extend_from_slice(&[digit(value / 10), digit(value)]);
        out.extend(after);
    }
    out.extend_from_slice(&[digit(millis), b'Z']);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_times_and_addresses(number: u64, ms in -70_000_000_000_000_i64..253_000_000_000_000, bits: u32, v6: u128) {
            let text = |append: &dyn Fn(&mut Vec<u8>)| {
                let mut out = Vec::new();
                append(&mut out);
                String::from_utf8(out).unwrap()
            };
            prop_assert_eq!(text(&|out| append_number(number, out)), number.to_string());
            prop_assert_eq!(text(&|out| append_time(ms, out)), format!("{:.3}", time::from_ms(ms)));
            for ip in [IpAddr::V4(Ipv4Addr::from_bits(bits)), IpAddr::V6(v6.into())] {
                prop_assert_eq!(text(&|out| append_ip(ip, out)), ip.to_string());
            }
        }

        #[test]
        fn addresses_with_runs_of_zeros(
            segments in prop::array::uniform8(prop_oneof![Just(0_u16), Just(0xffff), 0_u16..20, any::<u16>()])
        ) {
            let (ip, mut out) = (Ipv6Addr::from(segments), Vec::new());
            append_ip(ip.into(), &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), ip.to_string());
        }

        #[test]
        fn texts(text: String) {
            let mut out = Vec::new();
            append_text(&text, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }
}
