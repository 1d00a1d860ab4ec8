//! NDJSON: one record a line, the form that everything else is made from.

use super::record::Record;

/// Appends the record and its newline.
pub(super) fn line(record: &Record, to: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *to, record)?;
    to.push(b'\n');
    Ok(())
}
