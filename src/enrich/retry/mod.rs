//! Whether, and when, an attempt is made again.
//!
//! A 429 is not here: it belongs to the whole lane ([`holdoff`](super::limit::holdoff)).

pub mod after;
pub(super) mod backoff;
pub(super) mod budget;
