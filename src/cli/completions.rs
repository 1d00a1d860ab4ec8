//! `sift completions`.

use super::args::{Cli, Completions};
use super::exit::Exit;
use super::report::CliError;
use super::stdout::print;
use clap::CommandFactory as _;

/// Prints the script.
///
/// # Errors
/// Where standard output cannot be written.
pub(super) fn run(args: &Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sift", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
