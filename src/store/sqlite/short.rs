//! Short windows (up to an hour), shared by all processes.
//!
//! Two rules, and both must let a send through:
//! - *The log.* The sends of the last window and a little more ([`WIDER`]) never exceed its quota. Sends are numbered, so
//!   that counting them is a difference, and every mix of single sends and batches of several processes is right.
//! - *The pace*, where sends are paced one by one: GCRA, with the lane's own spacing and slack made a trifle wider, so that
//!   several processes together send as evenly as one alone, and one alone is never refused what its own pace allowed.
//!
//! A lane spaces sends by p = W·1.008/(q − b + 1), and makes up for at most 0.003·W of lateness (`enrich::limit::pace`). In a
//! window of 1.004·W it sends at most b + ⌊(1.004 + 0.003)/1.008·(q − b + 1)⌋ ≤ b + (q − b) = q: the log does not refuse it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use super::db::Db;
use super::value::{At, Wide, count, uncount};
use crate::provider::Quota;
use crate::store::{Blocked, Why};

/// How much wider the log's window is than the provider's, for the network's jitter.
const WIDER: f64 = 1.004;
/// The pace's spacing and slack: a trifle narrower and wider than the lane's own (1.008 and 0.003), whose rounding then
/// does no harm. b + ⌊(1 + 0.0035)/1.0075·(q − b + 1)⌋ ≤ q still holds.
const STRETCH: f64 = 1.0075;
const SLACK: f64 = 0.0035;

/// How many of `n` sends fit now, and what stands in the way of the rest.
pub(super) fn room(
    db: &Db,
    account: i64,
    quotas: &[Quota],
    burst: u32,
    n: u64,
    now: Timestamp,
) -> rusqlite::Result<(u64, Option<Blocked>)> {
    let mut room = n;
    let mut blocked: Option<Blocked> = None;
    let mut narrow = |fits: u64, quota: Quota, until: Timestamp| {
        if fits < n && (fits < room || blocked.is_none_or(|blocked| until > blocked.until)) {
            blocked = Some(Blocked { window: Some(quota.window), until, why: Why::Quota, left: fits });
        }
        room = room.min(fits);
    };
    for quota in quotas.iter().filter(|quota| quota.window.is_paced()) {
        let (fits, until) = logged(db, account, *quota, now)?;
        narrow(fits, *quota, until);
        if burst > 0 {
            let (fits, until) = paced(db, account, *quota, burst, now)?;
            narrow(fits, *quota, until);
        }
    }
    Ok((room, blocked))
}

/// Counts `n` sends at `now`.
pub(super) fn spend(
    db: &Db,
    account: i64,
    quotas: &[Quota],
    burst: u32,
    n: u64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let short = || quotas.iter().filter(|quota| quota.window.is_paced());
    let Some(longest) = short().map(|quota| quota.window.length()).max() else { return Ok(()) };
    if n == 0 {
        return Ok(());
    }
    let last = last(db, account)?;
    // A clock that was set back must not let sends into the past, nor keep those of the future for ever.
    let at = match last {
        Some((_, at)) if at > now && at <= after(now, longest) => at,
        Some((_, at)) if at > now => {
            forget_after(db, account, now)?;
            now
        }
        _ => now,
    };
    let upto = last.map_or(0, |(upto, _)| upto) + n;
    db.conn
        .prepare_cached("INSERT INTO sent(account, upto, at, n) VALUES(?1, ?2, ?3, ?4)")?
        .execute(params![account, count(upto), At(at), count(n)])?;
    // Kept a little longer than needed, so that the last send before the window is there to count from.
    db.conn
        .prepare_cached("DELETE FROM sent WHERE account = ?1 AND at < ?2")?
        .execute(params![account, At(before(now, longest.mul_f64(WIDER * 1.1)))])?;
    if burst > 0 {
        for quota in short() {
            let pace = Spacing::of(*quota, burst);
            let due = due(db, account, *quota, now)?.max(nanos(now));
            let next = due.saturating_add(pace.step.saturating_mul(count(n)));
            db.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO pace(account, window, due, step) VALUES(?1, ?2, ?3, ?4)",
                )?
                .execute(params![account, Wide(quota.window), next, pace.step])?;
        }
    }
    Ok(())
}

/// Takes back `n` sends that were counted at `at`, if they were the last.
pub(super) fn give_back(db: &Db, account: i64, n: u64, at: Timestamp) -> rusqlite::Result<()> {
    let Some((upto, last_at)) = last(db, account)? else { return Ok(()) };
    if last_at != at || n == 0 {
        return Ok(());
    }
    db.conn
        .prepare_cached("DELETE FROM sent WHERE account = ?1 AND upto = ?2 AND n <= ?3")?
        .execute(params![account, count(upto), count(n)])?;
    db.conn
        .prepare_cached("UPDATE sent SET upto = upto - ?3, n = n - ?3 WHERE account = ?1 AND upto = ?2")?
        .execute(params![account, count(upto), count(n)])?;
    db.conn
        .prepare_cached("UPDATE pace SET due = due - step * ?2 WHERE account = ?1")?
        .execute(params![account, count(n)])?;
    Ok(())
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

fn before(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_sub(by).ok()).unwrap_or(Timestamp::MIN)
}

/// The number of the last send, and when it was.
fn last(db: &Db, account: i64) -> rusqlite::Result<Option<(u64, Timestamp)>> {
    db.conn
        .prepare_cached("SELECT upto, at FROM sent WHERE account = ?1 ORDER BY upto DESC LIMIT 1")?
        .query_row(params![account], |row| Ok((uncount(row.get(0)?), row.get::<_, At>(1)?.0)))
        .optional()
}

fn forget_after(db: &Db, account: i64, now: Timestamp) -> rusqlite::Result<()> {
    db.conn
        .prepare_cached("DELETE FROM sent WHERE account = ?1 AND at > ?2")?
        .execute(params![account, At(now)])?;
    Ok(())
}

/// How many more the log has room for, and when it has room for one.
fn logged(db: &Db, account: i64, quota: Quota, now: Timestamp) -> rusqlite::Result<(u64, Timestamp)> {
    let quota_count = u64::from(quota.count.get());
    let length = quota.window.length().mul_f64(WIDER);
    let Some((upto, at)) = last(db, account)? else { return Ok((quota_count, now)) };
    if at > after(now, length) {
        // Of a clock that was far ahead: see `spend`.
        return Ok((quota_count, now));
    }
    let left_the_window: Option<i64> = db
        .conn
        .prepare_cached(
            "SELECT upto FROM sent WHERE account = ?1 AND at <= ?2 ORDER BY at DESC, upto DESC LIMIT 1",
        )?
        .query_row(params![account, At(before(now, length))], |row| row.get(0))
        .optional()?;
    let base = match left_the_window {
        Some(upto) => upto,
        None => db
            .conn
            .prepare_cached("SELECT upto - n FROM sent WHERE account = ?1 ORDER BY upto LIMIT 1")?
            .query_row(params![account], |row| row.get(0))?,
    };
    let fits = quota_count.saturating_sub(upto.saturating_sub(uncount(base)));
    // The send with this number must have left the window before one more fits.
    let must_leave = (upto + 1).saturating_sub(quota_count);
    let due = db
        .conn
        .prepare_cached("SELECT at FROM sent WHERE account = ?1 AND upto >= ?2 ORDER BY upto LIMIT 1")?
        .query_row(params![account, count(must_leave)], |row| row.get::<_, At>(0))
        .optional()?;
    Ok((fits, due.map_or(now, |At(at)| after(at, length)).max(now)))
}

/// GCRA's two numbers, in nanoseconds.
struct Spacing {
    step: i64,
    slack: i64,
}

impl Spacing {
    fn of(quota: Quota, burst: u32) -> Self {
        let burst = burst.clamp(1, quota.count.get());
        let spaced = quota.count.get() - (burst - 1);
        let length = quota.window.length();
        let step = whole(length.mul_f64(STRETCH) / spaced);
        let slack = whole(length.mul_f64(SLACK)).saturating_add(step.saturating_mul(i64::from(burst - 1)));
        Self { step, slack }
    }
}

fn whole(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn nanos(at: Timestamp) -> i64 {
    // In range until 2262.
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

/// When the next send is due by the pace; one of a clock that was far ahead is due now.
fn due(db: &Db, account: i64, quota: Quota, now: Timestamp) -> rusqlite::Result<i64> {
    let due: Option<i64> = db
        .conn
        .prepare_cached("SELECT due FROM pace WHERE account = ?1 AND window = ?2")?
        .query_row(params![account, Wide(quota.window)], |row| row.get(0))
        .optional()?;
    let bound = nanos(now).saturating_add(whole(quota.window.length()).saturating_mul(2));
    Ok(due.filter(|due| *due <= bound).unwrap_or_else(|| nanos(now)))
}

/// How many more the pace lets through, and when it lets one.
fn paced(
    db: &Db,
    account: i64,
    quota: Quota,
    burst: u32,
    now: Timestamp,
) -> rusqlite::Result<(u64, Timestamp)> {
    let pace = Spacing::of(quota, burst);
    let due = due(db, account, quota, now)?.max(nanos(now));
    let open = due.saturating_sub(pace.slack);
    let ahead = nanos(now).saturating_sub(open);
    if ahead < 0 {
        // Rounded up to the microsecond, which is what a moment is kept to: asking then must not be too early.
        let micros = open.div_euclid(1_000) + 1;
        return Ok((0, Timestamp::from_microsecond(micros).unwrap_or(now)));
    }
    Ok((uncount(ahead / pace.step.max(1) + 1), now))
}
