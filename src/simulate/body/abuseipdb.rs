//! AbuseIPDB, `GET /api/v2/check`: always 200; nothing known is `totalReports` 0.

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

pub(super) fn check(face: &Face) -> Answer {
    let (score, reports) = match face.verdict {
        _ if face.special => (0, 0),
        Verdict::Malicious => (face.draw(5, 80, 100), face.draw(6, 20, 900)),
        Verdict::Suspicious => (face.draw(5, 26, 74), face.draw(6, 2, 19)),
        // A whitelisted address has score 0 although reports exist.
        Verdict::Benign => (0, face.draw(6, 1, 200)),
        Verdict::Unknown => (0, 0),
    };
    let whitelisted = match face.verdict {
        Verdict::Benign if !face.special => "true",
        _ if reports > 0 => "false",
        _ => "null",
    };
    let mut out = String::with_capacity(640);
    put!(out, "{{\"data\":{{\"ipAddress\":\"{}\",\"isPublic\":{},", face.ip, !face.special);
    put!(out, "\"ipVersion\":{},\"isWhitelisted\":{whitelisted},", if face.ip.is_ipv4() { 4 } else { 6 });
    put!(out, "\"abuseConfidenceScore\":{score},");
    if face.special {
        out.push_str("\"countryCode\":null,\"usageType\":\"Reserved\",\"isp\":\"Private IP Address LAN\",");
        out.push_str("\"domain\":null,\"hostnames\":[],");
    } else {
        let usage = if face.verdict == Verdict::Benign {
            "Content Delivery Network"
        } else {
            "Data Center/Web Hosting/Transit"
        };
        put!(out, "\"countryCode\":\"{}\",\"usageType\":\"{usage}\",", face.origin.country);
        put!(out, "\"isp\":\"{}\",\"domain\":\"example.net\",", face.origin.org);
        put!(out, "\"hostnames\":[\"host{}.example.net\"],", face.draw(7, 1, 254));
    }
    put!(out, "\"isTor\":{},\"totalReports\":{reports},", face.is_bad() && face.draw(8, 0, 9) == 0);
    put!(out, "\"numDistinctUsers\":{},\"lastReportedAt\":", reports.div_ceil(3));
    if reports > 0 {
        let (day, hour, minute, second) = face.moment();
        put!(out, "\"2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}+00:00\"}}}}");
    } else {
        out.push_str("null}}");
    }
    Answer::ok(out)
}
