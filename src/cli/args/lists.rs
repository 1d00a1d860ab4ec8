//! `lists`.

use super::ListForm;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// `sift lists`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists answer on this machine, before anybody is asked, and need no key. An address on a list
of bad ones has that in its record, and is asked about all the same; one that a list of known
good ones vouches for, and no other accuses, is not (--ask-known-good asks). A miss says
nothing.

MMDB files in the same folder (GeoLite2, IPinfo, IPLocate, ip-location-db) add country and
network. 'sift config show' says where it is: data_dir.

Examples:
  sift lists update
  sift lists list
  sift lists add scanners https://intel.example/scanners.txt --verdict suspicious
  sift lists add ours ./our-networks.txt --known-good")]
pub struct Lists {
    /// What to do.
    #[command(subcommand)]
    pub command: ListsCommand,
}

/// `sift lists …`.
#[derive(Debug, Subcommand)]
pub enum ListsCommand {
    /// Download lists, each at most as often as its source allows
    Update(ListsUpdate),
    /// A line for each list and MMDB file: entries, age, what an address on it is
    #[command(after_help = "Example:\n  sift lists list -f ndjson")]
    List {
        /// Form of the list
        #[arg(short, long, value_name = "FORM", default_value = "auto")]
        format: ListForm,
    },
    /// Add a list of your own, from a file or from where it is downloaded
    Add(ListsAdd),
    /// Take lists out of force; of your own ones nothing is left
    #[command(after_help = "Example:\n  sift lists remove scanners")]
    Remove {
        /// Lists
        #[arg(value_name = "NAME", required = true, value_hint = ValueHint::Other)]
        names: Vec<String>,
    },
}

/// `sift lists update`.
#[derive(Debug, Args)]
#[command(after_help = "\
A list is asked for with the tag of the last download, so that one that has not changed costs
nothing. A download takes the place of the old one only when it is whole: a page, an empty or
cut list, or one that has shrunk to less than half, is said, and the old list stays in force.

Examples:
  sift lists update
  sift lists update feodo spamhaus-drop-v4
  sift lists update --from /media/lists     # for a box without a network: feodo.json, cins.txt, …")]
pub struct ListsUpdate {
    /// Lists (default: all)
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub names: Vec<String>,
    /// Take them from files in this folder, named after the lists; download nothing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub from: Option<PathBuf>,
    /// Take a list even if it has shrunk to less than half
    #[arg(long)]
    pub take_smaller: bool,
}

/// `sift lists add`.
#[derive(Debug, Args)]
#[command(after_help = "\
The form is found by looking: one address, network or range a line (with # comments), CSV,
JSON, JSON lines. The definition is written to the folder 'providers' beside config.toml.

Examples:
  sift lists add scanners https://intel.example/scanners.txt --verdict suspicious --every 6h
  sift lists add ours ./our-networks.txt --known-good
  sift lists add hosts ./hosts.csv --form csv --column 2 --verdict malicious")]
pub struct ListsAdd {
    /// Its name: a-z, 0-9 and -
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub name: String,
    /// A file, which is copied, or an https URL
    #[arg(value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub source: String,
    /// What an address on it is
    #[arg(long, value_name = "VERDICT", default_value = "suspicious", conflicts_with = "known_good")]
    pub verdict: Says,
    /// Its addresses are known to be good, and need not be asked about
    #[arg(long)]
    pub known_good: bool,
    /// The verdict as a number, 0 to 100
    #[arg(long, value_name = "0..100", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub score: Option<u8>,
    /// Tags for its addresses
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub tag: Vec<String>,
    /// How it is written (default: found by looking)
    #[arg(long, value_name = "FORM")]
    pub form: Option<Written>,
    /// CSV: the column of the addresses, counted from 0
    #[arg(long, value_name = "N", requires = "form")]
    pub column: Option<u8>,
    /// JSON: the member of each object that holds the address
    #[arg(long, value_name = "NAME", requires = "form")]
    pub field: Option<String>,
    /// JSON: the member that holds the array
    #[arg(long, value_name = "NAME", requires = "form")]
    pub member: Option<String>,
    /// The shortest time between two downloads [default: 24h]
    #[arg(long, value_name = "TIME")]
    pub every: Option<String>,
}

/// What an address on a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Says {
    /// Known-bad
    Malicious,
    /// Something speaks against it
    Suspicious,
    /// Context alone
    Unknown,
}

/// How a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Written {
    /// One a line
    Plain,
    /// Lines with commas
    Csv,
    /// An array
    Json,
    /// One object a line
    JsonLines,
}
