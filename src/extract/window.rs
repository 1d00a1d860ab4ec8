//! Sixteen bytes at a time.
//!
//! The one module with `unsafe` in it: SSE2's functions may only be called where there is SSE2, which every x86-64
//! has, but the compiler wants to be told. They take and give values, and bytes come out of slices by checked access;
//! the one pointer, of a prefetch, comes from a reference. Other processors take the plain loops.

#![expect(clippy::inline_always, reason = "a call would cost more than what it does")]

/// Bytes in a window.
pub(super) const WIDTH: usize = 16;

/// A view of 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Window(Bytes);

#[cfg(target_arch = "x86_64")]
type Bytes = core::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Bytes = [u8; WIDTH];

impl Window {
    /// The window at `at`, `None` where fewer than 16 bytes are left.
    #[inline(always)]
    pub(super) fn at(text: &[u8], at: usize) -> Option<Self> {
        let bytes: &[u8; WIDTH] = text.get(at..)?.first_chunk()?;
        Some(Self(load(*bytes)))
    }

    /// One bit for each byte that ends plain text in a string: a quote, a backslash, a control character.
    #[inline(always)]
    pub(super) fn string_stops(self) -> u32 {
        string_stops(self.0)
    }

    /// One bit for each byte that is no ASCII digit.
    #[inline(always)]
    pub(super) fn non_digits(self) -> u32 {
        non_digits(self.0)
    }
}

/// One bit for each of the 64 bytes from `at` on after which reading cannot go on blindly: a line feed; and what
/// stands after a brace that closes and is none of `,`, `}` and `]`, since after an object inside another nothing else
/// does. `None` where fewer are left, or nothing stands before `at`.
#[inline(always)]
pub(super) fn line_stops(text: &[u8], at: usize) -> Option<u64> {
    let bytes: &[u8; 65] = text.get(at.checked_sub(1)?..)?.first_chunk()?;
    Some(imp::line_stops(bytes))
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "see the head of this file")]
mod imp {
    use core::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8,
        _mm_or_si128, _mm_prefetch, _mm_set_epi64x, _mm_set1_epi8, _mm_sub_epi8,
    };

    #[inline(always)]
    pub(super) fn load(bytes: [u8; 16]) -> __m128i {
        // SAFETY: every x86-64 has SSE2.
        unsafe { load128(bytes) }
    }

    #[inline(always)]
    pub(super) fn string_stops(bytes: __m128i) -> u32 {
        // SAFETY: every x86-64 has SSE2.
        unsafe { string_stops128(bytes) }
    }

    #[inline(always)]
    pub(super) fn non_digits(bytes: __m128i) -> u32 {
        // SAFETY: every x86-64 has SSE2.
        unsafe { non_digits128(bytes) }
    }

    #[inline(always)]
    pub(super) fn prefetch<T>(value: &T) {
        // SAFETY: every x86-64 has SSE, and a prefetch reads nothing; the pointer is a reference's anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) }
    }

    #[inline(always)]
    pub(super) fn line_stops(bytes: &[u8; 65]) -> u64 {
        // SAFETY: every x86-64 has SSE2.
        unsafe { line_stops128(bytes) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load128(bytes: [u8; 16]) -> __m128i {
        let [low, high] = [bytes.first_chunk::<8>(), bytes.last_chunk::<8>()]
            .map(|half| i64::from_le_bytes(half.copied().unwrap_or_default()));
        _mm_set_epi64x(high, low)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn is(bytes: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()))
    }

    /// Unsigned, which SSE2 has no comparison for.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn is_at_most(bytes: __m128i, most: u8) -> __m128i {
        _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(most.cast_signed())), bytes)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(bytes: __m128i) -> u32 {
        _mm_movemask_epi8(bytes).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn string_stops128(bytes: __m128i) -> u32 {
        mask(_mm_or_si128(_mm_or_si128(is(bytes, b'"'), is(bytes, b'\\')), is_at_most(bytes, 0x1f)))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn non_digits128(bytes: __m128i) -> u32 {
        let from_zero = _mm_sub_epi8(bytes, _mm_set1_epi8(b'0'.cast_signed()));
        !mask(is_at_most(from_zero, 9)) & 0xffff
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn line_stops128(bytes: &[u8; 65]) -> u64 {
        let at = |start: usize| {
            load128(bytes.get(start..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default())
        };
        // Most often there is neither, which few comparisons tell.
        let may_stop = |start: usize| _mm_or_si128(is(at(start), b'}'), is(at(start + 1), b'\n'));
        let any =
            _mm_or_si128(_mm_or_si128(may_stop(0), may_stop(16)), _mm_or_si128(may_stop(32), may_stop(48)));
        if mask(any) == 0 {
            return 0;
        }
        let stops = |start: usize| {
            let bytes = at(start + 1);
            // `]` and `}` differ in one bit.
            let closes = is(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), b'}');
            let goes_on = _mm_or_si128(is(bytes, b','), closes);
            mask(_mm_andnot_si128(goes_on, may_stop(start)))
        };
        let [a, b, c, d] = [stops(0), stops(16), stops(32), stops(48)];
        u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    pub(super) fn load(bytes: [u8; 16]) -> [u8; 16] {
        bytes
    }

    fn mask(bytes: [u8; 16], is_one: impl Fn(usize, u8) -> bool) -> u32 {
        bytes.iter().enumerate().fold(0, |mask, (at, &byte)| mask | u32::from(is_one(at, byte)) << at)
    }

    pub(super) fn string_stops(bytes: [u8; 16]) -> u32 {
        mask(bytes, |_, byte| matches!(byte, b'"' | b'\\' | 0..0x20))
    }

    pub(super) fn non_digits(bytes: [u8; 16]) -> u32 {
        mask(bytes, |_, byte| !byte.is_ascii_digit())
    }

    pub(super) fn prefetch<T>(_: &T) {}

    pub(super) fn line_stops(bytes: &[u8; 65]) -> u64 {
        let pairs = bytes.iter().zip(bytes.iter().skip(1)).enumerate();
        pairs.fold(0, |mask, (at, (&before, &byte))| {
            let is_stop = byte == b'\n' || (before == b'}' && !matches!(byte, b',' | b'}' | b']'));
            mask | u64::from(is_stop) << at
        })
    }
}

use imp::{load, non_digits, string_stops};

/// Asks the processor to fetch what `value` refers to, its first 64 bytes.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    imp::prefetch(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_bit_is_right(text in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"{}],\"\\\n \t\x1f\x20\x7f\xff09/:".to_vec())], 65)
        ) {
            let window = Window::at(&text, 1).unwrap();
            let (strings, non_digits, lines) =
                (window.string_stops(), window.non_digits(), line_stops(&text, 1).unwrap());
            for at in 0..64 {
                let (byte, last) = (text[at + 1], text[at]);
                let ends = last == b'}' && !matches!(byte, b',' | b'}' | b']');
                prop_assert_eq!(lines >> at & 1 == 1, byte == b'\n' || ends);
                if at < WIDTH {
                    prop_assert_eq!(strings >> at & 1 == 1, matches!(byte, b'"' | b'\\' | 0..0x20));
                    prop_assert_eq!(non_digits >> at & 1 == 1, !byte.is_ascii_digit());
                }
            }
            prop_assert_eq!(strings >> WIDTH | non_digits >> WIDTH, 0);
            prop_assert!(line_stops(&text, 2).is_none() && line_stops(&text, 0).is_none());
            prop_assert!(Window::at(&text, 50).is_none());
        }
    }
}
