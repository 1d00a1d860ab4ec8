//! SQLite's errors in our words.

use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::store::StoreError;

/// How long another process may hold the lock before we give up: far above any transaction of ours, so that only one
/// that hangs or was stopped reaches it.
pub(super) const PATIENCE_SECONDS: u64 = 60;

/// Whether another process is in the way, and trying again helps.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// What an error says of the store.
pub(super) fn fault(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_path_buf();
    let detail = error.to_string();
    let Some(code) = error.sqlite_error_code() else {
        return match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..) => StoreError::Damaged { path, detail },
            _ => StoreError::Failed { path, detail },
        };
    };
    let extended = error.sqlite_extended_error_code();
    match code {
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Damaged { path, detail },
        ErrorCode::DiskFull => StoreError::Full { path },
        // The shared index beside the log could not grow.
        ErrorCode::SystemIoFailure if extended == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
            StoreError::Full { path }
        }
        ErrorCode::ReadOnly => StoreError::ReadOnly { path },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            StoreError::Stuck { path, seconds: PATIENCE_SECONDS }
        }
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            StoreError::Unreachable { what: "open", path, source: Arc::new(std::io::Error::other(detail)) }
        }
        _ => StoreError::Failed { path, detail },
    }
}
