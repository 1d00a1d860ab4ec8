//! `sift enrich --follow`.

use super::super::args::{Enrich, Global};
use super::super::enrich::{not_an_input, options, scenario, session};
use super::super::exit::Exit;
use super::super::flags::Flags;
use super::super::lookups::{Asked, Session, UNWRITTEN};
use super::super::recorder::{Recorder, Written};
use super::super::report::CliError;
use super::super::summary::Began;
use super::super::writer::over_limit;
use super::super::{notes, voice};
use super::{LOOK_EACH, files, is_stdout_closed, refused, say_awaited, say_warnings};
use crate::enrich::outcome::ErrorBody;
use crate::enrich::{Arrival, Board, Finished, LaneSpec, Memory, RunClock, Stop, Work};
use crate::extract::{self, Counts, ExtractError, Follower};
use crate::input::Input;
use crate::output::{Form, OutputError, Sink, Sort};
use crate::plan::rank::weight;
use crate::plan::{Fate, Guard, Plan, Why};
use crate::provider::{Definition, ErrorType};
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::time::Instant as Tick;

/// Addresses on their way to the lanes. Few: what waits here goes by rank only once it is there.
const ON_THEIR_WAY: usize = 16;

/// Finished addresses written between two looks, at the most.
const AT_ONCE: usize = 1024;

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(in crate::cli) async fn run(args: Enrich, global: Global) -> Result<Exit, CliError> {
    let files = files(args.files, &args.input, "sift enrich")?;
    if args.dry_run {
        let tip = "leave out --follow: what is there is laid out without it";
        return Err(refused("--dry-run", "nobody knows what will come", tip));
    }
    if args.defer {
        let tip = "leave out --defer, or --follow";
        return Err(refused("--defer", "a run without an end asks again by itself", tip));
    }
    let inputs: Vec<Input> = files.iter().cloned().map(Input::File).collect();
    not_an_input(&inputs, args.output.output.as_deref())?;
    let mut flags = Flags::default();
    flags.input(&args.input);
    let scenario = scenario(&args.rehearse)?;
    let session = session("enrich", flags, args.lookups, args.output, global, scenario).await?;
    check_output(&session)?;
    let options = options(&args.input, &session.loaded.config, Timestamp::now())?;
    // What can be told of the files is told before anything else is done.
    drop(Follower::new(&files, &options)?);
    let began = Began { at: Timestamp::now(), steady: Instant::now() };
    session.listen()?;
    let lanes = session.lanes()?;
    session.fail_on()?;
    let memory = session.memory()?;
    let sink = session.sink()?;
    follow(session, files, options, lanes, memory, sink, began).await
}

/// Refuses what shows nothing before the end.
fn check_output(session: &Session) -> Result<(), CliError> {
    let config = &session.config().output;
    let sort = match config.sort {
        Sort::Done => None,
        Sort::Input => Some("--sort input"),
        Sort::Rank => Some("--sort rank"),
    };
    if let Some(sort) = sort {
        let tip = "--sort done prints each record as it comes";
        return Err(refused(sort, "the order is known only at the end", tip));
    }
    if config.format == Some(Form::Json) {
        return Err(refused(
            "--format json",
            "an array ends only with the run",
            "-f ndjson is one record a line",
        ));
    }
    if session.output.output.is_some() && !session.output.append {
        let why = "the file would appear only at the end";
        return Err(refused("--output", why, "--append adds each record to the file as it comes"));
    }
    Ok(())
}

async fn follow(
    session: Session,
    files: Vec<PathBuf>,
    options: extract::Options,
    mut lanes: Vec<LaneSpec>,
    memory: Option<Memory>,
    sink: Sink,
    began: Began,
) -> Result<Exit, CliError> {
    let budget = session.spread_budget(&mut lanes)?;
    let config = session.config().clone();
    let definitions: Vec<Arc<Definition>> = lanes.iter().map(|lane| Arc::clone(&lane.definition)).collect();
    let guard = Guard::new(&session.exclude).never_sending(&config.input.never_send);
    let clock = RunClock::starting_at(Timestamp::now());
    notes::say(&lanes, &session.folders.state);
    announce(&files, &lanes, config.concurrency.get());
    say_awaited(&files);
    let recorder = session.recorder(sink, &guard, &definitions, clock)?;
    let (arrivals, coming) = mpsc::channel(ON_THEIR_WAY);
    let (out, finished) = mpsc::channel(UNWRITTEN);
    let (limit, to_stdout) = (config.input.limit, session.output.output.is_none());
    let following = move || {
        let follower = Follower::new(&files, &options)?;
        let following = Following {
            follower,
            recorder,
            limit,
            to_stdout,
            taken: 0,
            plan: Plan::default(),
            backlog: BinaryHeap::new(),
            failed: None,
        };
        following.run(arrivals, finished)
    };
    let thread = std::thread::Builder::new().name("follower".into()).spawn(following);
    let thread = thread.map_err(|source| CliError::System { what: "start the follower's thread", source })?;
    let board = Board::new(lanes.len());
    let asked = Asked { specs: lanes, work: Work::Arriving(coming), memory: memory.clone(), budget };
    let stats = session.ask(asked, &definitions, guard, clock, board, out).await?;
    let followed = tokio::task::spawn_blocking(move || thread.join()).await;
    let followed = followed
        .ok()
        .and_then(Result::ok)
        .ok_or_else(|| CliError::Bug("the follower's thread panicked".into()))??;
    session.tidy(memory.as_ref()).await;
    let (written, counts, plan) = (&followed.written, &followed.counts, &followed.plan);
    let exit = session.conclude(written, counts, plan, stats, memory.as_ref(), began)?;
    followed.failed.map_or(Ok(exit), |error| Err(error.into()))
}

/// Says what is followed, and who is asked.
fn announce(files: &[PathBuf], lanes: &[LaneSpec], concurrency: usize) {
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let names: Vec<&str> = lanes.iter().map(|lane| lane.definition.name.as_str()).collect();
    let who = if names.is_empty() {
        "answering from this machine alone".to_owned()
    } else {
        format!("asking {} about each new address, {concurrency} at once", names.join(", "))
    };
    voice::note(format!("following {}; {who}", files.join(", ")));
}

/// What it came to.
struct Followed {
    written: Written,
    counts: Counts,
    plan: Plan,
    /// Why reading ended before it was told to.
    failed: Option<ExtractError>,
}

/// The follower's thread.
struct Following<'o> {
    follower: Follower<'o>,
    recorder: Recorder,
    limit: Option<usize>,
    to_stdout: bool,
    /// Addresses below this number have been taken from the follower.
    taken: u32,
    /// Grows as addresses come.
    plan: Plan,
    /// Those that are to be asked about and have found no room yet; never more than the follower may hold.
    backlog: BinaryHeap<(u64, Reverse<u32>)>,
    failed: Option<ExtractError>,
}

impl Following<'_> {
    fn run(
        mut self,
        arrivals: mpsc::Sender<Arrival>,
        mut finished: mpsc::Receiver<Finished>,
    ) -> Result<Followed, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|source| CliError::System { what: "start the follower", source })?;
        let written = runtime.block_on(self.follow(arrivals, &mut finished));
        let Self { follower, recorder, plan, mut failed, .. } = self;
        let written = recorder.end(written, finished);
        let mut counts = follower.counts().clone();
        match follower.sum_up() {
            Ok(extraction) => {
                say_warnings(&extraction.warnings);
                counts = extraction.counts;
            }
            Err(error) => failed = failed.or(Some(error)),
        }
        Ok(Followed { written, counts, plan, failed })
    }

    /// Looks, hands over and writes until the run is over.
    async fn follow(
        &mut self,
        arrivals: mpsc::Sender<Arrival>,
        finished: &mut mpsc::Receiver<Finished>,
    ) -> Result<(), OutputError> {
        let mut arrivals = Some(arrivals);
        let mut next_look = Some(Tick::now());
        loop {
            if let Some(way) = &arrivals {
                self.hand_over(way);
            }
            // The run ends once nothing can come any more.
            arrivals = arrivals.filter(|_| next_look.is_some() || !self.backlog.is_empty());
            tokio::select! {
                one = finished.recv() => {
                    let Some(one) = one else { break };
                    self.write(one)?;
                    for _ in 1..AT_ONCE {
                        let Ok(one) = finished.try_recv() else { break };
                        self.write(one)?;
                    }
                }
                () = tokio::time::sleep_until(next_look.unwrap_or_else(Tick::now)), if next_look.is_some() => {
                    next_look = self.look()?;
                }
                is_open = has_room(arrivals.as_ref(), !self.backlog.is_empty()) => if !is_open {
                    (arrivals, next_look) = (None, None);
                    self.give_up()?;
                },
            }
        }
        self.give_up()
    }

    /// Takes what is new in the files. None where nothing more is read.
    fn look(&mut self) -> Result<Option<Tick>, OutputError> {
        if self.to_stdout && is_stdout_closed() {
            return Err(OutputError::ClosedPipe { target: "standard output".to_owned() });
        }
        let looked = self.follower.poll();
        say_warnings(&self.follower.take_warnings());
        for id in self.taken..u32::try_from(self.follower.indicators().len()).unwrap_or(u32::MAX) {
            self.take(id)?;
        }
        Ok(match looked {
            Ok(_) if self.follower.is_behind() => Some(Tick::now()),
            Ok(_) => Some(Tick::now() + LOOK_EACH),
            Err(error) => {
                voice::warn("reading has ended; what was found so far is still asked about");
                self.failed = Some(error);
                None
            }
        })
    }

    /// A new address: to the lanes, or its record at once.
    fn take(&mut self, id: u32) -> Result<(), OutputError> {
        self.taken = id + 1;
        let indicators = self.follower.indicators();
        let record = match self.recorder.fate(indicators.ip(id)) {
            Fate::Asked if self.limit.is_none_or(|limit| self.plan.order.len() < limit) => {
                self.plan.order.push(id);
                self.backlog.push((weight(&indicators.rank_key(id)), Reverse(id)));
                return Ok(());
            }
            Fate::Asked => {
                self.plan.over_limit.push(id);
                self.recorder.unasked(indicators, id, over_limit(self.limit.unwrap_or_default()))
            }
            Fate::Local(why) => {
                self.plan.local += 1;
                self.plan.known_good += u64::from(why == Why::KnownGood);
                self.recorder.here(indicators, id)
            }
            Fate::Withheld(reason) => {
                *self.plan.withheld.entry(reason.as_str()).or_default() += 1;
                self.recorder.withheld(indicators, id, reason)
            }
        };
        self.recorder.write(&record, None)
    }

    /// Hands over the worst, as far as there is room.
    fn hand_over(&mut self, way: &mpsc::Sender<Arrival>) {
        while let Some(&(weight, Reverse(id))) = self.backlog.peek() {
            let Ok(room) = way.try_reserve() else { return };
            self.backlog.pop();
            room.send(Arrival { ip: self.follower.indicators().ip(id), id, weight, lanes: None });
        }
    }

    fn write(&mut self, finished: Finished) -> Result<(), OutputError> {
        let record = self.recorder.finished(self.follower.indicators(), finished);
        self.recorder.write(&record, None)
    }

    /// The records of those that found no room before the run's end.
    fn give_up(&mut self) -> Result<(), OutputError> {
        let error = match self.recorder.stop.get() {
            Stop::No => {
                ErrorBody::new(ErrorType::Deadline, "the run's time was over before this look-up's turn")
            }
            _ => ErrorBody::new(ErrorType::Cancelled, "the run was stopped before this look-up's turn"),
        };
        while let Some((_, Reverse(id))) = self.backlog.pop() {
            let record = self.recorder.unasked(self.follower.indicators(), id, error.clone());
            self.recorder.write(&record, None)?;
        }
        Ok(())
    }
}

/// Ends when there is room for one that waits; false once none is taken any more.
async fn has_room(way: Option<&mpsc::Sender<Arrival>>, one_waits: bool) -> bool {
    match way {
        Some(way) if one_waits => way.reserve().await.is_ok(),
        Some(way) => {
            way.closed().await;
            false
        }
        None => std::future::pending().await,
    }
}
