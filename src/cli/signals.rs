//! SIGINT and SIGTERM: the first ends the run in order, the second at once.

use super::exit::Exit;
use super::voice;
use crate::enrich::{Stop, Stopper};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Listens until the process ends. `reading` is set too, so that a long input is left. `word` is said at the first.
///
/// # Errors
/// Where the handlers cannot be installed.
pub(super) fn listen(
    stopper: Stopper,
    reading: Arc<AtomicBool>,
    word: Option<&'static str>,
) -> std::io::Result<tokio::task::JoinHandle<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::spawn(async move {
        let mut second = false;
        loop {
            let (stop, exit) = tokio::select! {
                _ = interrupt.recv() => (Stop::Interrupted, Exit::Interrupted),
                _ = terminate.recv() => (Stop::Terminated, Exit::Terminated),
            };
            if second {
                voice::erase();
                leave(exit);
            }
            second = true;
            if let Some(word) = word {
                voice::tell(word);
            }
            reading.store(true, Ordering::Relaxed);
            stopper.stop(stop);
        }
    }))
}

#[expect(clippy::exit, reason = "a second signal asks for exactly this: no more waiting, for anything")]
fn leave(exit: Exit) -> ! {
    std::process::exit(i32::from(exit.code()))
}
