//! The one thread of this process that writes.
//!
//! What waits is done in one transaction, up to [`GROUP`] calls, and nobody is answered before it is durable: that is what
//! `sync` waits for while the next group is done here. A transaction always begins with `BEGIN IMMEDIATE`:
//! one that reads first and writes later can fail in a way that no waiting helps. If a group fails, each of its calls is
//! tried alone, so that one that cannot be done does not spoil the others; unless another process has held the lock all
//! that time, which would be no different for one of them.

use std::time::{Duration, Instant};

use super::db::Db;
use super::fault::{PATIENCE_SECONDS, fault, is_busy};
use super::holder;
use super::inbox::{Inbox, Work};
use super::sync::{Committed, Group};
use crate::store::{StoreError, crash};

/// Most calls in one transaction: from here on more per commit gains nothing (STORE.md §2.1 of the design measured 256).
const GROUP: usize = 256;

/// Works until the inbox is closed and empty.
pub(super) fn serve(db: &Db, inbox: &Inbox, committed: &Committed) {
    loop {
        let group = inbox.next(GROUP);
        if group.is_empty() {
            break;
        }
        carry_out(db, group, committed);
    }
    // Best effort: claims of a process that has gone are free in any case, and SQLite folds the log itself.
    let _left = patiently(db, &mut [], |_| holder::leave(db));
}

fn carry_out(db: &Db, mut group: Group, committed: &Committed) {
    match patiently(db, &mut group, |_| Ok(())) {
        Ok(()) => {
            crash::point("writer.before-reply");
            for call in &mut group {
                call.committed();
            }
            if let Err(untaken) = committed.send(group) {
                // The thread that syncs broke down: nobody can say what will last.
                untaken.0.into_iter().for_each(|call| call.reply(Some(StoreError::Closed)));
            }
        }
        Err(error) if group.len() == 1 || is_busy(&error) => {
            let fault = fault(&db.path, &error);
            for call in group {
                call.reply(Some(fault.clone()));
            }
        }
        Err(_) => {
            for call in group {
                carry_out(db, vec![call], committed);
            }
        }
    }
}

/// Runs calls in one transaction, again and again while another process is in the way.
fn patiently(
    db: &Db,
    group: &mut [Box<dyn Work>],
    mut also: impl FnMut(&Db) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        match transaction(db, group, &mut also) {
            Err(error) if is_busy(&error) && start.elapsed().as_secs() < PATIENCE_SECONDS => pause(),
            result => return result,
        }
    }
}

fn transaction(
    db: &Db,
    group: &mut [Box<dyn Work>],
    also: &mut impl FnMut(&Db) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    crash::point("writer.before-begin");
    db.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = group.iter_mut().try_for_each(|call| call.run(db)).and_then(|()| also(db)).and_then(|()| {
        crash::point("writer.before-commit");
        db.conn.prepare_cached("COMMIT")?.execute([])?;
        crash::point("writer.after-commit");
        Ok(())
    });
    if done.is_err() {
        db.forget();
    }
    if done.is_err() && !db.conn.is_autocommit() {
        // SQLite rolls back by itself after some errors; a second time would be one more error, of no interest.
        let _rolled_back = db.conn.execute_batch("ROLLBACK");
    }
    done
}

/// SQLite's answer to a lock that is held: waits a moment, of a length that differs from process to process, so that
/// several do not come back in step. Gives up after [`PATIENCE_SECONDS`].
pub(super) fn wait_for_lock(tries: i32) -> bool {
    pause();
    // A pause takes 1 ms on average.
    u64::try_from(tries).unwrap_or_default() < PATIENCE_SECONDS * 1000
}

#[expect(clippy::disallowed_methods, reason = "on a thread of the store's own")]
fn pause() {
    std::thread::sleep(Duration::from_micros(rand::random_range(100..1_900)));
}
