//! `sift extract --follow`.

use super::super::args::{Extract, ExtractSort, Global};
use super::super::enrich::options;
use super::super::exit::Exit;
use super::super::extract::{append_line, failed, say};
use super::super::flags::Flags;
use super::super::lookups::warn_of;
use super::super::report::CliError;
use super::super::settings::Settings;
use super::super::signals;
use super::{LOOK_EACH, files, is_stdout_closed, refused, say_awaited, say_warnings};
use crate::enrich::{Stop, StopSignal, stop};
use crate::extract::{Follower, Indicators, Options};
use jiff::Timestamp;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Lines gathered for one write.
const BUFFER: usize = 64 * 1024;

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(in crate::cli) async fn run(args: Extract, global: &Global) -> Result<Exit, CliError> {
    let files = files(args.files, &args.input, "sift extract")?;
    if args.sort == ExtractSort::Rank {
        return Err(refused(
            "--sort rank",
            "each address is printed as it comes",
            "leave out --sort; or sort what is there without --follow",
        ));
    }
    if args.output.is_some() {
        return Err(refused(
            "--output",
            "the file would appear only at the end",
            "let the shell add the lines to a file: >> FILE",
        ));
    }
    let mut flags = Flags::default();
    flags.input(&args.input);
    let config = Settings::config(global, flags)?;
    let mut options = options(&args.input, &config, Timestamp::now())?;
    options.context = !args.no_context;
    let (stopper, stop) = stop::channel();
    signals::listen(stopper, Arc::default(), None)
        .map_err(|source| CliError::System { what: "listen for signals", source })?;
    let (bare, heard) = (args.no_context, stop.clone());
    let printing = tokio::task::spawn_blocking(move || print(&files, &options, bare, heard));
    printing.await.map_err(|error| CliError::Bug(error.to_string()))??;
    Ok(match stop.get() {
        Stop::Interrupted => Exit::Interrupted,
        Stop::Terminated => Exit::Terminated,
        Stop::No | Stop::ClosedPipe | Stop::OutputFailed | Stop::StoreFailed => Exit::Ok,
    })
}

/// Prints new addresses until a stop is called.
fn print(files: &[PathBuf], options: &Options, bare: bool, mut stop: StopSignal) -> Result<(), CliError> {
    let runtime = tokio::runtime::Handle::current();
    let mut follower = Follower::new(files, options)?;
    say_awaited(files);
    let mut next = 0;
    loop {
        // Asked before the look, so that what was written before the signal is printed.
        let is_last = stop.get() != Stop::No;
        let looked = follower.poll();
        say_warnings(&follower.take_warnings());
        // What was found before an error is printed, too.
        next = write(follower.indicators(), next, bare)?;
        looked?;
        if is_last {
            break;
        }
        if is_stdout_closed() {
            return Err(failed("standard output", std::io::ErrorKind::BrokenPipe.into()));
        }
        if !follower.is_behind() {
            // The time being over is no error here.
            let _ = runtime.block_on(async { tokio::time::timeout(LOOK_EACH, stop.called()).await });
        }
    }
    let extraction = follower.finish()?;
    write(&extraction.indicators, next, bare)?;
    warn_of(&extraction);
    say(&extraction);
    Ok(())
}

/// Writes the addresses from `next` on, and says which is the next one.
fn write(indicators: &Indicators, next: u32, bare: bool) -> Result<u32, CliError> {
    let end = u32::try_from(indicators.len()).unwrap_or(u32::MAX);
    let mut lines = Vec::new();
    for id in next..end {
        append_line(indicators, id, bare, &mut lines);
        if lines.len() >= BUFFER || id + 1 == end {
            let mut stdout = std::io::stdout().lock();
            let written = stdout.write_all(&lines).and_then(|()| stdout.flush());
            written.map_err(|source| failed("standard output", source))?;
            lines.clear();
        }
    }
    Ok(end)
}
