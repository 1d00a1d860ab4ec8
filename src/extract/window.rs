//! Several bytes at a time.
//!
//! The one module with `unsafe` in it: the processor's vector functions may only be called where it has them. They take
//! and give values, and bytes come out of slices by checked access; the one pointer, of a prefetch, comes from a
//! reference. SSE2 every x86-64 has. What more there is, is asked for at run time, once a block: [`widest`] runs a [`Job`]
//! with the [`Lanes`] found, and nobody else can make one. Other processors take the plain loops.

#![expect(clippy::inline_always, reason = "a call would cost more than what it does")]

/// Bytes in a window.
pub(super) const WIDTH: usize = 16;

/// Bytes of a string that [`Lanes::string_stops`] looks at.
pub(super) const STRING: usize = 32;

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
        Some(Self(imp::load(*bytes)))
    }

    /// One bit for each byte that ends plain text in a string: a quote, a backslash, a control character.
    #[inline(always)]
    pub(super) fn string_stops(self) -> u32 {
        imp::string_stops(self.0)
    }

    /// One bit for each byte that is no ASCII digit.
    #[inline(always)]
    pub(super) fn non_digits(self) -> u32 {
        imp::non_digits(self.0)
    }

    /// One bit for each byte that is the same in both.
    #[inline(always)]
    pub(super) fn same(self, other: &[u8; WIDTH]) -> u32 {
        imp::same(self.0, *other)
    }

    /// The first `length` bytes at four bits each, the rest all ones: for digits and dots, exact. `None` where another byte
    /// is among them, or `length` is above 15.
    #[inline(always)]
    pub(super) fn dotted(self, length: usize) -> Option<u64> {
        imp::dotted(self.0, u8::try_from(length).ok().filter(|length| *length < 16)?)
    }
}

/// What is looked for in more than 16 bytes, as wide as the processor can.
pub(super) trait Lanes: Copy {
    /// As [`Window::string_stops`], for 32 bytes.
    fn string_stops(self, bytes: &[u8; STRING]) -> u32;

    /// One bit for each of the 64 bytes from the second on after which reading cannot go on blindly: a line feed; and what
    /// stands after a brace that closes and is none of `,`, `}` and `]`, since after an object inside another nothing
    /// else does.
    fn line_stops(self, bytes: &[u8; 65]) -> u64;
}

/// Work that is compiled once for each kind of [`Lanes`].
pub(super) trait Job {
    /// What it gives.
    type Output;

    /// Does it. To be marked `#[inline(always)]`, with all that is hot in it, or it is compiled for the oldest processor.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Does `job` with the widest lanes of this processor.
#[inline]
pub(super) fn widest<J: Job>(job: J) -> J::Output {
    imp::widest(job)
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "see the head of this file")]
mod imp {
    use core::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_and_si128, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8,
        _mm_cvtsi128_si64, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_packus_epi16, _mm_prefetch,
        _mm_set_epi64x, _mm_set1_epi8, _mm_set1_epi16, _mm_srli_epi16, _mm_sub_epi8,
    };

    use super::{Job, Lanes, STRING};

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
    pub(super) fn same(bytes: __m128i, other: [u8; 16]) -> u32 {
        // SAFETY: every x86-64 has SSE2.
        unsafe { mask(_mm_cmpeq_epi8(bytes, load128(other))) }
    }

    #[inline(always)]
    pub(super) fn dotted(bytes: __m128i, length: u8) -> Option<u64> {
        // SAFETY: every x86-64 has SSE2.
        unsafe { dotted128(bytes, length) }
    }

    #[inline(always)]
    pub(super) fn prefetch<T>(value: &T) {
        // SAFETY: every x86-64 has SSE, and a prefetch reads nothing; the pointer is a reference's anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) }
    }

    #[inline]
    pub(super) fn widest<J: Job>(job: J) -> J::Output {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: this processor has what the function is compiled for.
            unsafe { with_avx2(job) }
        } else {
            job.run(Sse2)
        }
    }

    #[target_feature(enable = "avx2,bmi2")]
    fn with_avx2<J: Job>(job: J) -> J::Output {
        job.run(Avx2(()))
    }

    #[derive(Clone, Copy)]
    pub(super) struct Sse2;

    impl Lanes for Sse2 {
        #[inline(always)]
        fn string_stops(self, bytes: &[u8; STRING]) -> u32 {
            // SAFETY: every x86-64 has SSE2.
            unsafe { string_stops_twice128(bytes) }
        }

        #[inline(always)]
        fn line_stops(self, bytes: &[u8; 65]) -> u64 {
            // SAFETY: every x86-64 has SSE2.
            unsafe { line_stops128(bytes) }
        }
    }

    /// Proof that there is AVX2: made in `with_avx2` alone.
    #[derive(Clone, Copy)]
    struct Avx2(());

    impl Lanes for Avx2 {
        #[inline(always)]
        fn string_stops(self, bytes: &[u8; STRING]) -> u32 {
            // SAFETY: `self` proves it.
            unsafe { avx2::string_stops(bytes) }
        }

        #[inline(always)]
        fn line_stops(self, bytes: &[u8; 65]) -> u64 {
            // SAFETY: `self` proves it.
            unsafe { avx2::line_stops(bytes) }
        }
    }

    /// The `N` bytes from `start` on, which is a constant: no check is left of it.
    #[inline(always)]
    fn part<const N: usize>(bytes: &[u8], start: usize) -> [u8; N] {
        match bytes.get(start..) {
            Some(rest) => rest.first_chunk().copied().unwrap_or([0; N]),
            None => [0; N],
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load128(bytes: [u8; 16]) -> __m128i {
        let at = |start: usize| i64::from_le_bytes(part(&bytes, start));
        _mm_set_epi64x(at(8), at(0))
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
        let at = |start: usize| load128(part(bytes, start));
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

    #[inline]
    #[target_feature(enable = "sse2")]
    fn string_stops_twice128(bytes: &[u8; STRING]) -> u32 {
        string_stops128(load128(part(bytes, 0))) | string_stops128(load128(part(bytes, 16))) << 16
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn dotted128(bytes: __m128i, length: u8) -> Option<u64> {
        let places = _mm_set_epi64x(0x0f0e_0d0c_0b0a_0908, 0x0706_0504_0302_0100);
        let is_inside = _mm_cmpgt_epi8(_mm_set1_epi8(length.cast_signed()), places);
        // From `.` to `9` there is but `/` that is neither.
        let from_dot = _mm_sub_epi8(bytes, _mm_set1_epi8(b'.'.cast_signed()));
        let is_right = _mm_andnot_si128(is(bytes, b'/'), is_at_most(from_dot, b'9' - b'.'));
        if mask(_mm_andnot_si128(is_right, is_inside)) != 0 {
            return None;
        }
        let low = _mm_set1_epi8(0x0f);
        let nibbles = _mm_or_si128(_mm_and_si128(bytes, low), _mm_andnot_si128(is_inside, low));
        let pairs = _mm_and_si128(_mm_or_si128(nibbles, _mm_srli_epi16::<4>(nibbles)), _mm_set1_epi16(0xff));
        Some(_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)).cast_unsigned())
    }

    mod avx2 {
        use core::arch::x86_64::{
            __m256i, _mm256_andnot_si256, _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8,
            _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi8,
        };

        use super::{STRING, part};

        #[inline]
        #[target_feature(enable = "avx2")]
        fn load(bytes: [u8; 32]) -> __m256i {
            let at = |start: usize| i64::from_le_bytes(part(&bytes, start));
            _mm256_set_epi64x(at(24), at(16), at(8), at(0))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn is(bytes: __m256i, byte: u8) -> __m256i {
            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn mask(bytes: __m256i) -> u32 {
            _mm256_movemask_epi8(bytes).cast_unsigned()
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn string_stops(bytes: &[u8; STRING]) -> u32 {
            let bytes = load(*bytes);
            let is_control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
            mask(_mm256_or_si256(_mm256_or_si256(is(bytes, b'"'), is(bytes, b'\\')), is_control))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn line_stops(bytes: &[u8; 65]) -> u64 {
            let may_stop = |start: usize| {
                _mm256_or_si256(is(load(part(bytes, start)), b'}'), is(load(part(bytes, start + 1)), b'\n'))
            };
            let (low, high) = (may_stop(0), may_stop(32));
            // Most often there is neither.
            if mask(_mm256_or_si256(low, high)) == 0 {
                return 0;
            }
            let stops = |start: usize, may_stop: __m256i| {
                let bytes = load(part(bytes, start + 1));
                // `]` and `}` differ in one bit.
                let closes = is(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), b'}');
                mask(_mm256_andnot_si256(_mm256_or_si256(is(bytes, b','), closes), may_stop))
            };
            u64::from(stops(0, low)) | u64::from(stops(32, high)) << 32
        }
    }

    #[cfg(test)]
    pub(super) fn all<J: Job + Copy>(job: J) -> Vec<J::Output> {
        vec![job.run(Sse2), widest(job)]
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    use super::{Job, Lanes, STRING};

    pub(super) fn load(bytes: [u8; 16]) -> [u8; 16] {
        bytes
    }

    fn mask<const N: usize>(bytes: [u8; N], is_one: impl Fn(usize, u8) -> bool) -> u32 {
        bytes.iter().enumerate().fold(0, |mask, (at, &byte)| mask | u32::from(is_one(at, byte)) << at)
    }

    pub(super) fn string_stops<const N: usize>(bytes: [u8; N]) -> u32 {
        mask(bytes, |_, byte| matches!(byte, b'"' | b'\\' | 0..0x20))
    }

    pub(super) fn non_digits(bytes: [u8; 16]) -> u32 {
        mask(bytes, |_, byte| !byte.is_ascii_digit())
    }

    pub(super) fn same(bytes: [u8; 16], other: [u8; 16]) -> u32 {
        mask(bytes, |at, byte| other.get(at) == Some(&byte))
    }

    pub(super) fn dotted(bytes: [u8; 16], length: u8) -> Option<u64> {
        let nibbles =
            bytes.iter().take(usize::from(length)).enumerate().try_fold(0, |all, (at, &byte)| {
                matches!(byte, b'.' | b'0'..=b'9').then_some(all | u64::from(byte & 15) << (4 * at))
            })?;
        Some(nibbles | u64::MAX << (4 * length))
    }

    pub(super) fn prefetch<T>(_: &T) {}

    pub(super) fn widest<J: Job>(job: J) -> J::Output {
        job.run(Plain)
    }

    #[cfg(test)]
    pub(super) fn all<J: Job + Copy>(job: J) -> Vec<J::Output> {
        vec![job.run(Plain)]
    }

    #[derive(Clone, Copy)]
    struct Plain;

    impl Lanes for Plain {
        fn string_stops(self, bytes: &[u8; STRING]) -> u32 {
            string_stops(*bytes)
        }

        fn line_stops(self, bytes: &[u8; 65]) -> u64 {
            let pairs = bytes.iter().zip(bytes.iter().skip(1)).enumerate();
            pairs.fold(0, |mask, (at, (&before, &byte))| {
                let is_stop = byte == b'\n' || (before == b'}' && !matches!(byte, b',' | b'}' | b']'));
                mask | u64::from(is_stop) << at
            })
        }
    }
}

/// Asks the processor to fetch what `value` refers to, the 64 bytes that it begins in.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    imp::prefetch(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What all kinds of lanes say of 65 bytes.
    #[derive(Clone, Copy)]
    struct Both<'a>(&'a [u8; 65]);

    impl Job for Both<'_> {
        type Output = (u32, u64);

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> (u32, u64) {
            (lanes.string_stops(self.0.first_chunk().unwrap()), lanes.line_stops(self.0))
        }
    }

    proptest! {
        #[test]
        fn every_bit_is_right(text in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"{}],\"\\\n \t\x1f\x20\x7f\xff09/:".to_vec())], 65)
        ) {
            let window = Window::at(&text, 1).unwrap();
            let (strings, non_digits, same) =
                (window.string_stops(), window.non_digits(), window.same(text.first_chunk().unwrap()));
            for at in 0..WIDTH {
                let byte = text[at + 1];
                prop_assert_eq!(strings >> at & 1 == 1, matches!(byte, b'"' | b'\\' | 0..0x20));
                prop_assert_eq!(non_digits >> at & 1 == 1, !byte.is_ascii_digit());
                prop_assert_eq!(same >> at & 1 == 1, byte == text[at]);
            }
            prop_assert_eq!((strings | non_digits | same) >> WIDTH, 0);
            prop_assert!(Window::at(&text, 50).is_none());
            for (strings, lines) in imp::all(Both(text.first_chunk().unwrap())) {
                for at in 0..64 {
                    let (byte, last) = (text[at + 1], text[at]);
                    let ends = last == b'}' && !matches!(byte, b',' | b'}' | b']');
                    prop_assert_eq!(lines >> at & 1 == 1, byte == b'\n' || ends);
                }
                for (at, byte) in text.iter().take(STRING).enumerate() {
                    prop_assert_eq!(strings >> at & 1 == 1, matches!(byte, b'"' | b'\\' | 0..0x20));
                }
            }
        }

        #[test]
        fn digits_and_dots_in_four_bits_each(
            text in prop_oneof![
                "[0-9.]{16}".prop_map(String::into_bytes),
                "[0-9.]{4,14}[-/:. \u{0}]{12}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 16),
            ],
            length in 0_usize..20,
        ) {
            let key = Window::at(&text, 0).unwrap().dotted(length);
            let is_right = length < 16
                && text[..length].iter().all(|byte| matches!(byte, b'.' | b'0'..=b'9'));
            prop_assert_eq!(key.is_some(), is_right);
            for (at, byte) in text.iter().take(WIDTH).enumerate().filter(|_| is_right) {
                let nibble = if at < length { byte & 15 } else { 15 };
                prop_assert_eq!(key.unwrap() >> (4 * at) & 15, u64::from(nibble));
            }
        }
    }
}
