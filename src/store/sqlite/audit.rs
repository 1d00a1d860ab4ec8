//! The audit trail.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use super::SqliteStore;
use super::db::Db;
use super::value::{At, Ip, count, key_id, uncount};
use crate::store::{Ask, Audit, AuditFilter, AuditPage, AuditRow, Reply, Who};

/// Rows of one page.
const PAGE: u32 = 1_000;

/// By how much a row may have been admitted earlier than one with a smaller number: far more than a commit waits for.
const OUT_OF_ORDER: SignedDuration = SignedDuration::from_mins(10);

impl Audit for SqliteStore {
    fn audit(&self, filter: AuditFilter, after: u64) -> Reply<AuditPage> {
        self.read(move |db| page(db, &filter, after))
    }
}

const PERSON: u8 = 0;
const JOB: u8 = 1;
const WORKER: u8 = 2;

/// The row of whoever asks.
pub(super) fn actor(db: &Db, ask: &Ask) -> rusqlite::Result<i64> {
    let (who, job) = match &ask.who {
        Who::Person => (PERSON, ""),
        Who::Job(name) => (JOB, &**name),
        Who::Worker(name) => (WORKER, name.as_deref().unwrap_or("")),
    };
    let row = params![&*ask.user, db.uid, who, job];
    let found = db
        .conn
        .prepare_cached("SELECT id FROM actor WHERE user = ?1 AND uid = ?2 AND who = ?3 AND job = ?4")?
        .query_row(row, |row| row.get(0))
        .optional()?;
    match found {
        Some(id) => Ok(id),
        None => db
            .conn
            .prepare_cached("INSERT INTO actor(user, uid, who, job) VALUES(?1, ?2, ?3, ?4)")?
            .insert(row),
    }
}

/// An attempt was admitted.
pub(super) fn write(db: &Db, actor: i64, account: i64, ip: &Ip, now: Timestamp) -> rusqlite::Result<i64> {
    db.conn
        .prepare_cached("INSERT INTO audit(at, actor, account, ip) VALUES(?1, ?2, ?3, ?4)")?
        .insert(params![At(now), actor, account, ip])
}

/// An attempt ended.
pub(super) fn outcome(db: &Db, id: i64, outcome: &str) -> rusqlite::Result<()> {
    db.conn.prepare_cached("UPDATE audit SET outcome = ?2 WHERE id = ?1")?.execute(params![id, outcome])?;
    Ok(())
}

/// An attempt was never made.
pub(super) fn take_back(db: &Db, id: i64) -> rusqlite::Result<()> {
    db.conn.prepare_cached("DELETE FROM audit WHERE id = ?1")?.execute(params![id])?;
    Ok(())
}

fn page(db: &Db, filter: &AuditFilter, after: u64) -> rusqlite::Result<AuditPage> {
    // Rows are numbered as they are committed, which is nearly the order of their times: the pages walk by number, from
    // a row that is a little older than any that is wanted.
    let since = filter.since.unwrap_or(Timestamp::MIN);
    let early = since.checked_sub(OUT_OF_ORDER).unwrap_or(Timestamp::MIN);
    let first: Option<i64> = db
        .conn
        .prepare_cached("SELECT id FROM audit WHERE at >= ?1 ORDER BY at, id LIMIT 1")?
        .query_row(params![At(early)], |row| row.get(0))
        .optional()?;
    let Some(first) = first else { return Ok(AuditPage::default()) };
    let mut select = db.conn.prepare_cached(
        "SELECT audit.id, at, user, uid, who, job, provider, host, key_id, ip, outcome
         FROM audit JOIN actor ON actor.id = actor JOIN account ON account.id = account
           JOIN source ON source.id = source
         WHERE audit.id > ?1 AND at >= ?2 AND (?3 IS NULL OR at < ?3) AND (?4 IS NULL OR provider = ?4)
           AND (?5 IS NULL OR user = ?5) AND (?6 IS NULL OR job = ?6) AND (?7 IS NULL OR ip = ?7)
         ORDER BY audit.id LIMIT ?8",
    )?;
    let rows = select
        .query_map(
            params![
                count(after).max(first - 1),
                At(since),
                filter.until.map(At),
                filter.provider.as_deref(),
                filter.user.as_deref(),
                filter.job.as_deref(),
                filter.ip.map(Ip),
                PAGE,
            ],
            |row| {
                let job: String = row.get(5)?;
                Ok(AuditRow {
                    id: uncount(row.get(0)?),
                    at: row.get::<_, At>(1)?.0,
                    user: row.get(2)?,
                    uid: row.get(3)?,
                    who: match row.get(4)? {
                        JOB => Who::Job(job.into()),
                        WORKER => Who::Worker((!job.is_empty()).then(|| job.into())),
                        _ => Who::Person,
                    },
                    provider: row.get(6)?,
                    host: row.get(7)?,
                    key_id: key_id(row.get(8)?),
                    ip: row.get::<_, Ip>(9)?.0,
                    outcome: row.get(10)?,
                })
            },
        )?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let next = (rows.len() == PAGE as usize).then(|| rows.last().map(|row| row.id)).flatten();
    Ok(AuditPage { rows, next })
}
