//! `--follow`: files that are read on as they grow.
//!
//! One thread looks at the files, and writes too: whoever does not read what we write holds up the reading, and the log
//! itself is the buffer. Nothing is asked or printed twice in a run; every address comes once.

mod enrich;
mod extract;

pub(super) use enrich::run as enrich;
pub(super) use extract::run as extract;

use super::args::{Form, InputArgs};
use super::report::CliError;
use super::voice;
use crate::extract::Warning;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::PathBuf;
use std::time::Duration;

/// Between two looks at the files. A look that finds nothing costs a few system calls a file; rotations must not come
/// faster.
const LOOK_EACH: Duration = Duration::from_millis(100);

/// The files that are followed.
fn files(files: Vec<PathBuf>, args: &InputArgs, command: &str) -> Result<Vec<PathBuf>, CliError> {
    let example = || format!("name the log: {command} --follow /var/log/suricata/eve.json");
    if files.is_empty() {
        return Err(CliError::usage("--follow needs a FILE", example()));
    }
    if files.iter().any(|path| path.as_os_str() == "-") {
        let message = "--follow reads files, not standard input";
        return Err(CliError::usage(message, example()));
    }
    if !matches!(args.input_format, Form::Auto | Form::Eve) {
        let message = "--follow reads eve.json, no list and no output of sift";
        return Err(CliError::usage(message, "leave out --follow, or --input-format"));
    }
    Ok(files)
}

/// What does not go with `--follow`, and what to do instead.
fn refused(what: &str, why: &str, tip: &str) -> CliError {
    CliError::usage(format!("{what} cannot go with --follow: {why}"), tip)
}

/// Says which files are awaited.
fn say_awaited(files: &[PathBuf]) {
    for path in files.iter().filter(|path| !path.exists()) {
        voice::warn(format!("{} is not there yet; waiting for it", path.display()));
    }
}

fn say_warnings(warnings: &[Warning]) {
    warnings.iter().for_each(voice::warn);
}

/// Whether nobody reads standard output any more: a log that is quiet would never tell by a write.
fn is_stdout_closed() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let is_ready = poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    let [polled] = polled;
    is_ready && polled.revents().contains(PollFlags::ERR)
}
