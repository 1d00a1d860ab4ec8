//! What the store already holds of a plan: which look-ups the cache answers, and what is left of the quotas.

use crate::enrich::{LaneSpec, Memory};
use crate::extract::Indicators;
use crate::plan::{Guard, Plan};
use crate::provider::Window;
use crate::store::{QuotaRow, StoreError, Who};
use jiff::Timestamp;
use std::net::IpAddr;

/// Addresses that are read at once.
const BLOCK: usize = 4_096;

/// What the cache answers of a ranked order.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By lane, and by the address's number: whether there is a fresh answer.
    fresh: Vec<Vec<bool>>,
    /// By place of the order: whether every lane has one.
    pub(super) answered: Vec<bool>,
}

impl Kept {
    /// Looks the order up.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub(super) async fn of(
        memory: &Memory,
        lanes: &[LaneSpec],
        indicators: &Indicators,
        guard: &Guard,
        order: &[u32],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        if memory.refresh {
            return Ok(Self::default());
        }
        let mut kept = Self {
            fresh: vec![vec![false; indicators.len()]; lanes.len()],
            answered: vec![true; order.len()],
        };
        for (fresh, lane) in kept.fresh.iter_mut().zip(lanes) {
            let due = order.iter().enumerate().filter_map(|(place, &id)| {
                let ip = indicators.ip(id);
                let takes = lane.definition.accepts.accepts(ip)
                    && guard.clear(ip, lane.definition.is_loopback()).is_ok();
                takes.then_some((place, ip))
            });
            let due: Vec<(usize, IpAddr)> = due.collect();
            for block in due.chunks(BLOCK) {
                let ips = block.iter().map(|(_, ip)| *ip).collect();
                let ages = memory.store.ages(&lane.keeping.account, ips).await?;
                for ((place, _), age) in block.iter().zip(ages) {
                    let is_fresh =
                        age.is_some_and(|age| memory.is_fresh(&lane.keeping, age.found, age.fetched_at, now));
                    let id = order.get(*place).map_or(0, |&id| id as usize);
                    if let Some(fresh) = fresh.get_mut(id) {
                        *fresh = is_fresh;
                    }
                    if let Some(answered) = kept.answered.get_mut(*place).filter(|_| !is_fresh) {
                        *answered = false;
                    }
                }
            }
        }
        Ok(kept)
    }

    /// The ranks, from 1, of the plan's addresses that the lane would have to ask about.
    pub(super) fn missing<'a>(
        &'a self,
        number: usize,
        lane: &'a LaneSpec,
        plan: &'a Plan,
        indicators: &'a Indicators,
        guard: &'a Guard,
    ) -> impl Iterator<Item = u64> + 'a {
        let definition = &lane.definition;
        let takes = move |id: u32| {
            let ip = indicators.ip(id);
            definition.accepts.accepts(ip) && guard.clear(ip, definition.is_loopback()).is_ok()
        };
        let ranked = (1..).zip(plan.order.iter().copied());
        ranked.filter(move |&(_, id)| takes(id) && !self.is_fresh(number, id)).map(|(rank, _)| rank)
    }

    /// Whether the lane has a fresh answer about the address.
    fn is_fresh(&self, lane: usize, id: u32) -> bool {
        self.fresh.get(lane).and_then(|fresh| fresh.get(id as usize)).copied().unwrap_or(false)
    }
}

/// What is left of a lane's tightest long window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) window: Window,
    /// For anybody.
    pub(super) all: u64,
    /// For this run: less by the reserve where it is a job's.
    pub(super) usable: u64,
    /// Where the provider is held off: until when.
    pub(super) held_until: Option<Timestamp>,
}

/// What is left for the lane, by the ledger's rows; a window that was never spent of is whole.
pub(super) fn left(lane: &LaneSpec, rows: &[QuotaRow], who: &Who) -> Option<Left> {
    let account = &lane.keeping.account;
    let own = |row: &&QuotaRow| {
        row.provider == account.provider && row.host == account.host && row.key_id == account.key_id
    };
    let known: Vec<&QuotaRow> = rows.iter().filter(own).collect();
    let for_run = |left: u64, kept: u64| if *who == Who::Person { left } else { left.saturating_sub(kept) };
    // The row has the limit of the run that was last; the next one goes by the configuration, unless the provider told.
    let configured = |row: &QuotaRow| {
        let quota = lane.settings.quotas.iter().find(|quota| quota.window == row.window);
        quota.filter(|_| row.told.is_none()).map(|quota| u64::from(quota.count.get()))
    };
    let spent = known.iter().map(|row| {
        let (all, kept) = configured(row).map_or((row.left, row.reserve), |limit| {
            (limit.saturating_sub(row.used), reserved(limit, lane.keeping.reserve))
        });
        let usable = if row.held_until.is_some() { 0 } else { for_run(all, kept) };
        Left { window: row.window, all, usable, held_until: row.held_until }
    });
    let whole =
        lane.settings.quotas.iter().filter(|quota| known.iter().all(|row| row.window != quota.window));
    let whole = whole.map(|quota| {
        let count = u64::from(quota.count.get());
        let usable = for_run(count, reserved(count, lane.keeping.reserve));
        Left { window: quota.window, all: count, usable, held_until: None }
    });
    spent.chain(whole).min_by_key(|left| (left.usable, left.all))
}

/// The part of a quota that is kept for people, as the ledger rounds it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a count far below 2^52"
)]
fn reserved(count: u64, share: f64) -> u64 {
    (count as f64 * share.clamp(0.0, 1.0)).floor() as u64
}
