//! CrowdSec CTI, `GET /v2/smoke/{ip}` and `?ips=a,b`.

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

pub(super) fn smoke(face: &Face) -> Answer {
    if is_unknown(face) {
        return Answer::not_found("{\"message\":\"IP address information not found\"}".to_owned());
    }
    let mut out = String::with_capacity(2048);
    entry(&mut out, face);
    Answer::ok(out)
}

/// Unknown addresses are counted, not named.
pub(super) fn many(faces: &[Result<Face, String>]) -> Answer {
    let (mut items, mut found) = (String::new(), 0_usize);
    for face in faces.iter().flatten().filter(|face| !is_unknown(face)) {
        if found > 0 {
            items.push(',');
        }
        found += 1;
        entry(&mut items, face);
    }
    Answer::ok(format!("{{\"total\":{found},\"not_found\":{},\"items\":[{items}]}}", faces.len() - found))
}

fn is_unknown(face: &Face) -> bool {
    face.special || face.verdict == Verdict::Unknown
}

fn entry(out: &mut String, face: &Face) {
    let (day, hour, minute, second) = face.moment();
    let (ip, home) = (face.ip, face.origin);
    let (reputation, confidence, total) = match face.verdict {
        Verdict::Malicious => ("malicious", "high", face.draw(5, 3, 5)),
        Verdict::Suspicious => ("suspicious", "medium", face.draw(5, 1, 3)),
        Verdict::Benign | Verdict::Unknown => ("safe", "high", 0),
    };
    put!(out, "{{\"ip\":\"{ip}\",\"reputation\":\"{reputation}\",\"confidence\":\"{confidence}\",");
    out.push_str(
        "\"ip_range\":null,\"ip_range_score\":2,\"ip_range_24\":null,\"ip_range_24_reputation\":null,",
    );
    put!(
        out,
        "\"ip_range_24_score\":null,\"background_noise\":\"medium\",\"background_noise_score\":{},",
        face.draw(6, 0, 10)
    );
    put!(
        out,
        "\"as_name\":\"{}\",\"as_num\":{},\"location\":{{\"country\":\"{}\",",
        home.org,
        home.asn,
        home.country
    );
    put!(out, "\"city\":null,\"latitude\":null,\"longitude\":null}},\"reverse_dns\":null,\"behaviors\":[");
    if face.is_bad() {
        out.push_str("{\"name\":\"ssh:bruteforce\",\"label\":\"SSH Bruteforce\",\"description\":\"Example\",\"references\":[]}");
    }
    out.push_str("],\"history\":{\"first_seen\":\"2025-11-02T08:00:00+00:00\",");
    put!(
        out,
        "\"last_seen\":\"2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}+00:00\",\"full_age\":74,\"days_age\":73}},"
    );
    out.push_str("\"classifications\":{\"false_positives\":[");
    if face.verdict == Verdict::Benign {
        out.push_str("{\"name\":\"cdn:example\",\"label\":\"Example CDN\",\"description\":\"Example\"}");
    }
    out.push_str(
        "],\"classifications\":[]},\"attack_details\":[],\"target_countries\":{\"DE\":60,\"NL\":40},",
    );
    out.push_str("\"mitre_techniques\":[],\"cves\":[],\"scores\":{");
    for (nth, span) in ["overall", "last_day", "last_week", "last_month"].iter().enumerate() {
        put!(
            out,
            "{}\"{span}\":{{\"aggressiveness\":{total},\"threat\":{total},",
            if nth > 0 { "," } else { "" }
        );
        put!(out, "\"trust\":{total},\"anomaly\":0,\"total\":{total}}}");
    }
    out.push_str("},\"references\":[]}");
}
