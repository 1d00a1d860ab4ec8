//! A connection and what belongs to it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};
use zstd::bulk::{Compressor, Decompressor};

use super::holder::Holder;
use super::value::key_bits;
use crate::store::{Account, MAX_BODY_BYTES};

/// A connection, used by one thread.
pub(super) struct Db {
    pub(super) conn: Connection,
    pub(super) path: Arc<Path>,
    /// Names this opened store among all: whose claims are whose.
    pub(super) me: Holder,
    /// The user's number, for the audit trail.
    pub(super) uid: u32,
    packer: RefCell<Packer>,
    /// Rows of accounts that were looked up: source and account. They are never deleted, but one that was made in a
    /// transaction that failed never was: see [`forget`](Self::forget). One process has a handful.
    accounts: RefCell<Vec<(Account, (i64, i64))>>,
}

/// zstd's contexts, made once: making them costs more than a body does.
struct Packer {
    pack: Compressor<'static>,
    unpack: Decompressor<'static>,
}

/// zstd's level: a body of 2 KB takes some 10 µs, and the next levels save little of it.
const LEVEL: i32 = 1;

/// What every frame of zstd begins with (RFC 8878, 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An answer of AbuseIPDB has 600 bytes; zstd takes 4 µs to make 400 of them.
const SHORT_BYTES: usize = 1024;

impl Db {
    pub(super) fn new(conn: Connection, path: Arc<Path>) -> std::io::Result<Self> {
        let packer = Packer { pack: Compressor::new(LEVEL)?, unpack: Decompressor::new()? };
        Ok(Self {
            conn,
            path,
            me: Holder::this(),
            uid: rustix::process::getuid().as_raw(),
            packer: RefCell::new(packer),
            accounts: RefCell::default(),
        })
    }

    /// A body as it is kept; none if it is too long or cannot be packed. A short one stays as it is, unless it looks like a
    /// packed one: packing it would take longer than all else that is done about it.
    pub(super) fn pack<'a>(&self, body: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if body.len() <= SHORT_BYTES && !body.starts_with(&ZSTD_MAGIC) {
            return Some(body.into());
        }
        let packed =
            (body.len() <= MAX_BODY_BYTES).then(|| self.packer.borrow_mut().pack.compress(body).ok());
        packed.flatten().map(Cow::Owned)
    }

    /// The body that was kept.
    pub(super) fn unpack(&self, packed: &[u8]) -> Option<Vec<u8>> {
        if !packed.starts_with(&ZSTD_MAGIC) {
            return Some(packed.to_vec());
        }
        let mut body = self.packer.borrow_mut().unpack.decompress(packed, MAX_BODY_BYTES).ok()?;
        // zstd makes room for the longest.
        body.shrink_to_fit();
        Some(body)
    }

    /// The row of a provider at a host, if there is one.
    pub(super) fn find_source(&self, provider: &str, host: &str) -> rusqlite::Result<Option<i64>> {
        self.conn
            .prepare_cached("SELECT id FROM source WHERE provider = ?1 AND host = ?2")?
            .query_row(params![provider, host], |row| row.get(0))
            .optional()
    }

    /// The row of a provider at a host.
    pub(super) fn source(&self, account: &Account) -> rusqlite::Result<i64> {
        if let Some(id) = self.find_source(&account.provider, &account.host)? {
            return Ok(id);
        }
        self.conn
            .prepare_cached("INSERT INTO source(provider, host) VALUES(?1, ?2)")?
            .insert(params![&*account.provider, &*account.host])
    }

    /// A transaction failed: what was noted in it may not be there.
    pub(super) fn forget(&self) {
        self.accounts.borrow_mut().clear();
    }

    /// The rows of an account: its source's and its own.
    pub(super) fn account(&self, account: &Account) -> rusqlite::Result<(i64, i64)> {
        let known = self.accounts.borrow().iter().find(|(known, _)| known == account).map(|(_, rows)| *rows);
        if let Some(rows) = known {
            return Ok(rows);
        }
        let rows = self.find_or_make(account)?;
        self.accounts.borrow_mut().push((account.clone(), rows));
        Ok(rows)
    }

    fn find_or_make(&self, account: &Account) -> rusqlite::Result<(i64, i64)> {
        let found = self
            .conn
            .prepare_cached(
                "SELECT source, account.id FROM account JOIN source ON source.id = source
                 WHERE provider = ?1 AND host = ?2 AND key_id = ?3",
            )?
            .query_row(params![&*account.provider, &*account.host, key_bits(account.key_id)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some(found) = found {
            return Ok(found);
        }
        let source = self.source(account)?;
        let id = self
            .conn
            .prepare_cached("INSERT INTO account(source, key_id) VALUES(?1, ?2)")?
            .insert(params![source, key_bits(account.key_id)])?;
        Ok((source, id))
    }
}
