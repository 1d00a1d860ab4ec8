//! A second thread for quick readings, which gives back what it has no time for.
//!
//! Where many replies come at once, reading them on the runtime's thread would hold up the sending; handing each to a
//! thread and back costs as much as a quick reading takes. So a reading is offered to this thread, the runtime goes on
//! with what else has arrived, and then takes back whatever was not begun: both have work as long as there is any, and
//! neither waits for the other.
//!
//! Only in a [`Rush`], though: where one thread has time to spare, a system may well run both on one processor, and
//! waking the other for each reading costs more than the reading. Measured with 64 in flight and 10 ms each: 1.085 times
//! the ideal without the second thread, 1.115 with it; at answers at once 0.8 of the time with it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
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
    rush: Mutex<Rush>,
}

/// Whether replies come faster than one thread can well deal with.
#[derive(Debug)]
struct Rush {
    since: Instant,
    readings: u32,
    is_on: bool,
}

impl Rush {
    /// Readings between two looks at the clock. Replies come in clumps as large as what is in flight, and a clump by itself
    /// says nothing.
    const LOOK_EACH: u32 = 1_024;
    /// An exchange takes the runtime's thread 20 to 30 µs; this leaves half of its time.
    const SPACING: Duration = Duration::from_micros(60);

    fn new(now: Instant) -> Self {
        Self { since: now, readings: 0, is_on: false }
    }

    /// One more reading.
    fn is_on(&mut self, now: impl FnOnce() -> Instant) -> bool {
        self.readings += 1;
        if self.readings == Self::LOOK_EACH {
            let now = now();
            self.is_on = now.duration_since(self.since) < Self::SPACING * Self::LOOK_EACH;
            (self.since, self.readings) = (now, 0);
        }
        self.is_on
    }
}

impl Second {
    pub(super) fn start() -> Self {
        let (offers, taken) = sync_channel(ON_OFFER);
        let thread = std::thread::Builder::new().name("readings".into()).spawn(move || read_all(&taken));
        Self { offers: thread.is_ok().then_some(offers), rush: Mutex::new(Rush::new(Instant::now())) }
    }

    /// No thread: the runtime reads everything.
    pub(super) fn none() -> Self {
        Self { offers: None, rush: Mutex::new(Rush::new(Instant::now())) }
    }

    /// Reads, here or there.
    ///
    /// # Cancellation
    /// Dropping the future loses the reading alone.
    pub(super) async fn read(&self, work: impl FnOnce() -> Reading + Send + 'static) -> Reading {
        let is_rush = self.rush.lock().unwrap_or_else(PoisonError::into_inner).is_on(Instant::now);
        let Some(offers) = self.offers.as_ref().filter(|_| is_rush) else { return whole(work) };
        let (send, receive) = oneshot::channel();
        let offer: Offer = Arc::new(Mutex::new(Some((Box::new(work), send))));
        if offers.try_send(Arc::clone(&offer)).is_ok() {
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
fn whole(work: impl FnOnce() -> Reading) -> Reading {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| broken_down())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Answer;

    fn answer() -> Reading {
        Reading::Answer(Box::new(Answer::not_found()))
    }

    impl Second {
        /// One that is in a rush whatever the clock says.
        fn rushed() -> Self {
            let second = Self::start();
            *second.rush.lock().unwrap() = Rush { is_on: true, ..Rush::new(Instant::now()) };
            second
        }
    }

    #[test]
    fn a_rush_is_told_from_a_clump() {
        let start = Instant::now();
        let mut rush = Rush::new(start);
        // The answers of 512 at a time, each time at once: many, but far between.
        let mut clumps = |each: Duration, clumps: u32, from: Duration| {
            let mut is_on = false;
            for clump in 0..clumps {
                for _ in 0..512 {
                    is_on = rush.is_on(|| start + from + each * clump);
                }
            }
            is_on
        };
        assert!(!clumps(Duration::from_millis(50), 8, Duration::ZERO));
        assert!(clumps(Duration::from_millis(20), 8, Duration::from_secs(1)));
        assert!(!clumps(Duration::from_millis(50), 8, Duration::from_secs(2)), "and it ends");
    }

    #[tokio::test]
    async fn every_reading_comes_back_whoever_makes_it() {
        let second = Second::rushed();
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
        let second = Second::rushed();
        for _ in 0..10 {
            let read = second.read(|| std::panic::resume_unwind(Box::new("jaq"))).await;
            assert_eq!(read, broken_down());
        }
        assert_eq!(second.read(answer).await, answer());
    }
}
