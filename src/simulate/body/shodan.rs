//! Shodan's host and InternetDB: what a scan found, no verdict. Half of the addresses nobody thinks ill of are unknown.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::{Answer, Face, put};
use crate::simulate::scenario::Size;
use crate::simulate::verdict::Verdict;

/// Port, transport, product and the CVE its version is suspected of.
const SERVICES: [(u16, &str, &str); 6] = [
    (22, "OpenSSH", "SSH-2.0-OpenSSH_9.2"),
    (23, "telnetd", "login: "),
    (80, "nginx", "HTTP/1.1 200 OK"),
    (443, "nginx", "HTTP/1.1 200 OK"),
    (3389, "Remote Desktop Protocol", "Remote Desktop Protocol"),
    (8080, "Apache httpd", "HTTP/1.1 404 Not Found"),
];

fn is_unknown(face: &Face) -> bool {
    face.special || (face.verdict == Verdict::Unknown && face.draw(5, 0, 1) == 0)
}

fn services(face: &Face) -> impl Iterator<Item = &'static (u16, &'static str, &'static str)> {
    let chosen = face.draw(6, 1, (1 << SERVICES.len()) - 1);
    SERVICES.iter().enumerate().filter(move |(nth, _)| chosen >> nth & 1 == 1).map(|(_, service)| service)
}

fn ports(out: &mut String, face: &Face) {
    for (nth, (port, ..)) in services(face).enumerate() {
        put!(out, "{}{port}", if nth > 0 { "," } else { "" });
    }
}

/// `GET /shodan/host/{ip}`.
pub(super) fn host(face: &Face, size: Size) -> Answer {
    if is_unknown(face) {
        return Answer::not_found("{\"error\":\"No information available for that IP.\"}".to_owned());
    }
    let (ip, home) = (face.ip, face.origin);
    let mut out = String::with_capacity(2048);
    out.push('{');
    // A number that holds IPv4 alone; for IPv6 the documentation gives none that fits.
    if let IpAddr::V4(v4) = ip {
        put!(out, "\"ip\":{},", v4.to_bits());
    }
    put!(out, "\"ip_str\":\"{ip}\",\"hostnames\":[\"host{}.example.net\"],", face.draw(7, 1, 254));
    out.push_str("\"domains\":[\"example.net\"],\"ports\":[");
    ports(&mut out, face);
    out.push(']');
    if face.is_bad() {
        out.push_str(",\"vulns\":[\"CVE-2000-0001\"]");
    }
    put!(out, ",\"tags\":[{}],", if face.draw(8, 0, 1) == 0 { "\"cloud\"" } else { "" });
    put!(out, "\"org\":\"{0}\",\"isp\":\"{0}\",\"asn\":\"AS{1}\",\"os\":null,", home.org, home.asn);
    put!(out, "\"country_code\":\"{}\",\"country_name\":\"{}\",", home.country, home.country_name);
    out.push_str(
        "\"city\":null,\"region_code\":null,\"area_code\":null,\"postal_code\":null,\"dma_code\":null,",
    );
    out.push_str("\"latitude\":52.37403,\"longitude\":4.88969,");
    let (day, hour, minute, second) = face.moment();
    let seen = format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.123456");
    put!(out, "\"last_update\":\"{seen}\"");
    if size == Size::Full {
        banners(&mut out, face, &seen);
    }
    out.push('}');
    Answer::ok(out)
}

fn banners(out: &mut String, face: &Face, seen: &str) {
    out.push_str(",\"data\":[");
    for (nth, (port, product, banner)) in services(face).enumerate() {
        put!(
            out,
            "{}{{\"port\":{port},\"transport\":\"tcp\",\"product\":\"{product}\",",
            if nth > 0 { "," } else { "" }
        );
        put!(
            out,
            "\"timestamp\":\"{seen}\",\"hash\":{},\"data\":\"{banner}\\r\\n\",",
            face.draw(u64::from(*port), 0, 1 << 31)
        );
        put!(out, "\"ip_str\":\"{}\",\"_shodan\":{{\"module\":\"auto\",\"crawler\":\"0\"}}}}", face.ip);
    }
    out.push(']');
}

/// `GET /{ip}` at InternetDB.
pub(super) fn internetdb(face: &Face) -> Answer {
    if is_unknown(face) {
        return Answer::not_found("{\"detail\":\"No information available\"}".to_owned());
    }
    let mut out = String::with_capacity(256);
    out.push_str("{\"cpes\":[\"cpe:/a:openbsd:openssh\"],");
    put!(
        out,
        "\"hostnames\":[\"host{}.example.net\"],\"ip\":\"{}\",\"ports\":[",
        face.draw(7, 1, 254),
        face.ip
    );
    ports(&mut out, face);
    put!(out, "],\"tags\":[{}],", if face.draw(8, 0, 1) == 0 { "\"cloud\"" } else { "" });
    put!(out, "\"vulns\":[{}]}}", if face.is_bad() { "\"CVE-2000-0001\"" } else { "" });
    Answer::ok(out)
}
