//! What was spent of each quota, by all processes; who is asking about what; who is not to be asked.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Account, Early, KeyId, Reply, Stored};
use crate::provider::{ErrorType, Quota, Window};

/// For whom a look-up is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Who {
    /// Somebody who waits for it: may use the whole quota.
    Person,
    /// A run with `--job NAME`: leaves the reserve alone.
    Job(Arc<str>),
    /// The queue's worker: leaves the reserve alone. The name of the job whose tasks it works off, if they have one.
    Worker(Option<Arc<str>>),
}

/// On whose account, within which quotas, and for whom look-ups are to be admitted. The same for a whole lane.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Whose quota.
    pub account: Account,
    /// Every window, short (up to an hour) and long.
    pub quotas: Vec<Quota>,
    /// Sends that may leave at once where they are paced one by one, as the lane's own pace has it; 0 where a batch may
    /// fill a short window at once.
    pub burst: u32,
    /// The provider's day is the last 24 hours, not the calendar's UTC day. Weeks always roll, months never do.
    pub rolling_day: bool,
    /// Share (0 to 1) of each long window that is kept for people.
    pub reserve: f64,
    /// For whom.
    pub who: Who,
    /// The user's name, for the audit trail.
    pub user: Arc<str>,
    /// How long a claim holds if it is never settled: longer than an attempt can take.
    pub keep_claim: Duration,
}

/// A look-up that wants to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// About which address.
    pub ip: IpAddr,
    /// `fetched_at` of the answer that the caller saw in the cache and does not want, or none if it saw none. If a newer
    /// one is there by now, another process has made this look-up: [`Admission::Answered`]. If that one is of no use
    /// either (another version of the definition has read it, and its body was not kept), it is what is known next time.
    pub known: Option<Timestamp>,
}

impl From<IpAddr> for Look {
    fn from(ip: IpAddr) -> Self {
        Self { ip, known: None }
    }
}

/// What becomes of one look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may leave: counted, claimed, in the audit trail. To be settled in any case.
    Go,
    /// Another process has it in flight; its claim ends by then at the latest. To be asked about again soon: most look-ups
    /// take a fraction of a second.
    Elsewhere(Timestamp),
    /// Another process has its answer: it is in the cache.
    Answered,
    /// Did not fit: [`Admitted::blocked`] says why.
    Blocked,
}

/// Why a look-up may not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A window is full by our own count.
    Quota,
    /// What is left of a window is kept for people.
    Reserve,
    /// The provider said that a window is used up.
    Told,
    /// The provider said to wait.
    HeldOff,
}

/// What stands in the way of those that did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// The window, where one is to blame.
    pub window: Option<Window>,
    /// When to try again: when the window has room, or soon, where what is left depends on replies still in flight.
    pub until: Timestamp,
    /// Why.
    pub why: Why,
    /// What is left of the window, the reserve included.
    pub left: u64,
}

/// The ledger's word on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// One for each look-up, in the order asked.
    pub verdicts: Vec<Admission>,
    /// Present exactly when one of them is [`Admission::Blocked`].
    pub blocked: Option<Blocked>,
}

/// How an admitted look-up ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With an answer, which is now kept.
    Answered(Stored),
    /// It was sent, and no answer came of it. Its tokens are spent.
    Nothing(ErrorType),
    /// It never left: tokens of long windows and the audit row are given back. A short window's is given back if nothing
    /// was admitted since.
    NotSent,
}

/// The end of one look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// About which address.
    pub ip: IpAddr,
    /// How.
    pub end: End,
}

/// What a provider said of one window, in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TellingOf {
    /// The window.
    pub window: Window,
    /// Look-ups left, as the server counted when it answered.
    pub remaining: u64,
    /// The window's quota, where it said so.
    pub limit: Option<u64>,
    /// When the window starts anew, where it said so.
    pub reset: Option<Timestamp>,
}

/// One account's window, for people to read.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaRow {
    /// The provider's name.
    pub provider: Arc<str>,
    /// Where it is asked.
    pub host: Arc<str>,
    /// With which key.
    pub key_id: KeyId,
    /// Which window.
    pub window: Window,
    /// Look-ups in it: the provider's own figure where it told one.
    pub limit: u64,
    /// Spent of them, those in flight included.
    pub used: u64,
    /// Left of them, the reserve included.
    pub left: u64,
    /// Look-ups that are kept for people.
    pub reserve: u64,
    /// When it starts anew; for a window that rolls, when the next look-up is given back, or now.
    pub resets_at: Timestamp,
    /// What the provider last said was left, and when.
    pub told: Option<(u64, Timestamp)>,
    /// Not to be asked before.
    pub held_until: Option<Timestamp>,
}

/// Quotas that all processes share.
pub trait Ledger {
    /// Asks whether look-ups may leave now. `each`: every address costs one look-up; otherwise all of them together cost
    /// one. As many as fit are admitted, in order. What is [`Admission::Go`] is durable when the reply resolves: counted,
    /// claimed and in the audit trail.
    fn admit(&self, ask: Arc<Ask>, looks: Vec<Look>, each: bool, now: Timestamp) -> Reply<Admitted>;

    /// Ends admitted look-ups: keeps answers, frees claims. Resolves when all of it is durable.
    fn settle(&self, account: &Account, settled: Vec<Settled>, early: Early) -> Reply<()>;

    /// Corrects the count by the provider's word, which wins in both directions. It leaves open whether look-ups still in
    /// flight are counted: so settle what the same reply answered first.
    fn told(&self, account: &Account, telling: TellingOf, now: Timestamp) -> Reply<()>;

    /// Nothing of this account is admitted before `until`, in any process. `used_up`: because this window is.
    /// A shorter hold-off never takes the place of a longer one that still lasts.
    fn hold(&self, account: &Account, until: Timestamp, used_up: Option<Window>, now: Timestamp)
    -> Reply<()>;

    /// Every long window of every account that was ever asked, by provider.
    fn quota(&self, now: Timestamp) -> Reply<Vec<QuotaRow>>;
}
