//! `simulate` and `schema`, and the form of lists.

use clap::{Args, ValueEnum};
use std::net::SocketAddr;

/// `sift simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sift simulate --list
  sift simulate --scenario strict --listen 127.0.0.1:8765 & sleep 1
  SIFT_VIRUSTOTAL_BASE_URL=http://127.0.0.1:8765 VT_API_KEY=any sift lookup 203.0.113.7

It prints what arrived when it is stopped; /__ledger shows the same as JSON meanwhile.
'sift help scenarios' says what a scenario of your own can hold.")]
pub struct Simulate {
    /// What the providers do: a name or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub scenario: String,
    /// Loopback address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Seed of the answers, so that a run can be repeated
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the names of the scenarios, and end
    #[arg(long)]
    pub list: bool,
}

/// `sift schema`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sift schema record")]
pub struct Schema {
    /// Of what
    #[arg(value_name = "WHAT", default_value = "record")]
    pub what: SchemaKind,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    /// A line of enrich and lookup
    Record,
    /// The summary of a run
    Summary,
}

/// Form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListForm {
    /// A table on a terminal, else ndjson
    Auto,
    /// For people
    Table,
    /// One JSON object a line
    Ndjson,
}

impl ListForm {
    /// Whether a table is due on standard output.
    #[must_use]
    pub fn is_table(self) -> bool {
        use std::io::IsTerminal as _;
        self == Self::Table || (self == Self::Auto && std::io::stdout().is_terminal())
    }
}
