//! How a failure is said: what happened, to what, and what to do next.

use super::exit::Exit;
use super::voice::{self, Detail};
use crate::config::{ConfigErrors, HomeNetError, KeyError};
use crate::enrich::{Stop, TransportError};
use crate::extract::ExtractError;
use crate::input::InputError;
use crate::output::OutputError;
use crate::provider::DefinitionErrors;
use crate::simulate::{ScenarioError, SimulateError};
use crate::store::StoreError;
use std::error::Error;
use std::fmt::Write as _;

/// Why a command ends without its work done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The command line asks for something that is not there.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it, and what helps with it: labels and texts.
        details: Vec<(&'static str, String)>,
    },
    /// A key that is there and cannot be used.
    #[error("the API key of {provider} cannot be used")]
    Key {
        /// Whose it is.
        provider: String,
        /// Why not.
        source: KeyError,
    },
    /// A file of ours that cannot be read or written.
    #[error("cannot {what} {path}", path = path.display())]
    File {
        /// `read` or `write`.
        what: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A suricata.yaml without networks.
    #[error("{path} tells no networks", path = path.display())]
    HomeNet {
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        source: HomeNetError,
    },
    /// The prompt was left with Ctrl-C.
    #[error("left without a change")]
    Left,
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Providers' definitions.
    #[error(transparent)]
    Definitions(#[from] DefinitionErrors),
    /// An address where a file is read.
    #[error("{address} does not exist")]
    AddressAsFile {
        /// What was given; there is no such file.
        address: String,
        /// The command, as in `sift enrich`.
        command: &'static str,
    },
    /// The input.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// The output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The HTTP client.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The store.
    #[error("{source}")]
    Store {
        /// What is wrong with it.
        source: StoreError,
        /// The command can do without, by `--no-store`.
        can_do_without: bool,
    },
    /// A scenario file.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// Something of the system's: a runtime, a signal handler, a thread.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A signal came before anything was asked.
    #[error("stopped before anything was asked")]
    Stopped(Stop),
    /// A bug.
    #[error("a bug in sift ended the run: {0}")]
    Bug(String),
}

impl CliError {
    /// A usage error.
    #[must_use]
    pub fn usage(message: impl Into<String>, tip: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), details: vec![("tip", tip.into())] }
    }

    /// The status the process ends with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. }
            | Self::Extract(ExtractError::Input(InputError::NotFollowed { .. }))
            | Self::Config(_)
            | Self::Definitions(_)
            | Self::Scenario(_)
            | Self::Key { .. }
            | Self::HomeNet { .. } => Exit::Usage,
            Self::Output(error) if error.is_closed_pipe() => Exit::Ok,
            Self::Stopped(Stop::Terminated) => Exit::Terminated,
            Self::Extract(ExtractError::Cancelled) | Self::Left | Self::Stopped(_) => Exit::Interrupted,
            _ => Exit::Fatal,
        }
    }

    /// What to do about it, where that is known.
    fn details(&self) -> Vec<Detail<'static>> {
        let tip = match self {
            Self::Usage { details, .. } => return details.clone(),
            Self::Scenario(error) => error.tip(),
            Self::Extract(error @ ExtractError::Input(_)) => {
                error.hint().or_else(|| Some("check its name; \"-\" is standard input".to_owned()))
            }
            Self::Extract(error) => error.hint(),
            Self::AddressAsFile { address, command: "sift enrich" } => {
                Some(format!("for an address: sift lookup {address}"))
            }
            Self::AddressAsFile { address, command } => {
                Some(format!("for an address: echo {address} | {command} -"))
            }
            Self::Key { source, provider } => source
                .tip()
                .or_else(|| Some(format!("mend it, or store the key: sift credentials set {provider}"))),
            Self::Output(error) => output_tip(error),
            Self::Store { source, can_do_without } => store_tip(source, *can_do_without),
            Self::Bug(_) => Some("please report it, with the command line and what stood above".to_owned()),
            _ => None,
        };
        tip.map(|tip| ("tip", tip)).into_iter().collect()
    }

    /// Says it on stderr, in the shape of clap's own errors.
    pub fn report(&self) {
        match self {
            Self::Output(error) if error.is_closed_pipe() => {}
            Self::Config(errors) => say_config(errors),
            Self::Definitions(errors) => errors.0.iter().for_each(|error| say(error, &[])),
            other => say(other, &other.details()),
        }
    }
}

/// Every fault of a configuration, each with its tip.
pub(super) fn say_config(errors: &ConfigErrors) {
    for error in errors.iter() {
        let tip: Vec<Detail<'_>> = error.tip().map(|tip| ("tip", tip)).into_iter().collect();
        say(error, &tip);
    }
}

/// What to do about a store; that one can do without it only where the command has the flag.
pub(super) fn store_tip(error: &StoreError, can_do_without: bool) -> Option<String> {
    let tip = error.tip()?;
    Some(if can_do_without { tip.to_owned() } else { tip.replace(", or go on without: --no-store", "") })
}

/// What to do about an output that cannot be written.
pub(super) fn output_tip(error: &OutputError) -> Option<String> {
    match error {
        OutputError::Full { .. } => Some("make room and run again".to_owned()),
        OutputError::Open { .. } => {
            Some("name another file with -o, in a folder that you may write to".to_owned())
        }
        _ => None,
    }
}

/// An error with its causes.
pub(super) fn say(error: &dyn Error, details: &[Detail<'_>]) {
    voice::error(&chain(error), details);
}

/// The error and its causes, once each.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(below) = cause {
        let below_text = below.to_string();
        if !text.ends_with(&below_text) {
            let _ = write!(text, ": {below_text}");
        }
        cause = below.source();
    }
    text
}
