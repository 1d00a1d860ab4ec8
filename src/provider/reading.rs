//! A reply as it came, and what was read from it.

use reqwest::header::HeaderMap;

use super::{Answer, ErrorType};

/// One HTTP reply: what the transport hands over.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status as sent.
    pub status: u16,
    /// The headers as sent.
    pub headers: HeaderMap,
    /// The body, decompressed and already bounded by the transport's cap.
    pub body: Vec<u8>,
}

/// What a failure concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This look-up alone.
    Lookup,
    /// Every look-up of this provider, for the rest of the run: the lane closes.
    Lane,
}

/// A reply that is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class, as it goes into the record.
    pub error: ErrorType,
    /// One look-up, or the lane.
    pub reach: Reach,
    /// One sentence for a person; holds no key and no URL.
    pub message: String,
    /// Whether the same request may be sent again within this look-up.
    pub retry: bool,
}

/// What a reply means.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// An answer, found or not.
    Answer(Box<Answer>),
    /// No answer.
    Failure(Failure),
}
