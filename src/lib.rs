//! `sift` answers one question: are the addresses in these alerts known-bad?
//!
//! Data takes one way through the rooms of this crate, and never flows back:
//!
//! ```text
//! files, stdin -> input -> extract -> plan -> enrich -> output -> stdout / file
//! ```
//!
//! - [`input`] opens files, standard input, gzip and zstd, and gives lines.
//! - [`extract`] turns lines into a set of unique addresses, each with what was seen of it.
//! - [`plan`] drops what must not be asked, lets lists and files of this machine answer, and ranks the rest, worst first.
//! - [`enrich`] asks every provider in its own lane, within its limits.
//! - [`output`] joins the providers' answers into one record per address and writes it.
//! - [`provider`] stands beside the way: what a threat-intelligence service is, as a file.
//! - [`store`] remembers, for all processes: answers, what was spent of each quota, what was asked by whom, and work to do.
//! - [`worker`] works off what is put off: it takes tasks from the store's queue and has `enrich` ask.
//! - [`config`] gives every setting its value, and says where the value came from.
//! - [`simulate`] is a loopback server that speaks the providers' wire formats; it shares no code with the asking side.

pub mod cli;
pub mod config;
pub mod enrich;
pub mod extract;
pub mod input;
pub mod output;
pub mod plan;
pub mod provider;
pub mod simulate;
pub mod store;
pub mod worker;
