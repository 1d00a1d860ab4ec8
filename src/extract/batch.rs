//! What a stretch of an input says, before it is joined with what came before.
//!
//! Parsing needs nothing of the whole, so stretches can be parsed side by side; joining (`gather.rs`) goes in order.
//! That makes the result the same whatever the number of threads, by construction.

use std::{hash::BuildHasher, net::IpAddr};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{
    counts::Counts,
    indicators::to_id,
    recent::{LOCAL, Slot},
    seen::Seen,
};

/// No number.
pub(super) const NONE: u32 = u32::MAX;
/// No time.
pub(super) const NO_TIME: i64 = i64::MIN;
/// No protocol.
pub(super) const NO_PROTO: u8 = u8::MAX;

/// One event. Addresses are numbers of the whole set, or of [`Batch::fresh`] with [`LOCAL`] set, or [`NONE`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) time: i64,
    pub(super) src: u32,
    pub(super) dest: u32,
    /// A number of [`Batch::signatures`].
    pub(super) signature: u32,
    pub(super) port: Option<u16>,
    /// A number of [`Batch::protos`].
    pub(super) proto: u8,
    pub(super) severity: u8,
    pub(super) is_alert: bool,
}

/// An address that the parser did not know the number of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fresh {
    pub(super) ip: IpAddr,
    /// Counted from 1 in the batch.
    pub(super) line: u32,
    pub(super) slot: Option<Slot>,
}

/// A signature as it stands in the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawSignature {
    id_start: u32,
    name_start: u32,
    name_end: u32,
    /// Of the first alert with it.
    pub(super) severity: u8,
}

/// What a stretch of lines says.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Counts of these lines alone; `first_malformed` is left empty.
    pub(super) counts: Counts,
    /// The first malformed lines, counted from 1 in the batch.
    pub(super) malformed: Vec<u64>,
    pub(super) fresh: Vec<Fresh>,
    pub(super) records: Vec<Record>,
    pub(super) protos: Vec<Box<[u8]>>,
    pub(super) signatures: Vec<RawSignature>,
    /// What earlier runs saw, with the address as in [`Record`].
    pub(super) seen: Vec<(u32, Seen)>,
    names: Vec<u8>,
    by_name: HashTable<u32>,
    hasher: RandomState,
}

impl Batch {
    /// Forgets everything but its memory.
    pub(super) fn clear(&mut self) {
        self.counts = Counts::default();
        self.malformed.clear();
        self.fresh.clear();
        self.records.clear();
        self.protos.clear();
        self.signatures.clear();
        self.seen.clear();
        self.names.clear();
        self.by_name.clear();
    }

    /// Adds an address; the number is local.
    pub(super) fn add(&mut self, ip: IpAddr, slot: Option<Slot>) -> u32 {
        let number = to_id(self.fresh.len()) | LOCAL;
        self.fresh.push(Fresh { ip, line: u32::try_from(self.counts.lines).unwrap_or(u32::MAX), slot });
        number
    }

    /// The number of a protocol. Names are few and short, and the same one follows itself. One for which there is no
    /// number has none.
    pub(super) fn proto(&mut self, name: &[u8]) -> u8 {
        let is_it = |known: &[u8]| known.len() == name.len() && known.iter().eq(name);
        if let Some(at) = self.protos.iter().position(|known| is_it(known)) {
            return u8::try_from(at).unwrap_or(NO_PROTO);
        }
        let at = u8::try_from(self.protos.len()).unwrap_or(NO_PROTO);
        if at < NO_PROTO {
            self.protos.push(name.into());
        }
        at
    }

    /// The number of a signature, from the raw values of its id and its name.
    pub(super) fn signature(&mut self, id: &[u8], name: &[u8], severity: u8) -> u32 {
        let hash = self.hasher.hash_one((id, name));
        let (signatures, names) = (&self.signatures, &self.names);
        let raw =
            |number: &u32| signatures.get(*number as usize).map_or((&[][..], &[][..]), |raw| raw.of(names));
        if let Some(number) = self.by_name.find(hash, |number| raw(number) == (id, name)) {
            return *number;
        }
        let number = to_id(signatures.len());
        let hasher = &self.hasher;
        self.by_name.insert_unique(hash, number, |number| hasher.hash_one(raw(number)));
        let id_start = to_id(self.names.len());
        self.names.extend_from_slice(id);
        let name_start = to_id(self.names.len());
        self.names.extend_from_slice(name);
        let name_end = to_id(self.names.len());
        self.signatures.push(RawSignature { id_start, name_start, name_end, severity });
        number
    }

    /// The raw id and name of a signature.
    pub(super) fn raw(&self, signature: RawSignature) -> (&[u8], &[u8]) {
        signature.of(&self.names)
    }
}

impl RawSignature {
    fn of(self, names: &[u8]) -> (&[u8], &[u8]) {
        let part = |start: u32, end: u32| names.get(start as usize..end as usize).unwrap_or_default();
        (part(self.id_start, self.name_start), part(self.name_start, self.name_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_beyond_the_last_number_is_not_taken_for_another() {
        let mut batch = Batch::default();
        for n in 0..255_u8 {
            assert_eq!(batch.proto(format!("P{n}").as_bytes()), n);
        }
        assert_eq!(batch.proto(b"one more"), NO_PROTO);
        assert_eq!((batch.proto(b"P254"), batch.proto(b"P0")), (254, 0));
    }
}
