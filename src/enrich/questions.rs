//! What is asked of whom: the ranked addresses, laid against the lanes.

use super::outcome::Part;
use super::transport::Transport;
use crate::extract::Indicators;
use crate::plan::Local;
use crate::provider::{Definition, Verdict};
use std::net::IpAddr;
use std::sync::Arc;

/// A place in the ranked order; 0 is the worst address.
pub(super) type Place = u32;

/// A set of lanes, one bit each.
pub(super) type LaneSet = u64;

/// Most lanes of one run: the bits of a [`LaneSet`].
pub const MOST_LANES: usize = LaneSet::BITS as usize;

/// The ranked addresses and who may be asked about each. Holds no state: both answers are worked out anew, which is
/// cheaper than to keep them for a million addresses.
#[derive(Debug)]
pub(super) struct Questions {
    pub(super) indicators: Arc<Indicators>,
    pub(super) order: Vec<u32>,
    pub(super) definitions: Vec<Arc<Definition>>,
    pub(super) local: Arc<Local>,
    pub(super) transport: Transport,
}

impl Questions {
    /// How many addresses are asked about.
    pub(super) fn len(&self) -> Place {
        Place::try_from(self.order.len()).unwrap_or(Place::MAX)
    }

    /// The address's number in the set it came from.
    pub(super) fn id(&self, place: Place) -> Option<u32> {
        self.order.get(place as usize).copied()
    }

    /// The address.
    pub(super) fn ip(&self, place: Place) -> Option<IpAddr> {
        self.id(place).map(|id| self.indicators.ip(id))
    }

    /// Whether this lane may be asked about it: it takes the family, and the guard clears it.
    pub(super) fn asks(&self, lane: usize, place: Place) -> bool {
        let (Some(ip), Some(definition)) = (self.ip(place), self.definitions.get(lane)) else { return false };
        definition.accepts.accepts(ip) && self.transport.clear(ip, definition).is_ok()
    }

    /// Those of `lanes` that may be asked about it.
    pub(super) fn lanes(&self, of: LaneSet, place: Place) -> LaneSet {
        (0..self.definitions.len())
            .filter(|&lane| of & (1 << lane) != 0 && self.asks(lane, place))
            .fold(0, |set, lane| set | 1 << lane)
    }

    /// What lists and files of this machine say of it.
    pub(super) fn said(&self, place: Place) -> impl Iterator<Item = Part> {
        self.ip(place).map(|ip| self.local.said(ip)).unwrap_or_default().into_iter().map(Part::from)
    }

    /// The worst of what lists say of it.
    pub(super) fn listed(&self, place: Place) -> Option<Verdict> {
        self.ip(place).and_then(|ip| self.local.verdict(ip))
    }
}
