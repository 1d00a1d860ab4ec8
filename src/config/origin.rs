//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The embedded default.
    Default,
    /// A line of a file, counted from 1; 0 is the file as a whole.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// The scenario of a rehearsal.
    Scenario(String),
    /// An environment variable.
    Variable(String),
    /// A flag, as typed: `--timeout`.
    Flag(String),
    /// The output of a command.
    Command(String),
}

impl Origin {
    pub(super) fn file(path: impl Into<PathBuf>, line: usize) -> Self {
        Self::File { path: path.into(), line }
    }

    /// The line, 0 where there is none.
    pub(super) const fn line(&self) -> usize {
        if let Self::File { path: _, line } = self { *line } else { 0 }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: 0 } => write!(f, "{}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Scenario(name) => write!(f, "scenario {name}"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::Command(program) => write!(f, "command {program}"),
        }
    }
}
