//! The exit status, documented and chosen in one place.

use crate::enrich::Stop;

/// Every status that `sift` ends with. New ones may come; treat an unknown one as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every look-up was answered; not found and skipped are answers. Also: the reader of our output went away.
    Ok = 0,
    /// Something cannot be read or written, or a bug.
    Fatal = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// Some look-ups were not answered, or were cut by a limit.
    Partial = 3,
    /// Look-ups were due and none was answered.
    Unanswered = 4,
    /// `--fail-on` matched.
    Found = 10,
    /// SIGINT, after an orderly end.
    Interrupted = 130,
    /// SIGTERM, after an orderly end.
    Terminated = 143,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// How a run of look-ups came out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// What ended it early.
    pub stop: Stop,
    /// Records with an answer.
    pub ok: u64,
    /// Of them, those that a provider did not answer.
    pub incomplete: u64,
    /// Records with none.
    pub error: u64,
    /// `--fail-on` matched.
    pub found: bool,
}

/// If several hold: fatal, then the signals, `--fail-on`, nothing answered, partly answered.
#[must_use]
pub fn choose(tally: &Tally) -> Exit {
    match tally {
        Tally { stop: Stop::OutputFailed | Stop::StoreFailed, .. } => Exit::Fatal,
        Tally { stop: Stop::ClosedPipe, .. } => Exit::Ok,
        Tally { stop: Stop::Interrupted, .. } => Exit::Interrupted,
        Tally { stop: Stop::Terminated, .. } => Exit::Terminated,
        Tally { found: true, .. } => Exit::Found,
        Tally { ok: 0, error: 1.., .. } => Exit::Unanswered,
        Tally { incomplete: 0, error: 0, .. } => Exit::Ok,
        Tally { .. } => Exit::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_precedence() {
        let all_bad = Tally { stop: Stop::No, ok: 0, incomplete: 0, error: 3, found: true };
        for (tally, expected) in [
            (Tally::default(), Exit::Ok),
            (Tally { ok: 3, ..Tally::default() }, Exit::Ok),
            (Tally { ok: 3, incomplete: 1, ..Tally::default() }, Exit::Partial),
            (Tally { ok: 3, error: 1, ..Tally::default() }, Exit::Partial),
            (Tally { error: 1, ..Tally::default() }, Exit::Unanswered),
            (all_bad, Exit::Found),
            (Tally { stop: Stop::Interrupted, ..all_bad }, Exit::Interrupted),
            (Tally { stop: Stop::Terminated, ..all_bad }, Exit::Terminated),
            (Tally { stop: Stop::OutputFailed, ..all_bad }, Exit::Fatal),
            (Tally { stop: Stop::StoreFailed, ..all_bad }, Exit::Fatal),
            (Tally { stop: Stop::ClosedPipe, ..all_bad }, Exit::Ok),
        ] {
            assert_eq!(choose(&tally), expected, "{tally:?}");
        }
    }
}
