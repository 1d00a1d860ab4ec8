//! The order in which records are written.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::error::OutputError;

/// The order in which records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// As answered; nothing is held back.
    #[default]
    Done,
    /// As the addresses first appeared in the input.
    Input,
    /// Worst first, the order in which they are asked.
    Rank,
}

impl Sort {
    /// All orders, by the names people type.
    pub const ALL: [(&'static str, Self); 3] =
        [("done", Self::Done), ("input", Self::Input), ("rank", Self::Rank)];

    /// Whether records wait for their turn.
    #[must_use]
    pub const fn buffers(self) -> bool {
        !matches!(self, Self::Done)
    }
}

/// A word that names no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no order named `{word}`; say done, input or rank")]
pub struct UnknownSort {
    word: String,
}

impl FromStr for Sort {
    type Err = UnknownSort;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.iter().find(|(name, _)| *name == word);
        known.map(|(_, sort)| *sort).ok_or_else(|| UnknownSort { word: word.to_owned() })
    }
}

/// Holds lines back until all those of lower positions are out. Bounded by the number of addresses asked about
/// (`--limit`); a line is about 1 kB. Positions count from 0; where one never comes, [`Reorder::rest`] gives what waits.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    next: u64,
    arrived: u64,
    waiting: BTreeMap<(u64, u64), Box<[u8]>>,
}

impl Reorder {
    /// Takes a line and passes on those whose turn has come.
    pub(super) fn take(
        &mut self,
        position: u64,
        line: &[u8],
        mut out: impl FnMut(&[u8]) -> Result<(), OutputError>,
    ) -> Result<(), OutputError> {
        if position == self.next && self.waiting.is_empty() {
            self.next += 1;
            return out(line);
        }
        self.arrived += 1;
        self.waiting.insert((position, self.arrived), line.into());
        while let Some(first) = self.waiting.first_entry() {
            let (position, _) = *first.key();
            if position > self.next {
                break;
            }
            self.next = self.next.max(position + 1);
            out(&first.remove())?;
        }
        Ok(())
    }

    /// Passes on everything that still waits, in order.
    pub(super) fn rest(
        &mut self,
        mut out: impl FnMut(&[u8]) -> Result<(), OutputError>,
    ) -> Result<(), OutputError> {
        while let Some((_, line)) = self.waiting.pop_first() {
            out(&line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the shape that a writer has")]
    fn push(out: &mut Vec<u8>, line: &[u8]) -> Result<(), OutputError> {
        out.extend_from_slice(line);
        Ok(())
    }

    fn ordered(positions: &[u64]) -> Vec<u8> {
        let mut reorder = Reorder::default();
        let mut out = Vec::new();
        for position in positions {
            let line = [u8::try_from(*position).unwrap()];
            reorder.take(*position, &line, |line| push(&mut out, line)).unwrap();
        }
        reorder.rest(|line| push(&mut out, line)).unwrap();
        out
    }

    #[test]
    fn a_position_that_never_comes_holds_nothing_back_for_ever() {
        assert_eq!(ordered(&[2, 4, 0]), [0, 2, 4]);
    }

    #[test]
    fn what_is_due_is_out_at_once() {
        let mut reorder = Reorder::default();
        let mut out = Vec::new();
        for (position, line) in [(1, b"b"), (0, b"a"), (2, b"c")] {
            reorder.take(position, line, |line| push(&mut out, line)).unwrap();
        }
        assert_eq!(out, b"abc");
    }

    proptest! {
        #[test]
        fn any_arrival_leaves_in_order(positions in Just((0..200).collect::<Vec<u64>>()).prop_shuffle()) {
            let out = ordered(&positions);
            prop_assert!(out.is_sorted());
            prop_assert_eq!(out.len(), positions.len());
        }
    }
}
