//! Answers that were paid for.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Account, Reply};

/// Longest raw body that is kept, before compression; a longer one is left out, its answer is kept all the same.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// One provider's answer about one address, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The address.
    pub ip: IpAddr,
    /// Whether the provider knows it.
    pub found: bool,
    /// JSON of `provider::Answer`.
    pub answer: Vec<u8>,
    /// The caller's hash over whatever makes the same body another answer: definition, filter, thresholds.
    pub version: u64,
    /// HTTP status of the reply.
    pub status: u16,
    /// The raw body, where it was kept and asked for: from it a changed filter can read again. At most
    /// [`MAX_BODY_BYTES`].
    pub body: Option<Vec<u8>>,
    /// When the reply arrived; kept to the microsecond.
    pub fetched_at: Timestamp,
    /// From when on it may be dropped; whether it is still fresh is the reader's to say.
    pub keep_until: Timestamp,
}

/// How old an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// When the reply arrived.
    pub fetched_at: Timestamp,
    /// Whether the provider knew the address.
    pub found: bool,
    /// See [`Stored::version`].
    pub version: u64,
}

/// An answer and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The provider's name.
    pub provider: Arc<str>,
    /// Where it was asked.
    pub host: Arc<str>,
    /// What it said, with the body where one was kept.
    pub stored: Stored,
}

/// What the cache holds of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStats {
    /// The provider's name.
    pub provider: Arc<str>,
    /// Where it was asked.
    pub host: Arc<str>,
    /// Answers.
    pub answers: u64,
    /// Bytes of answers and compressed bodies, with what the engine adds to each, estimated.
    pub bytes: u64,
    /// When the oldest and the newest arrived.
    pub fetched: Option<(Timestamp, Timestamp)>,
}

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Answers past their `keep_until`.
    pub expired: u64,
    /// Answers dropped for room.
    pub evicted: u64,
    /// Rows of the audit trail past their retention.
    pub audit: u64,
    /// Results of the queue that were read, past the same retention.
    pub results: u64,
}

/// Answers by provider, host and address, whatever the key. Errors and skips are never here.
pub trait Cache {
    /// What is kept of each address, in the order asked, whatever its age and version. `with_body`: the raw body too.
    fn answers(&self, account: &Account, ips: Vec<IpAddr>, with_body: bool) -> Reply<Vec<Option<Stored>>>;

    /// How old what is kept of each address is, in the order asked. For plans over very many addresses.
    fn ages(&self, account: &Account, ips: Vec<IpAddr>) -> Reply<Vec<Option<Age>>>;

    /// Keeps answers outside of any attempt: read again from a kept body by a changed filter. An older answer never
    /// replaces a newer one. An answer of the same moment without a body leaves the kept body in place.
    fn keep(&self, account: &Account, answers: Vec<Stored>) -> Reply<()>;

    /// Every answer about an address, of all providers, by name.
    fn explain(&self, ip: IpAddr) -> Reply<Vec<Kept>>;

    /// What is kept, by provider and host.
    fn stats(&self) -> Reply<Vec<CacheStats>>;

    /// Drops answers, of one provider or all, about one address or all; returns how many.
    fn clear(&self, provider: Option<Arc<str>>, ip: Option<IpAddr>) -> Reply<u64>;

    /// Drops what has expired, then what expires soonest until the cache takes at most `max_bytes`, then audit rows
    /// and read results of the queue past their retention, and gives room back to the file system. In small steps, so that nobody waits for it.
    fn prune(&self, now: Timestamp, max_bytes: u64) -> Reply<Pruned>;
}
