//! `sift extract`.

use super::args::{Extract, ExtractSort, Global};
use super::enrich::{all_left_out, inputs, not_an_input, options};
use super::exit::Exit;
use super::flags::Flags;
use super::follow;
use super::lookups::warn_of;
use super::on_runtime;
use super::report::CliError;
use super::settings::Settings;
use super::voice;
use crate::extract::{self, Extraction, Indicators, Scope, append_ip};
use crate::output::{OutputError, counted, record::RECORD_VERSION, thousands, write_whole_with};
use crate::plan::rank::rank;
use jiff::Timestamp;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// Runs it.
///
/// # Errors
/// See [`CliError`].
pub(super) fn run(args: Extract, global: &Global) -> Result<Exit, CliError> {
    if args.input.follow {
        return on_runtime(follow::extract(args, global));
    }
    let inputs = inputs(args.files, "sift extract")?;
    not_an_input(&inputs, args.output.as_deref())?;
    let mut flags = Flags::default();
    flags.input(&args.input);
    let config = Settings::config(global, flags)?;
    let mut options = options(&args.input, &config, Timestamp::now())?;
    // The rank needs the context, whether or not it is printed.
    options.context = !args.no_context || args.sort == ExtractSort::Rank;
    let extraction = extract::extract(&inputs, &options, &AtomicBool::new(false))?;
    warn_of(&extraction);
    let order = (args.sort == ExtractSort::Rank).then(|| {
        let mut ids: Vec<u32> = (0..u32::try_from(extraction.indicators.len()).unwrap_or(u32::MAX)).collect();
        rank(&extraction.indicators, &mut ids);
        ids
    });
    match &args.output {
        None => write_to(std::io::stdout().lock(), &extraction.indicators, order.as_deref(), args.no_context)
            .map_err(|source| failed("standard output", source))?,
        Some(path) => {
            let target = path.display().to_string();
            write_whole_with(path, 0o644, |file| {
                write_to(file, &extraction.indicators, order.as_deref(), args.no_context)
            })
            .map_err(|source| failed(&target, source))?;
        }
    }
    say(&extraction);
    // The process ends now, and the system takes the memory back faster than piece by piece.
    std::mem::forget(extraction);
    Ok(Exit::Ok)
}

pub(super) fn failed(target: &str, source: std::io::Error) -> CliError {
    let target = target.to_owned();
    CliError::Output(match source.kind() {
        std::io::ErrorKind::BrokenPipe => OutputError::ClosedPipe { target },
        std::io::ErrorKind::StorageFull => OutputError::Full { target, source },
        _ => OutputError::Write { target, source },
    })
}

/// 64 KiB a write: nothing is waited for here, so there is no life to show line by line.
const WRITE: usize = 64 * 1024;

fn write_to(
    mut out: impl Write,
    indicators: &Indicators,
    order: Option<&[u32]>,
    bare: bool,
) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(WRITE + 4096);
    let mut line = |id: u32| -> std::io::Result<()> {
        append_line(indicators, id, bare, &mut bytes);
        if bytes.len() >= WRITE {
            out.write_all(&bytes)?;
            bytes.clear();
        }
        Ok(())
    };
    match order {
        Some(order) => order.iter().try_for_each(|&id| line(id))?,
        None => (0..u32::try_from(indicators.len()).unwrap_or(u32::MAX)).try_for_each(&mut line)?,
    }
    out.write_all(&bytes)?;
    out.flush()
}

/// A line: the address alone, or `{ip, type, scope, seen, v}`. None of the values but `seen`, which is JSON as it
/// comes, needs an escape.
pub(super) fn append_line(indicators: &Indicators, id: u32, bare: bool, line: &mut Vec<u8>) {
    let ip = indicators.ip(id);
    if bare {
        append_ip(ip, line);
    } else {
        line.extend_from_slice(b"{\"ip\":\"");
        append_ip(ip, line);
        line.extend_from_slice(if ip.is_ipv4() {
            b"\",\"type\":\"ipv4-addr"
        } else {
            b"\",\"type\":\"ipv6-addr"
        });
        line.extend_from_slice(b"\",\"scope\":\"");
        line.extend_from_slice(Scope::of(ip).as_str().as_bytes());
        line.push(b'"');
        let without = line.len();
        line.extend_from_slice(b",\"seen\":");
        if !indicators.append_seen(id, line) {
            line.truncate(without);
        }
        // Writing to a vector does not fail.
        drop(write!(line, ",\"v\":{RECORD_VERSION}}}"));
    }
    line.push(b'\n');
}

/// What was read, in words.
pub(super) fn say(extraction: &Extraction) {
    let counts = &extraction.counts;
    let scopes: Vec<String> = extraction
        .indicators
        .by_scope()
        .into_iter()
        .map(|(scope, count)| format!("{} {}", thousands(count), scope.as_str()))
        .collect();
    let scopes = if scopes.is_empty() { String::new() } else { format!(" ({})", scopes.join(", ")) };
    // A plain list has none.
    let events = match counts.events {
        0 => String::new(),
        n => counted(n, "event", "events") + " of ",
    };
    let mut text = format!(
        "{}{scopes} in {events}{}",
        counted(extraction.indicators.len() as u64, "address", "addresses"),
        counted(counts.lines, "line", "lines")
    );
    if let Some(all) = all_left_out(counts) {
        let _ = write!(text, "; {all}");
    }
    if counts.malformed > 0 {
        let places: Vec<String> =
            counts.first_malformed.iter().map(|place| format!("{}:{}", place.input, place.line)).collect();
        let lines = counted(counts.malformed, "line", "lines");
        let _ = write!(text, "; {lines} could not be read (first {})", places.join(", "));
    }
    if counts.bad_ip > 0 {
        let values = counted(counts.bad_ip, "value that is", "values that are");
        let _ = write!(text, "; {values} no address");
    }
    voice::note(text);
}
