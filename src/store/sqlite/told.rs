//! The provider's word on a window, and what it means while look-ups are in flight.
//!
//! Replies overtake each other, and the server may or may not have counted what is still in flight. Used is taken to be the
//! most that any reply has said, and all that is in flight besides: never too little, and exact as soon as nothing is in
//! flight. A reply that says less is late, unless it says so much less, or so long after, that no overtaking explains it:
//! then the window began anew, or the quota was raised, and it is believed.

use jiff::{SignedDuration, Timestamp};
use rusqlite::params;

use super::db::Db;
use super::period::{self, Period};
use super::value::{At, uncount};
use crate::store::TellingOf;

/// Longer than a look-up is ever in flight; unverified.
const OVERTAKING: SignedDuration = SignedDuration::from_secs(60);

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
    period::correct(db, account, &mut period, most.0.saturating_add(in_flight), now)
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
