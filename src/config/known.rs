//! Every key there is, and what it takes.

use super::value::Kind;

/// A day, in seconds.
const DAY: u64 = 86_400;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The most look-ups in flight: beyond it, sockets and buffers would break the memory bound of 64 MiB.
const MAX_CONCURRENCY: u64 = 1_024;

/// With back-off up to 60 s, more retries than this cannot happen within any sensible deadline.
const MAX_RETRIES: u64 = 20;

/// Keys by their dotted path, those of `[providers.NAME]` apart.
pub(super) const KEYS: &[(&str, Kind)] = &[
    ("concurrency", Kind::Count(1, MAX_CONCURRENCY)),
    ("timeout", Kind::Time(1, 600)),
    ("deadline", Kind::Time(1, DAY)),
    ("max_time", Kind::OptionalTime),
    ("retries", Kind::Count(0, MAX_RETRIES)),
    ("retry_budget", Kind::Share),
    ("proxy", Kind::Secret),
    ("ca_file", Kind::Text),
    // Sixteen replies in flight at the default share 32 MiB. The largest sound replies are Shodan hosts with many
    // banners, some hundred KiB.
    ("max_body", Kind::Size(KIB, 64 * MIB)),
    ("pap", Kind::Choice(&["red", "amber", "green", "clear"])),
    ("data_dir", Kind::Text),
    ("state_dir", Kind::Text),
    ("input.event_types", Kind::Texts),
    ("input.limit", Kind::Count(0, u32::MAX as u64)),
    ("input.max_unique", Kind::Count(1, u32::MAX as u64)),
    ("input.max_line", Kind::Size(KIB, GIB)),
    ("input.max_malformed", Kind::Share),
    ("input.exclude", Kind::Networks),
    ("input.exclude_files", Kind::Texts),
    ("input.never_send", Kind::Networks),
    ("input.home_net", Kind::Networks),
    ("lists.use", Kind::Texts),
    ("lists.ask_known_good", Kind::Flag),
    ("lists.max_size", Kind::Size(KIB, GIB)),
    ("mmdb.files", Kind::Texts),
    ("output.format", Kind::Choice(&["auto", "table", "ndjson", "json", "csv", "tsv"])),
    ("output.fields", Kind::Texts),
    ("output.sort", Kind::Choice(&["done", "input", "rank"])),
    ("output.skipped", Kind::Flag),
    ("output.defang", Kind::Flag),
    ("verdict.malicious", Kind::Count(1, 100)),
    ("verdict.suspicious", Kind::Count(1, 100)),
    ("cache.max_size", Kind::Size(MIB, 1024 * GIB)),
    ("cache.stale_if_error", Kind::Time(0, 366 * DAY)),
    ("audit.keep", Kind::Time(1, 3_660 * DAY)),
    ("breaker.failures", Kind::Count(1, 1_000)),
    ("breaker.window", Kind::Count(1, 1_000)),
    ("breaker.open_for", Kind::Time(1, DAY)),
    ("log.format", Kind::Choice(&["auto", "text", "json"])),
    ("log.level", Kind::Text),
];

/// Keys of `[providers.NAME]`.
pub(super) const PROVIDER_KEYS: &[(&str, Kind)] = &[
    ("enabled", Kind::Flag),
    ("ask", Kind::Choice(&["always", "suspicious"])),
    ("rate", Kind::Rates),
    ("burst", Kind::Count(1, u32::MAX as u64)),
    ("daily", Kind::Count(1, u32::MAX as u64)),
    ("quota", Kind::Quotas),
    ("concurrency", Kind::Count(1, MAX_CONCURRENCY)),
    ("timeout", Kind::Time(1, 600)),
    ("deadline", Kind::Time(1, DAY)),
    ("retries", Kind::Count(0, MAX_RETRIES)),
    ("reserve", Kind::Share),
    ("max_age", Kind::Time(0, 366 * DAY)),
    ("max_age_unknown", Kind::Time(0, 366 * DAY)),
    ("base_url", Kind::Url),
    ("send_key_to", Kind::Texts),
    ("api_key_file", Kind::Text),
    ("api_key_command", Kind::Program),
];

/// Variables of ours that are no key of the configuration.
pub(super) const OTHER_VARIABLES: &[&str] = &["SIFT_CONFIG", "SIFT_LOG"];

/// The tables of the file.
pub(super) const TABLES: &[&str] =
    &["input", "lists", "mmdb", "output", "verdict", "cache", "audit", "breaker", "log", "providers"];

/// What a dotted path takes, `providers.NAME.key` among them.
pub(super) fn kind(path: &str) -> Option<Kind> {
    if let Some((_, key)) = path.strip_prefix("providers.").and_then(|rest| rest.rsplit_once('.')) {
        return find(PROVIDER_KEYS, key);
    }
    find(KEYS, path)
}

fn find(keys: &[(&str, Kind)], path: &str) -> Option<Kind> {
    keys.iter().find(|(known, _)| *known == path).map(|(_, kind)| *kind)
}

/// The names a table takes: keys, and at the top tables too.
pub(super) fn names(table: &str) -> Vec<&'static str> {
    if table.is_empty() {
        let keys = KEYS.iter().map(|(path, _)| *path).filter(|path| !path.contains('.'));
        return keys.chain(TABLES.iter().copied()).collect();
    }
    if table.starts_with("providers.") {
        return PROVIDER_KEYS.iter().map(|(key, _)| *key).collect();
    }
    KEYS.iter().filter_map(|(path, _)| path.strip_prefix(table)?.strip_prefix('.')).collect()
}

/// `SIFT_INPUT_LIMIT` for `input.limit`.
pub(super) fn variable(path: &str) -> String {
    let mut name = String::from("SIFT_");
    name.extend(path.chars().map(|c| if matches!(c, '.' | '-') { '_' } else { c.to_ascii_uppercase() }));
    name
}
