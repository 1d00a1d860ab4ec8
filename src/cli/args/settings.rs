//! `config`, `credentials` and `doctor`.

use super::ListForm;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// `sift config`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  sift config init
  sift config show --origin

'sift help configuration' says where settings come from, and which wins.")]
pub struct Config {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// `sift config …`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a commented configuration file; never in the place of one without --force
    #[command(after_help = "\
Examples:
  sift config init
  sift config init --force --home-net suricata.yaml")]
    Init {
        /// Take HOME_NET out of this suricata.yaml: its addresses are never sent anywhere
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        home_net: Option<PathBuf>,
        /// Replace a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Print what is in force; a password in it is masked
    #[command(after_help = "\
Examples:
  sift config show
  sift config show --origin | grep timeout")]
    Show {
        /// Say behind each value where it comes from
        #[arg(long)]
        origin: bool,
    },
    /// Check the configuration, or a file: every fault at once, with its line
    #[command(after_help = "\
Examples:
  sift config check
  sift config check config.toml")]
    Check {
        /// The file to check in the place of your own
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Print the files and folders in use
    #[command(after_help = "Example:\n  sift config paths")]
    Paths,
}

/// `sift credentials`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  sift credentials set abuseipdb        # asks for the key, without showing it
  sift credentials list

A key is looked for in this order; the first one found is used:
  1. SIFT_NAME_API_KEY and the provider's usual variable (VT_API_KEY, ABUSEIPDB_API_KEY, …)
  2. $CREDENTIALS_DIRECTORY/NAME, from systemd's LoadCredential=
  3. api_key_file in the configuration; refused if others can read it
  4. api_key_command in the configuration: pass, gopass, a vault, a keyring
  5. credentials.toml, written by 'sift credentials set', readable by its owner alone")]
pub struct Credentials {
    /// What to do.
    #[command(subcommand)]
    pub command: CredentialsCommand,
}

/// `sift credentials …`.
#[derive(Debug, Subcommand)]
pub enum CredentialsCommand {
    /// Store a key, from a prompt without echo or from standard input (mode 0600)
    #[command(after_help = "\
Examples:
  sift credentials set virustotal
  pass show soc/virustotal | sift credentials set virustotal")]
    Set {
        /// The provider
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Which providers have a key, and where it comes from; never the key
    #[command(after_help = "\
Examples:
  sift credentials list
  sift credentials list -f ndjson")]
    List {
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// Ask each provider once whether it accepts its key; costs a look-up each
    #[command(after_help = "\
Examples:
  sift credentials check
  sift credentials check virustotal")]
    Check {
        /// Only these providers (default: all that have a key)
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Remove a stored key
    #[command(after_help = "Example:\n  sift credentials remove virustotal")]
    Remove {
        /// The provider
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// `sift doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sift doctor                # one request to each provider, without a key or an address
  sift doctor --offline
  sift doctor --ask          # costs a look-up at each provider

It ends with 1 if anything is wrong; what is only odd does not count.")]
pub struct Doctor {
    /// Send nothing: check this machine alone
    #[arg(long, conflicts_with = "ask")]
    pub offline: bool,
    /// Look up one address at each provider, with its key
    #[arg(long)]
    pub ask: bool,
}
