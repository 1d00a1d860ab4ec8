//! Who asked whom about what.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use super::{KeyId, Reply, Who};

/// One attempt about one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Grows from row to row; see [`AuditPage::next`].
    pub id: u64,
    /// When it was admitted.
    pub at: Timestamp,
    /// The user's name.
    pub user: Arc<str>,
    /// The user's number.
    pub uid: u32,
    /// For whom.
    pub who: Who,
    /// Who was asked.
    pub provider: Arc<str>,
    /// Where.
    pub host: Arc<str>,
    /// With which key.
    pub key_id: KeyId,
    /// About which address.
    pub ip: IpAddr,
    /// `found`, `not_found`, or a word of [`ErrorType`](crate::provider::ErrorType); none while it is in flight, or if
    /// its process died.
    pub outcome: Option<Arc<str>>,
}

/// Which rows; everything that is none does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
    /// Provider's name.
    pub provider: Option<Arc<str>>,
    /// User's name.
    pub user: Option<Arc<str>>,
    /// Job's name.
    pub job: Option<Arc<str>>,
    /// Address.
    pub ip: Option<IpAddr>,
}

/// Some of the rows, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The rows.
    pub rows: Vec<AuditRow>,
    /// What to ask for next; none when there is no more.
    pub next: Option<u64>,
}

/// The audit trail. Rows are written by [`Ledger::admit`](super::Ledger::admit), in the same transaction, and dropped
/// after their retention by [`Cache::prune`](super::Cache::prune).
pub trait Audit {
    /// A page of the rows that the filter lets through, from row `after` (0: from the first) on.
    fn audit(&self, filter: AuditFilter, after: u64) -> Reply<AuditPage>;
}
