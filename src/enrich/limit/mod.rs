//! What bounds a lane: its pace, its hold-off, and what is left of the provider's allowance.
//!
//! Nothing here waits, asks or draws a random number of its own; `now` and the generator come in. The waiting is
//! [`lane`](super::lane)'s.

pub(super) mod allowance;
pub mod headers;
pub(super) mod holdoff;
pub(super) mod pace;
mod windows;
