//! What was read, for the summary.

use serde::Serialize;

use super::error::Place;

/// How many places of malformed lines are kept.
pub const MAX_PLACES: usize = 5;

/// Counts over all inputs of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Inputs read.
    pub files: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Lines, a last one without its end included.
    pub lines: u64,
    /// Lines with nothing but white space or NULs.
    pub blank: u64,
    /// Comment lines in lists.
    pub comments: u64,
    /// JSON objects read as events.
    pub events: u64,
    /// Events with `event_type` "alert".
    pub alerts: u64,
    /// Addresses read from lists and from records of our own, repeats included.
    pub entries: u64,
    /// Lines that could not be read, those over the cap included.
    pub malformed: u64,
    /// Where the first malformed lines are, at most [`MAX_PLACES`].
    pub first_malformed: Vec<Place>,
    /// Lines over `max_line`.
    pub too_long: u64,
    /// Lines with bytes that are no UTF-8; they are read all the same.
    pub non_utf8: u64,
    /// JSON texts that are no object.
    pub not_object: u64,
    /// Events left out by a filter; the counts from here on do not include them.
    pub filtered: u64,
    /// Events with an address.
    pub with_ip: u64,
    /// Events with neither `src_ip` nor `dest_ip`.
    pub no_ip_key: u64,
    /// Values of the two keys that are no address.
    pub bad_ip: u64,
    /// Networks in lists (each is also malformed).
    pub networks: u64,
    /// Inputs whose last line has no end.
    pub unterminated: u64,
    /// Inputs whose compressed stream is damaged.
    pub damaged: u64,
    /// Malformed last lines without an end: a writer in mid-line, which says nothing against the file.
    pub cut: u64,
}

impl Counts {
    /// Adds the counts of what follows; places are not among them.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.files, other.files),
            (&mut self.bytes, other.bytes),
            (&mut self.lines, other.lines),
            (&mut self.blank, other.blank),
            (&mut self.comments, other.comments),
            (&mut self.events, other.events),
            (&mut self.alerts, other.alerts),
            (&mut self.entries, other.entries),
            (&mut self.malformed, other.malformed),
            (&mut self.too_long, other.too_long),
            (&mut self.non_utf8, other.non_utf8),
            (&mut self.not_object, other.not_object),
            (&mut self.filtered, other.filtered),
            (&mut self.with_ip, other.with_ip),
            (&mut self.no_ip_key, other.no_ip_key),
            (&mut self.bad_ip, other.bad_ip),
            (&mut self.networks, other.networks),
            (&mut self.unterminated, other.unterminated),
            (&mut self.damaged, other.damaged),
            (&mut self.cut, other.cut),
        ] {
            *mine += theirs;
        }
    }

    /// Lines that hold something.
    #[must_use]
    pub fn nonblank(&self) -> u64 {
        self.lines - self.blank - self.comments
    }

    /// Whether anything was understood.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0 && self.entries == 0
    }
}
