//! Brings the lanes' outcomes together, one finished address after the other, and hands the cascade its questions.
//!
//! An address is finished when every lane that was due on it has its outcome. Lanes that closed are not waited for: what
//! they left gets their closing word here, without a message for each, so that a million deferred addresses cost no memory.

use super::outcome::{ErrorBody, Outcome, Part};
use super::questions::{LaneSet, Place, Questions};
use super::source::{Feed, Horizon, WINDOW};
use crate::provider::{ErrorType, Role, Verdict};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What a lane says.
#[derive(Debug)]
pub(super) enum Event {
    /// One look-up has its outcome.
    Outcome { lane: usize, place: Place, outcome: Outcome },
    /// The lane asks nothing any more: every place from `from` on that is due there has this error.
    Closed { lane: usize, from: Place, error: ErrorBody },
}

/// An address of which all that was to be asked has been answered or given up.
#[derive(Debug)]
pub struct Finished {
    /// Its number in the set of indicators.
    pub id: u32,
    /// What each provider said.
    pub parts: Vec<Part>,
}

/// What the assembler knows of a lane.
#[derive(Debug)]
pub(super) struct LaneMeta {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    /// The cascade's hand-over, where the lane is asked about the suspicious only.
    pub(super) feed: Option<Rc<Feed>>,
    pub(super) closed: Option<(Place, ErrorBody)>,
    /// Look-ups that got the closing word.
    pub(super) unasked: u64,
}

/// An address of which something is still due.
#[derive(Debug, Default)]
struct Pending {
    due: LaneSet,
    /// The cascade has been decided.
    cascaded: bool,
    parts: Vec<Part>,
}

/// One run's assembler. Driven by one future; no other writes to it.
pub(super) struct Assembler {
    questions: Rc<Questions>,
    lanes: Vec<LaneMeta>,
    /// Lanes that take the ranked order, and those that the cascade feeds.
    always: LaneSet,
    fed: LaneSet,
    pending: HashMap<Place, Pending>,
    done: Vec<u64>,
    /// Every place below is done.
    base: Place,
    /// Places that the cascade has not seen yet.
    uncascaded: Place,
    horizon: Rc<Horizon>,
    out: mpsc::Sender<Finished>,
}

impl Assembler {
    pub(super) fn new(
        questions: Rc<Questions>,
        lanes: Vec<LaneMeta>,
        horizon: Rc<Horizon>,
        out: mpsc::Sender<Finished>,
    ) -> Self {
        let set = |feeds: bool| {
            lanes
                .iter()
                .enumerate()
                .filter(|(_, lane)| lane.feed.is_some() == feeds)
                .fold(0, |set, (n, _)| set | 1 << n)
        };
        let (always, fed) = (set(false), set(true));
        let done = vec![0; questions.len() as usize / 64 + 1];
        let uncascaded = questions.len();
        Self {
            questions,
            lanes,
            always,
            fed,
            pending: HashMap::new(),
            done,
            base: 0,
            uncascaded,
            horizon,
            out,
        }
    }

    /// Takes events until the lanes are gone. Returns how many look-ups the closing of each lane left.
    pub(super) async fn run(mut self, mut events: mpsc::Receiver<Event>) -> Vec<u64> {
        self.horizon.extend(WINDOW);
        self.seed().await;
        while let Some(event) = events.recv().await {
            match event {
                Event::Outcome { lane, place, outcome } => self.outcome(lane, place, outcome).await,
                Event::Closed { lane, from, error } => self.closed(lane, from, error).await,
            }
            self.advance().await;
        }
        self.finish_rest().await;
        self.lanes.iter().map(|lane| lane.unasked).collect()
    }

    /// What only the cascade's lanes can be asked about has nobody to wait for.
    async fn seed(&mut self) {
        if self.fed == 0 {
            return;
        }
        for place in 0..self.questions.len() {
            if self.questions.lanes(self.always, place) == 0 {
                self.pending.insert(place, Pending::default());
                self.settle(place).await;
            }
        }
        self.advance().await;
    }

    async fn outcome(&mut self, lane: usize, place: Place, outcome: Outcome) {
        let Some(part) = self.part(lane, outcome) else { return };
        self.ensure(place);
        if let Some(pending) = self.pending.get_mut(&place) {
            pending.due &= !(1 << lane);
            pending.parts.push(part);
        }
        self.settle(place).await;
    }

    async fn closed(&mut self, lane: usize, from: Place, error: ErrorBody) {
        let Some(meta) = self.lanes.get_mut(lane) else { return };
        meta.closed = Some((from, error));
        if let Some(feed) = meta.feed.clone() {
            // It told each of those that it had taken; what it had not is still here.
            while let Some(place) = feed.pop() {
                self.give_up(lane, place).await;
            }
            return;
        }
        let bit: LaneSet = 1 << lane;
        let mut left: Vec<Place> = self
            .pending
            .iter()
            .filter(|(place, pending)| **place >= from && pending.due & bit != 0)
            .map(|(p, _)| *p)
            .collect();
        left.sort_unstable();
        for place in left {
            self.give_up(lane, place).await;
        }
    }

    /// The lane's closing word on one address.
    async fn give_up(&mut self, lane: usize, place: Place) {
        let part = self.closing_part(lane);
        if let Some(pending) = self.pending.get_mut(&place) {
            pending.due &= !(1 << lane);
            pending.parts.extend(part);
        }
        self.settle(place).await;
    }

    /// Makes the pending entry of a place that nothing was heard of.
    fn ensure(&mut self, place: Place) {
        if self.pending.contains_key(&place) {
            return;
        }
        let due = self.questions.lanes(self.always, place);
        let closed = self.closed_at(place) & due;
        let parts = lanes_of(closed).filter_map(|lane| self.closing_part(lane)).collect();
        self.pending.insert(place, Pending { due: due & !closed, cascaded: false, parts });
    }

    /// The lanes that will not be heard of this place.
    fn closed_at(&self, place: Place) -> LaneSet {
        let is_closed = |meta: &LaneMeta| meta.closed.as_ref().is_some_and(|(from, _)| place >= *from);
        self.lanes.iter().enumerate().filter(|(_, meta)| is_closed(meta)).fold(0, |set, (n, _)| set | 1 << n)
    }

    /// Nothing due: on to the cascade, then out.
    async fn settle(&mut self, place: Place) {
        self.cascade(place);
        if self.pending.get(&place).is_some_and(|pending| pending.due == 0)
            && let Some(pending) = self.pending.remove(&place)
            && let (Some(word), Some(id)) = (self.done.get_mut(place as usize / 64), self.questions.id(place))
        {
            *word |= 1 << (place % 64);
            let mut parts = pending.parts;
            parts.extend(self.questions.said(place));
            // A receiver that is gone has its own reason; the lanes hear of it by the stop signal.
            let _ = self.out.send(Finished { id, parts }).await;
        }
    }

    /// Asks the cascade's lanes, unless the others cleared the address.
    fn cascade(&mut self, place: Place) {
        let Some(pending) =
            self.pending.get_mut(&place).filter(|pending| pending.due == 0 && !pending.cascaded)
        else {
            return;
        };
        pending.cascaded = true;
        self.uncascaded = self.uncascaded.saturating_sub(1);
        if self.fed == 0 {
            return;
        }
        let verdict = worst(&pending.parts, self.questions.listed(place));
        if verdict == Some(Verdict::Benign) {
            return;
        }
        let asked = self.questions.lanes(self.fed, place);
        let closed = self.closed_at(place) & asked;
        let parts: Vec<_> = lanes_of(closed).filter_map(|lane| self.closing_part(lane)).collect();
        if let Some(pending) = self.pending.get_mut(&place) {
            pending.parts.extend(parts);
            pending.due = asked & !closed;
        }
        for lane in lanes_of(asked & !closed) {
            if let Some(feed) = self.lanes.get(lane).and_then(|meta| meta.feed.as_ref()) {
                feed.push(place, verdict);
            }
        }
    }

    /// Moves the base over what is done, gives up what nobody will speak of, and lets the lanes follow.
    async fn advance(&mut self) {
        while self.base < self.questions.len() {
            let base = self.base;
            if !self.is_done(base) {
                let open = !self.closed_at(base);
                if self.pending.contains_key(&base) || self.questions.lanes(self.always & open, base) != 0 {
                    break;
                }
                self.ensure(base);
                self.settle(base).await;
                continue;
            }
            self.base += 1;
        }
        self.horizon.extend(self.base.saturating_add(WINDOW));
        if self.uncascaded == 0 {
            self.lanes.iter().filter_map(|lane| lane.feed.as_ref()).for_each(|feed| feed.finish());
        }
    }

    /// Whether every lane's outcome for this place is out.
    fn is_done(&self, place: Place) -> bool {
        self.done.get(place as usize / 64).is_some_and(|word| word & (1 << (place % 64)) != 0)
    }

    /// The lanes are gone. Nothing should be left; if a bug ended a lane early, its addresses still get their records.
    async fn finish_rest(&mut self) {
        for lane in 0..self.lanes.len() {
            let error =
                ErrorBody::new(ErrorType::Internal, "a bug ended this provider's look-ups; please report it");
            if let Some(meta) = self.lanes.get_mut(lane) {
                meta.closed.get_or_insert((0, error));
            }
        }
        for place in self.base..self.questions.len() {
            if self.is_done(place) {
                continue;
            }
            self.ensure(place);
            let due = self.pending.get(&place).map_or(0, |pending| pending.due);
            let parts: Vec<_> = lanes_of(due).filter_map(|lane| self.closing_part(lane)).collect();
            if let Some(pending) = self.pending.get_mut(&place) {
                pending.due = 0;
                pending.parts.extend(parts);
            }
            self.settle(place).await;
        }
    }

    fn part(&self, lane: usize, outcome: Outcome) -> Option<Part> {
        let meta = self.lanes.get(lane)?;
        Some(Part { provider: Arc::clone(&meta.name), role: meta.role, outcome })
    }

    fn closing_part(&mut self, lane: usize) -> Option<Part> {
        let meta = self.lanes.get_mut(lane)?;
        let (_, error) = meta.closed.clone()?;
        meta.unasked += 1;
        self.part(lane, Outcome::unasked(error))
    }
}

fn lanes_of(set: LaneSet) -> impl Iterator<Item = usize> {
    (0..LaneSet::BITS as usize).filter(move |lane| set & (1 << lane) != 0)
}

/// The worst verdict of the reputation providers that answered and of the lists, malicious first; benign only where
/// nobody says worse, and an asked provider's silence is not a word for the address.
fn worst(parts: &[Part], listed: Option<Verdict>) -> Option<Verdict> {
    let weight = |verdict: Verdict| match verdict {
        Verdict::Malicious => 0,
        Verdict::Suspicious => 1,
        Verdict::Benign => 2,
        Verdict::Unknown => 3,
    };
    let reputation = || parts.iter().filter(|part| part.role == Role::Reputation);
    let failed = reputation().any(|part| matches!(part.outcome, Outcome::Failed { .. }));
    let said = reputation().filter_map(|part| match &part.outcome {
        Outcome::Answered { answer, .. } => Some(answer.verdict),
        Outcome::Failed { .. } => None,
    });
    let worst = said.chain(listed).min_by_key(|verdict| weight(*verdict));
    if failed && worst == Some(Verdict::Benign) { Some(Verdict::Unknown) } else { worst }
}
