//! One address as it was typed.

use super::report::CliError;
use crate::extract::{InputFormat, Options, extract_reader};
use crate::input::Input;
use std::io::Cursor;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

/// The address, read as a line of a list is: a defanged one is understood.
///
/// # Errors
/// A text that is no address, or holds several.
pub(super) fn one(text: &str) -> Result<IpAddr, CliError> {
    let options = Options { format: InputFormat::List, max_malformed: 1.0, ..Options::default() };
    let read =
        extract_reader(&Input::Stdin, Cursor::new(text.to_owned()), &options, &AtomicBool::new(false))?;
    if read.indicators.len() == 1 && !text.trim().contains('\n') {
        return Ok(read.indicators.ip(0));
    }
    let tip = "give a plain or a defanged address: 203.0.113.7, 203.0.113[.]7, 2001:db8::7";
    Err(CliError::usage(format!("'{text}' is no address"), tip))
}
