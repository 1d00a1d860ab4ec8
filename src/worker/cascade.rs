//! `ask = "suspicious"` for tasks: what the providers that go first said of an address is in the cache by then.

use crate::plan::Local;
use crate::provider::{Answer, Verdict};
use crate::store::{Lease, QueueStatus, Store, StoreError};
use jiff::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;

/// Those whose word comes first; nobody where the provider is asked about every address.
#[derive(Debug, Clone, Default)]
pub struct First {
    /// The providers.
    pub providers: Arc<[Arc<str>]>,
    /// Lists of this machine have a say too.
    pub local: Arc<Local>,
}

/// Tasks that were taken, by what is to become of them.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// To be asked.
    pub(super) ask: Vec<Lease>,
    /// Cleared by the others: nobody is asked.
    pub(super) cleared: Vec<Lease>,
    /// The others have not been heard yet.
    pub(super) early: Vec<Lease>,
}

impl First {
    /// Sorts tasks by what the others said, as `enrich` does: a bad word is enough, a good one only once all were heard.
    pub(super) async fn sort(&self, store: &dyn Store, leases: Vec<Lease>) -> Result<Taken, StoreError> {
        if self.providers.is_empty() || leases.is_empty() {
            return Ok(Taken { ask: leases, ..Taken::default() });
        }
        let rows = store.status(Timestamp::now()).await?;
        let is_open = |row: &&QueueStatus| {
            self.providers.contains(&row.provider) && row.ready + row.delayed + row.leased > 0
        };
        let open: Vec<Arc<str>> = rows.iter().filter(is_open).map(|row| Arc::clone(&row.provider)).collect();
        let mut taken = Taken::default();
        for lease in leases {
            let said = self.said(store, lease.task.ip).await?;
            let is_bad = |verdict: &Verdict| matches!(verdict, Verdict::Malicious | Verdict::Suspicious);
            let all_were_heard = open.iter().all(|name| said.iter().any(|(by, _)| by == name));
            let verdicts = said.iter().map(|(_, verdict)| *verdict).chain(self.local.verdict(lease.task.ip));
            let verdicts: Vec<Verdict> = verdicts.collect();
            if verdicts.iter().any(is_bad) {
                taken.ask.push(lease);
            } else if !all_were_heard {
                taken.early.push(lease);
            } else if verdicts.contains(&Verdict::Benign) {
                taken.cleared.push(lease);
            } else {
                taken.ask.push(lease);
            }
        }
        Ok(taken)
    }

    /// What those that go first have said of the address.
    async fn said(&self, store: &dyn Store, ip: IpAddr) -> Result<Vec<(Arc<str>, Verdict)>, StoreError> {
        let kept =
            store.explain(ip).await?.into_iter().filter(|kept| self.providers.contains(&kept.provider));
        let said = kept.filter_map(|kept| {
            let answer = serde_json::from_slice::<Answer>(&kept.stored.answer).ok()?;
            Some((kept.provider, answer.verdict))
        });
        Ok(said.collect())
    }
}
