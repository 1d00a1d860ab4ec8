//! What can be wrong with a store.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a store cannot be opened or used. Whatever it is, the file is left as it was.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file is no store, or is no longer whole.
    #[error("the store {path} is damaged: {detail}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A newer version of this program has written it.
    #[error("the store {path} has version {found}, and this program knows versions up to {known}", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// It cannot be written.
    #[error("the store {path} cannot be written", path = path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be opened or made.
    #[error("cannot {what} {path}", path = path.display())]
    Unreachable {
        /// `open`, `make`, …
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// It could be opened, and must not be.
    #[error("will not use {path} as a store: {why}", path = path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// No room on the disk. Nothing that was not confirmed is in the store; a later call may work.
    #[error("no room left for the store {path}", path = path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process has held the store's lock for very long: it hangs or was stopped.
    #[error("the store {path} has been locked by another process for {seconds} s", path = path.display())]
    Stuck {
        /// The file.
        path: PathBuf,
        /// For how long.
        seconds: u64,
    },
    /// Reading or writing failed.
    #[error("the store {path} failed: {detail}", path = path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// The program was built with a SQLite that can corrupt a file which several processes write.
    #[error(
        "this program was built with SQLite {found}, which can damage a shared store; 3.51.3 is the oldest that cannot"
    )]
    Library {
        /// Its version.
        found: &'static str,
    },
    /// The store was closed.
    #[error("the store was closed")]
    Closed,
}

impl StoreError {
    /// What a person can do about it.
    #[must_use]
    pub const fn tip(&self) -> Option<&'static str> {
        match self {
            Self::Damaged { .. } => Some(
                "move the file away (with -wal and -shm) to begin anew, or go on without: --no-store. Nothing was changed",
            ),
            Self::Newer { .. } => Some("use the newer sift, or go on without: --no-store"),
            Self::ReadOnly { .. } | Self::Unreachable { .. } => Some(
                "check the folder's owner and mode, choose another with state_dir, or go on without: --no-store",
            ),
            Self::Refused { .. } => {
                Some("choose another folder with state_dir, or go on without: --no-store")
            }
            Self::Full { .. } => Some("make room; what was confirmed is safe"),
            Self::Stuck { .. } => Some("look for a sift that hangs or was stopped (Ctrl-Z)"),
            Self::Failed { .. } | Self::Library { .. } | Self::Closed => None,
        }
    }
}
