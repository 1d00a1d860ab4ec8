//! Every address's lists in one look-up: a table of ranges for each family.
//!
//! The networks of all lists cut the address space into ranges in which the set of lists is the same. Their starts are
//! kept sorted, each with its set as a word of bits, and an index over the first 16 bits of an address leads to the few
//! ranges among which it is searched: a trie with one wide node and sorted leaves.

use std::net::IpAddr;

use super::entries::{Entries, Span};

/// The pseudo-list of special networks.
const SPECIAL: u32 = 63;

/// Networks that are nobody's, from IANA's special-purpose registries (2026): bogon lists hold them, and a hit on a
/// private address says nothing. One line a family.
const SPECIAL_V4: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
                          192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 \
                          224.0.0.0/3";
const SPECIAL_V6: &str = "::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 \
                          3fff::/20 5f00::/16 fc00::/7 fe80::/10 ff00::/8";

#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    v4: Table<u32>,
    v6: Table<u128>,
}

impl Ranges {
    /// The entries of each list, and whether special networks are taken out of it. At most 63 lists.
    pub(super) fn build(lists: Vec<(Entries, bool)>) -> Self {
        let mut v4 = Vec::new();
        let mut v6 = Vec::new();
        let mut filtered = 0_u64;
        for (place, (entries, without_special)) in (0_u32..SPECIAL).zip(lists) {
            filtered |= u64::from(without_special) << place;
            v4.extend(entries.v4.into_iter().map(|span| (span, place)));
            v6.extend(entries.v6.into_iter().map(|span| (span, place)));
        }
        if filtered != 0 {
            let special = Entries::read_words(&[SPECIAL_V4, SPECIAL_V6]);
            v4.extend(special.v4.into_iter().map(|span| (span, SPECIAL)));
            v6.extend(special.v6.into_iter().map(|span| (span, SPECIAL)));
        }
        Self { v4: Table::build(v4, filtered), v6: Table::build(v6, filtered) }
    }

    /// The lists that hold the address, as bits. An IPv4 address inside IPv6 (`::ffff:a.b.c.d`) counts as itself.
    pub(super) fn find(&self, ip: IpAddr) -> u64 {
        match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.find(u32::from(ip)),
            IpAddr::V6(ip) => self.v6.find(u128::from(ip)),
        }
    }
}

/// Addresses of one family as numbers.
pub(super) trait Bits: Copy + Ord + Default {
    /// The first 16 bits.
    fn head(self) -> usize;
    /// The next one, or none after the last.
    fn next(self) -> Option<Self>;
}

impl Bits for u32 {
    fn head(self) -> usize {
        (self >> 16) as usize
    }

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Bits for u128 {
    fn head(self) -> usize {
        (self >> 112) as usize
    }

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

#[derive(Debug, Clone, Default)]
struct Table<T> {
    /// Starts of ranges, sorted; the first is 0. Empty when there is no entry.
    starts: Vec<T>,
    /// The lists of each range.
    lists: Vec<u64>,
    /// For each head, the first range that starts at it or above; one more at the end.
    heads: Vec<u32>,
}

impl<T: Bits> Table<T> {
    fn build(spans: Vec<(Span<T>, u32)>, filtered: u64) -> Self {
        if spans.is_empty() {
            return Self { starts: Vec::new(), lists: Vec::new(), heads: Vec::new() };
        }
        // Where each list begins or ends: the second number is 1 for an end.
        let mut edges: Vec<(T, u32, bool)> = Vec::with_capacity(spans.len() * 2);
        for (span, list) in spans {
            edges.push((span.first, list, false));
            if let Some(after) = span.last.next() {
                edges.push((after, list, true));
            }
        }
        edges.sort_unstable();
        let mut table = Self { starts: vec![T::default()], lists: vec![0], heads: Vec::new() };
        let mut open = [0_u32; 64];
        let mut at = 0;
        while let Some((start, _, _)) = edges.get(at).copied() {
            while let Some((_, list, ends)) = edges.get(at).copied().filter(|edge| edge.0 == start) {
                let count = &mut open[list as usize];
                *count = if ends { count.saturating_sub(1) } else { *count + 1 };
                at += 1;
            }
            table.push(start, word(&open, filtered));
        }
        table.index();
        table
    }

    fn push(&mut self, start: T, lists: u64) {
        match (self.starts.last(), self.lists.last_mut()) {
            (_, Some(last)) if *last == lists => {}
            (Some(begun), Some(last)) if *begun == start => *last = lists,
            _ => {
                self.starts.push(start);
                self.lists.push(lists);
            }
        }
    }

    fn index(&mut self) {
        self.starts.shrink_to_fit();
        self.lists.shrink_to_fit();
        let mut at = 0;
        self.heads = (0..=1 << 16)
            .map(|head| {
                while self.starts.get(at).is_some_and(|start| start.head() < head) {
                    at += 1;
                }
                // Two billion ranges do not fit into memory.
                u32::try_from(at).unwrap_or(u32::MAX)
            })
            .collect();
    }

    fn find(&self, ip: T) -> u64 {
        let head = ip.head();
        let (Some(from), Some(to)) = (self.heads.get(head), self.heads.get(head + 1)) else { return 0 };
        let (from, to) = (*from as usize, *to as usize);
        let inside = self.starts.get(from..to).unwrap_or_default().partition_point(|start| *start <= ip);
        // The range that the address is in starts at or before it: in its own head, or last in an earlier one.
        (from + inside).checked_sub(1).and_then(|place| self.lists.get(place)).copied().unwrap_or_default()
    }
}

fn word(open: &[u32; 64], filtered: u64) -> u64 {
    let lists = open.iter().enumerate().fold(0, |word, (list, count)| word | u64::from(*count > 0) << list);
    let special = lists >> SPECIAL & 1 == 1;
    (if special { lists & !filtered } else { lists }) & !(1 << SPECIAL)
}
