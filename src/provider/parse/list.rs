//! The `[list]` table of a definition.

use std::time::Duration;

use reqwest::Url;

use super::{fields, section::Section};
use crate::provider::{ListDefinition, Origin, Role, Verdict, list::Format, request::is_loopback_host};

const ROOT: [&str; 4] = ["title", "role", "licence", "list"];
const LIST: [&str; 14] = [
    "url",
    "format",
    "column",
    "field",
    "member",
    "verdict",
    "score",
    "known_good",
    "tags",
    "reference",
    "every",
    "max_age",
    "may_be_empty",
    "without_special",
];

/// Once a day is what most sources ask for where they say nothing.
const DEFAULT_EVERY: Duration = Duration::from_secs(24 * 3600);
/// Addresses change hands; a list that nobody renewed for a week says little.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn list(root: &Section<'_, '_>, name: &str, origin: Origin) -> Option<ListDefinition> {
    root.only(&ROOT);
    let title = root.text("title").map(str::to_owned);
    let role = root.word("role", &[("reputation", Role::Reputation), ("context", Role::Context)]);
    let section = root.table("list")?;
    section.only(&LIST);
    let format = format(&section);
    let words = [Verdict::Malicious, Verdict::Suspicious, Verdict::Benign, Verdict::Unknown];
    let verdict = section.word("verdict", &words.map(|verdict| (verdict.as_str(), verdict)));
    let known_good = section.flag("known_good");
    if known_good && verdict.is_some_and(|verdict| verdict != Verdict::Benign) {
        section.fault("known_good", "goes with verdict = \"benign\" alone");
    }
    let score = if section.has("score") { section.bounded("score", 0, 100).map(Some) } else { Some(None) };
    let tags = if section.has("tags") { section.texts("tags")? } else { Vec::new() };
    let mut tags: Vec<String> = tags.into_iter().map(str::to_owned).collect();
    tags.sort();
    tags.dedup();
    let age =
        |key: &str, standing| if section.has(key) { fields::age(&section, key) } else { Some(standing) };
    let (every, max_age) = (age("every", DEFAULT_EVERY), age("max_age", DEFAULT_MAX_AGE));
    Some(ListDefinition {
        name: name.to_owned(),
        title: title?,
        origin,
        role: role?,
        licence: root.optional("licence").map(str::to_owned),
        url: link(&section, "url")?,
        format: format?,
        verdict: verdict?,
        score: score?.and_then(|score| u8::try_from(score).ok()),
        known_good,
        tags,
        reference: link(&section, "reference")?,
        every: every?,
        max_age: max_age?,
        may_be_empty: section.flag("may_be_empty"),
        without_special: section.flag("without_special"),
    })
}

fn format(section: &Section<'_, '_>) -> Option<Format> {
    let word = section
        .word("format", &[("plain", 0), ("csv", 1), ("json", 2), ("json-lines", 3), ("tor-exits", 4)])?;
    Some(match word {
        1 => Format::Csv { column: section.bounded("column", 0, 99)? as usize },
        2 => Format::Json {
            field: section.optional("field").map(str::to_owned),
            list: section.optional("member").map(str::to_owned),
        },
        3 => Format::JsonLines { field: section.text("field")?.to_owned() },
        4 => Format::ExitAddresses,
        _ => Format::Plain,
    })
}

/// The outer `None` is a fault, the inner one an absence.
#[expect(clippy::option_option, reason = "a fault and an absence are two things")]
fn link(section: &Section<'_, '_>, key: &str) -> Option<Option<Url>> {
    if !section.has(key) {
        return Some(None);
    }
    let url = Url::parse(section.text(key)?).ok().filter(|url| {
        let safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback_host(url));
        safe && url.username().is_empty() && url.password().is_none() && url.host_str().is_some()
    });
    if url.is_none() {
        section.fault(key, "must be an https URL without a user (plain http is for this machine alone)");
    }
    url.map(Some)
}
