//! The text of recent addresses, so that a repeat costs neither parsing nor a search of the set.

use super::window;

/// Places: 256 KiB a thread. Twice and four times as many are no faster on a log with 200,000 addresses, since they
/// leave less of the second-level cache to the text (benches/README.md).
const SLOTS: usize = 1 << 13;

/// Set in a number that counts in a batch's fresh addresses, not yet in the whole set.
pub(super) const LOCAL: u32 = 1 << 31;

const _: () = assert!(SLOTS <= 1 << 16, "a slot has 16 bits");

/// A cache with one place for each key, the latest wins. What it says is always right: numbers of addresses never
/// change.
#[derive(Debug)]
pub(super) struct Recent {
    entries: Box<[Entry]>,
}

/// Together, so that both are in one fetch.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    key: u128,
    number: u32,
}

/// Where a key was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u16);

impl Recent {
    pub(super) fn new() -> Self {
        Self { entries: vec![Entry::default(); SLOTS].into() }
    }

    /// The key of a text of 4 to 15 bytes: the text, and its length in the highest byte.
    #[inline]
    pub(super) fn text_key(text: &[u8]) -> Option<u128> {
        let length = u32::try_from(text.len()).ok()?;
        // Two reads that overlap are cheaper than a copy of any length.
        let bits = match length {
            8..=15 => {
                let (start, end) = (text.first_chunk::<8>()?, text.last_chunk::<8>()?);
                let end = u64::from_le_bytes(*end).checked_shr(8 * (16 - length)).unwrap_or(0);
                u128::from(u64::from_le_bytes(*start)) | u128::from(end) << 64
            }
            4..=7 => {
                let (start, end) = (text.first_chunk::<4>()?, text.last_chunk::<4>()?);
                let end = u32::from_le_bytes(*end).checked_shr(8 * (8 - length)).unwrap_or(0);
                u128::from(u32::from_le_bytes(*start)) | u128::from(end) << 32
            }
            _ => return None,
        };
        Some(bits | u128::from(length) << 120)
    }

    /// The key of an IPv6 address: its value, where that cannot be taken for a text.
    pub(super) fn value_key(value: u128) -> Option<u128> {
        (value >> 124 != 0).then_some(value)
    }

    /// Asks the processor to fetch the place of a text that is looked for soon.
    #[inline]
    pub(super) fn prefetch(&self, text: &[u8]) {
        if let Some(key) = Self::text_key(text)
            && let Some(place) = self.entries.get(usize::from(Self::slot(key).0))
        {
            window::prefetch(place);
        }
    }

    #[inline]
    fn slot(key: u128) -> Slot {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(23);
        // The golden ratio spreads what differs in few digits over the upper bits.
        let spread = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2());
        #[expect(clippy::cast_possible_truncation, reason = "below SLOTS, which fits")]
        Slot(spread as u16)
    }

    /// The number known for `key`, and where to put it.
    #[inline]
    pub(super) fn find(&self, key: u128) -> (Slot, Option<u32>) {
        let slot = Self::slot(key);
        let entry = self.entries.get(usize::from(slot.0)).filter(|entry| entry.key == key);
        (slot, entry.map(|entry| entry.number))
    }

    pub(super) fn put(&mut self, slot: Slot, key: u128, number: u32) {
        if let Some(entry) = self.entries.get_mut(usize::from(slot.0)) {
            *entry = Entry { key, number };
        }
    }

    /// The fresh address with number `local` has the number `id` in the whole set.
    pub(super) fn settle(&mut self, slot: Slot, local: u32, id: u32) {
        if let Some(entry) = self.entries.get_mut(usize::from(slot.0))
            && entry.number == local | LOCAL
        {
            entry.number = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_stands_for_one_text(a in prop::collection::vec(any::<u8>(), 0..20), b in "[0-9.]{0,17}") {
            for text in [&a[..], b.as_bytes()] {
                let key = Recent::text_key(text);
                prop_assert_eq!(key.is_some(), (4..=15).contains(&text.len()));
                if let Some(key) = key {
                    let mut expected = [0; 16];
                    expected[..text.len()].copy_from_slice(text);
                    expected[15] = u8::try_from(text.len()).unwrap();
                    prop_assert_eq!(key, u128::from_le_bytes(expected));
                    prop_assert!(Recent::value_key(key).is_none(), "no value has the key of a text");
                }
            }
        }
    }
}
