//! `enqueue`, `worker` and `queue`: look-ups that are made later.

use super::kept::{duration, job_name};
use super::{InputArgs, ListForm, OutputArgs, OutputForm, PapLevel};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Priority of tasks that nobody gave one.
pub const PRIORITY: u8 = 10;

/// `sift enqueue`.
#[derive(Debug, Args)]
#[command(after_help = "\
What 'sift enrich' would ask becomes tasks, one for each provider and address, worst first; those
that wait in the queue already are not added again. Nothing is sent. 'sift worker' asks, and
'sift queue results' prints the records. It ends with 3 if --limit left addresses out.

Examples:
  sift enqueue eve.json && sift worker
  zcat eve.json.*.gz | sift enqueue - --alerts --job night --not-before 2h
  sift enqueue eve.json -p abuseipdb --expires 7d -f ndjson | jq .added")]
pub struct Enqueue {
    /// Files to read, plain, gzip or zstd; "-" is standard input (the default, unless it is a terminal)
    #[arg(value_name = "FILE", help_heading = None, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Tasks for these providers alone (default: all that are enabled or have a key)
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', help_heading = "Look-ups")]
    pub provider: Vec<String>,
    /// Never send these addresses: a network, or @FILE with one a line
    #[arg(long, value_name = "CIDR|@FILE", value_delimiter = ',')]
    #[arg(hide_short_help = true, help_heading = "Look-ups")]
    pub exclude: Vec<String>,
    /// The addresses' marking: red, amber, green or clear; providers that go beyond it are left out
    #[arg(long, value_name = "LEVEL", hide_short_help = true, help_heading = "Look-ups")]
    pub pap: Option<PapLevel>,
    /// Ask about addresses that a list of known good ones vouches for, too
    #[arg(long, hide_short_help = true, help_heading = "Look-ups")]
    pub ask_known_good: bool,
    /// At most this many addresses, worst first; 0 for no limit [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Look-ups")]
    pub limit: Option<u32>,
    /// Taken before tasks of a higher number, whatever their rank
    #[arg(long, value_name = "0..255", default_value_t = PRIORITY, help_heading = "Queue")]
    pub priority: u8,
    /// Not to be asked before: a span from now (30m, 2h, 7d) or an RFC 3339 time
    #[arg(long, value_name = "TIME", help_heading = "Queue")]
    pub not_before: Option<String>,
    /// Not worth asking from then on: a span from now or an RFC 3339 time
    #[arg(long, value_name = "TIME", help_heading = "Queue")]
    pub expires: Option<String>,
    /// Name of the job that the tasks belong to
    #[arg(long, value_name = "NAME", value_parser = job_name, help_heading = "Queue")]
    pub job: Option<String>,
    /// Form of what is said: words on stderr, or with ndjson an object on standard output
    #[arg(short, long, value_name = "FORM", default_value = "auto", help_heading = "Output")]
    pub format: ListForm,
}

/// `sift worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes the tasks of every provider that can be asked, the most urgent first, and keeps the same
limits as 'sift enrich'; a stored answer that is fresh costs nothing. Several workers at once
share the work. One that is killed loses nothing: what it had is taken again when its leases are
over. It leaves to people what is reserved for them.

It ends with 3 if some of what was due was not answered, with 4 if nothing was.

Examples:
  sift worker
  sift worker --once --max-time 10m -q && sift queue results -o results.ndjson --append
  sift worker --watch & sleep 1    # stays, for tasks that wait and those that come")]
pub struct Worker {
    /// Stay: wait for tasks that are not due yet, and for new ones, until a signal
    #[arg(long)]
    pub watch: bool,
    /// One round: what is due now
    #[arg(long, conflicts_with = "watch")]
    pub once: bool,
    /// Only tasks for these providers (default: all that can be asked)
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', help_heading = "Look-ups")]
    pub provider: Vec<String>,
    /// Requests in flight at once, over all providers
    #[arg(short, long, value_name = "N", help_heading = "Look-ups")]
    pub concurrency: Option<u32>,
    /// Limit for the whole run; what is left then stays in the queue
    #[arg(long, value_name = "TIME", help_heading = "Look-ups")]
    pub max_time: Option<String>,
    /// A provider's rate: virustotal=4/min
    #[arg(long, value_name = "NAME=N/UNIT", value_delimiter = ',')]
    #[arg(hide_short_help = true, help_heading = "Look-ups")]
    pub rate: Vec<String>,
    /// Take cached answers up to this old: 1h, 7d (default: each provider's own)
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Cache")]
    pub max_age: Option<Duration>,
    /// Ask again even where the cache has an answer, and keep the new one
    #[arg(long, conflicts_with = "max_age", help_heading = "Cache")]
    pub refresh: bool,
    /// How long tasks of a worker that died are not taken by others [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    pub lease: Option<Duration>,
}

/// `sift queue`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Tasks come from 'sift enqueue' and 'sift enrich --defer'; 'sift worker' works them off. One that
cannot be asked now waits, without an attempt being counted; one that was asked in vain is tried
five times, at growing distances, and one that the provider refuses is given up at once. What was
given up stays until it is tried again or purged.

Examples:
  sift queue status
  sift queue results -o results.ndjson --append
  sift queue failed -f ndjson | jq -r .error.type | sort | uniq -c")]
pub struct Queue {
    /// What to do.
    #[command(subcommand)]
    pub command: QueueCommand,
}

/// `sift queue …`.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// A line for each provider: tasks that are ready, waiting, being asked, given up
    #[command(after_help = "\
Examples:
  sift queue status
  sift queue status -f ndjson | jq .ready")]
    Status {
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// The records of addresses whose tasks have all ended, each once
    Results(QueueResults),
    /// Tasks that were given up, and why
    #[command(after_help = "\
Examples:
  sift queue failed
  sift queue failed -f ndjson | jq -r .ip")]
    Failed {
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// Take up again what was given up
    #[command(after_help = "\
Their addresses have a record once more when they end.

Examples:
  sift queue retry
  sift queue retry --provider abuseipdb")]
    Retry {
        /// Only this provider's
        #[arg(short, long, value_name = "NAME")]
        provider: Option<String>,
    },
    /// Remove for good; asks first
    #[command(after_help = "\
Example:
  sift queue purge dead --yes")]
    Purge {
        /// What to remove
        #[arg(value_name = "WHAT")]
        what: Purged,
        /// Do not ask first
        #[arg(long)]
        yes: bool,
    },
}

/// What 'sift queue purge' removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Purged {
    /// Tasks that are still to be asked, also those that a worker has just now
    Open,
    /// Tasks that were given up
    Dead,
    /// Results that were read
    Read,
    /// All of it, and results that nobody has read
    All,
}

/// `sift queue results`.
#[derive(Debug, Args)]
#[command(after_help = "\
Records as 'sift enrich' prints them. They count as read once they are written; a reader that
dies before that leaves them for the next. With -o they count once the file is whole.

Examples:
  sift queue results | jq -r 'select(.verdict==\"malicious\").ip'
  sift queue results -o results.ndjson --append
  sift queue results --keep -f csv")]
pub struct QueueResults {
    /// Do not count them as read
    #[arg(long)]
    pub keep: bool,
    /// Write here instead of to standard output; the file appears whole or not at all
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Add to the --output file, whole lines only, instead of replacing it
    #[arg(long, requires = "output")]
    pub append: bool,
    /// Form of the results; "auto" is a table on a terminal, else ndjson
    #[arg(short, long, value_name = "FORM")]
    pub format: Option<OutputForm>,
    /// Columns of table, csv and tsv [default: ip,verdict,score,country,asn,hits,tags]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub fields: Vec<String>,
    /// Write addresses as 203.0.113[.]7 (table, csv, tsv)
    #[arg(long, hide_short_help = true)]
    pub defang: bool,
}

impl QueueResults {
    /// The same as the flags of `enrich`.
    #[must_use]
    pub fn as_output(&self) -> OutputArgs {
        OutputArgs {
            output: self.output.clone(),
            append: self.append,
            format: self.format,
            fields: self.fields.clone(),
            defang: self.defang,
            ..OutputArgs::default()
        }
    }
}
