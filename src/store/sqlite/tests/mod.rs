#![expect(clippy::disallowed_methods, reason = "a test's files need no atomic writing")]

mod crash;
mod full;
mod places;
mod short;
mod speed;
mod sync;

use std::sync::Arc;

use super::{Place, SqliteStore};
use crate::store::conformance::{self, Ground};
use crate::store::{Store, StoreError};

/// A store in a folder of its own.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn place(&self) -> Place {
        Place::new(self.0.path().join("state"))
    }

    fn file(&self) -> std::path::PathBuf {
        self.place().folder.join(Place::FILE)
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.place()).unwrap()
    }

    /// The error with which it does not open.
    fn refused(&self) -> StoreError {
        SqliteStore::open(&self.place()).unwrap_err()
    }
}

impl Ground for Folder {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Self::open(self))
    }
}

#[test]
fn does_what_every_engine_must() {
    conformance::all(Folder::new);
}
