//! A table for people: one row per address, written as it comes, so the columns' widths are fixed beforehand.

use super::fields::{Field, defang, whole};
use super::harmless::{char_width, harmless, width};
use super::record::{Record, Status};
use crate::provider::Verdict;

/// Narrower than this the last column is not made.
const LEAST_LAST_COLUMN: usize = 12;

/// Columns of an IPv6 address as they mostly are; a longer one pushes its row to the right rather than being cut.
const IPV6_COLUMN: usize = 25;

/// From this width of the terminal on, the column of addresses is made for IPv6.
const WIDE_TERMINAL: usize = 96;

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const DIM: &str = "\u{1b}[2m";
const RESET: &str = "\u{1b}[0m";

/// Renders rows for a terminal of a given width. Text of providers is made harmless, and cut to its column with `…`;
/// addresses and numbers are never cut. Skipped addresses have no row. Colour never says what the word does not.
#[derive(Debug)]
pub(super) struct Table {
    fields: Vec<(Field, usize)>,
    color: bool,
    defanged: bool,
    cell: String,
}

impl Table {
    pub(super) fn new(fields: &[Field], terminal: usize, color: bool, defanged: bool) -> Self {
        let address = if terminal >= WIDE_TERMINAL { IPV6_COLUMN } else { 15 };
        let fixed = |field: &Field| {
            field.width().map(|width| if field.is_address() { width.max(address) } else { width })
        };
        let taken: usize =
            fields.iter().map(|field| fixed(field).unwrap_or(0) + 2).sum::<usize>().saturating_sub(2);
        let rest = terminal.saturating_sub(taken).max(LEAST_LAST_COLUMN);
        let fields = fields.iter().map(|field| (field.clone(), fixed(field).unwrap_or(rest))).collect();
        Self { fields, color, defanged, cell: String::new() }
    }

    pub(super) fn head(&mut self, to: &mut Vec<u8>) {
        let names: Vec<String> =
            self.fields.iter().map(|(field, _)| field.heading().to_uppercase()).collect();
        if self.color {
            to.extend_from_slice(BOLD.as_bytes());
        }
        for (place, name) in names.iter().enumerate() {
            self.cell.clear();
            self.cell.push_str(name);
            self.push(place, None, to);
        }
        end_row(to);
        if self.color {
            to.truncate(to.len() - 1);
            to.extend_from_slice(RESET.as_bytes());
            to.push(b'\n');
        }
    }

    /// Appends the record's row; nothing for a skipped one.
    pub(super) fn row(&mut self, record: &Record, to: &mut Vec<u8>) {
        if record.status == Status::Skipped {
            return;
        }
        let whole = whole(record, self.fields.iter().any(|(field, _)| field.is_path()));
        for place in 0..self.fields.len() {
            let Some((field, _)) = self.fields.get(place) else { continue };
            self.cell.clear();
            if field.is_tags() {
                notes(record, &mut self.cell);
            }
            field.append(record, whole.as_ref(), &mut self.cell);
            if field.is_verdict() && record.verdict.is_none() {
                self.cell.push_str("no answer");
            }
            if self.defanged && (field.is_address() || field.is_path()) {
                defang(&mut self.cell);
            }
            let field_is_verdict = field.is_verdict();
            let color = if self.color && field_is_verdict { Some(verdict_color(record)) } else { None };
            self.push(place, color, to);
            if field_is_verdict && record.status == Status::Error {
                self.reason(place, record, to);
                break;
            }
        }
        end_row(to);
    }

    /// Why there is no answer, over all columns that are left: they would be empty.
    fn reason(&mut self, place: usize, record: &Record, to: &mut Vec<u8>) {
        let left: usize = self.fields.iter().skip(place + 1).map(|(_, columns)| columns + 2).sum();
        self.cell.clear();
        failure(record, &mut self.cell);
        let shown = harmless(&self.cell);
        let columns = left.saturating_sub(2).max(LEAST_LAST_COLUMN);
        let fits = width(&shown) <= columns;
        to.extend_from_slice(b"  ");
        to.extend_from_slice(if fits { &shown } else { cut(&shown, columns) }.as_bytes());
        if !fits {
            to.extend_from_slice("…".as_bytes());
        }
    }

    /// One cell, padded. `self.cell` is its raw text.
    fn push(&self, place: usize, color: Option<&str>, to: &mut Vec<u8>) {
        let Some((field, columns)) = self.fields.get(place) else { return };
        let shown = harmless(&self.cell);
        let fits = field.is_address() || field.is_number() || width(&shown) <= *columns;
        let text = if fits { shown.as_ref() } else { cut(&shown, *columns) };
        let used = width(text) + usize::from(!fits);
        let padding = columns.saturating_sub(used);
        if place > 0 {
            to.extend_from_slice(b"  ");
        }
        if field.is_number() {
            to.resize(to.len() + padding, b' ');
        }
        if let Some(color) = color {
            to.extend_from_slice(color.as_bytes());
        }
        to.extend_from_slice(text.as_bytes());
        if !fits {
            to.extend_from_slice("…".as_bytes());
        }
        if color.is_some() {
            to.extend_from_slice(RESET.as_bytes());
        }
        if !field.is_number() {
            to.resize(to.len() + padding, b' ');
        }
    }
}

/// What a row must say beside the verdict, lest it be taken for the whole answer.
fn notes(record: &Record, to: &mut String) {
    if !record.complete {
        to.push_str("(half answered) ");
    }
    if record.conflict {
        to.push_str("(providers disagree) ");
    }
}

fn failure(record: &Record, to: &mut String) {
    let Some(error) = &record.error else { return };
    to.push_str(error.error.as_str());
    if let Some(provider) = &error.provider {
        to.push_str(" at ");
        to.push_str(provider);
    }
    to.push_str(": ");
    to.push_str(&error.message);
}

fn verdict_color(record: &Record) -> &'static str {
    match record.verdict {
        Some(Verdict::Malicious) => RED,
        Some(Verdict::Suspicious) => YELLOW,
        Some(Verdict::Benign) => GREEN,
        Some(Verdict::Unknown) | None => DIM,
    }
}

/// The longest beginning that fits, with a column left for the sign that it was cut.
fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let fits = text.char_indices().find(|(_, c)| {
        used += char_width(*c);
        used > columns.saturating_sub(1)
    });
    fits.map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// No blanks at the end of a row.
fn end_row(to: &mut Vec<u8>) {
    while to.last() == Some(&b' ') {
        to.pop();
    }
    to.push(b'\n');
}

#[cfg(test)]
mod tests;
