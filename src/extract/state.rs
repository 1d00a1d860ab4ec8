//! What was seen of one address, compact while it is gathered.
//!
//! A state takes 160 bytes, so 200,000 of them 31 MiB; signatures and protocol names are kept once for all. Nothing
//! here grows with the number of events.
//!
//! The lists are bounded. They hold the first values seen, with counts, so that the result depends on nothing but
//! the order of the events. Signatures are the exception, because a port scan must not push the one trojan out: a
//! more severe signature takes the place of the least severe one. Since it does so when it is first seen, its count
//! is exact as well.

use super::{
    names::Signatures,
    seen::{MAX_PEERS, MAX_PORTS, MAX_PROTOS, MAX_SIGNATURES},
    window,
};

/// One event as one of its addresses sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    /// [`SRC`] or [`DEST`], both where an address talks to itself; and [`INBOUND`], [`OUTBOUND`], [`ALERT`].
    pub(super) flags: u8,
    pub(super) time: Option<i64>,
    pub(super) peer: Option<u32>,
    pub(super) port: Option<u16>,
    pub(super) proto: Option<u8>,
    /// [`NO_SEVERITY`] where there is none.
    pub(super) severity: u8,
    /// A number of [`Signatures`].
    pub(super) signature: Option<u32>,
}

pub(super) const SRC: u8 = 1;
pub(super) const DEST: u8 = 2;
pub(super) const ALERT: u8 = 4;
pub(super) const INBOUND: u8 = 8;
pub(super) const OUTBOUND: u8 = 16;

/// No severity: worse ones are smaller.
pub(super) const NO_SEVERITY: u8 = u8::MAX;

/// In the order in which an event needs it: one that repeats its address's first peer, port and protocol touches
/// the first 64 bytes, of one cache line or of two. Counts of values only sort them, so they saturate.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct State {
    pub(super) count: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) flags: u8,
    pub(super) severity: u8,
    protos: [u8; MAX_PROTOS],
    proto_counts: [u16; MAX_PROTOS],
    slots: [Slot; MAX_PEERS],
    signatures: [u32; MAX_SIGNATURES],
    signature_counts: [u32; MAX_SIGNATURES],
}

const _: () = assert!(size_of::<State>() == 160, "the figure above");
const _: () = assert!(MAX_PEERS == MAX_PORTS, "they share their slots");

/// A peer and a port that have nothing to do with each other, but are looked at together.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// In halves, so that a slot takes 10 bytes.
    peer: [u16; 2],
    peer_count: u16,
    port: u16,
    port_count: u16,
}

impl State {
    pub(super) const NEW: Self = Self {
        count: 0,
        first: i64::MAX,
        last: i64::MIN,
        flags: 0,
        severity: NO_SEVERITY,
        protos: [0; MAX_PROTOS],
        proto_counts: [0; MAX_PROTOS],
        slots: [Slot { peer: [0; 2], peer_count: 0, port: 0, port_count: 0 }; MAX_PEERS],
        signatures: [0; MAX_SIGNATURES],
        signature_counts: [0; MAX_SIGNATURES],
    };

    /// Asks the processor to fetch what an event needs most often: the first 64 bytes lie in two cache lines.
    #[inline]
    pub(super) fn prefetch(&self) {
        window::prefetch(self);
        window::prefetch(&self.slots[4]);
    }

    /// Adds one event.
    #[inline]
    pub(super) fn note(&mut self, sighting: &Sighting, names: &Signatures) {
        self.count += 1;
        self.flags |= sighting.flags;
        self.severity = self.severity.min(sighting.severity);
        if let Some(time) = sighting.time {
            self.first = self.first.min(time);
            self.last = self.last.max(time);
        }
        if let Some(proto) = sighting.proto {
            self.note_proto(proto, 1);
        }
        if let Some(peer) = sighting.peer {
            self.note_peer(peer, 1);
        }
        if let Some(port) = sighting.port {
            self.note_port(port, 1);
        }
        if let Some(signature) = sighting.signature {
            self.note_signature(signature, 1, names);
        }
    }

    #[inline]
    pub(super) fn note_proto(&mut self, proto: u8, times: u16) {
        for (known, count) in self.protos.iter_mut().zip(&mut self.proto_counts) {
            if is_place(known, *count, proto) {
                *count = count.saturating_add(times);
                return;
            }
        }
    }

    #[inline]
    pub(super) fn note_peer(&mut self, peer: u32, times: u16) {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let halves = [(peer >> 16) as u16, peer as u16];
        if let Some(slot) = place(&mut self.slots, |slot| slot.peer_count == 0 || slot.peer == halves) {
            (slot.peer, slot.peer_count) = (halves, slot.peer_count.saturating_add(times));
        }
    }

    #[inline]
    pub(super) fn note_port(&mut self, port: u16, times: u16) {
        if let Some(slot) = place(&mut self.slots, |slot| slot.port_count == 0 || slot.port == port) {
            (slot.port, slot.port_count) = (port, slot.port_count.saturating_add(times));
        }
    }

    pub(super) fn note_signature(&mut self, id: u32, times: u32, names: &Signatures) {
        let mut mildest = (0, 0);
        for (at, (known, count)) in self.signatures.iter_mut().zip(&mut self.signature_counts).enumerate() {
            if *count == 0 {
                *known = id;
            }
            if *known == id {
                *count = count.saturating_add(times);
                return;
            }
            // Of equals the one seen last gives way.
            let severity = names.severity(*known);
            if severity >= mildest.0 {
                mildest = (severity, at);
            }
        }
        if names.severity(id) < mildest.0
            && let Some(known) = self.signatures.get_mut(mildest.1)
            && let Some(count) = self.signature_counts.get_mut(mildest.1)
        {
            (*known, *count) = (id, times);
        }
    }

    /// Numbers of the signatures, with their counts.
    pub(super) fn signatures(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.signatures.into_iter().zip(self.signature_counts).filter(|(_, count)| *count > 0)
    }

    pub(super) fn protos(&self) -> impl Iterator<Item = (u8, u16)> + '_ {
        self.protos.into_iter().zip(self.proto_counts).filter(|(_, count)| *count > 0)
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.slots.iter().map(|slot| (slot.port, slot.port_count)).filter(|(_, count)| *count > 0)
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let whole = |[high, low]: [u16; 2]| u32::from(high) << 16 | u32::from(low);
        self.slots.iter().map(move |slot| (whole(slot.peer), slot.peer_count)).filter(|(_, count)| *count > 0)
    }
}

/// The first slot that `is_it`. Most addresses have their values in the first; of the others those that come most often
/// have so many that none is found, and where a search ends cannot be foreseen: it looks at all of them.
#[inline]
fn place(slots: &mut [Slot; MAX_PEERS], is_it: impl Fn(&Slot) -> bool) -> Option<&mut Slot> {
    let [first, rest @ ..] = slots;
    if is_it(first) {
        return Some(first);
    }
    let mut place = rest.len();
    for (at, slot) in rest.iter().enumerate().rev() {
        place = if is_it(slot) { at } else { place };
    }
    rest.get_mut(place)
}

/// Whether `value` belongs here: it is here already, or the place was free and it now is.
#[inline]
fn is_place<T: PartialEq>(known: &mut T, count: u16, value: T) -> bool {
    if count == 0 {
        *known = value;
        return true;
    }
    *known == value
}
