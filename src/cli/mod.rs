//! The commands: what was typed, what it means, what is said.
//!
//! [`run`] is all that the binary calls. Each command has a file of its own; [`lookups`] is what `enrich` and `lookup`
//! share, [`voice`] is standard error, and [`report`] how failures are said.

mod address;
pub mod args;
mod ask_once;
mod audit;
mod cache;
mod completions;
mod config;
mod credentials;
mod defer;
mod doctor;
mod dry_run;
mod enrich;
pub mod exit;
mod explain;
mod extract;
mod failures;
mod flags;
mod follow;
mod forecast;
mod harden;
mod help;
mod keyring;
mod lists;
mod local;
mod log;
mod lookups;
mod man;
mod notes;
mod progress;
mod prompt;
mod providers;
mod providers_of_run;
mod queue;
mod quota;
mod recorder;
mod remembered;
pub mod report;
mod schema;
mod settings;
mod signals;
mod simulate;
mod stdout;
mod store;
mod summary;
mod voice;
mod worker;
mod writer;

use args::{Cli, Command};
use clap::Parser as _;
use exit::Exit;
use report::CliError;
use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Threads beside the runtime's own: one reads the input, one waits for the writer, two run filters. More would only
/// fight over two cores, and each keeps an arena of the allocator.
const BLOCKING_THREADS: usize = 4;

/// How long the runtime waits for blocking work (a reader, a filter) at the end of a run.
const LINGER: Duration = Duration::from_millis(200);

/// Runs the command line and returns the exit status.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    harden::harden();
    harden::on_panic();
    let args: Vec<OsString> = args.into_iter().collect();
    color(&args);
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(help_or_error) => {
            // A closed pipe under --help is nobody's fault.
            let _ = help_or_error.print();
            return if help_or_error.use_stderr() { Exit::Usage } else { Exit::Ok };
        }
    };
    voice::start(&cli.global);
    log::start(&cli.global);
    // A panic has been said by its hook; a status that is documented is all that is left to give.
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| dispatch(cli)));
    voice::erase();
    match result {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            error.report();
            error.exit()
        }
        Err(_) => Exit::Fatal,
    }
}

/// `--color` counts for help and for the parser's own errors too, which come before anything is parsed.
fn color(args: &[OsString]) {
    let words: Vec<&str> =
        args.iter().take_while(|arg| *arg != "--").filter_map(|arg| arg.to_str()).collect();
    let next = words.iter().position(|word| *word == "--color").and_then(|at| words.get(at + 1)).copied();
    match words.iter().find_map(|word| word.strip_prefix("--color=")).or(next) {
        Some("always") => anstream::ColorChoice::Always.write_global(),
        Some("never") => anstream::ColorChoice::Never.write_global(),
        _ => {}
    }
}

fn dispatch(cli: Cli) -> Result<Exit, CliError> {
    let global = cli.global;
    match cli.command {
        Command::Enrich(args) => on_runtime(enrich::run(*args, global)),
        Command::Lookup(args) => on_runtime(enrich::lookup(*args, global)),
        Command::Extract(args) => extract::run(*args, &global),
        Command::Enqueue(args) => on_runtime(queue::enqueue(*args, global)),
        Command::Worker(args) => on_runtime(worker::run(*args, global)),
        Command::Queue(args) => on_runtime(queue::run(args, global)),
        Command::Explain(args) => on_runtime(explain::run(args, global)),
        Command::Cache(args) => on_runtime(cache::run(args, global)),
        Command::Quota(args) => on_runtime(quota::run(args, global)),
        Command::Audit(args) => on_runtime(audit::run(args, global)),
        Command::Providers(args) => providers::run(args, &global),
        Command::Lists(args) => lists::run(args, &global),
        Command::Doctor(args) => doctor::run(&args, &global),
        Command::Config(args) => config::run(args, &global),
        Command::Credentials(args) => credentials::run(args, &global),
        Command::Simulate(args) => on_runtime(simulate::run(args)),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Help(args) => help::run(&args),
    }
}

/// Replies that are dealt with together. Each goes through several tasks in turn; with all that have arrived at once, the
/// first would not see the next look-up leave before the last has been read.
const EVENTS_AT_ONCE: usize = 8;

/// One thread drives all lanes: they share their state without locks, and one thread is faster for them than several.
fn on_runtime<T>(command: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(BLOCKING_THREADS).max_io_events_per_tick(EVENTS_AT_ONCE);
    let runtime = builder.build();
    let runtime = runtime.map_err(|source| CliError::System { what: "start the runtime", source })?;
    let result = runtime.block_on(command);
    runtime.shutdown_timeout(LINGER);
    result
}
