//! Addresses that come while a run goes on: a log that grows, a queue.
//!
//! They come through a bounded channel, and are taken from it while fewer than [`WINDOW`] are unfinished; whoever sends
//! more waits. Each takes a place, which the next one takes over once it is finished: a run of days needs no more memory
//! than one of minutes.

use super::questions::{LaneSet, Place};
use super::source::{Standing, WINDOW};
use super::stop::StopSignal;
use crate::extract::Indicators;
use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What a run asks about.
#[derive(Debug)]
pub enum Work {
    /// Addresses that are all known beforehand.
    Ranked {
        /// Those, and others.
        indicators: Arc<Indicators>,
        /// The numbers of those that are asked about, worst first.
        order: Vec<u32>,
    },
    /// Addresses that arrive. The run ends when the senders are gone and all that came is finished. It takes no more, so
    /// that sending fails, from a stop or the end of its time on; what was sent before still comes out.
    Arriving(mpsc::Receiver<Arrival>),
}

/// An address that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The address.
    pub ip: IpAddr,
    /// The caller's own number, for [`Finished::id`](super::Finished::id). One that is finished may come again.
    pub id: u32,
    /// Of those that wait, lanes take the one with the largest first; of equals the one that came first.
    pub weight: u64,
    /// The lanes that are asked about it, a bit each, whatever their [`Ask`](super::Ask); `None` for all, the cascade's
    /// after the others. A lane that does not take the address is never asked.
    pub lanes: Option<LaneSet>,
}

/// The way in. Driven by the assembler alone.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// None once it is over, and for the fixed order.
    inbox: Option<mpsc::Receiver<Arrival>>,
    stop: StopSignal,
    run_end: Option<Instant>,
}

impl Arrivals {
    pub(super) fn new(
        inbox: Option<mpsc::Receiver<Arrival>>,
        stop: StopSignal,
        run_end: Option<Instant>,
    ) -> Self {
        Self { inbox, stop, run_end }
    }

    /// Whether none will come any more.
    pub(super) fn is_over(&self) -> bool {
        self.inbox.is_none()
    }

    /// The next one; `None` when it is over. Loses nothing if it is dropped unfinished.
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        let inbox = self.inbox.as_mut()?;
        let arrival = if inbox.is_closed() {
            inbox.recv().await
        } else {
            tokio::select! {
                biased;
                () = ended(&mut self.stop, self.run_end) => {
                    inbox.close();
                    inbox.recv().await
                }
                arrival = inbox.recv() => arrival,
            }
        };
        if arrival.is_none() {
            self.inbox = None;
        }
        arrival
    }
}

/// Ends when the run takes no more.
async fn ended(stop: &mut StopSignal, run_end: Option<Instant>) {
    let end = async {
        match run_end {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        _ = stop.called() => {}
        () = end => {}
    }
}

/// The unfinished arrivals, by place.
#[derive(Debug, Default)]
pub(super) struct Places {
    slots: Vec<Slot>,
    free: Vec<Place>,
    came: u64,
}

/// An arrival, and the how manieth it was.
#[derive(Debug)]
struct Slot {
    arrival: Arrival,
    number: u64,
}

impl Places {
    /// Gives it a place.
    pub(super) fn take_in(&mut self, arrival: Arrival) -> Place {
        let slot = Slot { arrival, number: self.came };
        self.came += 1;
        if let Some(place) = self.free.pop()
            && let Some(free) = self.slots.get_mut(place as usize)
        {
            *free = slot;
            return place;
        }
        // Never more than the window holds.
        let place = Place::try_from(self.slots.len()).unwrap_or(Place::MAX);
        self.slots.push(slot);
        place
    }

    /// Frees the place of one that is finished.
    pub(super) fn forget(&mut self, place: Place) {
        self.free.push(place);
    }

    /// The one that is there.
    pub(super) fn get(&self, place: Place) -> Option<Arrival> {
        self.slots.get(place as usize).map(|slot| slot.arrival)
    }

    /// Its place among those that wait.
    pub(super) fn standing(&self, place: Place) -> Standing {
        self.slots.get(place as usize).map_or_else(Standing::default, |slot| Standing {
            weight: slot.arrival.weight,
            since: Reverse(slot.number),
        })
    }

    /// How many places there are, taken or free.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Whether so many that are unfinished leave room for more.
pub(super) fn have_room(unfinished: usize) -> bool {
    unfinished < WINDOW as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn arrival(id: u32) -> Arrival {
        Arrival { ip: Ipv4Addr::from_bits(id).into(), id, weight: u64::from(id % 3), lanes: None }
    }

    #[test]
    fn places_are_taken_over_and_standings_are_not() {
        let mut places = Places::default();
        let mut unfinished = std::collections::VecDeque::new();
        for id in 0..10_000 {
            let place = places.take_in(arrival(id));
            assert_eq!(places.get(place), Some(arrival(id)));
            unfinished.push_back(place);
            if unfinished.len() == 5 {
                // Not always the oldest.
                let done = if id % 2 == 0 { unfinished.pop_front() } else { unfinished.pop_back() };
                places.forget(done.unwrap());
            }
        }
        assert_eq!(places.len(), 5);
        let (first, second, worse) =
            (places.take_in(arrival(30_000)), places.take_in(arrival(30_003)), places.take_in(arrival(2)));
        assert!(places.standing(first) > places.standing(second), "of equals the one that came first");
        assert!(places.standing(worse) > places.standing(first), "the heavier before all");
    }
}
