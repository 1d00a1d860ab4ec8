//! What can be wrong with a definition, its filter, or a request made from it.

use std::{fmt, io, path::PathBuf};

/// A place in a definition file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or `built-in NAME`.
    pub file: String,
    /// Counted from 1.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// One fault of one definition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The file or folder cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others than the owner could have written it.
    #[error("{path} can be written by group or others, so its requests are not trusted; chmod go-w {path}")]
    Writable {
        /// The file or the folder.
        path: PathBuf,
    },
    /// A file that is no definition.
    #[error("{path} {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is odd about it.
        why: &'static str,
    },
    /// The text is no TOML.
    #[error("{place}: {why}")]
    Syntax {
        /// Where.
        place: Place,
        /// The parser's words.
        why: String,
    },
    /// A key that no definition has.
    #[error("{place}: unknown key `{key}`{}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// Where.
        place: Place,
        /// With its table, as in `request.metod`.
        key: String,
        /// The known key that comes closest.
        nearest: Option<String>,
    },
    /// A key that must be there.
    #[error("{place}: `{key}` is missing: {why}")]
    Missing {
        /// Where the table begins.
        place: Place,
        /// With its table.
        key: String,
        /// What it says.
        why: &'static str,
    },
    /// A value that cannot be used.
    #[error("{place}: `{key}` {why}")]
    Value {
        /// Where.
        place: Place,
        /// With its table.
        key: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The filter does not compile.
    #[error("{place}: the filter does not compile")]
    Filter {
        /// The line in the file, where the filter's own fault is known.
        place: Place,
        /// What the filter's fault is.
        source: FilterError,
    },
    /// A base URL that a provider may not be moved to.
    #[error("{provider}: base URL {why}")]
    BaseUrl {
        /// The provider.
        provider: String,
        /// What is wrong, and what would be right.
        why: String,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// All faults of all definitions, so that they can be mended in one go.
#[derive(Debug)]
pub struct DefinitionErrors(pub Vec<DefinitionError>);

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                write!(f, ": {cause}")?;
                source = cause.source();
            }
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionErrors {}

/// Why a filter does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// No jq.
    #[error("line {line} of the filter: expected {expected}, found {found}")]
    Syntax {
        /// Counted from 1 within the filter.
        line: usize,
        /// What would have been right.
        expected: String,
        /// What stands there, shortened.
        found: String,
    },
    /// Names something that filters do not have, or may not use.
    #[error("line {line} of the filter: there is no {what} `{name}`; {allowed}")]
    Undefined {
        /// Counted from 1 within the filter.
        line: usize,
        /// Filter, variable, module or label.
        what: &'static str,
        /// As written.
        name: String,
        /// What may be used.
        allowed: String,
    },
    /// `import` and `include`.
    #[error("a filter cannot import or include modules or data")]
    Import,
    /// Longer than 8 KiB.
    #[error("{len} bytes are more than the {max} a filter may have")]
    TooLong {
        /// As found.
        len: usize,
        /// The cap.
        max: usize,
    },
    /// More brackets open at once than anybody writes.
    #[error("more than {max} brackets are open at once")]
    TooDeep {
        /// The cap.
        max: usize,
    },
    /// The compiler itself failed.
    #[error("the compiler gave up")]
    Compiler,
}

/// Why a request cannot be made. Never holds the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The provider wants a key and got none.
    #[error("{provider} needs a key; set {env}")]
    KeyMissing {
        /// The provider.
        provider: String,
        /// The first variable it is read from.
        env: String,
    },
    /// The key holds characters that cannot stand in a header.
    #[error("the key of {provider} holds a line break or another character that cannot be sent")]
    KeyUnfit {
        /// The provider.
        provider: String,
    },
    /// The provider does not answer for this family.
    #[error("{provider} does not answer for {family} addresses")]
    Family {
        /// The provider.
        provider: String,
        /// IPv4 or IPv6.
        family: &'static str,
    },
    /// No bulk form, or a batch that does not fit it.
    #[error("{provider} cannot be asked about {len} addresses at once, only about 1 to {size}")]
    Batch {
        /// The provider.
        provider: String,
        /// As asked.
        len: usize,
        /// The definition's size; 0 without a bulk form.
        size: u32,
    },
    /// Everybody runs it on their own, and nobody said where.
    #[error("{provider} has no base URL; set [providers.{provider}] base_url, or {env}")]
    NoBaseUrl {
        /// The provider.
        provider: String,
        /// The variable that holds it.
        env: String,
    },
}
