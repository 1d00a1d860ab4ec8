//! From where a lane takes its next look-up.

use super::questions::Place;
use crate::provider::Verdict;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tokio::sync::Notify;

/// How far a lane may be ahead of the slowest one, in addresses: half-answered records are held in memory until the others
/// have answered too, so this bounds them (at about 1 kB each). Larger than the default `--limit`.
pub(super) const WINDOW: Place = 16_384;

/// How far lanes may go: moved on as records are finished.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    end: Cell<Place>,
    moved: Notify,
}

impl Horizon {
    /// Lets lanes start look-ups below `end`.
    pub(super) fn extend(&self, end: Place) {
        if end > self.end.get() {
            self.end.set(end);
            self.moved.notify_waiters();
        }
    }

    pub(super) fn end(&self) -> Place {
        self.end.get()
    }

    /// Ends when the horizon has moved since this future was made.
    pub(super) async fn moved(&self) {
        self.moved.notified().await;
    }
}

/// How urgent an address is among those that wait; the greatest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Standing {
    pub(super) weight: u64,
    pub(super) since: Reverse<u64>,
}

/// An address as it is handed over: what others said of it, its rank, its place.
type Handed = (u8, Standing, Place);

/// The look-ups that are handed to a lane: those that the cascade leaves to one with `ask = "suspicious"`, and what
/// arrives. Worst verdict first, then by rank.
#[derive(Debug, Default)]
pub(super) struct Feed {
    heap: RefCell<BinaryHeap<Handed>>,
    /// The one taken last.
    last: Cell<Option<Handed>>,
    finished: Cell<bool>,
    changed: Notify,
}

impl Feed {
    /// Hands over an address of which the others, if they were asked, said `verdict`.
    pub(super) fn push(&self, place: Place, standing: Standing, verdict: Option<Verdict>) {
        let weight = match verdict {
            Some(Verdict::Malicious) => 3,
            Some(Verdict::Suspicious) => 2,
            Some(Verdict::Unknown | Verdict::Benign) => 1,
            None => 0,
        };
        self.heap.borrow_mut().push((weight, standing, place));
        self.changed.notify_waiters();
    }

    pub(super) fn pop(&self) -> Option<Place> {
        self.last.set(self.heap.borrow_mut().pop());
        self.last.get().map(|(_, _, place)| place)
    }

    /// Takes back the one that was taken last, so that a worse one that comes meanwhile goes before it. False where it
    /// was another.
    pub(super) fn put_back(&self, place: Place) -> bool {
        let is_last = |handed: &Handed| handed.2 == place;
        let back = self.last.take().filter(is_last);
        self.heap.borrow_mut().extend(back);
        back.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.borrow().is_empty()
    }

    /// No more will come.
    pub(super) fn finish(&self) {
        self.finished.set(true);
        self.changed.notify_waiters();
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished.get()
    }

    /// Ends when something has changed since this future was made.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}
