//! The queue's tasks. States, leases and crash points are documented in [`schema`](super::schema).

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension as _, Row, params};

use super::db::Db;
use super::enqueue::{enqueue, find_lane, open_address};
use super::schema::MOST_DELIVERIES;
use super::value::{At, Ip, uncount};
use super::{SqliteStore, ledger, results};
use crate::store::crash;
use crate::store::{
    Added, Completed, Done, Early, Ended, FailedTask, Lease, Purge, Queue, QueueStatus, Released, Reply,
    Task, TaskId,
};

/// Delayed tasks and expired leases that one call to take makes ready.
const MOST_PROMOTED: u32 = 1_000;

impl Queue for SqliteStore {
    fn enqueue(&self, tasks: Vec<Task>, now: Timestamp) -> Reply<Added> {
        self.write(move |db| enqueue(db, &tasks, now))
    }

    fn take(
        &self,
        provider: &str,
        n: u32,
        lease: Duration,
        owner: Arc<str>,
        now: Timestamp,
    ) -> Reply<Vec<Lease>> {
        let provider: Arc<str> = provider.into();
        self.write(move |db| {
            let leases = take(db, &provider, n, until(now, lease), &owner, now)?;
            crash::point("queue.taking");
            Ok(leases)
        })
    }

    fn renew(&self, ids: Vec<TaskId>, lease: Duration, now: Timestamp) -> Reply<Vec<bool>> {
        self.write(move |db| {
            let mut renew = db
                .conn
                .prepare_cached("UPDATE task SET due = ?3 WHERE id = ?1 AND token = ?2 AND state = 2")?;
            ids.iter()
                .map(|id| Ok(renew.execute(params![id.id, id.token, At(until(now, lease))])? > 0))
                .collect()
        })
    }

    fn complete(&self, completed: Vec<Completed>, now: Timestamp, early: Early) -> Reply<Vec<bool>> {
        self.write_early(early, move |db| {
            let held = completed.iter().map(|completed| complete(db, completed, now)).collect();
            crash::point("queue.completing");
            held
        })
    }

    fn defer(&self, ids: Vec<TaskId>, due: Timestamp, now: Timestamp) -> Reply<Vec<Released>> {
        self.write(move |db| ids.iter().map(|id| put_back(db, *id, 0, due, now)).collect())
    }

    fn fail(&self, id: TaskId, error: Vec<u8>, due: Option<Timestamp>, now: Timestamp) -> Reply<Released> {
        self.write(move |db| match due {
            Some(due) => put_back(db, id, 1, due, now),
            None => give_up_lease(db, id, &error, now),
        })
    }

    fn release(&self, owner: Arc<str>, _now: Timestamp) -> Reply<u64> {
        self.write(move |db| {
            let released = db
                .conn
                .prepare_cached(
                    "UPDATE task SET state = 0, due = NULL, owner = NULL, deliveries = deliveries - 1
                     WHERE owner = ?1 AND state = 2",
                )?
                .execute(params![&*owner])?;
            Ok(released as u64)
        })
    }

    fn status(&self, now: Timestamp) -> Reply<Vec<QueueStatus>> {
        self.read(move |db| status(db, now))
    }

    fn failed(&self, after: i64, n: u32) -> Reply<Vec<FailedTask>> {
        self.read(move |db| failed(db, after, n))
    }

    fn retry(&self, provider: Option<Arc<str>>, _now: Timestamp) -> Reply<u64> {
        self.write(move |db| retry(db, provider.as_deref()))
    }

    fn purge(&self, what: Purge, now: Timestamp) -> Reply<u64> {
        self.write(move |db| results::purge(db, what, now))
    }

    fn results(&self, after: Option<u64>, n: u32) -> Reply<Vec<Done>> {
        self.read(move |db| results::page(db, after, n))
    }

    fn mark_read(&self, upto: u64) -> Reply<()> {
        self.write(move |db| results::mark_read(db, upto))
    }
}

fn until(now: Timestamp, lease: Duration) -> Timestamp {
    SignedDuration::try_from(lease)
        .ok()
        .and_then(|lease| now.checked_add(lease).ok())
        .unwrap_or(Timestamp::MAX)
}

fn take(
    db: &Db,
    provider: &Arc<str>,
    n: u32,
    until: Timestamp,
    owner: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<Lease>> {
    let Some(lane) = find_lane(db, provider)? else { return Ok(Vec::new()) };
    db.conn
        .prepare_cached(
            "UPDATE task SET state = 0, due = NULL, owner = NULL WHERE id IN (
               SELECT id FROM task WHERE lane = ?1 AND state IN (1, 2) AND due <= ?2 ORDER BY due LIMIT ?3)",
        )?
        .execute(params![lane, At(now), MOST_PROMOTED.max(n)])?;
    let mut leases = Vec::new();
    while let wanted @ 1.. = n.saturating_sub(u32::try_from(leases.len()).unwrap_or(u32::MAX)) {
        let ready = ready(db, provider, lane, wanted, until)?;
        if ready.is_empty() {
            break;
        }
        for lease in ready {
            let id = lease.id.id;
            if lease.task.expires_at.is_some_and(|expires_at| expires_at <= now) {
                give_up(db, id, lane, &Ended::Expired, now)?;
            } else if lease.deliveries > MOST_DELIVERIES {
                give_up(db, id, lane, &Ended::Lost, now)?;
            } else {
                db.conn
                    .prepare_cached(
                        "UPDATE task SET state = 2, due = ?2, owner = ?3, token = token + 1,
                           deliveries = deliveries + 1 WHERE id = ?1",
                    )?
                    .execute(params![id, At(until), owner])?;
                leases.push(lease);
            }
        }
    }
    Ok(leases)
}

/// The most urgent ready tasks, as they will be once they are leased.
fn ready(db: &Db, provider: &Arc<str>, lane: i64, n: u32, until: Timestamp) -> rusqlite::Result<Vec<Lease>> {
    db.conn
        .prepare_cached(
            "SELECT task.ip, priority, rank, address.context, address.job, expires_at,
               task.id, token + 1, attempts, deliveries + 1
             FROM task JOIN address ON address.id = address
             WHERE lane = ?1 AND state = 0 ORDER BY priority, rank, task.id LIMIT ?2",
        )?
        .query_map(params![lane, n], |row| {
            Ok(Lease {
                id: TaskId { id: row.get(6)?, token: row.get(7)? },
                task: read_task(provider, row)?,
                attempts: row.get(8)?,
                deliveries: row.get(9)?,
                until,
            })
        })?
        .collect()
}

/// A task from the first six columns.
fn read_task(provider: &Arc<str>, row: &Row<'_>) -> rusqlite::Result<Task> {
    let expires_at: Option<At> = row.get(5)?;
    let context: Vec<u8> = row.get::<_, Option<Vec<u8>>>(3)?.unwrap_or_default();
    Ok(Task {
        provider: Arc::clone(provider),
        ip: row.get::<_, Ip>(0)?.0,
        priority: row.get(1)?,
        rank: uncount(row.get(2)?),
        context: context.into(),
        not_before: None,
        expires_at: expires_at.map(|At(at)| at),
        job: row.get(4)?,
    })
}

fn complete(db: &Db, completed: &Completed, now: Timestamp) -> rusqlite::Result<bool> {
    if let Some((account, settled)) = &completed.settled {
        let (source, account) = db.account(account)?;
        ledger::settle(db, source, account, settled)?;
    }
    let ended: Option<(i64, i64)> = db
        .conn
        .prepare_cached(
            "DELETE FROM task WHERE id = ?1 AND token = ?2 AND state = 2 RETURNING lane, address",
        )?
        .query_row(params![completed.id.id, completed.id.token], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((lane, address)) = ended else { return Ok(false) };
    results::ended(db, address, lane, 0, &completed.outcome, now)?;
    Ok(true)
}

/// Puts a leased task back until `due`, with so many failed attempts more.
fn put_back(db: &Db, id: TaskId, failed: u32, due: Timestamp, now: Timestamp) -> rusqlite::Result<Released> {
    let (state, due) = if due > now { (1, Some(At(due))) } else { (0, None) };
    let changed = db
        .conn
        .prepare_cached(
            "UPDATE task SET state = ?3, due = ?4, owner = NULL, attempts = attempts + ?5,
               deliveries = deliveries - 1
             WHERE id = ?1 AND token = ?2 AND state = 2",
        )?
        .execute(params![id.id, id.token, state, due, failed])?;
    Ok(if changed > 0 { Released::Waits } else { Released::Void })
}

/// Makes a leased task a dead letter, after one failed attempt more.
fn give_up_lease(db: &Db, id: TaskId, error: &[u8], now: Timestamp) -> rusqlite::Result<Released> {
    let lane: Option<i64> = db
        .conn
        .prepare_cached(
            "UPDATE task SET attempts = attempts + 1, deliveries = deliveries - 1
             WHERE id = ?1 AND token = ?2 AND state = 2 RETURNING lane",
        )?
        .query_row(params![id.id, id.token], |row| row.get(0))
        .optional()?;
    let Some(lane) = lane else { return Ok(Released::Void) };
    give_up(db, id.id, lane, &Ended::Failed(error.to_vec()), now)?;
    Ok(Released::Dead)
}

/// Makes a task a dead letter.
fn give_up(db: &Db, id: i64, lane: i64, why: &Ended, now: Timestamp) -> rusqlite::Result<()> {
    let (kind, error) = results::kind(why);
    let address: i64 = db
        .conn
        .prepare_cached(
            "UPDATE task SET state = 3, due = ?2, owner = NULL, why = ?3, error = ?4,
               context = (SELECT context FROM address WHERE id = task.address),
               job = (SELECT job FROM address WHERE id = task.address)
             WHERE id = ?1 RETURNING address",
        )?
        .query_row(params![id, At(now), kind, error], |row| row.get(0))?;
    results::ended(db, address, lane, kind, error, now)
}

fn status(db: &Db, now: Timestamp) -> rusqlite::Result<Vec<QueueStatus>> {
    db.conn
        .prepare_cached(
            "SELECT provider, sum(state = 0 OR (state IN (1, 2) AND due <= ?1)),
               sum(state = 1 AND due > ?1), sum(state = 2 AND due > ?1), sum(state = 3),
               min(CASE WHEN state IN (1, 2) AND due > ?1 THEN due END),
               min(CASE WHEN state < 3 THEN enqueued_at END)
             FROM task JOIN lane ON lane.id = lane GROUP BY provider ORDER BY provider",
        )?
        .query_map(params![At(now)], |row| {
            let next_due: Option<At> = row.get(5)?;
            let oldest: Option<At> = row.get(6)?;
            Ok(QueueStatus {
                provider: row.get(0)?,
                ready: uncount(row.get(1)?),
                delayed: uncount(row.get(2)?),
                leased: uncount(row.get(3)?),
                dead: uncount(row.get(4)?),
                next_due: next_due.map(|At(at)| at),
                oldest: oldest.map(|At(at)| at),
            })
        })?
        .collect()
}

fn failed(db: &Db, after: i64, n: u32) -> rusqlite::Result<Vec<FailedTask>> {
    db.conn
        .prepare_cached(
            "SELECT ip, priority, rank, context, job, expires_at, task.id, attempts, deliveries, why, error,
               due, provider
             FROM task JOIN lane ON lane.id = lane WHERE state = 3 AND task.id > ?1 ORDER BY task.id LIMIT ?2",
        )?
        .query_map(params![after, n], |row| {
            let provider: Arc<str> = row.get(12)?;
            Ok(FailedTask {
                id: row.get(6)?,
                task: read_task(&provider, row)?,
                attempts: row.get(7)?,
                deliveries: row.get(8)?,
                why: results::read_ended(row.get(9)?, row.get(10)?)
                    .ok_or(rusqlite::Error::InvalidColumnType(9, "why".to_owned(), Type::Integer))?,
                at: row.get::<_, At>(11)?.0,
            })
        })?
        .collect()
}

/// Dead letters become ready tasks, without an end to their time: it may be what they died of.
fn retry(db: &Db, provider: Option<&str>) -> rusqlite::Result<u64> {
    let lane = match provider {
        None => None,
        Some(provider) => match find_lane(db, provider)? {
            None => return Ok(0),
            lane => lane,
        },
    };
    let dead = db
        .conn
        .prepare_cached(
            "SELECT id, ip, context, job FROM task WHERE state = 3 AND (?1 IS NULL OR lane = ?1) ORDER BY id",
        )?
        .query_map(params![lane], |row| {
            let context: Option<Vec<u8>> = row.get(2)?;
            let job: Option<String> = row.get(3)?;
            Ok((row.get::<_, i64>(0)?, row.get::<_, Ip>(1)?.0, context.unwrap_or_default(), job))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (id, ip, context, job) in &dead {
        let address = open_address(db, *ip, context, job.as_deref())?;
        db.conn
            .prepare_cached(
                "UPDATE task SET address = ?2, state = 0, due = NULL, expires_at = NULL, attempts = 0,
                   deliveries = 0, token = token + 1, why = NULL, error = NULL, context = NULL, job = NULL
                 WHERE id = ?1",
            )?
            .execute(params![id, address])?;
    }
    Ok(dead.len() as u64)
}
