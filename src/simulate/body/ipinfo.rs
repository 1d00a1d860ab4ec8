//! IPinfo Lite, `GET /lite/{ip}` and `POST /batch/lite`: where an address is at home; no verdict.

use std::fmt::Write as _;

use super::{Answer, Face, put};

pub(super) fn lite(face: &Face) -> Answer {
    let mut out = String::with_capacity(256);
    entry(&mut out, face);
    Answer::ok(out)
}

/// A map keyed by what was asked.
pub(super) fn batch(faces: &[Result<Face, String>]) -> Answer {
    let mut out = String::from("{");
    for (nth, face) in faces.iter().enumerate() {
        if nth > 0 {
            out.push(',');
        }
        match face {
            Ok(face) => {
                put!(out, "\"{}\":", face.ip);
                entry(&mut out, face);
            }
            Err(text) => {
                let key = serde_json::Value::from(text.as_str());
                put!(out, "{key}:{{\"status\":404,\"error\":{{\"title\":\"Wrong ip\",");
                out.push_str("\"message\":\"Please provide a valid IP address\"}}");
            }
        }
    }
    out.push('}');
    Answer::ok(out)
}

fn entry(out: &mut String, face: &Face) {
    put!(out, "{{\"ip\":\"{}\"", face.ip);
    if face.special {
        out.push_str(",\"bogon\":true}");
        return;
    }
    let home = face.origin;
    put!(out, ",\"asn\":\"AS{}\",\"as_name\":\"{}\",\"as_domain\":\"example.net\",", home.asn, home.org);
    put!(out, "\"country_code\":\"{}\",\"country\":\"{}\",", home.country, home.country_name);
    put!(out, "\"continent_code\":\"{}\",\"continent\":\"{}\"}}", home.continent, continent(home.continent));
}

fn continent(code: &str) -> &'static str {
    match code {
        "EU" => "Europe",
        "NA" => "North America",
        "SA" => "South America",
        "AS" => "Asia",
        "AF" => "Africa",
        _ => "Oceania",
    }
}
