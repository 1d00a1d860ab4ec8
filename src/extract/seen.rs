//! What was seen of each address, readable; `state.rs` has what is gathered.

use std::{
    cmp::Reverse,
    net::{IpAddr, Ipv4Addr},
    ops::Deref,
};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    indicators::Addresses,
    names::{Known, Names, Signatures},
    state::{ALERT, DEST, INBOUND, NO_SEVERITY, OUTBOUND, SRC, Sighting, State},
    time,
};

/// Signatures kept for an address.
pub const MAX_SIGNATURES: usize = 5;
/// Ports kept for an address.
pub const MAX_PORTS: usize = 8;
/// Protocols kept for an address.
pub const MAX_PROTOS: usize = 4;
/// Peers kept for an address.
pub const MAX_PEERS: usize = 8;

/// What was seen of one address, the `seen` of a record (CLI.md §1.4). Lists are sorted by how often a value occurred,
/// then by the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Events with this address, once each even where it is both source and destination.
    pub count: u64,
    /// Timestamp of the earliest event, if any had one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        serialize_with = "millis",
        deserialize_with = "lenient"
    )]
    pub first: Option<Timestamp>,
    /// Timestamp of the latest event.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        serialize_with = "millis",
        deserialize_with = "lenient"
    )]
    pub last: Option<Timestamp>,
    /// `src_ip`, `dest_ip` or both.
    #[serde(default)]
    pub fields: Vec<String>,
    /// The worst severity of its alerts; 1 is the worst there is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub severity: Option<u8>,
    /// The signatures of its alerts, at most [`MAX_SIGNATURES`]: the most severe ones, of equals those seen first.
    #[serde(default)]
    pub signatures: Vec<Signature>,
    /// Ports of the conversation on the responder's side (`dest_port`), whichever side the address is on: the service
    /// tells more than the client's random port. The first [`MAX_PORTS`] seen.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Transport protocols, the first [`MAX_PROTOS`] seen.
    #[serde(default)]
    pub protos: Vec<String>,
    /// The other addresses of its events, the first [`MAX_PEERS`] seen.
    #[serde(default)]
    pub peers: Vec<IpAddr>,
}

/// A signature that fired for an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// `signature_id`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<u64>,
    /// Its message, at most 256 bytes of it.
    pub name: String,
    /// How many of the address's alerts it made.
    pub count: u64,
}

/// What the rank needs to know of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankKey {
    /// Seen in an alert.
    pub in_alert: bool,
    /// The worst severity of its alerts, 1 before 2.
    pub severity: Option<u8>,
    /// It was the source of an event whose destination is inside: an internal scope or `home_net`.
    pub inbound: bool,
    /// It was the destination of an event whose source is inside.
    pub outbound: bool,
    /// Number of events.
    pub count: u64,
    /// Timestamp of the latest event, in milliseconds since 1970.
    pub last_ms: Option<i64>,
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn millis<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&format_args!("{time:.3}")),
        None => serializer.serialize_none(),
    }
}

fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| time::parse_ms(text.as_bytes())).map(time::from_ms))
}

/// The states of all addresses, by number, and the names they share.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    states: Vec<State>,
    pub(super) signatures: Signatures,
    pub(super) protos: Names,
    /// Peers that are no indicators themselves (from records of our own); numbered down from [`FOREIGN`].
    foreign: Addresses,
}

/// What [`Seen`] says, borrowed.
pub(super) struct Shown<'a> {
    pub(super) count: u64,
    /// First and last, in milliseconds since 1970.
    pub(super) times: Option<(i64, i64)>,
    pub(super) fields: &'static [&'static str],
    pub(super) severity: Option<u8>,
    pub(super) signatures: Vec<(u64, &'a Known)>,
    pub(super) ports: Few<u16, MAX_PORTS>,
    pub(super) protos: Few<&'a str, MAX_PROTOS>,
    pub(super) peers: Few<IpAddr, MAX_PEERS>,
}

/// Set in a peer's number where it counts in `foreign`.
const FOREIGN: u32 = 1 << 31;

impl Contexts {
    /// Asks the processor to fetch the state of an address that is noted soon.
    #[inline]
    pub(super) fn prefetch(&self, id: u32) {
        if let Some(state) = self.states.get(id as usize) {
            state.prefetch();
        }
    }

    fn state(&mut self, id: u32) -> Option<&mut State> {
        let at = id as usize;
        if at >= self.states.len() {
            self.states.resize(at + 1, State::NEW);
        }
        self.states.get_mut(at)
    }

    /// Adds one event to what was seen of the address with number `id`.
    pub(super) fn note(&mut self, id: u32, sighting: &Sighting) {
        let at = id as usize;
        if at >= self.states.len() {
            self.states.resize(at + 1, State::NEW);
        }
        if let Some(state) = self.states.get_mut(at) {
            state.note(sighting, &self.signatures);
        }
    }

    /// Adds what an earlier run saw. Its lists have lost their counts but not their order, which is kept.
    pub(super) fn absorb(&mut self, id: u32, seen: &Seen) {
        let order = |length: usize| (1..=u16::try_from(length.min(64)).unwrap_or(64)).rev();
        let severity = seen.severity.unwrap_or(NO_SEVERITY);
        let protos: Vec<u8> =
            seen.protos.iter().filter_map(|name| self.protos.number(name.as_bytes())).collect();
        let peers: Vec<u32> =
            seen.peers.iter().take(MAX_PEERS).map(|&peer| FOREIGN | self.foreign.insert(peer).0).collect();
        let signatures: Vec<(u32, u32)> = (seen.signatures.iter())
            .filter_map(|known| {
                let number = self.signatures.number(known.id, &known.name, severity)?;
                Some((number, u32::try_from(known.count).unwrap_or(u32::MAX)))
            })
            .collect();
        if self.state(id).is_none() {
            return;
        }
        let Some(state) = self.states.get_mut(id as usize) else { return };
        state.count += seen.count;
        for (field, flag) in [("src_ip", SRC), ("dest_ip", DEST)] {
            state.flags |= if seen.fields.iter().any(|known| known == field) { flag } else { 0 };
        }
        if severity != NO_SEVERITY || !signatures.is_empty() {
            state.flags |= ALERT;
        }
        state.severity = state.severity.min(severity);
        state.first = seen.first.map_or(state.first, |time| state.first.min(time.as_millisecond()));
        state.last = seen.last.map_or(state.last, |time| state.last.max(time.as_millisecond()));
        for (peer, times) in peers.iter().zip(order(peers.len())) {
            state.note_peer(*peer, times);
        }
        for (port, times) in seen.ports.iter().zip(order(seen.ports.len())) {
            state.note_port(*port, times);
        }
        for (proto, times) in protos.iter().zip(order(protos.len())) {
            state.note_proto(*proto, times);
        }
        for (signature, count) in signatures {
            state.note_signature(signature, count, &self.signatures);
        }
    }

    pub(super) fn seen(&self, id: u32, addresses: &Addresses) -> Option<Seen> {
        let shown = self.show(id, addresses)?;
        let signature = |(count, known): &(u64, &Known)| Signature {
            id: known.id,
            name: known.name.to_string(),
            count: *count,
        };
        Some(Seen {
            count: shown.count,
            first: shown.times.map(|(first, _)| time::from_ms(first)),
            last: shown.times.map(|(_, last)| time::from_ms(last)),
            fields: shown.fields.iter().map(|&name| name.to_owned()).collect(),
            severity: shown.severity,
            signatures: shown.signatures.iter().map(signature).collect(),
            ports: shown.ports.to_vec(),
            protos: shown.protos.iter().map(|&name| name.to_owned()).collect(),
            peers: shown.peers.to_vec(),
        })
    }

    /// The state in the order in which it is shown.
    pub(super) fn show<'a>(&'a self, id: u32, addresses: &Addresses) -> Option<Shown<'a>> {
        let state = self.states.get(id as usize).filter(|state| state.count > 0)?;
        let fields: &[&str] = match (state.flags & SRC != 0, state.flags & DEST != 0) {
            (true, true) => &["src_ip", "dest_ip"],
            (true, false) => &["src_ip"],
            (false, true) => &["dest_ip"],
            (false, false) => &[],
        };
        let mut signatures: Vec<(u64, &Known)> = (state.signatures())
            .filter_map(|(known, count)| Some((u64::from(count), self.signatures.get(known)?)))
            .collect();
        signatures.sort_unstable_by_key(|&(count, known)| (Reverse(count), known.id, &*known.name));
        Some(Shown {
            count: state.count,
            times: (state.first <= state.last).then_some((state.first, state.last)),
            fields,
            severity: (state.severity != NO_SEVERITY).then_some(state.severity),
            signatures,
            ports: sorted(state.ports(), 0, Some),
            protos: sorted(state.protos(), "", |number| self.protos.name(number)),
            peers: sorted(state.peers(), IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| {
                let own = peer & FOREIGN == 0;
                Some(if own { addresses.ip(peer) } else { self.foreign.ip(peer & !FOREIGN) })
            }),
        })
    }

    pub(super) fn rank_key(&self, id: u32) -> RankKey {
        let Some(state) = self.states.get(id as usize) else { return RankKey::default() };
        RankKey {
            in_alert: state.flags & ALERT != 0,
            severity: (state.severity != NO_SEVERITY).then_some(state.severity),
            inbound: state.flags & INBOUND != 0,
            outbound: state.flags & OUTBOUND != 0,
            count: state.count,
            last_ms: (state.first <= state.last).then_some(state.last),
        }
    }
}

/// Up to `N` values, without a vector: there are five such lists an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Few<T, const N: usize> {
    values: [T; N],
    length: usize,
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.values.get(..self.length).unwrap_or_default()
    }
}

/// By count, then by what `show` makes of the value. `filler` is any value.
fn sorted<T, S: Ord + Copy, const N: usize>(
    values: impl Iterator<Item = (T, u16)>,
    filler: S,
    show: impl Fn(T) -> Option<S>,
) -> Few<S, N> {
    let (mut all, mut length) = ([(Reverse(0), filler); N], 0);
    let shown = values.filter_map(|(value, count)| Some((Reverse(count), show(value)?)));
    for (place, value) in all.iter_mut().zip(shown) {
        *place = value;
        length += 1;
    }
    // Most addresses have one value.
    if length > 1 {
        all.get_mut(..length).unwrap_or_default().sort_unstable();
    }
    Few { values: all.map(|(_, shown)| shown), length }
}
