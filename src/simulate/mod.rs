//! A loopback server that speaks the wire formats of threat-intelligence providers, under a scenario, and keeps a
//! ledger of what arrived.
//!
//! It is for rehearsals and tests, and it proves something only because it shares nothing with the asking side: rate
//! accounting, address checks and provider knowledge are its own.
//!
//! It listens on a loopback address or not at all. All waiting goes through tokio's clock, and wall time is a base
//! plus what that clock says has passed, so the server also runs inside a client's paused runtime.
//!
//! # Scenarios
//!
//! Embedded, for `--scenario NAME`:
//!
//! - `default`: a first look; four providers, limits scaled down, every kind of record in under ten seconds.
//! - `calm`: no limits, no latency, no faults.
//! - `strict`: VirusTotal's public 4 a minute, refused without a word about how long to wait.
//! - `quota`: AbuseIPDB with 100 look-ups of the day left, told by its headers.
//! - `storm`: faults of every kind, spread over the providers.
//! - `flaky`: bursts of 500 answers.
//! - `slow`: answers take 300 ms to 2 s, and a few never come.
//!
//! A scenario of one's own is a TOML file. Unknown keys are refused with the nearest known one and the line.
//!
//! ```toml
//! about = "one line for people"
//! epoch = "2026-01-15T10:00:00Z"   # wall time at the start; unset: now
//!
//! # Merged into the asking side's configuration by `enrich --simulate`; the server does not read it.
//! [client]
//! concurrency = 16
//! [client.providers.abuseipdb]
//! enabled = true
//! rate = "50/s"
//!
//! # Pinned verdicts: malicious, suspicious, benign, unknown.
//! [answers]
//! "203.0.113.7" = "malicious"
//!
//! # Shares of the verdicts of all other addresses; what is left of 1 is unknown.
//! [shares]
//! malicious = 0.25
//! suspicious = 0.15
//! benign = 0.2
//! conflict = 0.08                  # share of (provider, address) pairs whose provider draws for itself
//!
//! # What holds for every provider that does not say otherwise. The faults of both are tried, its own first.
//! [every]
//! latency = "50ms"                 # or { min = "20ms", max = "80ms" }, drawn from the seed
//!
//! [providers.abuseipdb]
//! key = "example-key"              # unset: any key, where the provider wants one
//! limits = [                       # at most COUNT in PER; a refusal costs nothing
//!   { count = 4, per = "1min" },                              # kind = "sliding" is the default
//!   { count = 60, per = "1h", kind = "fixed" },               # windows follow each other from the start on
//!   { count = 50, per = "1s", kind = "bucket", burst = 2 },   # refilled evenly, holds at most BURST
//! ]
//! daily = { count = 1000, used = 900, reset = "8h" }  # reset unset: the next midnight UTC
//! headers = "auto"                 # abuseipdb, urlscan, misp, ietf, none; auto: as the provider does
//! retry_after = "auto"             # exact, none, zero, negative, garbage, date, or a time ("2s", "8h")
//! penalty = "1h"                   # after a refusal everything is refused for this long
//! size = "full"                    # or "small": bodies without their long lists
//!
//! # Faults: the first that matches a request is applied. All selectors of a fault must match.
//! [[providers.abuseipdb.faults]]
//! kind = "status"                  # see `FaultKind` for all kinds
//! status = 429
//! retry_after = "1s"
//! from = 10                        # request ordinals at this provider, from 1, both ends included
//! to = 20
//! every = 5                        # ordinals 5, 10, 15 …
//! run = 2                          # … and 6, 11, 16: each time this many in a row
//! share = 0.5                      # of the requests, by the seed
//! address_share = 0.1              # of the addresses, by the seed: the same at every provider and attempt
//! addresses = ["203.0.113.13"]
//! first = 1                        # at most this often in all
//!
//! # A provider of one's own, under the path /inhouse/…: the first address in the request is what is asked.
//! [providers.inhouse]
//! key_header = "X-Key"
//! body = '{"ip": "{ip}", "verdict": "{verdict}", "score": {score}}'   # or body_file, beside the scenario
//! not_found = 404                  # status for verdict unknown; unset: 200 and the body
//!
//! # A named instance of a built-in provider, under the path /misp-two/…
//! [providers.misp-two]
//! like = "misp"
//! ```
//!
//! A request meets the key first, then the limits, then the faults, then the answer. Refusals by key or limit cost
//! nothing of the quota; faults do.
//!
//! # Paths
//!
//! Every provider answers under its own paths at the root, and under `/NAME/` before them. `/__ledger` gives the
//! [`Ledger`]'s snapshot as JSON, `/__reset` empties it and starts all limits afresh, `/__trap` is a place for redirects
//! to lead to: the ledger says whether a key followed.

mod alarm;
mod body;
mod dialect;
mod fault;
mod http;
mod kind;
mod ledger;
mod limit;
mod question;
mod reply;
mod scenario;
mod server;
mod special;
mod verdict;
mod world;

pub use ledger::{HoldOffBreach, Ledger, LimitReport, ProviderReport, Snapshot, Total, TrapReport};
pub use scenario::{FaultKind, Scenario, ScenarioError};
pub use server::{Server, SimulateError};
