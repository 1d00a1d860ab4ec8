//! The set of unique addresses, in order of first appearance.

use std::{
    hash::BuildHasher,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{
    scope::Scope,
    seen::{Contexts, RankKey, Seen},
};

/// The unique addresses of a run, numbered from 0 in order of first appearance, each with what was seen of it.
///
/// Without context an IPv4 address takes 15 to 25 bytes and an IPv6 one 31 to 51, whatever the input's size.
#[derive(Debug, Default)]
pub struct Indicators {
    pub(super) addresses: Addresses,
    pub(super) contexts: Contexts,
}

impl Indicators {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address with number `id`.
    ///
    /// # Panics
    /// If `id` is not below [`Indicators::len`].
    #[must_use]
    pub fn ip(&self, id: u32) -> IpAddr {
        self.addresses.ip(id)
    }

    /// The number of `ip`, if it is in the set. Looks at every address: a sealed set has no index.
    #[cfg(test)]
    pub(crate) fn id(&self, ip: IpAddr) -> Option<u32> {
        self.iter().position(|known| known == ip).map(to_id)
    }

    /// Gives back the memory that only adding needs: about half of what the set takes. Nothing is added afterwards.
    pub(super) fn seal(&mut self) {
        let Addresses { values, is_v6, v6, v4_ids, v6_ids, v6_numbers, hasher: _ } = &mut self.addresses;
        (*v4_ids, *v6_ids, *v6_numbers) = (HashTable::new(), HashTable::new(), Vec::new());
        values.shrink_to_fit();
        is_v6.shrink_to_fit();
        v6.shrink_to_fit();
    }

    /// What was seen of the address, or `None` where no context was gathered: it was asked for without, or the
    /// address comes from a plain list.
    #[must_use]
    pub fn seen(&self, id: u32) -> Option<Seen> {
        self.contexts.seen(id, &self.addresses)
    }

    /// What the rank needs, without building the lists of [`Seen`]. All zero where there is no context.
    #[must_use]
    pub fn rank_key(&self, id: u32) -> RankKey {
        self.contexts.rank_key(id)
    }

    /// All addresses in order of first appearance.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = IpAddr> + '_ {
        (0..self.len()).map(|id| self.ip(to_id(id)))
    }

    /// How many addresses there are of each scope, only those scopes that occur, global first.
    #[must_use]
    pub fn by_scope(&self) -> Vec<(Scope, u64)> {
        let mut counts = [0; Scope::ALL.len()];
        for ip in self.iter() {
            let scope = Scope::of(ip);
            let counted = Scope::ALL.iter().zip(&mut counts).find(|(known, _)| **known == scope);
            if let Some((_, count)) = counted {
                *count += 1;
            }
        }
        Scope::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

/// Addresses by number and numbers by address. IPv4 and IPv6 are kept apart, as integers.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// For each number an IPv4 address, or the index of an IPv6 one.
    values: Vec<u32>,
    /// One bit a number: whether it is IPv6.
    is_v6: Vec<u64>,
    v6: Vec<u128>,
    /// Numbers, found by the address they stand for.
    v4_ids: HashTable<u32>,
    /// Pairs would be larger: an index into `v6` is found first, and gives its number by `v6_numbers`.
    v6_ids: HashTable<u32>,
    v6_numbers: Vec<u32>,
    hasher: RandomState,
}

impl Addresses {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The number of `ip`, a new one if it is new.
    pub(super) fn insert(&mut self, ip: IpAddr) -> (u32, bool) {
        match ip {
            IpAddr::V4(ip) => self.insert_v4(ip.to_bits()),
            IpAddr::V6(ip) => self.insert_v6(ip.to_bits()),
        }
    }

    pub(super) fn insert_v4(&mut self, ip: u32) -> (u32, bool) {
        let (hasher, values) = (&self.hasher, &self.values);
        let hash = hasher.hash_one(ip);
        // Every number in `v4_ids` is an index of `values`, so `get` always finds.
        let entry = self.v4_ids.entry(
            hash,
            |&id| values.get(id as usize) == Some(&ip),
            |&id| hasher.hash_one(values.get(id as usize).copied().unwrap_or_default()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => (*entry.get(), false),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let id = to_id(values.len());
                entry.insert(id);
                self.push(ip, false);
                (id, true)
            }
        }
    }

    fn insert_v6(&mut self, ip: u128) -> (u32, bool) {
        let (hasher, v6) = (&self.hasher, &self.v6);
        let hash = hasher.hash_one(ip);
        let entry = self.v6_ids.entry(
            hash,
            |&index| v6.get(index as usize) == Some(&ip),
            |&index| hasher.hash_one(v6.get(index as usize).copied().unwrap_or_default()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => {
                (self.v6_numbers.get(*entry.get() as usize).copied().unwrap_or_default(), false)
            }
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let index = to_id(v6.len());
                entry.insert(index);
                let id = to_id(self.values.len());
                self.v6.push(ip);
                self.v6_numbers.push(id);
                self.push(index, true);
                (id, true)
            }
        }
    }

    fn push(&mut self, value: u32, is_v6: bool) {
        let (word, bit) = (self.values.len() / 64, self.values.len() % 64);
        if bit == 0 {
            self.is_v6.push(0);
        }
        if let Some(word) = self.is_v6.get_mut(word) {
            *word |= u64::from(is_v6) << bit;
        }
        self.values.push(value);
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "numbers are given out by `insert`; another one is a caller's bug"
    )]
    pub(super) fn ip(&self, id: u32) -> IpAddr {
        let at = id as usize;
        let value = self.values[at];
        if self.is_v6[at / 64] >> (at % 64) & 1 == 0 {
            IpAddr::V4(Ipv4Addr::from_bits(value))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(self.v6[value as usize]))
        }
    }
}

/// Addresses are numbered in 32 bits; `max_unique` keeps far below that.
pub(super) fn to_id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn ip(n: u32) -> IpAddr {
        if n.is_multiple_of(3) {
            Ipv6Addr::from_bits(u128::from(n) << 64).into()
        } else {
            Ipv4Addr::from_bits(n).into()
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(numbers in prop::collection::vec(0_u32..300, 0..600)) {
            let (mut set, mut model, mut order) = (Addresses::default(), HashMap::new(), Vec::new());
            for ip in numbers.into_iter().map(ip) {
                let next = to_id(model.len());
                let expected = *model.entry(ip).or_insert(next);
                if expected == next {
                    order.push(ip);
                }
                prop_assert_eq!(set.insert(ip), (expected, expected == next));
            }
            prop_assert_eq!(set.len(), order.len());
            for (id, &ip) in order.iter().enumerate() {
                prop_assert_eq!(set.ip(to_id(id)), ip);
                prop_assert_eq!(set.insert(ip), (to_id(id), false));
            }
        }
    }
}
