//! `providers`.

use super::{ListForm, help};
use clap::{Args, Subcommand, ValueHint};
use std::net::IpAddr;
use std::path::PathBuf;

/// `sift providers`.
#[derive(Debug, Args)]
#[command(after_help = help::PROVIDERS, subcommand_required = true, arg_required_else_help = true)]
pub struct Providers {
    /// What to do.
    #[command(subcommand)]
    pub command: ProvidersCommand,
}

/// `sift providers …`.
#[derive(Debug, Subcommand)]
pub enum ProvidersCommand {
    /// A line for each provider: asked or not, key found or not, limits
    #[command(after_help = "\
Examples:
  sift providers list
  sift providers list -f ndjson | jq -r 'select(.enabled).name'")]
    List {
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// One provider whole: what it is asked, its limits, its terms, its filter
    #[command(after_help = "Example:\n  sift providers show abuseipdb")]
    Show {
        /// The provider
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Check definitions: built in, of your own, or a file that is not in its place yet
    #[command(after_help = "\
Examples:
  sift providers check                 # all of them
  sift providers check abuseipdb
  sift providers check --live abuseipdb    # one real look-up
  sift providers check ./inhouse.toml --reply sample.json --ip 203.0.113.7")]
    Check(ProvidersCheck),
}

/// `sift providers check`.
#[derive(Debug, Args)]
pub struct ProvidersCheck {
    /// Providers, or definition files (with a / or .toml in their names)
    #[arg(value_name = "NAME|FILE")]
    pub names: Vec<String>,
    /// Ask each of them about one public address (9.9.9.9), once; all that would be asked, if none is named
    #[arg(long, conflicts_with = "reply")]
    pub live: bool,
    /// Read this saved reply with the provider's filter, and print what it makes of it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub reply: Option<PathBuf>,
    /// Status of the reply
    #[arg(long, value_name = "CODE", default_value_t = 200, requires = "reply")]
    pub status: u16,
    /// The address that was asked about
    #[arg(long, value_name = "IP", requires = "reply")]
    pub ip: Option<IpAddr>,
}
