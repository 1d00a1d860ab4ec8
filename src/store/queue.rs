//! Look-ups to be made later.
//!
//! A task is one look-up: one provider, one address; there is never more than one open task of a pair. All open tasks of
//! an address form its set: when the last of them ends, with an answer or as a dead letter, the address is *done*, and what
//! became of each of them is one entry of the list that [`Queue::results`] reads.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Account, Early, Reply, Settled};

/// A look-up to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The provider's name.
    pub provider: Arc<str>,
    /// The address.
    pub ip: IpAddr,
    /// 0 is taken first.
    pub priority: u8,
    /// Place among those of the same priority: the smallest is taken first.
    pub rank: u64,
    /// What was seen of the address, as compact JSON; handed back with the result.
    pub context: Arc<[u8]>,
    /// Not to be taken before.
    pub not_before: Option<Timestamp>,
    /// Not worth asking from then on: becomes a dead letter.
    pub expires_at: Option<Timestamp>,
    /// The job it belongs to.
    pub job: Option<Arc<str>>,
}

/// What became of tasks that were to be added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Added {
    /// New.
    pub added: u64,
    /// Already open. A more urgent priority or rank is taken over.
    pub already: u64,
}

/// A task of the queue, under one lease: a later lease of the same task has another token, and this one is void then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// The task.
    pub id: i64,
    /// The fence.
    pub token: i64,
}

/// A task that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// To be named when it ends.
    pub id: TaskId,
    /// What is to be done.
    pub task: Task,
    /// Attempts that failed before.
    pub attempts: u32,
    /// Leases of which nothing was heard again, and this one.
    pub deliveries: u32,
    /// When the lease ends, unless renewed.
    pub until: Timestamp,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// Under which lease.
    pub id: TaskId,
    /// What [`Done::outcomes`] is to say of it: the caller's bytes.
    pub outcome: Vec<u8>,
    /// The end of its look-up in the ledger, in the same transaction; none where it was answered from the cache.
    pub settled: Option<(Account, Settled)>,
}

/// What became of a task whose lease was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It waits to be taken again.
    Waits,
    /// It was given up: a dead letter.
    Dead,
    /// The lease was void: somebody else has the task, or it has ended.
    Void,
}

/// An address whose tasks have all ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Grows from entry to entry.
    pub number: u64,
    /// The address.
    pub ip: IpAddr,
    /// See [`Task::context`]; the last that was given.
    pub context: Arc<[u8]>,
    /// The job it belongs to.
    pub job: Option<Arc<str>>,
    /// When the last task ended.
    pub at: Timestamp,
    /// By provider, what became of its task.
    pub outcomes: Vec<(Arc<str>, Ended)>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With what [`Completed::outcome`] says.
    Completed(Vec<u8>),
    /// Given up, with the last error as the worker gave it.
    Failed(Vec<u8>),
    /// Given up: its time was over before it was asked.
    Expired,
    /// Given up: it was taken again and again, and each time its worker was never heard of again.
    Lost,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTask {
    /// The task.
    pub id: i64,
    /// What was to be done.
    pub task: Task,
    /// Attempts that failed.
    pub attempts: u32,
    /// Leases of which nothing was heard again.
    pub deliveries: u32,
    /// Why it was given up.
    pub why: Ended,
    /// When it was given up.
    pub at: Timestamp,
}

/// What one provider's part of the queue holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// The provider's name.
    pub provider: Arc<str>,
    /// To be taken now.
    pub ready: u64,
    /// To be taken later.
    pub delayed: u64,
    /// Taken.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// When the next delayed or leased one falls due.
    pub next_due: Option<Timestamp>,
    /// When the oldest open one was added.
    pub oldest: Option<Timestamp>,
}

/// What to remove from the queue for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// Open tasks; those under a lease too.
    Open,
    /// Dead letters.
    Dead,
    /// Results that were marked as read.
    Read,
    /// All of it, unread results included.
    All,
}

/// Look-ups to be made later, by whichever process takes them.
pub trait Queue {
    /// Adds tasks, all or none. Everybody who writes waits meanwhile: give very many in parts of some thousands.
    fn enqueue(&self, tasks: Vec<Task>, now: Timestamp) -> Reply<Added>;

    /// Takes up to `n` tasks of a provider that are due: the most urgent first. Nobody else gets them before `lease` is
    /// over.
    fn take(
        &self,
        provider: &str,
        n: u32,
        lease: Duration,
        owner: Arc<str>,
        now: Timestamp,
    ) -> Reply<Vec<Lease>>;

    /// Extends leases to `lease` from now; says which still hold.
    fn renew(&self, ids: Vec<TaskId>, lease: Duration, now: Timestamp) -> Reply<Vec<bool>>;

    /// Ends tasks: look-up, outcome and end in one transaction. Says which leases still held; what was paid for is kept
    /// even if one did not.
    fn complete(&self, completed: Vec<Completed>, now: Timestamp, early: Early) -> Reply<Vec<bool>>;

    /// Puts tasks back until `due`, without counting an attempt: the quota is used up, the provider is held off. With
    /// `due` at `now`, the worker goes.
    fn defer(&self, ids: Vec<TaskId>, due: Timestamp, now: Timestamp) -> Reply<Vec<Released>>;

    /// Counts a failed attempt. The task waits until `due`, or is given up if there is none.
    fn fail(&self, id: TaskId, error: Vec<u8>, due: Option<Timestamp>, now: Timestamp) -> Reply<Released>;

    /// Puts back every task that `owner` holds, without counting an attempt; returns how many.
    fn release(&self, owner: Arc<str>, now: Timestamp) -> Reply<u64>;

    /// What is in the queue, by provider.
    fn status(&self, now: Timestamp) -> Reply<Vec<QueueStatus>>;

    /// Up to `n` dead letters, from task `after` (0: from the first) on.
    fn failed(&self, after: i64, n: u32) -> Reply<Vec<FailedTask>>;

    /// Takes up dead letters again, those of one provider or all; returns how many. Their addresses are open again and
    /// will be done once more.
    fn retry(&self, provider: Option<Arc<str>>, now: Timestamp) -> Reply<u64>;

    /// Removes for good; returns how many tasks or results.
    fn purge(&self, what: Purge, now: Timestamp) -> Reply<u64>;

    /// Up to `n` addresses that are done, after entry `after`; none stands for the last that was marked as read.
    fn results(&self, after: Option<u64>, n: u32) -> Reply<Vec<Done>>;

    /// Marks results up to and including `upto` as read.
    fn mark_read(&self, upto: u64) -> Reply<()>;
}
