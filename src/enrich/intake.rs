//! From the ranked order, or a feed, to the next request of a lane: one address, or a batch of them.
//!
//! A lane whose provider has a bulk form fills batches up to their size. A partial one leaves when nothing more can come,
//! when the feed has brought nothing more for [`LINGER`] or its first address has waited for [`PATIENCE`], or, where the
//! horizon holds the lane back, when the slowest lane has come to the batch's first address: no record waits for a batch
//! to fill.

use super::batch::Batch;
use super::memory::Ahead;
use super::questions::{Place, Questions};
use super::source::{Feed, Horizon, WINDOW};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a partial batch waits for what the feed may still bring: a blink for a person, and many answers of the lanes
/// before it.
const LINGER: Duration = Duration::from_millis(50);

/// How long it waits in all: what trickles in without a pause would keep a batch of ten thousand for minutes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where look-ups come from.
#[derive(Debug)]
pub(super) enum Source {
    /// The ranked order, from `next` on.
    Ranked { next: Place },
    /// What is handed over: by the cascade, or as it arrives.
    Fed(Rc<Feed>),
}

/// A batch that waits for its next attempt, soonest first.
#[derive(Debug)]
struct Waiting {
    due: Instant,
    batch: Batch,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.batch.rank()).cmp(&(other.due, other.batch.rank()))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// What a lane has before it. Driven by its lane alone.
#[derive(Debug)]
pub(super) struct Intake {
    lane: usize,
    source: Source,
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Taken from the source and not yet sent, in ranked order; never more than a batch.
    filling: Vec<Place>,
    /// When the first and the last of them came.
    filled: Option<(Instant, Instant)>,
    /// Most addresses of one request.
    size: usize,
    questions: Rc<Questions>,
    horizon: Rc<Horizon>,
    /// When it is too late to wait for a fuller batch.
    last_call: Option<Instant>,
    /// Whether places are looked up in the cache before they are asked about.
    checks: bool,
    /// Those that were, and have to be asked about.
    checked: VecDeque<Place>,
    /// How many are being looked up.
    out: usize,
}

impl Intake {
    /// `size`: most addresses of one request, bounded here by how far lanes may be apart.
    pub(super) fn new(
        lane: usize,
        source: Source,
        size: usize,
        questions: Rc<Questions>,
        horizon: Rc<Horizon>,
        last_call: Option<Instant>,
    ) -> Self {
        Self {
            lane,
            source,
            waiting: BinaryHeap::new(),
            filling: Vec::new(),
            filled: None,
            size: size.clamp(1, WINDOW as usize),
            questions,
            horizon,
            last_call,
            checks: false,
            checked: VecDeque::new(),
            out: 0,
        }
    }

    /// The same, where every place goes through [`take_to_check`](Self::take_to_check) first.
    pub(super) fn checking(self, checks: bool) -> Self {
        Self { checks, ..self }
    }

    /// The next places to be looked up in the cache; none while enough are ready. Each comes back by
    /// [`back`](Self::back), and by [`check_in`](Self::check_in) if it has to be asked about.
    pub(super) fn take_to_check(&mut self, ahead: Ahead) -> Vec<Place> {
        let (block, enough) = match &self.source {
            Source::Ranked { .. } => (ahead.ranked, ahead.ranked / 2),
            Source::Fed(_) => (ahead.fed, 0),
        };
        if self.checked.len() > enough {
            return Vec::new();
        }
        let places: Vec<Place> = std::iter::from_fn(|| self.next_of_source()).take(block).collect();
        self.out += places.len();
        places
    }

    /// So many more are being looked up.
    pub(super) const fn out(&mut self, n: usize) {
        self.out += n;
    }

    /// So many were looked up.
    pub(super) const fn back(&mut self, n: usize) {
        self.out = self.out.saturating_sub(n);
    }

    /// A place that the cache has no answer for.
    pub(super) fn check_in(&mut self, place: Place) {
        self.checked.push_back(place);
    }

    /// The next batch that may leave, of at most `room` addresses: one that waited its time first, then the next of the
    /// source.
    pub(super) fn next(&mut self, now: Instant, room: usize) -> Option<Batch> {
        let most = self.size.min(room.max(1));
        if self.waiting.peek().is_some_and(|Reverse(next)| next.due <= now) {
            let mut batch = self.waiting.pop().map(|Reverse(next)| next.batch)?;
            if let Some(rest) = batch.split_off(most) {
                self.again(rest, now);
            }
            return Some(batch);
        }
        if self.size == 1 && self.filling.is_empty() {
            return self.pull().map(Batch::one);
        }
        while self.filling.len() < most
            && let Some(place) = self.pull()
        {
            let first = self.filled.filter(|_| !self.filling.is_empty()).map_or(now, |(first, _)| first);
            self.filling.push(place);
            self.filled = Some((first, now));
        }
        if self.filling.is_empty() || !(self.filling.len() >= most || self.is_time(now)) {
            return None;
        }
        let rest = self.filling.split_off(most.min(self.filling.len()));
        Some(Batch::of(std::mem::replace(&mut self.filling, rest)))
    }

    /// The next address to ask about.
    fn pull(&mut self) -> Option<Place> {
        if self.checks { self.checked.pop_front() } else { self.next_of_source() }
    }

    /// The next address of the source that this lane is asked about.
    fn next_of_source(&mut self) -> Option<Place> {
        match &mut self.source {
            Source::Fed(feed) => feed.pop(),
            Source::Ranked { next } => {
                let end = self.questions.len().min(self.horizon.end());
                while *next < end {
                    let place = *next;
                    *next += 1;
                    if self.questions.asks(self.lane, place) {
                        return Some(place);
                    }
                }
                None
            }
        }
    }

    /// Whether a partial batch leaves now.
    fn is_time(&self, now: Instant) -> bool {
        if self.has_no_source() || self.last_call.is_some_and(|last| last <= now) {
            return true;
        }
        match &self.source {
            Source::Fed(_) => self.leaves().is_none_or(|at| at <= now),
            Source::Ranked { .. } => self
                .filling
                .first()
                .is_some_and(|&first| self.horizon.end() > first.saturating_add(WINDOW - 1)),
        }
    }

    /// When a partial batch from a feed leaves, if nothing more comes.
    fn leaves(&self) -> Option<Instant> {
        self.filled.map(|(first, last)| (last + LINGER).min(first + PATIENCE))
    }

    /// Whether the source will give nothing more.
    fn has_no_source(&self) -> bool {
        let is_checked = self.checked.is_empty() && self.out == 0;
        is_checked
            && match &self.source {
                Source::Ranked { next } => *next >= self.questions.len(),
                Source::Fed(feed) => feed.is_finished() && feed.is_empty(),
            }
    }

    /// Whether anything was taken from the source and waits.
    pub(super) fn holds_some(&self) -> bool {
        !(self.waiting.is_empty() && self.filling.is_empty() && self.checked.is_empty())
    }

    /// Whether anything is left to send, now or later.
    pub(super) fn has_more(&self) -> bool {
        !(self.waiting.is_empty() && self.filling.is_empty() && self.has_no_source())
    }

    /// When something that is here already may leave; `None` where that depends on what comes in.
    pub(super) fn due(&self) -> Option<Instant> {
        let waiting = self.waiting.peek().map(|Reverse(next)| next.due);
        let partial = match &self.source {
            _ if self.filling.is_empty() => None,
            Source::Fed(_) => self.leaves(),
            Source::Ranked { .. } => self.last_call,
        };
        [waiting, partial].into_iter().flatten().min()
    }

    /// To be tried again, not before `due`. One that a feed gave and that has not left is the feed's again.
    pub(super) fn again(&mut self, batch: Batch, due: Instant) {
        if let (Source::Fed(feed), [place], 0) = (&self.source, batch.places(), batch.attempts)
            && !self.checks
            && feed.put_back(*place)
        {
            return;
        }
        self.waiting.push(Reverse(Waiting { due, batch }));
    }

    /// In two halves, at once: an odd address out is found in as many steps as the batch's size has binary digits.
    pub(super) fn halves(&mut self, mut batch: Batch, due: Instant) {
        let half = batch.len().div_ceil(2);
        if let Some(rest) = batch.split_off(half) {
            self.again(rest, due);
        }
        self.again(batch, due);
    }

    /// From here on one address at a time.
    pub(super) fn single_out(&mut self) {
        self.size = 1;
    }

    /// All that was taken from the source and waits: it is given up.
    pub(super) fn drain(&mut self) -> Vec<Batch> {
        let checked = std::mem::take(&mut self.checked);
        let filling = std::mem::take(&mut self.filling).into_iter().chain(checked).map(Batch::one);
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|Reverse(waiting)| waiting.batch);
        filling.chain(waiting).collect()
    }

    /// From which place of the ranked order on nothing was taken.
    pub(super) fn untaken(&self) -> Place {
        match &self.source {
            Source::Ranked { next } => *next,
            Source::Fed(_) => 0,
        }
    }

    /// Ends when the source may have more.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + use<> {
        let (feed, horizon) = match &self.source {
            Source::Fed(feed) => (Some(Rc::clone(feed)), None),
            Source::Ranked { .. } => (None, Some(Rc::clone(&self.horizon))),
        };
        async move {
            match (feed, horizon) {
                (Some(feed), _) => feed.changed().await,
                (None, Some(horizon)) => horizon.moved().await,
                (None, None) => std::future::pending().await,
            }
        }
    }
}
