//! What waits for one of the store's threads.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::db::Db;
use crate::store::{Early, Reply, StoreError};

/// Most calls that wait at once: four full transactions of the writer's. Further callers wait before they are let in.
const BOUND: usize = 1024;

/// A call that was let in.
pub(super) trait Work: Send {
    /// Does it; may be done again if the transaction around it fails.
    fn run(&mut self, db: &Db) -> rusqlite::Result<()>;
    /// Tells a caller who wants to know that what it did will outlast this process.
    fn committed(&mut self);
    /// Gives the caller what the last run brought, or the reason why nothing came of it.
    fn reply(self: Box<Self>, fault: Option<StoreError>);
}

struct Call<T, F> {
    run: F,
    outcome: Option<T>,
    early: Early,
    caller: oneshot::Sender<Result<T, StoreError>>,
    _place: OwnedSemaphorePermit,
}

impl<T: Send, F: FnMut(&Db) -> rusqlite::Result<T> + Send> Work for Call<T, F> {
    fn run(&mut self, db: &Db) -> rusqlite::Result<()> {
        self.outcome = Some((self.run)(db)?);
        Ok(())
    }

    fn committed(&mut self) {
        if let Some(early) = self.early.take() {
            // A caller that has gone does not want to know.
            let _gone = early.send(());
        }
    }

    fn reply(self: Box<Self>, fault: Option<StoreError>) {
        let result = match (fault, self.outcome) {
            (None, Some(outcome)) => Ok(outcome),
            (Some(fault), _) => Err(fault),
            (None, None) => Err(StoreError::Closed),
        };
        let _gone = self.caller.send(result);
    }
}

/// First in, first out, with a bound. Written by callers, emptied by one thread.
pub(super) struct Inbox {
    room: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    calls: VecDeque<Box<dyn Work>>,
    closed: bool,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(BOUND)), waiting: Mutex::default(), arrived: Condvar::new() }
    }

    /// Nothing that is done under the lock can leave the queue half changed.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has something done by the thread. `early` is told once it will outlast this process.
    pub(super) fn ask<T, F>(self: &Arc<Self>, early: Early, run: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnMut(&Db) -> rusqlite::Result<T> + Send + 'static,
    {
        let inbox = Arc::clone(self);
        Box::pin(async move {
            let place =
                Arc::clone(&inbox.room).acquire_owned().await.map_err(|_closed| StoreError::Closed)?;
            let (caller, result) = oneshot::channel();
            inbox.add(Box::new(Call { run, outcome: None, early, caller, _place: place }))?;
            result.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    fn add(&self, call: Box<dyn Work>) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(StoreError::Closed);
        }
        waiting.calls.push_back(call);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for work and takes up to `most` of it; nothing once the inbox is closed and empty.
    pub(super) fn next(&self, most: usize) -> Vec<Box<dyn Work>> {
        let mut waiting = self.lock();
        while waiting.calls.is_empty() && !waiting.closed {
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let n = waiting.calls.len().min(most);
        waiting.calls.drain(..n).collect()
    }

    /// Nothing is let in any more; what was let in is still done.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.room.close();
        self.arrived.notify_all();
    }

    /// Closes the inbox when the guard is dropped, and drops what nobody will do.
    pub(super) fn close_on_drop(&self) -> impl Drop + '_ {
        struct Closing<'a>(&'a Inbox);
        impl Drop for Closing<'_> {
            fn drop(&mut self) {
                self.0.close();
                let left = std::mem::take(&mut self.0.lock().calls);
                drop(left);
            }
        }
        Closing(self)
    }
}
