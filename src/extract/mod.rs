//! Turns bytes into the set of unique addresses, each with what was seen of it.
//!
//! Reads Suricata's eve.json, plain lists of addresses, and records of our own, by the rules that `tests/corpus.rs`
//! holds us to: lines end at LF; a line is one JSON text or several; an error anywhere makes the whole line invalid;
//! only the top-level keys `src_ip` and `dest_ip` count, and of two equal keys the last; the value is a plain
//! address; bytes that are no UTF-8 stand for U+FFFD. IPv4-mapped addresses are not folded into IPv4.
//!
//! Memory is bounded by the number of unique addresses, never by the size of the input. Knows nothing of providers.

mod address;
mod batch;
mod compare;
mod counts;
mod detect;
mod error;
mod event;
mod follow;
mod gather;
mod indicators;
mod json;
mod layout;
mod list;
mod names;
mod own;
mod parser;
mod recent;
mod run;
mod scan;
mod scope;
mod seen;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod window;
mod wrap;

use std::{io::Read, str::FromStr, sync::atomic::AtomicBool};

pub use self::{
    compare::disagreement,
    counts::{Counts, MAX_PLACES},
    error::{ExtractError, Place, Warning},
    follow::Follower,
    indicators::Indicators,
    scope::{Scope, embedded},
    seen::{MAX_PEERS, MAX_PORTS, MAX_PROTOS, MAX_SIGNATURES, RankKey, Seen, Signature},
    text::append_ip,
    wrap::{BadPath, EventPath},
};
use self::{detect::Shape, parser::Reading, run::Run};
use crate::input::{Blocks, Input, Source};

/// What an input holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputFormat {
    /// Told by looking, for each input by itself: an object is an event, or a record of ours if it has `ip` and `v`
    /// but neither `src_ip` nor `dest_ip`; an address is a list.
    #[default]
    Auto,
    /// Suricata's eve.json: one event a line.
    Eve,
    /// Plain addresses, one a line, with comments, defanged ones too.
    List,
    /// NDJSON that `sift extract` or `sift enrich` printed.
    Sift,
}

impl FromStr for InputFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "auto" => Ok(Self::Auto),
            "eve" => Ok(Self::Eve),
            "list" => Ok(Self::List),
            "sift" => Ok(Self::Sift),
            _ => Err(UnknownFormat),
        }
    }
}

/// Not one of the words of [`InputFormat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not one of auto, eve, list, sift")]
pub struct UnknownFormat;

/// See [`Options::max_malformed`].
const MAX_MALFORMED: f64 = 0.5;

/// What to take, and how much of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the inputs hold. Default: told by looking.
    pub format: InputFormat,
    /// Where in each line the event is, if it is wrapped. Default: the line is the event.
    pub event_path: Option<EventPath>,
    /// Only events of these types; empty for all, `["alert"]` for alerts.
    pub event_types: Vec<String>,
    /// Only alerts at least this severe: a value of at most this. 1 is the worst.
    pub severity: Option<u8>,
    /// Only events from this time on. An event without a readable timestamp is kept.
    pub since: Option<jiff::Timestamp>,
    /// Longest line in bytes, what is dropped before it not counted. Longer ones are malformed. Default 1 MiB.
    pub max_line: usize,
    /// Most unique addresses; one more fails the run. Default 1,000,000.
    pub max_unique: usize,
    /// Largest share of the lines that may be malformed, from 0 to 1. Default 0.5: a file of which most cannot be
    /// read is not what the user thinks it is, while a damaged log with more good than bad lines is worth reading.
    /// Fewer than ten malformed lines never fail a run in which something was read, and a last line without its end
    /// does not count.
    pub max_malformed: f64,
    /// Whether to gather what was seen of each address. Default true. Lists have nothing to gather.
    pub context: bool,
    /// Read every line to its end by RFC 8259. Default false.
    pub strict: bool,
    /// How many threads read: 0 for one a processor (the default), 1 for none beside the caller's. The result is the
    /// same whatever their number.
    pub threads: usize,
    /// Networks that are inside beside the private ones: they tell inbound from outbound (see [`RankKey`]).
    pub home_net: Vec<ipnet::IpNet>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: InputFormat::Auto,
            event_path: None,
            event_types: Vec::new(),
            severity: None,
            since: None,
            max_line: 1 << 20,
            max_unique: 1_000_000,
            max_malformed: MAX_MALFORMED,
            context: true,
            strict: false,
            threads: 0,
            home_net: Vec::new(),
        }
    }
}

/// What a run over all inputs gives.
#[derive(Debug)]
pub struct Extraction {
    /// The unique addresses.
    pub indicators: Indicators,
    /// What was read.
    pub counts: Counts,
    /// What a person should hear of.
    pub warnings: Vec<Warning>,
}

/// Reads all inputs, one after another, to their ends. Looks at `cancel` about once in 256 KiB.
///
/// # Errors
/// See [`ExtractError`]; the first one ends the run. A damaged compressed stream is a [`Warning`].
pub fn extract(inputs: &[Input], options: &Options, cancel: &AtomicBool) -> Result<Extraction, ExtractError> {
    let mut run = Run::new(options, cancel);
    for input in inputs {
        run.read(Source::open(input)?, input)?;
    }
    run.finish()
}

/// The same over a reader that is already open; `input` names it in messages.
///
/// # Errors
/// As [`extract`].
pub fn extract_reader(
    input: &Input,
    reader: impl Read + Send + 'static,
    options: &Options,
    cancel: &AtomicBool,
) -> Result<Extraction, ExtractError> {
    let mut run = Run::new(options, cancel);
    run.read(Source::over(input, Box::new(reader))?, input)?;
    run.finish()
}

/// How to read the lines, from the beginning of the input.
fn reading(blocks: &Blocks, input: &Input, format: InputFormat) -> Result<Reading, ExtractError> {
    if format == InputFormat::List {
        return Ok(Reading::List);
    }
    match (detect::shape(blocks.prefix(), blocks.prefix_is_all()), format) {
        (Shape::Array, _) => Err(ExtractError::Array { input: input.clone() }),
        (Shape::Pretty, _) => Err(ExtractError::Pretty { input: input.clone() }),
        (Shape::List, InputFormat::Auto) => Ok(Reading::List),
        (_, InputFormat::Sift) | (Shape::Own, InputFormat::Auto) => Ok(Reading::Own),
        _ => Ok(Reading::Eve),
    }
}
