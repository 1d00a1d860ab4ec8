//! `enrich`, `lookup` and `extract`.

use super::kept::{Budget, CacheArgs, budget, job_name};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// `sift enrich`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sift enrich --simulate eve.json    # a rehearsal: no key and no network needed
  sift enrich -n eve.json            # who would be asked about how many, and how long it takes
  sift enrich eve.json -o today.ndjson
  sift enrich eve.json | jq -r 'select(.verdict==\"malicious\").ip'
  zcat eve.json.*.gz | sift enrich - --alerts -p abuseipdb,virustotal
  sift extract eve.json | jq -c 'select(.seen.severity==1)' | sift enrich -
  sift enrich eve.json -f csv --fields ip,verdict,providers.abuseipdb.reports
  sift enrich --follow eve.json --alerts -o ips.ndjson --append   # on and on, as the log grows")]
pub struct Enrich {
    /// Files to read, plain, gzip or zstd; "-" is standard input (the default, unless it is a terminal)
    #[arg(value_name = "FILE", help_heading = None, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Say who would be asked about how many addresses, and how long it takes; send nothing
    #[arg(short = 'n', long, help_heading = None)]
    pub dry_run: bool,
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Who is asked, and how fast.
    #[command(flatten)]
    pub lookups: LookupArgs,
    /// Put what cannot be asked now into the queue, for 'sift worker', instead of giving it up
    #[arg(long, help_heading = "Unattended runs", conflicts_with_all = ["no_store", "offline", "simulate"])]
    pub defer: bool,
    /// What is written.
    #[command(flatten)]
    pub output: OutputArgs,
    /// A run without the world.
    #[command(flatten)]
    pub rehearse: Rehearse,
}

/// `sift lookup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sift lookup 203.0.113.7
  sift lookup '203.0.113[.]7' 2001:db8::7 -p abuseipdb -f ndjson
  sift lookup --simulate 203.0.113.7   # no key and no network needed")]
pub struct Lookup {
    /// Addresses; defanged ones are understood
    #[arg(value_name = "IP", required = true, help_heading = None, value_hint = ValueHint::Other)]
    pub ips: Vec<String>,
    /// Who is asked, and how fast.
    #[command(flatten)]
    pub lookups: LookupArgs,
    /// What is written.
    #[command(flatten)]
    pub output: OutputArgs,
    /// A run without the world.
    #[command(flatten)]
    pub rehearse: Rehearse,
}

/// `sift extract`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sift extract eve.json | jq -c 'select(.seen.severity==1)' | sift enrich -
  sift extract --alerts --no-context eve.json.*.gz
  sift extract --sort rank eve.json | head -20   # the worst twenty
  sift extract --follow --no-context eve.json   # each new one as it comes, until Ctrl-C")]
pub struct Extract {
    /// Files to read, plain, gzip or zstd; "-" is standard input (the default, unless it is a terminal)
    #[arg(value_name = "FILE", help_heading = None, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// One address a line, and nothing gathered about it
    #[arg(long, help_heading = "Output")]
    pub no_context: bool,
    /// Order of the addresses
    #[arg(long, value_name = "BY", default_value = "input", help_heading = "Output")]
    pub sort: ExtractSort,
    /// Write here instead of to standard output; the file appears whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Order of extracted addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExtractSort {
    /// As they first appeared
    Input,
    /// Worst first
    Rank,
}

/// A run against the simulator.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Rehearsal")]
pub struct Rehearse {
    /// Ask simulated providers inside the process: no key and no network needed
    #[arg(long)]
    pub simulate: bool,
    /// What the simulated providers do: a name or a file (see 'sift simulate --help')
    #[arg(long, value_name = "NAME|FILE", requires = "simulate", hide_short_help = true)]
    pub scenario: Option<String>,
}

/// What is read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Read on as the files grow, through rotation and truncation, and print each new address at once, until a signal or
    /// --max-time ends it
    #[arg(long)]
    pub follow: bool,
    /// Only alerts; the same as --event-type alert
    #[arg(long)]
    pub alerts: bool,
    /// Only alerts at least this severe (Suricata: 1 is the most severe)
    #[arg(long, value_name = "1..4", value_parser = clap::value_parser!(u8).range(1..=255))]
    pub severity: Option<u8>,
    /// Only events from this time on: 15m, 24h, 7d or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// How to read the input; "auto" looks at its beginning
    #[arg(long, value_name = "FORM", default_value = "auto", hide_short_help = true)]
    pub input_format: Form,
    /// Only events of these types (default: all that have addresses)
    #[arg(
        long,
        value_name = "TYPE",
        value_delimiter = ',',
        conflicts_with = "alerts",
        hide_short_help = true
    )]
    pub event_type: Vec<String>,
    /// Fail if more than this share of the lines cannot be read, 0 to 1 [default: 0.5]
    #[arg(long, value_name = "SHARE", hide_short_help = true)]
    pub max_malformed: Option<f64>,
    /// Read every line to its end by RFC 8259
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
    /// Where in each line the event is, if it is wrapped: data (Wazuh), suricata.eve (Filebeat), message
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub event_path: Option<String>,
    /// Threads that read: 0 for one a processor, 1 for none beside the main one
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    pub threads: usize,
}

/// How to read the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// Look at its beginning
    #[default]
    Auto,
    /// Suricata's eve.json
    Eve,
    /// One address a line
    #[value(alias = "text")]
    List,
    /// sift's own NDJSON
    Sift,
}

/// Who is asked, and how fast.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Look-ups")]
pub struct LookupArgs {
    /// Ask only these providers (default: all that are enabled or have a key)
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// Requests in flight at once, over all providers
    #[arg(short, long, value_name = "N")]
    pub concurrency: Option<u32>,
    /// Never send these addresses: a network, or @FILE with one a line
    #[arg(long, value_name = "CIDR|@FILE", value_delimiter = ',', hide_short_help = true)]
    pub exclude: Vec<String>,
    /// The addresses' marking: red, amber, green or clear; providers that go beyond it are left out
    #[arg(long, value_name = "LEVEL", hide_short_help = true)]
    pub pap: Option<PapLevel>,
    /// Ask about addresses that a list of known good ones vouches for, too
    #[arg(long, hide_short_help = true)]
    pub ask_known_good: bool,
    /// At most this many addresses are asked about, worst first; 0 for no limit [default: 10000]
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Limit for the whole run; what is left then is reported as "deadline"
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<String>,
    /// A provider's rate: virustotal=4/min
    #[arg(long, value_name = "NAME=N/UNIT", value_delimiter = ',', hide_short_help = true)]
    pub rate: Vec<String>,
    /// Spend at most this many look-ups in this run: 500 in all, or virustotal=200
    #[arg(long, value_name = "[NAME=]N", value_delimiter = ',', value_parser = budget)]
    #[arg(hide_short_help = true)]
    pub budget: Vec<Budget>,
    /// Limit for one attempt [default: 10s]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub timeout: Option<String>,
    /// Limit for one look-up at one provider from its first attempt on, waits and retries included
    /// [default: 2m]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub deadline: Option<String>,
    /// Retries of one look-up (a retry budget bounds the whole run too) [default: 3]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub retries: Option<u32>,
    /// What is kept of earlier runs.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Name of a repeated run: it leaves to people what is reserved for them, and stands in the
    /// audit trail
    #[arg(long, value_name = "NAME", value_parser = job_name, help_heading = "Unattended runs")]
    pub job: Option<String>,
}

/// A marking of the Permissible Actions Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PapLevel {
    /// Nothing leaves the host or the user's own instances
    Red,
    /// Third parties may be asked, so long as the address's owner cannot notice
    Amber,
    /// Something that the owner could notice
    Green,
    /// Anything
    Clear,
}

impl PapLevel {
    /// The word as it stands in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Amber => "amber",
            Self::Green => "green",
            Self::Clear => "clear",
        }
    }
}

/// What is written.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches, each typed by itself")]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write here instead of to standard output; the file appears whole or not at all
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Add to the --output file, whole lines only, instead of replacing it
    #[arg(long, requires = "output", hide_short_help = true)]
    pub append: bool,
    /// Form of the results; "auto" is a table on a terminal, else ndjson
    #[arg(short, long, value_name = "FORM")]
    pub format: Option<OutputForm>,
    /// Columns of table, csv and tsv: names, or paths into the record such as
    /// providers.abuseipdb.reports [default: ip,verdict,score,country,asn,hits,tags]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub fields: Vec<String>,
    /// Order of the results; "done" prints each one as soon as it is known [default: done]
    #[arg(long, value_name = "BY", hide_short_help = true)]
    pub sort: Option<OutputSort>,
    /// Add each provider's answer as it came (ndjson, json)
    #[arg(long, hide_short_help = true)]
    pub raw: bool,
    /// Leave out the records of addresses that nobody was to be asked about
    #[arg(long, hide_short_help = true)]
    pub no_skipped: bool,
    /// Write addresses as 203.0.113[.]7 (table, csv, tsv)
    #[arg(long, hide_short_help = true)]
    pub defang: bool,
    /// Exit with 10 if a result is at least this bad: suspicious, malicious or a score (80)
    #[arg(long, value_name = "LEVEL")]
    pub fail_on: Option<String>,
    /// Also write the run's summary here, as JSON
    #[arg(long, value_name = "FILE", hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub summary_file: Option<PathBuf>,
}

/// Form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// A table on a terminal, else ndjson
    Auto,
    /// For people
    Table,
    /// One JSON object a line
    #[value(alias = "json-lines")]
    Ndjson,
    /// One JSON array
    Json,
    /// Comma-separated values with a heading
    Csv,
    /// Tab-separated values with a heading
    Tsv,
}

impl OutputForm {
    /// The word as it stands in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Table => "table",
            Self::Ndjson => "ndjson",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }
}

/// Order of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputSort {
    /// As answered
    Done,
    /// As the addresses first appeared in the input
    Input,
    /// Worst first
    Rank,
}
