//! Makes what was committed last through a power cut.
//!
//! The writer commits into the log without waiting for the disk (`synchronous=NORMAL`): from then on what was done
//! outlasts this process, and the next group can be worked off. This thread waits for the disk, once for all the groups
//! that have come meanwhile, and only then answers who asked. Measured: on a disk that takes 8 ms, four times the
//! look-ups a second.
//!
//! It syncs the log through a descriptor of its own. That is safe: SQLite's locks are on the database and the shared index,
//! never on the log, and the log stays the same file for as long as a connection is open. What keeps the store whole SQLite
//! still syncs by itself: the log before it is folded, the file before the log begins anew.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::inbox::Work;
use super::open::beside;
use crate::store::StoreError;

/// Calls that were committed together. How many are under way the inbox's bound says.
pub(super) type Group = Vec<Box<dyn Work>>;

/// The way to the thread; it ends once this is dropped.
pub(super) type Committed = Sender<Group>;

/// The writer's end and the thread's.
pub(super) fn committed() -> (Committed, Receiver<Group>) {
    channel()
}

/// Answers what was committed once it is durable, until the writer is gone.
pub(super) fn serve(path: &Path, committed: &Receiver<Group>) {
    let mut log = None;
    let mut broken: Option<StoreError> = None;
    while let Ok(first) = committed.recv() {
        let groups: Vec<Group> = std::iter::once(first).chain(committed.try_iter()).collect();
        // Once it has failed, the system may have thrown away what it could not write: no later success says otherwise.
        if broken.is_none() {
            broken = sync(path, &mut log).err().map(|source| StoreError::Unreachable {
                what: "sync the log of",
                path: path.to_path_buf(),
                source: Arc::new(source),
            });
        }
        for call in groups.into_iter().flatten() {
            call.reply(broken.clone());
        }
    }
}

fn sync(path: &Path, log: &mut Option<File>) -> io::Result<()> {
    if let Some(log) = log {
        return log.sync_data();
    }
    let opened = File::open(beside(path, "-wal"))?;
    opened.sync_data()?;
    // Its name must outlast a power cut as well.
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    *log = Some(opened);
    Ok(())
}
