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
#![doc = include_str!("scenario/format.toml")]
//! ```
//!
//! # Paths
//!
//! Beside the providers' own, `/__ledger` gives the [`Ledger`]'s snapshot as JSON, `/__reset` empties it and starts all
//! limits afresh, `/__trap` is a place for redirects to lead to: the ledger says whether a key followed.

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
