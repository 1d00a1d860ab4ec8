//! Dropping answers and audit rows: in small steps, each a call of its own, so that whoever waits for the writer waits for
//! one step at most.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rusqlite::params;

use super::db::Db;
use super::inbox::Inbox;
use super::results;
use super::value::{At, Ip, count, uncount};
use crate::store::{Pruned, StoreError};

/// Rows in one step: some 5 ms.
const STEP: u32 = 1_000;

/// Pages given back to the file system in one step.
const PAGES: u32 = 1_000;

/// Drops answers of one provider or all, about one address or all.
pub(super) async fn clear(
    inbox: Arc<Inbox>,
    provider: Option<Arc<str>>,
    ip: Option<IpAddr>,
) -> Result<u64, StoreError> {
    let dropped = to_the_end(&inbox, move |db| clear_step(db, provider.as_deref(), ip)).await?;
    give_back(&inbox).await?;
    Ok(dropped)
}

/// Drops what has expired, then what expires soonest until the cache is small enough, then old audit rows and results.
pub(super) async fn prune(
    inbox: Arc<Inbox>,
    now: Timestamp,
    max_bytes: u64,
    audit_kept: Duration,
) -> Result<Pruned, StoreError> {
    let kept = SignedDuration::try_from(audit_kept).unwrap_or(SignedDuration::MAX);
    let since = now.checked_sub(kept).unwrap_or(Timestamp::MIN);
    let pruned = Pruned {
        expired: to_the_end(&inbox, move |db| drop_expired(db, now)).await?,
        evicted: to_the_end(&inbox, move |db| drop_soonest(db, max_bytes)).await?,
        audit: to_the_end(&inbox, move |db| drop_audit(db, since)).await?,
        results: to_the_end(&inbox, move |db| results::drop_read(db, Some(since), STEP)).await?,
    };
    inbox.ask(None, move |db| drop_claims(db, now)).await?;
    give_back(&inbox).await?;
    Ok(pruned)
}

/// Repeats a step, each time in a transaction of its own, until it finds nothing; returns how many rows it found.
async fn to_the_end<F>(inbox: &Arc<Inbox>, step: F) -> Result<u64, StoreError>
where
    F: Fn(&Db) -> rusqlite::Result<u64> + Clone + Send + 'static,
{
    let mut found = 0;
    loop {
        match inbox.ask(None, step.clone()).await? {
            0 => return Ok(found),
            n => found += n,
        }
    }
}

fn clear_step(db: &Db, provider: Option<&str>, ip: Option<IpAddr>) -> rusqlite::Result<u64> {
    let gone = db
        .conn
        .prepare_cached(
            "DELETE FROM answer WHERE id IN (
               SELECT answer.id FROM source JOIN answer ON source = source.id
               WHERE (?1 IS NULL OR provider = ?1) AND (?2 IS NULL OR ip = ?2) LIMIT ?3)",
        )?
        .execute(params![provider, ip.map(Ip), STEP])?;
    Ok(gone as u64)
}

fn drop_expired(db: &Db, now: Timestamp) -> rusqlite::Result<u64> {
    let gone = db
        .conn
        .prepare_cached(
            "DELETE FROM answer WHERE id IN (SELECT id FROM answer WHERE keep_until <= ?1 LIMIT ?2)",
        )?
        .execute(params![At(now), STEP])?;
    Ok(gone as u64)
}

/// One step towards `max_bytes`; nothing once the cache fits.
fn drop_soonest(db: &Db, max_bytes: u64) -> rusqlite::Result<u64> {
    let (answers, bytes) = db
        .conn
        .prepare_cached("SELECT ifnull(sum(answers), 0), ifnull(sum(bytes), 0) FROM source")?
        .query_row([], |row| Ok((uncount(row.get(0)?), uncount(row.get(1)?))))?;
    let over = bytes.saturating_sub(max_bytes);
    if over == 0 || answers == 0 {
        return Ok(0);
    }
    // As many as are too many if all are alike; what is left over is for the next step.
    let n = over.div_ceil((bytes / answers).max(1)).min(u64::from(STEP));
    let gone = db
        .conn
        .prepare_cached(
            "DELETE FROM answer WHERE id IN (SELECT id FROM answer ORDER BY keep_until LIMIT ?1)",
        )?
        .execute(params![count(n)])?;
    Ok(gone as u64)
}

fn drop_audit(db: &Db, since: Timestamp) -> rusqlite::Result<u64> {
    let gone = db
        .conn
        .prepare_cached("DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 LIMIT ?2)")?
        .execute(params![At(since), STEP])?;
    Ok(gone as u64)
}

/// Claims that nobody settled.
fn drop_claims(db: &Db, now: Timestamp) -> rusqlite::Result<()> {
    db.conn.prepare_cached("DELETE FROM claim WHERE until <= ?1")?.execute(params![At(now)])?;
    db.conn
        .prepare_cached("DELETE FROM holder WHERE id <> ?1 AND id NOT IN (SELECT holder FROM claim)")?
        .execute(params![db.me.id])?;
    Ok(())
}

/// Gives free pages back to the file system.
async fn give_back(inbox: &Arc<Inbox>) -> Result<(), StoreError> {
    loop {
        let left: i64 = inbox
            .ask(None, |db| {
                let mut step = db.conn.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
                let mut rows = step.query([])?;
                while rows.next()?.is_some() {}
                db.conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))
            })
            .await?;
        // A few free pages are taken by the next answers.
        if left <= i64::from(PAGES) {
            return Ok(());
        }
    }
}
