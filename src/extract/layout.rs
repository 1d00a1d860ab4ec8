//! The keys of the last line, in their order.
//!
//! Suricata writes an event's first keys in one order, so that the next line has most often what this one had, byte by
//! byte up to the values. A comparison of 16 bytes then takes the place of a walk over the key. What was learnt of a line is
//! only ever a shorter way to the same end: the same bytes were walked over before.

#![expect(clippy::inline_always, reason = "part of the scanner's loop")]

use super::window::{WIDTH, Window};

/// Keys remembered: Suricata has some ten before the last one that is needed.
const PLACES: usize = 16;

/// What the walk does with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Type,
    Src,
    Dest,
    Time,
    Proto,
    Port,
    Alert,
    /// Any other key with a string.
    Text,
    /// Any other key.
    Value,
}

impl Member {
    /// By the key without quotes. `None` where a value is not what its key asks for.
    pub(super) fn of(key: &[u8], is_string: bool) -> Option<Self> {
        let (member, wants_string) = match key {
            b"event_type" => (Self::Type, true),
            b"src_ip" => (Self::Src, true),
            b"dest_ip" => (Self::Dest, true),
            b"timestamp" => (Self::Time, true),
            b"proto" => (Self::Proto, true),
            b"dest_port" => (Self::Port, false),
            b"alert" => (Self::Alert, false),
            _ => (if is_string { Self::Text } else { Self::Value }, is_string),
        };
        (wants_string == is_string).then_some(member)
    }
}

/// What was last read in the place of one member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// From the brace or the comma before the key up to the value, or to within its quotes.
    bytes: [u8; WIDTH],
    /// One bit for each of them; more than there can be where nothing is known.
    mask: u32,
    length: u32,
    member: Member,
}

impl Default for Place {
    fn default() -> Self {
        Self { bytes: [0; WIDTH], mask: u32::MAX, length: 0, member: Member::Value }
    }
}

impl Place {
    /// Nothing is known where there is no room for it.
    pub(super) fn new(text: &[u8], member: Member) -> Self {
        let mut place = Self::default();
        if let Some(bytes) = place.bytes.get_mut(..text.len())
            && let Ok(length) = u32::try_from(text.len())
        {
            bytes.copy_from_slice(text);
            (place.mask, place.length, place.member) = ((1 << length) - 1, length, member);
        }
        place
    }

    /// If it stands here again: its length, and what it is.
    #[inline(always)]
    pub(super) fn of(&self, window: Window) -> Option<(usize, Member)> {
        let is_here = window.same(&self.bytes) & self.mask == self.mask;
        is_here.then_some((self.length as usize, self.member))
    }
}

/// What the next line most likely looks like.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) places: [Place; PLACES],
}
