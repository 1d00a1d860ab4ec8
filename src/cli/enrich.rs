//! `sift enrich` and `sift lookup`.

use super::address;
use super::args::{Enrich, Form, Global, InputArgs, Lookup, LookupArgs, OutputArgs, Rehearse};
use super::exit::Exit;
use super::flags::{Flags, since};
use super::follow;
use super::keyring::Keyring;
use super::local;
use super::lookups::{Session, excluded, warn_of};
use super::providers_of_run::Rehearsal;
use super::report::CliError;
use super::settings::Settings;
use super::summary::Began;
use super::voice;
use crate::config::Config;
use crate::enrich::stop;
use crate::extract::{self, Counts, Extraction, InputFormat};
use crate::input::Input;
use crate::output::thousands;
use crate::plan::Local;
use crate::simulate::{Scenario, Server};
use jiff::Timestamp;
use std::io::{Cursor, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Runs `sift enrich`.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn run(args: Enrich, global: Global) -> Result<Exit, CliError> {
    if args.input.follow {
        return Box::pin(follow::enrich(args, global)).await;
    }
    let inputs = inputs(args.files, "sift enrich")?;
    not_an_input(&inputs, args.output.output.as_deref())?;
    let mut flags = Flags::default();
    flags.input(&args.input);
    let scenario = scenario(&args.rehearse)?;
    let mut session = session("enrich", flags, args.lookups, args.output, global, scenario).await?;
    session.is_dry = args.dry_run;
    session.defers = args.defer;
    let options = options(&args.input, &session.loaded.config, Timestamp::now())?;
    session.again = again(&inputs);
    let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
    let read = move |reading: &AtomicBool| extract::extract(&inputs, &options, reading);
    Box::pin(answer(session, read, &names.join(", "))).await
}

/// Runs `sift lookup`.
///
/// # Errors
/// See [`CliError`].
pub(super) async fn lookup(args: Lookup, global: Global) -> Result<Exit, CliError> {
    let scenario = scenario(&args.rehearse)?;
    let session = session("lookup", Flags::default(), args.lookups, args.output, global, scenario).await?;
    let options = extract::Options {
        format: InputFormat::List,
        max_malformed: 1.0,
        max_unique: session.loaded.config.input.max_unique,
        ..extract::Options::default()
    };
    let text = args.ips.join("\n");
    let ips = args.ips;
    let read = move |reading: &AtomicBool| {
        extract::extract_reader(&Input::Stdin, Cursor::new(text), &options, reading)
    };
    let extraction = read(&AtomicBool::new(false))?;
    if extraction.counts.malformed > 0 || extraction.indicators.is_empty() {
        let wrong = ips.iter().find(|ip| is_no_address(ip)).cloned().unwrap_or_default();
        let tip = "give plain or defanged addresses: 203.0.113.7, 203.0.113[.]7, 2001:db8::7";
        return Err(CliError::usage(format!("'{wrong}' is no address"), tip));
    }
    Box::pin(answer(session, move |_| Ok(extraction), "the command line")).await
}

fn is_no_address(text: &str) -> bool {
    let options =
        extract::Options { format: InputFormat::List, max_malformed: 1.0, ..extract::Options::default() };
    let never = AtomicBool::new(false);
    let read = extract::extract_reader(&Input::Stdin, Cursor::new(text.to_owned()), &options, &never);
    read.is_ok_and(|extraction| extraction.indicators.is_empty())
}

/// Reads, asks, writes.
async fn answer<F>(session: Session, read: F, what: &str) -> Result<Exit, CliError>
where
    F: FnOnce(&AtomicBool) -> Result<Extraction, extract::ExtractError> + Send + 'static,
{
    let began = Began { at: Timestamp::now(), steady: Instant::now() };
    session.listen()?;
    let lanes = session.lanes()?;
    session.fail_on()?;
    let memory = session.memory()?;
    let sink = if session.is_dry { None } else { Some(session.sink()?) };
    if session.command == "enrich" {
        voice::note(format!("reading {what}…"));
    }
    let reading = Arc::clone(&session.reading);
    let mut stop = session.stop.clone();
    let extraction = tokio::select! {
        read = tokio::task::spawn_blocking(move || read(&reading)) => read,
        // The reader may wait for a pipe that never ends; nothing was asked yet, so nothing is left to do.
        stopped = stop.called() => return Err(CliError::Stopped(stopped)),
    };
    let extraction = extraction.map_err(|error| CliError::Bug(error.to_string()))??;
    warn_of(&extraction);
    if extraction.indicators.is_empty() {
        warn_of_nothing(what, &extraction.counts);
    }
    session.run(extraction, lanes, memory, sink, began).await
}

/// Says that no address was found, and what that is most likely due to.
fn warn_of_nothing(what: &str, counts: &Counts) {
    let tip = "is it the right file? one event of eve.json a line is expected, or one address a line";
    let (all, tip) = match all_left_out(counts) {
        Some(all) => (format!(": {all}"), "widen --since, --severity, --alerts or --event-type"),
        None => (String::new(), tip),
    };
    voice::warn_with(&format!("no address was found in {what}{all}"), &[("tip", tip.to_owned())]);
}

/// That the filters left out all that was read, where they did.
pub(super) fn all_left_out(counts: &Counts) -> Option<String> {
    match counts.events {
        n if n == 0 || counts.filtered < n => None,
        1 => Some("the filters left out its one event".to_owned()),
        n => Some(format!("the filters left out all {} events", thousands(n))),
    }
}

/// The command line to give once more, as it was typed; none where the input is gone.
fn again(inputs: &[Input]) -> Option<String> {
    let is_file = |input: &Input| matches!(input, Input::File(_));
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    inputs.iter().all(is_file).then(|| words.fold("sift".to_owned(), |line, word| line + " " + &word))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Refuses an output that is one of the inputs: it would be read half written, or be lost.
pub(super) fn not_an_input(inputs: &[Input], output: Option<&Path>) -> Result<(), CliError> {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let Some(target) = output else { return Ok(()) };
    let Some(target_is) = identity(target).filter(|_| target.is_file()) else { return Ok(()) };
    let is_target = |input: &&Input| matches!(input, Input::File(path) if identity(path) == Some(target_is));
    match inputs.iter().find(is_target) {
        None => Ok(()),
        Some(input) => {
            let message = format!("{input} is both read and written");
            Err(CliError::usage(message, "name another file with -o"))
        }
    }
}

/// The files, or standard input where it is no terminal.
pub(super) fn inputs(files: Vec<PathBuf>, command: &'static str) -> Result<Vec<Input>, CliError> {
    if files.is_empty() && std::io::stdin().is_terminal() {
        let message = "no FILE was given, and standard input is a terminal";
        return Err(CliError::usage(message, format!("name a file, or pipe one in: {command} eve.json")));
    }
    if let Some(address) = files.iter().find_map(|path| address_as_file(path)) {
        return Err(CliError::AddressAsFile { address, command });
    }
    let read = |path: PathBuf| if path.as_os_str() == "-" { Input::Stdin } else { Input::File(path) };
    Ok(if files.is_empty() { vec![Input::Stdin] } else { files.into_iter().map(read).collect() })
}

/// The address that stands where a file is expected, plain or defanged; none where there is such a file.
fn address_as_file(path: &Path) -> Option<String> {
    let text = path.to_str().filter(|_| !path.exists())?;
    address::one(text).is_ok().then(|| text.to_owned())
}

/// What the reader is told.
pub(super) fn options(
    args: &InputArgs,
    config: &Config,
    now: Timestamp,
) -> Result<extract::Options, CliError> {
    Ok(extract::Options {
        format: match args.input_format {
            Form::Auto => InputFormat::Auto,
            Form::Eve => InputFormat::Eve,
            Form::List => InputFormat::List,
            Form::Sift => InputFormat::Sift,
        },
        event_types: config.input.event_types.clone(),
        severity: args.severity,
        since: args.since.as_deref().map(|text| since(text, now)).transpose()?,
        max_line: config.input.max_line,
        max_unique: config.input.max_unique,
        max_malformed: config.input.max_malformed,
        home_net: config.input.home_net.clone(),
        context: true,
        strict: args.strict,
        event_path: args.event_path.as_deref().map(event_path).transpose()?,
        threads: args.threads,
    })
}

fn event_path(text: &str) -> Result<extract::EventPath, CliError> {
    text.parse().map_err(|error| {
        CliError::usage(format!("--event-path {text}: {error}"), "write it like this: --event-path data")
    })
}

/// The scenario of a rehearsal, by name or by file.
pub(super) fn scenario(args: &Rehearse) -> Result<Option<(String, Scenario)>, CliError> {
    if !args.simulate {
        return Ok(None);
    }
    let name = args.scenario.as_deref().unwrap_or("default");
    named_scenario(name).map(|scenario| Some((name.to_owned(), scenario)))
}

/// A scenario by its name, else by its file.
pub(super) fn named_scenario(name: &str) -> Result<Scenario, CliError> {
    match Scenario::named(name) {
        Some(scenario) => Ok(scenario),
        None if name.contains(['/', '.']) || std::path::Path::new(name).exists() => {
            Ok(Scenario::load(name.as_ref())?)
        }
        None => {
            let names: Vec<&str> = Scenario::names().map(|(name, _)| name).collect();
            Err(CliError::usage(
                format!("there is no scenario named '{name}'"),
                format!("there are {}; or name a file", names.join(", ")),
            ))
        }
    }
}

/// Configuration, providers and, for a rehearsal, the server.
pub(super) async fn session(
    command: &'static str,
    mut flags: Flags,
    lookups: LookupArgs,
    output: OutputArgs,
    global: Global,
    scenario: Option<(String, Scenario)>,
) -> Result<Session, CliError> {
    flags.lookups(&lookups)?;
    flags.output(&output);
    let wanted = scenario.as_ref().map(|(name, scenario)| (name.clone(), scenario.client().clone()));
    let Settings { env, folders, loaded, table, is_missing_some: _ } =
        Settings::load(&global, flags, wanted)?;
    // Nothing else goes on yet, so a command that asks for a passphrase may take its time.
    let keys = match &scenario {
        Some(_) => Keyring::default(),
        None => Keyring::gather(&table, &loaded.config, &env, &folders, &lookups.provider)?,
    };
    let exclude = excluded(&loaded.config, &lookups.exclude)?;
    // A rehearsal is the same for everybody: nobody's own lists answer in it.
    let local = match &scenario {
        Some(_) => Local::default(),
        None => local::open(&loaded.config, &folders, &table, Timestamp::now())?,
    };
    let rehearsal = match scenario {
        Some((_, scenario)) => Some(rehearse(scenario).await?),
        None => None,
    };
    let (stopper, stop) = stop::channel();
    let reading = Arc::new(AtomicBool::new(false));
    Ok(Session {
        command,
        global,
        output,
        is_dry: false,
        defers: false,
        loaded,
        env,
        table,
        keys,
        named: lookups.provider,
        exclude,
        local: Arc::new(local),
        cache: lookups.cache,
        job: lookups.job,
        budget: lookups.budget,
        folders,
        rehearsal,
        stopper,
        stop,
        reading,
        again: None,
    })
}

/// Starts the simulator inside the process. It ends with the process.
async fn rehearse(scenario: Scenario) -> Result<Rehearsal, CliError> {
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let providers =
        scenario.client().get("providers").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let is_asked =
        |settings: &toml::Value| settings.get("enabled").and_then(toml::Value::as_bool).unwrap_or(true);
    let names: Vec<String> =
        providers.into_iter().filter(|(_, settings)| is_asked(settings)).map(|(name, _)| name).collect();
    let keys: std::collections::BTreeMap<String, String> =
        names.iter().filter_map(|name| Some((name.clone(), scenario.key(name)?))).collect();
    let server = Server::bind(scenario, listen, 1).await?.with_exact_latencies()?;
    let base = format!("http://{}", server.addr());
    tokio::spawn(server.run(std::future::pending()));
    Ok(Rehearsal { base, names, keys })
}
