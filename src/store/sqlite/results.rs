//! What became of the queue's tasks, and the list of addresses that are done.

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension as _, params};

use super::db::Db;
use super::value::{At, Ip, count, uncount};
use crate::store::{Done, Ended, Purge};

/// The row in `mark` that says up to where results were read.
const READ: &str = "read";

/// How an end stands in a row.
pub(super) fn kind(ended: &Ended) -> (u8, &[u8]) {
    match ended {
        Ended::Completed(outcome) => (0, outcome),
        Ended::Failed(error) => (1, error),
        Ended::Expired => (2, &[]),
        Ended::Lost => (3, &[]),
    }
}

/// The end that stands in a row; none for a kind that we do not know.
pub(super) fn read_ended(kind: u8, bytes: Vec<u8>) -> Option<Ended> {
    match kind {
        0 => Some(Ended::Completed(bytes)),
        1 => Some(Ended::Failed(bytes)),
        2 => Some(Ended::Expired),
        3 => Some(Ended::Lost),
        _ => None,
    }
}

/// One of the address's tasks has ended; with the last of them, the address is done.
pub(super) fn ended(
    db: &Db,
    address: i64,
    lane: i64,
    kind: u8,
    bytes: &[u8],
    now: Timestamp,
) -> rusqlite::Result<()> {
    db.conn
        .prepare_cached(
            "INSERT OR REPLACE INTO outcome(address, lane, kind, outcome) VALUES(?1, ?2, ?3, ?4)",
        )?
        .execute(params![address, lane, kind, bytes])?;
    let open: i64 = db
        .conn
        .prepare_cached("UPDATE address SET open = open - 1 WHERE id = ?1 RETURNING open")?
        .query_row(params![address], |row| row.get(0))?;
    if open == 0 {
        db.conn
            .prepare_cached(
                "INSERT INTO done(address, ip, context, job, at)
                 SELECT id, ip, context, job, ?2 FROM address WHERE id = ?1",
            )?
            .execute(params![address, At(now)])?;
        db.conn.prepare_cached("DELETE FROM address WHERE id = ?1")?.execute(params![address])?;
    }
    Ok(())
}

fn read_upto(db: &Db) -> rusqlite::Result<i64> {
    let upto = db
        .conn
        .prepare_cached("SELECT value FROM mark WHERE name = ?1")?
        .query_row(params![READ], |row| row.get(0))
        .optional()?;
    Ok(upto.unwrap_or(0))
}

/// Marks results as read; what was marked stays so.
pub(super) fn mark_read(db: &Db, upto: u64) -> rusqlite::Result<()> {
    db.conn
        .prepare_cached(
            "INSERT INTO mark(name, value) VALUES(?1, ?2)
             ON CONFLICT(name) DO UPDATE SET value = max(value, excluded.value)",
        )?
        .execute(params![READ, count(upto)])?;
    Ok(())
}

/// Addresses that are done, after entry `after` or after those that were read.
pub(super) fn page(db: &Db, after: Option<u64>, n: u32) -> rusqlite::Result<Vec<Done>> {
    let after = after.map_or_else(|| read_upto(db), |after| Ok(count(after)))?;
    let mut select = db.conn.prepare_cached(
        "SELECT number, ip, context, job, at, address FROM done WHERE number > ?1 ORDER BY number LIMIT ?2",
    )?;
    let rows = select.query_map(params![after, n], |row| {
        let context: Vec<u8> = row.get(2)?;
        let done = Done {
            number: uncount(row.get(0)?),
            ip: row.get::<_, Ip>(1)?.0,
            context: context.into(),
            job: row.get(3)?,
            at: row.get::<_, At>(4)?.0,
            outcomes: Vec::new(),
        };
        Ok((done, row.get::<_, i64>(5)?))
    })?;
    let mut outcomes = db.conn.prepare_cached(
        "SELECT provider, kind, outcome FROM outcome JOIN lane ON lane.id = lane
         WHERE address = ?1 ORDER BY provider",
    )?;
    rows.map(|row| {
        let (mut done, address) = row?;
        done.outcomes = outcomes
            .query_map(params![address], |row| {
                let ended = read_ended(row.get(1)?, row.get(2)?)
                    .ok_or(rusqlite::Error::InvalidColumnType(1, "kind".to_owned(), Type::Integer))?;
                Ok((row.get(0)?, ended))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(done)
    })
    .collect()
}

/// Drops up to `n` results that were read, those done before `before` if it is given.
pub(super) fn drop_read(db: &Db, before: Option<Timestamp>, n: u32) -> rusqlite::Result<u64> {
    let upto = read_upto(db)?;
    let before = before.map(At);
    db.conn
        .prepare_cached(
            "DELETE FROM outcome WHERE address IN (
               SELECT address FROM done WHERE number <= ?1 AND (?2 IS NULL OR at < ?2) ORDER BY number LIMIT ?3)",
        )?
        .execute(params![upto, before, n])?;
    let dropped = db
        .conn
        .prepare_cached(
            "DELETE FROM done WHERE number IN (
               SELECT number FROM done WHERE number <= ?1 AND (?2 IS NULL OR at < ?2) ORDER BY number LIMIT ?3)",
        )?
        .execute(params![upto, before, n])?;
    Ok(dropped as u64)
}

/// Removes for good.
pub(super) fn purge(db: &Db, what: Purge, now: Timestamp) -> rusqlite::Result<u64> {
    let execute = |sql: &str| db.conn.execute(sql, []).map(|changed| changed as u64);
    match what {
        Purge::Open => {
            let tasks = execute("DELETE FROM task WHERE state < 3")?;
            // What was answered of an address is a result, even though the rest was never asked.
            db.conn.execute(
                "INSERT INTO done(address, ip, context, job, at)
                 SELECT id, ip, context, job, ?1 FROM address WHERE id IN (SELECT address FROM outcome)",
                params![At(now)],
            )?;
            execute("DELETE FROM address")?;
            Ok(tasks)
        }
        Purge::Dead => execute("DELETE FROM task WHERE state = 3"),
        Purge::Read => drop_read(db, None, u32::MAX),
        Purge::All => {
            let removed = execute("DELETE FROM task")? + execute("DELETE FROM done")?;
            execute("DELETE FROM address")?;
            execute("DELETE FROM outcome")?;
            Ok(removed)
        }
    }
}
