//! The provider's word on a window, and what it means while look-ups are in flight.
//!
//! Replies overtake each other, and the server may or may not have counted what is still in flight. So its word is a span:
//! at least the most that any reply has said is used, and at most what is in flight besides. Our own count, where it lies
//! in the span, is exact and stays. Below it, somebody else uses the key, and the span's end is the safe reading; above it,
//! the provider counts less than we do. Once nothing is in flight the span is one number, and the count is that.
//!
//! A reply that says less than another before is late, unless it says so much less, or so long after, that no overtaking
//! explains it: then the window began anew, or the quota was raised, and it is believed.

use jiff::{SignedDuration, Timestamp};
use rusqlite::params;

use super::db::Db;
use super::period::{self, Period};
use super::value::{At, uncount};
use crate::store::TellingOf;

/// Longer than a look-up is ever in flight; unverified.
const OVERTAKING: SignedDuration = SignedDuration::from_secs(60);

/// How long a reply takes to arrive, more or less.
const SOON: SignedDuration = SignedDuration::from_millis(500);

/// How many replies may overtake one, besides those in flight now.
const OVERTAKERS: u64 = 64;

/// Corrects the window's count.
pub(super) fn told(db: &Db, account: i64, telling: TellingOf, now: Timestamp) -> rusqlite::Result<()> {
    if telling.window.is_paced() {
        return match telling.reset {
            Some(reset) if telling.remaining == 0 => super::ledger::hold(db, account, reset, None, now),
            // The lane paces what is left of a short window.
            _ => Ok(()),
        };
    }
    let known = period::all(db, account, now)?.into_iter().find(|period| period.window == telling.window);
    let mut period =
        known.unwrap_or_else(|| Period::empty(telling.window, period::rolls(telling.window, false), now));
    let in_flight = in_flight(db, account, now)?;
    let limit = telling
        .limit
        .or(period.told_limit)
        .unwrap_or_else(|| period.quota.max(period.used.max(in_flight).saturating_add(telling.remaining)));
    let said = limit.saturating_sub(telling.remaining);
    let most = match period.server {
        Some((most, at)) if is_late(said, most, at, in_flight, now) => (most, at),
        _ => (said, now),
    };
    period.told_limit = Some(limit);
    period.told = Some((telling.remaining, now));
    period.server = Some(most);
    if let Some(reset) = telling.reset.filter(|reset| *reset > now)
        && !period.rolls()
    {
        period.ends = reset;
    }
    let span_end = most.0.saturating_add(in_flight);
    let used = if period.used < most.0 { span_end } else { period.used.min(span_end) };
    period::correct(db, account, &mut period, used, now)
}

/// When to ask again about a window that is full: soon, where the provider says that something is left and it is only
/// replies still in flight that are missing to know how much; else when the window ends.
pub(super) fn known_by(
    db: &Db,
    account: i64,
    period: &Period,
    now: Timestamp,
) -> rusqlite::Result<Timestamp> {
    let something_left = period.server.is_some_and(|(said, _)| said < period.limit());
    Ok(if something_left && period.told.is_some() && in_flight(db, account, now)? > 0 {
        period.ends.min(now.checked_add(SOON).unwrap_or(now))
    } else {
        period.ends.max(now)
    })
}

fn is_late(said: u64, most: u64, at: Timestamp, in_flight: u64, now: Timestamp) -> bool {
    said < most && most - said <= in_flight + OVERTAKERS && now.duration_since(at) <= OVERTAKING
}

/// Look-ups that were admitted, in any process, and not settled.
fn in_flight(db: &Db, account: i64, now: Timestamp) -> rusqlite::Result<u64> {
    db.conn
        .prepare_cached("SELECT ifnull(sum(cost), 0) FROM claim WHERE account = ?1 AND until > ?2")?
        .query_row(params![account, At(now)], |row| Ok(uncount(row.get(0)?)))
}
