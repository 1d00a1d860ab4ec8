//! Adding tasks to the queue.

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::db::Db;
use super::value::{At, Ip, count};
use crate::store::{Added, Task};

/// Adds tasks.
pub(super) fn enqueue(db: &Db, tasks: &[Task], now: Timestamp) -> rusqlite::Result<Added> {
    let mut lanes: HashMap<&str, i64> = HashMap::new();
    let mut added = Added::default();
    for task in tasks {
        let lane = match lanes.get(&*task.provider) {
            Some(lane) => *lane,
            None => lane(db, &task.provider)?,
        };
        lanes.insert(&task.provider, lane);
        let address = open_address(db, task.ip, &task.context, task.job.as_deref())?;
        if add(db, lane, address, task, now)? || revive(db, lane, address, task, now)? {
            added.added += 1;
        } else {
            added.already += 1;
            one_less(db, address)?;
            hurry(db, lane, task)?;
        }
    }
    Ok(added)
}

/// The provider's row, if it ever had a task.
pub(super) fn find_lane(db: &Db, provider: &str) -> rusqlite::Result<Option<i64>> {
    db.conn
        .prepare_cached("SELECT id FROM lane WHERE provider = ?1")?
        .query_row(params![provider], |row| row.get(0))
        .optional()
}

fn lane(db: &Db, provider: &str) -> rusqlite::Result<i64> {
    match find_lane(db, provider)? {
        Some(id) => Ok(id),
        None => db.conn.prepare_cached("INSERT INTO lane(provider) VALUES(?1)")?.insert(params![provider]),
    }
}

/// The address's row, with one open task more.
pub(super) fn open_address(db: &Db, ip: IpAddr, context: &[u8], job: Option<&str>) -> rusqlite::Result<i64> {
    db.conn
        .prepare_cached(
            "INSERT INTO address(ip, context, job, open) VALUES(?1, ?2, ?3, 1)
             ON CONFLICT(ip) DO UPDATE SET context = excluded.context, job = excluded.job, open = open + 1
             RETURNING id",
        )?
        .query_row(params![Ip(ip), context, job], |row| row.get(0))
}

fn one_less(db: &Db, address: i64) -> rusqlite::Result<()> {
    db.conn.prepare_cached("UPDATE address SET open = open - 1 WHERE id = ?1")?.execute(params![address])?;
    Ok(())
}

/// A task that waits begins as delayed, any other as ready.
fn beginning(task: &Task, now: Timestamp) -> (i64, Option<At>) {
    match task.not_before {
        Some(due) if due > now => (1, Some(At(due))),
        _ => (0, None),
    }
}

/// Adds the task, unless there is one of its pair.
fn add(db: &Db, lane: i64, address: i64, task: &Task, now: Timestamp) -> rusqlite::Result<bool> {
    let (state, due) = beginning(task, now);
    let added = db
        .conn
        .prepare_cached(
            "INSERT INTO task(lane, ip, address, priority, rank, state, due, enqueued_at, expires_at)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(lane, ip) DO NOTHING",
        )?
        .execute(params![
            lane,
            Ip(task.ip),
            address,
            task.priority,
            count(task.rank),
            state,
            due,
            At(now),
            task.expires_at.map(At)
        ])?;
    Ok(added > 0)
}

/// Takes up the dead letter of the pair, if there is one, as a new task.
fn revive(db: &Db, lane: i64, address: i64, task: &Task, now: Timestamp) -> rusqlite::Result<bool> {
    let (state, due) = beginning(task, now);
    let revived = db
        .conn
        .prepare_cached(
            "UPDATE task SET address = ?3, priority = ?4, rank = ?5, state = ?6, due = ?7, enqueued_at = ?8,
               expires_at = ?9, attempts = 0, deliveries = 0, token = token + 1,
               why = NULL, error = NULL, context = NULL, job = NULL
             WHERE lane = ?1 AND ip = ?2 AND state = 3",
        )?
        .execute(params![
            lane,
            Ip(task.ip),
            address,
            task.priority,
            count(task.rank),
            state,
            due,
            At(now),
            task.expires_at.map(At)
        ])?;
    Ok(revived > 0)
}

/// A more urgent place is taken over by the task that is there.
fn hurry(db: &Db, lane: i64, task: &Task) -> rusqlite::Result<()> {
    db.conn
        .prepare_cached(
            "UPDATE task SET priority = ?3, rank = ?4
             WHERE lane = ?1 AND ip = ?2 AND (?3, ?4) < (priority, rank)",
        )?
        .execute(params![lane, Ip(task.ip), task.priority, count(task.rank)])?;
    Ok(())
}
