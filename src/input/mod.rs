//! Opens what is to be read and gives large blocks of whole lines.
//!
//! Files and standard input, plain, gzip (several members) or zstd (several frames), told apart by their first
//! bytes, never by their name. A UTF-8 byte order mark is dropped, UTF-16 is decoded. What is no text at all (an
//! archive, an executable) is refused with its name, since reading it would only give thousands of malformed lines.
//!
//! A damaged compressed stream gives what came out before the damage, and a note of it. A line longer than the cap
//! is skipped without being held. Knows nothing of JSON or addresses.

mod blocks;
mod follow;
mod gzip;
mod pieces;
mod sniff;
mod source;
mod utf16;

use std::{convert::Infallible, fmt, io, path::PathBuf, str::FromStr};

pub(crate) use blocks::{Blocks, Owned, Piece, is_padding};
pub(crate) use follow::Follow;
pub(crate) use pieces::Plain;
pub(crate) use source::Source;

/// Where bytes come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Input {
    /// Standard input, written `-`.
    Stdin,
    /// A file (or a named pipe).
    File(PathBuf),
}

impl FromStr for Input {
    type Err = Infallible;

    /// `-` is standard input, all else the path of a file.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::Stdin } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl serde::Serialize for Input {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why an input could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// There is no such file.
    #[error("{input} does not exist")]
    NotFound {
        /// What was to be read.
        input: Input,
    },
    /// The path names a directory.
    #[error("{input} is a directory, not a file")]
    Directory {
        /// What was to be read.
        input: Input,
    },
    /// The user may not read the file.
    #[error("{input} may not be read: permission denied")]
    Permission {
        /// What was to be read.
        input: Input,
    },
    /// Another failure to open.
    #[error("cannot open {input}")]
    Open {
        /// What was to be read.
        input: Input,
        /// What the system said.
        source: io::Error,
    },
    /// The device or the pipe failed while it was read (a damaged archive is no error, it ends the input).
    #[error("cannot read {input}")]
    Read {
        /// What was being read.
        input: Input,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes are no text.
    #[error("{input} is {what}, not text")]
    NotText {
        /// What was being read.
        input: Input,
        /// With its article, as "a zip archive".
        what: &'static str,
    },
    /// It is to be read on as it grows, and cannot be.
    #[error("{input} cannot be followed: it is {what}")]
    NotFollowed {
        /// What was to be read.
        input: Input,
        /// What it is instead of a plain file.
        what: &'static str,
    },
}

impl InputError {
    pub(crate) fn open(input: &Input, source: io::Error) -> Self {
        let input = input.clone();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { input },
            io::ErrorKind::PermissionDenied => Self::Permission { input },
            io::ErrorKind::IsADirectory => Self::Directory { input },
            _ => Self::Open { input, source },
        }
    }

    pub(crate) fn read(input: &Input, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::IsADirectory => Self::Directory { input: input.clone() },
            _ => Self::Read { input: input.clone(), source },
        }
    }

    /// What to type or change, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Directory { .. } => Some("name the files in it, as in 'DIR/eve.json*'"),
            Self::Permission { .. } => {
                Some("ask for read access, or pipe it in: 'sudo cat FILE | sift ... -'")
            }
            Self::NotText { .. } => {
                Some("unpack it and pass what is inside; gzip and zstd are read as they are")
            }
            Self::NotFollowed { .. } => {
                Some("follow the plain file that is being written; read what is finished without --follow")
            }
            _ => None,
        }
    }
}
