//! abuse.ch: ThreatFox, `POST /api/v1/`, and URLhaus, `POST /v1/host/`. Presence is the verdict.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

/// ThreatFox finds substrings: a search for 198.51.100.7 also gives 198.51.100.70.
pub(super) fn threatfox(face: &Face) -> Answer {
    let longer = longer_neighbour(face);
    if !face.is_bad() && longer.is_none() {
        let text = "{\"query_status\":\"no_result\",\"data\":\"Your search did not yield any results\"}";
        return Answer::ok(text.to_owned());
    }
    let mut out = String::from("{\"query_status\":\"ok\",\"data\":[");
    if face.is_bad() {
        let confidence =
            if face.verdict == Verdict::Malicious { face.draw(5, 75, 100) } else { face.draw(5, 25, 60) };
        ioc(&mut out, 1, &socket(face.ip, 443), confidence, face);
    }
    if let Some(neighbour) = longer {
        if face.is_bad() {
            out.push(',');
        }
        ioc(&mut out, 2, &socket(neighbour, 80), 50, face);
    }
    out.push_str("]}");
    Answer::ok(out)
}

fn ioc(out: &mut String, id: u32, ioc: &str, confidence: u64, face: &Face) {
    let (day, hour, minute, second) = face.moment();
    put!(
        out,
        "{{\"id\":\"{id}\",\"ioc\":\"{ioc}\",\"threat_type\":\"botnet_cc\",\"threat_type_desc\":\"Example\","
    );
    out.push_str("\"ioc_type\":\"ip:port\",\"ioc_type_desc\":\"Example\",\"malware\":\"win.example\",");
    out.push_str("\"malware_printable\":\"Example\",\"malware_alias\":null,\"malware_malpedia\":null,");
    put!(out, "\"confidence_level\":{confidence},");
    put!(
        out,
        "\"first_seen\":\"2026-01-{day:02} {hour:02}:{minute:02}:{second:02} UTC\",\"last_seen\":null,"
    );
    out.push_str("\"reporter\":\"example_reporter\",\"reference\":null,\"tags\":[\"c2\"]}");
}

/// An address whose text begins with this one's, for one in four of those that have such.
fn longer_neighbour(face: &Face) -> Option<IpAddr> {
    let text = format!("{}0", face.ip);
    text.parse().ok().filter(|ip: &IpAddr| ip.is_ipv4() && face.draw(6, 0, 3) == 0)
}

fn socket(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

pub(super) fn urlhaus(face: &Face) -> Answer {
    if !face.is_bad() {
        return Answer::ok("{\"query_status\":\"no_results\"}".to_owned());
    }
    let ip = face.ip;
    let host = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
    let (day, hour, minute, second) = face.moment();
    let added = format!("2026-01-{day:02} {hour:02}:{minute:02}:{second:02} UTC");
    let status = if face.verdict == Verdict::Malicious { "online" } else { "offline" };
    let mut out = String::with_capacity(1024);
    put!(out, "{{\"query_status\":\"ok\",\"urlhaus_reference\":\"https://urlhaus.abuse.ch/host/{ip}/\",");
    put!(out, "\"host\":\"{ip}\",\"firstseen\":\"{added}\",\"url_count\":\"1\",");
    out.push_str(
        "\"blacklists\":{\"spamhaus_dbl\":\"not listed\",\"surbl\":\"not listed\"},\"urls\":[{\"id\":\"1\",",
    );
    put!(
        out,
        "\"urlhaus_reference\":\"https://urlhaus.abuse.ch/url/1/\",\"url\":\"http://{host}/payload.bin\","
    );
    put!(out, "\"url_status\":\"{status}\",\"date_added\":\"{added}\",\"threat\":\"malware_download\",");
    out.push_str("\"reporter\":\"example_reporter\",\"larted\":\"true\",\"takedown_time_seconds\":null,\"tags\":[\"elf\"]}]}");
    Answer::ok(out)
}
