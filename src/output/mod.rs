//! From outcomes to records, and from records to bytes.
//!
//! - [`record`] is the wire type, documented whole; [`verdict`] joins several providers' answers by named rules.
//! - [`Sink`] writes records in a [`Form`] to a [`Target`], in the order of a [`Sort`].
//! - [`summary`] is what the run comes to; [`FailOn`] is when it counts as a finding.
//! - [`schema_for`] gives the JSON Schema of what is written.
//!
//! This room knows no provider's wire format, and asks nobody anything.

mod error;
mod fail_on;
mod fields;
mod file;
mod form;
mod harmless;
mod ndjson;
pub mod record;
mod schema;
mod sheet;
mod sink;
mod sort;
pub mod summary;
mod table;
pub mod verdict;
mod wire;
mod words;

pub use error::OutputError;
pub use fail_on::{FailOn, ParseFailOnError};
pub use fields::{Field, UnknownField, default_fields};
pub use file::{write_whole, write_whole_with};
pub use form::{Form, UnknownForm};
pub use harmless::harmless;
pub use record::{Entry, Failure, Record, Status};
pub use schema::{SchemaOf, schema_for};
pub use sink::{Options, Sink, Target, stdout_takes_color};
pub use sort::{Sort, UnknownSort};
pub use summary::Summary;
pub use words::{counted, thousands};
