//! The parent's side of the process that runs the user's filters.
//!
//! One child, one reply at a time: a filter takes microseconds, and when it kills the child no other reply is lost
//! with it; those that wait for their turn get a fresh one. The exchange blocks its thread (one of tokio's for
//! blocking work), which also keeps a paused test clock from running on meanwhile.

use std::{
    io::{self, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    FILTER_COMMAND,
    program::{Source, Told},
    serve,
    wire::{self, Question, Setup},
};

/// How long an exchange may take before the child is given up. The child ends itself long before (see `serve`); this
/// is for one that is stopped or thrashes.
const MAX_EXCHANGE: Duration = Duration::from_secs(20);

/// Why the child did not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The filter took more than its 250 ms.
    Overran,
    /// The filter ran out of memory or stack, or otherwise took the process down.
    Died,
    /// The child could not be started, or not be fed.
    NotStarted,
}

/// The process, started when it is first needed.
#[derive(Debug)]
pub(super) struct Host {
    program: PathBuf,
    setup: Setup,
    /// Held for one exchange. Poisoned only by a panic in between, after which the process is not used again.
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    process: Child,
    to: BufWriter<ChildStdin>,
    told: Receiver<Told>,
    reader: Option<JoinHandle<()>>,
}

impl Host {
    pub(super) fn new(program: PathBuf, programs: Vec<Source>) -> Self {
        Self { program, setup: Setup { programs }, running: Mutex::new(None) }
    }

    /// Asks the child about one reply. Blocks.
    pub(super) fn exchange(&self, question: &Question, body: &[u8]) -> Result<Told, Lost> {
        let mut place = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = match place.take() {
            Some(running) => running,
            None => Running::start(&self.program, &self.setup).map_err(|_| Lost::NotStarted)?,
        };
        match running.exchange(question, body) {
            Ok(told) => {
                *place = Some(running);
                Ok(told)
            }
            Err(stalled) => Err(running.end(stalled)),
        }
    }
}

/// Whether the child was still there when it was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stalled(bool);

impl Running {
    fn start(program: &Path, setup: &Setup) -> io::Result<Self> {
        let mut command = Command::new(program);
        // No keys, no terminal's Ctrl-C: the run drains its last answers through this process.
        command.arg(FILTER_COMMAND).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn()?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(missing());
        };
        let (sender, told) = sync_channel(1);
        let mut from = BufReader::new(from);
        let reader = std::thread::Builder::new().name("filter-reader".into()).spawn(move || {
            while let Ok(Some(told)) = wire::read_json::<Told>(&mut from) {
                if sender.send(told).is_err() {
                    break;
                }
            }
        })?;
        let mut running = Self { process, to: BufWriter::new(to), told, reader: Some(reader) };
        wire::write_json(&mut running.to, setup)?;
        Ok(running)
    }

    fn exchange(&mut self, question: &Question, body: &[u8]) -> Result<Told, Stalled> {
        let sent = wire::write_json(&mut self.to, question)
            .and_then(|()| wire::write(&mut self.to, body))
            .and_then(|()| self.to.flush());
        // A child that died is found by its silence; a pipe that broke says the same.
        if sent.is_err() {
            return Err(Stalled(false));
        }
        self.told.recv_timeout(MAX_EXCHANGE).map_err(|error| Stalled(error == RecvTimeoutError::Timeout))
    }

    /// Ends the process and says what it died of.
    fn end(mut self, stalled: Stalled) -> Lost {
        if stalled.0 {
            return Lost::Overran;
        }
        match self.process.wait() {
            Ok(status) if status.code() == Some(serve::OVERRUN) => Lost::Overran,
            _ => Lost::Died,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(reader) = self.reader.take() {
            // Its pipe is closed by now, so it ends.
            let _ = reader.join();
        }
    }
}
