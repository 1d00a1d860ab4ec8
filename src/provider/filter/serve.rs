//! The child's side: runs the user's filters in a process that may be lost.
//!
//! A filter is code: it may loop (`def f: f; f`), grow (`[repeat(1)]`) or overflow the stack (`def f: 1 + f; f`), and
//! inside a process none of these can be stopped safely. Here the first ends by the watchdog, the second by the limit
//! on memory, the third by the guard page; each ends this process, which holds no key, no socket and no other state.

use std::{
    io::{self, BufReader, BufWriter, Write as _},
    process::ExitCode,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use rustix::{
    process::{Resource, Rlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

use super::{
    engine::{COMPILE_STACK_BYTES, Engine},
    program::{Guard, Program},
    wire::{self, Question, Setup},
};

/// Exit status that tells the parent that a filter overran its time.
pub(super) const OVERRUN: i32 = 71;

/// Processor time that one reply may take its filter. A filter takes some 20 microseconds.
const MAX_CPU: Duration = Duration::from_millis(250);
/// Wall time, for a filter that somehow waits, and for a machine so busy that processor time hardly passes.
const MAX_WALL: Duration = Duration::from_secs(10);
/// How often the watchdog looks while a filter runs.
const TICK: Duration = Duration::from_millis(10);
/// Address space of the process. The stack below takes 128 MiB of it, malloc's arenas for three threads up to 192 and
/// the program itself some 30, most of which is never touched; the rest is for a body and its filter to work with.
const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// Stack of the thread that compiles and runs filters.
const STACK_BYTES: usize = COMPILE_STACK_BYTES;

/// Serves filters over standard input and output until the input ends. `main` calls this for
/// [`FILTER_COMMAND`](super::FILTER_COMMAND) before anything else.
#[must_use]
pub fn serve_filters() -> ExitCode {
    // Without these limits the process must not run foreign filters at all.
    let core = Rlimit { current: Some(0), maximum: Some(0) };
    let memory = Rlimit { current: Some(MAX_MEMORY_BYTES), maximum: Some(MAX_MEMORY_BYTES) };
    if setrlimit(Resource::Core, core).is_err() || setrlimit(Resource::As, memory).is_err() {
        return ExitCode::FAILURE;
    }
    let watch = Watch::default();
    let served = std::thread::scope(|scope| {
        let guard = std::thread::Builder::new().name("watchdog".into());
        let worker = std::thread::Builder::new().name("filters".into()).stack_size(STACK_BYTES);
        let guard = guard.spawn_scoped(scope, || watch.run());
        let worker = worker.spawn_scoped(scope, || serve(&watch));
        let served = worker.map(std::thread::ScopedJoinHandle::join);
        watch.end();
        guard.is_ok() && matches!(served, Ok(Ok(Ok(()))))
    });
    if served { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn serve(watch: &Watch) -> io::Result<()> {
    let mut from = BufReader::new(io::stdin().lock());
    let mut to = BufWriter::new(io::stdout().lock());
    let unknown = || io::Error::from(io::ErrorKind::InvalidData);
    let Some(setup) = wire::read_json::<Setup>(&mut from)? else { return Ok(()) };
    let mut programs: Vec<Option<Program>> = setup.programs.iter().map(|_| None).collect();
    while let Some(Question { program, ask }) = wire::read_json(&mut from)? {
        let Some(bytes) = wire::read(&mut from)? else { return Ok(()) };
        let source = setup.programs.get(program).ok_or_else(unknown)?;
        let program = match programs.get_mut(program).ok_or_else(unknown)? {
            Some(program) => program,
            // The parent compiled it before, so this cannot fail.
            place => place.insert(Program::new(source, Engine::compile_here).map_err(|_| unknown())?),
        };
        let told = program.read(watch, &ask, &bytes);
        wire::write_json(&mut to, &told)?;
        to.flush()?;
    }
    Ok(())
}

/// Ends the process when a filter overruns.
///
/// `since` is written by the worker alone, under its lock; the watchdog waits for it to be set and then looks at the
/// processor's clock every tick, so an idle process wakes for nothing.
#[derive(Default)]
struct Watch {
    since: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: Option<Start>,
    over: bool,
}

#[derive(Clone, Copy)]
struct Start {
    cpu: Duration,
    wall: Duration,
}

impl Guard for Watch {
    fn over<T>(&self, run: impl FnOnce() -> T) -> T {
        self.set(Some(Start { cpu: now(ClockId::ProcessCPUTime), wall: now(ClockId::Monotonic) }));
        let outcome = run();
        self.set(None);
        outcome
    }
}

impl Watch {
    fn set(&self, running: Option<Start>) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).running = running;
        if running.is_some() {
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut state = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.over {
            state = match state.running {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(start) if start.is_overrun() => {
                    // The filter's thread cannot be stopped, so the process is.
                    std::process::exit(OVERRUN)
                }
                Some(_) => self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

impl Start {
    fn is_overrun(self) -> bool {
        now(ClockId::ProcessCPUTime).saturating_sub(self.cpu) > MAX_CPU
            || now(ClockId::Monotonic).saturating_sub(self.wall) > MAX_WALL
    }
}

fn now(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}
