//! Whose claims are whose: which process has this opened store, and whether another's still lives.

use rusqlite::{OptionalExtension as _, params};

use super::db::Db;

/// One opened store among all, and the process that has it.
pub(super) struct Holder {
    /// Its number, by chance.
    pub(super) id: i64,
    pid: u32,
    started: i64,
    machine: String,
}

impl Holder {
    /// This process, with a store that it opens now.
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        Self { id: rand::random(), pid, started: started(pid).unwrap_or(0), machine: machine() }
    }
}

/// Notes that this process has the store open; in every transaction that claims something.
pub(super) fn enter(db: &Db) -> rusqlite::Result<()> {
    let me = &db.me;
    db.conn
        .prepare_cached("INSERT OR IGNORE INTO holder(id, pid, started, machine) VALUES(?1, ?2, ?3, ?4)")?
        .execute(params![me.id, me.pid, me.started, me.machine])?;
    Ok(())
}

/// Frees everything that this opened store claimed.
pub(super) fn leave(db: &Db) -> rusqlite::Result<()> {
    let entered = db.conn.prepare_cached("DELETE FROM holder WHERE id = ?1")?.execute(params![db.me.id])?;
    if entered > 0 {
        db.conn.prepare_cached("DELETE FROM claim WHERE holder = ?1")?.execute(params![db.me.id])?;
    }
    Ok(())
}

/// Whether the process that has made claims as `holder` is known to have ended. When in doubt it lives: its claims run
/// out by themselves.
pub(super) fn is_gone(db: &Db, holder: i64) -> rusqlite::Result<bool> {
    let row: Option<(u32, i64, String)> = db
        .conn
        .prepare_cached("SELECT pid, started, machine FROM holder WHERE id = ?1")?
        .query_row(params![holder], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    // Nobody leaves without freeing his claims, unless a prune removed him: then they had run out.
    let Some((pid, began, machine_then)) = row else { return Ok(true) };
    let machine = &db.me.machine;
    // Another container's numbers mean nothing here, and without a name of our own nothing can be said.
    if machine.is_empty() || *machine != machine_then || began == 0 {
        return Ok(false);
    }
    Ok(match started(pid) {
        Some(now) => now != began,
        None => rustix::process::Pid::from_raw(pid.cast_signed())
            .is_none_or(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)),
    })
}

/// When a process began, in the kernel's ticks: a number that is used again belongs to another process.
fn started(pid: u32) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything; the start is the 20th field behind it (proc(5)).
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// This start of this machine, and this space of process numbers; empty if it cannot be told.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if boot.is_empty() || space.as_os_str().is_empty() {
        return String::new();
    }
    format!("{} {}", boot.trim(), space.display())
}
