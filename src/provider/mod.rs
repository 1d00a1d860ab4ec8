//! What a threat-intelligence service is: a TOML file with a request, limits, and a jq filter that reads its replies.
//!
//! This room stands beside the way of the data. It does no network I/O, reads no clock and waits for nothing but
//! its own filters: `enrich` sends what [`Definition::prepare`] made and hands what came back to [`Filters::read`].
//!
//! - [`Table`] holds all definitions: those built in, and the user's from a folder, validated with line numbers.
//! - [`Definition`] is one of them: what it accepts, what is sent, its [`Limits`], cache ages and filter.
//! - [`Filters`] are the compiled filters of one run. A [`Reply`] goes in, a [`Reading`] comes out: an [`Answer`],
//!   or a [`Failure`] that says whether it concerns one address or the whole lane.
//!
//! A filter is code, and a reply is hostile. The guards stand in `filter`: the body is parsed by serde_json before jaq
//! sees it, filters get a list of allowed builtins, and the user's own run in a child process that can be ended.

mod answer;
mod definition;
mod error_type;
mod faults;
mod filter;
mod limits;
mod list;
mod mmdb;
mod nearest;
mod parse;
mod reading;
mod request;
mod table;

pub use answer::{Answer, Thresholds, Verdict};
pub use definition::{
    Accepts, Ages, Bulk, Counts, Definition, KeyPlace, KeyRule, KeyUse, Missing, Origin, Pap, Role,
};
pub use error_type::ErrorType;
pub use faults::{DefinitionError, DefinitionErrors, FilterError, Place, RequestError};
pub use filter::{FILTER_COMMAND, Filters, Sandbox, serve_filters};
pub use limits::{Dialect, Limits, ParseQuotaError, Quota, Window};
pub use list::{
    BadEntry, Card, Entries, Format, ListDefinition, Lists, Refused, Shelf, ShelfError, ShelfLock, accept,
};
pub use mmdb::{Mmdb, MmdbError};
pub use nearest::nearest;
pub use reading::{Failure, Reach, Reading, Reply};
pub use request::Prepared;
pub use table::{Notice, Table};
