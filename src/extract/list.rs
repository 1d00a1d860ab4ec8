//! Plain lists: one address a line, as people keep and paste them.

use std::net::IpAddr;

use super::address;

/// What a line of a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Address(IpAddr),
    /// A network: there is nothing to look up.
    Network,
    Comment,
    Bad,
}

/// Reads one line, already without white space around it.
///
/// Comments start with `#`, `;` or `//`, or follow an entry. Of several columns the first counts. Quotes, a bullet, a
/// scheme, a path and a port are dropped, and what was defanged is put together again (`203[.]0[.]113[.]7`,
/// `hxxp://203.0.113.7/x`, `2001[:]db8::7`).
pub(super) fn read(line: &[u8]) -> Entry {
    if let Some(ip) = address::parse(line) {
        return Entry::Address(ip);
    }
    let Ok(line) = std::str::from_utf8(line) else { return Entry::Bad };
    if line.starts_with(['#', ';']) || line.starts_with("//") {
        return Entry::Comment;
    }
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim_start();
    let column = line.split([' ', '\t', ',', ';', '|', '#']).next().unwrap_or_default();
    let column = column.trim_matches(['"', '\'', '`', '<', '>']);
    let text = refang(column);
    let (host, has_scheme) = text.split_once("://").map_or((&*text, false), |(_, rest)| (rest, true));
    match host.split_once('/') {
        _ if has_scheme => parse_host(host.split(['/', '?']).next().unwrap_or_default()),
        None => parse_host(host),
        Some((network, length)) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            match (address::parse(network.as_bytes()), length) {
                (Some(ip @ IpAddr::V4(_)), "32") | (Some(ip @ IpAddr::V6(_)), "128") => Entry::Address(ip),
                (Some(_), _) => Entry::Network,
                (None, _) => Entry::Bad,
            }
        }
        Some((host, _)) => parse_host(host),
    }
}

/// Undoes what people do to an address so that nobody clicks it.
fn refang(text: &str) -> String {
    let mut text = text.to_ascii_lowercase();
    for (fanged, plain) in [
        ("[.]", "."),
        ("(.)", "."),
        ("{.}", "."),
        ("[dot]", "."),
        ("(dot)", "."),
        ("{dot}", "."),
        ("\\.", "."),
        ("[:]", ":"),
        ("(:)", ":"),
        ("[://]", "://"),
    ] {
        if text.contains(fanged) {
            text = text.replace(fanged, plain);
        }
    }
    text
}

/// An address, perhaps with brackets and a port.
fn parse_host(host: &str) -> Entry {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let bare = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, rest)) if rest.is_empty() || is_port(rest) => inner,
        Some(_) => return Entry::Bad,
        // One colon is a port, several are an IPv6 address.
        None => match host.split_once(':') {
            Some((ip, port)) if !port.contains(':') => {
                if !is_port(&format!(":{port}")) {
                    return Entry::Bad;
                }
                ip
            }
            _ => host,
        },
    };
    address::parse(bare.as_bytes()).map_or(Entry::Bad, Entry::Address)
}

/// `:443`.
fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let entry = read(line.as_bytes());
        let shown = match entry {
            Entry::Address(ip) => ip.to_string(),
            other => format!("{other:?}").to_lowercase(),
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn addresses_as_people_write_them() {
        for line in [
            "203.0.113.7",
            "203.0.113[.]7",
            "203[.]0[.]113[.]7",
            "203(.)0(.)113(.)7",
            "203[dot]0[DOT]113(dot)7",
            "203\\.0\\.113\\.7",
            "hxxp://203.0.113.7/x",
            "hxxps[://]203[.]0[.]113[.]7:8443/x?y=z",
            "203.0.113.7:80",
            "\"203.0.113.7\",",
            "'203.0.113.7'",
            "203.0.113.7 # scanner",
            "203.0.113.7,malicious,90",
            "- 203.0.113.7",
            "203.0.113.7;x",
            "203.0.113.7/32",
            "203.0.113.7/path",
            "ftp://user@203.0.113.7",
            "203.0.113.7\tx",
            "<203.0.113.7>",
            "203.0.113.7#x",
        ] {
            check(line, "203.0.113.7");
        }
        for line in [
            "2001:db8::7",
            "[2001:db8::7]",
            "[2001:db8::7]:443",
            "2001[:]db8::7",
            "http://[2001:db8::7]:80/",
            "2001:DB8::7/128",
            "\"2001:db8::7\"",
        ] {
            check(line, "2001:db8::7");
        }
    }

    #[test]
    fn what_is_no_address() {
        for line in ["# a", "; a", "// a", "#203.0.113.7"] {
            check(line, "comment");
        }
        for line in ["203.0.113.0/24", "2001:db8::/32"] {
            check(line, "network");
        }
        for line in [
            "example.org",
            "203.0.113",
            "203.0.113.7:x",
            "203.0.113.7:99999",
            "203.0.113.1-203.0.113.9",
            "ip,score",
            "010.0.0.1",
            "[2001:db8::7]x",
            "x/24",
            "hxxp://example.org/203.0.113.7",
            "-",
            "\u{e9}",
        ] {
            check(line, "bad");
        }
    }
}
