//! The tables, the lease protocol, and what is left at each point where a process can die.
//!
//! Moments are microseconds since 1970, addresses 4 or 16 bytes, windows their length in seconds, key ids and versions
//! unsigned numbers in SQLite's signed integer. All tables are `STRICT`. `application_id` is `sift` in ASCII;
//! `user_version` counts the [`MIGRATIONS`] that were made.
//!
//! # Cache and ledger
//! - `source`: a provider at a host, with running totals of its answers, kept by triggers.
//! - `answer`: one row a source and address. A newer one takes an older one's place, never the other way round.
//! - `account`: a source with a key, and until when it is held off.
//! - `period`: one row an account and long window: `[starts, ends)`, spent in it, and what the provider told. A calendar
//!   window is empty again when it has ended. A window that rolls has `bucket`s; `used` is their sum, and `ends` says when
//!   the oldest of them leaves the window: then the sum is made anew.
//! - `sent`: the last hour's sends of an account that has short windows, numbered: `upto` counts them, so that the sends of
//!   any window are a difference of two numbers. `pace`: the next due time by GCRA, which spreads the sends of several
//!   processes.
//! - `claim`: a look-up in flight, and whose: `holder` has the process, so that a dead one's claims are free at once. It is
//!   free anyway after `until`.
//! - `audit`: one row an attempt and address; `actor` has the user and the job.
//!
//! # Queue
//! - `lane`: a provider's name. `address`: an address with open tasks, and how many. `outcome`: what became of its tasks.
//!   `done`: an address without open tasks, in the order in which they ended. `mark`: up to which of them was read.
//! - `task`: one row a provider and address. Ended ones are deleted; dead letters stay.
//!
//! | `state` | `due` | becomes |
//! |---|---|---|
//! | 0 ready | – | leased (take) |
//! | 1 delayed | from when on it is ready | ready (take, once due) |
//! | 2 leased | end of the lease | deleted (complete), delayed (defer, fail), dead (fail), ready (take, once due; release) |
//! | 3 dead | when it was given up | ready (retry, or enqueued again) |
//!
//! A lease is `(id, token)`: each take raises `token`, so that renewing, completing, deferring or failing under an older
//! lease changes nothing. Expired tasks, and those that were taken [`MOST_DELIVERIES`] times and never heard of again,
//! are dead letters when next taken. `deliveries` counts only such leases: one that is given back in words takes its count
//! back.
//!
//! # Where a process can die
//!
//! | point | in the store | afterwards |
//! |---|---|---|
//! | `writer.before-begin`, `writer.before-commit` | nothing of the group | as if never called |
//! | `writer.after-commit`, `writer.before-reply` | all of the group; after a power cut all or nothing of it | done, though nobody was told; or as if never called |
//! | …committed and not yet synced | as above | a caller was told early at the most, never that it is durable |
//! | …in `enqueue` | all tasks or none | enqueued again: those there are `already` |
//! | …in `admit` | counted and claimed, not sent | on the safe side; the claim is free, the count stays until the provider's word corrects it |
//! | …in `settle` | answer, audit and claim together, or none of them | asked again, or in the cache |
//! | `queue.taking` (inside the transaction) | as before it | taken by the next |
//! | …after `take`, before asking | leased | taken again when the lease is over; nothing was spent |
//! | asked, not completed | leased, admitted | taken again when the lease is over; asked twice |
//! | `queue.completing` (inside the transaction) | as before it | asked twice |
//! | completed, nobody told | done | nothing: results are read from the store |
//! | results printed, not marked as read | unread | printed again by the next reader |

use rusqlite::Connection;

/// `sift`.
pub(super) const APPLICATION_ID: i64 = 0x7369_6674;

/// What made each version of the store from the one before. A store's version is how many of them it has seen.
pub(super) const MIGRATIONS: &[&str] = &[VERSION_1];

/// The version that this program makes.
pub(super) fn version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// A task that was taken so often and never ended kills its workers.
pub(super) const MOST_DELIVERIES: u32 = 10;

const VERSION_1: &str = "
CREATE TABLE source(
  id INTEGER PRIMARY KEY,
  provider TEXT NOT NULL, host TEXT NOT NULL,
  answers INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
  UNIQUE(provider, host)) STRICT;
CREATE TABLE answer(
  id INTEGER PRIMARY KEY,
  source INTEGER NOT NULL, ip BLOB NOT NULL,
  fetched_at INTEGER NOT NULL, found INTEGER NOT NULL, version INTEGER NOT NULL,
  keep_until INTEGER NOT NULL, status INTEGER NOT NULL,
  answer BLOB NOT NULL,
  body BLOB,  -- zstd if it begins like it; last, so that reading the rest does not read it
  UNIQUE(source, ip)) STRICT;
CREATE INDEX answer_end ON answer(keep_until);
CREATE TRIGGER answer_in AFTER INSERT ON answer BEGIN
  UPDATE source SET answers = answers + 1,
    bytes = bytes + 120 + length(new.answer) + ifnull(length(new.body), 0) WHERE id = new.source;
END;
CREATE TRIGGER answer_new AFTER UPDATE OF answer, body ON answer BEGIN
  UPDATE source SET bytes = bytes + length(new.answer) + ifnull(length(new.body), 0)
    - length(old.answer) - ifnull(length(old.body), 0) WHERE id = new.source;
END;
CREATE TRIGGER answer_out AFTER DELETE ON answer BEGIN
  UPDATE source SET answers = answers - 1,
    bytes = bytes - 120 - length(old.answer) - ifnull(length(old.body), 0) WHERE id = old.source;
END;

CREATE TABLE account(
  id INTEGER PRIMARY KEY,
  source INTEGER NOT NULL, key_id INTEGER NOT NULL,
  held_until INTEGER NOT NULL DEFAULT 0, held_window INTEGER,
  UNIQUE(source, key_id)) STRICT;
CREATE TABLE period(
  account INTEGER NOT NULL, window INTEGER NOT NULL,
  rolls INTEGER NOT NULL, starts INTEGER NOT NULL, ends INTEGER NOT NULL,
  used INTEGER NOT NULL, quota INTEGER NOT NULL, reserve REAL NOT NULL,
  told_limit INTEGER, told_left INTEGER, told_at INTEGER,
  server_used INTEGER, server_at INTEGER,
  PRIMARY KEY(account, window)) STRICT, WITHOUT ROWID;
CREATE TABLE bucket(
  account INTEGER NOT NULL, window INTEGER NOT NULL, start INTEGER NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY(account, window, start)) STRICT, WITHOUT ROWID;
CREATE TABLE sent(
  account INTEGER NOT NULL, upto INTEGER NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(account, upto)) STRICT, WITHOUT ROWID;
CREATE INDEX sent_at ON sent(account, at);
CREATE TABLE pace(
  account INTEGER NOT NULL, window INTEGER NOT NULL,
  due INTEGER NOT NULL, step INTEGER NOT NULL,  -- nanoseconds
  PRIMARY KEY(account, window)) STRICT, WITHOUT ROWID;
CREATE TABLE holder(
  id INTEGER PRIMARY KEY,
  pid INTEGER NOT NULL, started INTEGER NOT NULL, machine TEXT NOT NULL) STRICT;
CREATE TABLE claim(
  source INTEGER NOT NULL, ip BLOB NOT NULL,
  account INTEGER NOT NULL, holder INTEGER NOT NULL,
  at INTEGER NOT NULL, until INTEGER NOT NULL,
  cost INTEGER NOT NULL, audit INTEGER NOT NULL,
  PRIMARY KEY(source, ip)) STRICT, WITHOUT ROWID;
CREATE INDEX claim_account ON claim(account, until, cost);
CREATE TABLE actor(
  id INTEGER PRIMARY KEY,
  user TEXT NOT NULL, uid INTEGER NOT NULL,
  who INTEGER NOT NULL,  -- 0 person, 1 job, 2 worker
  job TEXT NOT NULL,     -- empty: none
  UNIQUE(user, uid, who, job)) STRICT;
CREATE TABLE audit(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL, actor INTEGER NOT NULL, account INTEGER NOT NULL,
  ip BLOB NOT NULL, outcome TEXT) STRICT;
CREATE INDEX audit_at ON audit(at);

CREATE TABLE lane(id INTEGER PRIMARY KEY, provider TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE address(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ip BLOB NOT NULL UNIQUE, context BLOB NOT NULL, job TEXT, open INTEGER NOT NULL) STRICT;
CREATE TABLE task(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lane INTEGER NOT NULL, ip BLOB NOT NULL, address INTEGER NOT NULL,
  priority INTEGER NOT NULL, rank INTEGER NOT NULL,
  state INTEGER NOT NULL, due INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0, deliveries INTEGER NOT NULL DEFAULT 0,
  token INTEGER NOT NULL DEFAULT 0, owner TEXT,
  enqueued_at INTEGER NOT NULL, expires_at INTEGER,
  why INTEGER, error BLOB, context BLOB, job TEXT,  -- of a dead letter: `outcome.kind`, and what its address knew
  UNIQUE(lane, ip)) STRICT;
CREATE INDEX task_ready ON task(lane, priority, rank, id) WHERE state = 0;
CREATE INDEX task_due ON task(lane, due) WHERE state IN (1, 2);
CREATE INDEX task_dead ON task(lane) WHERE state = 3;
CREATE INDEX task_owner ON task(owner) WHERE state = 2;
CREATE TABLE outcome(
  address INTEGER NOT NULL, lane INTEGER NOT NULL,
  kind INTEGER NOT NULL,  -- 0 completed, 1 failed, 2 expired, 3 lost
  outcome BLOB NOT NULL,
  PRIMARY KEY(address, lane)) STRICT, WITHOUT ROWID;
CREATE TABLE done(
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  address INTEGER NOT NULL, ip BLOB NOT NULL, context BLOB NOT NULL, job TEXT, at INTEGER NOT NULL) STRICT;
CREATE TABLE mark(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// What every table of this version answers to, or the file is damaged.
pub(super) const TABLES: &[&str] = &[
    "source", "answer", "account", "period", "bucket", "sent", "pace", "holder", "claim", "actor", "audit",
    "lane", "address", "task", "outcome", "done", "mark",
];

/// Makes all tables in an empty file.
pub(super) fn make(conn: &Connection) -> rusqlite::Result<()> {
    // Both must come before the first table.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate(conn, 0)?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    debug_assert_eq!(mode, "wal");
    Ok(())
}

/// Brings a store from `from` to this program's version, in one transaction.
pub(super) fn migrate(conn: &Connection, from: i64) -> rusqlite::Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    // Another process may have been faster.
    let there: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let seen = usize::try_from(there.max(from)).unwrap_or(usize::MAX);
    let made = MIGRATIONS
        .iter()
        .skip(seen)
        .try_for_each(|migration| conn.execute_batch(migration))
        .and_then(|()| conn.pragma_update(None, "user_version", version()))
        .and_then(|()| conn.execute_batch("COMMIT"));
    if made.is_err() && !conn.is_autocommit() {
        let _rolled_back = conn.execute_batch("ROLLBACK");
    }
    made
}
