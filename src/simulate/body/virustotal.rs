//! VirusTotal, `GET /api/v3/ip_addresses/{ip}`: about 90 engines make most of the body.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::LazyLock;

use super::{Answer, Face, put};
use crate::simulate::scenario::Size;
use crate::simulate::verdict::Verdict;

/// Engines in a full answer ("about 90" in the public documentation).
const ENGINES: u64 = 94;

/// One engine's line for each of the four opinions, rendered once: a full body is then mostly copying.
struct Engine {
    malicious: String,
    suspicious: String,
    harmless: String,
    undetected: String,
}

static TABLE: LazyLock<Vec<Engine>> = LazyLock::new(|| {
    let line = |n: u64, category: &str, result: &str| {
        format!(
            "\"Example Engine {n}\":{{\"method\":\"blacklist\",\"engine_name\":\"Example Engine {n}\",\
             \"category\":\"{category}\",\"result\":\"{result}\"}}"
        )
    };
    (1..=ENGINES)
        .map(|n| Engine {
            malicious: line(n, "malicious", "malware"),
            suspicious: line(n, "suspicious", "suspicious"),
            harmless: line(n, "harmless", "clean"),
            undetected: line(n, "undetected", "unrated"),
        })
        .collect()
});

/// How many engines hold which opinion.
struct Stats {
    malicious: u64,
    suspicious: u64,
    harmless: u64,
    undetected: u64,
}

impl Stats {
    fn of(face: &Face) -> Self {
        let (malicious, suspicious) = match face.verdict {
            _ if face.special => (0, 0),
            Verdict::Malicious => (face.draw(5, 8, 24), face.draw(6, 0, 4)),
            Verdict::Suspicious => (face.draw(5, 1, 2), face.draw(6, 1, 3)),
            Verdict::Benign | Verdict::Unknown => (0, 0),
        };
        if face.verdict == Verdict::Unknown && !face.special {
            return Self { malicious, suspicious, harmless: 0, undetected: 0 };
        }
        let undetected = face.draw(7, 22, 36);
        Self { malicious, suspicious, harmless: ENGINES - malicious - suspicious - undetected, undetected }
    }
}

pub(super) fn address(face: &Face, size: Size) -> Answer {
    // Both are seen for an address that was never analysed; every other such address gets the one or the other.
    if face.verdict == Verdict::Unknown && !face.special && face.draw(8, 0, 1) == 0 {
        let text = "{\"error\":{\"code\":\"NotFoundError\",\"message\":\"Resource not found.\"}}";
        return Answer::not_found(text.to_owned());
    }
    let stats = Stats::of(face);
    let mut out = String::with_capacity(if size == Size::Full { 16 << 10 } else { 1 << 10 });
    let ip = face.ip;
    put!(out, "{{\"data\":{{\"id\":\"{ip}\",\"type\":\"ip_address\",\"links\":{{\"self\":");
    put!(out, "\"https://www.virustotal.com/api/v3/ip_addresses/{ip}\"}},\"attributes\":{{");
    put!(out, "\"as_owner\":\"{}\",\"asn\":{},", face.origin.org, face.origin.asn);
    put!(out, "\"continent\":\"{}\",\"country\":\"{}\",", face.origin.continent, face.origin.country);
    put!(out, "\"network\":\"{}\",\"regional_internet_registry\":\"RIPE NCC\",", network(ip));
    // 2026-01-01T00:00:00Z and so many days on.
    let analysed = 1_767_225_600 + face.draw(9, 0, 14 * 86_400);
    put!(out, "\"last_analysis_date\":{analysed},\"last_modification_date\":{},", analysed + 74);
    let Stats { malicious, suspicious, harmless, undetected } = stats;
    put!(out, "\"last_analysis_stats\":{{\"malicious\":{malicious},\"suspicious\":{suspicious},");
    put!(
        out,
        "\"undetected\":{undetected},\"harmless\":{harmless},\"timeout\":0}},\"last_analysis_results\":{{"
    );
    if size == Size::Full {
        engines(&mut out, &stats, face.draw(10, 0, ENGINES - 1));
    }
    let reputation = if malicious > 0 { -i64::try_from(malicious).unwrap_or(0) } else { 0 };
    put!(
        out,
        "}},\"reputation\":{reputation},\"total_votes\":{{\"harmless\":0,\"malicious\":{}}},",
        malicious / 4
    );
    put!(out, "\"tags\":[],\"whois\":\"NetRange: {}\\nOrgName: {}\",", network(ip), face.origin.org);
    out.push_str("\"whois_date\":1768000000}}}");
    Answer::ok(out)
}

/// The engines' opinions, starting with the malicious ones at a place in the table that differs by address.
fn engines(out: &mut String, stats: &Stats, from: u64) {
    let Stats { malicious, suspicious, harmless, undetected } = *stats;
    let analysed = malicious + suspicious + harmless + undetected;
    let table = TABLE.iter().cycle().skip(usize::try_from(from).unwrap_or(0));
    for (nth, engine) in (0..analysed).zip(table) {
        if nth > 0 {
            out.push(',');
        }
        out.push_str(if nth < malicious {
            &engine.malicious
        } else if nth < malicious + suspicious {
            &engine.suspicious
        } else if nth < malicious + suspicious + harmless {
            &engine.harmless
        } else {
            &engine.undetected
        });
    }
}

/// The /24 or /48 around an address.
fn network(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => format!("{}/24", std::net::Ipv4Addr::from_bits(v4.to_bits() & !0xff)),
        IpAddr::V6(v6) => format!("{}/48", std::net::Ipv6Addr::from_bits(v6.to_bits() >> 80 << 80)),
    }
}
