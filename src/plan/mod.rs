//! From addresses to look-ups: what must not be asked is dropped, the rest is ranked worst first.
//!
//! - [`guard`]: the scopes and networks that never leave the host.
//! - [`local`]: what answers on this machine, lists and MMDB files.
//! - [`rank`]: the order in which a small quota is spent.
//! - [`select`]: both, laid against the lanes and the run's limit.

pub mod guard;
pub mod local;
pub mod rank;
pub mod select;

pub use guard::{Cleared, Guard, Withheld};
pub use local::{Local, Said};
pub use select::{Fate, Plan, Why, fate, plan};
