//! `sift schema`.

use super::args::{Schema, SchemaKind};
use super::exit::Exit;
use super::report::CliError;
use super::stdout::print;
use crate::output::{SchemaOf, schema_for};

/// Prints the schema.
///
/// # Errors
/// Where standard output cannot be written.
pub(super) fn run(args: &Schema) -> Result<Exit, CliError> {
    let what = match args.what {
        SchemaKind::Record => SchemaOf::Record,
        SchemaKind::Summary => SchemaOf::Summary,
    };
    print(&format!("{:#}\n", schema_for(what)))?;
    Ok(Exit::Ok)
}
