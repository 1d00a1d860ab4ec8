//! Brings the lanes' outcomes together, one finished address after the other, and hands out what is not taken from the
//! ranked order: the cascade's questions, and addresses as they arrive.
//!
//! An address is finished when every lane that was due on it has its outcome. Lanes that closed are not waited for: what
//! they left gets their closing word here, without a message for each, so that a million deferred addresses cost no memory.

use super::arrivals::{Arrival, Arrivals, have_room};
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
    /// Its number in the set of indicators, or the one that it arrived with.
    pub id: u32,
    /// What each provider said.
    pub parts: Vec<Part>,
}

/// What the assembler knows of a lane.
#[derive(Debug)]
pub(super) struct LaneMeta {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    /// Whether it is asked about the suspicious only.
    pub(super) cascades: bool,
    /// The hand-over; none where the lane takes the ranked order by itself.
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
    /// Lanes that are asked about every address, and those that are asked after them.
    always: LaneSet,
    after: LaneSet,
    pending: HashMap<Place, Pending>,
    done: Vec<u64>,
    /// Every place below is done.
    base: Place,
    /// Places that the cascade has not seen yet.
    uncascaded: Place,
    arrivals: Arrivals,
    horizon: Rc<Horizon>,
    out: mpsc::Sender<Finished>,
}

impl Assembler {
    pub(super) fn new(
        questions: Rc<Questions>,
        lanes: Vec<LaneMeta>,
        arrivals: Arrivals,
        horizon: Rc<Horizon>,
        out: mpsc::Sender<Finished>,
    ) -> Self {
        let set = |cascades: bool| {
            lanes
                .iter()
                .enumerate()
                .filter(|(_, lane)| lane.cascades == cascades)
                .fold(0, |set, (n, _)| set | 1 << n)
        };
        let (always, after) = (set(false), set(true));
        let done = vec![0; questions.len().div_ceil(64) as usize];
        let uncascaded = questions.len();
        Self {
            questions,
            lanes,
            always,
            after,
            pending: HashMap::new(),
            done,
            base: 0,
            uncascaded,
            arrivals,
            horizon,
            out,
        }
    }

    /// Takes events and arrivals until the lanes are gone, and arrivals to their end. Returns how many look-ups the
    /// closing of each lane left.
    pub(super) async fn run(mut self, mut events: mpsc::Receiver<Event>) -> Vec<u64> {
        self.horizon.extend(WINDOW);
        self.seed().await;
        loop {
            let takes = !self.arrivals.is_over() && have_room(self.pending.len());
            // What has landed goes first: it makes room.
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(Event::Outcome { lane, place, outcome }) => self.outcome(lane, place, outcome).await,
                    Some(Event::Closed { lane, from, error }) => self.closed(lane, from, error).await,
                    None => break,
                },
                arrival = self.arrivals.next(), if takes => self.arrived(arrival).await,
            }
            self.advance().await;
        }
        self.finish_rest().await;
        // No lane is left to ask: each has its closing word.
        while let Some(arrival) = self.arrivals.next().await {
            self.arrived(Some(arrival)).await;
        }
        self.lanes.iter().map(|lane| lane.unasked).collect()
    }

    /// Hands an arrival to the lanes that are asked about it. None is their end.
    async fn arrived(&mut self, arrival: Option<Arrival>) {
        let Some(arrival) = arrival else { return self.feeds(self.always).for_each(Feed::finish) };
        let Some(place) = self.questions.take_in(arrival) else { return };
        // Lanes that are named are no cascade's.
        let cascaded = arrival.lanes.is_some();
        self.uncascaded += Place::from(!cascaded);
        self.pending.insert(place, Pending { due: 0, cascaded, parts: Vec::new() });
        self.ask(place, arrival.lanes.unwrap_or(self.always), None);
        self.settle(place).await;
    }

    /// Hands a place over to those of `lanes` that take it; closed ones have their word at once.
    fn ask(&mut self, place: Place, lanes: LaneSet, verdict: Option<Verdict>) {
        let asked = self.questions.lanes(lanes, place);
        let closed = self.closed_at(place) & asked;
        let parts: Vec<_> = lanes_of(closed).filter_map(|lane| self.closing_part(lane)).collect();
        if let Some(pending) = self.pending.get_mut(&place) {
            pending.parts.extend(parts);
            pending.due = asked & !closed;
        }
        let standing = self.questions.standing(place);
        self.feeds(asked & !closed).for_each(|feed| feed.push(place, standing, verdict));
    }

    /// The hand-overs of those lanes.
    fn feeds(&self, lanes: LaneSet) -> impl Iterator<Item = &Feed> {
        lanes_of(lanes).filter_map(|lane| self.lanes.get(lane)?.feed.as_deref())
    }

    /// What only the cascade's lanes can be asked about has nobody to wait for.
    async fn seed(&mut self) {
        if self.after == 0 {
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
            && let Some(id) = self.questions.id(place)
        {
            if let Some(word) = self.done.get_mut(place as usize / 64) {
                *word |= 1 << (place % 64);
            }
            let mut parts = pending.parts;
            parts.extend(self.questions.said(place));
            self.questions.forget(place);
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
        if self.after == 0 {
            return;
        }
        let verdict = worst(&pending.parts, self.questions.listed(place));
        if verdict != Some(Verdict::Benign) {
            self.ask(place, self.after, verdict);
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
        if self.uncascaded == 0 && self.arrivals.is_over() {
            self.feeds(self.after).for_each(Feed::finish);
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
        // Those beyond the ranked order arrived.
        let ranked = self.questions.len();
        let arrived: Vec<Place> = self.pending.keys().copied().filter(|&place| place >= ranked).collect();
        for place in (self.base..ranked).chain(arrived) {
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
