//! What can go wrong while writing.

use std::io;

/// Output that could not be written. Nothing more should be asked of anybody: who cannot write must not spend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The reader of the pipe has gone, as `| head` does. The run ends in success.
    #[error("nobody reads {target} any more")]
    ClosedPipe {
        /// `standard output`, or the file.
        target: String,
    },
    /// The device is full, or the user's share of it.
    #[error("no room left to write {target}")]
    Full {
        /// `standard output`, or the file.
        target: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Any other fault while writing.
    #[error("cannot write {target}")]
    Write {
        /// `standard output`, or the file.
        target: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file, or the unfinished one beside it, could not be opened.
    #[error("cannot open {target} for writing")]
    Open {
        /// The file.
        target: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The unfinished file could not be put in the place of the wanted one; it is left where it is.
    #[error("cannot move {partial} to {target}")]
    Publish {
        /// Where the records are.
        partial: String,
        /// Where they were to go.
        target: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl OutputError {
    /// Whether the reader has gone, which is no fault.
    #[must_use]
    pub const fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::ClosedPipe { .. })
    }

    /// Whether the device is full.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    pub(super) fn writing(target: &str, source: io::Error) -> Self {
        let target = target.to_owned();
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe { target },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { target, source }
            }
            _ => Self::Write { target, source },
        }
    }
}
