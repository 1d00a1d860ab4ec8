//! Text on standard output, for the commands that print no records.

use super::report::CliError;
use crate::output::{OutputError, harmless};
use serde::Serialize;
use std::io::Write as _;

/// Writes and flushes.
///
/// # Errors
/// A closed pipe among others; that one ends the command in success.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|source| {
        let target = "standard output".to_owned();
        let closed = source.kind() == std::io::ErrorKind::BrokenPipe;
        let error =
            if closed { OutputError::ClosedPipe { target } } else { OutputError::Write { target, source } };
        CliError::Output(error)
    })
}

/// One JSON object a line.
///
/// # Errors
/// Never for rows of ours.
pub(super) fn lines(rows: &[impl Serialize]) -> Result<String, CliError> {
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row).map_err(|error| CliError::Bug(error.to_string()))?;
        text.push('\n');
    }
    Ok(text)
}

/// A table as wide as its cells, without lines.
#[derive(Debug)]
pub(super) struct Grid {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Grid {
    /// A table with this heading.
    pub(super) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|cell| (*cell).to_owned()).collect()], right: Vec::new() }
    }

    /// Columns, counted from 0, whose cells end at the right.
    pub(super) fn right(self, columns: &[usize]) -> Self {
        Self { right: columns.to_vec(), ..self }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|cell| harmless(cell).into_owned()).collect());
    }

    /// The whole, each row with its line break; the last column is not padded.
    pub(super) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if self.right.contains(&column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            text += cells.collect::<Vec<String>>().join("  ").trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut grid = Grid::new(&["provider", "key"]);
        grid.row(&["abuseipdb", "from \u{1b}[2J"]);
        grid.row(&["x", ""]);
        assert_eq!(grid.text(), "provider   key\nabuseipdb  from \u{fffd}[2J\nx\n");
    }
}
