//! Which addresses were asked about, and which of them were answered.

use std::net::IpAddr;

use hashbrown::HashTable;

use crate::simulate::verdict::mix_address;

/// Set in a fingerprint once the address has been answered.
const ANSWERED: u64 = 1;

/// Addresses as fingerprints of 63 bits, and one bit for "answered": a million of them take 19 MiB.
#[derive(Debug, Default)]
pub(super) struct Seen {
    table: HashTable<u64>,
}

impl Seen {
    /// Notes a question; false if it was asked before.
    pub(super) fn ask(&mut self, ip: IpAddr) -> bool {
        let print = fingerprint(ip);
        if self.table.find(print, |known| known & !ANSWERED == print).is_some() {
            return false;
        }
        self.table.insert_unique(print, print, |known| known & !ANSWERED);
        true
    }

    /// Notes an answer; false if it was answered before.
    pub(super) fn answer(&mut self, ip: IpAddr) -> bool {
        let print = fingerprint(ip);
        match self.table.find_mut(print, |known| *known & !ANSWERED == print) {
            Some(known) if *known & ANSWERED != 0 => false,
            Some(known) => {
                *known |= ANSWERED;
                true
            }
            // A ledger reset while this was in flight.
            None => true,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Adds the addresses of another.
    pub(super) fn join(&mut self, other: &Self) {
        for print in &other.table {
            let print = print & !ANSWERED;
            if self.table.find(print, |known| *known == print).is_none() {
                self.table.insert_unique(print, print, |known| *known);
            }
        }
    }
}

fn fingerprint(ip: IpAddr) -> u64 {
    mix_address(0, ip) & !ANSWERED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_and_answers_are_told_apart() {
        let mut seen = Seen::default();
        let ip: IpAddr = "203.0.113.7".parse().unwrap();
        assert!(seen.ask(ip));
        assert!(!seen.ask(ip));
        assert!(seen.answer(ip));
        assert!(!seen.answer(ip));
        assert!(!seen.ask(ip));
        assert!(seen.ask("2001:db8::7".parse().unwrap()));
        let mut both = Seen::default();
        both.join(&seen);
        both.join(&seen);
        assert_eq!((seen.len(), both.len()), (2, 2));
    }
}
