//! GreyNoise: the community form, and the full one (single, quick, bulk).

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

/// `GET /v3/community/{ip}`: 404 with `noise: false` where nothing is known; IPv4 alone.
pub(super) fn community(face: &Face) -> Answer {
    let ip = face.ip;
    if is_refused(face) {
        return unroutable(face);
    }
    if face.verdict == Verdict::Unknown {
        return Answer::not_found(format!(
            "{{\"ip\":\"{ip}\",\"noise\":false,\"riot\":false,\"message\":\"IP not observed scanning the internet.\"}}"
        ));
    }
    let riot = face.verdict == Verdict::Benign;
    let mut out = String::with_capacity(256);
    put!(out, "{{\"ip\":\"{ip}\",\"noise\":{},\"riot\":{riot},", !riot);
    put!(out, "\"classification\":\"{}\",", face.verdict.word());
    put!(out, "\"name\":\"{}\",", if riot { "Example Public DNS" } else { "unknown" });
    put!(out, "\"link\":\"https://viz.greynoise.io/ip/{ip}\",");
    put!(out, "\"last_seen\":\"2026-01-{:02}\",\"message\":\"Success\"}}", face.moment().0);
    Answer::ok(out)
}

/// `GET /v3/ip/{ip}`.
pub(super) fn single(face: &Face, quick: bool) -> Answer {
    if is_refused(face) {
        return unroutable(face);
    }
    // Both are seen where nothing is known; every other such address gets the one or the other.
    if face.verdict == Verdict::Unknown && face.draw(8, 0, 1) == 0 {
        return Answer::not_found("{\"message\":\"IP not found\"}".to_owned());
    }
    let mut out = String::with_capacity(2048);
    entry(&mut out, face, quick);
    out.push_str(",\"request_metadata\":{\"restricted_fields\":[]}}");
    Answer::ok(out)
}

/// `POST /v3/ip`: unknown addresses by name in `ips_not_found`; those it does not take appear nowhere.
pub(super) fn multi(faces: &[Result<Face, String>], quick: bool) -> Answer {
    let (mut out, mut missing) = (String::from("{\"data\":["), String::new());
    for face in faces.iter().flatten().filter(|face| !is_refused(face)) {
        if face.verdict == Verdict::Unknown {
            put!(missing, "{}\"{}\"", if missing.is_empty() { "" } else { "," }, face.ip);
            continue;
        }
        if !out.ends_with('[') {
            out.push(',');
        }
        entry(&mut out, face, quick);
        out.push('}');
    }
    put!(
        out,
        "],\"request_metadata\":{{\"restricted_fields\":[],\"message\":\"\",\"ips_not_found\":[{missing}]}}}}"
    );
    Answer::ok(out)
}

fn is_refused(face: &Face) -> bool {
    face.special || face.ip.is_ipv6()
}

fn unroutable(face: &Face) -> Answer {
    let text =
        format!("{{\"message\":\"Request is not a valid routable IPv4 address\",\"ip\":\"{}\"}}", face.ip);
    Answer::refused(400, text)
}

/// An address's object, its closing brace left out.
fn entry(out: &mut String, face: &Face, quick: bool) {
    let riot = face.verdict == Verdict::Benign;
    put!(out, "{{\"ip\":\"{}\",\"business_service_intelligence\":{{\"found\":{riot},", face.ip);
    let trust = if riot { "1" } else { "" };
    let classification = if face.is_bad() { face.verdict.word() } else { "" };
    if quick {
        put!(
            out,
            "\"trust_level\":\"{trust}\"}},\"internet_scanner_intelligence\":{{\"found\":{},",
            face.is_bad()
        );
        put!(out, "\"classification\":\"{classification}\"}}");
        return;
    }
    let (category, name, updated) =
        if riot { ("public_dns", "Example Public DNS", "2026-01-15T00:00:00Z") } else { ("", "", "") };
    put!(out, "\"category\":\"{category}\",\"name\":\"{name}\",\"description\":\"\",\"explanation\":\"\",");
    put!(out, "\"last_updated\":\"{updated}\",\"reference\":\"\",\"trust_level\":\"{trust}\"}},");
    out.push_str("\"internet_scanner_intelligence\":{");
    if face.is_bad() {
        scanner(out, face);
    } else {
        out.push_str("\"first_seen\":\"\",\"last_seen\":\"\",\"found\":false,\"tags\":[],\"actor\":\"\",");
        out.push_str("\"spoofable\":false,\"classification\":\"\",\"cves\":[],\"bot\":false,\"vpn\":false,");
        out.push_str("\"vpn_service\":\"\",\"tor\":false,\"metadata\":{},");
        out.push_str("\"raw_data\":{\"scan\":[],\"ja3\":[],\"hassh\":[]},\"last_seen_timestamp\":\"\"}");
    }
}

fn scanner(out: &mut String, face: &Face) {
    let (day, hour, minute, second) = face.moment();
    let (word, home) = (face.verdict.word(), face.origin);
    put!(out, "\"first_seen\":\"2025-11-02\",\"last_seen\":\"2026-01-{day:02}\",\"found\":true,\"tags\":[{{");
    out.push_str("\"id\":\"00000000-0000-4000-8000-000000000001\",\"slug\":\"ssh-bruteforcer\",");
    out.push_str("\"name\":\"SSH Bruteforcer\",\"description\":\"Example tag.\",\"category\":\"activity\",");
    put!(out, "\"intention\":\"{word}\",\"references\":[],\"cves\":[],\"recommend_block\":true,");
    out.push_str(
        "\"created\":\"2020-04-07\",\"updated_at\":\"2026-01-14T00:00:00Z\"}],\"actor\":\"unknown\",",
    );
    put!(
        out,
        "\"spoofable\":false,\"classification\":\"{word}\",\"cves\":[],\"bot\":{},",
        face.draw(5, 0, 3) == 0
    );
    put!(out, "\"vpn\":false,\"vpn_service\":\"\",\"tor\":{},", face.draw(6, 0, 9) == 0);
    put!(out, "\"metadata\":{{\"asn\":\"AS{}\",\"source_country\":\"{}\",", home.asn, home.country_name);
    put!(
        out,
        "\"source_country_code\":\"{}\",\"source_city\":\"\",\"domain\":\"example.net\",",
        home.country
    );
    put!(out, "\"organization\":\"{}\",\"category\":\"hosting\",\"os\":\"\",", home.org);
    put!(
        out,
        "\"rdns\":\"host{}.example.net\",\"sensor_count\":12,\"sensor_hits\":340,",
        face.draw(7, 1, 254)
    );
    out.push_str("\"mobile\":false,\"single_destination\":false},");
    out.push_str("\"raw_data\":{\"scan\":[{\"port\":22,\"protocol\":\"TCP\"}],\"ja3\":[],\"hassh\":[]},");
    put!(out, "\"last_seen_timestamp\":\"2026-01-{day:02} {hour:02}:{minute:02}:{second:02}\"}}");
}
