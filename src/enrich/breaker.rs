//! The lane's breaker: stops asking a provider that fails, and tries again with one probe.
//!
//! | state | event | next |
//! |---|---|---|
//! | closed | `failures` of the last `window` exchanges failed | open, until now + `open_for` |
//! | open | `open_for` has passed | half-open: one probe |
//! | half-open | the probe is answered | closed, nothing remembered |
//! | half-open | the probe fails | open again |
//! | open | one that was in flight is answered | closed, nothing remembered |
//!
//! A 429 is no failure, and neither is an answer that says no: both show a provider that works.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct BreakerSettings {
    /// Failures among the last `window` exchanges that open it.
    pub failures: usize,
    /// Exchanges remembered.
    pub window: usize,
    /// How long it stays open before the probe.
    pub open_for: Duration,
}

/// What the breaker says to one more request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// Send.
    Closed,
    /// Send this one alone, and tell what came of it.
    Probe,
    /// Not before this instant.
    Open(Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open(Instant),
    HalfOpen,
}

/// One lane's breaker. Pure: `now` comes in.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    state: State,
    recent: VecDeque<bool>,
    /// Openings since it was last closed.
    openings: u32,
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings) -> Self {
        Self { settings, state: State::Closed, recent: VecDeque::new(), openings: 0 }
    }

    /// Whether a request may leave. Does not change anything: [`Breaker::sent`] does.
    pub(super) fn gate(&self, now: Instant) -> Gate {
        match self.state {
            State::Closed => Gate::Closed,
            State::Open(until) if until > now => Gate::Open(until),
            State::Open(_) => Gate::Probe,
            State::HalfOpen => Gate::Open(now + self.settings.open_for),
        }
    }

    /// A request that [`Breaker::gate`] let through has left.
    pub(super) fn sent(&mut self) {
        if let State::Open(_) = self.state {
            self.state = State::HalfOpen;
        }
    }

    /// An exchange ended. Returns whether this opened the breaker.
    pub(super) fn settle(&mut self, works: bool, now: Instant) -> bool {
        match (self.state, works) {
            (State::HalfOpen, false) => self.open(now),
            // The probe, or one of those in flight when it opened: an answer is an answer.
            (State::HalfOpen | State::Open(_), true) => {
                self.close();
                false
            }
            (State::Open(_), false) => false,
            (State::Closed, _) => {
                self.recent.push_back(works);
                if self.recent.len() > self.settings.window {
                    self.recent.pop_front();
                }
                let failed = self.recent.iter().filter(|works| !**works).count();
                failed >= self.settings.failures.max(1) && self.open(now)
            }
        }
    }

    /// The probe was refused with a 429, or never sent: neither a failure nor an answer. The next request probes again.
    pub(super) fn abandon_probe(&mut self, now: Instant) {
        if self.state == State::HalfOpen {
            self.state = State::Open(now);
        }
    }

    /// Whether a probe has failed since it was last closed.
    pub(super) fn is_reopened(&self) -> bool {
        self.openings > 1
    }

    /// Failures and exchanges remembered, for the message.
    pub(super) fn tally(&self) -> (usize, usize) {
        (self.recent.iter().filter(|works| !**works).count(), self.recent.len())
    }

    /// The word for the summary.
    pub(super) fn word(&self) -> &'static str {
        match self.state {
            State::Closed => "closed",
            State::Open(_) => "open",
            State::HalfOpen => "half-open",
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.recent.clear();
        self.openings = 0;
    }

    fn open(&mut self, now: Instant) -> bool {
        self.state = State::Open(now + self.settings.open_for);
        self.openings += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BreakerSettings =
        BreakerSettings { failures: 3, window: 5, open_for: Duration::from_secs(30) };

    #[test]
    fn opens_on_its_share_of_failures_and_closes_on_an_answered_probe() {
        let start = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for works in [true, false, true, false] {
            assert!(!breaker.settle(works, start));
        }
        assert!(breaker.settle(false, start));
        assert_eq!(breaker.gate(start), Gate::Open(start + SETTINGS.open_for));
        assert!(!breaker.is_reopened());

        let later = start + SETTINGS.open_for;
        assert_eq!(breaker.gate(later), Gate::Probe);
        breaker.sent();
        assert!(matches!(breaker.gate(later), Gate::Open(_)), "one probe at a time");
        breaker.settle(true, later);
        assert_eq!(breaker.gate(later), Gate::Closed);
    }

    #[test]
    fn a_failed_probe_opens_it_again_and_an_answer_closes_it() {
        let start = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for _ in 0..3 {
            breaker.settle(false, start);
        }
        breaker.sent();
        assert!(breaker.settle(false, start));
        assert_eq!((breaker.word(), breaker.is_reopened()), ("open", true));
        // An answer to a request that was in flight when it opened.
        assert!(!breaker.settle(true, start));
        assert_eq!((breaker.word(), breaker.is_reopened()), ("closed", false));
    }

    #[test]
    fn old_failures_are_forgotten() {
        let start = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for works in [false, false, true, true, true, true, true, false, false] {
            assert!(!breaker.settle(works, start));
        }
        assert_eq!(breaker.gate(start), Gate::Closed);
    }

    #[test]
    fn a_refused_probe_is_tried_again() {
        let start = Instant::now();
        let mut breaker = Breaker::new(BreakerSettings { failures: 1, window: 1, open_for: Duration::ZERO });
        breaker.settle(false, start);
        breaker.sent();
        breaker.abandon_probe(start);
        assert_eq!(breaker.gate(start), Gate::Probe);
    }
}
