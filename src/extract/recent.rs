//! Recent addresses by what stands in the line, so that a repeat costs neither parsing nor a search of the set.

#![expect(clippy::inline_always, reason = "part of the loop over the lines")]

use super::window::{self, WIDTH, Window};

/// Places for IPv4 addresses, two entries each: 384 KiB a thread.
const SLOTS: usize = 1 << 14;

/// Places for IPv6 addresses, which are few in most logs: 32 KiB.
const V6_SLOTS: usize = 1 << 10;

/// Set in a number that counts in a batch's fresh addresses, not yet in the whole set.
pub(super) const LOCAL: u32 = 1 << 31;

/// Set in a [`Slot`] of an IPv6 address.
const V6: u16 = 1 << 15;

const _: () = assert!(SLOTS <= V6 as usize, "a slot has 15 bits");
const _: () = assert!(V6_SLOTS <= V6 as usize, "a slot has 15 bits");

/// A cache with one place for each key, two entries in it for IPv4, the latest win. What it says is always right: numbers of
/// addresses never change.
#[derive(Debug)]
pub(super) struct Recent {
    /// Keys and numbers apart: no pair lies across two cache lines, and both come as pages of zeros that take memory when
    /// they are written to.
    v4_keys: Vec<[u64; 2]>,
    v4_numbers: Vec<[u32; 2]>,
    v6: Vec<(u128, u32)>,
}

/// Where a key was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u16);

/// The text of what may be an IPv4 address: up to 15 digits and dots, four bits each. No text has the key 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextKey(u64);

impl TextKey {
    /// Of the `length` bytes that stand at `at`, with more text behind them.
    #[inline]
    pub(super) fn at(text: &[u8], at: usize, length: usize) -> Option<Self> {
        Window::at(text, at)?.dotted(length).map(Self)
    }

    /// Of a text that stands alone.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let mut room = [0; WIDTH];
        room.get_mut(..text.len())?.copy_from_slice(text);
        Self::at(&room, 0, text.len())
    }

    /// The address, if the text of `length` bytes is one: four numbers up to 255 without leading zeros.
    pub(super) fn v4(self, length: usize) -> Option<u32> {
        // A bit at the lowest of the four of each dot, the only ones among them with 0xe; a digit has at most 0x9.
        let text = self.0 & !(u64::MAX << (4 * length));
        let mut dots = text >> 3 & text >> 2 & 0x1111_1111_1111_1111;
        if length > 15 || dots.count_ones() != 3 {
            return None;
        }
        let (mut bits, mut start, mut is_right) = (0, 0, true);
        for _ in 0..4 {
            // Behind the last dot there is the end.
            let end = if dots == 0 { 4 * u32::try_from(length).ok()? } else { dots.trailing_zeros() };
            dots &= dots.wrapping_sub(1);
            let digits = end - start;
            // The last digit in the highest four bits, what is before the first one shifted out.
            let number = (text >> start).wrapping_shl(64_u32.wrapping_sub(digits)) >> 52;
            let [ones, tens, hundreds] = [number >> 8, number >> 4 & 15, number & 15];
            let octet = ones + 10 * tens + 100 * hundreds;
            let leads_with_zero = digits > 4 && (text >> start).trailing_zeros() >= 4;
            is_right &= matches!(digits, 4..=12) && octet < 256 && !leads_with_zero;
            bits = bits << 8 | octet;
            start = end + 4;
        }
        u32::try_from(bits).ok().filter(|_| is_right)
    }

    #[inline]
    fn slot(self) -> Slot {
        // The golden ratio spreads what differs in few digits over the upper bits.
        let spread = (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2());
        #[expect(clippy::cast_possible_truncation, reason = "below SLOTS, which fits")]
        Slot(spread as u16)
    }
}

impl Recent {
    pub(super) fn new() -> Self {
        // A key of 0 is no text's; it is an IPv6 address's, but `find_v6` knows.
        Self { v4_keys: vec![[0; 2]; SLOTS], v4_numbers: vec![[0; 2]; SLOTS], v6: vec![(0, 0); V6_SLOTS] }
    }

    /// Asks the processor to fetch the place of a text that is looked for soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: TextKey) {
        let at = usize::from(key.slot().0);
        if let Some(keys) = self.v4_keys.get(at) {
            window::prefetch(keys);
        }
        if let Some(numbers) = self.v4_numbers.get(at) {
            window::prefetch(numbers);
        }
    }

    /// The number known for a text, and where to put it.
    #[inline(always)]
    pub(super) fn find(&self, key: TextKey) -> (Slot, Option<u32>) {
        let slot = key.slot();
        let at = usize::from(slot.0);
        let (Some([first, second]), Some(numbers)) = (self.v4_keys.get(at), self.v4_numbers.get(at)) else {
            return (slot, None);
        };
        let number = if *first == key.0 { numbers[0] } else { numbers[1] };
        (slot, (*first == key.0 || *second == key.0).then_some(number))
    }

    /// The later one stands first.
    pub(super) fn put(&mut self, slot: Slot, key: TextKey, number: u32) {
        let at = usize::from(slot.0);
        if let (Some(keys), Some(numbers)) = (self.v4_keys.get_mut(at), self.v4_numbers.get_mut(at)) {
            (*keys, *numbers) = ([key.0, keys[0]], [number, numbers[0]]);
        }
    }

    /// The number known for an IPv6 address, and where to put it. `::`, which an empty place looks like, has none.
    pub(super) fn find_v6(&self, value: u128) -> (Slot, Option<u32>) {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let folded = (value as u64) ^ ((value >> 64) as u64).rotate_left(23);
        let spread = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - V6_SLOTS.ilog2());
        let entry = usize::try_from(spread).ok().and_then(|at| self.v6.get(at));
        let known = entry.filter(|(key, _)| *key == value && value != 0);
        #[expect(clippy::cast_possible_truncation, reason = "below V6_SLOTS, which fits")]
        (Slot(spread as u16 | V6), known.map(|(_, number)| *number))
    }

    pub(super) fn put_v6(&mut self, slot: Slot, value: u128, number: u32) {
        if let Some(entry) = self.v6.get_mut(usize::from(slot.0 & !V6)) {
            *entry = (value, number);
        }
    }

    /// The fresh address with number `local` has the number `id` in the whole set.
    pub(super) fn settle(&mut self, slot: Slot, local: u32, id: u32) {
        let at = usize::from(slot.0 & !V6);
        let numbers = if slot.0 & V6 == 0 {
            self.v4_numbers.get_mut(at).map(<[u32; 2]>::as_mut_slice)
        } else {
            self.v6.get_mut(at).map(|(_, number)| std::slice::from_mut(number))
        };
        for number in numbers.into_iter().flatten().filter(|number| **number == local | LOCAL) {
            *number = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::{super::address, *};

    proptest! {
        #[test]
        fn a_key_stands_for_one_text(a in "[0-9.]{0,17}", b in "[0-9.]{0,17}", c in prop::collection::vec(any::<u8>(), 0..20)) {
            let [a, b] = [a.as_bytes(), b.as_bytes()];
            prop_assert_eq!(TextKey::of(a).is_some(), a.len() <= 15);
            prop_assert_eq!(TextKey::of(a) == TextKey::of(b), a == b || (a.len() > 15 && b.len() > 15));
            prop_assert_eq!(TextKey::of(&c).is_some(), c.len() <= 15 && c.iter().all(|&byte| matches!(byte, b'.' | b'0'..=b'9')));
            prop_assert_ne!(TextKey::of(a), Some(TextKey(0)));
        }

        #[test]
        fn an_address_is_read_from_its_key(
            text in "[0-9.]{0,15}|([0-9]{0,3}\\.){3}[0-9]{1,3}|([1-9][0-9]{0,2}\\.){3}(25[0-9]|[0-9])"
        ) {
            let read = TextKey::of(text.as_bytes()).unwrap().v4(text.len());
            prop_assert_eq!(read.map(Ipv4Addr::from_bits), text.parse().ok(), "{}", text);
            prop_assert_eq!(read, address::parse_v4(text.as_bytes()));
        }

        #[test]
        fn what_was_put_is_found(values in prop::collection::vec(0_u128..3, 0..12)) {
            let mut recent = Recent::new();
            for (number, value) in (0..).zip(values) {
                let (slot, known) = recent.find_v6(value);
                prop_assert!(known.is_none_or(|_| value != 0));
                recent.put_v6(slot, value, number | LOCAL);
                recent.settle(slot, number, number + 100);
                prop_assert_eq!(recent.find_v6(value).1, (value != 0).then_some(number + 100));
                let key = TextKey::of(format!("192.0.2.{value}").as_bytes()).unwrap();
                let (slot, _) = recent.find(key);
                recent.put(slot, key, number | LOCAL);
                recent.settle(slot, number + 1, 7);
                prop_assert_eq!(recent.find(key).1, Some(number | LOCAL), "another one's number");
            }
        }
    }
}
