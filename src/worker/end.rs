//! What becomes of a task by the outcome of its look-up. Pure.

use crate::enrich::outcome::{CacheUse, ErrorBody, Outcome};
use crate::provider::ErrorType;
use jiff::Timestamp;
use rand::{Rng, RngExt as _};
use std::time::Duration;

/// Attempts of a task that are made in vain before it is given up.
pub const MOST_ATTEMPTS: u32 = 5;

/// The wait after the first vain attempt; four times as long after each further one: half a minute, two, eight, half an
/// hour. A fault that lasts longer than that needs a person.
const FIRST_WAIT: Duration = Duration::from_secs(30);

/// The end of a task's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Ended, with its answer, in one transaction: nothing is left to do.
    Booked,
    /// Answered from the store; the task is still to be ended.
    Answered,
    /// Not asked: it goes back, and no attempt is counted. Until when, where that is known.
    Later(Option<Timestamp>),
    /// The run ended before its turn, or the lane for a reason that is not the task's: it goes back at once.
    Back,
    /// Asked in vain; to be tried again after this wait.
    Again(Duration),
    /// Given up.
    Dead,
}

/// The end of a task's turn: `failed` attempts were made in vain before, and `is_over` says that the run's time is.
pub(super) fn end(outcome: &Outcome, failed: u32, is_over: bool, rng: &mut impl Rng) -> End {
    let (error, attempts) = match outcome {
        Outcome::Answered { cache: CacheUse::Miss, .. } => return End::Booked,
        Outcome::Answered { .. } => return End::Answered,
        Outcome::Failed { error, attempts, .. } => (error, *attempts),
    };
    match error.error {
        ErrorType::RateLimited
        | ErrorType::QuotaExhausted
        | ErrorType::BudgetExhausted
        | ErrorType::CircuitOpen
        | ErrorType::Offline => End::Later(error.retry_at),
        // Nobody was asked, because the provider cannot be reached at all.
        ErrorType::Connection if attempts == 0 => End::Later(error.retry_at),
        // A key that is refused is no task's fault.
        ErrorType::Cancelled | ErrorType::Unauthorized => End::Back,
        ErrorType::Deadline if attempts == 0 => End::Back,
        // The attempt was cut short with the run.
        ErrorType::Deadline | ErrorType::Timeout if is_over => End::Back,
        ErrorType::InvalidRequest => End::Dead,
        ErrorType::Timeout
        | ErrorType::Deadline
        | ErrorType::Connection
        | ErrorType::Tls
        | ErrorType::ServerError
        | ErrorType::Internal => {
            if failed + 1 < MOST_ATTEMPTS {
                End::Again(wait(failed, rng))
            } else {
                End::Dead
            }
        }
        // Another's failure has closed the lane.
        _ if attempts == 0 => End::Back,
        ErrorType::Forbidden | ErrorType::InvalidResponse | ErrorType::ResponseTooLarge => End::Dead,
    }
}

/// Whether an outcome shows that the lane has closed: a look-up that was not sent, for a reason that is not its own.
pub(super) fn shows_closing(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { error: ErrorBody { error, .. }, attempts: 0, .. } => {
            !matches!(error, ErrorType::InvalidRequest | ErrorType::Internal)
        }
        Outcome::Failed { .. } | Outcome::Answered { .. } => false,
    }
}

/// Between one and one and a half times as long as it must be, so that what failed together does not come back together.
fn wait(failed: u32, rng: &mut impl Rng) -> Duration {
    FIRST_WAIT.saturating_mul(4_u32.saturating_pow(failed)).mul_f64(rng.random_range(1.0..=1.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Answer;
    use rand::SeedableRng as _;
    use rand::rngs::SmallRng;

    fn answered(cache: CacheUse) -> Outcome {
        Outcome::Answered {
            answer: Box::new(Answer::not_found()),
            cache,
            fetched_at: Timestamp::UNIX_EPOCH,
            attempts: 1,
            latency: Duration::ZERO,
            raw: None,
        }
    }

    fn failed(error: ErrorType, attempts: u32) -> Outcome {
        let error = ErrorBody::new(error, "").retry(Timestamp::UNIX_EPOCH, Duration::ZERO);
        Outcome::Failed { error, attempts, latency: Duration::ZERO }
    }

    fn of(outcome: &Outcome, before: u32, is_over: bool) -> End {
        end(outcome, before, is_over, &mut SmallRng::seed_from_u64(1))
    }

    #[test]
    fn answers_end_a_task_and_waits_cost_it_no_attempt() {
        assert_eq!(of(&answered(CacheUse::Miss), 0, false), End::Booked);
        for cache in [CacheUse::Hit, CacheUse::Stale, CacheUse::Collapsed] {
            assert_eq!(of(&answered(cache), 0, false), End::Answered);
        }
        assert!(matches!(of(&failed(ErrorType::Connection, 0), 4, false), End::Later(Some(_))));
        for error in [ErrorType::RateLimited, ErrorType::QuotaExhausted, ErrorType::CircuitOpen] {
            for (attempts, before) in [(0, 0), (1, 9)] {
                assert_eq!(
                    of(&failed(error, attempts), before, false),
                    End::Later(Some(Timestamp::UNIX_EPOCH))
                );
            }
        }
        for (error, attempts, is_over) in [
            (ErrorType::Cancelled, 1, false),
            (ErrorType::Unauthorized, 1, false),
            (ErrorType::Deadline, 0, false),
            (ErrorType::Deadline, 1, true),
            (ErrorType::Timeout, 1, true),
            (ErrorType::Forbidden, 0, false),
            (ErrorType::InvalidResponse, 0, false),
        ] {
            assert_eq!(of(&failed(error, attempts), 4, is_over), End::Back, "{error:?}");
        }
    }

    #[test]
    fn what_fails_for_a_while_is_tried_five_times_at_growing_distances() {
        let waits: Vec<u64> = (0..4)
            .map(|before| match of(&failed(ErrorType::ServerError, 2), before, false) {
                End::Again(wait) => wait.as_secs(),
                other => panic!("{other:?}"),
            })
            .collect();
        for (wait, least) in waits.iter().zip([30, 120, 480, 1_920]) {
            assert!((least..=least * 3 / 2).contains(wait), "{waits:?}");
        }
        assert_eq!(of(&failed(ErrorType::ServerError, 2), 4, false), End::Dead);
        for refused in [ErrorType::InvalidRequest, ErrorType::Forbidden, ErrorType::ResponseTooLarge] {
            assert_eq!(of(&failed(refused, 1), 0, false), End::Dead);
        }
    }

    #[test]
    fn every_failure_has_an_end() {
        for error in ErrorType::ALL {
            let closes = shows_closing(&failed(error, 0));
            let ends = of(&failed(error, 0), 0, false);
            // A task goes back only where the lane takes no more: else it would be taken again at once, for ever.
            assert!(ends != End::Back || closes, "{error:?}");
        }
    }
}
