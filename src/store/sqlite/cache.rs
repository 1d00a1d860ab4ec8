//! Answers: put, read, explained, counted. What drops them is in [`clear`].

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::clear;
use super::db::Db;
use super::value::{At, Ip, uncount};
use crate::store::{Account, Age, Cache, CacheStats, Kept, Pruned, Reply, Stored};

impl Cache for SqliteStore {
    fn answers(&self, account: &Account, ips: Vec<IpAddr>, with_body: bool) -> Reply<Vec<Option<Stored>>> {
        let account = account.clone();
        self.read(move |db| answers(db, &account, &ips, with_body))
    }

    fn ages(&self, account: &Account, ips: Vec<IpAddr>) -> Reply<Vec<Option<Age>>> {
        let account = account.clone();
        self.read(move |db| ages(db, &account, &ips))
    }

    fn keep(&self, account: &Account, answers: Vec<Stored>) -> Reply<()> {
        let account = account.clone();
        self.write(move |db| {
            let source = db.source(&account)?;
            answers.iter().try_for_each(|stored| put(db, source, stored))
        })
    }

    fn explain(&self, ip: IpAddr) -> Reply<Vec<Kept>> {
        self.read(move |db| explain(db, ip))
    }

    fn stats(&self) -> Reply<Vec<CacheStats>> {
        self.read(stats)
    }

    fn clear(&self, provider: Option<Arc<str>>, ip: Option<IpAddr>) -> Reply<u64> {
        let inbox = Arc::clone(&self.writer.inbox);
        Box::pin(clear::clear(inbox, provider, ip))
    }

    fn prune(&self, now: Timestamp, max_bytes: u64) -> Reply<Pruned> {
        let inbox = Arc::clone(&self.writer.inbox);
        Box::pin(clear::prune(inbox, now, max_bytes, self.audit_kept))
    }
}

/// Keeps an answer, unless a newer one is there.
pub(super) fn put(db: &Db, source: i64, stored: &Stored) -> rusqlite::Result<()> {
    let body = stored.body.as_deref().and_then(|body| db.pack(body));
    // At the same moment it is the same reply, read again: whoever read it need not bring the body along.
    db.conn
        .prepare_cached(
            "INSERT INTO answer(source, ip, fetched_at, found, version, keep_until, status, answer, body)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT(source, ip) DO UPDATE SET
               body = CASE WHEN excluded.fetched_at = fetched_at THEN ifnull(excluded.body, body)
                      ELSE excluded.body END,
               fetched_at = excluded.fetched_at, found = excluded.found, version = excluded.version,
               keep_until = excluded.keep_until, status = excluded.status, answer = excluded.answer
             WHERE excluded.fetched_at >= fetched_at",
        )?
        .execute(params![
            source,
            Ip(stored.ip),
            At(stored.fetched_at),
            stored.found,
            stored.version.cast_signed(),
            At(stored.keep_until),
            stored.status,
            stored.answer,
            body,
        ])?;
    Ok(())
}

/// When the answer that is kept arrived.
pub(super) fn fetched_at(db: &Db, source: i64, ip: IpAddr) -> rusqlite::Result<Option<Timestamp>> {
    db.conn
        .prepare_cached("SELECT fetched_at FROM answer WHERE source = ?1 AND ip = ?2")?
        .query_row(params![source, Ip(ip)], |row| row.get::<_, At>(0))
        .optional()
        .map(|at| at.map(|At(at)| at))
}

fn answers(
    db: &Db,
    account: &Account,
    ips: &[IpAddr],
    with_body: bool,
) -> rusqlite::Result<Vec<Option<Stored>>> {
    let Some(source) = filled_source(db, account)? else { return Ok(vec![None; ips.len()]) };
    let mut select = db.conn.prepare_cached(if with_body {
        "SELECT ip, fetched_at, found, version, keep_until, status, answer, body FROM answer
         WHERE source = ?1 AND ip = ?2"
    } else {
        "SELECT ip, fetched_at, found, version, keep_until, status, answer, NULL FROM answer
         WHERE source = ?1 AND ip = ?2"
    })?;
    in_tree_order(ips, |ip| select.query_row(params![source, Ip(ip)], |row| read_stored(db, row)).optional())
}

fn ages(db: &Db, account: &Account, ips: &[IpAddr]) -> rusqlite::Result<Vec<Option<Age>>> {
    let Some(source) = filled_source(db, account)? else { return Ok(vec![None; ips.len()]) };
    let mut select = db
        .conn
        .prepare_cached("SELECT fetched_at, found, version FROM answer WHERE source = ?1 AND ip = ?2")?;
    in_tree_order(ips, |ip| {
        select
            .query_row(params![source, Ip(ip)], |row| {
                Ok(Age {
                    fetched_at: row.get::<_, At>(0)?.0,
                    found: row.get(1)?,
                    version: row.get::<_, i64>(2)?.cast_unsigned(),
                })
            })
            .optional()
    })
}

/// The source's row, if it has any answers.
fn filled_source(db: &Db, account: &Account) -> rusqlite::Result<Option<i64>> {
    db.conn
        .prepare_cached("SELECT id FROM source WHERE provider = ?1 AND host = ?2 AND answers > 0")?
        .query_row(params![&*account.provider, &*account.host], |row| row.get(0))
        .optional()
}

/// Reads in the order in which the index has the addresses, so that neighbours share a page, and gives the results in
/// the order asked.
fn in_tree_order<T: Clone>(
    ips: &[IpAddr],
    mut read: impl FnMut(IpAddr) -> rusqlite::Result<Option<T>>,
) -> rusqlite::Result<Vec<Option<T>>> {
    let mut order: Vec<(IpAddr, usize)> = ips.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let mut results = vec![None; ips.len()];
    for (ip, place) in order {
        if let Some(slot) = results.get_mut(place) {
            *slot = read(ip)?;
        }
    }
    Ok(results)
}

fn read_stored(db: &Db, row: &Row<'_>) -> rusqlite::Result<Stored> {
    let packed: Option<Vec<u8>> = row.get(7)?;
    Ok(Stored {
        ip: row.get::<_, Ip>(0)?.0,
        fetched_at: row.get::<_, At>(1)?.0,
        found: row.get(2)?,
        version: row.get::<_, i64>(3)?.cast_unsigned(),
        keep_until: row.get::<_, At>(4)?.0,
        status: row.get(5)?,
        answer: row.get(6)?,
        body: packed.and_then(|packed| db.unpack(&packed)),
    })
}

fn explain(db: &Db, ip: IpAddr) -> rusqlite::Result<Vec<Kept>> {
    db.conn
        .prepare_cached(
            "SELECT ip, fetched_at, found, version, keep_until, status, answer, body, provider, host
             FROM source JOIN answer ON source = source.id WHERE ip = ?1 ORDER BY provider, host",
        )?
        .query_map(params![Ip(ip)], |row| {
            Ok(Kept { stored: read_stored(db, row)?, provider: row.get(8)?, host: row.get(9)? })
        })?
        .collect()
}

fn stats(db: &Db) -> rusqlite::Result<Vec<CacheStats>> {
    db.conn
        .prepare_cached(
            "SELECT provider, host, answers, bytes,
               (SELECT min(fetched_at) FROM answer WHERE source = source.id),
               (SELECT max(fetched_at) FROM answer WHERE source = source.id)
             FROM source WHERE answers > 0 ORDER BY provider, host",
        )?
        .query_map([], |row| {
            let oldest: Option<At> = row.get(4)?;
            let newest: Option<At> = row.get(5)?;
            Ok(CacheStats {
                provider: row.get(0)?,
                host: row.get(1)?,
                answers: uncount(row.get(2)?),
                bytes: uncount(row.get(3)?),
                fetched: oldest.zip(newest).map(|(At(oldest), At(newest))| (oldest, newest)),
            })
        })?
        .collect()
}
