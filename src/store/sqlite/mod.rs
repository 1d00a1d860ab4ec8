//! The engine for one machine: one SQLite file that several processes share.
//!
//! - `schema` documents and makes the tables; `open` decides whether a file may be used.
//! - `writer` has the one thread of this process that writes: what waits is committed together. `sync` has the one that
//!   then waits for the disk, and `reader` the one that reads. Work comes through an `inbox` with a bound.
//! - `cache`, `ledger`, `audit` and `queue` are what the four traits do, as functions over a connection. They run inside a
//!   transaction of the writer's and may be run again if it fails.

mod audit;
mod cache;
mod clear;
mod db;
mod engine;
mod enqueue;
mod fault;
mod holder;
mod inbox;
mod ledger;
mod open;
mod period;
mod queue;
mod reader;
mod results;
mod schema;
mod short;
mod sync;
mod told;
mod value;
mod writer;

pub use engine::{Place, SqliteStore};

#[cfg(test)]
mod tests;
