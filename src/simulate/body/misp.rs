//! MISP, `POST /attributes/restSearch`: attributes of events; ids and times are strings.

use std::fmt::Write as _;

use super::{Answer, Face, put};
use crate::simulate::verdict::Verdict;

/// Attributes a malicious address has besides a plain one: what is no `to_ids` is context.
pub(super) fn search(faces: &[Result<Face, String>]) -> Answer {
    let mut out = String::from("{\"response\":{\"Attribute\":[");
    let mut id = 0;
    for face in faces.iter().flatten().filter(|face| face.is_bad() && !face.special) {
        let ip = face.ip;
        attribute(&mut out, &mut id, face, "ip-dst", &ip.to_string(), face.verdict == Verdict::Malicious);
        if face.draw(5, 0, 2) == 0 {
            attribute(&mut out, &mut id, face, "ip-dst|port", &format!("{ip}|443"), false);
        }
    }
    out.push_str("]}}");
    Answer::ok(out)
}

fn attribute(out: &mut String, id: &mut u32, face: &Face, kind: &str, value: &str, to_ids: bool) {
    if *id > 0 {
        out.push(',');
    }
    *id += 1;
    let event = face.draw(6, 1, 99);
    // 2026-01-01T00:00:00Z and up to two weeks on.
    let time = 1_767_225_600 + face.draw(7, 0, 14 * 86_400);
    put!(out, "{{\"id\":\"{id}\",\"event_id\":\"{event}\",\"object_id\":\"0\",\"object_relation\":null,");
    put!(out, "\"category\":\"Network activity\",\"type\":\"{kind}\",\"to_ids\":{to_ids},");
    put!(
        out,
        "\"uuid\":\"00000000-0000-4000-8000-{id:012}\",\"timestamp\":\"{time}\",\"distribution\":\"1\","
    );
    out.push_str(
        "\"sharing_group_id\":\"0\",\"comment\":\"\",\"deleted\":false,\"disable_correlation\":false,",
    );
    put!(out, "\"first_seen\":null,\"last_seen\":null,\"value\":\"{value}\",\"Event\":{{\"org_id\":\"1\",");
    put!(out, "\"distribution\":\"1\",\"id\":\"{event}\",\"info\":\"Example event\",\"orgc_id\":\"1\",");
    put!(out, "\"uuid\":\"00000000-0000-4000-9000-{event:012}\"}},");
    out.push_str("\"Tag\":[{\"id\":\"1\",\"name\":\"tlp:clear\",\"colour\":\"#ffffff\"}]}");
}
