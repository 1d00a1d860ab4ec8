//! A run of look-ups, from the addresses to the exit status: what `enrich` and `lookup` share.

use super::args::{Budget, CacheArgs, Global, OutputArgs, When};
use super::defer::Deferring;
use super::dry_run::DryRun;
use super::exit::{Exit, choose};
use super::forecast::Kept;
use super::keyring::Keyring;
use super::progress::{Done, Progress};
use super::providers_of_run::{Rehearsal, lanes, nobody};
use super::recorder::{Counts, Recorder, Written};
use super::report::{CliError, output_tip, say};
use super::summary::Began;
use super::writer::Writer;
use super::{notes, report, signals, store, summary, voice};
use crate::config::{Config, Environment, Folders, Loaded};
use crate::enrich::{
    self, Board, Finished, LaneSpec, LaneStats, Memory, RunClock, StopSignal, Stopper, TransportSettings,
    Work,
};
use crate::extract::{Extraction, Indicators};
use crate::output::{FailOn, Form, Options, Sink, Target, stdout_takes_color, thousands, write_whole};
use crate::plan::{Guard, Local, Plan, plan};
use crate::provider::{Definition, Filters, Sandbox, Table};
use ipnet::IpNet;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::mpsc;

/// Finished addresses that wait for the writer. Enough to ride out a short stall of the reader; when it is full the lanes
/// wait, and no more is asked than can be written.
pub(super) const UNWRITTEN: usize = 1024;

/// What a run is made of, before the input has been read.
pub(super) struct Session {
    pub(super) command: &'static str,
    pub(super) global: Global,
    pub(super) output: OutputArgs,
    pub(super) is_dry: bool,
    /// `--defer`.
    pub(super) defers: bool,
    pub(super) loaded: Loaded,
    pub(super) env: Environment,
    pub(super) table: Table,
    pub(super) keys: Keyring,
    pub(super) named: Vec<String>,
    pub(super) exclude: Vec<IpNet>,
    /// What answers on this machine.
    pub(super) local: Arc<Local>,
    /// Where things are kept.
    pub(super) folders: Folders,
    /// What of earlier runs is used, and whether anything is kept.
    pub(super) cache: CacheArgs,
    /// `--job`.
    pub(super) job: Option<String>,
    /// `--budget`.
    pub(super) budget: Vec<Budget>,
    pub(super) rehearsal: Option<Rehearsal>,
    pub(super) stopper: Stopper,
    pub(super) stop: StopSignal,
    /// The command line that asks for what is left, where it can be given again.
    pub(super) again: Option<String>,
    /// Set by a signal, for the reader.
    pub(super) reading: Arc<AtomicBool>,
}

/// Who is asked about what, on whose account.
pub(super) struct Asked {
    pub(super) specs: Vec<LaneSpec>,
    pub(super) work: Work,
    pub(super) memory: Option<Memory>,
    /// Look-ups that the run may spend.
    pub(super) budget: Option<u64>,
}

impl Session {
    pub(super) fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The lanes; checked before the input is read, so that a missing key is told at once.
    pub(super) fn lanes(&self) -> Result<Vec<LaneSpec>, CliError> {
        let config = self.config();
        let lanes = lanes(&self.table, config, &self.keys, &self.named, self.rehearsal.as_ref())?;
        // Lists and files answer by themselves.
        if lanes.is_empty() && self.local.is_empty() {
            return Err(nobody(&self.table, config));
        }
        Ok(lanes)
    }

    /// The sink; opened before anything is asked, so that an unwritable file costs nothing.
    pub(super) fn sink(&self) -> Result<Sink, CliError> {
        sink(self.config(), &self.output, self.global.color)
    }

    /// `--fail-on`.
    pub(super) fn fail_on(&self) -> Result<Option<FailOn>, CliError> {
        let level = self.output.fail_on.as_ref().map(|text| text.parse::<FailOn>()).transpose();
        level.map_err(|error| {
            CliError::usage(format!("--fail-on: {error}"), "write suspicious, malicious, or a score")
        })
    }

    /// Listens for signals from here on.
    pub(super) fn listen(&self) -> Result<(), CliError> {
        let word = "stopping: what is in flight may take 5 s more; once more to leave at once";
        let word = (self.global.quiet <= 1).then_some(word);
        let listening = signals::listen(self.stopper.clone(), Arc::clone(&self.reading), word);
        listening.map(drop).map_err(|source| CliError::System { what: "listen for signals", source })
    }

    /// Asks about what was extracted, writes the records and says what it came to.
    ///
    /// # Errors
    /// Where no useful output is possible. A failed look-up is no error: it has its record.
    pub(super) async fn run(
        self,
        extraction: Extraction,
        mut specs: Vec<LaneSpec>,
        memory: Option<Memory>,
        sink: Option<Sink>,
        began: Began,
    ) -> Result<Exit, CliError> {
        let Extraction { indicators, counts, warnings: _ } = extraction;
        let config = self.config().clone();
        let definitions: Vec<Arc<Definition>> =
            specs.iter().map(|spec| Arc::clone(&spec.definition)).collect();
        let guard = Guard::new(&self.exclude).never_sending(&config.input.never_send);
        let indicators = Arc::new(indicators);
        let budget = self.spread_budget(&mut specs)?;
        let mut laid = plan(&indicators, &definitions, &guard, &self.local, None);
        let kept = self.bound(&mut laid, memory.as_ref(), &specs, &indicators, &guard).await?;
        if self.is_dry {
            return self
                .foresee(&laid, &specs, memory.as_ref(), kept, budget, &indicators, &guard, &counts)
                .await;
        }
        let (laid, kept) = (Arc::new(laid), kept.unwrap_or_default());
        let Some(sink) = sink else { return Err(CliError::Bug("a run without a sink".to_owned())) };
        let clock = RunClock::starting_at(Timestamp::now());
        notes::say(&specs, &self.folders.state);
        summary::announce(&laid, &specs, &indicators, &guard, &self.local, &kept, config.concurrency.get());
        let board = Board::new(specs.len());
        let done = Done::default();
        let progress =
            Progress::start(self.global.progress, &laid, &specs, &indicators, &guard, &board, &done);
        let writer = Writer {
            recorder: self.recorder(sink, &guard, &definitions, clock)?,
            sort: config.output.sort,
            indicators: Arc::clone(&indicators),
            plan: Arc::clone(&laid),
            limit: config.input.limit.unwrap_or_default(),
            defers: self.defers,
            done: done.clone(),
        };
        let (finished, inbox) = mpsc::channel::<Finished>(UNWRITTEN);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || writer.run(inbox));
        let thread =
            thread.map_err(|source| CliError::System { what: "start the writer's thread", source })?;
        let deferring = memory.clone().filter(|_| self.defers).map(|memory| Deferring {
            memory,
            indicators: Arc::clone(&indicators),
            job: self.job.as_deref().map(Into::into),
            stop: self.stop.clone(),
        });
        let (finished, put_off) = match deferring {
            Some(deferring) => {
                let beyond = deferring.add_all(&laid.over_limit, &specs, &guard).await;
                let beyond = beyond.map_err(store::failed)?;
                let (lanes, relay) = deferring.before(finished);
                (lanes, Some((beyond, relay)))
            }
            None => (finished, None),
        };
        let work = Work::Ranked { indicators, order: laid.order.clone() };
        let asked = Asked { specs, work, memory: memory.clone(), budget };
        let stats = self.ask(asked, &definitions, guard, clock, board, finished).await?;
        let written = tokio::task::spawn_blocking(move || thread.join()).await;
        let written = written
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| CliError::Bug("the writer's thread panicked".into()))?;
        drop(progress);
        if let Some((beyond, relay)) = put_off {
            let n = beyond + relay.await.map_err(|error| CliError::Bug(error.to_string()))?;
            voice::note(format!("{} look-ups are in the queue: sift worker", thousands(n)));
        }
        self.tidy(memory.as_ref()).await;
        self.conclude(&written, &counts, &laid, stats, memory.as_ref(), began)
    }

    /// Lays out what a run would do.
    #[expect(clippy::too_many_arguments, reason = "every part of a run meets here, once")]
    async fn foresee(
        &self,
        plan: &Plan,
        lanes: &[LaneSpec],
        memory: Option<&Memory>,
        kept: Option<Kept>,
        budget: Option<u64>,
        indicators: &Indicators,
        guard: &Guard,
        counts: &crate::extract::Counts,
    ) -> Result<Exit, CliError> {
        let spent = match memory {
            Some(memory) => memory.store.quota(Timestamp::now()).await.map_err(store::failed)?,
            None => Vec::new(),
        };
        let who = self.who();
        let max_time = self.config().max_time;
        let kept = kept.unwrap_or_default();
        let is_offline = self.cache.offline;
        let dry =
            DryRun { plan, lanes, indicators, guard, counts, max_time, kept, spent, who, budget, is_offline };
        dry.print(self.output.format)
    }

    /// What makes records and writes them.
    pub(super) fn recorder(
        &self,
        sink: Sink,
        guard: &Guard,
        definitions: &[Arc<Definition>],
        clock: RunClock,
    ) -> Result<Recorder, CliError> {
        Ok(Recorder {
            sink,
            local: Arc::clone(&self.local),
            guard: guard.clone(),
            providers: definitions.to_vec(),
            clock,
            fail_on: self.fail_on()?,
            stopper: self.stopper.clone(),
            stop: self.stop.clone(),
            counts: Counts::default(),
        })
    }

    pub(super) async fn ask(
        &self,
        asked: Asked,
        definitions: &[Arc<Definition>],
        guard: Guard,
        clock: RunClock,
        board: Board,
        finished: mpsc::Sender<Finished>,
    ) -> Result<Vec<LaneStats>, CliError> {
        let config = self.config();
        let filters = Filters::new(definitions, Sandbox::this_program(), config.verdict)
            .map_err(CliError::Definitions)?;
        // For the test that no key is in what a panic says.
        debug_assert!(self.env.get("SIFT_PANIC").is_none(), "asked for by SIFT_PANIC");
        let transport = enrich::Transport::new(&transport_settings(config, &self.env, definitions), guard)?;
        let run = enrich::Run {
            lanes: asked.specs,
            filters: Arc::new(filters),
            work: asked.work,
            local: Arc::clone(&self.local),
            transport,
            concurrency: config.concurrency.get(),
            max_time: config.max_time,
            clock,
            stop: self.stop.clone(),
            seed: rand::random(),
            board,
            keep_raw: self.output.raw,
            memory: asked.memory,
            budget: asked.budget,
        };
        Ok(enrich::run(run, finished).await)
    }

    /// Says what it came to.
    pub(super) fn conclude(
        &self,
        written: &Written,
        counts: &crate::extract::Counts,
        laid: &Plan,
        stats: Vec<LaneStats>,
        memory: Option<&Memory>,
        began: Began,
    ) -> Result<Exit, CliError> {
        let exit = choose(&written.tally);
        let mut summary = summary::summary(self.command, counts, written, laid, stats, began, exit);
        summary.job.clone_from(&self.job);
        let proxy =
            self.config().proxy.clone().or_else(|| proxy_of(&self.env)).as_ref().and_then(shown_proxy);
        written.failures.say(&self.keys, proxy.as_deref(), self.global.quiet);
        let object = serde_json::to_value(&summary).map_err(|error| CliError::Bug(error.to_string()))?;
        voice::object(&summary.words(self.again.as_deref()), "summary", object);
        if let Some(path) = &written.partial {
            voice::tell(format!("the records so far are in {}", path.display()));
        }
        if let Some(path) = &self.output.summary_file {
            write_summary(path, &summary)?;
        }
        if let Some(fault) = memory.and_then(|memory| memory.fault.get()) {
            let tip: Vec<_> = report::store_tip(fault, true).map(|tip| ("tip", tip)).into_iter().collect();
            say(fault, &tip);
        }
        if let Some(error) = written.error.as_ref().filter(|error| !error.is_closed_pipe()) {
            let tip: Vec<_> = output_tip(error).map(|tip| ("tip", tip)).into_iter().collect();
            say(error, &tip);
        }
        Ok(exit)
    }
}

/// The sink of records.
///
/// # Errors
/// A file that cannot be opened, and `--append` of a form that is one whole.
pub(super) fn sink(config: &Config, args: &OutputArgs, color: When) -> Result<Sink, CliError> {
    let on_terminal = args.output.is_none() && std::io::stdout().is_terminal();
    let config = &config.output;
    let form = config.format.unwrap_or(if on_terminal { Form::Table } else { Form::Ndjson });
    let target = match &args.output {
        Some(path) => Target::File { path: path.clone(), append: args.append },
        None => Target::Stdout,
    };
    if args.append && !form.can_append() {
        return Err(CliError::usage(
            "--append adds lines, and json is one array",
            "-f ndjson can be added to",
        ));
    }
    let options = Options {
        sort: config.sort,
        fields: config.fields.clone(),
        color: match color {
            When::Auto => args.output.is_none() && stdout_takes_color(),
            When::Always => true,
            When::Never => false,
        },
        terminal: comfy_table::Table::new().width().map_or(100, usize::from),
        skipped: config.skipped,
        defanged: config.defang,
        ..Options::new(form)
    };
    Ok(Sink::open(&target, &options)?)
}

/// What the client of a run is built from.
pub(super) fn transport_settings(
    config: &Config,
    env: &Environment,
    definitions: &[Arc<Definition>],
) -> TransportSettings {
    TransportSettings {
        concurrency: config.concurrency.get(),
        max_body: config.max_body,
        proxy: config.proxy.clone().or_else(|| proxy_of(env)),
        no_proxy: ["NO_PROXY", "no_proxy"].iter().find_map(|name| env.get(name)).map(str::to_owned),
        ca_file: config.ca_file.clone(),
        tls: definitions.iter().any(|definition| definition.base_url().scheme() == "https"),
    }
}

fn write_summary(path: &Path, summary: &crate::output::Summary) -> Result<(), CliError> {
    let target = || path.display().to_string();
    let mut bytes = serde_json::to_vec(summary).map_err(|error| CliError::Bug(error.to_string()))?;
    bytes.push(b'\n');
    write_whole(path, &bytes, 0o644)
        .map_err(|source| CliError::Output(crate::output::OutputError::Write { target: target(), source }))
}

/// A proxy's host and port, without its password; none if it cannot be read.
pub(super) fn shown_proxy(proxy: &secrecy::SecretString) -> Option<String> {
    let url = reqwest::Url::parse(proxy.expose_secret()).ok()?;
    let port = url.port_or_known_default().map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{}{port}", url.host_str()?))
}

/// The proxy that the environment names, as for curl.
pub(super) fn proxy_of(env: &Environment) -> Option<secrecy::SecretString> {
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .find_map(|name| env.get(name).filter(|value| !value.trim().is_empty()))
        .map(|value| value.to_owned().into())
}

/// The networks of the configuration, of `--exclude`, and of the files that both name.
///
/// # Errors
/// A text that is no network, with its file and line.
pub(super) fn excluded(config: &Config, flags: &[String]) -> Result<Vec<IpNet>, CliError> {
    let mut networks = config.input.exclude.clone();
    let mut files: Vec<std::path::PathBuf> = config.input.exclude_files.clone();
    for text in flags {
        match text.strip_prefix('@') {
            Some(file) => files.push(file.into()),
            None => networks.push(network(text, "--exclude")?),
        }
    }
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| {
            CliError::usage(
                format!("cannot read {}: {error}", file.display()),
                "check exclude_files and --exclude",
            )
        })?;
        for (number, line) in (1..).zip(text.lines()) {
            let entry = line.split(['#', ';']).next().unwrap_or_default().trim();
            if !entry.is_empty() {
                networks.push(network(entry, &format!("{}:{number}", file.display()))?);
            }
        }
    }
    Ok(networks)
}

fn network(text: &str, place: &str) -> Result<IpNet, CliError> {
    let text = text.trim();
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
    network.map_err(|_| {
        CliError::usage(format!("{place}: '{text}' is no network"), "write it like this: 198.51.100.0/24")
    })
}

/// Says what the reader found odd.
pub(super) fn warn_of(extraction: &Extraction) {
    extraction.warnings.iter().for_each(voice::warn);
}
