//! Admission before a look-up leaves, settlement after it, and the rows of `sift quota`.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use super::SqliteStore;
use super::db::Db;
use super::period::{self, Period};
use super::value::{At, Ip, Wide, count, key_id, uncount};
use super::{audit, cache, holder, short, told};
use crate::provider::Window;
use crate::store::{
    Account, Admission, Admitted, Ask, Blocked, Early, End, Ledger, Look, QuotaRow, Reply, Settled,
    TellingOf, Who, Why,
};

impl Ledger for SqliteStore {
    fn admit(&self, ask: Arc<Ask>, looks: Vec<Look>, each: bool, now: Timestamp) -> Reply<Admitted> {
        self.write(move |db| admit(db, &ask, &looks, each, now))
    }

    fn settle(&self, account: &Account, settled: Vec<Settled>, early: Early) -> Reply<()> {
        let account = account.clone();
        self.write_early(early, move |db| {
            let (source, account) = db.account(&account)?;
            settled.iter().try_for_each(|settled| settle(db, source, account, settled))
        })
    }

    fn told(&self, account: &Account, telling: TellingOf, now: Timestamp) -> Reply<()> {
        let account = account.clone();
        self.write(move |db| {
            let (_, account) = db.account(&account)?;
            told::told(db, account, telling, now)
        })
    }

    fn hold(
        &self,
        account: &Account,
        until: Timestamp,
        used_up: Option<Window>,
        now: Timestamp,
    ) -> Reply<()> {
        let account = account.clone();
        self.write(move |db| {
            let (_, account) = db.account(&account)?;
            hold(db, account, until, used_up, now)
        })
    }

    fn quota(&self, now: Timestamp) -> Reply<Vec<QuotaRow>> {
        self.read(move |db| quota(db, now))
    }
}

fn admit(db: &Db, ask: &Ask, looks: &[Look], each: bool, now: Timestamp) -> rusqlite::Result<Admitted> {
    let (source, account) = db.account(&ask.account)?;
    let mut verdicts = looks
        .iter()
        .map(|look| elsewhere(db, source, look, now).map(|verdict| verdict.unwrap_or(Admission::Blocked)))
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let wanted = verdicts.iter().filter(|verdict| **verdict == Admission::Blocked).count();
    if wanted == 0 {
        return Ok(Admitted { verdicts, blocked: None });
    }
    let cost = if each { wanted as u64 } else { 1 };
    let mut periods = period::asked(db, account, &ask.quotas, ask.rolling_day, ask.reserve, now)?;
    let (room, blocked) = room(db, account, ask, &periods, cost, now)?;
    let leaving = match (each, room) {
        (true, room) => usize::try_from(room).unwrap_or(usize::MAX),
        (false, 0) => 0,
        (false, _) => wanted,
    };
    if leaving > 0 {
        for period in &mut periods {
            period::spend(db, account, period, room, now)?;
        }
        short::spend(db, account, &ask.quotas, ask.burst, room, now)?;
        let claims = Claims::of(db, ask, source, account, now)?;
        let mut costs = std::iter::once(1).chain(std::iter::repeat(u64::from(each)));
        let fitting = looks.iter().zip(&mut verdicts).filter(|(_, verdict)| **verdict == Admission::Blocked);
        for (look, verdict) in fitting.take(leaving) {
            claims.claim(db, look.ip, costs.next().unwrap_or(0))?;
            *verdict = Admission::Go;
        }
    }
    Ok(Admitted { verdicts, blocked })
}

/// Whether another process has this look-up in flight, or has made it.
fn elsewhere(db: &Db, source: i64, look: &Look, now: Timestamp) -> rusqlite::Result<Option<Admission>> {
    let claim: Option<(i64, At)> = db
        .conn
        .prepare_cached("SELECT holder, until FROM claim WHERE source = ?1 AND ip = ?2")?
        .query_row(params![source, Ip(look.ip)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((theirs, At(until))) = claim
        && theirs != db.me.id
        && until > now
        && !holder::is_gone(db, theirs)?
    {
        return Ok(Some(Admission::Elsewhere(until)));
    }
    let fetched_at = cache::fetched_at(db, source, look.ip)?;
    // What the caller knows may have more digits than we keep.
    let known = look.known.map(Timestamp::as_microsecond);
    Ok(fetched_at.filter(|at| Some(at.as_microsecond()) > known).map(|_| Admission::Answered))
}

/// How many of `n` look-ups fit into everything, and what stands in the way of the rest: of several, what lets the fewest
/// through, and of those alike, what lasts longest.
fn room(
    db: &Db,
    account: i64,
    ask: &Ask,
    periods: &[Period],
    n: u64,
    now: Timestamp,
) -> rusqlite::Result<(u64, Option<Blocked>)> {
    if let Some((until, window)) = held(db, account)?.filter(|(until, _)| *until > now) {
        let why = if window.is_some() { Why::Told } else { Why::HeldOff };
        let left = periods.iter().find(|period| Some(period.window) == window).map_or(0, Period::left);
        return Ok((0, Some(Blocked { window, until, why, left })));
    }
    let (mut room, mut blocked) = short::room(db, account, &ask.quotas, ask.burst, n, now)?;
    for period in periods {
        let left = period.left();
        let kept = if ask.who == Who::Person { 0 } else { period.kept() };
        let fits = left.saturating_sub(kept);
        if fits < n
            && (fits < room || blocked.is_none_or(|blocked| fits == room && period.ends > blocked.until))
        {
            let why = match period.told {
                _ if left > 0 && kept > 0 => Why::Reserve,
                Some((0, _)) => Why::Told,
                _ => Why::Quota,
            };
            let until =
                if left == 0 { told::known_by(db, account, period, now)? } else { period.ends.max(now) };
            blocked = Some(Blocked { window: Some(period.window), until, why, left });
        }
        room = room.min(fits);
    }
    Ok((room, blocked))
}

/// What a transaction's claims have in common.
struct Claims {
    source: i64,
    account: i64,
    actor: i64,
    now: Timestamp,
    until: Timestamp,
}

impl Claims {
    fn of(db: &Db, ask: &Ask, source: i64, account: i64, now: Timestamp) -> rusqlite::Result<Self> {
        holder::enter(db)?;
        let keep = SignedDuration::try_from(ask.keep_claim).unwrap_or(SignedDuration::MAX);
        let until = now.checked_add(keep).unwrap_or(Timestamp::MAX);
        Ok(Self { source, account, actor: audit::actor(db, ask)?, now, until })
    }

    fn claim(&self, db: &Db, ip: IpAddr, cost: u64) -> rusqlite::Result<()> {
        let ip = Ip(ip);
        let row = audit::write(db, self.actor, self.account, &ip, self.now)?;
        db.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO claim(source, ip, account, holder, at, until, cost, audit)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                self.source,
                ip,
                self.account,
                db.me.id,
                At(self.now),
                At(self.until),
                count(cost),
                row
            ])?;
        Ok(())
    }
}

/// Ends one look-up. Without a claim, which ran out and was taken over, an answer is kept all the same.
pub(super) fn settle(db: &Db, source: i64, account: i64, settled: &Settled) -> rusqlite::Result<()> {
    let claim: Option<(At, i64, i64)> = db
        .conn
        .prepare_cached(
            "DELETE FROM claim WHERE source = ?1 AND ip = ?2 AND holder = ?3 RETURNING at, cost, audit",
        )?
        .query_row(params![source, Ip(settled.ip), db.me.id], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let outcome = match &settled.end {
        End::Answered(stored) => {
            cache::put(db, source, stored)?;
            if stored.found { "found" } else { "not_found" }
        }
        End::Nothing(error) => error.as_str(),
        End::NotSent => {
            let Some((At(at), cost, row)) = claim else { return Ok(()) };
            audit::take_back(db, row)?;
            return give_back(db, account, uncount(cost), at);
        }
    };
    claim.map_or(Ok(()), |(_, _, row)| audit::outcome(db, row, outcome))
}

fn give_back(db: &Db, account: i64, cost: u64, at: Timestamp) -> rusqlite::Result<()> {
    if cost == 0 {
        return Ok(());
    }
    // As of the admission: what has ended since is told apart there.
    for mut period in period::all(db, account, at)? {
        period::give_back(db, account, &mut period, cost, at)?;
    }
    short::give_back(db, account, cost, at)
}

/// Until when the account is held off, and which window is used up.
fn held(db: &Db, account: i64) -> rusqlite::Result<Option<(Timestamp, Option<Window>)>> {
    db.conn
        .prepare_cached("SELECT held_until, held_window FROM account WHERE id = ?1 AND held_until > 0")?
        .query_row(params![account], |row| {
            let window: Option<Wide> = row.get(1)?;
            Ok((row.get::<_, At>(0)?.0, window.map(|Wide(window)| window)))
        })
        .optional()
}

/// Holds the account off, unless it is for longer already.
pub(super) fn hold(
    db: &Db,
    account: i64,
    until: Timestamp,
    used_up: Option<Window>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    if until <= now {
        return Ok(());
    }
    db.conn
        .prepare_cached(
            "UPDATE account SET held_until = ?2, held_window = ?3 WHERE id = ?1 AND held_until < ?2",
        )?
        .execute(params![account, At(until), used_up.map(Wide)])?;
    Ok(())
}

fn quota(db: &Db, now: Timestamp) -> rusqlite::Result<Vec<QuotaRow>> {
    let mut select = db.conn.prepare_cached(
        "SELECT account.id, provider, host, key_id FROM account JOIN source ON source.id = source
         ORDER BY provider, host, key_id",
    )?;
    let accounts = select
        .query_map([], |row| {
            let account = Account { provider: row.get(1)?, host: row.get(2)?, key_id: key_id(row.get(3)?) };
            Ok((row.get::<_, i64>(0)?, account))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for (id, account) in accounts {
        let held_until = held(db, id)?.map(|(until, _)| until).filter(|until| *until > now);
        let mut periods = period::all(db, id, now)?;
        periods.sort_by_key(|period| period.window);
        rows.extend(periods.into_iter().map(|period| QuotaRow {
            provider: Arc::clone(&account.provider),
            host: Arc::clone(&account.host),
            key_id: account.key_id,
            window: period.window,
            limit: period.limit(),
            used: period.used,
            left: period.left(),
            reserve: period.kept(),
            resets_at: period.ends.max(now),
            told: period.told,
            held_until,
        }));
    }
    Ok(rows)
}
