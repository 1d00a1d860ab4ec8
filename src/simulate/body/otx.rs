//! AlienVault OTX, `GET /api/v1/indicators/IPv4|IPv6/{ip}/general`: unknown is no pulse, whitelisted has a validation.

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

pub(super) fn general(face: &Face) -> Answer {
    if face.special {
        let text = "{\"error\":\"private or reserved address\",\"detail\":\"endpoint not found\"}";
        return Answer::refused(400, text.to_owned());
    }
    let (ip, home) = (face.ip, face.origin);
    let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    let pulses = match face.verdict {
        Verdict::Malicious => face.draw(5, 2, 12),
        Verdict::Suspicious | Verdict::Benign => 1,
        Verdict::Unknown => 0,
    };
    let mut out = String::with_capacity(1024 + 600 * usize::try_from(pulses).unwrap_or(0));
    put!(out, "{{\"whois\":\"http://whois.domaintools.com/{ip}\",\"reputation\":0,\"indicator\":\"{ip}\",");
    put!(out, "\"type\":\"{family}\",\"type_title\":\"{family}\",\"base_indicator\":{{");
    if pulses > 0 {
        put!(
            out,
            "\"id\":1,\"indicator\":\"{ip}\",\"type\":\"{family}\",\"title\":\"\",\"description\":\"\","
        );
        out.push_str("\"content\":\"\",\"access_type\":\"public\",\"access_reason\":\"\"");
    }
    put!(out, "}},\"pulse_info\":{{\"count\":{pulses},\"pulses\":[");
    for nth in 0..pulses {
        pulse(&mut out, face, nth);
    }
    out.push_str(
        "],\"references\":[],\"related\":{\"alienvault\":{\"adversary\":[],\"malware_families\":[],",
    );
    out.push_str(
        "\"industries\":[]},\"other\":{\"adversary\":[],\"malware_families\":[],\"industries\":[]}}},",
    );
    out.push_str("\"false_positive\":[],\"validation\":[");
    if face.verdict == Verdict::Benign {
        out.push_str("{\"source\":\"whitelist\",\"message\":\"Whitelisted IP\",\"name\":\"Whitelisted IP\"}");
    }
    put!(out, "],\"asn\":\"AS{} {}\",\"city_data\":true,\"city\":null,", home.asn, home.org);
    put!(
        out,
        "\"continent_code\":\"{}\",\"country_code2\":\"{1}\",\"country_code\":\"{1}\",",
        home.continent,
        home.country
    );
    put!(
        out,
        "\"country_name\":\"{}\",\"sections\":[\"general\",\"geo\",\"reputation\"]}}",
        home.country_name
    );
    Answer::ok(out)
}

fn pulse(out: &mut String, face: &Face, nth: u64) {
    let (day, hour, minute, second) = face.moment();
    put!(
        out,
        "{}{{\"id\":\"{nth:024x}\",\"name\":\"Example pulse\",\"description\":\"\",",
        if nth > 0 { "," } else { "" }
    );
    put!(out, "\"modified\":\"2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.123000\",");
    out.push_str(
        "\"created\":\"2026-01-01T00:00:00.000000\",\"tags\":[\"ssh\"],\"references\":[],\"public\":1,",
    );
    out.push_str("\"adversary\":\"\",\"targeted_countries\":[],\"malware_families\":[],\"attack_ids\":[{\"id\":\"T1110\",");
    out.push_str("\"name\":\"Brute Force\",\"display_name\":\"T1110 - Brute Force\"}],\"industries\":[],\"TLP\":\"white\",");
    out.push_str("\"author\":{\"username\":\"example_author\",\"id\":\"1\"}}");
}
