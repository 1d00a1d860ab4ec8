//! The opened store: three threads, and what they are asked through.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::db::Db;
use super::inbox::Inbox;
use super::{open, reader, schema, sync, writer};
use crate::store::{Early, Reply, StoreError};

/// Where a store lies, and for how long it keeps what.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder; made (0700) if it is not there. A folder of mode 2770 is shared: the store's files are 0660 then.
    pub folder: PathBuf,
    /// How long rows of the audit trail are kept.
    pub audit_kept: Duration,
}

impl Place {
    /// 90 days: a quarter's incidents can be looked into.
    pub const AUDIT_KEPT: Duration = Duration::from_secs(90 * 86_400);
    /// The file's name.
    pub const FILE: &'static str = "sift.db";

    /// A store in this folder, which keeps its audit trail for [`AUDIT_KEPT`](Self::AUDIT_KEPT).
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), audit_kept: Self::AUDIT_KEPT }
    }
}

/// An opened store. Dropped, it finishes what it was given, frees its claims, and folds its log into the file.
pub struct SqliteStore {
    path: Arc<Path>,
    pub(super) audit_kept: Duration,
    pub(super) writer: Worker,
    reader: Worker,
    syncer: Option<JoinHandle<()>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store, or makes it.
    ///
    /// # Errors
    /// Where there is no usable store and none can be made. A file that lies there is left as it is.
    pub fn open(place: &Place) -> Result<Self, StoreError> {
        let opened = open::open(&place.folder)?;
        let path = Arc::clone(&opened.writer.path);
        let (committed, groups) = sync::committed();
        let log = Arc::clone(&path);
        let syncer = start(&path, "sift-store-sync", move || sync::serve(&log, &groups))?;
        let write = move |db: &Db, inbox: &Inbox| writer::serve(db, inbox, &committed);
        let writer = Worker::start("sift-store-write", opened.writer, write)?;
        let reader = Worker::start("sift-store-read", opened.reader, reader::serve)?;
        Ok(Self { path, audit_kept: place.audit_kept, writer, reader, syncer: Some(syncer) })
    }

    /// The version of every store that is open: an older one is brought up to it.
    #[must_use]
    pub fn version() -> i64 {
        schema::version()
    }

    /// Whether a store may lie in this folder, as far as can be told without making anything. A folder that is not there
    /// is no fault.
    ///
    /// # Errors
    /// Why not.
    pub fn may_lie_in(folder: &Path) -> Result<(), StoreError> {
        open::may_lie_in(folder)
    }

    /// The store's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has something done in a transaction of the writer's.
    pub(super) fn write<T, F>(&self, run: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnMut(&Db) -> rusqlite::Result<T> + Send + 'static,
    {
        self.write_early(None, run)
    }

    /// The same, and has somebody told once it will outlast this process.
    pub(super) fn write_early<T, F>(&self, early: Early, run: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnMut(&Db) -> rusqlite::Result<T> + Send + 'static,
    {
        self.writer.inbox.ask(early, run)
    }

    /// Has something read.
    pub(super) fn read<T, F>(&self, run: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnMut(&Db) -> rusqlite::Result<T> + Send + 'static,
    {
        self.reader.inbox.ask(None, run)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer last: SQLite folds the log into the file when the last connection closes.
        self.reader.stop();
        self.writer.stop();
        if let Some(syncer) = self.syncer.take() {
            // It ends with the writer, after its last answer; a panic in it was reported when it happened.
            let _panicked = syncer.join();
        }
    }
}

/// One of the store's threads.
pub(super) struct Worker {
    pub(super) inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(
        name: &str,
        db: Db,
        serve: impl FnOnce(&Db, &Inbox) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let inbox = Arc::new(Inbox::new());
        let path = Arc::clone(&db.path);
        let theirs = Arc::clone(&inbox);
        let thread = start(&path, name, move || {
            // Whatever ends the thread, nobody waits for it afterwards.
            let _closed = theirs.close_on_drop();
            serve(&db, &theirs);
        })?;
        Ok(Self { inbox, thread: Some(thread) })
    }

    fn stop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened; those who waited were told that the store is closed.
            let _panicked = thread.join();
        }
    }
}

fn start(path: &Path, name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|source| StoreError::Unreachable {
        what: "start a thread for",
        path: path.to_path_buf(),
        source: Arc::new(source),
    })
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}
