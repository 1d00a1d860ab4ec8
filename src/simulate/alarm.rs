//! Waking to the tenth of a millisecond.
//!
//! tokio's timers round up to a whole millisecond, and its wait for events does so once more: answers due after 10 ms
//! came after 11, all those of one millisecond at once. No provider answers in such bursts, and a client that is timed
//! against them is timed against that clock. The kernel's own timer counts in nanoseconds.

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

/// One timer of the kernel for all that wait. Real time alone: a paused clock does not move it.
#[derive(Debug)]
pub(super) struct Alarm {
    /// Read as a pipe is, which is all that the runtime has to know of it.
    timer: Receiver,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    wakers: BTreeMap<(Instant, u64), Waker>,
    /// Tells those apart that are due at once.
    numbered: u64,
    /// When the timer goes off; none while it is not set.
    set_for: Option<Instant>,
}

impl Alarm {
    /// # Errors
    /// Those of `timerfd_create`, and of having it watched by the runtime, which must be there.
    pub(super) fn new() -> io::Result<Self> {
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Self { timer: Receiver::from_owned_fd_unchecked(timer)?, waiting: Mutex::default() })
    }

    /// Wakes those that are due, for as long as it is polled.
    ///
    /// # Errors
    /// When the timer can no longer be read or set; nobody is woken then.
    pub(super) async fn ring(&self) -> io::Result<()> {
        loop {
            self.timer.readable().await?;
            // How often it went off, in eight bytes, is of no interest; that it did not is seen below. With room for more
            // the runtime knows from the first read that nothing is left.
            match self.timer.try_read(&mut [0; 16]) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Ok(_) | Err(_) => {}
            }
            let due = {
                let mut waiting = self.waiting();
                let later = waiting.wakers.split_off(&(Instant::now(), u64::MAX));
                let due = std::mem::replace(&mut waiting.wakers, later);
                waiting.set_for = None;
                self.set(&mut waiting)?;
                due
            };
            due.into_values().for_each(Waker::wake);
        }
    }

    /// Ready from `at` on, while somebody polls [`Alarm::ring`].
    pub(super) fn until(&self, at: Instant) -> Until<'_> {
        Until { alarm: self, at, number: None }
    }

    /// Sets the timer for the first that waits, unless it goes off before.
    fn set(&self, waiting: &mut Waiting) -> io::Result<()> {
        let Some(&(first, _)) = waiting.wakers.keys().next() else { return Ok(()) };
        if waiting.set_for.is_some_and(|set_for| set_for <= first) {
            return Ok(());
        }
        // Zero would switch it off.
        let left = first.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let spec = Itimerspec {
            it_interval: Timespec::default(),
            it_value: left.try_into().map_err(io::Error::other)?,
        };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)?;
        waiting.set_for = Some(first);
        Ok(())
    }

    /// No code that holds it can panic half-way.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`Alarm::until`] gives. Dropped, it no longer waits.
#[derive(Debug)]
pub(super) struct Until<'a> {
    alarm: &'a Alarm,
    at: Instant,
    number: Option<u64>,
}

impl Future for Until<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        let mut waiting = self.alarm.waiting();
        let number = self.number.unwrap_or(waiting.numbered + 1);
        waiting.numbered = waiting.numbered.max(number);
        waiting.wakers.insert((self.at, number), context.waker().clone());
        // The descriptor is a timer's and the time in range, for which no failure is known; one that `ring` meets ends
        // the server.
        let _ = self.alarm.set(&mut waiting);
        drop(waiting);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.alarm.waiting().wakers.remove(&(self.at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn all_are_woken_in_the_order_of_their_times_and_none_before() {
        let alarm = Arc::new(Alarm::new().unwrap());
        // What is over is not waited for, nor does it need the timer.
        alarm.until(Instant::now()).await;
        // Far enough off that all wait before the first is due.
        let start = Instant::now() + Duration::from_millis(100);
        let mut waits = JoinSet::new();
        // Later ones first, so that the timer is set anew for each; two at once.
        let micros = [9_000, 7_000, 7_000, 5_500, 5_400, 5_300, 3_000, 200, 0];
        for (number, after) in micros.into_iter().enumerate() {
            let (alarm, at) = (Arc::clone(&alarm), start + Duration::from_micros(after));
            waits.spawn(async move {
                alarm.until(at).await;
                assert!(Instant::now() >= at, "number {number} was woken early");
                at
            });
        }
        let woken = async {
            let mut woken = Vec::new();
            while let Some(at) = waits.join_next().await {
                woken.push(at.unwrap());
            }
            woken
        };
        let woken = tokio::select! {
            failed = alarm.ring() => panic!("{failed:?}"),
            woken = woken => woken,
        };
        assert_eq!(woken.len(), micros.len());
        assert!(woken.is_sorted(), "{woken:?}");
        assert!(alarm.waiting().wakers.is_empty());
    }

    #[tokio::test]
    async fn who_no_longer_waits_is_forgotten_and_holds_nobody_up() {
        let alarm = Alarm::new().unwrap();
        let later = Instant::now() + Duration::from_millis(20);
        let waited = async {
            tokio::select! {
                biased;
                () = alarm.until(later) => panic!("the other one is due first"),
                () = alarm.until(later - Duration::from_millis(15)) => {}
            }
            assert!(alarm.waiting().wakers.is_empty());
            alarm.until(later + Duration::from_millis(1)).await;
        };
        tokio::select! {
            failed = alarm.ring() => panic!("{failed:?}"),
            () = waited => {}
        }
    }
}
