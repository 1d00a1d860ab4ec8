//! What one request asks about: an address, or a batch of them from the first attempt to the last.

use super::outcome::ErrorBody;
use super::questions::Place;
use crate::provider::{ErrorType, Failure, Reading};
use tokio::time::Instant;

/// Addresses that are asked about together. Most hold one; attempts, retries and the deadline are those of all.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    places: Vec<Place>,
    /// Exchanges made.
    pub(super) attempts: u32,
    /// Of them, those for which there was a connection: only they left this host.
    pub(super) left: u32,
    /// Of them, those made again after a failure (a 429 is none).
    pub(super) retries: u32,
    /// When the first one left: the deadline runs from here.
    pub(super) first: Option<Instant>,
    /// Why the last one brought no answer, while the next is waited for.
    pub(super) last: Option<ErrorBody>,
}

impl Batch {
    /// One address.
    pub(super) fn one(place: Place) -> Self {
        Self::of(vec![place])
    }

    /// Several, in ranked order; at least one.
    pub(super) fn of(places: Vec<Place>) -> Self {
        Self { places, attempts: 0, left: 0, retries: 0, first: None, last: None }
    }

    /// How many addresses it holds.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it is asked in the provider's bulk form.
    pub(super) fn is_bulk(&self) -> bool {
        self.len() > 1
    }

    /// Its places in the ranked order.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The first of them: batches go by it.
    pub(super) fn rank(&self) -> Place {
        self.places.first().copied().unwrap_or(Place::MAX)
    }

    /// Some of its addresses, with what was tried on all of them.
    pub(super) fn part(&self, places: Vec<Place>) -> Self {
        Self { places, last: self.last.clone(), ..*self }
    }

    /// Takes off what is beyond the first `most` addresses.
    pub(super) fn split_off(&mut self, most: usize) -> Option<Self> {
        (self.len() > most).then(|| {
            let rest = self.places.split_off(most);
            self.part(rest)
        })
    }
}

/// The one failure that a reply is for all that were asked; `None` where anything was answered, or where they differ.
pub(super) fn whole_failure(readings: &[Reading]) -> Option<&Failure> {
    let Some(Reading::Failure(first)) = readings.first() else { return None };
    let same = |reading: &Reading| matches!(reading, Reading::Failure(failure) if failure == first);
    readings.iter().all(same).then_some(first)
}

/// Whether asking about the halves of a batch can help: one address in it may be what the provider does not take, or they
/// may be too many at once. What may be tried again as it is, is; what concerns the key or the lane is no matter of size.
pub(super) fn is_for_halves(failure: &Failure) -> bool {
    !failure.retry
        && matches!(
            failure.error,
            ErrorType::InvalidRequest | ErrorType::ResponseTooLarge | ErrorType::InvalidResponse
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Answer, Reach};

    #[test]
    fn a_part_keeps_what_was_tried() {
        let mut batch = Batch { attempts: 2, retries: 1, ..Batch::of(vec![3, 5, 8]) };
        let rest = batch.split_off(2).unwrap();
        assert_eq!((batch.places(), rest.places()), (&[3, 5][..], &[8][..]));
        assert_eq!((rest.attempts, rest.retries, rest.rank()), (2, 1, 8));
        assert!(batch.is_bulk() && !rest.is_bulk());
        assert!(batch.split_off(2).is_none());
    }

    #[test]
    fn a_failure_is_whole_when_it_is_everybodys() {
        let failure = |message: &str| {
            Reading::Failure(Failure {
                error: ErrorType::InvalidRequest,
                reach: Reach::Lookup,
                message: message.into(),
                retry: false,
            })
        };
        assert!(whole_failure(&[failure("a"), failure("a")]).is_some_and(is_for_halves));
        assert!(whole_failure(&[failure("a"), failure("b")]).is_none());
        assert!(whole_failure(&[failure("a"), Reading::Answer(Box::new(Answer::not_found()))]).is_none());
        assert!(whole_failure(&[]).is_none());
    }
}
