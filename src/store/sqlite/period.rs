//! Long windows (days, weeks, months): how much of each is spent.
//!
//! A calendar window counts from its start to its end. One that rolls counts in buckets of a small part of its length; a
//! bucket counts until its newest possible send has left the window, so the sum is never too small.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rusqlite::{Row, params};

use super::db::Db;
use super::value::{At, Wide, count, uncount};
use crate::provider::{Quota, Window};

/// One account's long window, as of one moment.
#[derive(Debug, Clone)]
pub(super) struct Period {
    pub(super) window: Window,
    rolls: bool,
    pub(super) starts: Timestamp,
    /// Calendar: when it is empty again. Rolling: when its oldest bucket leaves.
    pub(super) ends: Timestamp,
    pub(super) used: u64,
    pub(super) quota: u64,
    pub(super) reserve: f64,
    pub(super) told_limit: Option<u64>,
    pub(super) told: Option<(u64, Timestamp)>,
    /// The most that the provider has said was used, and when it last said so.
    pub(super) server: Option<(u64, Timestamp)>,
}

impl Period {
    /// An empty one that begins now, or began with the calendar's.
    pub(super) fn empty(window: Window, rolls: bool, now: Timestamp) -> Self {
        let (starts, ends) = if rolls { (now, now) } else { calendar(window, now) };
        Self {
            window,
            rolls,
            starts,
            ends,
            used: 0,
            quota: 0,
            reserve: 0.0,
            told_limit: None,
            told: None,
            server: None,
        }
    }

    /// Whether it counts the time before now, not from a start.
    pub(super) fn rolls(&self) -> bool {
        self.rolls
    }

    /// Look-ups in the window: by the provider's word, else by our own.
    pub(super) fn limit(&self) -> u64 {
        self.told_limit.unwrap_or(self.quota)
    }

    /// What is left, the reserve included.
    pub(super) fn left(&self) -> u64 {
        self.limit().saturating_sub(self.used)
    }

    /// Look-ups that are kept for people.
    pub(super) fn kept(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share between 0 and 1 of a count that is far below 2^52"
        )]
        let kept = (self.limit() as f64 * self.reserve.clamp(0.0, 1.0)).floor() as u64;
        kept
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let number = |n: Option<i64>| n.map(uncount);
        let told_at: Option<At> = row.get(9)?;
        let server_at: Option<At> = row.get(11)?;
        Ok(Self {
            window: row.get::<_, Wide>(0)?.0,
            rolls: row.get(1)?,
            starts: row.get::<_, At>(2)?.0,
            ends: row.get::<_, At>(3)?.0,
            used: uncount(row.get(4)?),
            quota: uncount(row.get(5)?),
            reserve: row.get(6)?,
            told_limit: number(row.get(7)?),
            told: number(row.get(8)?).zip(told_at.map(|At(at)| at)),
            server: number(row.get(10)?).zip(server_at.map(|At(at)| at)),
        })
    }
}

/// Whether the provider's window rolls.
pub(super) fn rolls(window: Window, rolling_day: bool) -> bool {
    match window {
        Window::Week => true,
        Window::Day => rolling_day,
        Window::Month | Window::Hour | Window::Minute | Window::Second => false,
    }
}

/// Days end at midnight UTC, months on the first.
fn calendar(window: Window, now: Timestamp) -> (Timestamp, Timestamp) {
    let today = now.to_zoned_datetime(TimeZone::UTC).start_of_day();
    let bounds = match window {
        Window::Month => today.and_then(|day| day.first_of_month()).and_then(|first| {
            let next = first.checked_add(1.month())?;
            Ok((first, next))
        }),
        _ => today.and_then(|day| {
            let next = day.checked_add(1.day())?;
            Ok((day, next))
        }),
    };
    bounds.map_or((now, now + length(window)), |(starts, ends)| (starts.timestamp(), ends.timestamp()))
}

fn length(window: Window) -> SignedDuration {
    SignedDuration::try_from(window.length()).unwrap_or_default()
}

/// Length of a bucket: five minutes of a day, half an hour of a week.
fn bucket(window: Window) -> SignedDuration {
    if window == Window::Day { SignedDuration::from_mins(5) } else { SignedDuration::from_mins(30) }
}

/// When a bucket no longer counts.
fn leaves(window: Window, start: Timestamp) -> Timestamp {
    let counts = length(window) + bucket(window);
    start.checked_add(counts).unwrap_or(Timestamp::MAX)
}

fn bucket_of(window: Window, at: Timestamp) -> Timestamp {
    let seconds = bucket(window).as_secs();
    Timestamp::from_second(at.as_second().div_euclid(seconds) * seconds).unwrap_or(at)
}

const COLUMNS: &str = "window, rolls, starts, ends, used, quota, reserve, told_limit, told_left, told_at,
  server_used, server_at";

/// Every long window that is known of the account, as of now.
pub(super) fn all(db: &Db, account: i64, now: Timestamp) -> rusqlite::Result<Vec<Period>> {
    let mut select = db.conn.prepare_cached(&format!("SELECT {COLUMNS} FROM period WHERE account = ?1"))?;
    let rows = select.query_map(params![account], Period::read)?;
    rows.map(|period| as_of(db, account, period?, now)).collect()
}

/// Those of `all` with what is asked for now: a window that was never counted begins, and one that is counted otherwise
/// from now on keeps its count.
pub(super) fn asked(
    db: &Db,
    account: i64,
    quotas: &[Quota],
    rolling_day: bool,
    reserve: f64,
    now: Timestamp,
) -> rusqlite::Result<Vec<Period>> {
    let mut periods = all(db, account, now)?;
    // A window that neither we nor the provider bound any more holds nobody up.
    periods.retain(|period| {
        period.told_limit.is_some() || quotas.iter().any(|quota| quota.window == period.window)
    });
    for quota in quotas.iter().filter(|quota| !quota.window.is_paced()) {
        let rolls = rolls(quota.window, rolling_day);
        let place = periods.iter().position(|period| period.window == quota.window);
        let period = match place.and_then(|place| periods.get_mut(place)) {
            Some(period) if period.rolls == rolls => period,
            Some(period) => {
                let before = period.clone();
                *period = Period {
                    used: 0,
                    told_limit: before.told_limit,
                    ..Period::empty(quota.window, rolls, now)
                };
                forget_buckets(db, account, quota.window)?;
                spend(db, account, period, before.used, now)?;
                period
            }
            None => {
                periods.push(Period::empty(quota.window, rolls, now));
                // Just pushed.
                let Some(period) = periods.last_mut() else { continue };
                period
            }
        };
        period.quota = u64::from(quota.count.get());
        period.reserve = reserve;
    }
    Ok(periods)
}

/// The window as it is now.
fn as_of(db: &Db, account: i64, period: Period, now: Timestamp) -> rusqlite::Result<Period> {
    if now < period.ends {
        return Ok(period);
    }
    let kept = Period {
        quota: period.quota,
        reserve: period.reserve,
        told_limit: period.told_limit,
        ..Period::empty(period.window, period.rolls, now)
    };
    if !period.rolls {
        return Ok(kept);
    }
    let (used, oldest) = buckets(db, account, period.window, now)?;
    Ok(Period {
        used,
        ends: oldest.map_or(now, |start| leaves(period.window, start)),
        told: period.told,
        server: period.server,
        ..kept
    })
}

/// The sum of what still counts, and its oldest bucket.
fn buckets(
    db: &Db,
    account: i64,
    window: Window,
    now: Timestamp,
) -> rusqlite::Result<(u64, Option<Timestamp>)> {
    let since = now.checked_sub(length(window) + bucket(window)).unwrap_or(Timestamp::MIN);
    db.conn
        .prepare_cached(
            "SELECT ifnull(sum(used), 0), min(start) FROM bucket
             WHERE account = ?1 AND window = ?2 AND start > ?3 AND used > 0",
        )?
        .query_row(params![account, Wide(window), At(since)], |row| {
            let oldest: Option<At> = row.get(1)?;
            Ok((uncount(row.get(0)?), oldest.map(|At(at)| at)))
        })
}

/// Writes the window down.
pub(super) fn save(db: &Db, account: i64, period: &Period) -> rusqlite::Result<()> {
    db.conn
        .prepare_cached(&format!(
            "INSERT OR REPLACE INTO period(account, {COLUMNS})
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        ))?
        .execute(params![
            account,
            Wide(period.window),
            period.rolls,
            At(period.starts),
            At(period.ends),
            count(period.used),
            count(period.quota),
            period.reserve,
            period.told_limit.map(count),
            period.told.map(|(left, _)| count(left)),
            period.told.map(|(_, at)| At(at)),
            period.server.map(|(used, _)| count(used)),
            period.server.map(|(_, at)| At(at)),
        ])?;
    Ok(())
}

/// Counts `n` more, and writes the window down.
pub(super) fn spend(
    db: &Db,
    account: i64,
    period: &mut Period,
    n: u64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    if period.rolls && n > 0 {
        let start = bucket_of(period.window, now);
        if period.used == 0 {
            period.ends = leaves(period.window, start);
            forget_old_buckets(db, account, period.window, now)?;
        }
        db.conn
            .prepare_cached(
                "INSERT INTO bucket(account, window, start, used) VALUES(?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET used = used + excluded.used",
            )?
            .execute(params![account, Wide(period.window), At(start), count(n)])?;
    }
    period.used = period.used.saturating_add(n);
    save(db, account, period)
}

/// Counts `n` less that were spent at `at`, and writes the window down. What was spent in a calendar window that has
/// ended since is gone with it.
pub(super) fn give_back(
    db: &Db,
    account: i64,
    period: &mut Period,
    n: u64,
    at: Timestamp,
) -> rusqlite::Result<()> {
    if period.rolls {
        db.conn
            .prepare_cached(
                "UPDATE bucket SET used = max(used - ?4, 0) WHERE account = ?1 AND window = ?2 AND start = ?3",
            )?
            .execute(params![account, Wide(period.window), At(bucket_of(period.window, at)), count(n)])?;
    } else if at < period.starts {
        return Ok(());
    }
    period.used = period.used.saturating_sub(n);
    save(db, account, period)
}

/// Sets what is used, and writes the window down: more is taken to have been spent just now, less to have been spent
/// longest ago.
pub(super) fn correct(
    db: &Db,
    account: i64,
    period: &mut Period,
    used: u64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    if used >= period.used {
        let more = used - period.used;
        return spend(db, account, period, more, now);
    }
    if period.rolls {
        let mut less = period.used - used;
        let mut select = db.conn.prepare_cached(
            "SELECT start, used FROM bucket WHERE account = ?1 AND window = ?2 AND used > 0 ORDER BY start",
        )?;
        let oldest_first = select
            .query_map(params![account, Wide(period.window)], |row| {
                Ok((row.get::<_, At>(0)?, uncount(row.get(1)?)))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        for (start, spent) in oldest_first {
            let taken = spent.min(less);
            db.conn
                .prepare_cached(
                    "UPDATE bucket SET used = used - ?4 WHERE account = ?1 AND window = ?2 AND start = ?3",
                )?
                .execute(params![account, Wide(period.window), start, count(taken)])?;
            less -= taken;
            if less == 0 {
                break;
            }
        }
        let (_, oldest) = buckets(db, account, period.window, now)?;
        period.ends = oldest.map_or(now, |start| leaves(period.window, start));
    }
    period.used = used;
    save(db, account, period)
}

fn forget_buckets(db: &Db, account: i64, window: Window) -> rusqlite::Result<()> {
    db.conn
        .prepare_cached("DELETE FROM bucket WHERE account = ?1 AND window = ?2")?
        .execute(params![account, Wide(window)])?;
    Ok(())
}

fn forget_old_buckets(db: &Db, account: i64, window: Window, now: Timestamp) -> rusqlite::Result<()> {
    let since = now.checked_sub(length(window) + bucket(window)).unwrap_or(Timestamp::MIN);
    db.conn
        .prepare_cached("DELETE FROM bucket WHERE account = ?1 AND window = ?2 AND start <= ?3")?
        .execute(params![account, Wide(window), At(since)])?;
    Ok(())
}
