//! A second thread for quick readings, which gives back what it has no time for.
//!
//! Where many replies come at once, reading them on the runtime's thread would hold up the sending; handing each to a
//! thread and back costs as much as a quick reading takes. So a reading is offered to this thread, the runtime goes on
//! with what else has arrived, and then takes back whatever was not begun: both have work as long as there is any, and
//! neither waits for the other.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use tokio::sync::oneshot;

use super::broken_down;
use crate::provider::Reading;

/// Readings that may be on offer; what comes beyond is read at once. More than are ever in flight by default.
const ON_OFFER: usize = 256;

type Work = Box<dyn FnOnce() -> Reading + Send>;

/// A reading that is whoever's takes it first.
type Offer = Arc<Mutex<Option<(Work, oneshot::Sender<Reading>)>>>;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Second {
    /// None where no thread could be started: then everything is read by the runtime.
    offers: Option<SyncSender<Offer>>,
}

impl Second {
    pub(super) fn start() -> Self {
        let (offers, taken) = sync_channel(ON_OFFER);
        let thread = std::thread::Builder::new().name("readings".into()).spawn(move || read_all(&taken));
        Self { offers: thread.is_ok().then_some(offers) }
    }

    /// No thread: the runtime reads everything.
    pub(super) const fn none() -> Self {
        Self { offers: None }
    }

    /// Reads, here or there.
    ///
    /// # Cancellation
    /// Dropping the future loses the reading alone.
    pub(super) async fn read(&self, work: impl FnOnce() -> Reading + Send + 'static) -> Reading {
        let (send, receive) = oneshot::channel();
        let offer: Offer = Arc::new(Mutex::new(Some((Box::new(work), send))));
        if self.offers.as_ref().is_some_and(|offers| offers.try_send(Arc::clone(&offer)).is_ok()) {
            tokio::task::yield_now().await;
        }
        match take(&offer) {
            Some((work, _)) => whole(work),
            None => receive.await.unwrap_or_else(|_| broken_down()),
        }
    }
}

fn read_all(offers: &Receiver<Offer>) {
    while let Ok(offer) = offers.recv() {
        if let Some((work, asked)) = take(&offer) {
            // Nobody waits for it any more when the run has ended.
            let _ = asked.send(whole(work));
        }
    }
}

fn take(offer: &Offer) -> Option<(Work, oneshot::Sender<Reading>)> {
    // Nothing that can panic runs under the lock.
    offer.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// jaq is not ours: a panic of its own costs the one reading.
fn whole(work: Work) -> Reading {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| broken_down())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Answer;

    fn answer() -> Reading {
        Reading::Answer(Box::new(Answer::not_found()))
    }

    #[tokio::test]
    async fn every_reading_comes_back_whoever_makes_it() {
        let second = Second::start();
        let alone = Second::none();
        let mut reads = Vec::new();
        for n in 0..1_000 {
            let by = if n % 3 == 0 { &alone } else { &second };
            reads.push(by.read(answer));
        }
        for read in reads {
            assert_eq!(read.await, answer());
        }
        let (one, two) = tokio::join!(second.read(answer), second.read(answer));
        assert_eq!((one, two), (answer(), answer()));
    }

    #[tokio::test]
    async fn a_panic_costs_the_one_reading() {
        let second = Second::start();
        for _ in 0..10 {
            let read = second.read(|| std::panic::resume_unwind(Box::new("jaq"))).await;
            assert_eq!(read, broken_down());
        }
        assert_eq!(second.read(answer).await, answer());
    }
}
