//! What outlives a process, shared by all processes of this machine (or, with another engine, of several machines).
//!
//! Stands beside the way of the data. [`Store`] is the sum of four traits:
//!
//! - [`Cache`]: answers, by provider, host and address. Never errors or skips.
//! - [`Ledger`]: what was spent of each quota, who is asking about what just now, and until when a provider is not to be
//!   asked. An attempt is admitted here, durably, *before* it leaves.
//! - [`Audit`]: one row for every attempt that was admitted.
//! - [`Queue`]: look-ups to be made later, taken by lease, and their results.
//!
//! `SqliteStore` is the engine for one machine. The room knows `provider`'s quotas and words of failure, and nothing of
//! `enrich`. It reads no clock: `now` comes in with each call, so that a test needs no sleep and a run on tokio's paused
//! clock sees the same decisions.
//!
//! # Futures
//! Every call gives a [`Reply`], which owns its data and needs no particular runtime. Nothing happens before it is first
//! polled. Dropped after that, the call may still be carried out; only its result is lost. It resolves when what it did is
//! durable: a power cut does not undo it. Where a caller can use the time, [`Early`] tells it before that.

mod account;
mod audit;
mod cache;
#[cfg(test)]
mod conformance;
pub(crate) mod crash;
mod error;
mod ledger;
mod queue;
mod sqlite;

use std::fmt::Debug;
use std::pin::Pin;

pub use account::{Account, KeyId};
pub use audit::{Audit, AuditFilter, AuditPage, AuditRow};
pub use cache::{Age, Cache, CacheStats, Kept, MAX_BODY_BYTES, Pruned, Stored};
pub use error::StoreError;
pub use ledger::{
    Admission, Admitted, Ask, Blocked, End, Ledger, Look, QuotaRow, Settled, TellingOf, Who, Why,
};
pub use queue::{
    Added, Completed, Done, Ended, FailedTask, Lease, Purge, Queue, QueueStatus, Released, Task, TaskId,
};
pub use sqlite::{Place, SqliteStore};

/// A call's result, in the future.
pub type Reply<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Told as soon as what a call does will outlast this process, though not yet a power cut: a disk takes its milliseconds
/// for that. Dropped untold where it never will.
pub type Early = Option<tokio::sync::oneshot::Sender<()>>;

/// Everything that outlives a process. Used as `Arc<dyn Store>`.
pub trait Store: Cache + Ledger + Audit + Queue + Debug + Send + Sync {}

impl<T: Cache + Ledger + Audit + Queue + Debug + Send + Sync> Store for T {}
