//! CSV and TSV, for spreadsheets: a heading, then one line a record.
//!
//! Cells of providers' text are guarded: one that a spreadsheet would run as a formula (it begins with `=`, `+`, `-` or
//! `@`, in half or full width) gets an apostrophe in front, and control characters are replaced, so that no cell holds a
//! line break or, in TSV, a tab. CSV quotes as RFC 4180 says. A value that is not there is an empty cell.

use super::fields::{Field, defang, whole};
use super::harmless::harmless;
use super::record::Record;

/// Renders lines of cells.
#[derive(Debug)]
pub(super) struct Sheet {
    fields: Vec<Field>,
    separator: u8,
    defanged: bool,
    has_paths: bool,
    cell: String,
}

impl Sheet {
    pub(super) fn csv(fields: &[Field], defanged: bool) -> Self {
        Self::new(fields, b',', defanged)
    }

    pub(super) fn tsv(fields: &[Field], defanged: bool) -> Self {
        Self::new(fields, b'\t', defanged)
    }

    fn new(fields: &[Field], separator: u8, defanged: bool) -> Self {
        let has_paths = fields.iter().any(Field::is_path);
        Self { fields: fields.to_vec(), separator, defanged, has_paths, cell: String::new() }
    }

    pub(super) fn head(&mut self, to: &mut Vec<u8>) {
        for (place, field) in self.fields.iter().enumerate() {
            self.cell.clear();
            self.cell.push_str(field.name());
            self.push(place, to);
        }
        to.push(b'\n');
    }

    pub(super) fn row(&mut self, record: &Record, to: &mut Vec<u8>) {
        let whole = whole(record, self.has_paths);
        for place in 0..self.fields.len() {
            let Some(field) = self.fields.get(place) else { continue };
            self.cell.clear();
            field.append(record, whole.as_ref(), &mut self.cell);
            if self.defanged && (field.is_address() || field.is_path()) {
                defang(&mut self.cell);
            }
            self.push(place, to);
        }
        to.push(b'\n');
    }

    fn push(&self, place: usize, to: &mut Vec<u8>) {
        if place > 0 {
            to.push(self.separator);
        }
        let text = harmless(&self.cell);
        let guard = if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) { "'" } else { "" };
        let quoted = self.separator == b',' && text.contains(['"', ',']);
        if quoted {
            to.push(b'"');
            to.extend_from_slice(guard.as_bytes());
            to.extend_from_slice(text.replace('"', "\"\"").as_bytes());
            to.push(b'"');
        } else {
            to.extend_from_slice(guard.as_bytes());
            to.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLES: &str = include_str!("../../fixtures/records.ndjson");

    fn fields(names: &[&str]) -> Vec<Field> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn render(sheet: &mut Sheet, records: &[Record]) -> String {
        let mut out = Vec::new();
        sheet.head(&mut out);
        for record in records {
            sheet.row(record, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    fn examples() -> Vec<Record> {
        EXAMPLES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn dotted_paths_and_empty_cells() {
        let fields = fields(&[
            "ip",
            "status",
            "verdict",
            "tags",
            "providers.abuseipdb.reports",
            "seen.signatures.0.name",
            "error.type",
        ]);
        let text = render(&mut Sheet::csv(&fields, true), &examples()[..4]);
        insta::assert_snapshot!(text, @"
        ip,status,verdict,tags,providers.abuseipdb.reports,seen.signatures.0.name,error.type
        203.0.113[.]7,ok,malicious,mirai ssh_bruteforcer,312,ET SCAN Potential SSH Scan,
        2001:db8:[:]7,ok,unknown,,,ET POLICY curl User-Agent Outbound,
        198.51.100[.]23,ok,suspicious,port_scan,9,ET SCAN MS Terminal Server Traffic on Non-standard Port,
        203.0.113[.]8,error,,,,,rate_limited
        ");
    }

    #[test]
    fn formulas_and_breaks_are_guarded() {
        let mut record = examples().remove(0);
        record.tags = vec!["=cmd|' /C calc'!A0\n\tx".to_owned(), "a\"b,c".to_owned()];
        record.as_org = Some("@SUM(1)".to_owned());
        let fields = fields(&["tags", "as_org"]);
        let text = render(&mut Sheet::csv(&fields, false), std::slice::from_ref(&record));
        assert_eq!(text, "tags,as_org\n\"'=cmd|' /C calc'!A0\u{fffd}\u{fffd}x a\"\"b,c\",'@SUM(1)\n");
        let text = render(&mut Sheet::tsv(&fields, false), &[record]);
        assert_eq!(text.lines().nth(1).unwrap().matches('\t').count(), 1);
    }

    proptest! {
        #[test]
        fn one_line_a_record_whatever_a_provider_says(tag in any::<String>(), org in any::<String>()) {
            let mut record = examples().remove(0);
            record.tags = vec![tag];
            record.as_org = Some(org);
            for mut sheet in [Sheet::csv(&fields(&["tags", "as_org"]), false), Sheet::tsv(&fields(&["tags", "as_org"]), false)] {
                let text = render(&mut sheet, std::slice::from_ref(&record));
                prop_assert_eq!(text.lines().count(), 2);
                prop_assert!(!text.lines().any(|line| line.starts_with(['=', '@'])));
            }
        }
    }
}
