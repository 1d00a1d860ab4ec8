//! The parts of a request: where placeholders may stand, and what must not be there.

use std::time::Duration;

use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use super::section::Section;
use crate::provider::{
    KeyPlace, KeyRule,
    request::{BodyTemplate, FAMILY, IP, IPS, RequestTemplate},
};

/// Headers that belong to the transport, or would be a second place for a key.
const FOREIGN_HEADERS: [&str; 12] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Longest age that a cached answer may have.
const MAX_AGE_DAYS: u64 = 365;

pub(super) fn method(section: &Section<'_, '_>) -> Option<Method> {
    if !section.has("method") {
        return Some(Method::GET);
    }
    section
        .word("method", &[("GET", false), ("POST", true)])
        .map(|post| if post { Method::POST } else { Method::GET })
}

pub(super) fn header_name(section: &Section<'_, '_>, key: &str) -> Option<String> {
    let name = HeaderName::from_bytes(section.text(key)?.as_bytes());
    if name.is_err() {
        section.fault(key, "is no name of a header");
    }
    name.ok().map(|name| name.as_str().to_owned())
}

/// Takes out the placeholders that this request may have: a batch has its list, another its address.
fn without(text: &str, address: &str) -> String {
    let text = text.replace(address, "");
    if address == IP { text.replace(FAMILY, "") } else { text }
}

const fn other_placeholder(address: &str) -> &'static str {
    if address.len() == IPS.len() {
        "has a placeholder other than {ips}"
    } else {
        "has a placeholder that is neither {ip} nor {family}"
    }
}

pub(super) fn path(section: &Section<'_, '_>, address: &str) -> Option<String> {
    let path = section.text("path")?;
    let plain = without(path, address);
    let why = if !path.starts_with('/') {
        "must begin with /"
    } else if plain.contains(['{', '}']) {
        other_placeholder(address)
    } else if plain.contains(['?', '#']) {
        "must not hold ? or #; parameters have their own table, `request.query`"
    } else if plain.split('/').any(|part| part == "..") || !plain.bytes().all(|byte| byte.is_ascii_graphic())
    {
        "must be plain, without .. or white space"
    } else {
        return Some(path.to_owned());
    };
    section.fault("path", why);
    None
}

/// A table of texts, with placeholders in the values.
pub(super) fn pairs(
    section: &Section<'_, '_>,
    key: &'static str,
    address: &str,
) -> Option<Vec<(String, String)>> {
    if !section.has(key) {
        return Some(Vec::new());
    }
    let table = section.table(key)?;
    let mut pairs = Vec::new();
    for name in table.keys() {
        let value = table.optional(name)?;
        if name.contains(['{', '}']) {
            table.fault(name, "must not hold a placeholder in its name");
        }
        if has_other_placeholder(value, address) {
            table.fault(name, other_placeholder(address));
        }
        pairs.push((name.to_owned(), value.to_owned()));
    }
    Some(pairs)
}

pub(super) fn headers(section: &Section<'_, '_>, key: Option<&KeyRule>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if !section.has("headers") {
        return Some(headers);
    }
    let table = section.table("headers")?;
    let of_key = match key {
        Some(KeyRule { place: Some(KeyPlace::Header { name, .. }), .. }) => name.as_str(),
        _ => "",
    };
    for name in table.keys() {
        let text = table.optional(name)?;
        let lower = name.to_ascii_lowercase();
        if FOREIGN_HEADERS.contains(&lower.as_str()) || lower == of_key {
            table.fault(name, "is not for a definition to set; a key's header stands in `key`");
            continue;
        }
        if [IP, IPS, FAMILY].iter().any(|placeholder| text.contains(placeholder)) {
            table.fault(name, "must not hold a placeholder: only paths, queries and bodies may");
            continue;
        }
        match (HeaderName::from_bytes(lower.as_bytes()), HeaderValue::from_str(text)) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => table.fault(name, "is no header"),
        }
    }
    Some(headers)
}

pub(super) fn body(section: &Section<'_, '_>, address: &str) -> Option<BodyTemplate> {
    let post = section.optional_is("method", "POST");
    let (json, form) = (section.has("body"), section.has("form"));
    if (json || form) && !post {
        section.fault(if json { "body" } else { "form" }, "goes with method = \"POST\" alone");
        return None;
    }
    match (json, form) {
        (false, false) => Some(BodyTemplate::Empty),
        (true, true) => {
            section.fault("form", "cannot stand beside `body`");
            None
        }
        (false, true) => pairs(section, "form", address).map(BodyTemplate::Form),
        (true, false) => match serde_json::from_str::<Value>(section.text("body")?) {
            Ok(value) => Some(BodyTemplate::Json(value)),
            Err(error) => {
                section
                    .fault("body", &format!("must be JSON, with placeholders inside its strings: {error}"));
                None
            }
        },
    }
}

/// A request that does not name the address asks nothing.
pub(super) fn check_address(section: &Section<'_, '_>, request: &RequestTemplate, address: &'static str) {
    let in_body = match &request.body {
        BodyTemplate::Empty => false,
        BodyTemplate::Json(value) => value.to_string().contains(address),
        BodyTemplate::Form(pairs) => pairs.iter().any(|(_, value)| value.contains(address)),
    };
    if !in_body
        && !request.path.contains(address)
        && !request.query.iter().any(|(_, value)| value.contains(address))
    {
        section
            .missing("path", "the address must stand somewhere, as {ip} in the path, the query or the body");
    }
}

/// `24h`, `7d`, `30m`, `90s`; `0s` keeps nothing.
pub(super) fn age(section: &Section<'_, '_>, key: &str) -> Option<Duration> {
    let text = section.text(key)?;
    let seconds = text.char_indices().last().and_then(|(at, unit)| {
        let unit = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        text[..at].parse::<u64>().ok()?.checked_mul(unit)
    });
    let seconds = seconds.filter(|seconds| *seconds <= MAX_AGE_DAYS * 86_400);
    if seconds.is_none() {
        section.fault(key, "must be a time like 24h, 7d or 30m, at most 365d");
    }
    seconds.map(Duration::from_secs)
}

/// `{word}` that is none of ours. Other braces may stand: a query language has them.
fn has_other_placeholder(text: &str, address: &str) -> bool {
    without(text, address).split('{').skip(1).any(|rest| {
        rest.split_once('}').is_some_and(|(word, _)| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
    })
}
