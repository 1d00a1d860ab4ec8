//! `sift simulate`.

use super::args::Simulate;
use super::enrich::named_scenario;
use super::exit::Exit;
use super::report::CliError;
use super::stdout::print;
use crate::simulate::{Scenario, Server};
use std::fmt::Write as _;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until a signal comes; prints the ledger then.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Simulate) -> Result<Exit, CliError> {
    if args.list {
        let mut text = String::new();
        for (name, about) in Scenario::names() {
            let _ = writeln!(text, "{name:<10} {about}");
        }
        print(&text)?;
        return Ok(Exit::Ok);
    }
    let failed = |source| CliError::System { what: "listen for signals", source };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let scenario = named_scenario(&args.scenario)?;
    let server = Server::bind(scenario, args.listen, args.seed).await?.with_exact_latencies()?;
    print(&format!("listening on http://{}\n", server.addr()))?;
    let ledger = server.ledger();
    server
        .run(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
        .await?;
    print(&ledger.snapshot().to_string())?;
    Ok(Exit::Ok)
}
