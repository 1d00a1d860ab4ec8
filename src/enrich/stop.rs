//! Why a run ends before its time, and how the lanes learn of it.

use tokio::sync::watch;

/// What ended the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// Nothing: it goes on.
    #[default]
    No,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// Nobody reads standard output any more: there is no use in asking.
    ClosedPipe,
    /// The output cannot be written: what is asked now could not be kept.
    OutputFailed,
    /// The store failed: what is asked now could not be kept.
    StoreFailed,
}

/// The end on which a stop is called.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<Stop>);

/// The end on which it is heard.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<Stop>);

/// Makes both ends.
#[must_use]
pub fn channel() -> (Stopper, StopSignal) {
    let (sender, receiver) = watch::channel(Stop::No);
    (Stopper(sender), StopSignal(receiver))
}

impl Stopper {
    /// Calls a stop; the first reason given is the one that stays.
    pub fn stop(&self, why: Stop) {
        self.0.send_if_modified(|current| {
            let first = *current == Stop::No;
            if first {
                *current = why;
            }
            first
        });
    }
}

impl StopSignal {
    /// What has been called so far.
    #[must_use]
    pub fn get(&self) -> Stop {
        *self.0.borrow()
    }

    /// Ends when a stop is called; never, if none is.
    pub async fn called(&mut self) -> Stop {
        match self.0.wait_for(|stop| *stop != Stop::No).await {
            Ok(stop) => *stop,
            // The stopper is gone: nobody can call any more.
            Err(_) => std::future::pending().await,
        }
    }
}
