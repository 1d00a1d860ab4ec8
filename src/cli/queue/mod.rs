//! `sift enqueue` and `sift queue`: look-ups that are made later.

mod enqueue;
mod results;
mod tend;

pub(super) use enqueue::{context, place, run as enqueue};

use super::args::{Global, Queue as Args, QueueCommand};
use super::exit::Exit;
use super::flags::Flags;
use super::report::CliError;
use super::settings::Settings;

/// Runs `sift queue`.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Args, global: Global) -> Result<Exit, CliError> {
    let mut flags = Flags::default();
    if let QueueCommand::Results(args) = &args.command {
        flags.output(&args.as_output());
    }
    let settings = Settings::load(&global, flags, None)?;
    match args.command {
        QueueCommand::Status { format } => tend::status(&settings, format).await,
        QueueCommand::Results(args) => results::run(&settings, &args, global.color).await,
        QueueCommand::Failed { format } => tend::failed(&settings, format).await,
        QueueCommand::Retry { provider } => tend::retry(&settings, provider).await,
        QueueCommand::Purge { what, yes } => tend::purge(&settings, what, yes).await,
    }
}
