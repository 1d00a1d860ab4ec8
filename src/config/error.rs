//! What can be wrong with a configuration: all of it at once.

use std::fmt;

use super::origin::Origin;

/// One fault, with its place, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct ConfigError {
    /// Where it is.
    pub origin: Origin,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// What the system said.
        reason: String,
    },
    /// The file is no TOML.
    #[error("{reason}")]
    Syntax {
        /// What the parser said.
        reason: String,
    },
    /// Nobody knows this key.
    #[error("unknown key '{key}' in {table}")]
    UnknownKey {
        /// As typed.
        key: String,
        /// `the top table`, or `[input]`.
        table: String,
        /// The known key that comes closest.
        nearest: Option<String>,
    },
    /// Nobody knows this provider.
    #[error("unknown provider '{name}'")]
    UnknownProvider {
        /// As typed.
        name: String,
        /// The known one that comes closest.
        nearest: Option<String>,
    },
    /// An API key stands in the configuration. The message does not show it.
    #[error("an API key does not belong in the configuration, which others may read")]
    KeyInConfiguration {
        /// Whose key it is.
        provider: String,
    },
    /// The value does not fit its key.
    #[error("'{key}' {reason}")]
    Value {
        /// The key, as a dotted path.
        key: String,
        /// Why not, as in `must be a share from 0 to 1, not 20`.
        reason: String,
    },
    /// Two values do not fit each other, or a line of a named file does not fit its purpose.
    #[error("{reason}")]
    Contradiction {
        /// Which, where each is, and why not.
        reason: String,
    },
}

impl ConfigError {
    pub(super) fn value(origin: Origin, key: &str, reason: impl Into<String>) -> Self {
        Self { origin, problem: Problem::Value { key: key.to_owned(), reason: reason.into() } }
    }

    /// What to type or change, where that is known.
    #[must_use]
    pub fn tip(&self) -> Option<String> {
        match &self.problem {
            Problem::UnknownKey { nearest: Some(nearest), .. }
            | Problem::UnknownProvider { nearest: Some(nearest), .. } => {
                Some(format!("did you mean '{nearest}'?"))
            }
            Problem::UnknownKey { nearest: None, .. } => {
                Some("'sift config init' writes a file with every key".to_owned())
            }
            Problem::UnknownProvider { nearest: None, .. } => {
                Some("'sift providers list' names them all".to_owned())
            }
            Problem::KeyInConfiguration { provider } => {
                Some(format!("take it out and store it with 'sift credentials set {provider}'"))
            }
            Problem::Unreadable { .. } => {
                Some("make it a file that you can read, or read none with --config none".to_owned())
            }
            Problem::Syntax { .. } | Problem::Value { .. } | Problem::Contradiction { .. } => None,
        }
    }
}

/// All faults of a configuration, in the order of the layers and their lines; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub(super) Vec<ConfigError>);

impl ConfigErrors {
    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
            if let Some(tip) = error.tip() {
                write!(f, "\n  tip: {tip}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
