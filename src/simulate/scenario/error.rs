//! What can be wrong with a scenario, and the nearest key for the one that is not known.

use std::path::{Path, PathBuf};

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file, or a `body_file` it names, cannot be read.
    #[error("{}: cannot read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A key that no scenario has.
    #[error("{}:{line}: unknown key '{key}'", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The key as written.
        key: String,
        /// The known key that is nearest, if one is near.
        nearest: Option<String>,
    },
    /// Not TOML, or a value that makes no sense.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A provider's settings do not fit together.
    #[error("{}: provider '{provider}': {message}", path.display())]
    Provider {
        /// The file.
        path: PathBuf,
        /// Its name in the scenario.
        provider: String,
        /// What is wrong with it.
        message: String,
    },
}

impl ScenarioError {
    /// What to type instead, where that is known.
    #[must_use]
    pub fn tip(&self) -> Option<String> {
        match self {
            Self::UnknownKey { nearest: Some(nearest), .. } => Some(format!("did you mean '{nearest}'?")),
            _ => None,
        }
    }

    /// Turns a parser's error into ours; `text` is what was parsed.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let path = path.to_owned();
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        // The parser keeps the key and the known ones in its text only, each between back quotes.
        let mut quoted = error.message().split('`').skip(1).step_by(2);
        match quoted.next() {
            Some(key) if error.message().starts_with("unknown field") => {
                Self::UnknownKey { path, line, nearest: nearest(key, quoted), key: key.to_owned() }
            }
            _ => {
                let message = error.message().trim_end().replace(['\r', '\n'], " ");
                Self::Invalid { path, line, message }
            }
        }
    }
}

/// The known word at most a third of the key's length (and at least two edits) away.
fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let reach = (key.chars().count() / 3).max(2);
    known
        .map(|word| (distance(key, word), word))
        .filter(|(far, _)| *far <= reach)
        .min_by_key(|(far, _)| *far)
        .map(|(_, word)| word.to_owned())
}

/// Levenshtein's distance, in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut last = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let next = (diagonal + usize::from(a != *b)).min(*cell + 1).min(last + 1);
            diagonal = std::mem::replace(cell, next);
            last = next;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (left, right, far) in
            [("", "", 0), ("latency", "latency", 0), ("latnecy", "latency", 2), ("a", "", 1), ("", "abc", 3)]
        {
            assert_eq!(distance(left, right), far, "{left} {right}");
        }
    }

    #[test]
    fn nearest_is_silent_when_nothing_is_near() {
        assert_eq!(nearest("latencie", ["limits", "latency"].into_iter()), Some("latency".to_owned()));
        assert_eq!(nearest("colour", ["limits", "latency"].into_iter()), None);
    }
}
