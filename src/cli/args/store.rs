//! `cache`, `quota`, `audit` and `explain`: what the store holds.

use super::ListForm;
use super::kept::job_name;
use clap::{Args, Subcommand, ValueHint};

/// `sift cache`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Answers and not-founds are kept, each for as long as its provider's max_age says; failures
never are. Rehearsals keep nothing.

Examples:
  sift cache stats
  sift cache get 203.0.113.7
  sift cache prune")]
pub struct Cache {
    /// What to do.
    #[command(subcommand)]
    pub command: CacheCommand,
}

/// `sift cache …`.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// A line for each provider: answers, their size, the oldest and the newest
    #[command(after_help = "\
Examples:
  sift cache stats
  sift cache stats -f ndjson | jq .answers")]
    Stats {
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// The answers about an address, with what each provider sent; 3 if there is none
    #[command(after_help = "\
Examples:
  sift cache get 203.0.113.7
  sift cache get 203.0.113.7 -f ndjson | jq .body")]
    Get {
        /// The address; a defanged one is understood
        #[arg(value_name = "IP", value_hint = ValueHint::Other)]
        ip: String,
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// Drop answers; asks first
    #[command(after_help = "\
What was spent of the quotas stays counted, and who asked stays in the audit trail.

Examples:
  sift cache clear --ip 203.0.113.7 --yes
  sift cache clear --provider virustotal --yes")]
    Clear {
        /// Only this provider's
        #[arg(short, long, value_name = "NAME")]
        provider: Option<String>,
        /// Only those about this address
        #[arg(long, value_name = "IP", value_hint = ValueHint::Other)]
        ip: Option<String>,
        /// Do not ask first
        #[arg(long)]
        yes: bool,
    },
    /// Drop what is out of date or beyond max_size, and old rows of the audit trail
    #[command(after_help = "\
Example:
  sift cache prune")]
    Prune,
}

/// `sift quota`.
#[derive(Debug, Args)]
#[command(after_help = "\
All runs of this machine (of this user, unless state_dir is shared) count together, by provider,
key and window. A key is told by an id that does not give it away. What is kept for people is
the provider's reserve: runs with --job and workers leave it alone.

Examples:
  sift quota
  sift quota -p virustotal
  sift quota -f ndjson | jq 'select(.left == 0)'")]
pub struct Quota {
    /// Only these providers
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// Form of the list
    #[arg(short, long, value_name = "FORM", default_value = "auto")]
    pub format: ListForm,
}

/// `sift audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
A row for each address and request that left this machine, written before it left, oldest
first. A row without an outcome is in flight, or its process died. The configuration says for
how long rows are kept: [audit] keep.

Examples:
  sift audit --since 24h
  sift audit --ip 203.0.113.7
  sift audit --job eve -f ndjson | jq -r .provider | sort | uniq -c")]
pub struct Audit {
    /// Only from this time on: 15m, 24h, 7d or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only requests to this provider
    #[arg(short, long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Only requests of this user
    #[arg(long, value_name = "USER", value_hint = ValueHint::Username)]
    pub user: Option<String>,
    /// Only requests for this job
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub job: Option<String>,
    /// Only requests about this address
    #[arg(long, value_name = "IP", value_hint = ValueHint::Other)]
    pub ip: Option<String>,
    /// Form of the list
    #[arg(short, long, value_name = "FORM", default_value = "auto")]
    pub format: ListForm,
}

/// `sift explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks nobody: each answer that is kept, how old it is, and the rule by which they become one
verdict. Answers that are out of date count here, and are marked; a run would ask again. With
-f ndjson it is a record, as of 'sift lookup'. It ends with 3 if nothing is kept.

Examples:
  sift explain 203.0.113.7
  sift explain 203.0.113.7 -f ndjson | jq .rule")]
pub struct Explain {
    /// The address; a defanged one is understood
    #[arg(value_name = "IP", value_hint = ValueHint::Other)]
    pub ip: String,
    /// Form of what is said
    #[arg(short, long, value_name = "FORM", default_value = "auto")]
    pub format: ListForm,
}
