//! `help`, `completions`, `man`, and the topics.

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// `sift help`.
#[derive(Debug, Args)]
#[command(after_help = "\
Topics: exit-codes, records, configuration, providers, scenarios

Examples:
  sift help enrich
  sift help credentials set
  sift help exit-codes")]
pub struct Help {
    /// A command, or a topic
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

/// `sift completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sift completions bash > sift.bash    # into ~/.local/share/bash-completion/completions/sift
  sift completions zsh > _sift         # into a folder of $fpath
  sift completions fish > sift.fish    # into ~/.config/fish/completions")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `sift man`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mkdir -p man && sift man man")]
pub struct Man {
    /// An existing folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// Something to read about that is no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Topic {
    /// What each exit status means
    ExitCodes,
    /// What a record holds
    Records,
    /// Where settings come from, and which wins
    Configuration,
    /// Who is asked, and with which key
    Providers,
    /// What a simulated provider can be told to do
    Scenarios,
}

impl Topic {
    /// The page.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ExitCodes => EXIT_CODES,
            Self::Records => RECORDS,
            Self::Configuration => CONFIGURATION,
            Self::Providers => PROVIDERS,
            Self::Scenarios => SCENARIOS,
        }
    }
}

const SCENARIOS: &str = concat!(
    "\
Scenarios: what simulated providers do, for 'sift simulate --scenario' and 'enrich --simulate --scenario'

'sift simulate --list' names those that are built in. One of your own is a TOML file; all of it may be left out:

",
    include_str!("../../simulate/scenario/format.toml"),
    "
Example:
  sift simulate --list"
);

const EXIT_CODES: &str = "\
Exit status

  0    every look-up was answered; not found and skipped are answers. Also: nothing
       was found to look up, or whoever read the output went away (| head)
  1    fatal: an input or the store cannot be read or written, an output not be written,
       or a bug
  2    the command line or the configuration is wrong; nothing was sent
  3    some look-ups were not answered: a limit, a failing provider, --limit,
       --max-time. Their records have status \"error\", with retry_at where known.
       Of explain and cache get: nothing is kept about the address. Of enqueue: --limit
       left addresses out. Of worker: some of what was due waits, or was given up
  4    look-ups were due and none was answered: keys refused, network or quota gone
  10   --fail-on matched
  130  stopped by SIGINT, after the orderly end
  143  stopped by SIGTERM, after the orderly end

If several hold: 1 or 2, then 130 or 143, then 10, 4, 3. New ones may come; treat an
unknown one as a failure. A second signal ends the run at once, with the same status.

Example:
  sift enrich --simulate eve.json > out.ndjson || echo \"status $?\"";

const RECORDS: &str = "\
Records: one JSON object a line, one line for each unique address

  ip, type      the address; ipv4-addr or ipv6-addr
  status        ok: somebody answered; error: nobody did; skipped: nobody was asked
  verdict       malicious, suspicious, benign, unknown; null unless status is ok.
                unknown is no good news: nobody has heard of it
  score         0 to 100, the highest of the providers'
  found         some provider knows the address
  complete      every provider that decides the verdict has answered
  conflict      one vouches for it, another accuses it; the verdict is suspicious
  rule          which rule decided the verdict
  tags          of all providers, sorted
  country, asn, as_org
  seen          what the input said: count, first, last, fields, severity,
                signatures, ports, protos, peers. It never leaves this host
  providers     by name: status, verdict, score, found, reference, cache,
                fetched_at, attempts, latency_ms; or status error and its error. Lists
                that hold the address stand there too, and 'mmdb': cache is local
  error         of the record: type, message, provider, http_status, retryable,
                retry_after_s, retry_at
  reason        why it was skipped: private, excluded, …
  timestamp, v  when the record was made; version of the format, 1

error.type is one of rate_limited, quota_exhausted, budget_exhausted, timeout, deadline,
circuit_open, connection, tls, server_error, unauthorized, forbidden, invalid_request,
invalid_response, response_too_large, offline, cancelled, internal. New ones may come, and
new keys too; v is raised when a key goes or changes its meaning.

Without every answer a verdict is never benign. Times are UTC.

Examples:
  sift enrich --simulate eve.json | jq -r 'select(.verdict==\"malicious\").ip'
  sift enrich --simulate eve.json | jq -r .verdict | sort | uniq -c
  sift schema record";

const CONFIGURATION: &str = "\
Configuration

Strongest first:
  1. flags                         --timeout 5s
  2. variables                     SIFT_TIMEOUT=5s, SIFT_INPUT_LIMIT=500
  3. a scenario's settings         with --simulate
  4. your file                     $XDG_CONFIG_HOME/sift/config.toml (~/.config/sift),
                                   or the one that --config or SIFT_CONFIG names
  5. the machine's file            /etc/sift/config.toml
  6. defaults

A variable is the key's path in capitals. --config none reads no file at all. Under
systemd CONFIGURATION_DIRECTORY, STATE_DIRECTORY and CREDENTIALS_DIRECTORY
come before the XDG folders.

'sift config init' writes a file with every key and what it means. An unknown key is
refused, with the nearest known one; so is nonsense, such as a time-out above the deadline.
API keys do not belong in it: see 'sift help credentials'.

Examples:
  sift config show --origin     # every value, and where it comes from
  sift config check             # every fault at once, with its line
  sift config paths";

/// Also the last part of `sift providers --help`.
pub(super) const PROVIDERS: &str = "\
Who is asked: providers that have a key, those enabled in the configuration, or exactly
those named with -p. One that needs no key is off until it is named or enabled: no address
goes to anybody that nobody chose. What leaves is the address alone, never what was seen of
it; private, reserved and excluded addresses never leave.

A provider is a file. To add one, or a second instance of a built-in one, put NAME.toml
into the folder 'providers' beside config.toml; no other account may be able to write it.
'sift providers show abuseipdb' shows what one is made of:

  title = \"In-house\"
  role = \"reputation\"
  accepts = [\"ipv4\", \"ipv6\"]
  [key]
  use = \"required\"
  header = \"X-Key\"
  [request]
  base_url = \"https://intel.example\"
  path = \"/v1/ip/{ip}\"
  [answer]
  filter = '''if .status == 200 then {found: .body.known, score: .body.score} else null end'''

A second MISP needs but its place: extends = \"misp\", and base_url under [request].

The filter is jq. It reads {ip, status, headers, body} and gives the answer: found, verdict
or score, tags, first_seen, last_seen, country, asn, as_org, reference; or an error; or null
where the usual meaning of the status will do.

Lists and MMDB files answer on this machine, before anybody is asked: 'sift lists --help'.

Examples:
  sift providers list
  sift providers show virustotal
  sift providers check";
