//! The command line as typed. What it means is each command's own.
//!
//! Help, man pages and completions are all made from here, so every word of them stands in this folder. Examples are
//! shell lines that a test runs as they stand; what is said of one follows a `#`.

mod help;
mod kept;
mod lists;
mod lookups;
mod providers;
mod queue;
mod settings;
mod store;
mod tools;

pub use help::{Completions, Help, Man, Topic};
pub use kept::{Budget, CacheArgs};
pub use lists::{Lists, ListsAdd, ListsCommand, ListsUpdate, Says, Written};
pub use lookups::{
    Enrich, Extract, ExtractSort, Form, InputArgs, Lookup, LookupArgs, OutputArgs, OutputForm, OutputSort,
    PapLevel, Rehearse,
};
pub use providers::{Providers, ProvidersCheck, ProvidersCommand};
pub use queue::{Enqueue, PRIORITY, Purged, Queue, QueueCommand, QueueResults, Worker};
pub use settings::{Config, ConfigCommand, Credentials, CredentialsCommand, Doctor};
pub use store::{Audit, Cache, CacheCommand, Explain, Quota};
pub use tools::{ListForm, Schema, SchemaKind, Simulate};

use clap::{Args, Parser, Subcommand, ValueEnum};

const AFTER: &str = "\
Examples:
  sift enrich --simulate eve.json     # a rehearsal: no key and no network needed
  sift enrich eve.json                # look up every outside address in the events
  sift enrich eve.json | jq -r 'select(.verdict==\"malicious\").ip'
  sift enrich -n eve.json             # what would be asked, and how long it takes
  sift lookup 203.0.113.7             # one address, now
  sift enqueue eve.json && sift worker   # the same work, but it survives a crash

Exit status:
  0  every look-up was answered         4    no look-up was answered
  1  fatal error                        10   --fail-on matched
  2  usage or configuration error       130  stopped by SIGINT
  3  some look-ups were not answered    143  stopped by SIGTERM

'sift help COMMAND' has the details; so have 'sift help exit-codes', 'records' and
'configuration'. Other programs are called sift too; this one looks up addresses.";

/// Look up the addresses in Suricata alerts at threat-intelligence providers, within their limits
#[derive(Debug, Parser)]
#[command(name = "sift", version, propagate_version = true, max_term_width = 98, after_help = AFTER)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// What all commands take.
    #[command(flatten)]
    pub global: Global,
}

/// What all commands take.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Configuration file (default: $XDG_CONFIG_HOME/sift/config.toml); "none" reads no file
    #[arg(long, global = true, value_name = "FILE", env = "SIFT_CONFIG", hide_env_values = true)]
    #[arg(hide_short_help = true, value_hint = clap::ValueHint::FilePath)]
    pub config: Option<String>,
    /// Say less on stderr (-q: no progress and no summary; -qq: errors only)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "verbose")]
    pub quiet: u8,
    /// Say more on stderr (-v: each wait; -vv: each request and retry; never a key)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours; "auto" follows the terminal, NO_COLOR and CLICOLOR_FORCE, for each stream by itself
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub color: When,
    /// Progress on stderr; "auto" shows it only on a terminal
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub progress: When,
    /// Form of what is said on stderr; "auto" is text, with journal priorities under systemd (also
    /// SIFT_LOG_FORMAT)
    #[arg(long, global = true, value_name = "FORM", hide_short_help = true)]
    pub log_format: Option<LogForm>,
}

/// When to do something that is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Form of what is said on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// Text, with journal priorities where standard error is the journal
    Auto,
    /// Text
    Text,
    /// One JSON object a line
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look up every address found in eve.json (or in a list, or sift's own NDJSON)
    Enrich(Box<Enrich>),
    /// Look up addresses given on the command line
    Lookup(Box<Lookup>),
    /// Print the unique addresses with what was seen of them; asks nobody
    Extract(Box<Extract>),
    /// Put look-ups into the queue and return at once; 'sift worker' makes them
    Enqueue(Box<Enqueue>),
    /// Work off the queue until it is empty (or for ever, with --watch)
    Worker(Box<Worker>),
    /// See and tend the queue, and print its results
    Queue(Queue),
    /// Say what is kept about an address, and how its verdict comes out of it; asks nobody
    Explain(Explain),
    /// See and tend the answers that are kept
    Cache(Cache),
    /// Show what is left of each provider's quota, for all runs together
    Quota(Quota),
    /// Show who asked whom about what
    Audit(Audit),
    /// List, show and check the providers: who is asked, and within which limits
    Providers(Providers),
    /// Download, list, add and remove the lists that answer on this machine
    Lists(Lists),
    /// Check configuration, keys, clock, store and reachability
    Doctor(Doctor),
    /// Write, show or check the configuration
    Config(Config),
    /// Store, list, check or remove API keys (never given on the command line)
    Credentials(Credentials),
    /// Serve fake, rate-limited providers on loopback, for trials and tests
    Simulate(Simulate),
    /// Print the JSON Schema of the records or the summary
    Schema(Schema),
    /// Print a shell completion script
    Completions(Completions),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(Man),
    /// Print the help of a command or a topic
    Help(Help),
}

#[cfg(test)]
mod tests;
