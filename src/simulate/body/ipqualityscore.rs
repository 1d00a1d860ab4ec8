//! IPQualityScore, `GET /api/json/ip`: always an answer; a score of 0 is all it says of an unknown address.

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

pub(super) fn score(face: &Face) -> Answer {
    let score = match face.verdict {
        Verdict::Malicious => face.draw(5, 85, 100),
        Verdict::Suspicious => face.draw(5, 40, 80),
        Verdict::Benign | Verdict::Unknown => 0,
    };
    let (bad, home) = (face.is_bad(), face.origin);
    let mut out = String::with_capacity(512);
    put!(
        out,
        "{{\"success\":true,\"message\":\"Success\",\"fraud_score\":{score},\"country_code\":\"{}\",",
        home.country
    );
    put!(
        out,
        "\"ISP\":\"{0}\",\"ASN\":{1},\"organization\":\"{0}\",\"is_crawler\":false,",
        home.org,
        home.asn
    );
    put!(
        out,
        "\"proxy\":{bad},\"vpn\":{},\"tor\":{},",
        bad && face.draw(6, 0, 1) == 0,
        bad && face.draw(7, 0, 9) == 0
    );
    put!(out, "\"recent_abuse\":{},\"bot_status\":{bad},", face.verdict == Verdict::Malicious);
    put!(out, "\"request_id\":\"EXAMPLE{}\"}}", face.draw(8, 1, 9999));
    Answer::ok(out)
}
