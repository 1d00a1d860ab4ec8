//! The forms of output, and the choice between them.

use std::str::FromStr;

use super::ndjson;
use super::record::Record;
use super::sheet::Sheet;
use super::sink::Options;
use super::table::Table;

/// In which form records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// One JSON object a line.
    Ndjson,
    /// A table for people.
    Table,
    /// One JSON array of all records.
    Json,
    /// Comma-separated values, RFC 4180, with a heading.
    Csv,
    /// Tab-separated values with a heading.
    Tsv,
}

impl Form {
    /// All forms, by the names people type.
    pub const ALL: [(&'static str, Self); 5] = [
        ("table", Self::Table),
        ("ndjson", Self::Ndjson),
        ("json", Self::Json),
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
    ];

    /// Whether a file of this form can be added to.
    #[must_use]
    pub const fn can_append(self) -> bool {
        !matches!(self, Self::Json)
    }
}

/// A word that names no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no form named `{word}`; say table, ndjson, json, csv or tsv")]
pub struct UnknownForm {
    word: String,
}

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.iter().find(|(name, _)| *name == word);
        known.map(|(_, form)| *form).ok_or_else(|| UnknownForm { word: word.chars().take(40).collect() })
    }
}

/// Makes bytes of records.
#[derive(Debug)]
pub(super) enum Renderer {
    Ndjson,
    Json,
    Table(Table),
    Sheet(Sheet),
}

impl Renderer {
    pub(super) fn new(options: &Options) -> Self {
        let Options { form, sort: _, fields, terminal, color, skipped: _, defanged } = options;
        match form {
            Form::Ndjson => Self::Ndjson,
            Form::Json => Self::Json,
            Form::Table => Self::Table(Table::new(fields, *terminal, *color, *defanged)),
            Form::Csv => Self::Sheet(Sheet::csv(fields, *defanged)),
            Form::Tsv => Self::Sheet(Sheet::tsv(fields, *defanged)),
        }
    }

    /// What stands before the first record, in a file that does not have it yet.
    pub(super) fn head(&mut self, to: &mut Vec<u8>) {
        match self {
            Self::Table(table) => table.head(to),
            Self::Sheet(sheet) => sheet.head(to),
            Self::Json => to.push(b'['),
            Self::Ndjson => {}
        }
    }

    /// One record, from its first byte to its line break; in an array the comma comes later, with its turn.
    pub(super) fn record(&mut self, record: &Record, to: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Self::Table(table) => table.row(record, to),
            Self::Sheet(sheet) => sheet.row(record, to),
            Self::Ndjson => ndjson::line(record, to)?,
            Self::Json => {
                to.extend_from_slice(b",\n");
                serde_json::to_writer(to, record)?;
            }
        }
        Ok(())
    }

    /// What stands after the last record.
    pub(super) const fn foot(&self) -> &'static [u8] {
        match self {
            Self::Json => b"\n]\n",
            Self::Ndjson | Self::Table(_) | Self::Sheet(_) => b"",
        }
    }

    /// Whether records are parted by commas.
    pub(super) const fn is_list(&self) -> bool {
        matches!(self, Self::Json)
    }
}
