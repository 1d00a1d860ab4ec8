//! urlscan, `GET /api/v1/search/`: scans of pages served by an address; none is `total` 0.

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

pub(super) fn search(faces: &[Result<Face, String>]) -> Answer {
    let mut out = String::with_capacity(256 + 1024 * faces.len());
    out.push_str("{\"results\":[");
    let mut total = 0_u64;
    for face in faces.iter().flatten() {
        for nth in 0..scans(face) {
            if total > 0 {
                out.push(',');
            }
            total += 1;
            scan(&mut out, face, nth);
        }
    }
    put!(out, "],\"total\":{total},\"took\":14,\"has_more\":false}}");
    Answer::ok(out)
}

fn scans(face: &Face) -> u64 {
    match face.verdict {
        _ if face.special => 0,
        Verdict::Malicious => face.draw(5, 1, 5),
        Verdict::Suspicious => face.draw(5, 0, 2),
        Verdict::Benign => face.draw(5, 0, 3),
        Verdict::Unknown => 0,
    }
}

fn scan(out: &mut String, face: &Face, nth: u64) {
    let (day, hour, minute, second) = face.moment();
    let time = format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.123Z");
    let uuid = format!("00000000-0000-4000-8000-{:012x}", face.bits >> 20 ^ nth);
    let milliseconds =
        1_767_225_600_000 + ((day - 1) * 86_400 + hour * 3600 + minute * 60 + second) * 1000 + 123;
    put!(out, "{{\"task\":{{\"visibility\":\"public\",\"method\":\"api\",\"domain\":\"login.example.com\",");
    put!(out, "\"apexDomain\":\"example.com\",\"time\":\"{time}\",\"uuid\":\"{uuid}\",");
    out.push_str("\"url\":\"https://login.example.com/\",\"source\":\"api\"},");
    out.push_str(
        "\"stats\":{\"uniqIPs\":3,\"uniqCountries\":1,\"dataLength\":20480,\"encodedDataLength\":10240,",
    );
    out.push_str("\"requests\":12,\"consoleMsgs\":0},");
    put!(
        out,
        "\"page\":{{\"country\":\"{}\",\"server\":\"nginx\",\"ip\":\"{}\",",
        face.origin.country,
        face.ip
    );
    out.push_str("\"mimeType\":\"text/html\",\"title\":\"Sign in\",\"url\":\"https://login.example.com/\",");
    out.push_str("\"domain\":\"login.example.com\",\"apexDomain\":\"example.com\",");
    put!(out, "\"asn\":\"AS{}\",\"asnname\":\"{}\",", face.origin.asn, face.origin.org);
    put!(out, "\"ptr\":\"host{}.example.net\",\"status\":\"200\"}},", face.draw(7, 1, 254));
    put!(out, "\"_id\":\"{uuid}\",\"_score\":null,\"sort\":[{milliseconds},\"{uuid}\"],");
    put!(out, "\"result\":\"https://urlscan.io/api/v1/result/{uuid}/\",");
    put!(out, "\"screenshot\":\"https://urlscan.io/screenshots/{uuid}.png\",\"indexedAt\":\"{time}\"}}");
}
