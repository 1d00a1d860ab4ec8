//! What can go wrong, and what is only worth a word.

use serde::Serialize;

use crate::input::{Input, InputError};

/// A line of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Which input.
    pub input: Input,
    /// Its line, counted from 1.
    pub line: u64,
}

/// Why a run has no indicators to give.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// An input could not be opened or read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A compressed input that is damaged before its first line.
    #[error("nothing could be read from {input}: {cause}")]
    Damaged {
        /// Which input.
        input: Input,
        /// What the decompressor says.
        cause: String,
    },
    /// More lines than allowed could not be read.
    #[error("{malformed} of {lines} lines could not be read ({:.0} %, at most {:.0} % are allowed); {}", share * 100.0, max * 100.0, places(first))]
    TooManyMalformed {
        /// Lines that could not be read.
        malformed: u64,
        /// Lines that are not blank.
        lines: u64,
        /// `malformed / lines`.
        share: f64,
        /// What was allowed.
        max: f64,
        /// Where the first ones are.
        first: Vec<Place>,
    },
    /// More addresses than the run may hold in memory.
    #[error("more than {max} unique addresses, in line {} of {}", at.line, at.input)]
    TooManyUnique {
        /// What was allowed.
        max: usize,
        /// The line with the first address too many.
        at: Place,
    },
    /// The whole input is one JSON list.
    #[error("{input} is one JSON array, not one event a line")]
    Array {
        /// Which input.
        input: Input,
    },
    /// The objects are spread over several lines.
    #[error("{input} is pretty-printed JSON, not one event a line")]
    Pretty {
        /// Which input.
        input: Input,
    },
    /// Events are inside other objects, and nobody said where.
    #[error("the events of {input} are not at the top level but under '{path}'")]
    Wrapped {
        /// Which input.
        input: Input,
        /// Where they are.
        path: String,
    },
    /// The run was stopped from outside.
    #[error("stopped while reading")]
    Cancelled,
}

impl ExtractError {
    /// What to type or change, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Input(error) => error.hint().map(str::to_owned),
            Self::TooManyMalformed { .. } => {
                Some("raise --max-malformed if the rest is worth reading".to_owned())
            }
            Self::TooManyUnique { .. } => {
                Some("raise max_unique, or narrow with --alerts or --since".to_owned())
            }
            Self::Array { input } => Some(format!("jq -c '.[]' {} | sift ... -", argument(input))),
            Self::Pretty { input } => Some(format!("jq -c . {} | sift ... -", argument(input))),
            Self::Wrapped { path, .. } => Some(format!("pass --event-path {path}")),
            Self::Damaged { .. } | Self::Cancelled => None,
        }
    }
}

/// How the input is written on a command line.
fn argument(input: &Input) -> String {
    match input {
        Input::Stdin => "FILE".to_owned(),
        Input::File(path) => path.display().to_string(),
    }
}

/// "the first in lines 3, 9 of eve.json, line 1 of eve.json.1".
fn places(first: &[Place]) -> String {
    let mut text = "the first: ".to_owned();
    for (at, place) in first.iter().enumerate() {
        let is_same = |other: Option<&Place>| other.is_some_and(|other| other.input == place.input);
        let same = at > 0 && is_same(first.get(at - 1));
        if same {
            text += ", ";
        } else {
            text += if at == 0 { "" } else { "; " };
            text += &place.input.to_string();
            text += if is_same(first.get(at + 1)) { " lines " } else { " line " };
        }
        text += &place.line.to_string();
    }
    text
}

/// "the one event of eve.json does not have", "none of the 12 events of eve.json has".
fn lacking(events: u64, input: &Input) -> String {
    match events {
        1 => format!("the one event of {input} does not have"),
        _ => format!("none of the {events} events of {input} has"),
    }
}

/// What a person should hear of, although the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A compressed stream is damaged; what came out before is used.
    #[error("{input} is damaged after {bytes} bytes of text ({cause}); what came before is used")]
    Damaged {
        /// Which input.
        input: Input,
        /// What came out, in bytes.
        bytes: u64,
        /// What the decoder said.
        cause: String,
    },
    /// Lines that could not be read.
    #[error("{count} of {lines} lines could not be read; {}", places(first))]
    Malformed {
        /// How many.
        count: u64,
        /// Of how many that are not blank.
        lines: u64,
        /// Where the first ones are.
        first: Vec<Place>,
    },
    /// JSON texts that are no objects.
    #[error("{} (a number, a string, a list)", if *count == 1 { "1 JSON text is no event".to_owned() } else { format!("{count} JSON texts are no events") })]
    NotObject {
        /// How many.
        count: u64,
    },
    /// Events were read, and none has the keys.
    #[error("{} src_ip or dest_ip at its top level", lacking(*events, input))]
    NoKeys {
        /// Which input.
        input: Input,
        /// How many events.
        events: u64,
    },
    /// A file that is followed was cut back.
    #[error(
        "a file was cut back while it was followed, {} so far; what was cut off unread is lost",
        if *cuts == 1 { "once".to_owned() } else { format!("{cuts} times") }
    )]
    CutBack {
        /// How often.
        cuts: u64,
    },
    /// Values of `src_ip` or `dest_ip` that are no address.
    #[error("{count} {} no address", if *count == 1 { "value of src_ip or dest_ip is" } else { "values of src_ip or dest_ip are" })]
    BadIp {
        /// How many.
        count: u64,
    },
    /// Networks in a list, which are not looked up.
    #[error(
        "{}; a network is not looked up (use 'exclude' to leave it out)",
        if *count == 1 { "1 entry is a network, not an address".to_owned() } else { format!("{count} entries are networks, not addresses") }
    )]
    Networks {
        /// How many.
        count: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_said_in_the_singular() {
        let input = Input::File("eve.json".into());
        let place = |line| Place { input: input.clone(), line };
        assert_eq!(places(&[place(4)]), "the first: eve.json line 4");
        assert_eq!(places(&[place(4), place(5)]), "the first: eve.json lines 4, 5");
        let other = Place { input: Input::Stdin, line: 1 };
        assert_eq!(
            places(&[place(4), other, place(2), place(3)]),
            "the first: eve.json line 4; standard input line 1; eve.json lines 2, 3"
        );
        for (warning, words) in [
            (
                Warning::NoKeys { input: input.clone(), events: 1 },
                "the one event of eve.json does not have src_ip",
            ),
            (Warning::NoKeys { input, events: 2 }, "none of the 2 events of eve.json has src_ip"),
            (Warning::NotObject { count: 1 }, "1 JSON text is no event ("),
            (Warning::NotObject { count: 2 }, "2 JSON texts are no events ("),
            (Warning::Networks { count: 1 }, "1 entry is a network, not an address;"),
            (Warning::Networks { count: 2 }, "2 entries are networks, not addresses;"),
            (Warning::CutBack { cuts: 1 }, "a file was cut back while it was followed, once so far;"),
            (Warning::CutBack { cuts: 2 }, "a file was cut back while it was followed, 2 times so far;"),
        ] {
            assert!(warning.to_string().starts_with(words), "{warning}");
        }
    }
}
