//! Columns: which values of a record a table or a sheet shows.

use std::fmt::Write as _;
use std::str::FromStr;

use serde_json::Value;

use super::record::Record;

/// One column: a name of ours, or a dotted path into the record (`providers.abuseipdb.reports`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ip,
    Verdict,
    Score,
    Country,
    Asn,
    AsOrg,
    Hits,
    Tags,
    Status,
    Path,
}

/// Columns of our own, with the width a table gives them; 0 shares what is left.
const NAMED: [(&str, Kind, usize); 9] = [
    ("ip", Kind::Ip, 15),
    ("verdict", Kind::Verdict, 10),
    ("score", Kind::Score, 5),
    ("country", Kind::Country, 2),
    ("asn", Kind::Asn, 7),
    ("as_org", Kind::AsOrg, 24),
    ("hits", Kind::Hits, 6),
    ("tags", Kind::Tags, 0),
    ("status", Kind::Status, 7),
];

/// Top-level keys of a record that a path may start with.
const ROOTS: [&str; 12] = [
    "type",
    "found",
    "complete",
    "conflict",
    "rule",
    "reason",
    "error",
    "seen",
    "providers",
    "timestamp",
    "v",
    "ip",
];

/// The columns shown where nobody chose others.
#[must_use]
pub fn default_fields() -> Vec<Field> {
    [Kind::Ip, Kind::Verdict, Kind::Score, Kind::Country, Kind::Asn, Kind::Hits, Kind::Tags]
        .into_iter()
        .filter_map(|kind| NAMED.iter().find(|named| named.1 == kind))
        .map(|(name, kind, _)| Field { name: (*name).to_owned(), kind: *kind })
        .collect()
}

/// A text that names no column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no field `{text}`; say ip, verdict, score, country, asn, as_org, hits, tags, status, or a path into the record such as providers.abuseipdb.reports"
)]
pub struct UnknownField {
    text: String,
}

impl FromStr for Field {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((_, kind, _)) = NAMED.iter().find(|(name, _, _)| *name == text) {
            return Ok(Self { name: text.to_owned(), kind: *kind });
        }
        let mut steps = text.split('.');
        let root = steps.next().unwrap_or_default();
        if ROOTS.contains(&root) && !steps.any(str::is_empty) {
            return Ok(Self { name: text.to_owned(), kind: Kind::Path });
        }
        Err(UnknownField { text: text.chars().take(60).collect() })
    }
}

/// The record as JSON where a column needs it; the usual ones do not, and are spared it.
pub(super) fn whole(record: &Record, needed: bool) -> Option<Value> {
    if needed { serde_json::to_value(record).ok() } else { None }
}

/// Rewrites every address in the cell, so that nothing that is pasted becomes a link: `203.0.113[.]7`, `2001:db8:[:]7`.
pub(super) fn defang(cell: &mut String) {
    let is_address = |word: &str| word.parse::<std::net::IpAddr>().is_ok();
    if !cell.split(' ').any(is_address) {
        return;
    }
    let words = cell.split(' ').map(|word| {
        let place = if is_address(word) { word.rfind(['.', ':']) } else { None };
        place
            .and_then(|place| {
                Some(format!(
                    "{}[{}]{}",
                    word.get(..place)?,
                    word.get(place..=place)?,
                    word.get(place + 1..)?
                ))
            })
            .unwrap_or_else(|| word.to_owned())
    });
    *cell = words.collect::<Vec<String>>().join(" ");
}

impl Field {
    /// The name as it heads the column.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as it heads a table's column, where there is less room.
    pub(super) fn heading(&self) -> &str {
        if self.kind == Kind::Country { "cc" } else { &self.name }
    }

    /// Columns a table gives it; `None` for the one that takes what is left.
    pub(super) fn width(&self) -> Option<usize> {
        let named = NAMED.iter().find(|(_, kind, _)| *kind == self.kind && self.kind != Kind::Path);
        let width = named.map_or(20, |(_, _, width)| *width);
        (width > 0).then(|| width.max(self.heading().len()))
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Score | Kind::Asn | Kind::Hits)
    }

    pub(super) fn is_address(&self) -> bool {
        self.kind == Kind::Ip
    }

    pub(super) fn is_verdict(&self) -> bool {
        self.kind == Kind::Verdict
    }

    pub(super) fn is_tags(&self) -> bool {
        self.kind == Kind::Tags
    }

    pub(super) fn is_path(&self) -> bool {
        self.kind == Kind::Path
    }

    /// Appends the value as plain text; nothing where there is none. `whole` is the record as JSON, needed by paths alone.
    pub(super) fn append(&self, record: &Record, whole: Option<&Value>, to: &mut String) {
        match self.kind {
            Kind::Ip => display(&record.ip, to),
            Kind::Verdict => to.push_str(record.verdict.map_or("", crate::provider::Verdict::as_str)),
            Kind::Score => optional(record.score.as_ref(), to),
            Kind::Country => optional(record.country.as_ref(), to),
            Kind::Asn => optional(record.asn.as_ref(), to),
            Kind::AsOrg => optional(record.as_org.as_ref(), to),
            Kind::Hits => optional(record.seen.as_ref().map(|seen| seen.count).as_ref(), to),
            Kind::Tags => join(&record.tags, to),
            Kind::Status => to.push_str(record.status.name()),
            Kind::Path => {
                if let Some(value) = whole.and_then(|whole| walk(whole, &self.name)) {
                    plain(value, to);
                }
            }
        }
    }
}

fn optional<T: std::fmt::Display>(value: Option<&T>, to: &mut String) {
    if let Some(value) = value {
        display(value, to);
    }
}

fn display(value: &impl std::fmt::Display, to: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(to, "{value}");
}

fn join(words: &[String], to: &mut String) {
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            to.push(' ');
        }
        to.push_str(word);
    }
}

/// A step is a key of an object or a place in a list. Names of providers hold no dots.
fn walk<'a>(whole: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(whole, |value, step| match value {
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        Value::Object(object) => object.get(step),
        _ => None,
    })
}

/// A text as it is, a list with spaces between, an object as JSON, null as nothing.
fn plain(value: &Value, to: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => to.push_str(text),
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                if place > 0 {
                    to.push(' ');
                }
                plain(value, to);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => display(value, to),
    }
}
