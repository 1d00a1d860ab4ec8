//! The one thread of this process that reads.
//!
//! Each call sees the store as of one moment. Readers wait for nobody, and nobody waits for them.

use super::db::Db;
use super::fault::fault;
use super::inbox::Inbox;

/// Most calls that are taken from the inbox at once.
const AT_ONCE: usize = 64;

/// Works until the inbox is closed and empty.
pub(super) fn serve(db: &Db, inbox: &Inbox) {
    loop {
        let calls = inbox.next(AT_ONCE);
        if calls.is_empty() {
            return;
        }
        for mut call in calls {
            let result = snapshot(db, |db| call.run(db));
            call.reply(result.err().map(|error| fault(&db.path, &error)));
        }
    }
}

fn snapshot(db: &Db, read: impl FnOnce(&Db) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    db.conn.prepare_cached("BEGIN")?.execute([])?;
    let result = read(db);
    let ended = db.conn.prepare_cached("ROLLBACK")?.execute([]).map(|_changed| ());
    result.and(ended)
}
