//! What is asked of whom: the addresses, laid against the lanes.

use super::arrivals::{Arrival, Places};
use super::outcome::Part;
use super::source::Standing;
use super::transport::Transport;
use crate::extract::Indicators;
use crate::plan::Local;
use crate::provider::{Definition, Verdict};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::Arc;

/// A place in the ranked order, where 0 is the worst address; or that of an arrival, until it is finished.
pub(super) type Place = u32;

/// A set of lanes, one bit each, the first lane's the lowest.
pub type LaneSet = u64;

/// Most lanes of one run: the bits of a [`LaneSet`].
pub const MOST_LANES: usize = LaneSet::BITS as usize;

/// The addresses, by place.
#[derive(Debug)]
pub(super) enum Addresses {
    /// All that are asked about, worst first.
    Ranked { indicators: Arc<Indicators>, order: Vec<u32> },
    /// Those that arrived and are unfinished. Borrowed for a look alone.
    Arrived(RefCell<Places>),
}

/// The addresses and who may be asked about each. Who may is not kept but worked out anew, which is cheaper than to keep
/// it for a million addresses.
#[derive(Debug)]
pub(super) struct Questions {
    pub(super) addresses: Addresses,
    pub(super) definitions: Vec<Arc<Definition>>,
    pub(super) local: Arc<Local>,
    pub(super) transport: Transport,
}

impl Questions {
    /// How many addresses the ranked order holds.
    pub(super) fn len(&self) -> Place {
        match &self.addresses {
            Addresses::Ranked { order, .. } => Place::try_from(order.len()).unwrap_or(Place::MAX),
            Addresses::Arrived(_) => 0,
        }
    }

    /// The address's number in the set it came from.
    pub(super) fn id(&self, place: Place) -> Option<u32> {
        match &self.addresses {
            Addresses::Ranked { order, .. } => order.get(place as usize).copied(),
            Addresses::Arrived(places) => places.borrow().get(place).map(|arrival| arrival.id),
        }
    }

    /// The address.
    pub(super) fn ip(&self, place: Place) -> Option<IpAddr> {
        match &self.addresses {
            Addresses::Ranked { indicators, order } => order.get(place as usize).map(|&id| indicators.ip(id)),
            Addresses::Arrived(places) => places.borrow().get(place).map(|arrival| arrival.ip),
        }
    }

    /// The addresses of several places, in their order.
    pub(super) fn ips(&self, places: &[Place]) -> Vec<IpAddr> {
        places.iter().filter_map(|&place| self.ip(place)).collect()
    }

    /// Its place among those that wait for a lane.
    pub(super) fn standing(&self, place: Place) -> Standing {
        match &self.addresses {
            Addresses::Ranked { .. } => Standing { weight: 0, since: Reverse(u64::from(place)) },
            Addresses::Arrived(places) => places.borrow().standing(place),
        }
    }

    /// Gives an arrival its place; none in a ranked order, where nothing arrives.
    pub(super) fn take_in(&self, arrival: Arrival) -> Option<Place> {
        match &self.addresses {
            Addresses::Ranked { .. } => None,
            Addresses::Arrived(places) => Some(places.borrow_mut().take_in(arrival)),
        }
    }

    /// The address is finished: another may take its place.
    pub(super) fn forget(&self, place: Place) {
        if let Addresses::Arrived(places) = &self.addresses {
            places.borrow_mut().forget(place);
        }
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
